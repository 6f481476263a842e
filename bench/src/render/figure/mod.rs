//! The figures: how each is drawn, and what the paper it is from shows there.

mod codec;
mod paper;
mod peer;
mod query;

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
pub(super) fn figures() -> impl Iterator<Item = &'static Figure> {
    let parts = [
        paper::FIGURES,
        peer::FIGURES,
        query::FIGURES,
        codec::FIGURES,
    ];
    parts.into_iter().flatten()
}

/// The horizontal and the vertical axis of a figure of numbers.
pub(super) fn axes(across: &str, upward: &str, log: [bool; 2]) -> [Axis; 2] {
    let axis = |label: &str, log: bool| match log {
        true => Axis::log(label),
        false => Axis::linear(label),
    };
    [axis(across, log[0]), axis(upward, log[1])]
}
