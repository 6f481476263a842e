//! `store explain`: what each codec policy would make of the rows, and the model beside the clock.

use std::path::PathBuf;

use clap::Args;
use tersecades::store::Store;

use crate::console;
use crate::outcome::Outcome;
use crate::table::Table;

/// Show what each codec policy would cost, and the cost model beside the clock
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
    let costs = [">encode ns/row", ">decode ns/row", ">write ns/row (model)"];
    let mut table = Table::new(&[&["policy", ">bytes/row"], costs.as_slice()].concat());
    for cost in &explained.policies {
        table.push([
            cost.policy.to_string(),
            format!("{:.3}", cost.bytes_per_row),
            format!("{:.1}", cost.encode_ns),
            format!("{:.1}", cost.decode_ns),
            format!("{:.1}", cost.write_ns),
        ]);
    }
    let written = format!(
        "{} levels, each row written {:.1} times",
        explained.levels, explained.write_amplification
    );
    let reading = format!(
        "reading a key: {:.1} us by the model, {:.1} us by the clock ({} keys)",
        explained.point_model_us, explained.point_measured_us, explained.points
    );
    console::print(format_args!(
        "{}\n{written}\n{reading}\n",
        table.to_text("")
    ))
}
