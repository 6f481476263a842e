//! What `bench/rivals` measures: other engines beside ours.

use super::{Figure, Kind};

const CLASSICS: &str = "Yahoo's benchmark and Nexmark q0 to q8 as SQL over generated streams in \
    Parquet, from the file to the last row, answers compared over fewer rows; rows of the whole \
    stream a second. Ours is one process a query, its start included; Flink runs in streaming \
    mode in a warm process, into a sink that drops rows, the start of each job included. DuckDB \
    answers over the file as one that has ended. Flink has no q6.";
const PEERS: &str = "The five queries of `bench/rivals` on the reference stream, from each \
    engine's own form in memory to its result, answers compared; medians of interleaved \
    rounds. Peers answer a bounded query with all rows present, without event time, late rows \
    or results on the way. Vortex has filters alone; NumPy is written by hand, a floor and no \
    engine, on one thread; so is Vortex in the record of commit 10b2835. DataFusion's q3 is not \
    exact and left out. Shares of reading count the columns of \
    a query in the bytes that they arrive in, 8 to 24 a row; encoded ones are read in fewer.";
const PARQUET: &str = "Each run reads the file, from the page cache, and ends with the answer.";
const MEMORY: &str = "The largest resident size of each engine's process, loading included. In \
    records of commits 10b2835, 1686d5d and 40d5ff1 ours is the 512 MiB that the program read to \
    measure bandwidth; the engine took less.";
const FLINK: &str = "Flink SQL 2.3 over the Parquet file of 5 M rows, in batch mode and, where a \
    query's windows close once, in streaming mode; it writes its answer to a CSV file. The start \
    of a job, seconds long, is part of its time.";
const BYTEWAX: &str = "Bytewax 0.21 over the Parquet file of 1 M rows: filters run on batches of \
    Arrow, every row behind them is a Python object.";
const SCANS: &str = "Single columns compared, filtered and summed as both engines keep them, \
    answers compared. Vortex works on its compressed arrays in memory.";

/// What runs each suite.
const ONE: &str = "make bench-headline";
const TWO: &str = "make bench-headline ARGS='--threads 2'";
const PARQUET_ONE: &str = "make bench-headline ARGS='--suite parquet'";
const PARQUET_TWO: &str = "make bench-headline ARGS='--suite parquet --threads 2'";
const ENGINES: &str = "make bench-stream-engines";
const ENGINES_TWO: &str = "make bench-stream-engines ARGS='--threads 2'";
const COLUMNS: &str = "make bench-scans";
const STREAMS: &str = "make bench-streams";
const STREAMS_TWO: &str = "make bench-streams ARGS='--threads 2'";

type Text = &'static str;

/// Rates by query.
const fn rates(name: Text, title: Text, about: Text, command: Text) -> Figure {
    Figure {
        name,
        title,
        x: "query",
        kind: Kind::Table,
        about,
        command,
    }
}

/// The memory of the processes of a suite.
const fn memory(name: Text, title: Text, command: Text) -> Figure {
    Figure {
        name,
        title,
        x: "",
        kind: Kind::Table,
        about: MEMORY,
        command,
    }
}

/// In the order of the page.
pub(super) const FIGURES: &[Figure] = &[
    rates(
        "peers_queries",
        "Peers: 10 M rows in memory, one thread",
        PEERS,
        ONE,
    ),
    memory(
        "peers_queries_memory",
        "Peers: 10 M rows in memory, one thread: memory",
        ONE,
    ),
    rates(
        "peers_queries_2",
        "Peers: 10 M rows in memory, two threads",
        PEERS,
        TWO,
    ),
    memory(
        "peers_queries_2_memory",
        "Peers: 10 M rows in memory, two threads: memory",
        TWO,
    ),
    rates(
        "peers_parquet",
        "Peers: 10 M rows from a Parquet file, one thread",
        PARQUET,
        PARQUET_ONE,
    ),
    memory(
        "peers_parquet_memory",
        "Peers: 10 M rows from a Parquet file, one thread: memory",
        PARQUET_ONE,
    ),
    rates(
        "peers_parquet_2",
        "Peers: 10 M rows from a Parquet file, two threads",
        PARQUET,
        PARQUET_TWO,
    ),
    memory(
        "peers_parquet_2_memory",
        "Peers: 10 M rows from a Parquet file, two threads: memory",
        PARQUET_TWO,
    ),
    rates(
        "peers_scans",
        "Vortex: scans of single columns, one thread",
        SCANS,
        COLUMNS,
    ),
    memory(
        "peers_scans_memory",
        "Vortex: scans of single columns, one thread: memory",
        COLUMNS,
    ),
    rates(
        "peers_flink",
        "Flink: 5 M rows from a Parquet file, one thread",
        FLINK,
        ENGINES,
    ),
    memory(
        "peers_flink_memory",
        "Flink: 5 M rows from a Parquet file, one thread: memory",
        ENGINES,
    ),
    rates(
        "peers_flink_2",
        "Flink: 5 M rows from a Parquet file, two threads",
        FLINK,
        ENGINES_TWO,
    ),
    memory(
        "peers_flink_2_memory",
        "Flink: 5 M rows from a Parquet file, two threads: memory",
        ENGINES_TWO,
    ),
    rates(
        "peers_bytewax",
        "Bytewax: 1 M rows from a Parquet file, one thread",
        BYTEWAX,
        ENGINES,
    ),
    memory(
        "peers_bytewax_memory",
        "Bytewax: 1 M rows from a Parquet file, one thread: memory",
        ENGINES,
    ),
    rates(
        "peers_bytewax_2",
        "Bytewax: 1 M rows from a Parquet file, two threads",
        BYTEWAX,
        ENGINES_TWO,
    ),
    memory(
        "peers_bytewax_2_memory",
        "Bytewax: 1 M rows from a Parquet file, two threads: memory",
        ENGINES_TWO,
    ),
    rates(
        "streams",
        "Yahoo's streaming benchmark and Nexmark, one thread",
        CLASSICS,
        STREAMS,
    ),
    rates(
        "streams_2",
        "Yahoo's streaming benchmark and Nexmark, two threads",
        CLASSICS,
        STREAMS_TWO,
    ),
];
