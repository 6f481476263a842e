//! What the demo says at the end: windows, ground truth, speed, bytes, and where work was saved.

use tersecades::columnar::codec::Tally;
use tersecades::engine::source::generator::InjectedFault;

use super::ranking::Ranking;
use super::{Demo, Run, query};
use crate::encoding::ColumnEncoding;
use crate::figure::{self, clock, grouped, percent, ratio};
use crate::table::Table;

/// The whole report.
pub(super) fn text(demo: &Demo, all_windows: bool) -> String {
    let sections = [
        windows(
            "C2cProbeCount by pair of clusters",
            &demo.clusters,
            demo,
            all_windows,
        ),
        windows(
            "T2tProbeCount by pair of racks",
            &demo.racks,
            demo,
            all_windows,
        ),
        truth(demo),
        speed(demo),
        columns(demo),
        work(
            "C2cProbeCount over the retained rows",
            &demo.clusters_retained,
        ),
        work("T2tProbeCount over the retained rows", &demo.racks_retained),
        peak_memory(),
    ];
    let sections: Vec<String> = sections
        .into_iter()
        .filter(|text| !text.is_empty())
        .collect();
    sections.join("\n")
}

fn windows(title: &str, run: &Run, demo: &Demo, all: bool) -> String {
    let shown: Vec<&Ranking> = match all {
        true => run.rankings.iter().collect(),
        false => few(&run.rankings, demo.fault.as_ref()),
    };
    let mut table = Table::new(&[
        "window",
        ">probes",
        ">pairs",
        "source",
        "target",
        ">probes of pair",
    ]);
    for ranking in &shown {
        let mut head = [
            format!("{} to {}", clock(ranking.start_ms), clock(ranking.end_ms)),
            grouped(ranking.probes.unsigned_abs()),
            grouped(ranking.pairs as u64),
        ];
        for pair in &ranking.top {
            let [window, probes, pairs] = std::mem::take(&mut head);
            let count = grouped(pair.probes.unsigned_abs());
            table.push([
                window,
                probes,
                pairs,
                pair.source.clone(),
                pair.target.clone(),
                count,
            ]);
        }
    }
    let counts = format!("{} windows, {} shown", run.rankings.len(), shown.len());
    format!(
        "{title}: {}\n{counts}\n\n{}",
        query::MEANING,
        table.to_text("  ")
    )
}

/// The last window before the fault, the one that has most of it, and the first after it; without
/// a fault the first, the middle and the last.
fn few<'a>(rankings: &'a [Ranking], fault: Option<&InjectedFault>) -> Vec<&'a Ranking> {
    let Some(fault) = fault else {
        let mut places = vec![0, rankings.len() / 2, rankings.len().saturating_sub(1)];
        places.dedup();
        return places
            .into_iter()
            .filter_map(|place| rankings.get(place))
            .collect();
    };
    let before = rankings.iter().rfind(|it| it.end_ms <= fault.from_ms);
    let during = rankings.iter().rev().max_by_key(|it| overlap_ms(it, fault));
    let after = rankings.iter().find(|it| it.start_ms >= fault.to_ms);
    [before, during, after].into_iter().flatten().collect()
}

fn overlap_ms(ranking: &Ranking, fault: &InjectedFault) -> i64 {
    ranking.end_ms.min(fault.to_ms) - ranking.start_ms.max(fault.from_ms)
}

fn truth(demo: &Demo) -> String {
    let Some(fault) = &demo.fault else {
        return String::new();
    };
    let rack = fault.tor_id.to_string();
    let met = demo
        .racks
        .rankings
        .iter()
        .filter(|ranking| overlap_ms(ranking, fault) > 0);
    let (mut windows, mut found) = (0u64, 0u64);
    for ranking in met {
        let first = ranking.top.first();
        windows += 1;
        found += u64::from(first.is_some_and(|it| it.source == rack || it.target == rack));
    }
    let mut text = format!(
        "Ground truth: the switch of rack {rack}, in cluster {}, was bad from {} to {}.\n",
        fault.cluster,
        clock(fault.from_ms),
        clock(fault.to_ms),
    );
    if found > 0 {
        text.push_str(&format!(
            "In {found} of the {windows} windows that meet that time, the first pair of \
             T2tProbeCount is from or to that rack.\n"
        ));
    }
    text
}

fn speed(demo: &Demo) -> String {
    let mut table = Table::new(&["run", ">rows", ">seconds", "speed"]);
    let runs = [
        (
            "C2cProbeCount: generate, encode, keep, query",
            &demo.clusters,
        ),
        ("T2tProbeCount: generate, encode, keep, query", &demo.racks),
        (
            "C2cProbeCount: query the retained, encoded rows",
            &demo.clusters_retained,
        ),
        (
            "T2tProbeCount: query the retained, encoded rows",
            &demo.racks_retained,
        ),
    ];
    for (name, run) in runs {
        table.push([
            name.to_owned(),
            grouped(run.metrics.rows),
            format!("{:.2}", run.elapsed.as_secs_f64()),
            figure::rate(run.metrics.rows, run.elapsed),
        ]);
    }
    let streamed = [&demo.clusters.metrics, &demo.racks.metrics];
    let encode_ns: u64 = streamed.iter().map(|metrics| metrics.encode_ns).sum();
    let late_rows: u64 = streamed.iter().map(|metrics| metrics.late_rows).sum();
    let threads = if demo.threads == 1 {
        "thread"
    } else {
        "threads"
    };
    format!(
        "Speed, {} worker {threads}\n\n{}\n  of the first two, encoding took {:.2} s; \
         late rows: {}\n",
        demo.threads,
        table.to_text("  "),
        encode_ns as f64 / 1e9,
        grouped(late_rows),
    )
}

fn columns(demo: &Demo) -> String {
    let fields = demo.retained.schema().fields();
    let mut columns = Vec::new();
    columns.resize_with(fields.len(), ColumnEncoding::default);
    for batch in demo.retained.batches() {
        for (column, chunk) in columns.iter_mut().zip(batch.columns()) {
            column.add(chunk);
        }
    }
    let rows = demo.retained.rows() as u64;
    let each = |bytes: u64| format!("{:.2}", ratio(bytes, rows));
    let mut table = Table::new(&[
        "column",
        ">raw B",
        ">encoded B",
        ">ratio",
        "codec",
        "why: bytes and scan time per row",
    ]);
    let (mut raw, mut encoded) = (0, 0);
    for (field, column) in fields.iter().zip(&columns) {
        raw += column.raw_bytes();
        encoded += column.encoded_bytes();
        table.push([
            field.name().clone(),
            each(column.raw_bytes()),
            each(column.encoded_bytes()),
            format!("{:.1}", ratio(column.raw_bytes(), column.encoded_bytes())),
            column.codec_text(),
            column.why(),
        ]);
    }
    let all = format!("{:.1}", ratio(raw, encoded));
    table.push([
        "all".to_owned(),
        each(raw),
        each(encoded),
        all,
        String::new(),
        String::new(),
    ]);
    format!(
        "Bytes per record, {} retained rows in {}\n\n{}",
        grouped(rows),
        figure::mebibytes(encoded),
        table.to_text("  ")
    )
}

fn work(title: &str, run: &Run) -> String {
    let Tally {
        skipped,
        direct,
        decoded,
        gathered,
    } = run.metrics.tally;
    let all = skipped + direct + decoded + gathered;
    let operators: Vec<String> = run
        .operators
        .iter()
        .map(|line| format!("  {line}\n"))
        .collect();
    format!(
        "{title}\n{}  values: {} answered without a look, {} computed on encoded, {} decoded \
         ({}), {} fetched\n",
        operators.concat(),
        percent(skipped, all),
        percent(direct, all),
        grouped(decoded),
        percent(decoded, all),
        percent(gathered, all),
    )
}

/// Most memory the process has held, where the system says so.
fn peak_memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kibibytes: Option<u64> =
        line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse().ok());
    match kibibytes {
        Some(kibibytes) => format!("Peak memory: {}\n", figure::mebibytes(kibibytes * 1024)),
        None => String::new(),
    }
}
