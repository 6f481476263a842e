//! What a query generator knows of the columns at one point of a query.

use arrow_schema::DataType;
use tersecades_columnar::types::Value;

use crate::data::{Shape, Stream};

/// A column, and what may be done with it.
#[derive(Debug, Clone)]
pub struct Column {
    /// Name.
    pub name: String,
    /// Type.
    pub data_type: DataType,
    /// Whether every engine gives the same bits.
    pub exact: bool,
    /// Whether values are small enough for sums and 64-bit arithmetic.
    pub tame: bool,
    /// Some of its values, not null; empty when unknown.
    pub samples: Vec<Value>,
}

/// The columns at one point of a query.
#[derive(Debug, Clone)]
pub struct Scope {
    /// The columns, in order.
    pub columns: Vec<Column>,
}

impl Scope {
    /// The columns of a stream.
    pub fn of_stream(stream: &Stream) -> Self {
        let fields = stream.schema.fields().iter().enumerate();
        let columns = fields.map(|(index, field)| {
            let values = stream.values(index);
            let present = values.iter().filter(|value| **value != Value::Null);
            Column {
                name: field.name().clone(),
                data_type: field.data_type().clone(),
                exact: true,
                tame: is_tame(field.data_type(), stream.shape(field.name())),
                samples: present.step_by(7).take(60).cloned().collect(),
            }
        });
        Scope {
            columns: columns.collect(),
        }
    }

    /// Adds a tame column whose values are unknown.
    pub fn add(&mut self, name: &str, data_type: DataType) {
        self.columns.push(Column {
            name: name.to_owned(),
            data_type,
            exact: true,
            tame: true,
            samples: Vec::new(),
        });
    }

    /// The columns that are exact.
    pub fn exact(&self) -> Scope {
        let columns = self.columns.iter().filter(|column| column.exact);
        Scope {
            columns: columns.cloned().collect(),
        }
    }

    /// The columns that `fit`.
    pub fn that(&self, fit: impl Fn(&Column) -> bool) -> Vec<&Column> {
        self.columns.iter().filter(|column| fit(column)).collect()
    }
}

impl Column {
    /// Whether 64-bit arithmetic and sums cannot overflow.
    pub fn is_small_integer(&self) -> bool {
        self.tame && self.data_type.is_integer()
    }

    /// Whether later steps can read it: lists go out, and nowhere else.
    pub fn is_reusable(&self) -> bool {
        !self.data_type.is_nested()
    }

    /// Whether it can be added up.
    pub fn is_summable(&self) -> bool {
        self.tame && self.data_type.is_numeric()
    }
}

fn is_tame(data_type: &DataType, shape: Option<Shape>) -> bool {
    match data_type {
        DataType::Int64 | DataType::UInt64 => shape.is_some_and(Shape::is_tame),
        DataType::Float32 | DataType::Float64 => {
            !matches!(shape, Some(Shape::Extremes | Shape::Outliers))
        }
        _ => true,
    }
}
