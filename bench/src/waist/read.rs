//! Primitives that read.

use std::hint::black_box;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array};
use tersecades_columnar::codec::{compare_decoded, gather_decoded};
use tersecades_columnar::predicate::{Comparison, Predicate};
use tersecades_columnar::primitive::rank::rank_decoded;
use tersecades_columnar::primitive::repeat::{Repeats, repeats_decoded};
use tersecades_columnar::primitive::search::search_decoded;
use tersecades_columnar::selection::Selection;
use tersecades_columnar::types::{Physical, Value};
use tersecades_columnar::values::Values;
use tersecades_columnar::{Error, Result};

use super::{Case, encode};
use crate::report::Report;

/// One row of so many is fetched.
const FETCHED_SHARE: usize = 100;
/// One row of so many has the key of a search.
const SEARCHED_SHARE: usize = 1_024;

impl Case<'_> {
    /// Those of one column as it lies.
    pub(super) fn reads(&mut self, middle: &Value, report: &mut Report) -> Result<()> {
        let (chunk, codec) = (self.chunk, self.chunk.codec());
        let rows = chunk.rows();
        let all = Selection::all(rows);
        let predicate = Predicate::compare(chunk.data_type(), Comparison::Less, middle)?;
        let (mut out, mut other) = (Selection::default(), Selection::default());
        self.line(
            "compare",
            rows,
            &mut |work| chunk.compare(&predicate, &all, &mut out, work),
            &mut |work| compare_decoded(codec, chunk, &predicate, &all, &mut other, work),
            report,
        );
        let mut list = Selection::default();
        list.set_rows(rows)
            .extend((0..rows as u32).step_by(FETCHED_SHARE));
        let (mut values, mut others) = (Values::default(), Values::default());
        self.line(
            "gather",
            list.count(),
            &mut |work| chunk.gather(&list, &mut values, work),
            &mut |work| {
                others.reset(chunk.physical());
                gather_decoded(codec, chunk, list.list(), &mut others, work);
            },
            report,
        );
        let (mut ranks, mut other_ranks) = (Vec::new(), Vec::new());
        self.line(
            "rank",
            rows,
            &mut |work| {
                ranks.clear();
                black_box(chunk.rank(&all, &mut ranks, work).is_ok());
            },
            &mut |work| {
                other_ranks.clear();
                rank_decoded(codec, chunk, &all, &mut other_ranks, work);
            },
            report,
        );
        let (mut repeats, mut other_repeats) = (Repeats::default(), Repeats::default());
        self.line(
            "repeats",
            rows,
            &mut |work| chunk.repeats(&all, &mut repeats, work),
            &mut |work| {
                other_repeats.reset(chunk.physical());
                repeats_decoded(codec, chunk, &all, &mut other_repeats, work);
            },
            report,
        );
        self.codes(report);
        Ok(())
    }

    /// Codes of texts, which the default reads as they are decoded.
    fn codes(&mut self, report: &mut Report) {
        let (chunk, codec) = (self.chunk, self.chunk.codec());
        if chunk.physical() != Physical::Text {
            return;
        }
        let all = Selection::all(chunk.rows());
        let (mut codes, mut values) = (Vec::new(), Values::default());
        let mut decoded = Values::default();
        self.line(
            "codes",
            chunk.rows(),
            &mut |work| match chunk.codes() {
                Some(lie) => {
                    codes.clear();
                    black_box(lie.codes.rank(&all, &mut codes, work).is_ok());
                }
                None => {
                    values.reset(chunk.physical());
                    codec.decode(chunk, 0..chunk.rows(), &mut values);
                    work.tally.decoded += values.len() as u64;
                }
            },
            &mut |_| {
                decoded.reset(chunk.physical());
                codec.decode(chunk, 0..chunk.rows(), &mut decoded);
            },
            report,
        );
    }

    /// The column beside itself a row on: less than.
    pub(super) fn pair(&mut self, numbers: &Int64Array, report: &mut Report) -> Result<()> {
        let mut next = numbers.values().to_vec();
        next.rotate_left(1);
        let next: ArrayRef = Arc::new(Int64Array::from(next));
        let (chunk, next) = (self.chunk, encode(&next, self.scheme)?);
        let all = Selection::all(chunk.rows());
        let (mut out, mut other) = (Selection::default(), Selection::default());
        self.line(
            "pair",
            chunk.rows(),
            &mut |work| chunk.compare_columns(Comparison::Less, &next, &all, &mut out, work),
            &mut |work| {
                work.decode_first = true;
                chunk.compare_columns(Comparison::Less, &next, &all, &mut other, work);
            },
            report,
        );
        Ok(())
    }

    /// Keys of the column, looked up in its values in order.
    pub(super) fn search(&mut self, numbers: &Int64Array, report: &mut Report) -> Result<()> {
        let mut sorted = numbers.values().to_vec();
        sorted.sort_unstable();
        let asked = sorted.iter().step_by(SEARCHED_SHARE);
        let physical = self.chunk.physical();
        let keys = asked.map(|value| physical.key_of(i128::from(*value)));
        let keys: Option<Vec<u64>> = keys.collect();
        let keys = keys.ok_or_else(|| Error::internal("an integer has a key"))?;
        let sorted: ArrayRef = Arc::new(Int64Array::from(sorted));
        let sorted = encode(&sorted, self.scheme)?;
        let (codec, rows) = (sorted.codec(), sorted.rows());
        self.line(
            "search",
            keys.len(),
            &mut |work| {
                for key in &keys {
                    black_box(sorted.search(*key, 0..rows, work));
                }
            },
            &mut |work| {
                for key in &keys {
                    black_box(search_decoded(codec, &sorted, *key, 0..rows, work));
                }
            },
            report,
        );
        Ok(())
    }
}
