//! How much of a column must be kept.

use std::fmt;

use arrow_schema::DataType;
use tersecades_columnar::cut::CutPoints;
use tersecades_columnar::types::{Physical, float_of};

use super::time_cut::TimeCuts;
use crate::expression::observe::Aspect;

/// What must be kept of a column so that some queries answer as on the whole of it.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Need {
    /// No query reads it.
    #[default]
    Nothing,
    /// In which class a value lies, and which are null.
    Class(Classes),
    /// Every value as it is.
    Exact,
}

/// Where classes of values begin.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Classes {
    /// At constants that values are compared with.
    pub points: CutPoints,
    /// At boundaries of windows.
    pub times: TimeCuts,
}

impl Need {
    /// What must be kept of a column of `data_type` for an expression that reads `aspect` of it.
    pub fn of_aspect(aspect: Aspect, data_type: &DataType) -> Need {
        let points = match aspect {
            Aspect::Presence => CutPoints::default(),
            Aspect::Value => return Need::Exact,
            Aspect::Class(points) => points,
        };
        let Ok(physical) = Physical::of(data_type) else {
            return Need::Exact;
        };
        let points = match points {
            CutPoints::Keys(mut keys) => {
                keys.retain(|key| *key <= physical.key_max());
                CutPoints::Keys(keys)
            }
            other => other,
        };
        // A class of booleans is no smaller than a boolean.
        if *data_type == DataType::Boolean && !points.is_empty() {
            return Need::Exact;
        }
        Need::Class(Classes {
            points,
            times: TimeCuts::default(),
        })
    }

    /// What must be kept of an event time for windows with these cuts.
    pub fn of_times(times: TimeCuts) -> Need {
        Need::Class(Classes {
            points: CutPoints::default(),
            times,
        })
    }

    /// Adds what another query must have.
    pub fn merge(&mut self, other: Need) {
        match (&mut *self, other) {
            (Need::Exact, _) | (_, Need::Nothing) => {}
            (Need::Class(classes), Need::Class(more)) => {
                classes.points.merge(more.points);
                classes.times.merge(more.times);
            }
            (_, other) => *self = other,
        }
    }

    /// Whether a column of which this is kept answers queries that must have `asked`.
    pub fn covers(&self, asked: &Need) -> bool {
        match (self, asked) {
            (Need::Exact, _) | (_, Need::Nothing) => true,
            (Need::Class(kept), Need::Class(asked)) => {
                kept.points.covers(&asked.points) && kept.times.covers(&asked.times)
            }
            (Need::Nothing | Need::Class(_), _) => false,
        }
    }

    /// In words, for a column of `data_type`.
    pub fn describe(&self, data_type: &DataType) -> String {
        match self {
            Need::Nothing => "not kept".to_owned(),
            Need::Exact => "exact".to_owned(),
            Need::Class(classes) => classes.describe(data_type),
        }
    }
}

/// Most constants that are listed.
const LISTED_MAX: usize = 6;

impl Classes {
    fn describe(&self, data_type: &DataType) -> String {
        let mut parts = Vec::new();
        if !self.times.is_empty() {
            parts.push(format!(
                "kept at window boundaries, {}",
                self.times.describe()
            ));
        }
        if !self.points.is_empty() {
            let points = constants(&self.points, data_type);
            let listed = points.iter().take(LISTED_MAX);
            let listed: Vec<String> = listed.map(ToString::to_string).collect();
            let more = if points.len() > LISTED_MAX {
                ", ..."
            } else {
                ""
            };
            let classes = points.len() + 1;
            let listed = listed.join(", ");
            parts.push(format!(
                "kept as one of {classes} classes cut at {listed}{more}"
            ));
        }
        match parts.is_empty() {
            true => "kept as null or not".to_owned(),
            false => parts.join(" and "),
        }
    }
}

/// A constant as people write it.
enum Shown {
    Integer(i128),
    Float(f64),
    Text(String),
}

impl fmt::Display for Shown {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Shown::Integer(value) => write!(to, "{value}"),
            Shown::Float(value) => write!(to, "{value:?}"),
            Shown::Text(text) => write!(to, "{text:?}"),
        }
    }
}

fn constants(points: &CutPoints, data_type: &DataType) -> Vec<Shown> {
    let physical = Physical::of(data_type).unwrap_or(Physical::Text);
    match points {
        CutPoints::Keys(keys) => {
            let shown = |key: &u64| match physical {
                Physical::Float { .. } => Shown::Float(float_of(*key)),
                physical => Shown::Integer(physical.value_of(*key)),
            };
            keys.iter().map(shown).collect()
        }
        CutPoints::Wide(values) => values.iter().map(|value| Shown::Integer(*value)).collect(),
        CutPoints::Text(texts) => {
            let shown = |text: &Vec<u8>| Shown::Text(String::from_utf8_lossy(text).into_owned());
            texts.iter().map(shown).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut_at(points: &[u64]) -> Need {
        let points = CutPoints::Keys(points.to_vec());
        Need::of_aspect(Aspect::Class(points), &DataType::UInt32)
    }

    #[test]
    fn what_is_kept_for_all_covers_what_is_needed_by_each() {
        let mut kept = Need::Nothing;
        for part in [cut_at(&[5]), cut_at(&[9]), cut_at(&[])] {
            kept.merge(part);
        }
        assert_eq!(kept, cut_at(&[5, 9]));
        assert!(kept.covers(&cut_at(&[9])) && kept.covers(&Need::Nothing));
        assert!(!kept.covers(&cut_at(&[7])) && !kept.covers(&Need::Exact));
        kept.merge(Need::Exact);
        assert!(kept.covers(&cut_at(&[7])));
        assert!(!Need::Nothing.covers(&cut_at(&[])));
    }

    #[test]
    fn classes_are_said_in_words() {
        let text = cut_at(&[100]).describe(&DataType::UInt32);
        assert_eq!(text, "kept as one of 2 classes cut at 100");
        assert_eq!(
            cut_at(&[]).describe(&DataType::UInt32),
            "kept as null or not"
        );
        assert_eq!(cut_at(&[u64::MAX]), cut_at(&[]));
    }
}
