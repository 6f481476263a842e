//! Queries by themselves: over ranges in memory and over a stream as it flows.

use super::{Figure, Kind};

/// What runs the bench that takes the reference stream.
const QUERIES: &str = "make bench ARGS='queries --data target/rivals/data'";

/// In the order of the page.
pub(super) const FIGURES: &[Figure] = &[
    Figure {
        name: "apart",
        title: "Queries by themselves, hot and cold",
        x: "query",
        kind: Kind::Table,
        about: "Again and again (hot), and behind a gibibyte of other memory (cold). Shares count \
            the columns of a query in the bytes that they arrive in.",
        command: "make bench ARGS='apart --data target/rivals/data --threads 2'",
    },
    Figure {
        name: "disorder",
        title: "Disorder",
        x: "percent of rows that are late",
        kind: Kind::Lines([false, false]),
        about: "Time of three queries, and bytes kept, over those without further late rows, \
            which happened up to three seconds before they say.",
        command: QUERIES,
    },
    Figure {
        name: "continuous",
        title: "A stream as it flows",
        x: "queries",
        kind: Kind::Table,
        about: "Arrow batches in memory, encoded, the last minute kept, queries over them on one \
            thread, late rows handled, results taken: rows a second, and what results take after \
            the batch that let their windows close, 99 of a hundred (of fewer than 300 results \
            all).",
        command: "make bench ARGS='continuous --data target/rivals/data'",
    },
    Figure {
        name: "standing",
        title: "Queries over one stream",
        x: "queries",
        kind: Kind::Table,
        about: "Queries with windows of 10 to 70 s over the same groups, together, sharing panes, \
            and one after the other: time over that of one query.",
        command: "make bench ARGS='standing --data target/rivals/data'",
    },
    Figure {
        name: "overlap",
        title: "Overlap of windows",
        x: "windows that a row is in",
        kind: Kind::Table,
        about: "Windows of a minute, counted, summed and their worst, by cluster: time over that \
            of tumbling windows, and what each further result takes.",
        command: QUERIES,
    },
    Figure {
        name: "many_queries",
        title: "Queries over one range",
        x: "queries",
        kind: Kind::Lines([true, false]),
        about: "Different queries over one range, a batch at a time in turns: time and memory, \
            the range with it, over those of one query.",
        command: QUERIES,
    },
    Figure {
        name: "selectivity",
        title: "Filter and sum by selectivity",
        x: "share of rows that pass",
        kind: Kind::Lines([false, true]),
        about: "One column compared, another summed where it passes, over a retained range, one \
            thread. Shares count the bytes of both.",
        command: "make bench ARGS=selectivity",
    },
    Figure {
        name: "cardinality",
        title: "Group by cardinality",
        x: "different keys",
        kind: Kind::Lines([true, false]),
        about: "Count and sum by one integer column with uniformly distributed keys, results as \
            sorted Arrow batches, over a retained range of 10 M rows, one thread.",
        command: "make bench ARGS=cardinality",
    },
];
