//! One column to check a codec with: its values, the predicates and the selections to ask for.

use std::cmp::Ordering;

use arrow_array::ArrayRef;
use arrow_schema::DataType;
use tersecades_columnar::block::GROUP_ROWS;
use tersecades_columnar::predicate::{Comparison, Predicate};
use tersecades_columnar::selection::Selection;
use tersecades_columnar::types::Value;

use crate::data::column::integer_ends;
use crate::data::to_array;
use crate::oracle::order::order;
use crate::random::Random;

/// A column as plain values and as Arrow.
pub(super) struct Case {
    pub(super) data_type: DataType,
    pub(super) values: Vec<Value>,
    pub(super) array: ArrayRef,
}

/// A predicate, what it is called, and which rows pass.
pub(super) struct Question {
    pub(super) name: String,
    pub(super) predicate: Predicate,
    pub(super) passing: Vec<bool>,
}

/// A predicate over constants, by their places in a list.
#[derive(Clone, Copy)]
enum Asked {
    Compare(Comparison, usize),
    Between(usize, usize),
    /// One of the first few, or null.
    OneOf(usize),
    /// Other than null, which nothing is.
    NotNull,
}

/// A selection, what it is called, and which rows it holds.
pub(super) struct Within {
    pub(super) name: &'static str,
    pub(super) selection: Selection,
    pub(super) rows: Vec<usize>,
}

const COMPARISONS: [Comparison; 6] = [
    Comparison::Equal,
    Comparison::NotEqual,
    Comparison::Less,
    Comparison::LessOrEqual,
    Comparison::Greater,
    Comparison::GreaterOrEqual,
];

impl Case {
    pub(super) fn new(data_type: &DataType, values: Vec<Value>) -> Self {
        let array = to_array(data_type, &values);
        Case {
            data_type: data_type.clone(),
            values,
            array,
        }
    }

    /// The array of the values at `rows`.
    pub(super) fn array_of(&self, rows: &[usize]) -> ArrayRef {
        let values: Vec<Value> = rows.iter().map(|row| self.values[*row].clone()).collect();
        to_array(&self.data_type, &values)
    }

    /// Every `every`-th of the predicates that there are, with its answer.
    pub(super) fn questions(&self, every: usize, random: &mut Random) -> Vec<Question> {
        let constants = self.constants(random);
        let of_constant = |at| COMPARISONS.map(|how| Asked::Compare(how, at));
        let mut asked: Vec<Asked> = (0..constants.len()).flat_map(of_constant).collect();
        for _ in 0..3 {
            let [low, high] = [0; 2].map(|_| random.below(constants.len()));
            asked.push(Asked::Between(low, high));
        }
        asked.extend([0, 1, 4].map(|count| Asked::OneOf(constants.len().min(count))));
        asked.push(Asked::NotNull);
        let orders: Vec<Vec<Option<Ordering>>> = constants
            .iter()
            .map(|constant| self.orders(constant))
            .collect();
        let asked = asked.into_iter().step_by(every);
        asked
            .map(|asked| self.question(asked, &constants, &orders))
            .collect()
    }

    /// What is `asked`, where values stand relative to each of the constants as `orders` say.
    fn question(
        &self,
        asked: Asked,
        constants: &[Value],
        orders: &[Vec<Option<Ordering>>],
    ) -> Question {
        let data_type = &self.data_type;
        let (name, predicate, passing): (_, _, Vec<bool>) = match asked {
            Asked::Compare(how, at) => {
                let constant = &constants[at];
                let holds = |order: &Option<Ordering>| order.is_some_and(|it| holds(how, it));
                (
                    format!("{} {constant:?}", how.symbol()),
                    Predicate::compare(data_type, how, constant),
                    orders[at].iter().map(holds).collect(),
                )
            }
            Asked::Between(a, b) => {
                let (low, high) = (&constants[a], &constants[b]);
                let above = orders[a].iter().map(|it| it.is_some_and(Ordering::is_ge));
                let below = orders[b].iter().map(|it| it.is_some_and(Ordering::is_le));
                (
                    format!("between {low:?} {high:?}"),
                    Predicate::between(data_type, low, high),
                    above
                        .zip(below)
                        .map(|(above, below)| above && below)
                        .collect(),
                )
            }
            Asked::OneOf(count) => {
                let list = [&constants[..count], &[Value::Null]].concat();
                let is_equal = |row: usize, at: usize| orders[at][row] == Some(Ordering::Equal);
                let any = |row| (0..count).any(|at| is_equal(row, at));
                (
                    format!("one of {list:?}"),
                    Predicate::one_of(data_type, &list),
                    (0..self.values.len()).map(any).collect(),
                )
            }
            Asked::NotNull => (
                "<> null".to_owned(),
                Predicate::compare(data_type, Comparison::NotEqual, &Value::Null),
                vec![false; self.values.len()],
            ),
        };
        Question {
            name,
            predicate: predicate.unwrap(),
            passing,
        }
    }

    /// Where each value stands relative to `constant`; nothing for null.
    fn orders(&self, constant: &Value) -> Vec<Option<Ordering>> {
        let of = |value: &Value| (*value != Value::Null).then(|| order(value, constant));
        self.values.iter().map(of).collect()
    }

    /// Constants at, next to and far from the values.
    fn constants(&self, random: &mut Random) -> Vec<Value> {
        let present: Vec<&Value> = self
            .values
            .iter()
            .filter(|value| **value != Value::Null)
            .collect();
        let mut constants = edges(&self.data_type);
        if present.is_empty() {
            return constants;
        }
        for _ in 0..2 {
            let value = *random.pick(&present);
            constants.push(value.clone());
            constants.push(match value {
                Value::Integer(integer) => Value::Integer(integer + random.between(-1, 1) as i128),
                Value::Decimal(digits, scale) => Value::Decimal(digits * 10 + 5, scale + 1),
                Value::Float(float) => Value::Float(float / 2.0),
                Value::Text(text) => Value::Text(format!("{text}\0")),
                Value::Binary(bytes) => Value::Binary([bytes.as_slice(), &[0]].concat()),
                Value::Null => Value::Null,
            });
        }
        let ends = [
            present.iter().min_by(|a, b| order(a, b)),
            present.iter().max_by(|a, b| order(a, b)),
        ];
        constants.extend(ends.into_iter().flatten().map(|end| (*end).clone()));
        constants.extend(self.group_ends(random));
        let share = if self.values.len() > 1_000 {
            5
        } else {
            constants.len()
        };
        while constants.len() > share {
            constants.swap_remove(random.below(constants.len()));
        }
        constants.retain(|constant| *constant != Value::Null);
        constants
    }

    /// Two of the smallest and largest values of one group: where bases and outliers part.
    fn group_ends(&self, random: &mut Random) -> Vec<Value> {
        let group = random.below(self.values.len().div_ceil(GROUP_ROWS)) * GROUP_ROWS;
        let rows = self.values[group..].iter().take(GROUP_ROWS);
        let mut values: Vec<&Value> = rows.filter(|value| **value != Value::Null).collect();
        values.sort_by(|a, b| order(a, b));
        let low = values.get(random.below(5));
        let high = values.iter().rev().nth(random.below(5));
        low.into_iter()
            .chain(high)
            .map(|value| (*value).clone())
            .collect()
    }
}

fn holds(how: Comparison, order: Ordering) -> bool {
    match how {
        Comparison::Equal => order.is_eq(),
        Comparison::NotEqual => order.is_ne(),
        Comparison::Less => order.is_lt(),
        Comparison::LessOrEqual => order.is_le(),
        Comparison::Greater => order.is_gt(),
        Comparison::GreaterOrEqual => order.is_ge(),
    }
}

/// Constants at the ends of a type and beyond, and between its values.
fn edges(data_type: &DataType) -> Vec<Value> {
    match data_type {
        DataType::Float32 | DataType::Float64 => {
            let floats = [0.0, -0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.1];
            let mut edges = floats.map(Value::Float).to_vec();
            edges.extend([-1, 0, 1].map(|step| Value::Integer((1 << 53) + step)));
            edges
        }
        DataType::Decimal128(digits, scale) => {
            let most = 10i128.pow(u32::from(*digits));
            vec![
                Value::Decimal(most, *scale),
                Value::Decimal(-most, *scale),
                Value::Integer(0),
                Value::Decimal(-1, scale - 1),
            ]
        }
        DataType::Utf8 => ["", "text-0030", "\u{10FFFF}"].map(Value::from).to_vec(),
        DataType::Binary => [vec![], vec![30], vec![0xFF; 4]]
            .map(Value::Binary)
            .to_vec(),
        _ => {
            let (low, high) = integer_ends(data_type);
            let mut edges = [low, low - 1, high, high + 1, 0]
                .map(Value::Integer)
                .to_vec();
            edges.extend([0.5, f64::NAN, f64::INFINITY, -1e30].map(Value::Float));
            edges
        }
    }
}

/// How a selection keeps its rows.
#[derive(Clone, Copy)]
enum Form {
    All,
    None,
    Bits,
    List,
}

/// Whether a selection holds a row.
type Keep = fn(usize, &mut Random) -> bool;

/// Selections: what they are called, how they keep their rows, and which rows of how many.
const SELECTIONS: [(&str, Form, Keep); 9] = [
    ("all", Form::All, |_, _| true),
    ("none", Form::None, |_, _| false),
    ("one in 2", Form::Bits, |_, random| random.one_in(2)),
    ("one in 40", Form::List, |_, random| random.one_in(40)),
    ("all, as bits", Form::Bits, |_, _| true),
    ("all, listed", Form::List, |_, _| true),
    ("none, as bits", Form::Bits, |_, _| false),
    ("none, listed", Form::List, |_, _| false),
    ("one stretch", Form::Bits, |row, _| {
        (1000..1100).contains(&row)
    }),
];

/// Selections of every form over `rows` rows.
pub(super) fn selections(rows: usize, random: &mut Random) -> impl Iterator<Item = Within> {
    let of = move |(name, form, keep): &(&'static str, Form, Keep)| {
        let list: Vec<usize> = (0..rows).filter(|row| keep(*row, random)).collect();
        let mut selection = Selection::default();
        match form {
            Form::All => selection = Selection::all(rows),
            Form::None => selection.set_none(rows),
            Form::Bits | Form::List => {
                let numbers = list.iter().map(|row| *row as u32);
                selection.set_rows(rows).extend(numbers);
            }
        }
        if matches!(form, Form::Bits) {
            selection.to_bits();
        }
        Within {
            name,
            selection,
            rows: list,
        }
    };
    SELECTIONS.iter().map(of)
}
