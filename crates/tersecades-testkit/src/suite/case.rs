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

    /// Predicates with their answers.
    pub(super) fn questions(&self, random: &mut Random) -> Vec<Question> {
        let constants = self.constants(random);
        let mut questions = Vec::new();
        for constant in &constants {
            for how in COMPARISONS {
                let pass = |value: &Value| holds(how, order(value, constant));
                let predicate = Predicate::compare(&self.data_type, how, constant);
                let name = format!("{} {constant:?}", how.symbol());
                questions.push(self.question(name, predicate.unwrap(), pass));
            }
        }
        for _ in 0..3 {
            let (low, high) = (random.pick(&constants), random.pick(&constants));
            let pass = |value: &Value| order(value, low).is_ge() && order(value, high).is_le();
            let predicate = Predicate::between(&self.data_type, low, high).unwrap();
            questions.push(self.question(format!("between {low:?} {high:?}"), predicate, pass));
        }
        for count in [0, 1, 4] {
            let mut list: Vec<Value> = constants.iter().take(count).cloned().collect();
            list.push(Value::Null);
            let present = |c: &&Value| **c != Value::Null;
            let pass = |value: &Value| list.iter().filter(present).any(|c| order(value, c).is_eq());
            let predicate = Predicate::one_of(&self.data_type, &list).unwrap();
            questions.push(self.question(format!("one of {list:?}"), predicate, pass));
        }
        let null = Predicate::compare(&self.data_type, Comparison::NotEqual, &Value::Null);
        questions.push(self.question("<> null".to_owned(), null.unwrap(), |_| false));
        questions
    }

    fn question(
        &self,
        name: String,
        predicate: Predicate,
        pass: impl Fn(&Value) -> bool,
    ) -> Question {
        let passing = self
            .values
            .iter()
            .map(|value| *value != Value::Null && pass(value));
        Question {
            name,
            predicate,
            passing: passing.collect(),
        }
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

/// Selections of every form over `rows` rows.
pub(super) fn selections(rows: usize, random: &mut Random) -> Vec<Within> {
    let mut selections = Vec::new();
    let mut add = |name, selection: Selection| {
        let mut list = Vec::new();
        for row in 0..rows {
            if selection.contains(row) {
                list.push(row);
            }
        }
        selections.push(Within {
            name,
            selection,
            rows: list,
        });
    };
    add("all", Selection::all(rows));
    let mut none = Selection::default();
    none.set_none(rows);
    add("none", none);
    let kinds: [(&str, usize); 4] = [
        ("one in 2", 2),
        ("one in 40", 40),
        ("all, listed", 1),
        ("none, listed", 0),
    ];
    for (name, one_in) in kinds {
        let keep = |_: &u32| one_in > 0 && random.one_in(one_in);
        let list: Vec<u32> = (0..rows as u32).filter(keep).collect();
        let mut listed = Selection::default();
        listed.set_rows(rows).extend(list);
        if one_in < 10 {
            let mut bits = listed.clone();
            bits.to_bits();
            add(name, bits);
        }
        if one_in != 2 {
            add(name, listed);
        }
    }
    let mut block = Selection::default();
    block
        .set_rows(rows)
        .extend((0..rows as u32).filter(|row| (1000..1100).contains(row)));
    block.to_bits();
    add("one stretch", block);
    selections
}
