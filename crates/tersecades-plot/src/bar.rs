//! Bars side by side over named places.

use std::fmt::Write as _;

use crate::Axis;
use crate::page::{Page, colour, x, y};
use crate::scale::{Ruler, short};

/// Share of a place that its bars leave free.
const GAP: f64 = 0.2;
/// Most places whose names fit below the frame in one line.
const NAMES_IN_A_LINE: usize = 5;

/// Bars: names of the places, and for each series a name and a height for each place.
#[derive(Debug, Clone)]
pub struct BarPlot {
    /// What stands above the frame.
    pub title: String,
    /// What heights mean.
    pub y: Axis,
    /// Names of the places, from left to right.
    pub places: Vec<String>,
    /// Name and heights of each series; a place without a height stays empty.
    pub series: Vec<(String, Vec<Option<f64>>)>,
}

impl BarPlot {
    /// The picture.
    pub fn svg(&self) -> String {
        let heights = self.series.iter().flat_map(|series| series.1.iter());
        let ruler = Ruler::of(self.y.scale, heights.copied().flatten());
        let mut page = Page::new(&self.title);
        page.vertical_axis(&ruler, &self.y.label);
        let width = 1.0 / self.places.len().max(1) as f64;
        let bar = width * (1.0 - GAP) / self.series.len().max(1) as f64;
        for (index, (name, heights)) in self.series.iter().enumerate() {
            for (place, height) in heights.iter().enumerate() {
                let Some((share, height)) = height.and_then(|it| Some((ruler.share(it)?, it)))
                else {
                    continue;
                };
                let left = width * (place as f64 + GAP / 2.0) + bar * index as f64;
                draw(&mut page, (left, bar, share), height, colour(index));
            }
            page.legend(index, name);
        }
        for (index, place) in self.places.iter().enumerate() {
            let share = width * (index as f64 + 0.5);
            match self.places.len() > NAMES_IN_A_LINE && index % 2 == 1 {
                true => page.lower(share, place),
                false => page.below(share, place),
            }
        }
        page.finish()
    }
}

fn draw(page: &mut Page, (left, width, share): (f64, f64, f64), height: f64, colour: &str) {
    let (from, to) = (x(left), x(left + width));
    let (top, bottom) = (y(share.max(0.0)), y(0.0));
    let _ = writeln!(
        page.text,
        "<rect x=\"{from:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{colour}\">\
         <title>{}</title></rect>",
        to - from,
        bottom - top,
        short(height)
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_without_a_height_stays_empty() {
        let plot = BarPlot {
            title: "Add".to_owned(),
            y: Axis::linear("rows/s"),
            places: vec!["1 thread".to_owned(), "2 threads".to_owned()],
            series: vec![
                ("long".to_owned(), vec![Some(2e9), Some(4e9)]),
                ("char".to_owned(), vec![Some(16e9), None]),
            ],
        };
        let page = plot.svg();
        assert_eq!(page.matches("<title>").count(), 3, "{page}");
        assert!(page.contains(">20 G<") && page.contains("2 threads"));
    }
}
