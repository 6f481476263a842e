//! Filters: the terms of a conjunction, run in the order that drops most rows for least work.
//!
//! Terms on columns and constants run encoded, in an order learnt from what they cost and keep.
//! Terms that must compute run after them, on the survivors, and last those of them that may fail,
//! in the order written (so that which error a bad row raises depends on nothing but the query).

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, BooleanArray};
use tersecades_columnar::bitmap::Bitmap;
use tersecades_columnar::codec::Work;
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::predicate::Predicate;
use tersecades_columnar::selection::{Selection, Shape};

use super::ast::Expression;
use super::bind::{bind_truth, operands};
use super::compute::Computation;
use super::encoded::{Encoded, Pool, is_encodable, lower};
use crate::frame::{Frame, LeftOver, Scope, Slot};

/// Rows after which what a term did counts half.
const MEMORY_ROWS: f64 = (1 << 20) as f64;

/// The share of a term's cost that is saved where who folds its column tests it; nothing is where a
/// batch lies in more than two windows or may have late rows, or windows leave gaps.
const LEFT_OVER_SAVES: f64 = 0.25;

/// Of so many frames one has no test left over, to learn what it keeps.
const LEARNING_FRAMES: u64 = 32;

/// What a row costs whatever its column looks like, in bytes.
const ROW_OVERHEAD_BYTES: f64 = 0.05;

/// A term that runs encoded, and what it did lately.
struct EncodedTerm {
    text: String,
    condition: Encoded,
    rows_in: f64,
    rows_kept: f64,
    rows_offered: f64,
    values_looked_at: f64,
    rank: f64,
    /// The same test, where it may be left to who folds its column.
    left_over: Option<LeftOver>,
}

/// A term that decodes survivors.
struct ComputedTerm {
    text: String,
    computation: Computation,
}

/// A condition bound to the columns of a stream.
///
/// Binding is cheap: each worker binds its own.
pub struct BoundFilter {
    encoded: Vec<EncodedTerm>,
    computed: Vec<ComputedTerm>,
    found: Selection,
    passed: Bitmap,
    pool: Pool,
    /// Frames that a term could have been left over of.
    frames: u64,
}

/// The terms of the condition `expression`, in the order written.
fn terms(expression: &Expression) -> Vec<&Expression> {
    match expression {
        Expression::And(..) => operands(expression),
        single => vec![single],
    }
}

/// The terms that run encoded and cannot fail, then those that compute on what they leave.
///
/// # Errors
/// What binding says.
pub(crate) fn split_terms<'a>(
    expression: &'a Expression,
    scope: &Scope,
) -> Result<[Vec<&'a Expression>; 2]> {
    let mut split = [Vec::new(), Vec::new()];
    for term in terms(expression) {
        let computes = !is_encodable(&bind_truth(term, scope)?);
        split[usize::from(computes)].push(term);
    }
    Ok(split)
}

impl BoundFilter {
    /// Binds `expression` to the columns of `scope`.
    ///
    /// # Errors
    /// `InvalidArgument` for unknown columns, `SchemaMismatch` and `Unsupported` when operators
    /// do not fit their operands or the expression is no condition.
    pub fn bind(expression: &Expression, scope: &Scope) -> Result<Self> {
        let mut filter = BoundFilter {
            encoded: Vec::new(),
            computed: Vec::new(),
            found: Selection::default(),
            passed: Bitmap::default(),
            pool: Pool::new(),
            frames: 0,
        };
        for term in terms(expression) {
            filter.add(term, scope)?;
        }
        let computed = &mut filter.computed;
        computed.sort_by_key(|term| term.computation.node().may_fail());
        Ok(filter)
    }

    fn add(&mut self, term: &Expression, scope: &Scope) -> Result<()> {
        let node = bind_truth(term, scope)?;
        let text = match term {
            Expression::Or(..) => format!("({term})"),
            other => other.to_string(),
        };
        if !is_encodable(&node) {
            self.computed.push(ComputedTerm {
                text,
                computation: Computation::new(node),
            });
            return Ok(());
        }
        let condition =
            lower(node, false).ok_or_else(|| Error::internal("an encodable term lowers"))?;
        for known in &mut self.encoded {
            if known.condition.absorb(&condition, true) {
                known.text = format!("{} AND {text}", known.text);
                return Ok(());
            }
        }
        self.encoded.push(EncodedTerm::new(text, condition));
        Ok(())
    }

    /// Leaves a term that tests the column at `slot`, if there is one, to who folds the column.
    pub(crate) fn leave_over(&mut self, slot: Option<Slot>) {
        let slot = slot.filter(|_| self.computed.is_empty());
        for term in &mut self.encoded {
            let test = term.condition.test().filter(|test| Some(test.0) == slot);
            term.left_over = test.map(|(slot, ranges)| LeftOver {
                slot,
                predicate: Arc::new(Predicate::Keys(ranges.to_vec())),
            });
        }
    }

    /// The term that is left over of `frame`: where testing the others on rows that it would drop
    /// costs less than is saved.
    fn left_over(&mut self, frame: &Frame) -> Option<usize> {
        let is_native = |test: &LeftOver| frame.column(test.slot).folds_where(&test.predicate);
        let mut terms = self.encoded.iter();
        let at = terms.position(|term| term.left_over.as_ref().is_some_and(is_native))?;
        self.frames += 1;
        let (kept, cost) = self.encoded[at].weigh(frame);
        let costs = self.encoded.iter().map(|term| term.weigh(frame).1);
        let others = costs.sum::<f64>() - cost;
        let pays = others * (1.0 - kept) <= LEFT_OVER_SAVES * cost;
        (pays && self.frames % LEARNING_FRAMES != 1).then_some(at)
    }

    /// Predicates that columns of the rows that are kept pass, and whether no term computes, which
    /// may fail.
    pub(crate) fn into_passing(self) -> (Vec<(Slot, Predicate)>, bool) {
        let terms = self.encoded.into_iter();
        let passing = terms.filter_map(|term| term.condition.into_passing());
        (passing.collect(), self.computed.is_empty())
    }

    /// Narrows the frame's selection to the rows where the condition is true.
    ///
    /// # Errors
    /// `LimitExceeded` when arithmetic on a surviving row overflows, `InvalidArgument` when
    /// a cast does not fit.
    ///
    /// # Cost
    /// One pass over the encoded form of each column, fewer for terms that earlier ones leave
    /// few rows to.
    pub fn apply(&mut self, frame: &mut Frame, work: &mut Work) -> Result<()> {
        self.order(frame);
        let left_over = self.left_over(frame);
        for (at, term) in self.encoded.iter_mut().enumerate() {
            if frame.selection.is_empty() {
                break;
            }
            if Some(at) == left_over {
                frame.left_over.clone_from(&term.left_over);
                continue;
            }
            let rows_in = frame.selection.count();
            let before = work.tally;
            let out = (&mut self.found, &mut self.pool);
            term.condition.select(frame, &frame.selection, out, work);
            self.found.settle();
            std::mem::swap(&mut frame.selection, &mut self.found);
            let looked = work.tally.direct + work.tally.decoded + work.tally.gathered
                - (before.direct + before.decoded + before.gathered);
            term.learn(frame, rows_in, looked);
        }
        for term in &mut self.computed {
            if frame.selection.is_empty() {
                break;
            }
            let passed = term.computation.run(frame, &frame.selection, work)?;
            keep(
                passed.as_boolean(),
                &frame.selection,
                &mut self.passed,
                &mut self.found,
            );
            self.found.settle();
            std::mem::swap(&mut frame.selection, &mut self.found);
        }
        if frame.selection.is_empty() {
            frame.selection.set_none(frame.batch.rows());
        }
        Ok(())
    }

    /// The terms in the order they run next, each with the way it runs.
    pub fn describe(&self) -> String {
        let encoded = self
            .encoded
            .iter()
            .map(|term| format!("{} [encoded]", term.text));
        let computed = self
            .computed
            .iter()
            .map(|term| format!("{} [decoded]", term.text));
        encoded.chain(computed).collect::<Vec<_>>().join(" AND ")
    }

    /// Puts the encoded terms in the order of cost per dropped row.
    fn order(&mut self, frame: &Frame) {
        if self.encoded.len() < 2 {
            return;
        }
        for term in &mut self.encoded {
            term.rank = term.judge(frame);
        }
        // Insertion sort: stable, few terms, mostly sorted, no allocation.
        for end in 1..self.encoded.len() {
            let mut at = end;
            while at > 0 && self.encoded[at].rank < self.encoded[at - 1].rank {
                self.encoded.swap(at, at - 1);
                at -= 1;
            }
        }
    }
}

impl EncodedTerm {
    fn new(text: String, condition: Encoded) -> Self {
        EncodedTerm {
            text,
            condition,
            rows_in: 0.0,
            rows_kept: 0.0,
            rows_offered: 0.0,
            values_looked_at: 0.0,
            rank: 0.0,
            left_over: None,
        }
    }

    /// Cost per row it would drop: the classic order of independent terms.
    fn judge(&self, frame: &Frame) -> f64 {
        let (kept, cost) = self.weigh(frame);
        cost / (1.0 - kept).max(1e-6)
    }

    /// The share of rows it keeps, and the cost of a row.
    fn weigh(&self, frame: &Frame) -> (f64, f64) {
        // The guess weighs as much as a block of rows seen.
        let prior = 1_024.0;
        let kept = (self.rows_kept + prior * self.condition.guess()) / (self.rows_in + prior);
        let looked = (self.values_looked_at + prior) / (self.rows_offered + prior);
        let cost = ROW_OVERHEAD_BYTES + self.condition.row_bytes(frame) * looked;
        (kept, cost)
    }

    fn learn(&mut self, frame: &Frame, rows_in: usize, looked: u64) {
        if self.rows_offered > MEMORY_ROWS {
            self.rows_in /= 2.0;
            self.rows_kept /= 2.0;
            self.rows_offered /= 2.0;
            self.values_looked_at /= 2.0;
        }
        self.rows_in += rows_in as f64;
        self.rows_kept += frame.selection.count() as f64;
        self.rows_offered += frame.batch.rows() as f64;
        self.values_looked_at += looked as f64;
    }
}

/// Puts into `kept` the rows of `within` whose entry in `passed`, one per row of `within`, is true.
fn keep(passed: &BooleanArray, within: &Selection, bits: &mut Bitmap, kept: &mut Selection) {
    match passed.nulls() {
        Some(nulls) => bits.copy_booleans(&(passed.values() & nulls.inner())),
        None => bits.copy_booleans(passed.values()),
    }
    if within.shape() == Shape::All {
        kept.set_all(within.rows());
        return kept.retain_words(bits.words());
    }
    let list = kept.set_rows(within.rows());
    let mut index = 0;
    within.for_each(|row| {
        if bits.get(index) {
            list.extend(u32::try_from(row));
        }
        index += 1;
    });
}

#[cfg(test)]
mod tests {
    use arrow_array::{ArrayRef, Int64Array, RecordBatch};
    use tersecades_columnar::batch::BatchEncoder;
    use tersecades_columnar::scheme::Scheme;

    use super::*;
    use crate::expression::col;
    use crate::frame::FrameMemory;

    const ROWS: usize = 2_048;

    fn delays() -> impl Iterator<Item = i64> {
        (0..ROWS as i64).map(|row| 100 + row * 7 % 900)
    }

    fn frame(codec: &str) -> Frame {
        let delays: ArrayRef = Arc::new(Int64Array::from_iter_values(delays()));
        let rows = RecordBatch::try_from_iter([("delay", delays)]).unwrap();
        let mut encoder = BatchEncoder::new(&rows.schema()).unwrap();
        let scheme: Scheme = codec.parse().unwrap();
        encoder.columns_mut()[0].require(scheme).unwrap();
        Frame::new(Arc::new(encoder.encode_new(&rows).unwrap()))
    }

    #[test]
    fn a_test_is_left_to_who_folds_its_column_but_now_and_then() {
        let kept = delays().filter(|delay| *delay >= 200).count();
        let left_over = |codec: &str, slot: Option<Slot>| {
            let (mut frame, mut work) = (frame(codec), Work::default());
            let scope = Scope::of_schema(frame.batch.schema());
            let mut filter = BoundFilter::bind(&col("delay").gt_eq(200), &scope).unwrap();
            filter.leave_over(slot);
            let mut left = 0;
            for _ in 0..2 * LEARNING_FRAMES {
                frame.reset(Arc::clone(&frame.batch));
                filter.apply(&mut frame, &mut work).unwrap();
                let is_left = frame.left_over.is_some();
                assert_eq!(frame.selection.count(), if is_left { ROWS } else { kept });
                left += u64::from(is_left);
            }
            frame.borrow_memory(&mut FrameMemory::default());
            assert!(frame.left_over.is_none());
            left
        };
        for codec in ["base_delta", "frame_of_reference"] {
            assert_eq!(left_over(codec, Some(0)), 2 * (LEARNING_FRAMES - 1));
            assert_eq!(left_over(codec, None), 0);
        }
        assert_eq!(left_over("plain", Some(0)), 0);
    }
}
