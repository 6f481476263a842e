//! Several queries over one stream, which is read and encoded once.
//!
//! ```text
//! source ─▶ Ingest ─▶ shared batch ─▶ query 0 (its own Running)
//!                                  ├▶ query 1
//!                                  └▶ …          a step takes one batch through all of them
//! ```

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use tersecades_columnar::batch::Batch;
use tersecades_columnar::error::{Error, Result};

use crate::operator::window_aggregate::feed::ReadFrom;
use crate::source::PartitionState;
use crate::source::table::Table;

use super::ingest::{EncodedSource, Ingest, Origin};
use super::state::{StateReader, StateWriter, read_arrow, write_arrow};
use super::{Retained, Running};

/// The batch that all queries are at, and how the partitions of the stream stand.
#[derive(Default)]
struct Shared {
    batch: Option<Arc<Batch>>,
    partition: usize,
    states: Vec<PartitionState>,
    names: Vec<String>,
    /// When the batch came, where that was earlier than it is read.
    came_at: Option<Duration>,
    /// Columns that queries may go by, or none of them, and the oldest of their times to come.
    oldest: Vec<(Option<String>, Option<i64>)>,
}

/// A handle on the batch that all queries are at; each reads it in its turn.
#[derive(Clone)]
pub(crate) struct SharedTable {
    schema: SchemaRef,
    shared: Arc<Mutex<Shared>>,
}

impl SharedTable {
    /// The stream that `ingest` reads.
    pub(crate) fn of(ingest: &Ingest) -> Self {
        let partitions = ingest.partitions();
        let columns = ingest.schema().fields().iter();
        let columns = columns.map(|field| Some(field.name().clone()));
        let shared = Shared {
            oldest: columns.chain([None]).map(|time| (time, None)).collect(),
            states: vec![PartitionState::default(); partitions],
            names: (0..partitions)
                .map(|index| ingest.partition_name(index))
                .collect(),
            ..Shared::default()
        };
        SharedTable {
            schema: Arc::clone(ingest.schema()),
            shared: Arc::new(Mutex::new(shared)),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Puts up what `ingest` has just read.
    fn put(&self, batch: Option<Arc<Batch>>, ingest: &Ingest) {
        let mut shared = self.lock();
        shared.batch = batch;
        shared.partition = ingest.partition();
        shared.came_at = ingest.came_at();
        for (time, oldest) in &mut shared.oldest {
            *oldest = ingest.oldest_to_come(time.as_deref());
        }
        for (partition, state) in shared.states.iter_mut().enumerate() {
            *state = ingest.partition_state(partition);
        }
    }
}

impl Table for SharedTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn begins_again(&self) -> bool {
        false
    }

    fn may_reject(&self) -> bool {
        false
    }

    fn open(&self, _columns: Option<&[String]>) -> Result<Origin> {
        let schema = Arc::clone(&self.schema);
        Ok(Origin::Encoded(Box::new(self.clone()), schema))
    }
}

impl EncodedSource for SharedTable {
    fn next_batch(&mut self) -> Result<Option<Arc<Batch>>> {
        Ok(self.lock().batch.clone())
    }

    fn rows_hint(&self) -> Option<u64> {
        None
    }

    fn oldest_to_come(&self, time: Option<&str>) -> Option<i64> {
        let shared = self.lock();
        let mut oldest = shared.oldest.iter();
        let found = oldest.find(|(column, _)| column.as_deref() == time);
        found.and_then(|(_, oldest)| *oldest)
    }

    fn goes_on(&self) -> bool {
        true
    }

    fn partitions(&self) -> usize {
        self.lock().states.len()
    }

    fn partition(&self) -> usize {
        self.lock().partition
    }

    fn partition_state(&self, partition: usize) -> PartitionState {
        self.lock()
            .states
            .get(partition)
            .copied()
            .unwrap_or_default()
    }

    fn partition_name(&self, partition: usize) -> String {
        let shared = self.lock();
        shared.names.get(partition).cloned().unwrap_or_default()
    }

    fn came_at(&self) -> Option<Duration> {
        self.lock().came_at
    }
}

/// A query that stands over the stream.
struct Member {
    name: Arc<str>,
    running: Running,
    open: bool,
}

impl Member {
    /// Takes in the batch that all are at; where the stream has `ended`, all that is left.
    fn take_step(&mut self, ended: bool) -> Result<()> {
        while self.open {
            let stepped = self.running.take_step();
            self.open = stepped.map_err(|error| of_query(&self.name, error))?;
            if !ended {
                break;
            }
        }
        Ok(())
    }
}

/// What fills the panes that some of the queries share.
pub(crate) struct Filler {
    /// The names of the queries.
    name: String,
    running: Running,
    panes: ReadFrom,
}

impl Filler {
    /// What fills `panes` for the queries called `name`.
    pub(crate) fn new(name: String, running: Running, panes: ReadFrom) -> Self {
        Filler {
            name,
            running,
            panes,
        }
    }
}

/// Queries that run together over one stream; an iterator of their results, each with the name of
/// its query.
///
/// Made by [`Stream::standing`](crate::stream::Stream::standing).
pub struct Standing {
    ingest: Ingest,
    table: SharedTable,
    /// What fills panes for queries that share them.
    fillers: Vec<Filler>,
    members: Vec<Member>,
    /// What keeps the stream, where it is kept.
    keeper: Option<Running>,
    ready: VecDeque<(Arc<str>, RecordBatch)>,
    finished: bool,
    /// What went wrong behind the results that are ready, after which nothing goes on.
    failed: Option<Error>,
    /// Whether the iterator has told an error.
    is_over: bool,
}

impl Standing {
    /// Queries by name over what `ingest` reads and `table` hands on, and what keeps it.
    pub(crate) fn new(
        ingest: Ingest,
        table: SharedTable,
        (fillers, queries): (Vec<Filler>, Vec<(String, Running)>),
        keeper: Option<Running>,
    ) -> Self {
        let member = |(name, running): (String, Running)| Member {
            name: name.into(),
            running,
            open: true,
        };
        Standing {
            ingest,
            table,
            fillers,
            members: queries.into_iter().map(member).collect(),
            keeper,
            ready: VecDeque::new(),
            finished: false,
            failed: None,
            is_over: false,
        }
    }

    /// The queries, by name: for columns, figures, late rows, and what holds windows open.
    pub fn queries(&mut self) -> impl Iterator<Item = (&str, &mut Running)> {
        let members = self.members.iter_mut();
        members.map(|member| (&*member.name, &mut member.running))
    }

    /// Which queries share panes, a line for each set of them; the lines of a query say it too.
    pub fn sharing(&self) -> impl Iterator<Item = &str> {
        self.fillers.iter().map(|filler| &*filler.panes.shown)
    }

    /// All state of all queries, to be given to [`Standing::restore`] of a fresh run of the same
    /// queries over the rest of the stream. Results that wait to be taken are part of it, a
    /// retained range is not.
    ///
    /// # Errors
    /// What the source and the queries say; the error of a run that has failed.
    pub fn snapshot(&mut self) -> Result<Vec<u8>> {
        self.check_failed()?;
        // No later run knows which of these rows were read.
        while self.ingest.reads_history() && self.step()? {}
        let mut out = StateWriter::default();
        out.list(self.ready.iter(), |out, (name, _)| {
            out.blob(name.as_bytes())
        });
        write_arrow(self.ready.iter().map(|(_, rows)| rows), &mut out)?;
        out.bool(self.finished);
        self.ingest.snapshot(false, &mut out)?;
        for filler in &mut self.fillers {
            filler.running.snapshot_member(&mut out)?;
        }
        for member in &mut self.members {
            out.blob(member.name.as_bytes());
            out.bool(member.open);
            member.running.snapshot_member(&mut out)?;
        }
        Ok(out.seal())
    }

    /// Takes over the state of another run, before the first batch.
    ///
    /// # Errors
    /// `Corrupt` when the bytes are damaged or belong to other queries.
    pub fn restore(&mut self, snapshot: &[u8]) -> Result<()> {
        let from = &mut StateReader::open(snapshot)?;
        let names: Vec<Arc<str>> = from.list(|from| {
            let name = from.blob()?;
            let of_name = |member: &&Member| member.name.as_bytes() == name;
            let member = self.members.iter().find(of_name);
            Ok(Arc::clone(&member.ok_or_else(other_queries)?.name))
        })?;
        let waiting: Vec<RecordBatch> = read_arrow(from)?;
        self.ready = names.into_iter().zip(waiting).collect();
        self.finished = from.bool()?;
        self.ingest.restore(false, from)?;
        self.ingest.pass_over(false)?;
        for filler in &mut self.fillers {
            filler.running.restore_member(from)?;
        }
        for member in &mut self.members {
            if from.blob()? != member.name.as_bytes() {
                return Err(other_queries());
            }
            member.open = from.bool()?;
            member.running.restore_member(from)?;
        }
        Ok(())
    }

    /// The retained range, if the stream is kept.
    pub fn retained(&self) -> Option<&Retained> {
        self.keeper.as_ref().and_then(Running::retained)
    }

    /// How many rows will arrive, where that is known.
    pub fn rows_hint(&self) -> Option<u64> {
        self.ingest.rows_hint()
    }

    /// Rows the source could not read and left out.
    pub fn rejected_rows(&self) -> u64 {
        self.ingest.rejected_rows()
    }

    /// Nanoseconds spent encoding.
    pub fn encode_ns(&self) -> u64 {
        self.ingest.encode_ns
    }

    /// Gives all queries up: waits for their threads. Nothing more comes out.
    pub fn stop(&mut self) {
        self.finished = true;
        self.failed = None;
        self.ready.clear();
        let members = self.members.iter_mut().map(|member| &mut member.running);
        let fillers = self.fillers.iter_mut().map(|filler| &mut filler.running);
        members.chain(fillers).for_each(Running::stop);
    }

    /// Takes one batch of the source through all queries; false at the end, or when no query wants
    /// more.
    ///
    /// # Errors
    /// What reading and a query say, the query named, once the results before it were taken, and
    /// again at every step behind that.
    pub fn step(&mut self) -> Result<bool> {
        self.check_failed()?;
        let stepped = self.take_step();
        self.failed = stepped.as_ref().err().cloned();
        match stepped {
            Err(_) if !self.ready.is_empty() => Ok(true),
            stepped => stepped,
        }
    }

    fn check_failed(&self) -> Result<()> {
        self.failed.clone().map_or(Ok(()), Err)
    }

    fn take_step(&mut self) -> Result<bool> {
        if self.finished {
            return Ok(false);
        }
        let batch = self.ingest.next_batch(false)?;
        let ended = batch.is_none();
        self.table.put(batch, &self.ingest);
        if let Some(keeper) = &mut self.keeper {
            keeper.take_step()?;
        }
        for filler in &mut self.fillers {
            filler.panes.panes.clear();
            let stepped = filler.running.take_step();
            stepped.map_err(|error| of_query(&filler.name, error))?;
        }
        for member in &mut self.members {
            let stepped = member.take_step(ended);
            let results = std::iter::from_fn(|| member.running.take_result());
            self.ready
                .extend(results.map(|rows| (Arc::clone(&member.name), rows)));
            stepped?;
        }
        let wanted = self.keeper.is_some() || self.members.iter().any(|member| member.open);
        self.finished = ended || !wanted;
        Ok(!self.finished)
    }

    /// Takes a result, if one is ready: the name of its query, and its rows.
    pub fn take_result(&mut self) -> Option<(Arc<str>, RecordBatch)> {
        self.ready.pop_front()
    }
}

impl Iterator for Standing {
    type Item = Result<(Arc<str>, RecordBatch)>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(result) = self.take_result() {
                return Some(Ok(result));
            }
            if self.is_over {
                return None;
            }
            match self.step() {
                Ok(true) => {}
                Ok(false) => return self.take_result().map(Ok),
                Err(error) => {
                    self.is_over = true;
                    return Some(Err(error));
                }
            }
        }
    }
}

/// `error`, which says which query it is of.
fn of_query(name: &str, error: Error) -> Error {
    let hint = format!("in the query `{name}`");
    match error.hint_text() {
        Some(said) => {
            let hint = format!("{said}; {hint}");
            error.hint(hint)
        }
        None => error.hint(hint),
    }
}

/// The error of a snapshot of other queries than these.
fn other_queries() -> Error {
    Error::corrupt("the snapshot belongs to other queries")
        .hint("restore with the queries it was taken with, in the same order")
}
