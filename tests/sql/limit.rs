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
const SORTED: [&str; 16] = [
    "SELECT s FROM (SELECT s, k FROM t ORDER BY k) AS x",
    "SELECT * FROM (SELECT s, a FROM t ORDER BY k DESC, a) AS x",
    "WITH x AS (SELECT s AS u, a FROM t WHERE a > 9 ORDER BY k, u) SELECT x.a + 1, u FROM x",
    "SELECT y.n + 1 FROM (SELECT n FROM (SELECT k, count(*) AS n FROM t GROUP BY k) AS x \
     ORDER BY k DESC) AS y",
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

/// Queries in the order of a subquery, beside those that sort themselves.
const BY_SUBQUERY: [[&str; 2]; 7] = [
    [
        "FROM (SELECT a, k FROM t ORDER BY k, a DESC)",
        "SELECT a, k FROM t ORDER BY k, a DESC",
    ],
    [
        "SELECT a FROM (SELECT a FROM t ORDER BY a DESC) AS x WHERE a < 20",
        "SELECT a FROM t WHERE a < 20 ORDER BY a DESC",
    ],
    [
        "SELECT DISTINCT k FROM (SELECT k FROM t ORDER BY k DESC) AS x",
        "SELECT DISTINCT k FROM t ORDER BY k DESC",
    ],
    [
        "SELECT DISTINCT k FROM (SELECT k, a FROM t ORDER BY k DESC) AS x WHERE a > 100 AND k < 5",
        "SELECT DISTINCT k FROM t WHERE a > 100 AND k < 5 ORDER BY k DESC",
    ],
    [
        "SELECT a FROM (SELECT a FROM t ORDER BY a DESC LIMIT 5) AS x UNION ALL \
         SELECT a FROM (SELECT a FROM t ORDER BY a LIMIT 5) AS x",
        "VALUES (999), (998), (997), (996), (995), (0), (1), (2), (3), (4)",
    ],
    [
        "SELECT a FROM (SELECT a FROM (SELECT a, s FROM t ORDER BY s, a) AS x ORDER BY a) AS y",
        "SELECT a FROM t ORDER BY a",
    ],
    [
        "SELECT row_number() OVER () AS n, a FROM (SELECT a FROM t ORDER BY a DESC) AS x",
        "SELECT 1000 - a AS n, a FROM t ORDER BY n",
    ],
];

#[test]
fn rows_of_a_subquery_come_in_its_order() {
    let mut session = session();
    for [query, sorted] in BY_SUBQUERY {
        assert_eq!(
            ask(&mut session, query),
            ask(&mut session, sorted),
            "{query}"
        );
    }
}

#[test]
fn distinct_rows_are_groups_unless_they_are_limited_or_in_order() {
    let mut session = session();
    for (query, name) in [
        ("SELECT DISTINCT k, s FROM t", "aggregate "),
        (
            "SELECT DISTINCT k FROM t WHERE a > 3 ORDER BY k",
            "aggregate ",
        ),
        ("SELECT k FROM t UNION SELECT a FROM t", "aggregate "),
        (
            "SELECT DISTINCT t.k FROM t JOIN t AS u ON t.a = u.a",
            "aggregate ",
        ),
        ("SELECT DISTINCT k, s FROM t LIMIT 3", "distinct"),
        (
            "SELECT k + 1 AS j, s FROM (SELECT DISTINCT k, s FROM t) AS x WHERE k > 1 LIMIT 3",
            "distinct",
        ),
        (
            "SELECT count(*) FROM (SELECT DISTINCT k, s FROM t) AS x LIMIT 3",
            "aggregate global group by [k, s]",
        ),
        (
            "SELECT DISTINCT k FROM (SELECT k FROM t ORDER BY a) AS x",
            "distinct",
        ),
    ] {
        let operators = operators(&mut session, query);
        let has = |name: &str| operators.iter().any(|line| line.trim().starts_with(name));
        assert!(has(name), "{query}: {operators:?}");
        let rows = ask(&mut session, query);
        let mut different = rows.clone();
        different.sort();
        different.dedup();
        assert_eq!(rows.len(), different.len(), "{query}");
        assert!(!rows.is_empty(), "{query}");
    }
}

#[test]
fn subqueries_are_not_sorted_for_what_shows_no_order() {
    let mut session = session();
    for query in [
        "SELECT count(*) FROM (SELECT a FROM t ORDER BY a) AS x",
        "SELECT k, max(a) FROM (SELECT a, k FROM t ORDER BY a) AS x GROUP BY k",
        "SELECT count(*) FROM t JOIN (SELECT a FROM t ORDER BY a) AS x ON t.a = x.a",
        "SELECT count(*) FROM t WHERE a IN (SELECT a FROM (SELECT a FROM t ORDER BY a) AS x)",
        "SELECT window_start, count(*) FROM (SELECT ts FROM w ORDER BY ts) AS x \
         GROUP BY tumble(ts, INTERVAL '1 minute')",
    ] {
        let operators = operators(&mut session, query);
        assert!(
            !operators.iter().any(|line| line.contains("sort ")),
            "{operators:?}"
        );
        assert!(!ask(&mut session, query).is_empty(), "{query}");
    }
}
