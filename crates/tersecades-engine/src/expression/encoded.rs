//! Conditions on columns and constants alone, answered by the waist without decoding.
//!
//! A filter wants the rows that are true. With every NOT pushed down to the comparisons (which
//! turn into their opposites, unknown staying unknown), the true rows of AND and OR follow from
//! the true rows of their parts, so the unknown rows need no selection of their own: a NULL
//! passes neither a comparison nor its opposite.
//!
//! ```text
//! NOT (a < 5 OR b IS NULL)  ──▶  a >= 5 AND b IS NOT NULL
//! a >= 5 AND a <> 9         ──▶  a in [5, 8] or [10, max]     (one pass over a)
//! ```

use tersecades_columnar::bitmap::Bitmap;
use tersecades_columnar::codec::Work;
use tersecades_columnar::predicate::{Comparison, KeyRange, Predicate};
use tersecades_columnar::selection::Selection;
use tersecades_columnar::types::Physical;

use super::node::Node;
use super::ranges;
use crate::frame::{Frame, Slot};

/// A condition in which NOT stands nowhere but at its leaves.
#[derive(Debug)]
pub(super) enum Encoded {
    /// Rows of a column that pass a predicate.
    Passes {
        slot: Slot,
        physical: Physical,
        predicate: Predicate,
    },
    /// Rows of a column that are not null and fail a predicate.
    Fails { slot: Slot, predicate: Predicate },
    /// Rows of a column that are null, or that are not.
    Null { slot: Slot, wanted: bool },
    /// Rows of two integer columns that stand in a relation.
    Columns { how: Comparison, slots: [Slot; 2] },
    /// Every row, or none.
    Always(bool),
    /// Rows of every part.
    All(Vec<Encoded>),
    /// Rows of some part.
    Any(Vec<Encoded>),
}

/// Selections to reuse, so that filtering allocates nothing once warm.
pub(super) type Pool = Vec<Selection>;

/// Whether [`lower`] takes `node`.
pub(super) fn is_encodable(node: &Node) -> bool {
    match node {
        Node::Column(_) | Node::Truth(_) | Node::CompareColumns(..) => true,
        Node::Test { input, .. } | Node::IsNull(input) => matches!(**input, Node::Column(_)),
        Node::All(parts) | Node::Any(parts) => parts.iter().all(is_encodable),
        Node::Not(input) => is_encodable(input),
        _ => false,
    }
}

/// The rows where `node` is true; where it is false if `negated`. `None` if not encodable.
pub(super) fn lower(node: Node, negated: bool) -> Option<Encoded> {
    let encoded = match node {
        Node::Column(slot) => {
            let wanted = u64::from(!negated);
            Encoded::Passes {
                slot,
                physical: Physical::Integer {
                    bytes: 1,
                    signed: false,
                },
                predicate: Predicate::key_range(wanted, wanted),
            }
        }
        Node::CompareColumns(how, slots) => Encoded::Columns {
            how: if negated { how.opposite() } else { how },
            slots,
        },
        Node::Truth(truth) => Encoded::Always(truth == Some(!negated)),
        Node::Test {
            input,
            data_type,
            predicate,
        } => {
            let Node::Column(slot) = *input else {
                return None;
            };
            lower_test(slot, Physical::of(&data_type).ok()?, predicate, negated)
        }
        Node::IsNull(input) => {
            let Node::Column(slot) = *input else {
                return None;
            };
            Encoded::Null {
                slot,
                wanted: !negated,
            }
        }
        Node::All(parts) => lower_parts(parts, negated, !negated)?,
        Node::Any(parts) => lower_parts(parts, negated, negated)?,
        Node::Not(input) => lower(*input, !negated)?,
        _ => return None,
    };
    Some(encoded)
}

fn lower_test(slot: Slot, physical: Physical, predicate: Predicate, negated: bool) -> Encoded {
    if !negated {
        return Encoded::Passes {
            slot,
            physical,
            predicate,
        };
    }
    match ranges::negate(&predicate, physical) {
        Some(predicate) => Encoded::Passes {
            slot,
            physical,
            predicate,
        },
        None => Encoded::Fails { slot, predicate },
    }
}

/// AND of the lowered parts if `conjoined`, else OR; comparisons of one column are joined.
fn lower_parts(parts: Vec<Node>, negated: bool, conjoined: bool) -> Option<Encoded> {
    let mut joined: Vec<Encoded> = Vec::with_capacity(parts.len());
    for part in parts {
        let part = lower(part, negated)?;
        if !joined
            .iter_mut()
            .any(|known| known.absorb(&part, conjoined))
        {
            joined.push(part);
        }
    }
    Some(match (joined.len(), conjoined) {
        (1, _) => joined.swap_remove(0),
        (_, true) => Encoded::All(joined),
        (_, false) => Encoded::Any(joined),
    })
}

impl Encoded {
    /// The column whose keys must lie in ranges, where that is all.
    pub(super) fn test(&self) -> Option<(Slot, &[KeyRange])> {
        match self {
            Encoded::Passes {
                slot,
                predicate: Predicate::Keys(ranges),
                ..
            } => Some((*slot, ranges)),
            _ => None,
        }
    }

    /// The column that must pass a predicate, where that is all.
    pub(super) fn into_passing(self) -> Option<(Slot, Predicate)> {
        match self {
            Encoded::Passes {
                slot, predicate, ..
            } => Some((slot, predicate)),
            _ => None,
        }
    }

    /// Becomes `self AND other` (or `self OR other`) if both compare one column; whether it did.
    pub(super) fn absorb(&mut self, other: &Encoded, conjoined: bool) -> bool {
        let Encoded::Passes {
            slot,
            physical,
            predicate,
        } = self
        else {
            return false;
        };
        let Encoded::Passes {
            slot: their_slot,
            predicate: theirs,
            ..
        } = other
        else {
            return false;
        };
        if slot != their_slot {
            return false;
        }
        let combined = match conjoined {
            true => ranges::both(predicate, theirs),
            false => ranges::either(predicate, theirs, *physical),
        };
        match combined {
            Some(combined) => {
                *predicate = combined;
                true
            }
            None => false,
        }
    }

    /// Selects the rows of `within` that the condition keeps.
    pub(super) fn select(
        &self,
        frame: &Frame,
        within: &Selection,
        (out, pool): (&mut Selection, &mut Pool),
        work: &mut Work,
    ) {
        match self {
            Encoded::Passes {
                slot, predicate, ..
            } => {
                frame.column(*slot).compare(predicate, within, out, work);
            }
            Encoded::Columns { how, slots } => {
                let [a, b] = slots.map(|slot| frame.column(slot));
                a.compare_columns(*how, b, within, out, work);
            }
            Encoded::Fails { slot, predicate } => {
                let chunk = frame.column(*slot);
                let mut passed = pool.pop().unwrap_or_default();
                chunk.compare(predicate, within, &mut passed, work);
                out.copy_from(within);
                retain_valid(out, chunk.validity());
                out.subtract(&passed);
                pool.push(passed);
            }
            Encoded::Null { slot, wanted } => {
                let chunk = frame.column(*slot);
                out.copy_from(within);
                work.tally.skipped += chunk.rows() as u64;
                if *wanted {
                    drop_valid(out, chunk.validity(), pool);
                } else {
                    retain_valid(out, chunk.validity());
                }
            }
            Encoded::Always(true) => out.copy_from(within),
            Encoded::Always(false) => out.set_none(within.rows()),
            Encoded::All(parts) => {
                let mut narrowed = pool.pop().unwrap_or_default();
                narrowed.copy_from(within);
                for part in parts {
                    part.select(frame, &narrowed, (&mut *out, &mut *pool), work);
                    out.settle();
                    std::mem::swap(&mut narrowed, out);
                    if narrowed.is_empty() {
                        break;
                    }
                }
                std::mem::swap(&mut narrowed, out);
                pool.push(narrowed);
            }
            Encoded::Any(parts) => select_any(parts, frame, within, (out, pool), work),
        }
    }

    /// Bytes of the columns that are looked at, for each row.
    pub(super) fn row_bytes(&self, frame: &Frame) -> f64 {
        match self {
            Encoded::Passes { slot, .. } | Encoded::Fails { slot, .. } => {
                let chunk = frame.column(*slot);
                chunk.byte_size() as f64 / chunk.rows().max(1) as f64
            }
            Encoded::Columns { slots, .. } => {
                let bytes = |slot: &Slot| frame.column(*slot).bytes_per_row();
                slots.iter().map(bytes).sum()
            }
            Encoded::Null { .. } | Encoded::Always(_) => 0.0,
            Encoded::All(parts) | Encoded::Any(parts) => {
                parts.iter().map(|part| part.row_bytes(frame)).sum()
            }
        }
    }

    /// The share of rows that is likely to pass, before any row is seen.
    pub(super) fn guess(&self) -> f64 {
        match self {
            Encoded::Passes {
                predicate: Predicate::Keys(ranges),
                ..
            } => {
                let single = |range: &KeyRange| range.low == range.high;
                if ranges.iter().all(single) { 0.1 } else { 0.4 }
            }
            Encoded::Columns { how, .. } => match how {
                Comparison::Equal => 0.1,
                Comparison::NotEqual => 0.9,
                _ => 0.4,
            },
            Encoded::Always(keep) => f64::from(u8::from(*keep)),
            Encoded::Null { wanted: true, .. } => 0.1,
            Encoded::Null { wanted: false, .. } => 0.9,
            Encoded::All(parts) => parts.iter().map(Encoded::guess).product(),
            Encoded::Any(parts) => parts.iter().map(Encoded::guess).sum::<f64>().min(0.9),
            Encoded::Passes { .. } | Encoded::Fails { .. } => 0.4,
        }
    }
}

/// Each part looks only at rows that no part before it took.
fn select_any(
    parts: &[Encoded],
    frame: &Frame,
    within: &Selection,
    (out, pool): (&mut Selection, &mut Pool),
    work: &mut Work,
) {
    let mut rest = pool.pop().unwrap_or_default();
    let mut found = pool.pop().unwrap_or_default();
    rest.copy_from(within);
    out.set_none(within.rows());
    for part in parts {
        part.select(frame, &rest, (&mut found, &mut *pool), work);
        out.unite(&found);
        rest.subtract(&found);
        rest.settle();
        if rest.is_empty() {
            break;
        }
    }
    pool.push(rest);
    pool.push(found);
}

fn retain_valid(rows: &mut Selection, validity: &Bitmap) {
    if !validity.is_empty() {
        rows.retain_words(validity.words());
    }
}

fn drop_valid(rows: &mut Selection, validity: &Bitmap, pool: &mut Pool) {
    if validity.is_empty() {
        return rows.set_none(rows.rows());
    }
    let mut valid = pool.pop().unwrap_or_default();
    valid.copy_from(rows);
    valid.retain_words(validity.words());
    rows.subtract(&valid);
    pool.push(valid);
}
