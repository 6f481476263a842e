//! `join`: the right stream is kept whole and indexed by key, the left one goes past it.

use arrow_array::{ArrayRef, RecordBatch, UInt32Array, new_null_array};
use arrow_schema::SchemaRef;
use arrow_select::take::take as take_array;
use tersecades_columnar::error::{Error, Result};

use crate::operator::row::kept::{KeptRows, NO_ROW};
use crate::operator::row::key_number::KeyNumbers;
use crate::operator::row::shape::{OUTPUT_ROWS, batch_of, read_batches, write_batches};
use crate::runtime::state::{StateReader, StateWriter};
use crate::runtime::{Interrupt, Running};
use crate::source::{Rejected, Source, SourceState};

use super::kind::{JoinKind, check_memory};
use super::pair_condition::PairCondition;
use super::side::{JoinColumns, SideKeys, bind_keys};
use super::table::{JoinSpec, describe, state_of};

/// The end of a chain of rows with one key.
const END: u32 = u32::MAX;

/// The right stream, by key.
struct Built {
    rows: KeptRows,
    keys: KeyNumbers,
    /// First and last row of each key.
    ends: Vec<(u32, u32)>,
    /// The row of the same key after each row.
    next: Vec<u32>,
    /// Which rows have had a pair.
    paired: Vec<bool>,
}

impl Built {
    /// Adds rows of the right stream.
    fn add(&mut self, rows: RecordBatch, keys: &SideKeys) -> Result<()> {
        let first = self.next.len();
        if first + rows.num_rows() > END as usize {
            return Err(Error::limit("the right side of a join has 2^32 rows"));
        }
        let of_rows = keys.numbers(&rows, |columns, rows| self.keys.assign(columns, rows))?;
        self.ends.resize(self.keys.len(), (END, END));
        self.next.resize(first + rows.num_rows(), END);
        self.paired.resize(first + rows.num_rows(), false);
        for (row, key) in (first as u32..).zip(of_rows) {
            let Some((first, last)) = self.ends.get_mut(key as usize) else {
                continue;
            };
            match *last {
                END => *first = row,
                last => self.next[last as usize] = row,
            }
            *last = row;
        }
        self.rows.push(rows).map(|_| ())
    }
}

/// A batch of the left stream on its way past the right one.
struct Probe {
    rows: RecordBatch,
    /// The first candidate of each row.
    firsts: Vec<u32>,
    /// The row that is next to be looked at, and its next candidate once it has begun.
    row: usize,
    candidate: Option<u32>,
    /// Whether that row has had a pair already.
    paired: bool,
}

/// A join of equal keys.
pub struct EqualJoin {
    left: Running,
    right: Running,
    columns: JoinColumns,
    /// Positions of the left and of the right columns that come out.
    shown: (Vec<usize>, Vec<usize>),
    keys: (SideKeys, SideKeys),
    residual: Option<PairCondition>,
    spec: JoinSpec,
    built: Built,
    is_built: bool,
    probe: Option<Probe>,
    /// Right rows looked at, at the end.
    swept: usize,
    limit: Option<usize>,
    rejected: Rejected,
}

impl EqualJoin {
    /// Refuses what this join has no meaning for.
    ///
    /// # Errors
    /// What binding the residual condition says; `InvalidArgument` for a cross join with keys.
    pub fn check(spec: &JoinSpec, columns: &JoinColumns) -> Result<()> {
        if spec.kind == JoinKind::Cross && !spec.on.is_empty() {
            return Err(Error::invalid("a cross join has no keys").hint("use an inner join"));
        }
        let residual = spec.options.residual.as_ref();
        residual.map_or(Ok(()), |condition| {
            PairCondition::bind(condition, columns).map(|_| ())
        })
    }

    /// A join of running inputs, of which the `wanted` columns come out.
    ///
    /// # Errors
    /// What binding says.
    pub fn new(
        (left, right): (Running, Running),
        (mut columns, wanted): (JoinColumns, Option<&[String]>),
        spec: &JoinSpec,
        limit: Option<usize>,
    ) -> Result<Self> {
        let schemas = (left.schema(), right.schema());
        let residual = spec.options.residual.as_ref();
        let bind = |condition| PairCondition::bind(condition, &columns);
        let residual = residual.map(bind).transpose()?;
        let shown = columns.show(wanted)?;
        let null_equals_null = spec.options.null_equals_null;
        let keys = bind_keys((&schemas.0, &schemas.1), &spec.on, null_equals_null)?;
        Ok(EqualJoin {
            residual,
            spec: spec.clone(),
            built: Built {
                rows: KeptRows::new(&schemas.1)?,
                keys: keys.1.key_numbers()?,
                ends: Vec::new(),
                next: Vec::new(),
                paired: Vec::new(),
            },
            keys,
            shown,
            is_built: false,
            probe: None,
            swept: 0,
            left,
            right,
            columns,
            limit,
            rejected: Rejected::default(),
        })
    }

    fn byte_size(&self) -> usize {
        let built = &self.built;
        let links = size_of_val(&built.next[..]) + size_of_val(&built.ends[..]);
        let residual = self.residual.as_ref().map_or(0, PairCondition::byte_size);
        built.rows.byte_size() + built.keys.byte_size() + links + built.paired.len() + residual
    }

    /// Reads the right stream to its end.
    fn build(&mut self) -> Result<()> {
        while let Some(rows) = self.right.next().transpose()? {
            self.built.add(rows, &self.keys.1)?;
            check_memory(self.byte_size() + self.right.state_bytes(), self.limit)?;
        }
        self.is_built = true;
        Ok(())
    }

    /// Sends `rows` of the left stream past the right one, from `row` on.
    fn probe(&self, rows: RecordBatch, row: usize) -> Result<Probe> {
        let built = &self.built;
        let find = |columns: &[ArrayRef], rows| built.keys.find(columns, rows);
        let mut firsts = self.keys.0.numbers(&rows, find)?;
        let first = |key: u32| {
            built
                .ends
                .get(key as usize)
                .map_or(END, |(first, _)| *first)
        };
        firsts.iter_mut().for_each(|key| *key = first(*key));
        Ok(Probe {
            firsts,
            rows,
            row,
            candidate: None,
            paired: false,
        })
    }

    /// Candidate pairs from where the probe stands: left row, right row.
    ///
    /// The last left row may have more of them.
    fn candidates(&self, probe: &mut Probe) -> Vec<(u32, u32)> {
        let built = &self.built;
        let mut pairs = Vec::new();
        // Without a condition the first candidate says that there is a pair.
        let one = self.residual.is_none() && self.columns.kind == JoinKind::LeftSemi;
        while probe.row < probe.rows.num_rows() {
            let first = probe.firsts[probe.row];
            let mut candidate = probe.candidate.take().unwrap_or(first);
            while candidate != END {
                if pairs.len() >= OUTPUT_ROWS {
                    probe.candidate = Some(candidate);
                    return pairs;
                }
                pairs.push((probe.row as u32, candidate));
                candidate = if one {
                    END
                } else {
                    built.next[candidate as usize]
                };
            }
            probe.row += 1;
        }
        pairs
    }

    /// The pairs for which the residual condition is true.
    fn passing(&mut self, rows: &RecordBatch, pairs: Vec<(u32, u32)>) -> Result<Vec<(u32, u32)>> {
        match &mut self.residual {
            Some(residual) if !pairs.is_empty() => {
                residual.passing(rows, &mut self.built.rows, pairs)
            }
            _ => Ok(pairs),
        }
    }

    /// The next rows from the probe; `None` when there are none among those looked at.
    fn advance(&mut self, mut probe: Probe) -> Result<Option<RecordBatch>> {
        let first = probe.row;
        let carried = probe.paired;
        let candidates = self.candidates(&mut probe);
        let pairs = self.passing(&probe.rows, candidates)?;
        for (_, right) in &pairs {
            self.built.paired[*right as usize] = true;
        }
        let kind = self.columns.kind;
        let mut output: Vec<(Option<u32>, u64)> = Vec::new();
        let mut rest = pairs.as_slice();
        for row in first..probe.row.max(first) {
            let own = rest.iter().take_while(|(left, _)| *left == row as u32);
            let own = own.count();
            let (own, following) = rest.split_at(own);
            rest = following;
            let before = row == first && carried;
            emit(kind, row as u32, (own, before, true), &mut output);
        }
        probe.paired = false;
        if probe.row < probe.rows.num_rows() {
            let before = probe.row == first && carried;
            emit(kind, probe.row as u32, (rest, before, false), &mut output);
            probe.paired = before || !rest.is_empty();
        }
        let made = match output.is_empty() {
            true => None,
            false => Some(self.make(Some(&probe.rows), &output)?),
        };
        if probe.row < probe.rows.num_rows() {
            self.probe = Some(probe);
        }
        Ok(made)
    }

    /// Right rows that come out after the left stream has ended.
    fn sweep(&mut self) -> Result<Option<RecordBatch>> {
        let wanted = match self.columns.kind {
            JoinKind::RightSemi => true,
            kind if kind.keeps_right() => false,
            _ => return Ok(None),
        };
        let mut output = Vec::new();
        while self.swept < self.built.paired.len() && output.len() < OUTPUT_ROWS {
            if self.built.paired[self.swept] == wanted {
                output.push((None, self.swept as u64));
            }
            self.swept += 1;
        }
        match output.is_empty() {
            true => Ok(None),
            false => self.make(None, &output).map(Some),
        }
    }

    fn make(
        &mut self,
        left: Option<&RecordBatch>,
        output: &[(Option<u32>, u64)],
    ) -> Result<RecordBatch> {
        let rows = output.len();
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(self.columns.output.fields().len());
        let positions: UInt32Array = match self.shown.0.is_empty() {
            true => UInt32Array::new_null(0),
            false => output.iter().map(|(left, _)| *left).collect(),
        };
        for index in &self.shown.0 {
            columns.push(match left {
                Some(rows) => take_array(rows.column(*index), &positions, None)?,
                None => new_null_array(self.columns.both.field(*index).data_type(), rows),
            });
        }
        if !self.shown.1.is_empty() {
            let rights: Vec<u64> = output.iter().map(|(_, right)| *right).collect();
            let kept = &mut self.built.rows;
            columns.extend(kept.pick_columns(&self.shown.1, &rights, &Interrupt::default())?);
        }
        batch_of(&self.columns.output, columns, rows)
    }
}

fn as_output(pairs: &[(u32, u32)]) -> impl Iterator<Item = (Option<u32>, u64)> {
    let pairs = pairs.iter();
    pairs.map(|(left, right)| (Some(*left), u64::from(*right)))
}

/// What comes out for one left row: its `pairs` of this part, whether it had some before, and
/// whether it has all of them now.
fn emit(
    kind: JoinKind,
    row: u32,
    (pairs, before, complete): (&[(u32, u32)], bool, bool),
    output: &mut Vec<(Option<u32>, u64)>,
) {
    let paired = before || !pairs.is_empty();
    match kind {
        JoinKind::LeftSemi if !before && !pairs.is_empty() => output.push((Some(row), NO_ROW)),
        _ if kind.shows_pairs() => output.extend(as_output(pairs)),
        _ => {}
    }
    if complete && !paired && kind.keeps_left() {
        output.push((Some(row), NO_ROW));
    }
}

impl Source for EqualJoin {
    fn schema(&self) -> SchemaRef {
        SchemaRef::clone(&self.columns.output)
    }

    fn next(&mut self) -> Result<Option<RecordBatch>> {
        if !self.is_built {
            self.build()?;
        }
        let fruitless = self.built.next.is_empty() && !self.columns.kind.keeps_left();
        loop {
            if fruitless {
                return Ok(None);
            }
            // A condition that no pair passes gives nothing for long.
            self.left.check_interrupt()?;
            if let Some(probe) = self.probe.take() {
                if let Some(rows) = self.advance(probe)? {
                    return Ok(Some(rows));
                }
                continue;
            }
            let Some(rows) = self.left.next().transpose()? else {
                self.rejected.count_rows = self.left.rejected_rows() + self.right.rejected_rows();
                return self.sweep();
            };
            self.probe = Some(self.probe(rows, 0)?);
        }
    }

    fn rejected(&self) -> &Rejected {
        &self.rejected
    }

    fn state(&self) -> SourceState {
        state_of((&self.left, &self.right), self.byte_size())
    }

    fn describe(&self) -> Vec<String> {
        describe(self.spec.label(), (&self.left, &self.right))
    }

    fn runs_queries(&self) -> bool {
        true
    }

    fn identity(&self) -> String {
        self.spec.identity()
    }

    fn snapshot(&mut self, out: &mut StateWriter) -> Result<()> {
        self.left.snapshot_input(out)?;
        self.right.snapshot_input(out)?;
        self.built.rows.snapshot(out)?;
        out.list(self.built.paired.iter(), |out, paired| out.bool(*paired));
        out.bool(self.is_built);
        out.u64(self.swept as u64);
        let probe = self.probe.as_ref();
        write_batches(
            &probe.map(|probe| probe.rows.clone()).into_iter().collect(),
            out,
        )?;
        out.list(probe.into_iter(), |out, probe| {
            out.u64(probe.row as u64);
            out.u64(probe.candidate.map_or(u64::MAX, u64::from));
            out.bool(probe.paired);
        });
        Ok(())
    }

    fn restore(&mut self, from: &mut StateReader<'_>) -> Result<()> {
        self.left.restore_input(from)?;
        self.right.restore_input(from)?;
        for rows in self.built.rows.read(from)? {
            self.built.add(rows, &self.keys.1)?;
        }
        self.built.paired = from.list(StateReader::bool)?;
        self.is_built = from.bool()?;
        self.swept = from.u64()? as usize;
        let rows = read_batches(&self.left.schema(), from)?.pop_front();
        let at: Vec<(u64, u64, bool)> =
            from.list(|from| Ok((from.u64()?, from.u64()?, from.bool()?)))?;
        let built = self.built.next.len();
        if let (Some(rows), Some((row, candidate, paired))) = (rows, at.first().copied()) {
            let mut probe = self.probe(rows, row as usize)?;
            let candidate = (candidate != u64::MAX).then_some(candidate);
            probe.candidate = candidate.map(|row| row as u32);
            probe.paired = paired;
            if candidate.is_some_and(|row| row >= built as u64) {
                return Err(Error::corrupt("a snapshot names a row that it lacks"));
            }
            self.probe = Some(probe);
        }
        match self.built.paired.len() == built {
            true => Ok(()),
            false => Err(Error::corrupt("a snapshot lacks rows of a join")),
        }
    }
}
