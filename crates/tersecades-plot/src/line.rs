//! Lines over an axis of numbers.

use std::fmt::Write as _;

use crate::Axis;
use crate::page::{Page, colour, x, y};
use crate::scale::Ruler;

/// Lines, a name and points for each.
#[derive(Debug, Clone)]
pub struct LinePlot {
    /// What stands above the frame.
    pub title: String,
    /// What lies from left to right.
    pub x: Axis,
    /// What lies from bottom to top.
    pub y: Axis,
    /// Name and points of each line, in any order.
    pub lines: Vec<(String, Vec<(f64, f64)>)>,
}

impl LinePlot {
    /// The picture.
    pub fn svg(&self) -> String {
        let points = || self.lines.iter().flat_map(|line| line.1.iter());
        let across = Ruler::of(self.x.scale, points().map(|point| point.0));
        let upward = Ruler::of(self.y.scale, points().map(|point| point.1));
        let mut page = Page::new(&self.title);
        page.vertical_axis(&upward, &self.y.label);
        for (share, number) in across.ticks() {
            page.below(share, &number);
        }
        page.horizontal_label(&self.x.label);
        for (index, (name, points)) in self.lines.iter().enumerate() {
            let mut points = points.clone();
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            let places = points.iter().filter_map(|point| {
                let (across, upward) = (across.share(point.0)?, upward.share(point.1)?);
                Some((x(across), y(upward)))
            });
            draw(&mut page, &places.collect::<Vec<_>>(), colour(index));
            page.legend(index, name);
        }
        page.finish()
    }
}

fn draw(page: &mut Page, places: &[(f64, f64)], colour: &str) {
    let corners: Vec<String> = places
        .iter()
        .map(|(x, y)| format!("{x:.1},{y:.1}"))
        .collect();
    let _ = writeln!(
        page.text,
        "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
        corners.join(" ")
    );
    for (x, y) in places {
        let _ = writeln!(
            page.text,
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\"/>"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_point_lies_in_the_frame() {
        let plot = LinePlot {
            title: "a < b".to_owned(),
            x: Axis::log("rows"),
            y: Axis::linear("loss"),
            lines: vec![
                ("one".to_owned(), vec![(1_000.0, 7.5), (10.0, 12.0)]),
                ("none".to_owned(), vec![(0.0, 1.0), (f64::NAN, 1.0)]),
            ],
        };
        let page = plot.svg();
        assert_eq!(page.matches("<circle").count(), 2, "{page}");
        assert!(page.contains("a &lt; b") && page.contains(">1 k<") && page.contains(">15<"));
        assert!(!page.contains("NaN") && page.ends_with("</svg>\n"));
    }
}
