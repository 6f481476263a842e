//! Measured numbers as SVG: lines over an axis of numbers, bars over named places.
//!
//! ```text
//! LinePlot, BarPlot ─▶ page (frame, ticks, legend) ─▶ SVG text
//! ```
//! A page needs no font, script or style sheet of its own, and equal numbers give equal bytes.

mod bar;
mod line;
mod page;
mod scale;

pub use bar::BarPlot;
pub use line::LinePlot;
pub use scale::Scale;

/// What an axis shows, and how numbers lie on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Axis {
    /// What stands beside it.
    pub label: String,
    /// How numbers lie on it.
    pub scale: Scale,
}

impl Axis {
    /// An axis from zero.
    pub fn linear(label: impl Into<String>) -> Self {
        Axis {
            label: label.into(),
            scale: Scale::Linear,
        }
    }

    /// An axis of powers of ten; numbers of zero and below do not lie on it.
    pub fn log(label: impl Into<String>) -> Self {
        Axis {
            label: label.into(),
            scale: Scale::Log,
        }
    }
}
