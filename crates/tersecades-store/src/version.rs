//! One state of a store as readers see it: which runs there are, and what is in memory.

use std::sync::Arc;

use tersecades_columnar::batch::Batch;
use tersecades_columnar::error::{Error, Result};

use crate::catalog::Catalog;
use crate::commit::State;
use crate::retention::Floor;
use crate::run::{Run, RunId};
use crate::workload::Workload;

/// The runs of a store, and what the manifest says of it.
#[derive(Debug)]
pub(crate) struct Version {
    /// What the manifest says.
    pub(crate) catalog: Catalog,
    /// The open runs, in the order of the catalogue.
    pub(crate) runs: Vec<Arc<Run>>,
    /// Runs that cannot be opened, and why; a store that has any is only read.
    pub(crate) damaged: Vec<(RunId, Error)>,
}

impl Version {
    /// A state whose runs are all open.
    pub(crate) fn whole(catalog: Catalog, runs: Vec<Arc<Run>>) -> Self {
        Version {
            catalog,
            runs,
            damaged: Vec::new(),
        }
    }

    /// Refuses to leave out a run that cannot be opened and may hold what is asked for.
    ///
    /// # Errors
    /// Why it cannot be opened.
    pub(crate) fn check(&self, is_asked_for: impl Fn(&RunId) -> bool) -> Result<()> {
        let mut damaged = self.damaged.iter();
        match damaged.find(|(id, _)| is_asked_for(id)) {
            None => Ok(()),
            Some((_, error)) => Err(error.clone()),
        }
    }

    /// Which rows are gone.
    pub(crate) fn floor(&self) -> Floor {
        let schema = &self.catalog.schema;
        let column = schema.time_column();
        let name = column.map(|index| schema.fields().field(index).name().as_str());
        Floor::new(name, self.catalog.floor)
    }
}

/// A state of a store that stays as it is while the store goes on.
///
/// Files that it needs are there until it is dropped.
#[derive(Debug, Clone)]
pub struct Snapshot {
    pub(crate) version: Arc<Version>,
    /// Batches that are in no run, in the order of their arrival.
    pub(crate) memory: Vec<Arc<Batch>>,
    pub(crate) end: u64,
    /// Takes note of reads.
    pub(crate) workload: Arc<Workload>,
}

impl Snapshot {
    /// The state as it is.
    pub(crate) fn of(state: &State) -> Self {
        let frozen = state.frozen.iter().flat_map(|frozen| frozen.batches());
        Snapshot {
            version: Arc::clone(&state.version),
            memory: frozen.chain(state.memory.batches()).cloned().collect(),
            end: state.end(),
            workload: Arc::clone(&state.workload),
        }
    }

    /// Rows that were ever acknowledged, those that are gone included.
    pub fn sequence(&self) -> u64 {
        self.end
    }

    /// The columns and what they are for.
    pub fn schema(&self) -> &crate::StoreSchema {
        &self.version.catalog.schema
    }

    /// The options.
    pub fn options(&self) -> &crate::StoreOptions {
        &self.version.catalog.options
    }
}
