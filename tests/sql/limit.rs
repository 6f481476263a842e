//! Limits of sorted rows: they let the same rows through as the sort gives first, and no more rows
//! than those are sorted.

use tersecades_sql::Session;

use crate::answer::{Rows, run};

/// Rows of which many have one key, and windows of several groups.
const TABLES: &str = "CREATE TABLE t AS SELECT a, a * 31 % 7 AS k, 'text ' || (a % 50) AS s, ts \
     FROM (SELECT epoch(ts)::BIGINT % 1000 AS a, ts FROM generate_series( \
     TIMESTAMP '2024-01-01', TIMESTAMP '2024-01-01 00:16:39', INTERVAL '1 second') AS g(ts)); \
     CREATE STREAM w AS SELECT * FROM t WATERMARK FOR ts AS ts";

/// Queries whose rows come out of a sort, whether or not they show its keys.
const SORTED: [&str; 12] = [
    "SELECT k, s FROM t ORDER BY k",
    "SELECT s FROM t ORDER BY k",
    "SELECT s, k + 1 AS a FROM t ORDER BY k DESC, ts DESC",
    "SELECT upper(s) FROM t WHERE a > 5 ORDER BY CASE WHEN k > 1 THEN k END NULLS FIRST",
    "SELECT x.s || '!' AS u FROM (SELECT s, k FROM t) AS x ORDER BY x.k",
    "SELECT s FROM (SELECT DISTINCT s, k FROM t) AS x ORDER BY k",
    "SELECT count(*) FROM t GROUP BY k ORDER BY k",
    "SELECT s FROM t GROUP BY s ORDER BY max(k), min(a)",
    "SELECT row_number() OVER (ORDER BY a) FROM t ORDER BY k",
    "SELECT (SELECT max(a) FROM t) - a, random() < 2 FROM t ORDER BY k",
    "SELECT n FROM (SELECT window_start, count(*) AS n FROM w \
     GROUP BY tumble(ts, INTERVAL '1 minute')) AS x ORDER BY window_start",
    "SELECT window_start, k, count(*) FROM w GROUP BY tumble(ts, INTERVAL '1 minute'), k \
     ORDER BY window_start, count(*) DESC, k",
];

fn session() -> Session {
    let mut session = Session::default();
    run(&mut session, TABLES).unwrap();
    session
}

fn ask(session: &mut Session, text: &str) -> Rows {
    run(session, text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// The operators that run a query.
fn operators(session: &mut Session, query: &str) -> Vec<String> {
    let lines = ask(session, &format!("EXPLAIN {query}"));
    let lines = lines.into_iter().map(|mut line| line.remove(0));
    lines.skip_while(|line| line != "operators").collect()
}

#[test]
fn a_limit_gives_the_first_rows_of_the_order() {
    let mut session = session();
    for query in SORTED {
        let all = ask(&mut session, query);
        for (count, skip) in [(3, 0), (40, 7), (0, 0), (5, 2000), (2000, 1)] {
            let limited = format!("{query} LIMIT {count} OFFSET {skip}");
            let wanted = all.iter().skip(skip).take(count).cloned();
            let wanted: Rows = wanted.collect();
            assert_eq!(ask(&mut session, &limited), wanted, "{limited}");
        }
        let skipped = ask(&mut session, &format!("{query} OFFSET 2"));
        assert_eq!(skipped, all[2..], "{query}");
    }
}

#[test]
fn rows_behind_the_limit_are_not_sorted() {
    let mut session = session();
    let mut has = |query: &str, name: &str| {
        let operators = operators(&mut session, &format!("{query} LIMIT 3"));
        operators.iter().any(|line| line.contains(name))
    };
    for query in SORTED {
        assert!(has(query, "top_k 3 ") && !has(query, "sort "), "{query}");
    }
}
