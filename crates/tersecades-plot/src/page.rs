//! What every picture has: a page, a frame with ticks, labels and a legend.

use std::fmt::Write as _;

use crate::scale::Ruler;

pub(crate) const WIDTH: f64 = 720.0;
pub(crate) const HEIGHT: f64 = 400.0;
pub(crate) const LEFT: f64 = 72.0;
pub(crate) const RIGHT: f64 = 200.0;
pub(crate) const TOP: f64 = 40.0;
pub(crate) const BOTTOM: f64 = 56.0;

/// Distinguishable for most colour-blind people too.
///
/// Source: Okabe and Ito, Color Universal Design (2008).
const COLOURS: [&str; 7] = [
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#555555",
];

/// The colour of the series at `index`.
pub(crate) fn colour(index: usize) -> &'static str {
    COLOURS[index % COLOURS.len()]
}

/// Where a share of the horizontal axis lies.
pub(crate) fn x(share: f64) -> f64 {
    LEFT + (WIDTH - LEFT - RIGHT) * share
}

/// Where a share of the vertical axis lies.
pub(crate) fn y(share: f64) -> f64 {
    HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share
}

/// SVG text that grows.
///
/// Writing to a string cannot fail, so results of `write!` are dropped here and in the plots.
pub(crate) struct Page {
    pub(crate) text: String,
}

impl Page {
    /// An empty page with a title.
    pub(crate) fn new(title: &str) -> Self {
        let mut text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
             font-family=\"sans-serif\" font-size=\"12\">\n\
             <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n"
        );
        let _ = writeln!(
            text,
            "<text x=\"{LEFT}\" y=\"20\" font-size=\"14\">{}</text>",
            escaped(title)
        );
        Page { text }
    }

    /// Lines across the page and the numbers beside them, and what they mean.
    pub(crate) fn vertical_axis(&mut self, ruler: &Ruler, label: &str) {
        for (share, number) in ruler.ticks() {
            let y = y(share);
            let _ = writeln!(
                self.text,
                "<line x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{:.1}\" y2=\"{y:.1}\" stroke=\"#ddd\"/>\n\
                 <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{number}</text>",
                x(1.0),
                LEFT - 6.0,
                y + 4.0,
            );
        }
        let _ = writeln!(
            self.text,
            "<text transform=\"translate(16 {:.1}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
            y(0.5),
            escaped(label)
        );
    }

    /// A text below the frame, at a share of its width.
    pub(crate) fn below(&mut self, share: f64, text: &str) {
        self.centred(share, y(0.0) + 18.0, text);
    }

    /// The same, one line further down.
    pub(crate) fn lower(&mut self, share: f64, text: &str) {
        self.centred(share, y(0.0) + 34.0, text);
    }

    /// What the horizontal axis means.
    pub(crate) fn horizontal_label(&mut self, label: &str) {
        self.centred(0.5, HEIGHT - 12.0, label);
    }

    fn centred(&mut self, share: f64, y: f64, text: &str) {
        let _ = writeln!(
            self.text,
            "<text x=\"{:.1}\" y=\"{y:.1}\" text-anchor=\"middle\">{}</text>",
            x(share),
            escaped(text)
        );
    }

    /// The line of a series in the legend.
    pub(crate) fn legend(&mut self, index: usize, name: &str) {
        let (left, y) = (x(1.0) + 16.0, TOP + 18.0 * (index as f64 + 1.0));
        let _ = writeln!(
            self.text,
            "<rect x=\"{left}\" y=\"{:.1}\" width=\"12\" height=\"4\" fill=\"{}\"/>\n\
             <text x=\"{:.1}\" y=\"{y:.1}\">{}</text>",
            y - 6.0,
            colour(index),
            left + 18.0,
            escaped(name)
        );
    }

    /// The whole text.
    pub(crate) fn finish(mut self) -> String {
        self.text.push_str("</svg>\n");
        self.text
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
