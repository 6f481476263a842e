//! Texts that are nearly all different: those of a stream that is read once stop being codes in
//! its midst, and every answer is the one of a stream whose texts stay codes.

use std::fmt::Write;

use tersecades_sql::Session;

use crate::answer::{Rows, difference, run};

const ROWS: usize = 210_000;
/// Rows whose texts occur once; those behind them repeat the texts of before.
const DISTINCT_ROWS: usize = 180_000;

const QUERIES: &[&str] = &[
    "SELECT count(*), count(note), count(DISTINCT note), min(note), max(note) FROM f",
    "SELECT k, count(*), max(length(note)), min(note), max(note) FROM f GROUP BY k ORDER BY k",
    "SELECT k, count(DISTINCT note), first(note), last(note) FROM f GROUP BY k ORDER BY k",
    "SELECT k, arg_max(note, v), arg_min(note, v) FROM f GROUP BY k ORDER BY k",
    "SELECT n, count(*), min(note), max(note) FROM \
     (SELECT note, count(*) n FROM f GROUP BY note) GROUP BY n ORDER BY n",
    "SELECT note, k, count(*), sum(v) s FROM f GROUP BY note, k ORDER BY s DESC, note, k LIMIT 20",
    "SELECT window_start, note, count(*) n FROM f GROUP BY tumble(t, INTERVAL '40 seconds'), note \
     HAVING count(*) > 1 ORDER BY window_start, note LIMIT 50",
    "SELECT window_start, count(DISTINCT note), max(note) FROM f \
     GROUP BY hop(t, INTERVAL '10 seconds', INTERVAL '30 seconds') ORDER BY window_start",
    "SELECT count(*), sum(v) FROM f WHERE note = 'note 5'",
    "SELECT count(*), sum(v) FROM f WHERE note > 'note 17' AND note <= 'note 4'",
    "SELECT count(*), sum(v) FROM f WHERE note LIKE '%99%' OR note IN ('', 'note 7', 'none')",
    "SELECT count(*), sum(v) FROM f WHERE note IS NULL",
    "SELECT count(*), sum(v) FROM f WHERE note <> 'note 5'",
    "SELECT upper(note) || '!' AS u, v FROM f WHERE v = 7 ORDER BY u, v LIMIT 40",
    "SELECT note, v FROM f ORDER BY note DESC, v LIMIT 30",
    "SELECT note, v FROM f ORDER BY v, note LIMIT 30 OFFSET 1000",
    "SELECT CASE WHEN k = 1 THEN note ELSE 'other' END AS c, count(*) n FROM f GROUP BY 1 \
     ORDER BY n DESC, c LIMIT 5",
    "SELECT count(*), sum(b.v) FROM f a JOIN (SELECT note, v FROM f WHERE v < 20) b \
     ON a.note = b.note",
    "SELECT count(*), max(before) FROM \
     (SELECT lag(note) OVER (PARTITION BY k ORDER BY t) before FROM f) WHERE before > 'note 8'",
    "SELECT count(*), sum(length(note)) FROM (SELECT DISTINCT note FROM f)",
    "SELECT count(*) FROM (SELECT note FROM f WHERE k = 1 UNION SELECT note FROM f WHERE k < 3)",
];

fn text(row: usize) -> String {
    let origin = match row.checked_sub(DISTINCT_ROWS) {
        Some(again) => again * 5 % DISTINCT_ROWS,
        None => row,
    };
    match origin {
        _ if origin.is_multiple_of(7_001) => String::new(),
        _ if origin.is_multiple_of(5_003) => "\"\"".to_owned(),
        _ => format!("note {origin}"),
    }
}

fn csv() -> String {
    let mut csv = "t,k,note,v\n".to_owned();
    for row in 0..ROWS {
        let (second, milli) = (row / 1_000 % 60, row % 1_000);
        let minute = row / 60_000;
        let (k, v, note) = (row * 31 % 5, row * 7_919 % 1_009, text(row));
        writeln!(
            csv,
            "2024-01-01T00:{minute:02}:{second:02}.{milli:03},{k},{note},{v}"
        )
        .unwrap();
    }
    csv
}

fn answers(file: &str, threads: usize, reads: usize) -> Vec<Rows> {
    let mut session = Session::default();
    let stream = format!(
        "SET threads = {threads}; SET reads = {reads}; \
         CREATE STREAM f (t TIMESTAMP(3), k BIGINT, note VARCHAR, v BIGINT, WATERMARK FOR t) \
         FROM '{file}'"
    );
    run(&mut session, &stream).unwrap();
    let answer = |query: &&str| run(&mut session, query).unwrap_or_else(|e| panic!("{query}: {e}"));
    QUERIES.iter().map(answer).collect()
}

#[test]
fn texts_that_stop_being_codes_give_the_answers_of_codes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f.csv");
    std::fs::write(&path, csv()).unwrap();
    let file = path.to_str().unwrap();
    let codes = answers(file, 1, 32);
    for threads in [1, 3] {
        let texts = answers(file, threads, 1);
        for ((query, texts), codes) in QUERIES.iter().zip(&texts).zip(&codes) {
            let differs = difference(texts, codes, query.contains("ORDER BY"));
            assert_eq!(differs, None, "{threads} threads: {query}");
        }
    }
    let total: usize = (0..ROWS).map(|row| row * 7_919 % 1_009).sum();
    let of_five: usize = (0..ROWS)
        .filter(|row| text(*row) == "note 5")
        .map(|row| row * 7_919 % 1_009)
        .sum();
    let of_five_rows = (0..ROWS).filter(|row| text(*row) == "note 5").count();
    assert_eq!(codes[8], [[of_five_rows.to_string(), of_five.to_string()]]);
    let others = &codes[12][0][1].parse::<usize>().unwrap();
    let of_nulls = codes[11][0][1].parse::<usize>().unwrap();
    assert_eq!(others + of_five + of_nulls, total);
}
