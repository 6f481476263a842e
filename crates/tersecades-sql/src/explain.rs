//! `EXPLAIN`: the plan, what running it took, and how its columns are encoded.

use std::sync::Arc;
use std::time::Instant;

use datafusion_common::tree_node::TreeNodeRecursion;
use datafusion_expr::LogicalPlan;
use tersecades_columnar::error::Result;
use tersecades_columnar::explain::{Explainer, Explanation, Price, Trial};
use tersecades_columnar::goal::Goal;
use tersecades_columnar::registry;
use tersecades_engine::expression::col;
use tersecades_engine::runtime::{Metrics, Running};
use tersecades_engine::stream::Stream;

use crate::answer::Answer;
use crate::catalog::{PlannedSource, Relation};
use crate::command::{keeping_late, number, text_rows};
use crate::error::of_datafusion;
use crate::late::LateRows;
use crate::parse::{Asked, Explained};
use crate::session::Session;

/// Rows of a table that `EXPLAIN CODECS` encodes in every way there is.
const SAMPLE_ROWS: usize = 1 << 20;

/// Characters of a line of a plan.
const LINE_CHARS: usize = 78;

impl Session {
    /// Explains a query.
    ///
    /// # Errors
    /// What planning and running say.
    pub(crate) fn explain(&self, explained: Explained, asked: Asked) -> Result<Answer> {
        match explained {
            Explained::Plan => {
                let (plan, stream) = self.planned_once(asked)?;
                let mut lines = plan_lines(&plan);
                lines.push("operators".to_owned());
                lines.extend(stream.run()?.describe().into_iter().map(indented));
                text_rows([("plan", fitted(lines))])
            }
            Explained::Run => {
                let started = Instant::now();
                let late_into = asked.clauses.late_into.clone();
                let (plan, stream) = self.planned_once(asked)?;
                let planned = started.elapsed();
                let (stream, late) = keeping_late(&plan, stream, late_into)?;
                let running = run_to_end(stream.measured(), late)?;
                let mut lines = plan_lines(&plan);
                lines.push("operators".to_owned());
                lines.extend(running.describe().into_iter().map(indented));
                lines.push(format!("planned in {:.1} ms", planned.as_secs_f64() * 1e3));
                let elapsed = (started.elapsed() - planned).as_secs_f64();
                lines.push(format!("ran in {:.1} ms", elapsed * 1e3));
                lines.extend(counted(&running.metrics()).into_iter().map(indented));
                text_rows([("plan", fitted(lines))])
            }
            Explained::Codecs => self.explain_codecs(asked),
        }
    }

    fn explain_codecs(&self, asked: Asked) -> Result<Answer> {
        let (plan, stream) = self.planned(asked)?;
        let is_filled = |cell: &String| !cell.is_empty();
        let mut columns: [Vec<Option<String>>; CODEC_COLUMNS.len()] = Default::default();
        for (table, relation, read) in scans(&plan)? {
            for name in read {
                let explanation = tried(&relation, &name, stream.goal(&name))?;
                for cells in codec_rows(&explanation) {
                    let cells = [table.clone(), name.clone()].into_iter().chain(cells);
                    columns
                        .iter_mut()
                        .zip(cells)
                        .for_each(|(column, cell)| column.push(Some(cell).filter(is_filled)));
                }
            }
        }
        let mut columns = columns.into_iter();
        text_rows(CODEC_COLUMNS.map(|name| (name, columns.next().unwrap_or_default())))
    }
}

/// Runs `stream`, whose late rows go into a file if it keeps them.
fn run_to_end(stream: Stream, mut late: Option<LateRows>) -> Result<Running> {
    let mut running = stream.run()?;
    loop {
        let batch = running.next().transpose()?;
        if let Some(late) = &mut late {
            late.take(&mut running, batch.is_none())?;
        }
        if batch.is_none() {
            return Ok(running);
        }
    }
}

/// What `EXPLAIN CODECS` says of each way to encode a column; regret is how much more the codecs
/// cost that are chosen chunk by chunk than the scheme that costs least, loss the same of a scheme.
const CODEC_COLUMNS: [&str; 10] = [
    "table",
    "column",
    "chosen",
    "regret",
    "scheme",
    "expected_bytes",
    "bytes_per_row",
    "expected_ns",
    "cost_ns",
    "loss",
];

/// The columns behind the first two; what was chosen stands in the first row.
fn codec_rows(explanation: &Explanation) -> impl Iterator<Item = [String; 8]> {
    let by_column = |trial: &&Trial| !lies_in_rows(&trial.scheme);
    let trials = explanation.trials.iter().filter(by_column);
    let least = trials.clone().next().map_or(0.0, |best| best.real.ns);
    let loss = move |ns: f64| percent(if least > 0.0 { ns / least - 1.0 } else { 0.0 });
    trials.enumerate().map(move |(index, trial)| {
        let expected = |of: fn(Price) -> f64| trial.estimate.map(|it| number(of(it)));
        let (chosen, regret) = match index {
            0 => (explanation.codec.clone(), loss(explanation.chosen.ns)),
            _ => Default::default(),
        };
        [
            chosen,
            regret,
            trial.scheme.clone(),
            expected(|price| price.bytes).unwrap_or_default(),
            number(trial.real.bytes),
            expected(|price| price.ns).unwrap_or_default(),
            number(trial.real.ns),
            loss(trial.real.ns),
        ]
    })
}

/// `share` of one in per cent.
fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn plan_lines(plan: &LogicalPlan) -> Vec<String> {
    let shown = plan.display_indent().to_string();
    let lines = shown.lines().map(|line| indented(line.to_owned()));
    std::iter::once("logical plan".to_owned())
        .chain(lines)
        .collect()
}

/// Lines in pieces that a terminal shows whole, broken before brackets and behind commas.
fn fitted(lines: Vec<String>) -> Vec<String> {
    let mut pieces = Vec::with_capacity(lines.len());
    for line in lines {
        let text = line.trim_start();
        let further = " ".repeat(line.len() - text.len() + 4);
        let mut piece = line[..line.len() - text.len()].to_owned();
        let mut started = false;
        for part in parts(text) {
            let length = piece.chars().count() + part.trim_end().chars().count();
            if started && length > LINE_CHARS {
                pieces.push(piece.trim_end().to_owned());
                piece.clone_from(&further);
            }
            piece.push_str(part);
            started = true;
        }
        pieces.push(piece);
    }
    pieces
}

/// `text` cut before each bracket and behind each comma.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    let ends = text.match_indices([' ']).filter_map(|(at, _)| {
        let bracket = text[at + 1..].starts_with('[');
        (bracket || text[..at].ends_with(',')).then_some(at + 1)
    });
    let mut start = 0;
    let ends: Vec<usize> = ends.chain([text.len()]).collect();
    ends.into_iter()
        .map(move |end| &text[std::mem::replace(&mut start, end)..end])
}

fn indented(line: String) -> String {
    format!("  {line}")
}

fn counted(metrics: &Metrics) -> Vec<String> {
    let tally = metrics.tally;
    let mut lines = vec![
        format!("rows in {}, batches {}", metrics.rows, metrics.batches),
        format!(
            "rows out {}, windows {}",
            metrics.result_rows, metrics.windows
        ),
        format!(
            "values skipped by statistics {}, computed on encoded {}, decoded {}, fetched {}",
            tally.skipped, tally.direct, tally.decoded, tally.gathered
        ),
    ];
    for (rows, what) in [
        (metrics.late_rows, "late"),
        (metrics.untimed_rows, "without event time"),
        (metrics.skipped_rows, "between windows"),
        (metrics.rejected_rows, "not readable"),
        (metrics.left_out_rows, "passed over by the source"),
    ] {
        if rows > 0 {
            lines.push(format!("rows {what} {rows}"));
        }
    }
    for column in &metrics.columns {
        lines.push(format!(
            "column {}: {}, {} bytes as Arrow, {} as kept",
            column.name, column.codec, column.raw_bytes, column.encoded_bytes
        ));
    }
    lines
}

/// Whether a scheme is of batches that are laid out row after row, which is no choice of a column.
fn lies_in_rows(scheme: &str) -> bool {
    let layout = registry::row_layout().name();
    scheme
        .split(['(', ')', ','])
        .any(|codec| codec.trim() == layout)
}

/// A table's name, its rows, the columns that are wanted of it.
pub(crate) type Scan = (String, Arc<Relation>, Vec<String>);

/// Each table that is read: its name, its rows, the columns that are wanted of it.
pub(crate) fn scans(plan: &LogicalPlan) -> Result<Vec<Scan>> {
    let mut found = Vec::new();
    let walked = plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node
            && let Some(source) = scan.source.as_ref().downcast_ref::<PlannedSource>()
        {
            let names = scan
                .projected_schema
                .fields()
                .iter()
                .map(|field| field.name().clone());
            found.push((
                scan.table_name.to_string(),
                Arc::clone(&source.0),
                names.collect(),
            ));
        }
        Ok(TreeNodeRecursion::Continue)
    });
    walked.map_err(|error| of_datafusion(&error))?;
    Ok(found)
}

/// Every way to encode the first rows of a column.
fn tried(relation: &Relation, name: &str, goal: Goal) -> Result<Explanation> {
    let stream = relation.stream.clone().project([(name, col(name))]);
    let mut explainer = None;
    let mut rows = 0;
    for batch in stream.run()? {
        let batch = batch?;
        let array = batch.column(0);
        let explainer = match &mut explainer {
            Some(explainer) => explainer,
            none => none.insert(Explainer::new(array.data_type(), goal.clone())?),
        };
        explainer.add(array)?;
        rows += batch.num_rows();
        if rows >= SAMPLE_ROWS {
            break;
        }
    }
    Ok(explainer.map_or_else(Explanation::default, |explainer| explainer.explain()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_of_a_plan_are_broken_and_nothing_is_lost() {
        let short = "  filter rtt_us > 5 [encoded]".to_owned();
        let numbers = (0..60).map(|n| n.to_string()).collect::<Vec<_>>();
        let long = format!("  group by [k] compute [{}] [rows 1]", numbers.join(", "));
        let shown = fitted(vec![short.clone(), long.clone()]);
        assert_eq!(shown[0], short);
        assert!(shown.len() > 3);
        assert!(shown.iter().all(|line| line.chars().count() <= LINE_CHARS));
        let words = |text: &str| {
            text.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        assert_eq!(words(&shown[1..].join("\n")), words(&long));
    }
}
