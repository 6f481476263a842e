//! What is done with a column on one thread and on several: encoding, comparing, summing, decoding.

use std::hint::black_box;

use arrow_array::{Array, ArrayRef};
use tersecades_columnar::Result;
use tersecades_columnar::batch::BATCH_ROWS;
use tersecades_columnar::chunk::Chunk;
use tersecades_columnar::codec::Work;
use tersecades_columnar::encoder::ColumnEncoder;
use tersecades_columnar::fold::{Asked, Fold};
use tersecades_columnar::goal::{Goal, Tier};
use tersecades_columnar::kernels::kernels;
use tersecades_columnar::predicate::Predicate;
use tersecades_columnar::scheme::Scheme;
use tersecades_columnar::selection::Selection;
use tersecades_columnar::values::Values;

use crate::split;

/// Largest share of the plain size at which a scheme is worth timing.
const USELESS: f64 = 1.6;

/// `values` under `scheme`, as [`encode_as`] does.
///
/// # Errors
/// What the encoder says.
pub(crate) fn encode(values: &ArrayRef, scheme: Scheme, threads: usize) -> Result<Vec<Chunk>> {
    encode_as(values, threads, |encoder| {
        encoder.aim(Goal::of_tier(Tier::Cold));
        encoder.pin(scheme);
    })
}

/// `values` in chunks of a batch, each with memory of its own; each thread encodes a part of them
/// by an encoder that is set up.
///
/// # Errors
/// What the encoder says.
pub(crate) fn encode_as(
    values: &ArrayRef,
    threads: usize,
    set_up: impl Fn(&mut ColumnEncoder) + Sync,
) -> Result<Vec<Chunk>> {
    let starts: Vec<usize> = (0..values.len()).step_by(BATCH_ROWS).collect();
    let encode = |starts: &[usize]| -> Result<Vec<Chunk>> {
        let mut encoder = ColumnEncoder::new(values.data_type())?;
        set_up(&mut encoder);
        // Plain chunks keep the array, so all share the memory of the set, as they lie in it.
        let slice = |start: usize| values.slice(start, BATCH_ROWS.min(values.len() - start));
        let chunks = starts
            .iter()
            .map(|&start| encoder.encode_new(&slice(start)));
        chunks.collect()
    };
    let each = starts.len().div_ceil(threads).max(1);
    let mut parts: Vec<(&[usize], Result<Vec<Chunk>>)> = starts
        .chunks(each)
        .map(|starts| (starts, Ok(Vec::new())))
        .collect();
    split::each(&mut parts, |(starts, chunks)| *chunks = encode(starts));
    let parts: Result<Vec<Vec<Chunk>>> = parts.into_iter().map(|(_, chunks)| chunks).collect();
    Ok(parts?.into_iter().flatten().collect())
}

/// Whether `scheme` took every chunk and is worth timing.
pub(crate) fn useful(chunks: &[Chunk], scheme: &str) -> bool {
    let name = scheme.split('(').next().unwrap_or(scheme);
    let plain: usize = chunks.iter().map(plain_bytes).sum();
    let taken = chunks.iter().all(|chunk| chunk.codec().name() == name);
    taken && bytes(chunks) <= USELESS * plain as f64
}

fn plain_bytes(chunk: &Chunk) -> usize {
    chunk.rows() * chunk.physical().lane_bytes()
}

/// Bytes of all chunks.
pub(crate) fn bytes(chunks: &[Chunk]) -> f64 {
    chunks.iter().map(Chunk::byte_size).sum::<usize>() as f64
}

/// Runs `work` on each chunk, the chunks split evenly among threads.
fn each<S: Default>(chunks: &[Chunk], threads: usize, work: impl Fn(&mut S, &Chunk) + Sync) {
    let all = |chunks: &[Chunk]| {
        let mut state = S::default();
        chunks.iter().for_each(|chunk| work(&mut state, chunk));
    };
    split::evenly(threads, chunks, all);
}

/// How values are computed with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// As they lie, where the codec can.
    Direct,
    /// Decoded block by block first, statistics passed over.
    DecodeFirst,
}

/// Compares every value.
pub(crate) fn compare(chunks: &[Chunk], predicate: &Predicate, threads: usize, way: Way) {
    type State = (Selection, Selection, Work);
    each(chunks, threads, |state: &mut State, chunk| {
        let (within, out, work) = state;
        work.decode_first = way == Way::DecodeFirst;
        within.set_all(chunk.rows());
        chunk.compare(predicate, within, out, work);
        black_box(out);
    });
}

/// Sums all values.
pub(crate) fn sum(chunks: &[Chunk], threads: usize, way: Way) {
    let asked = Asked {
        sum: true,
        ..Asked::default()
    };
    each(chunks, threads, |state: &mut (Fold, Work), chunk| {
        let (total, work) = state;
        work.decode_first = way == Way::DecodeFirst;
        chunk.fold(asked, &Selection::all(chunk.rows()), total, work);
        black_box(total);
    });
}

/// Decodes unit by unit into a small buffer and hands it on.
pub(crate) fn decode_then(chunks: &[Chunk], threads: usize, then: impl Fn(&[u64]) + Sync) {
    each(chunks, threads, |values: &mut Values, chunk| {
        let unit = chunk.codec().unit_rows();
        for start in (0..chunk.rows()).step_by(unit) {
            values.reset(chunk.physical());
            let rows = start..chunk.rows().min(start + unit);
            chunk.codec().decode(chunk, rows, values);
            then(&values.keys);
        }
    });
}

/// A bitmap of the decoded values from `low` on, up to `span` more.
pub(crate) fn mask(keys: &[u64], low: u64, span: u64) {
    let mut words = [0u64; BATCH_ROWS / 64];
    (kernels().u64.range_mask_flat)(keys, low, span, &mut words);
    black_box(&words);
}

/// The sum of decoded values.
pub(crate) fn add(keys: &[u64]) -> u128 {
    (kernels().u64.sum_flat)(keys)
}
