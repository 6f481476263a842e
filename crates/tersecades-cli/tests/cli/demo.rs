//! The demo.

use super::*;

#[test]
fn the_demo_counts_what_a_naive_count_counts() {
    let (rows, rate) = (200_000, 2_000);
    let arguments = [
        "demo",
        "--rows",
        "200k",
        "--rate",
        "2k",
        "--top",
        "100000",
        "--all-windows",
    ];
    let expected = counted_naively(rows, rate);
    for threads in ["1", "3"] {
        let report = stdout_of(&[&arguments[..], &["--threads", threads]].concat());
        let mut starts: Vec<i64> = expected.keys().map(|(start, ..)| *start).collect();
        starts.dedup();
        let windows = windows_shown(&report, "C2cProbeCount");
        assert_eq!(windows.len(), starts.len());
        for (start, (clock, probes, pairs, shown)) in starts.iter().zip(&windows) {
            let second = start.rem_euclid(86_400_000) / 1000;
            let hour_minute = (second / 3600, second / 60 % 60, second % 60);
            let (h, m, s) = hour_minute;
            assert_eq!(*clock, format!("{h:02}:{m:02}:{s:02}"));
            let in_window = expected.iter().filter(|((at, ..), _)| at == start);
            let mut counts: Vec<(String, String, u64)> = in_window
                .map(|((_, source, target), count)| (source.clone(), target.clone(), *count))
                .collect();
            counts.sort_by(|a, b| b.2.cmp(&a.2).then(a.cmp(b)));
            assert_eq!(*shown, counts);
            assert_eq!(*pairs, counts.len() as u64);
            assert_eq!(*probes, counts.iter().map(|(.., count)| count).sum::<u64>());
        }
        assert_eq!(report.matches(" 200,000  ").count(), 4, "{report}");
        assert!(
            report.contains("Bytes per record, 200,000 retained rows"),
            "{report}"
        );
        assert!(report.contains("late rows: 0\n"), "{report}");
        assert!(report.contains(&format!("{threads} worker thread")));
        for shown in [
            " base_delta ",
            "base_delta 1.",
            "filter error_code <> 0 [encoded]",
            " values run encoded]",
            ", 0 decoded (0.0 %)",
        ] {
            assert!(report.contains(shown), "{shown}: {report}");
        }
        if cfg!(target_os = "linux") {
            assert!(report.contains("Peak memory: "), "{report}");
        }
    }
}

#[test]
fn racks_see_no_more_probes_than_clusters() {
    let report = stdout_of(&["demo", "--rows", "200k", "--rate", "2k", "--all-windows"]);
    let clusters = windows_shown(&report, "C2cProbeCount");
    let racks = windows_shown(&report, "T2tProbeCount");
    assert_eq!(clusters.len(), racks.len());
    for ((at, all, ..), (rack_at, known, ..)) in clusters.iter().zip(&racks) {
        // The table of racks knows about 99 % of the servers, so 98 % of the pairs.
        assert_eq!(at, rack_at);
        assert!(
            known <= all && *known as f64 >= 0.9 * *all as f64,
            "{at}: {known} of {all}"
        );
    }
}

#[test]
fn a_stream_without_rows_is_no_error() {
    let report = stdout_of(&["demo", "--rows", "0"]);
    assert!(report.contains("0 windows, 0 shown"), "{report}");
}
