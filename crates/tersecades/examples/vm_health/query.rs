//! The query: state of each machine in each interval, its changes, and what they say.

use std::collections::HashMap;
use std::time::Duration;

use tersecades::arrow_array::cast::AsArray;
use tersecades::arrow_array::types::{Int64Type, TimestampMillisecondType};
use tersecades::arrow_array::{Array, ArrayRef};
use tersecades::prelude::*;

/// Average processor load, in percent, from which a machine is active.
const ACTIVE_PERCENT: f64 = 5.0;

/// A time in which a machine worked and its network was silent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Loss {
    pub(crate) vm: String,
    pub(crate) from_ms: i64,
    /// The first time after it; none while it lasts.
    pub(crate) to_ms: Option<i64>,
}

/// The changes of state of each machine: `active` (its processor works), `silent` (its network
/// does not), what they were before and for how long.
///
/// Source: TerseCades (USENIX ATC 2018), section 5.2: counters are grouped by machine and time,
/// each group is classified, the groups of a machine are scanned in order for changes.
pub(crate) fn changes(counters: Stream, interval: Duration) -> Stream {
    let counter = |name: &str| col("counter_name").eq(name);
    let network = counter("network_in_bytes").or(counter("network_out_bytes"));
    counters
        .window(tumble(interval))
        .group_by(["vm_id"])
        .aggregate([
            call("max", col("average_value"))
                .filter(counter("cpu_percent"))
                .alias("cpu"),
            call("max", col("max_value"))
                .filter(network)
                .alias("network"),
        ])
        .project([
            ("window_start", col("window_start")),
            ("vm_id", col("vm_id")),
            ("active", col("cpu").gt_eq(ACTIVE_PERCENT)),
            ("silent", col("network").eq(0.0)),
        ])
        .changes(["active", "silent"], ["vm_id"])
}

/// The losses that the changes of state tell of, in order.
pub(crate) fn losses(
    changes: impl Iterator<Item = tersecades::Result<RecordBatch>>,
) -> tersecades::Result<Vec<Loss>> {
    let mut losses: Vec<Loss> = Vec::new();
    let mut open: HashMap<String, usize> = HashMap::new();
    for batch in changes {
        let batch = batch?;
        let column = |name: &str| -> tersecades::Result<&ArrayRef> {
            Ok(batch.column(batch.schema_ref().index_of(name)?))
        };
        let times = column("window_start")?.as_primitive::<TimestampMillisecondType>();
        let lasted = column("lasted")?.as_primitive::<Int64Type>();
        let now = both(column("active")?, column("silent")?);
        let before = both(column("previous_active")?, column("previous_silent")?);
        for (row, vm) in texts(column("vm_id")?).into_iter().enumerate() {
            let at = times.value(row);
            if before[row] {
                let loss = Loss {
                    vm: vm.clone(),
                    from_ms: at - lasted.value(row),
                    to_ms: Some(at),
                };
                match open.remove(&vm) {
                    Some(index) => losses[index] = loss,
                    // It was lost from its first report on.
                    None => losses.push(loss),
                }
            }
            if now[row] {
                open.insert(vm.clone(), losses.len());
                losses.push(Loss {
                    vm,
                    from_ms: at,
                    to_ms: None,
                });
            }
        }
    }
    losses.sort_by(|a, b| (a.from_ms, &a.vm).cmp(&(b.from_ms, &b.vm)));
    Ok(losses)
}

/// Rows where both are true.
fn both(a: &ArrayRef, b: &ArrayRef) -> Vec<bool> {
    let (a, b) = (a.as_boolean(), b.as_boolean());
    let is = |row| a.is_valid(row) && a.value(row) && b.is_valid(row) && b.value(row);
    (0..a.len()).map(is).collect()
}

fn texts(array: &ArrayRef) -> Vec<String> {
    match array.as_any_dictionary_opt() {
        Some(codes) => {
            let values = codes.values().as_string::<i32>();
            let keys = codes.normalized_keys().into_iter();
            keys.map(|key| values.value(key).to_owned()).collect()
        }
        None => {
            let values = array.as_string::<i32>().iter();
            values
                .map(|text| text.unwrap_or_default().to_owned())
                .collect()
        }
    }
}
