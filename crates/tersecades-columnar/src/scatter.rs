//! Computed values as a column: the inverse of gather.
//!
//! Operators compute values for surviving rows alone. The result is a column as long as its batch
//! whose other rows hold anything, so the next operator addresses rows as in every column. Nothing
//! is cleared and no statistics are taken: the cost is that of the survivors.

use std::sync::Arc;

use arrow_schema::DataType;

use crate::chunk::{Chunk, LANES};
use crate::error::Result;
use crate::lane::KeyLane;
use crate::registry;
use crate::selection::Selection;
use crate::stats::Stats;
use crate::types::Physical;
use crate::values::Values;

impl Chunk {
    /// Becomes a column of `rows` rows with `values`, in order, in the rows of `within`.
    ///
    /// # Errors
    /// `Unsupported` when `data_type` has no physical shape.
    ///
    /// # Cost
    /// One store per value; no allocation once the memory has grown to `rows`.
    pub fn scatter(
        &mut self,
        data_type: &DataType,
        rows: usize,
        within: &Selection,
        values: &Values,
    ) -> Result<()> {
        let physical = Physical::of(data_type)?;
        let lanes = if physical == Physical::Text {
            &DataType::UInt32
        } else {
            data_type
        };
        let mut inner = match physical {
            Physical::Text => Some(self.body.take_inner(0).unwrap_or_default()),
            _ => None,
        };
        self.body.retire();
        inner
            .as_deref_mut()
            .unwrap_or(self)
            .scatter_lanes(lanes, rows, within, values)?;
        if let Some(inner) = inner {
            self.body.inner[0] = Some(inner);
            self.body.dictionary = values.dictionary.as_ref().map(Arc::clone);
            self.codec = registry::text_codes();
        }
        self.data_type.clone_from(data_type);
        self.physical = physical;
        self.rows = rows;
        self.stats = Stats::default();
        self.scatter_validity(within, values);
        Ok(())
    }

    fn scatter_lanes(
        &mut self,
        data_type: &DataType,
        rows: usize,
        within: &Selection,
        values: &Values,
    ) -> Result<()> {
        self.data_type.clone_from(data_type);
        self.physical = Physical::of(data_type)?;
        self.rows = rows;
        self.nulls = 0;
        self.validity.clear();
        self.stats = Stats::default();
        self.codec = registry::fallback();
        self.body.retire();
        let length = rows * self.physical.lane_bytes();
        self.body.bytes.resize_stale(length);
        self.body.sections[LANES] = (0, length);
        let lanes = &mut self.body.bytes.bytes_mut()[..length];
        let flip = self.physical.flip();
        match self.physical.lane_bytes() {
            1 => store::<u8>(lanes, within, &values.keys, flip),
            2 => store::<u16>(lanes, within, &values.keys, flip),
            4 => store::<u32>(lanes, within, &values.keys, flip),
            8 => store::<u64>(lanes, within, &values.keys, flip),
            _ => {
                let lanes: &mut [i128] = bytemuck::cast_slice_mut(lanes);
                let mut next = values.wide.iter();
                within.for_each(|row| {
                    if let Some(value) = next.next() {
                        lanes[row] = *value;
                    }
                });
            }
        }
        Ok(())
    }

    fn scatter_validity(&mut self, within: &Selection, values: &Values) {
        self.validity.clear();
        self.nulls = 0;
        if values.validity.is_empty() {
            return;
        }
        self.validity.fill(self.rows, true);
        let mut index = 0;
        within.for_each(|row| {
            self.validity.set(row, values.validity.get(index));
            index += 1;
        });
        self.nulls = self.rows - self.validity.count();
        if self.nulls == 0 {
            self.validity.clear();
        }
    }
}

fn store<T: KeyLane>(bytes: &mut [u8], within: &Selection, keys: &[u64], flip: u64) {
    let lanes: &mut [T] = bytemuck::cast_slice_mut(bytes);
    let mut next = keys.iter();
    within.for_each(|row| {
        if let Some(key) = next.next() {
            lanes[row] = T::cut(key ^ flip);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::Work;

    #[test]
    fn gather_returns_what_scatter_stored() {
        let mut within = Selection::default();
        within.set_rows(3_000).extend([1, 64, 2_999]);
        let mut values = Values::default();
        for data_type in [
            DataType::Int8,
            DataType::UInt32,
            DataType::Int64,
            DataType::Float64,
        ] {
            values.reset(Physical::of(&data_type).unwrap());
            values.keys.extend([5, 0, 200]);
            values.validity.fill(3, true);
            values.validity.set(1, false);
            let mut chunk = Chunk::default();
            chunk.scatter(&data_type, 3_000, &within, &values).unwrap();
            let (mut back, mut work) = (Values::default(), Work::default());
            chunk.gather(&within, &mut back, &mut work);
            assert_eq!(back.keys, values.keys);
            assert_eq!(back.validity, values.validity);
        }
    }
}
