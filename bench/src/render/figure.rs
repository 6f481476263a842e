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

/// Every figure, in the order of the page.
pub(super) const FIGURES: &[Figure] = &[
    Figure {
        name: "limit",
        title: "The limits of the machine",
        x: "place",
        kind: Kind::Bars,
        about: "Bytes read and written each second by plain loops over 64-bit words, the ground of \
                every share below. `count` counts bits.",
        command: "limits",
    },
    Figure {
        name: "add",
        title: "Add: TC figures 2 and 6",
        x: "threads",
        kind: Kind::Bars,
        about: "`c = a + b` from memory to memory: plain words (Long), plain bytes (Char), base-delta \
                decoded, added and encoded again (CharCompr), added as it lies (direct). The paper: Char \
                7 times Long, CharCompr up to 6.1 times Long, with SIMD close to Char.",
        command: "add",
    },
    Figure {
        name: "search",
        title: "Search: TC figure 7",
        x: "threads",
        kind: Kind::Bars,
        about: "Equality with a constant: plain words (Long), plain bytes (Char), base-delta decoded and \
                then compared (CharCompr), compared as it lies with nothing to skip, with blocks to skip, \
                and sorted with chunks to skip (direct). The paper: direct up to 4.1 times Char.",
        command: "search",
    },
    Figure {
        name: "pays",
        title: "When does compression pay?",
        x: "reads",
        kind: Kind::Lines([true, true]),
        about: "A retained range that k queries read, encoding counted: time of k reads of plain Arrow over \
                encoding and k encoded reads. Above 1 encoding has paid. A read compares each row and sums \
                those that pass, caches flushed before it; retaining plain Arrow costs nothing. Medians of \
                encoding and of one read make each number.",
        command: "pays",
    },
    Figure {
        name: "pays_chosen",
        title: "When does compression pay, if the chooser knows the number of reads?",
        x: "reads",
        kind: Kind::Lines([true, true]),
        about: "The same with the codec that the cost model picks for k reads; 1 where it picks plain.",
        command: "pays",
    },
    Figure {
        name: "pays_break_even",
        title: "Break-even by kind of data",
        x: "kind",
        kind: Kind::Table,
        about: "Reads after which encoding has paid; beside plain reads the share of their time that reading \
                memory takes at the bandwidth of the run.",
        command: "pays",
    },
    Figure {
        name: "selectivity",
        title: "Filter and sum by selectivity",
        x: "share of rows that pass",
        kind: Kind::Lines([false, false]),
        about: "One column compared, another summed where it passes, over a retained range, one thread.",
        command: "selectivity",
    },
    Figure {
        name: "cardinality",
        title: "Group by cardinality",
        x: "different keys",
        kind: Kind::Lines([true, false]),
        about: "Count and sum by one integer column with uniformly distributed keys, results as sorted Arrow \
                batches, over a retained range of 10 M rows, one thread.",
        command: "cardinality",
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
