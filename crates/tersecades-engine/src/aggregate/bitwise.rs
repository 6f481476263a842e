//! `bit_and`, `bit_or` and `bit_xor` of integers.

use arrow_array::ArrayRef;
use arrow_schema::DataType;
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::types::{Physical, Value};

use super::Aggregate;
use super::collected::bits::{BITS, BitSets, Bits};
use super::collected::{Collection, Collects, Finish, collected};

/// The values of a group joined bit by bit, nulls left out.
#[derive(Debug)]
pub struct Bitwise {
    name: &'static str,
    summary: &'static str,
    bits: fn(Bits) -> u64,
}

/// The bits that all values have.
pub const BIT_AND: Bitwise = Bitwise {
    name: "bit_and",
    summary: "the bits that all integers have",
    bits: |bits| bits.all,
};

/// The bits that some value has.
pub const BIT_OR: Bitwise = Bitwise {
    name: "bit_or",
    summary: "the bits that some integer has",
    bits: |bits| bits.some,
};

/// The bits that an odd number of values has.
pub const BIT_XOR: Bitwise = Bitwise {
    name: "bit_xor",
    summary: "the bits that an odd number of integers has",
    bits: |bits| bits.odd,
};

impl Aggregate for Bitwise {
    fn name(&self) -> &'static str {
        self.name
    }

    fn summary(&self) -> &'static str {
        self.summary
    }

    fn collects(&self) -> Option<Collects> {
        Some(BITS)
    }

    fn result_type(&self, argument: &DataType) -> Result<DataType> {
        match argument {
            integer if integer.is_integer() => Ok(integer.clone()),
            other => Err(
                Error::schema(format!("{} needs integers, got {other}", self.name))
                    .hint("cast the argument to an integer"),
            ),
        }
    }

    fn finish_collected(&self, from: &dyn Collection, finish: &Finish<'_>) -> Result<ArrayRef> {
        let sets: &BitSets = collected(from)?;
        let signed = matches!(
            finish.argument.physical,
            Physical::Integer { signed: true, .. }
        );
        finish.column(|id| {
            let bits = sets.get(id);
            Ok(match (bits.is_empty(), (self.bits)(bits)) {
                (true, _) => Value::Null,
                // Values of narrower types were extended by their sign, and so is what joins them.
                (false, word) if signed => Value::from(word as i64),
                (false, word) => Value::from(word),
            })
        })
    }
}
