//! Every way to encode a column, tried: what the chooser expected, what came out, and what the
//! choice lost against the best single one.
//!
//! ```text
//! arrays ─┬─▶ chooser ───────────────▶ size, cost          regret = its cost / least cost − 1
//!         └─▶ each codec, each pair ─▶ size, cost ─▶ least
//! ```
//! Costs are those of the goal's table at real sizes, so nothing here depends on a clock.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;

use crate::choose::price;
use crate::chunk::Chunk;
use crate::codec::Codec;
use crate::dictionary::Dictionary;
use crate::encoder::ColumnEncoder;
use crate::error::Result;
use crate::goal::Goal;
use crate::registry::CODECS;
use crate::scheme::Scheme;
use crate::types::Physical;

/// Bytes and nanoseconds per row.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Price {
    /// Bytes per row.
    pub bytes: f64,
    /// Nanoseconds per row and read.
    pub ns: f64,
}

/// A scheme and what became of it.
#[derive(Debug, Clone)]
pub struct Trial {
    /// The scheme, written.
    pub scheme: String,
    /// What the chooser expected, for schemes of one codec.
    pub estimate: Option<Price>,
    /// What it came to.
    pub real: Price,
}

/// A column's choice beside all that could have been chosen.
#[derive(Debug, Clone, Default)]
pub struct Explanation {
    /// Codecs of the last chunk as chosen.
    pub codec: String,
    /// What the choice came to.
    pub chosen: Price,
    /// What was tried on all chunks, cheapest first.
    pub trials: Vec<Trial>,
}

impl Explanation {
    /// How much more the choice costs than the best single scheme; less than 0 where choosing chunk
    /// by chunk beat all of them.
    pub fn regret(&self) -> f64 {
        let best = self.trials.first().filter(|best| best.real.ns > 0.0);
        best.map_or(0.0, |best| self.chosen.ns / best.real.ns - 1.0)
    }
}

/// Bytes and nanoseconds of many rows.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    bytes: f64,
    ns: f64,
    rows: f64,
}

impl Sum {
    fn add(&mut self, rows: usize, price: Price) {
        self.rows += rows as f64;
        self.bytes += price.bytes * rows as f64;
        self.ns += price.ns * rows as f64;
    }

    /// The mean, with the table of `dictionary` shared among the rows.
    fn mean(&self, dictionary: Option<&Arc<Dictionary>>, goal: &Goal) -> Price {
        let rows = self.rows.max(1.0);
        let table = dictionary.map_or(0.0, |dictionary| dictionary.byte_size() as f64);
        Price {
            bytes: (self.bytes + table) / rows,
            ns: (self.ns + goal.read_ns(table)) / rows,
        }
    }
}

/// Codecs of the longest cascades that are tried, unless the caller wants others.
const STAGES: usize = 2;

/// A scheme that took every array so far.
struct Attempt {
    scheme: Scheme,
    estimate: Sum,
    real: Sum,
    /// Whether text goes in as it is rather than as codes.
    as_text: bool,
}

/// Tries everything on the arrays of one column.
pub struct Explainer {
    goal: Goal,
    chooser: ColumnEncoder,
    /// Encoders for values as they arrive, and for text that is not made into codes.
    tried: [Option<ColumnEncoder>; 2],
    attempts: Vec<Attempt>,
    chosen: Sum,
    codec: String,
    chunk: Chunk,
    rows: usize,
}

impl Explainer {
    /// Explains a column of `data_type` under `goal`.
    ///
    /// # Errors
    /// `Unsupported` for types without a physical shape.
    pub fn new(data_type: &DataType, goal: Goal) -> Result<Self> {
        let encoder = || -> Result<ColumnEncoder> {
            let mut encoder = ColumnEncoder::new(data_type)?;
            encoder.aim(goal.clone());
            Ok(encoder)
        };
        let is_text = Physical::of(encoder()?.data_type())? == Physical::Text;
        let mut as_text = is_text.then(encoder).transpose()?;
        if let Some(encoder) = &mut as_text {
            encoder.keep_text();
        }
        Ok(Explainer {
            chooser: encoder()?,
            tried: [Some(encoder()?), as_text],
            attempts: attempts(&goal, is_text, STAGES),
            goal,
            chosen: Sum::default(),
            codec: String::new(),
            chunk: Chunk::default(),
            rows: 0,
        })
    }

    /// Tries cascades of up to `stages` codecs instead.
    ///
    /// # Cost
    /// [`Explainer::add`] takes about twelve times as long for each codec more.
    #[must_use]
    pub fn of_stages(mut self, stages: usize) -> Self {
        self.attempts = attempts(&self.goal, self.tried[1].is_some(), stages);
        self
    }

    /// Tries every scheme on one more array.
    ///
    /// # Errors
    /// What encoding says.
    ///
    /// # Cost
    /// One encoding for each codec, and for each pair of which the first composes, that took all
    /// arrays before.
    pub fn add(&mut self, array: &ArrayRef) -> Result<()> {
        self.rows += array.len();
        self.chooser.encode(array, &mut self.chunk)?;
        self.chosen
            .add(array.len(), real_price(&self.chunk, &self.goal));
        self.codec = self.chunk.codec_label();
        let candidates = self.chunk.candidates().to_vec();
        for attempt in &mut self.attempts {
            let Some(encoder) = &mut self.tried[usize::from(attempt.as_text)] else {
                continue;
            };
            encoder.pin(attempt.scheme);
            let refused = encoder.encode(array, &mut self.chunk).is_err();
            if refused || !follows(&self.chunk, &attempt.scheme) {
                continue;
            }
            attempt
                .real
                .add(array.len(), real_price(&self.chunk, &self.goal));
            let id = self.chunk.codec().id();
            let estimate = candidates
                .iter()
                .find(|candidate| candidate.codec.id() == id);
            if let (Some(estimate), None) = (estimate, attempt.scheme.rest().first()) {
                let price = Price {
                    bytes: estimate.bytes_per_row,
                    ns: estimate.scan_ns,
                };
                attempt.estimate.add(array.len(), price);
            }
        }
        let rows = self.rows as f64;
        self.attempts.retain(|attempt| attempt.real.rows == rows);
        Ok(())
    }

    /// What was found.
    pub fn explain(&self) -> Explanation {
        let table = |encoder: &Option<ColumnEncoder>| encoder.as_ref()?.dictionary().cloned();
        let tables = [table(&self.tried[0]), table(&self.tried[1])];
        let trial = |attempt: &Attempt| Trial {
            scheme: attempt.scheme.to_string(),
            estimate: (attempt.estimate.rows > 0.0)
                .then(|| attempt.estimate.mean(None, &self.goal)),
            real: attempt
                .real
                .mean(tables[usize::from(attempt.as_text)].as_ref(), &self.goal),
        };
        let mut trials: Vec<Trial> = self.attempts.iter().map(trial).collect();
        trials.sort_by(|a, b| a.real.ns.total_cmp(&b.real.ns));
        Explanation {
            codec: self.codec.clone(),
            chosen: self.chosen.mean(self.chooser.dictionary(), &self.goal),
            trials,
        }
    }
}

/// Every cascade of up to `stages` codecs that the goal allows.
fn attempts(goal: &Goal, is_text: bool, stages: usize) -> Vec<Attempt> {
    let mut schemes = Vec::new();
    add_schemes(Scheme::default(), None, stages, goal, &mut schemes);
    let attempt = |as_text| {
        move |scheme: &Scheme| Attempt {
            scheme: *scheme,
            estimate: Sum::default(),
            real: Sum::default(),
            as_text,
        }
    };
    let mut attempts: Vec<Attempt> = schemes.iter().map(attempt(false)).collect();
    if is_text {
        attempts.extend(schemes.iter().map(attempt(true)));
    }
    attempts
}

/// Adds `scheme` with each cascade of up to `stages` codecs inside.
fn add_schemes(
    scheme: Scheme,
    around: Option<&'static dyn Codec>,
    stages: usize,
    goal: &Goal,
    out: &mut Vec<Scheme>,
) {
    let allowed = |codec: &&'static dyn Codec| codec.tier() <= goal.tier && !codec.is_lossy();
    for codec in CODECS.iter().copied().filter(allowed) {
        let in_itself = around.is_some_and(|around| around.id() == codec.id());
        let Some(scheme) = scheme.with(codec).filter(|_| stages > 0) else {
            return;
        };
        if in_itself && !codec.nests_in_itself() {
            continue;
        }
        let composes = codec.inner_max() > 0;
        // Where the scheme ends before the cascade does, the chooser goes on: once is enough.
        if !composes || around.is_none() {
            out.push(scheme);
        }
        if composes {
            add_schemes(scheme, Some(codec), stages - 1, goal, out);
        }
    }
}

/// Whether the codecs of `chunk` are those `scheme` names.
fn follows(chunk: &Chunk, scheme: &Scheme) -> bool {
    let Some(stage) = scheme.first() else {
        return true;
    };
    let inside = scheme.rest();
    let mut inner = chunk.inner();
    stage.codec.id() == chunk.codec().id()
        && (inside.first().is_none() || inner.any(|inner| follows(inner, &inside)))
}

fn real_price(chunk: &Chunk, goal: &Goal) -> Price {
    Price {
        bytes: chunk.bytes_per_row(),
        ns: price(chunk, goal),
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::{Int64Array, StringArray};

    use super::*;
    use crate::goal::Tier;

    #[test]
    fn trials_come_cheapest_first_and_the_choice_is_among_them() {
        let arrays: [ArrayRef; 2] = [
            Arc::new(Int64Array::from_iter_values(
                (0..4_000).map(|row| row % 100),
            )),
            Arc::new(Int64Array::from_iter_values((0..3_000).map(|row| row % 90))),
        ];
        let mut explainer = Explainer::new(&DataType::Int64, Goal::default()).unwrap();
        arrays
            .iter()
            .for_each(|array| explainer.add(array).unwrap());
        let found = explainer.explain();
        assert!(found.trials.len() > 2);
        assert!(found.trials.is_sorted_by(|a, b| a.real.ns <= b.real.ns));
        assert!(found.regret() < 0.05, "{found:?}");
        let plain = found
            .trials
            .iter()
            .find(|trial| trial.scheme == "plain")
            .unwrap();
        assert_eq!(plain.real.bytes, 8.0);
        assert_eq!(plain.estimate.unwrap().bytes, 8.0);
    }

    #[test]
    fn longer_cascades_are_tried_where_they_are_wanted() {
        let counted = |stages| attempts(&Goal::of_tier(Tier::Cold), false, stages).len();
        assert!(counted(3) > 4 * counted(2) && counted(2) > 4 * counted(1));
        let array: ArrayRef =
            Arc::new(Int64Array::from_iter_values((0..9_000).map(|row| row / 90)));
        let explainer = Explainer::new(&DataType::Int64, Goal::of_tier(Tier::Cold)).unwrap();
        let mut explainer = explainer.of_stages(3);
        explainer.add(&array).unwrap();
        let found = explainer.explain();
        let three = |trial: &Trial| trial.scheme == "number_dictionary(delta(bit_pack))";
        assert!(found.trials.iter().any(three));
    }

    #[test]
    fn text_is_tried_as_codes_and_as_it_is() {
        let names: ArrayRef = Arc::new(StringArray::from_iter_values(
            (0..2_000).map(|row| format!("name-{}", row % 7)),
        ));
        let mut explainer = Explainer::new(&DataType::Utf8, Goal::default()).unwrap();
        explainer.add(&names).unwrap();
        let found = explainer.explain();
        for scheme in ["plain", "dictionary", "dictionary(plain)"] {
            assert!(
                found.trials.iter().any(|it| it.scheme == scheme),
                "{scheme}"
            );
        }
    }
}
