//! `store explain`: what the cost model says of each level and codec policy, beside the clock.

use std::path::PathBuf;

use clap::Args;
use tersecades::store::{AccessCost, LevelCost, Store};

use crate::console;
use crate::figure;
use crate::outcome::Outcome;
use crate::table::Table;

/// Show what each codec policy would cost on each level by the model, and the clock beside it
#[derive(Debug, Args)]
pub(crate) struct ExplainArguments {
    /// Folder of the store
    dir: PathBuf,
}

/// Measures and prints.
pub(crate) fn run(arguments: &ExplainArguments) -> Outcome {
    let store = Store::open_read_only(&arguments.dir)?;
    let Some(explained) = store.snapshot().explain()? else {
        return console::print(
            "there is nothing to measure: the store has no runs yet, or no key and no time\n",
        );
    };
    for level in &explained.levels {
        print_level(level)?;
    }
    let measured = explained.written_measured;
    let measured = measured.map(|times| format!(", {times:.1} by the levels of its runs"));
    console::print(format_args!(
        "{} levels and each row written {:.1} times by the model{}\n\
         reading a key from all levels: {:.1} us by the model, {:.1} us by the clock ({} keys)\n",
        explained.levels_model,
        explained.written_model,
        measured.unwrap_or_default(),
        explained.point_model_us,
        explained.point_measured_us,
        explained.points
    ))
}

fn print_level(level: &LevelCost) -> Outcome {
    let costs = [">bytes/row", ">key us", ">range us", ">write ns/row"];
    let mut table = Table::new(&[&["policy"], costs.as_slice()].concat());
    let mut push = |name: String, cost: &AccessCost| {
        table.push([
            name,
            format!("{:.3}", cost.bytes_per_row),
            format!("{:.1}", cost.point_us),
            format!("{:.1}", cost.range_us),
            format!("{:.1}", cost.write_ns),
        ]);
    };
    let policy = level.measured.policy;
    for cost in &level.model {
        push(cost.policy.to_string(), cost);
    }
    push(format!("{policy} by the clock"), &level.measured);
    console::print(format_args!(
        "level {}, {}, {policy}: {} runs of {} rows\n{}\n",
        level.level,
        level.tier,
        level.runs,
        figure::grouped(level.rows),
        table.to_text("")
    ))
}
