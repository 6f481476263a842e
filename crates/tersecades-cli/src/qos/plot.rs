//! Loss against compression, a line for each query, as SVG.

use tersecades::sql::{Setting, loss_lines};
use tersecades_plot::{Axis, LinePlot};

/// The picture.
pub(super) fn svg(settings: &[Setting], queries: &[(String, String)]) -> String {
    let plot = LinePlot {
        title: "What a tolerance does to the answers".to_owned(),
        x: Axis::linear("compression ratio of the lossy columns"),
        y: Axis::linear("loss of rows (%)"),
        lines: loss_lines(settings, queries),
    };
    plot.svg()
}

#[cfg(test)]
mod tests {
    use tersecades::engine::quality::Difference;

    use super::*;

    #[test]
    fn each_query_is_a_line() {
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
    }
}
