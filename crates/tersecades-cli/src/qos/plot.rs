//! Loss against compression, a line for each query, as SVG.

use std::fmt::Write as _;

use tersecades::sql::Setting;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 400.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 160.0;
const TOP: f64 = 24.0;
const BOTTOM: f64 = 48.0;

/// Distinguishable for most colour-blind people too.
///
/// Source: Okabe and Ito, Color Universal Design (2008).
const COLOURS: [&str; 6] = [
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9",
];

/// Numbers to places on the page.
struct Axes {
    ratio_max: f64,
    loss_max: f64,
}

impl Axes {
    fn x(&self, ratio: f64) -> f64 {
        LEFT + (WIDTH - LEFT - RIGHT) * ratio / self.ratio_max
    }

    fn y(&self, loss: f64) -> f64 {
        HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * loss / self.loss_max
    }
}

/// The picture.
pub(super) fn svg(settings: &[Setting], queries: &[(String, String)]) -> String {
    let most = |values: &mut dyn Iterator<Item = f64>| values.fold(0.0, f64::max);
    let axes = Axes {
        ratio_max: step(most(&mut settings.iter().map(|it| it.column_ratio)) / 5.0) * 5.0,
        loss_max: step(most(&mut settings.iter().map(|it| it.loss() * 100.0)) / 5.0) * 5.0,
    };
    let mut page = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n"
    );
    // Writing to a string cannot fail.
    let _ = draw_axes(&mut page, &axes);
    for (index, (name, _)) in queries.iter().enumerate() {
        let points = settings.iter().filter_map(|setting| {
            let difference = setting.differences.get(index)?;
            Some((setting.column_ratio, difference.loss() * 100.0))
        });
        let colour = COLOURS[index % COLOURS.len()];
        let _ = draw_line(&mut page, &axes, (index, name, colour), points.collect());
    }
    page.push_str("</svg>\n");
    page
}

fn draw_axes(page: &mut String, axes: &Axes) -> std::fmt::Result {
    let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
    for tick in 0..=5 {
        let share = f64::from(tick) / 5.0;
        let (ratio, loss) = (axes.ratio_max * share, axes.loss_max * share);
        let (x, y) = (axes.x(ratio), axes.y(loss));
        writeln!(
            page,
            "<line x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{right}\" y2=\"{y:.1}\" stroke=\"#ddd\"/>\n\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\n\
             <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            LEFT - 6.0,
            y + 4.0,
            short(loss),
            bottom + 18.0,
            short(ratio)
        )?;
    }
    writeln!(
        page,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">compression ratio of the lossy \
         columns</text>\n<text transform=\"translate(16 {:.1}) rotate(-90)\" \
         text-anchor=\"middle\">loss of rows (%)</text>",
        (LEFT + right) / 2.0,
        HEIGHT - 10.0,
        (TOP + bottom) / 2.0
    )
}

fn draw_line(
    page: &mut String,
    axes: &Axes,
    (index, name, colour): (usize, &str, &str),
    mut points: Vec<(f64, f64)>,
) -> std::fmt::Result {
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    let places: Vec<String> = points
        .iter()
        .map(|(ratio, loss)| format!("{:.1},{:.1}", axes.x(*ratio), axes.y(*loss)))
        .collect();
    writeln!(
        page,
        "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
        places.join(" ")
    )?;
    for (ratio, loss) in &points {
        let (x, y) = (axes.x(*ratio), axes.y(*loss));
        writeln!(
            page,
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\"/>"
        )?;
    }
    let (x, y) = (WIDTH - RIGHT + 16.0, TOP + 18.0 * (index as f64 + 1.0));
    writeln!(
        page,
        "<rect x=\"{x}\" y=\"{:.1}\" width=\"12\" height=\"3\" fill=\"{colour}\"/>\n\
         <text x=\"{:.1}\" y=\"{y:.1}\">{}</text>",
        y - 5.0,
        x + 18.0,
        escaped(name)
    )
}

/// The next of 1, 2 and 5 times a power of ten.
fn step(least: f64) -> f64 {
    if least <= 0.0 || !least.is_finite() {
        return 1.0;
    }
    let power = 10f64.powf(least.log10().floor());
    let factor = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .find(|it| it * power >= least);
    factor.unwrap_or(10.0) * power
}

fn short(number: f64) -> String {
    let text = format!("{number:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use tersecades::engine::quality::Difference;

    use super::*;

    #[test]
    fn each_query_is_a_line_within_the_page() {
        let setting = |ratio, missing| Setting {
            scheme: "zfp(1)".to_owned(),
            error_bound: 1.0,
            column_ratio: ratio,
            table_ratio: ratio,
            differences: vec![Difference {
                rows: 100,
                missing,
                ..Difference::default()
            }],
        };
        let queries = [("drops < 1".to_owned(), String::new())];
        let page = svg(&[setting(1.0, 0), setting(7.5, 12)], &queries);
        assert!(page.contains("drops &lt; 1") && page.matches("<circle").count() == 2);
        assert!(page.contains(">10<") && page.contains(">15<"), "{page}");
        assert!(!page.contains("NaN") && page.ends_with("</svg>\n"));
    }

    #[test]
    fn axes_end_at_round_numbers() {
        assert_eq!(
            [0.3, 1.0, 1.1, 34.0, 0.0].map(step),
            [0.5, 1.0, 2.0, 50.0, 1.0]
        );
    }
}
