//! The groups of several panes as one result, made by several threads: each takes those between two
//! keys out of all panes, so few at a time that they stay in the caches next to a core.
//!
//! ```text
//! pane of a worker   7 2 9 4 …  ┐ keys below 5 ──▶ one thread      2 4 …   merged, sorted: a batch
//! pane of another    4 8 2 …    ┘ keys from 5 ───▶ another thread  7 8 9 …  the batch behind it
//! ```

use arrow_array::RecordBatch;
use tersecades_columnar::error::Result;

use crate::aggregate::fold_column::FoldColumn;
use crate::runtime::on_thread::on_threads;

use super::direct::{AXES, Span};
use super::first::{emit_share, in_key_order};
use super::packer::PackedKeys;
use super::pane::Pane;
use super::part_number::Numbers;
use super::plan::AggregatePlan;
use super::position::ranks_of;
use super::table::GroupTable;

/// Panes of fewer groups than this are merged by one thread.
const GROUPS_MIN: usize = 1 << 16;

/// Groups of one pane that are sorted and written at once at most: memory for more takes longer to
/// be made ready than they take to be shared out.
const ALONE_MIN: usize = 1 << 20;

/// Groups of all panes that are merged at once, about.
const SHARE_GROUPS: usize = 1 << 16;

/// Most shares: each is written to at another place.
const SHARES_MAX: usize = 512;

/// Groups of each pane, for each share, that say which keys share them out evenly.
const SAMPLED: usize = 64;

/// Whether `known` and `more`, panes of `plan`, are better left apart until their result is made;
/// not where results come again and again, each of what is one pane by then.
pub(super) fn stay_apart(plan: &AggregatePlan, known: &Pane, more: &Pane) -> bool {
    let once = plan.emission.is_none();
    once && plan.threads > 1 && may_share(plan) && known.len().min(more.len()) >= GROUPS_MIN
}

/// Whether `pane` alone has so many groups that their result is better made in shares.
pub(super) fn is_shared_out(plan: &AggregatePlan, pane: &Pane) -> bool {
    may_share(plan) && plan.first.is_none() && pane.len() >= ALONE_MIN
}

fn may_share(plan: &AggregatePlan) -> bool {
    plan.collections.is_empty() && !plan.keys.standard_map
}

/// Groups of a pane that are merged with those of others.
struct Share {
    ids: Vec<u32>,
    /// The numbers between which those of their keys lie that have one of their own.
    least: u64,
    greatest: u64,
}

/// What threads read of a pane.
struct Part<'a> {
    groups: &'a GroupTable,
    rows: &'a [u64],
    folds: &'a [FoldColumn],
}

/// Adds the results of the groups of all of `panes` that are asked for, in key order, to `out`;
/// says false, and adds none, where keys cannot be shared out.
///
/// # Errors
/// What [`emit_share`] says, and an interrupt.
pub(super) fn emit_joined(
    plan: &AggregatePlan,
    panes: &[&Pane],
    out: &mut Vec<RecordBatch>,
) -> Result<bool> {
    let parts: Vec<Part<'_>> = panes
        .iter()
        .map(|pane| Part {
            groups: &pane.groups,
            rows: &pane.rows,
            folds: &pane.folds,
        })
        .collect();
    // What is put in order at the end may be shared out in any.
    let ranks = match plan.first {
        Some(_) => vec![None; plan.keys.columns.len()],
        None => ranks_of(&plan.keys),
    };
    let Some(numbers) = Numbers::of(&plan.keys, &ranks) else {
        return Ok(false);
    };
    let starts = starts(plan, &numbers, &parts);
    let mut shares = on_threads(plan.threads, &parts, |part| {
        Ok(share_out(&numbers, part, &starts))
    })?;
    plan.interrupt.check()?;
    let of_next = |_| shares.iter_mut().filter_map(Vec::pop).collect();
    let mut merged: Vec<Vec<Share>> = (0..=starts.len()).map(of_next).collect();
    merged.reverse();
    let results = on_threads(plan.threads, &merged, |shares| {
        emit_shares(plan, &parts, shares)
    })?;
    let results: Vec<RecordBatch> = results.into_iter().flatten().collect();
    match plan.first {
        Some(_) => out.push(in_key_order(plan, &results)?),
        None => out.extend(results),
    }
    Ok(true)
}

/// The least numbers of all shares but the first: about as many groups lie between any two.
fn starts(plan: &AggregatePlan, numbers: &Numbers<'_>, parts: &[Part<'_>]) -> Vec<u64> {
    let groups: usize = parts.iter().map(|part| part.rows.len()).sum();
    let shares = (groups / SHARE_GROUPS).clamp(plan.threads, SHARES_MAX.max(plan.threads));
    let mut sample: Vec<u64> = Vec::new();
    for part in parts {
        let step = (part.rows.len() / (SAMPLED * shares)).max(1);
        let ids = (0..part.rows.len()).step_by(step);
        sample.extend(ids.map(|id| numbers.number(part.groups.key(id)).0));
    }
    sample.sort_unstable();
    let of_share = |index| sample.get(index * sample.len() / shares).copied();
    let mut starts: Vec<u64> = (1..shares).filter_map(of_share).collect();
    starts.dedup();
    starts
}

/// The groups of `part` by share.
fn share_out(numbers: &Numbers<'_>, part: &Part<'_>, starts: &[u64]) -> Vec<Share> {
    let room = part.rows.len() / (starts.len() + 1) * 9 / 8;
    let empty = || Share {
        ids: Vec::with_capacity(room),
        least: u64::MAX,
        greatest: 0,
    };
    let mut shares: Vec<Share> = (0..=starts.len()).map(|_| empty()).collect();
    for id in 0..part.rows.len() {
        let (number, is_whole) = numbers.number(part.groups.key(id));
        let share = &mut shares[starts.partition_point(|start| *start <= number)];
        share.ids.push(id as u32);
        if is_whole {
            share.least = share.least.min(number);
            share.greatest = share.greatest.max(number);
        }
    }
    shares
}

/// The results of the groups of one share, of which `shares` has those of each part.
fn emit_shares(
    plan: &AggregatePlan,
    parts: &[Part<'_>],
    shares: &[Share],
) -> Result<Option<RecordBatch>> {
    let pane = merge_shares(plan, parts, shares);
    plan.interrupt.check()?;
    if pane.is_empty() {
        return Ok(None);
    }
    emit_share(plan, &pane).map(Some)
}

fn merge_shares(plan: &AggregatePlan, parts: &[Part<'_>], shares: &[Share]) -> Pane {
    let mut merged = Pane::new(plan);
    let least = shares.iter().map(|share| share.least).min();
    let greatest = shares.iter().map(|share| share.greatest).max();
    let rows = shares.iter().map(|share| share.ids.len()).sum();
    if let (Some(least), Some(greatest)) = (least, greatest)
        && least <= greatest
    {
        let span = span_of(plan, (least, greatest));
        merged.groups.cover(&plan.keys, span, rows);
    }
    let most = shares.iter().map(|share| share.ids.len()).max();
    merged.groups.reserve(most.unwrap_or(0));
    let (mut keys, mut targets) = (Vec::new(), Vec::new());
    for (part, Share { ids, .. }) in parts.iter().zip(shares) {
        keys.clear();
        ids.iter()
            .for_each(|id| keys.extend_from_slice(part.groups.key(*id as usize)));
        let words = part.groups.packed().words;
        targets.clear();
        let packed = PackedKeys { keys: &keys, words };
        merged.groups.assign_packed(packed, &mut targets);
        let rows: Vec<u64> = ids.iter().map(|id| part.rows[*id as usize]).collect();
        let folds: Vec<FoldColumn> = part.folds.iter().map(|folds| folds.select(ids)).collect();
        let groups = merged.groups.group_count();
        merged.merge_folds((&rows, &folds), &targets, groups);
    }
    merged
}

/// What the keys whose numbers are the `least` to the `greatest` span, where they are numbers
/// themselves.
fn span_of(plan: &AggregatePlan, (least, greatest): (u64, u64)) -> Option<[Span; AXES]> {
    match &plan.keys.columns[..] {
        [column] if !column.is_text() => {
            Some([Span::of_ends(least, greatest), Span::of_ends(0, 0)])
        }
        _ => None,
    }
}
