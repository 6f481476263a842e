//! Whole streams: an event time and one column of every type.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef};
use tersecades_columnar::types::Value;

use super::column::{SHAPES, Shape, column, types};
use super::time::{TimeStream, times};
use crate::random::Random;

/// Name of the event time column.
pub const TIME: &str = "time";

/// Rows, and what they are made of.
#[derive(Debug, Clone)]
pub struct Stream {
    /// Names and types.
    pub schema: SchemaRef,
    /// The rows in order of arrival.
    pub rows: Vec<Vec<Value>>,
    /// The shape of each column after the first, which is the event time.
    pub shapes: Vec<Shape>,
}

impl Stream {
    /// The shape of the column named `name`; `None` for the event time and unknown names.
    pub fn shape(&self, name: &str) -> Option<Shape> {
        let index = self.schema.index_of(name).ok()?;
        index.checked_sub(1).map(|index| self.shapes[index])
    }

    /// The values of the column at `index`.
    pub fn values(&self, index: usize) -> Vec<Value> {
        self.rows.iter().map(|row| row[index].clone()).collect()
    }
}

/// The name of the column of `data_type` in every stream: `c_` and the type.
pub fn column_name(data_type: &DataType) -> String {
    let text = format!("{data_type}").to_lowercase().replace('µ', "u");
    let plain: String = text.chars().filter(|c| c.is_ascii_alphanumeric()).collect();
    format!("c_{plain}")
}

/// A stream of `rows` rows with event times of `time_type` and one column of every type, each in a
/// random shape.
pub fn random_stream(
    time_type: &DataType,
    time: TimeStream,
    rows: usize,
    random: &mut Random,
) -> Stream {
    let mut fields = vec![Field::new(TIME, time_type.clone(), true)];
    let mut columns = vec![times(time, rows, random)];
    let mut shapes = Vec::new();
    for data_type in types() {
        let shape = match data_type.is_floating() {
            // Answers over the ends of a float type depend on the order of additions.
            true => *random.pick(&[Shape::Random, Shape::Repeats, Shape::Runs, Shape::MostlyOne]),
            false => *random.pick(SHAPES),
        };
        fields.push(Field::new(column_name(&data_type), data_type.clone(), true));
        columns.push(column(&data_type, shape, rows, random));
        shapes.push(shape);
    }
    let row = |index: usize| columns.iter().map(|column| column[index].clone()).collect();
    Stream {
        schema: Arc::new(Schema::new(fields)),
        rows: (0..rows).map(row).collect(),
        shapes,
    }
}
