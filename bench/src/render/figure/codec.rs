//! Codecs: sizes, speeds, and when they pay.

use super::{Figure, Kind};

/// In the order of the page.
pub(super) const FIGURES: &[Figure] = &[
    Figure {
        name: "layout_bytes",
        title: "Bytes of a row of the reference stream",
        x: "column",
        kind: Kind::Table,
        about: "Every column in chunks of 65,536 rows as each tier chooses for it, dictionaries of \
            texts spread over all rows. They arrive in 32 bytes a row.",
        command: "make bench ARGS='layout --data target/rivals/data'",
    },
    Figure {
        name: "lossy_ratio",
        title: "Compression of counters, positions and weather: TC figures 11 and 13, section 5.3",
        x: "column",
        kind: Kind::Table,
        about: "Arrow bytes over bytes kept, exact and at the bound of the scheme, beside \
            Parquet with zstd, pco (both exact) and the reference zfp library at the same \
            bound. The paper: counters up to 6, GPS 4.5 or more at 1e-6, \
            weather 3 to 4.",
        command: "make bench-lossy",
    },
    Figure {
        name: "quality",
        title: "Loss of sessions against compression: TC figure 12",
        x: "ratio",
        kind: Kind::Lines([false, false]),
        about: "Missing and extra sessions of counters kept by zfp at growing bounds, of a hundred \
            sessions in exact ones, over the ratio of these counters: generated machines whose \
            network falls silent while they work, recorded ones whose processor stays low. The \
            paper: below 5 % for most sets, 20 % and more where sessions are few.",
        command: "make bench ARGS='lossy --queries quality --data FOLDER'",
    },
    Figure {
        name: "zfp_speed",
        title: "ZFP beside the reference library",
        x: "column",
        kind: Kind::Table,
        about: "Plain bytes a second, one thread, chunks of 65,536 values at the bound of the \
            scheme; zfpy is the C library through its wheel.",
        command: "make bench-lossy",
    },
    Figure {
        name: "pays",
        title: "When does compression pay?",
        x: "reads",
        kind: Kind::Lines([true, true]),
        about: "A retained range that k queries read, encoding counted: time of k reads of plain \
            Arrow over encoding and k encoded reads. Above 1 encoding has paid. A read \
            compares each row and sums those that pass; the first finds each chunk as it \
            arrives, in the caches, which are flushed before later ones. Keeping plain Arrow \
            costs its statistics. Texts are compared alone. Plain and both choices take turns.",
        command: "make bench ARGS=pays",
    },
    Figure {
        name: "pays_chosen",
        title: "When does compression pay, if the chooser knows the number of reads?",
        x: "reads",
        kind: Kind::Lines([true, true]),
        about: "The same with the codec that the cost model picks for k reads; 1 where it picks \
            plain.",
        command: "make bench ARGS=pays",
    },
    Figure {
        name: "pays_verdict",
        title: "Does the chooser pick the right side?",
        x: "kind",
        kind: Kind::Table,
        about: "Time of encoding and k reads as the cost model picks that knows k over that of the \
            faster of plain Arrow and the usual choice, and the codec that was picked: right where \
            it is that side's or takes up to 1.1, wrong where it takes more by over half of the \
            spread.",
        command: "make bench ARGS=pays",
    },
    Figure {
        name: "pays_break_even",
        title: "Break-even by kind of data",
        x: "kind",
        kind: Kind::Table,
        about: "Reads after which encoding has paid; beside plain reads the share of their time \
            that reading memory takes at the bandwidth of the run.",
        command: "make bench ARGS=pays",
    },
    Figure {
        name: "integers_ratio",
        title: "Compression of the integer sets: DaMoN figure 5",
        x: "set",
        kind: Kind::Table,
        about: "D1 to D4 of the paper (100 M 32-bit values unless `--rows` says less) under \
            every codec: plain bytes over bytes kept.",
        command: "make bench ARGS=execution",
    },
    Figure {
        name: "integers_encode",
        title: "Compression speed: DaMoN figures 6 and 7",
        x: "set",
        kind: Kind::Table,
        about: "Into new chunks, memory taken from the system included; a thread encodes its part \
            of the set. Shares are of plain bytes read and encoded ones written. `plain` keeps \
            the array and makes its statistics.",
        command: "make bench ARGS=execution",
    },
    Figure {
        name: "integers_decode",
        title: "Decompression speed: DaMoN figures 6 and 7",
        x: "set",
        kind: Kind::Table,
        about: "Into a small buffer, block by block. Shares are of encoded bytes.",
        command: "make bench ARGS=execution",
    },
    Figure {
        name: "integers_sum",
        title: "Aggregation on encoded data: DaMoN figure 10",
        x: "set",
        kind: Kind::Table,
        about: "Sums without decoding where the codec can; `plain` is the uncompressed side. \
            Shares are of encoded bytes.",
        command: "make bench ARGS=execution",
    },
    Figure {
        name: "integers_equal",
        title: "Equality on encoded data",
        x: "set",
        kind: Kind::Table,
        about: "A bitmap of the equal values, with a constant from the middle of each set.",
        command: "make bench ARGS=execution",
    },
    Figure {
        name: "integers_greater",
        title: "Greater-than on encoded data",
        x: "set",
        kind: Kind::Table,
        about: "The same for values above the constant.",
        command: "make bench ARGS=execution",
    },
    Figure {
        name: "real_columns",
        title: "Real columns as they are chosen",
        x: "column, tier",
        kind: Kind::Table,
        about: "Up to three columns of integers or decimals of each folder of `--data`, \
            repeated until plain values are three times the third-level cache, each encoded as \
            the chooser does for the tier; the codec is that of the last chunk. `x`: the time of \
            decoding first over ours (not beside decoding), then that of plain values.",
        command: "make bench ARGS='execution --queries real --data FOLDER'",
    },
    Figure {
        name: "damon_widths",
        title: "Instruction sets: DaMoN figure 9",
        x: "set",
        kind: Kind::Table,
        about: "25 M values of D1 and D3 from memory, by every level of kernels that this \
            processor runs, a process each, asked in turns. The bytes are the same at every \
            level; shares are of encoded bytes, with the plain ones when encoding. `portable` is \
            what the compiler makes for 128 bits. The paper, beside SSE: wider vectors compress \
            up to 17 % slower, cascades up to 34 % faster, and AVX-512 decompresses up to 19 % \
            slower.",
        command: "make bench ARGS=widths",
    },
    Figure {
        name: "kernels",
        title: "Instruction sets in cache",
        x: "kernel",
        kind: Kind::Table,
        about: "The main kernels on one block in the first-level cache, for every instruction \
            set of this processor.",
        command: "make bench ARGS=kernels",
    },
    Figure {
        name: "packed_compare",
        title: "Values above a constant by width: DaMoN figure 11",
        x: "bits",
        kind: Kind::Lines([false, false]),
        about: "Values of widths 1 to 32, packed, in the second-level cache, at every level of \
            kernels. BitWeaving/H is compiled for the instruction set that its series names, and \
            for the baseline of x86-64 where it names none; it takes a bit more for each value, \
            and its answers lie in words that are not full.",
        command: "make bench ARGS=bitpack",
    },
    Figure {
        name: "packed_equal",
        title: "Values equal to a constant by width: DaMoN figure 12",
        x: "bits",
        kind: Kind::Lines([false, false]),
        about: "The same blocks, levels and rival.",
        command: "make bench ARGS=bitpack",
    },
    Figure {
        name: "packed_gain",
        title: "Comparing packed values as they lie, in times of BitWeaving/H",
        x: "bits",
        kind: Kind::Lines([false, true]),
        about: "Time of BitWeaving/H over ours at the same level, which take turns.",
        command: "make bench ARGS=bitpack",
    },
    Figure {
        name: "packed_winner",
        title: "Who compares packed values faster",
        x: "level, comparison",
        kind: Kind::Table,
        about: "The widths of the figure before at which either is faster by more than half of the \
            spread.",
        command: "make bench ARGS=bitpack",
    },
    Figure {
        name: "packed_sum",
        title: "Summing packed values by width",
        x: "bits",
        kind: Kind::Lines([false, false]),
        about: "The same blocks summed as they lie.",
        command: "make bench ARGS=bitpack",
    },
    Figure {
        name: "packed_unpack",
        title: "Unpacking by width",
        x: "bits",
        kind: Kind::Lines([false, false]),
        about: "Beside the crate fastlanes unpacking its own layout, compiled for the instruction \
            set that its series names, and for the baseline of x86-64 where it names none.",
        command: "make bench ARGS=bitpack",
    },
    Figure {
        name: "waist",
        title: "Every codec under every primitive",
        x: "codec",
        kind: Kind::Table,
        about: "One chunk of 65,536 values in cache, one thread; `gather` fetches every \
            hundredth row, `codes` are those of texts, `pair` compares the column with itself a \
            row on, `search` looks 64 keys up in sorted values. Beside the rate: whether the codec \
            decoded, and how many times as fast it was as decoding and then computing.",
        command: "make bench ARGS=waist",
    },
];
