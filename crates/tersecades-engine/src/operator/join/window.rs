//! `window_join`: rows of both streams with equal keys in the same window.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_cast::cast;
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use tersecades_columnar::error::{Error, Result};

use crate::operator::row::kept::{KeptRows, NO_ROW};
use crate::operator::row::keys::KeyIds;
use crate::operator::row::shape::{OUTPUT_ROWS, batch_of, read_batches, write_batches};
use crate::operator::window_aggregate::plan::tick_ns;
use crate::runtime::state::{StateReader, StateWriter};
use crate::source::{Rejected, Source, SourceState};
use crate::window::{Boundaries, Span, Window, Windowing};

use super::kind::{JoinKind, check_memory};
use super::residual::Residual;
use super::side::{JoinColumns, SideKeys, bind_keys};
use super::table::{JoinSpec, describe, state_of};
use super::timed::{TimedInput, TimedRows, is_right_next};

/// The windows of a join.
#[derive(Debug, Clone)]
pub struct WindowJoinSpec {
    /// Which windows.
    pub window: Window,
}

/// Windows whose boundaries are the same for all keys, and which come out once.
///
/// # Errors
/// `Unsupported` for other windows, `InvalidArgument` for lengths of no whole number of ticks.
pub(crate) fn aligned(window: &Window, unit: TimeUnit) -> Result<Arc<dyn Boundaries>> {
    if window.updates.are_possible() {
        let message = format!("rows of {window} windows, which come out more than once");
        return Err(Error::unsupported(message).hint(
            "leave allowed lateness and emit out; say how late rows may come with the event time",
        ));
    }
    match window.bind(tick_ns(unit))? {
        Windowing::Aligned(boundaries) => Ok(boundaries),
        _ => Err(Error::unsupported(format!("rows of {window} windows"))
            .hint("use windows whose boundaries are the same for all keys")),
    }
}

impl WindowJoinSpec {
    /// Refuses what this join has no meaning for.
    ///
    /// # Errors
    /// `Unsupported` for windows that differ between keys, what binding the event times and the
    /// residual condition says.
    pub fn check(&self, spec: &JoinSpec, (columns, unit): (&JoinColumns, TimeUnit)) -> Result<()> {
        super::interval::check_timed(spec, columns)?;
        aligned(&self.window, unit).map(|_| ())
    }
}

/// `schema` after the boundaries of a window, which are of type `time`.
///
/// # Errors
/// `SchemaMismatch` when it names such columns already.
pub(crate) fn with_window(schema: &Schema, time: DataType) -> Result<SchemaRef> {
    let mut fields = vec![
        Arc::new(Field::new("window_start", time.clone(), true)),
        Arc::new(Field::new("window_end", time, true)),
    ];
    for field in schema.fields() {
        if fields.iter().any(|known| known.name() == field.name()) {
            let message = format!("a joined stream has a column `{}` already", field.name());
            return Err(Error::schema(message).hint("rename it before the join"));
        }
        fields.push(Arc::clone(field));
    }
    let metadata = schema.metadata().clone();
    Ok(Arc::new(Schema::new_with_metadata(fields, metadata)))
}

/// A column of one time of type `time`.
///
/// # Errors
/// What casting says.
pub(crate) fn constant_time(ticks: i64, rows: usize, time: &DataType) -> Result<ArrayRef> {
    let values = arrow_array::Int64Array::from(vec![ticks; rows]);
    Ok(cast(&values, time)?)
}

/// The windows that hold `time` and are open at `watermark`, in order of their ends, and whether
/// any window holds it at all.
pub(crate) fn windows_of(windows: &dyn Boundaries, time: i64, watermark: i64) -> (Vec<Span>, bool) {
    let (mut open, mut held) = (Vec::new(), false);
    let mut next = windows.ending_after(time);
    while next.start <= i128::from(time) {
        held = true;
        if next.end > i128::from(watermark) {
            open.push(next);
        }
        let Ok(end) = i64::try_from(next.end) else {
            break;
        };
        next = windows.ending_after(end);
    }
    (open, held)
}

/// Rows of one side of an open window, with the number of their key; none for keys that equal
/// nothing.
type Members = Vec<(u64, Option<u32>)>;

struct Open {
    span: Span,
    ids: KeyIds,
    sides: [Members; 2],
    /// Rows of each side that are in no later window.
    leaving: [Vec<u64>; 2],
}

impl Open {
    fn new(span: Span) -> Self {
        Open {
            span,
            ids: KeyIds::default(),
            sides: Default::default(),
            leaving: Default::default(),
        }
    }
}

/// A join inside windows.
pub struct WindowJoin {
    inputs: [TimedInput; 2],
    keys: [SideKeys; 2],
    rows: [KeptRows; 2],
    columns: JoinColumns,
    residual: Residual,
    schema: SchemaRef,
    spec: JoinSpec,
    windows: Arc<dyn Boundaries>,
    /// By their ends.
    open: BTreeMap<i128, Open>,
    ready: VecDeque<RecordBatch>,
    late_rows: u64,
    /// Rows in no window at all.
    skipped_rows: u64,
    limit: Option<usize>,
    rejected: Rejected,
}

impl WindowJoin {
    /// A join of running inputs.
    ///
    /// # Errors
    /// What binding says.
    pub fn new(
        (left, right): (TimedInput, TimedInput),
        (columns, time): (JoinColumns, DataType),
        spec: &JoinSpec,
        (window, unit, limit): (&WindowJoinSpec, TimeUnit, Option<usize>),
    ) -> Result<Self> {
        let schemas = (left.schema(), right.schema());
        let null_equals_null = spec.options.null_equals_null;
        let keys = bind_keys((&schemas.0, &schemas.1), &spec.on, null_equals_null)?;
        Ok(WindowJoin {
            rows: [KeptRows::new(&schemas.0)?, KeptRows::new(&schemas.1)?],
            keys: [keys.0, keys.1],
            inputs: [left, right],
            schema: with_window(&columns.output, time)?,
            spec: spec.clone(),
            windows: aligned(&window.window, unit)?,
            residual: Residual::bind(spec.options.residual.as_ref(), &columns)?,
            columns,
            open: BTreeMap::new(),
            ready: VecDeque::new(),
            late_rows: 0,
            skipped_rows: 0,
            limit,
            rejected: Rejected::default(),
        })
    }

    fn byte_size(&self) -> usize {
        let open = self.open.values().map(|open| {
            let members: usize = open.sides.iter().map(Vec::len).sum();
            let leaving: usize = open.leaving.iter().map(Vec::len).sum();
            let members = members * size_of::<(u64, Option<u32>)>();
            open.ids.byte_size() + members + leaving * size_of::<u64>()
        });
        open.sum::<usize>() + self.rows.iter().map(KeptRows::byte_size).sum::<usize>()
    }

    /// Puts rows of one side into their windows.
    fn place(&mut self, side: usize, batch: TimedRows) -> Result<()> {
        let keyed = self.keys[side].of(&batch.rows)?;
        let first = self.rows[side].push(batch.rows)?;
        for (index, (time, watermark)) in batch.times.iter().zip(&batch.watermarks).enumerate() {
            let row = first + index as u64;
            let (spans, held) = windows_of(&*self.windows, *time, *watermark);
            if spans.is_empty() {
                match held {
                    true => self.late_rows += 1,
                    false => self.skipped_rows += 1,
                }
                self.rows[side].release(row);
                continue;
            }
            self.inputs[side].running().check_interrupt()?;
            let last = spans.last().map(|span| span.end);
            for span in spans {
                let open = self.open.entry(span.end);
                let open = open.or_insert_with(|| Open::new(span));
                let id = keyed
                    .key(index)
                    .map(|key| open.ids.insert(key))
                    .transpose()?;
                open.sides[side].push((row, id.map(|(id, _)| id)));
                if last == Some(span.end) {
                    open.leaving[side].push(row);
                }
            }
        }
        Ok(())
    }

    /// Hands out the windows that both watermarks have passed.
    fn close(&mut self) -> Result<()> {
        let [left, right] = &self.inputs;
        let watermark = i128::from(left.watermark().min(right.watermark()));
        let all = left.is_ended() && right.is_ended();
        while let Some(entry) = self.open.first_entry() {
            if *entry.key() > watermark && !all {
                break;
            }
            let open = entry.remove();
            let passing = self.passing(&open)?;
            let pairs = pairs_of(self.columns.kind, &open, passing.as_deref());
            for part in pairs.chunks(OUTPUT_ROWS) {
                self.inputs[0].running().check_interrupt()?;
                let batch = self.make(&open.span, part)?;
                self.ready.push_back(batch);
            }
            for (rows, leaving) in self.rows.iter_mut().zip(&open.leaving) {
                leaving.iter().for_each(|row| rows.release(*row));
            }
        }
        Ok(())
    }

    /// Of which candidates of a window, left by left, the residual condition is true.
    fn passing(&mut self, open: &Open) -> Result<Option<Vec<bool>>> {
        let mut pairs = Vec::new();
        if self.residual.is_some() {
            let by_id = open.rights();
            for (left, id) in open.sides[0]
                .iter()
                .filter_map(|(row, id)| Some((row, (*id)?)))
            {
                let rights = by_id[id as usize].iter();
                pairs.extend(rights.map(|at| (*left, open.sides[1][*at].0)));
            }
        }
        let [lefts, rights] = &mut self.rows;
        self.residual.passing(&pairs, |pairs| {
            let (left, right): (Vec<u64>, Vec<u64>) = pairs.iter().copied().unzip();
            let mut columns = lefts.pick(&left)?;
            columns.extend(rights.pick(&right)?);
            Ok(columns)
        })
    }

    fn make(&mut self, span: &Span, pairs: &[(u64, u64)]) -> Result<RecordBatch> {
        let count = pairs.len();
        let time = self.schema.field(0).data_type();
        let start = constant_time(span.first(), count, time)?;
        let end = constant_time(span.last().saturating_add(1), count, time)?;
        let mut columns = vec![start, end];
        if self.columns.kind.shows_left() {
            let rows: Vec<u64> = pairs.iter().map(|(left, _)| *left).collect();
            columns.extend(self.rows[0].pick(&rows)?);
        }
        if self.columns.kind.shows_right() {
            let rows: Vec<u64> = pairs.iter().map(|(_, right)| *right).collect();
            columns.extend(self.rows[1].pick(&rows)?);
        }
        batch_of(&self.schema, columns, count)
    }
}

impl Open {
    /// Positions of the right rows of each key, in order of arrival.
    fn rights(&self) -> Vec<Vec<usize>> {
        let mut by_id = vec![Vec::new(); self.ids.len()];
        for (at, (_, id)) in self.sides[1].iter().enumerate() {
            if let Some(id) = id {
                by_id[*id as usize].push(at);
            }
        }
        by_id
    }
}

/// What a window gives: left rows in order of arrival, each with its right rows in theirs, then
/// right rows without one; of the candidates, left by left, only those that are `passing`.
fn pairs_of(kind: JoinKind, open: &Open, passing: Option<&[bool]>) -> Vec<(u64, u64)> {
    let rights = &open.sides[1];
    let by_id = open.rights();
    let (mut with_left, mut paired) = (vec![false; by_id.len()], vec![false; rights.len()]);
    let mut passes = passing.map(|passing| passing.iter());
    // Without a condition one right row says as much as all of them.
    let wanted = match kind.shows_pairs() || passing.is_some() {
        true => usize::MAX,
        false => 1,
    };
    let (mut pairs, mut found) = (Vec::new(), Vec::new());
    for (row, id) in &open.sides[0] {
        found.clear();
        if let Some(id) = id {
            with_left[*id as usize] = true;
            let candidates = by_id[*id as usize].iter().take(wanted).copied();
            found.extend(candidates.filter(|_| {
                let next = passes.as_mut().map(Iterator::next);
                next.is_none_or(|passes| passes == Some(&true))
            }));
        }
        found.iter().for_each(|at| paired[*at] = true);
        match kind {
            JoinKind::LeftSemi if !found.is_empty() => pairs.push((*row, NO_ROW)),
            _ if kind.shows_pairs() => pairs.extend(found.iter().map(|at| (*row, rights[*at].0))),
            _ => {}
        }
        if found.is_empty() && kind.keeps_left() {
            pairs.push((*row, NO_ROW));
        }
    }
    for (at, (row, id)) in rights.iter().enumerate() {
        let paired = match passing {
            Some(_) => paired[at],
            None => id.is_some_and(|id| with_left[id as usize]),
        };
        if (kind.keeps_right() && !paired) || (kind == JoinKind::RightSemi && paired) {
            pairs.push((NO_ROW, *row));
        }
    }
    pairs
}

impl WindowJoin {
    /// The next rows, without counting those that the inputs left out.
    fn next_rows(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(rows) = self.ready.pop_front() {
                return Ok(Some(rows));
            }
            let [left, right] = &self.inputs;
            if left.is_ended() && right.is_ended() {
                return Ok(None);
            }
            let side = usize::from(is_right_next(left, right));
            if let Some(batch) = self.inputs[side].next_timed()? {
                self.place(side, batch)?;
            }
            self.close()?;
            check_memory(self.byte_size(), self.limit)?;
            if self.inputs[side].is_waiting() {
                return Ok(Some(RecordBatch::new_empty(self.schema())));
            }
        }
    }
}

impl Source for WindowJoin {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn next(&mut self) -> Result<Option<RecordBatch>> {
        let next = self.next_rows();
        let [left, right] = &self.inputs;
        let (left, right) = (left.running(), right.running());
        self.rejected.count_rows = left.rejected_rows() + right.rejected_rows();
        next
    }

    fn rejected(&self) -> &Rejected {
        &self.rejected
    }

    fn state(&self) -> SourceState {
        let [left, right] = &self.inputs;
        let mut state = state_of((left.state(), right.state()), self.byte_size());
        state.late_rows += self.late_rows;
        state.skipped_rows += self.skipped_rows;
        state
    }

    fn describe(&self) -> Vec<String> {
        let [left, right] = &self.inputs;
        describe(self.spec.label(), (left.running(), right.running()))
    }

    fn runs_queries(&self) -> bool {
        true
    }

    fn identity(&self) -> String {
        self.spec.identity()
    }

    fn snapshot(&mut self, out: &mut StateWriter) -> Result<()> {
        self.inputs
            .iter_mut()
            .try_for_each(|input| input.snapshot(out))?;
        for rows in &mut self.rows {
            rows.snapshot_numbered(out)?;
        }
        out.list(self.open.values(), |out, open| {
            out.i128(open.span.start);
            out.i128(open.span.end);
            open.ids.snapshot(out);
            for members in &open.sides {
                out.list(members.iter(), |out, (row, id)| {
                    out.u64(*row);
                    out.u64(id.map_or(u64::MAX, u64::from));
                });
            }
            for leaving in &open.leaving {
                out.list(leaving.iter(), |out, row| out.u64(*row));
            }
        });
        write_batches(&self.ready, out)?;
        out.u64(self.late_rows);
        out.u64(self.skipped_rows);
        Ok(())
    }

    fn restore(&mut self, from: &mut StateReader<'_>) -> Result<()> {
        self.inputs
            .iter_mut()
            .try_for_each(|input| input.restore(from))?;
        for rows in &mut self.rows {
            rows.restore_numbered(from)?;
        }
        self.open = from.list(|from| {
            let (start, end) = (from.i128()?, from.i128()?);
            let ids = KeyIds::restore(from)?;
            let known = ids.len() as u64;
            let member = |from: &mut StateReader<'_>| {
                let (row, id) = (from.u64()?, from.u64()?);
                match id {
                    u64::MAX => Ok((row, None)),
                    id if id < known => Ok((row, Some(id as u32))),
                    _ => Err(Error::corrupt("a snapshot names a key that it lacks")),
                }
            };
            let open = Open {
                span: Span { start, end },
                ids,
                sides: [from.list(member)?, from.list(member)?],
                leaving: [from.list(StateReader::u64)?, from.list(StateReader::u64)?],
            };
            Ok((end, open))
        })?;
        self.ready = read_batches(&self.schema, from)?;
        self.late_rows = from.u64()?;
        self.skipped_rows = from.u64()?;
        Ok(())
    }
}
