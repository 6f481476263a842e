//! The figures: how each is drawn, and what the paper it is from shows there.

use tersecades_plot::Axis;

/// How a figure is drawn.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    /// Bars over named places.
    Bars,
    /// Lines over numbers; logarithmic or not, first across, then upward.
    Lines([bool; 2]),
    /// A table alone.
    Table,
}

/// A figure of the history.
#[derive(Debug)]
pub(super) struct Figure {
    /// Its name in the history and of its picture.
    pub(super) name: &'static str,
    /// Its heading.
    pub(super) title: &'static str,
    /// What its places are.
    pub(super) x: &'static str,
    pub(super) kind: Kind,
    /// What is measured, and what the paper has.
    pub(super) about: &'static str,
    /// What prints it.
    pub(super) command: &'static str,
}

/// The command of what `bench/rivals` measures.
pub(super) const HEADLINE: &str = "headline";
/// The bench that takes the reference stream.
const QUERIES: &str = "'queries --data target/rivals/data'";
/// The command of the streaming classics.
pub(super) const STREAMS: &str = "streams";
const CLASSICS: &str = "Yahoo's benchmark and Nexmark q0 to q8 as SQL over generated streams in \
    Parquet, from the file to the last row, answers compared over fewer rows; rows of the whole \
    stream a second. Ours is one process a query, its start included; Flink runs in streaming \
    mode in a warm process, into a sink that drops rows, the start of each job included. DuckDB \
    answers over the file as one that has ended. Flink has no q6.";
const PEERS: &str = "The five queries of `bench/rivals` on the reference stream, from each \
    engine's own form in memory to its result, answers compared; medians of interleaved \
    rounds. Peers answer a bounded query with all rows present, without event time, late rows \
    or results on the way. Vortex has filters alone; NumPy is written by hand, a floor and no \
    engine. DataFusion's q3 is not exact and left out. Shares of reading count the columns of \
    a query in the bytes that they arrive in, 8 to 24 a row; encoded ones are read in fewer.";
const PARQUET: &str = "Each run reads the file, from the page cache, and ends with the answer.";
const MEMORY: &str = "The largest resident size of each engine's process, loading included.";
const FLINK: &str = "Flink SQL 2.3 over the Parquet file of 5 M rows, in batch mode and, where a \
    query's windows close once, in streaming mode; it writes its answer to a CSV file. The start \
    of a job, seconds long, is part of its time.";
const BYTEWAX: &str = "Bytewax 0.21 over the Parquet file of 1 M rows: filters run on batches of \
    Arrow, every row behind them is a Python object.";

/// Every figure, in the order of the page.
pub(super) const FIGURES: &[Figure] = &[
    Figure {
        name: "limit",
        title: "The limits of the machine",
        x: "place",
        kind: Kind::Bars,
        about: "Bytes read and written each second by plain loops over 64-bit words, the arrays of \
            a loop together half of a cache, or a gibibyte; sums go past the caches into memory \
            alone. Shares below are of reading memory, the fastest of four loops (in four or eight \
            places at once, counting bits, summing). `count` counts bits.",
        command: "limits",
    },
    Figure {
        name: "add",
        title: "Add: TC figures 2 and 6",
        x: "threads",
        kind: Kind::Bars,
        about: "`c = a + b` from memory to memory: plain words (Long), plain bytes (Char), \
            base-delta decoded, added and encoded again (CharCompr), added as it lies (direct). \
            The paper: Char 7 times Long, CharCompr up to 6.1 times, with SIMD close to Char.",
        command: "add",
    },
    Figure {
        name: "search",
        title: "Search: TC figure 7",
        x: "threads",
        kind: Kind::Bars,
        about: "Equality with a constant: plain words (Long), plain bytes (Char), base-delta \
            decoded and then compared (CharCompr), compared as it lies with nothing to skip, with \
            blocks to skip, and sorted, with chunks to skip. The paper: up to 4.1 times Char.",
        command: "search",
    },
    Figure {
        name: "designs",
        title: "Designs over the retained window: TC figure 8",
        x: "design",
        kind: Kind::Bars,
        about: "C2cProbeCount (60 s by 10 s) over all rows as each design keeps them, one \
            thread. NonOptimized: rows one after another, values decoded first, memory for \
            each batch anew, the standard hash map. NoCompression: plain Arrow. Lossless and \
            Lossy: the codecs of the Optimized design, decoded first. Lossy keeps what the \
            query can observe. FrameRef and LZ77 (`lz4`) are those of table 3, decoded first. \
            The paper (with arrival): NoCompression 32.3 M records/s, LossyOptimized 49.1 M.",
        command: "designs",
    },
    Figure {
        name: "designs_arriving",
        title: "Designs, rows arriving and the window kept: TC figure 8, table 3",
        x: "design",
        kind: Kind::Bars,
        about: "The same from Arrow batches in memory, encoded on arrival, the last minute kept. \
            Plain Arrow is kept by reference, which the paper's engine copies.",
        command: "designs",
    },
    Figure {
        name: "operators",
        title: "Time in filter and group: TC figure 9, table 3",
        x: "design",
        kind: Kind::Bars,
        about: "Over the retained window, rows of the first figure. The paper, NoCompression to \
            LossyOptimized: Where 625 to 141 ms, GroupApply 828 to 453 ms.",
        command: "designs",
    },
    Figure {
        name: "design_ratio",
        title: "Compression ratio of each design: TC section 5.1",
        x: "design",
        kind: Kind::Table,
        about: "24 bytes of the five columns of the paper's Table 1 over bytes kept. The paper: \
            lossless 3.1, lossy 5.3, frame of reference 4.1, LZ77 5.1.",
        command: "designs",
    },
    Figure {
        name: "table2",
        title: "T2tProbeCount with two joins: TC table 2",
        x: "rows",
        kind: Kind::Table,
        about: "Arriving with the last minute kept, and over the retained window. The paper: \
            NoCompression 27.7 M records/s, LossyOptimized 38.3 M.",
        command: "designs",
    },
    Figure {
        name: "window",
        title: "Length of the window: TC figure 10a",
        x: "seconds",
        kind: Kind::Lines([true, false]),
        about: "C2cProbeCount, rows arriving and one window kept, sliding by a sixth of its \
            length (at least 1 s).",
        command: "designs",
    },
    Figure {
        name: "batch",
        title: "Length of batches: TC figure 10b",
        x: "rows of a batch",
        kind: Kind::Lines([true, false]),
        about: "The same with windows of a minute.",
        command: "designs",
    },
    Figure {
        name: "narrow_where",
        title: "What an eighth of the data buys a peer: TC figure 1",
        x: "values",
        kind: Kind::Bars,
        about: "Rows equal to a constant, counted on one thread over 64 M values \
            (`bench/rivals/narrow_where.py`). The paper: Trill gains 13 to 15 %.",
        command: HEADLINE,
    },
    Figure {
        name: "peers_queries",
        title: "Peers: 10 M rows in memory, one thread",
        x: "query",
        kind: Kind::Table,
        about: PEERS,
        command: HEADLINE,
    },
    Figure {
        name: "peers_queries_memory",
        title: "Peers: 10 M rows in memory, one thread: memory",
        x: "",
        kind: Kind::Table,
        about: MEMORY,
        command: HEADLINE,
    },
    Figure {
        name: "peers_queries_2",
        title: "Peers: 10 M rows in memory, two threads",
        x: "query",
        kind: Kind::Table,
        about: PEERS,
        command: HEADLINE,
    },
    Figure {
        name: "peers_queries_2_memory",
        title: "Peers: 10 M rows in memory, two threads: memory",
        x: "",
        kind: Kind::Table,
        about: MEMORY,
        command: HEADLINE,
    },
    Figure {
        name: "peers_parquet",
        title: "Peers: 10 M rows from a Parquet file, one thread",
        x: "query",
        kind: Kind::Table,
        about: PARQUET,
        command: HEADLINE,
    },
    Figure {
        name: "peers_parquet_memory",
        title: "Peers: 10 M rows from a Parquet file, one thread: memory",
        x: "",
        kind: Kind::Table,
        about: MEMORY,
        command: HEADLINE,
    },
    Figure {
        name: "peers_flink",
        title: "Flink: 5 M rows from a Parquet file, one thread",
        x: "query",
        kind: Kind::Table,
        about: FLINK,
        command: HEADLINE,
    },
    Figure {
        name: "peers_flink_memory",
        title: "Flink: 5 M rows from a Parquet file, one thread: memory",
        x: "",
        kind: Kind::Table,
        about: MEMORY,
        command: HEADLINE,
    },
    Figure {
        name: "peers_flink_2",
        title: "Flink: 5 M rows from a Parquet file, two threads",
        x: "query",
        kind: Kind::Table,
        about: FLINK,
        command: HEADLINE,
    },
    Figure {
        name: "peers_flink_2_memory",
        title: "Flink: 5 M rows from a Parquet file, two threads: memory",
        x: "",
        kind: Kind::Table,
        about: MEMORY,
        command: HEADLINE,
    },
    Figure {
        name: "peers_bytewax",
        title: "Bytewax: 1 M rows from a Parquet file, one thread",
        x: "query",
        kind: Kind::Table,
        about: BYTEWAX,
        command: HEADLINE,
    },
    Figure {
        name: "peers_bytewax_memory",
        title: "Bytewax: 1 M rows from a Parquet file, one thread: memory",
        x: "",
        kind: Kind::Table,
        about: MEMORY,
        command: HEADLINE,
    },
    Figure {
        name: "peers_bytewax_2",
        title: "Bytewax: 1 M rows from a Parquet file, two threads",
        x: "query",
        kind: Kind::Table,
        about: BYTEWAX,
        command: HEADLINE,
    },
    Figure {
        name: "peers_bytewax_2_memory",
        title: "Bytewax: 1 M rows from a Parquet file, two threads: memory",
        x: "",
        kind: Kind::Table,
        about: MEMORY,
        command: HEADLINE,
    },
    Figure {
        name: "streams",
        title: "Yahoo's streaming benchmark and Nexmark, one thread",
        x: "query",
        kind: Kind::Table,
        about: CLASSICS,
        command: STREAMS,
    },
    Figure {
        name: "streams_2",
        title: "Yahoo's streaming benchmark and Nexmark, two threads",
        x: "query",
        kind: Kind::Table,
        about: CLASSICS,
        command: STREAMS,
    },
    Figure {
        name: "apart",
        title: "Queries by themselves, hot and cold",
        x: "query",
        kind: Kind::Table,
        about: "Again and again (hot), and behind a gibibyte of other memory (cold).",
        command: "'apart --data target/rivals/data --threads 2'",
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
        name: "lossy_ratio",
        title: "Compression of counters, positions and weather: TC figures 11 and 13, section 5.3",
        x: "column",
        kind: Kind::Table,
        about: "Arrow bytes over bytes kept, exact and at the bound of the scheme, beside \
            Parquet with zstd, pco (both exact) and the reference zfp library at the same \
            bound (`make bench-lossy`). The paper: counters up to 6, GPS 4.5 or more at 1e-6, \
            weather 3 to 4.",
        command: "lossy",
    },
    Figure {
        name: "zfp_speed",
        title: "ZFP beside the reference library",
        x: "column",
        kind: Kind::Table,
        about: "Plain bytes a second, one thread, chunks of 65,536 values at the bound of the \
            scheme; zfpy is the C library through its wheel (`make bench-lossy`).",
        command: "lossy",
    },
    Figure {
        name: "pays",
        title: "When does compression pay?",
        x: "reads",
        kind: Kind::Lines([true, true]),
        about: "A retained range that k queries read, encoding counted: time of k reads of plain \
            Arrow over encoding and k encoded reads. Above 1 encoding has paid. A read \
            compares each row and sums those that pass, caches flushed before it; keeping \
            plain Arrow costs its statistics. Medians of keeping and of one read make each \
            number.",
        command: "pays",
    },
    Figure {
        name: "pays_chosen",
        title: "When does compression pay, if the chooser knows the number of reads?",
        x: "reads",
        kind: Kind::Lines([true, true]),
        about: "The same with the codec that the cost model picks for k reads; 1 where it picks \
            plain.",
        command: "pays",
    },
    Figure {
        name: "pays_break_even",
        title: "Break-even by kind of data",
        x: "kind",
        kind: Kind::Table,
        about: "Reads after which encoding has paid; beside plain reads the share of their time \
            that reading memory takes at the bandwidth of the run.",
        command: "pays",
    },
    Figure {
        name: "selectivity",
        title: "Filter and sum by selectivity",
        x: "share of rows that pass",
        kind: Kind::Lines([false, false]),
        about: "One column compared, another summed where it passes, over a retained range, one \
            thread.",
        command: "selectivity",
    },
    Figure {
        name: "cardinality",
        title: "Group by cardinality",
        x: "different keys",
        kind: Kind::Lines([true, false]),
        about: "Count and sum by one integer column with uniformly distributed keys, results as \
            sorted Arrow batches, over a retained range of 10 M rows, one thread.",
        command: "cardinality",
    },
    Figure {
        name: "integers_ratio",
        title: "Compression of the integer sets: DaMoN figure 5",
        x: "set",
        kind: Kind::Table,
        about: "D1 to D4 of the paper (100 M 32-bit values unless `--rows` says less) under \
            every codec: plain bytes over bytes kept.",
        command: "execution",
    },
    Figure {
        name: "integers_encode",
        title: "Compression speed: DaMoN figure 6",
        x: "set",
        kind: Kind::Table,
        about: "One thread, a single run each, memory taken from the system included.",
        command: "execution",
    },
    Figure {
        name: "integers_decode",
        title: "Decompression speed: DaMoN figures 6 and 7",
        x: "set",
        kind: Kind::Table,
        about: "Into a small buffer, block by block. Shares are of encoded bytes.",
        command: "execution",
    },
    Figure {
        name: "integers_sum",
        title: "Aggregation on encoded data: DaMoN figure 10",
        x: "set",
        kind: Kind::Table,
        about: "Sums without decoding where the codec can; `plain` is the uncompressed side. \
            Shares are of encoded bytes.",
        command: "execution",
    },
    Figure {
        name: "integers_equal",
        title: "Equality on encoded data",
        x: "set",
        kind: Kind::Table,
        about: "A bitmap of the equal values, with a constant from the middle of each set.",
        command: "execution",
    },
    Figure {
        name: "integers_greater",
        title: "Greater-than on encoded data",
        x: "set",
        kind: Kind::Table,
        about: "The same for values above the constant.",
        command: "execution",
    },
    Figure {
        name: "kernels",
        title: "Instruction sets: DaMoN figure 9",
        x: "kernel",
        kind: Kind::Table,
        about: "The main kernels on one block in the first-level cache, for every instruction \
            set of this processor.",
        command: "kernels",
    },
    Figure {
        name: "packed_compare",
        title: "Comparing packed values by width: DaMoN figures 11 and 12",
        x: "bits",
        kind: Kind::Lines([false, false]),
        about: "Values above a constant (and, for BitWeaving, equal to it) of widths 1 to 32, \
            packed, in the second-level cache. BitWeaving/H is compiled for the baseline \
            instruction set, as the rest of the program.",
        command: "bitpack",
    },
    Figure {
        name: "packed_sum",
        title: "Summing packed values by width",
        x: "bits",
        kind: Kind::Lines([false, false]),
        about: "The same blocks summed as they lie.",
        command: "bitpack",
    },
    Figure {
        name: "packed_unpack",
        title: "Unpacking by width",
        x: "bits",
        kind: Kind::Lines([false, false]),
        about: "Beside the crate fastlanes unpacking its own layout, compiled for the baseline \
            instruction set.",
        command: "bitpack",
    },
    Figure {
        name: "waist",
        title: "Every codec under every primitive",
        x: "codec",
        kind: Kind::Table,
        about: "One chunk of 65,536 values in cache, one thread; `gather` fetches every \
            hundredth row, `codes` are those of texts. Where a run says so: whether the codec \
            decoded, and how many times as fast it was as decoding and then computing.",
        command: "waist",
    },
];

/// The horizontal and the vertical axis of a figure of numbers.
pub(super) fn axes(across: &str, upward: &str, log: [bool; 2]) -> [Axis; 2] {
    let axis = |label: &str, log: bool| match log {
        true => Axis::log(label),
        false => Axis::linear(label),
    };
    [axis(across, log[0]), axis(upward, log[1])]
}
