//! The limits of the machine, and the figures of the TerseCades paper.

use super::{Figure, Kind};

/// In the order of the page.
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
        command: "make bench ARGS=limits",
    },
    Figure {
        name: "single_lines",
        title: "Single lines of memory",
        x: "one line in",
        kind: Kind::Lines([true, true]),
        about: "Cache lines read each second where others between them are passed over, at \
            distances that no processor foresees, over a gibibyte: read in order, \
            and asked for 512 at a time into the second-level cache before they are read, as \
            columns are read at the few rows that pass a filter.",
        command: "make bench ARGS=lines",
    },
    Figure {
        name: "add",
        title: "Add: TC figures 2 and 6",
        x: "threads",
        kind: Kind::Bars,
        about: "`c = a + b` from memory to memory: plain words (Long), plain bytes (Char), \
            base-delta decoded, added and encoded again (CharCompr), added as it lies (direct). \
            The paper: Char 7 times Long, CharCompr up to 6.1 times, with SIMD close to Char.",
        command: "make bench ARGS=add",
    },
    Figure {
        name: "search",
        title: "Search: TC figure 7",
        x: "threads",
        kind: Kind::Bars,
        about: "Equality with a constant: plain words (Long), plain bytes (Char), base-delta \
            decoded and then compared (CharCompr), compared as it lies with nothing to skip, with \
            blocks to skip, and sorted, with chunks to skip. The paper: up to 4.1 times Char.",
        command: "make bench ARGS=search",
    },
    Figure {
        name: "sum",
        title: "Sum",
        x: "threads",
        kind: Kind::Bars,
        about: "Event times from memory: plain words, base-delta summed as it lies, and with rows \
            that are late.",
        command: "make bench ARGS=sum",
    },
    Figure {
        name: "encode",
        title: "Encoding",
        x: "event times",
        kind: Kind::Bars,
        about: "64-bit event times from memory as base-delta, bytes read and written, one thread: \
            into one chunk again and again, and into chunks that stay.",
        command: "make bench ARGS=encode",
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
        command: "make bench ARGS=designs",
    },
    Figure {
        name: "designs_arriving",
        title: "Designs, rows arriving and the window kept: TC figure 8, table 3",
        x: "design",
        kind: Kind::Bars,
        about: "The same from Arrow batches in memory, encoded on arrival, the last minute kept. \
            Plain Arrow is kept by reference, which the paper's engine copies.",
        command: "make bench ARGS=designs",
    },
    Figure {
        name: "operators",
        title: "Time in filter and group: TC figure 9, table 3",
        x: "design",
        kind: Kind::Bars,
        about: "Over the retained window, rows of the first figure. The paper, NoCompression to \
            LossyOptimized: Where 625 to 141 ms, GroupApply 828 to 453 ms.",
        command: "make bench ARGS=designs",
    },
    Figure {
        name: "design_ratio",
        title: "Compression ratio of each design: TC section 5.1",
        x: "design",
        kind: Kind::Table,
        about: "24 bytes of the five columns of the paper's Table 1 over bytes kept. The paper: \
            lossless 3.1, lossy 5.3, frame of reference 4.1, LZ77 5.1.",
        command: "make bench ARGS=designs",
    },
    Figure {
        name: "table2",
        title: "T2tProbeCount with two joins: TC table 2",
        x: "rows",
        kind: Kind::Table,
        about: "Arriving with the last minute kept, and over the retained window. The paper: \
            NoCompression 27.7 M records/s, LossyOptimized 38.3 M.",
        command: "make bench ARGS=designs",
    },
    Figure {
        name: "table2_operators",
        title: "Time in the joins of T2tProbeCount: TC table 2",
        x: "design",
        kind: Kind::Table,
        about: "Over the retained window: both joins together, the filter before them and the \
            grouping behind. The paper, joins alone: NoCompression 2031 ms, LossyOptimized \
            1813 ms.",
        command: "make bench ARGS=designs",
    },
    Figure {
        name: "window",
        title: "Length of the window: TC figure 10a",
        x: "seconds",
        kind: Kind::Lines([true, false]),
        about: "C2cProbeCount, rows arriving and one window kept, sliding by a sixth of its \
            length (at least 1 s).",
        command: "make bench ARGS=designs",
    },
    Figure {
        name: "batch",
        title: "Length of batches: TC figure 10b",
        x: "rows of a batch",
        kind: Kind::Lines([true, false]),
        about: "The same with windows of a minute.",
        command: "make bench ARGS=designs",
    },
    Figure {
        name: "narrow_where",
        title: "What an eighth of the data buys a peer: TC figure 1",
        x: "values",
        kind: Kind::Bars,
        about: "Rows equal to a constant, counted on one thread over 64 M values \
            (`bench/rivals/narrow_where.py`). The paper: Trill gains 13 to 15 %.",
        command: "make bench-narrow",
    },
];
