//! Functions of numbers that DataFusion lacks: `bit_count`, `xor`, `isinf`, `isfinite`, `even`,
//! `fmod`, and `power` and `log`, which are always floats.
//!
//! DataFusion's operator is no `xor`: of the same column twice it makes zero, where nulls are null.
//! So are `log(x, x)` one and `log(x, 1)` zero to it, whatever `x` is.

use std::sync::Arc;

use arrow_arith::arity::binary;
use arrow_arith::bitwise::bitwise_xor;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, UInt64Type};
use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int8Array};
use arrow_schema::DataType;
use datafusion_common::{Result, exec_err, plan_err};
use datafusion_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion_functions::utils::make_scalar_function;

/// What a function computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Computes {
    BitCount,
    Xor,
    IsInfinite,
    IsFinite,
    Even,
    Modulo,
    Power,
    Logarithm,
}

/// A function of numbers.
#[derive(Debug, PartialEq, Eq, Hash)]
struct OfNumbers {
    name: &'static str,
    computes: Computes,
    signature: Signature,
}

pub(super) fn functions() -> impl Iterator<Item = ScalarUDF> {
    let named = [
        ("bit_count", Computes::BitCount),
        ("xor", Computes::Xor),
        ("isinf", Computes::IsInfinite),
        ("isfinite", Computes::IsFinite),
        ("even", Computes::Even),
        ("fmod", Computes::Modulo),
        ("power", Computes::Power),
        ("pow", Computes::Power),
        ("log", Computes::Logarithm),
    ];
    named.into_iter().map(|(name, computes)| {
        ScalarUDF::new_from_impl(OfNumbers {
            name,
            computes,
            signature: Signature::user_defined(Volatility::Immutable),
        })
    })
}

impl ScalarUDFImpl for OfNumbers {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        let wanted = match self.computes {
            Computes::Modulo | Computes::Power | Computes::Xor => 2,
            Computes::Logarithm => given.len().clamp(1, 2),
            _ => 1,
        };
        if given.len() != wanted {
            let plural = if wanted == 1 { "" } else { "s" };
            let given = given.len();
            return plan_err!("{} takes {wanted} argument{plural}, got {given}", self.name);
        }
        let of_bits = matches!(self.computes, Computes::BitCount | Computes::Xor);
        let takes = |own: &DataType| match of_bits {
            true => own.is_integer(),
            false => own.is_numeric(),
        };
        if let Some(other) = given.iter().find(|own| !takes(own) && !own.is_null()) {
            let numbers = if of_bits { "whole numbers" } else { "numbers" };
            return plan_err!("{} takes {numbers}, got {other}", self.name);
        }
        let same = given.iter().all(|own| *own == given[0] && own.is_integer());
        Ok(match (of_bits, same) {
            (true, true) => given.to_vec(),
            (true, false) => vec![DataType::Int64; wanted],
            (false, _) => vec![DataType::Float64; wanted],
        })
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        Ok(match self.computes {
            Computes::Xor => arguments.first().cloned().unwrap_or(DataType::Int64),
            Computes::BitCount => DataType::Int8,
            Computes::IsInfinite | Computes::IsFinite => DataType::Boolean,
            Computes::Even | Computes::Modulo | Computes::Power | Computes::Logarithm => {
                DataType::Float64
            }
        })
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let compute = |arrays: &[ArrayRef]| match (self.computes, arrays) {
            (Computes::Modulo, [a, b]) => Ok(modulo(a.as_primitive(), b.as_primitive())),
            (Computes::Power, [a, b]) => by_pairs(a, b, f64::powf),
            (Computes::Logarithm, [base, number]) => by_pairs(base, number, logarithm),
            (Computes::Xor, [a, b]) => xor(a, b),
            (Computes::BitCount, [whole]) => bit_counts(whole),
            (computes, [floats]) => Ok(of_floats(computes, floats.as_primitive())),
            _ => exec_err!("{} has other arguments", self.name),
        };
        make_scalar_function(compute, Vec::new())(&arguments.args)
    }
}

fn of_floats(computes: Computes, floats: &Float64Array) -> ArrayRef {
    let tested = |test: fn(f64) -> bool| -> ArrayRef {
        Arc::new(
            floats
                .iter()
                .map(|float| float.map(test))
                .collect::<BooleanArray>(),
        )
    };
    match computes {
        Computes::IsInfinite => tested(f64::is_infinite),
        Computes::IsFinite => tested(f64::is_finite),
        Computes::Logarithm => Arc::new(floats.unary::<_, Float64Type>(f64::log10)),
        _ => Arc::new(floats.unary::<_, Float64Type>(even)),
    }
}

/// The next even number away from zero.
fn even(number: f64) -> f64 {
    let whole = number.abs().ceil();
    let odd = if whole % 2.0 == 1.0 { 1.0 } else { 0.0 };
    (whole + odd).copysign(number)
}

/// The remainder with the sign of the divisor; null where that is zero.
fn modulo(numbers: &Float64Array, divisors: &Float64Array) -> ArrayRef {
    let remainders = numbers.iter().zip(divisors).map(|(number, divisor)| {
        let (number, divisor) = (number?, divisor.filter(|divisor| *divisor != 0.0)?);
        if divisor.is_infinite() {
            return Some(f64::NAN);
        }
        let remainder = number % divisor;
        if remainder == 0.0 {
            return Some(0.0);
        }
        let other_sign = (remainder < 0.0) != (divisor < 0.0);
        Some(if other_sign {
            remainder + divisor
        } else {
            remainder
        })
    });
    Arc::new(remainders.collect::<Float64Array>())
}

/// What `compute` makes of two numbers of each row.
fn by_pairs(a: &ArrayRef, b: &ArrayRef, compute: fn(f64, f64) -> f64) -> Result<ArrayRef> {
    let (a, b) = (
        a.as_primitive::<Float64Type>(),
        b.as_primitive::<Float64Type>(),
    );
    let computed = binary::<_, _, _, Float64Type>(a, b, compute)?;
    Ok(Arc::new(computed))
}

/// The logarithm of `number`, exact for powers of the usual bases.
fn logarithm(base: f64, number: f64) -> f64 {
    match base {
        2.0 => number.log2(),
        10.0 => number.log10(),
        _ => number.log(base),
    }
}

/// The bits that one of two numbers of a type has.
fn xor(a: &ArrayRef, b: &ArrayRef) -> Result<ArrayRef> {
    let in_type = |wide: &DataType| -> Result<[ArrayRef; 2]> {
        Ok([arrow_cast::cast(a, wide)?, arrow_cast::cast(b, wide)?])
    };
    let bits: ArrayRef = match a.data_type().is_unsigned_integer() {
        true => {
            let [a, b] = in_type(&DataType::UInt64)?;
            Arc::new(bitwise_xor::<UInt64Type>(
                a.as_primitive(),
                b.as_primitive(),
            )?)
        }
        false => {
            let [a, b] = in_type(&DataType::Int64)?;
            Arc::new(bitwise_xor::<Int64Type>(
                a.as_primitive(),
                b.as_primitive(),
            )?)
        }
    };
    Ok(arrow_cast::cast(&bits, a.data_type())?)
}

/// How many bits of each number are set, in as many as its type has.
fn bit_counts(numbers: &ArrayRef) -> Result<ArrayRef> {
    let own = numbers.data_type();
    let bits = own.primitive_width().map_or(64, |bytes| 8 * bytes as u32);
    let unused = u64::MAX.checked_shl(bits).unwrap_or(0);
    // Sixty-four ones at most.
    let count = |number: u64| (number & !unused).count_ones() as i8;
    let counts: Int8Array = match own.is_unsigned_integer() {
        true => arrow_cast::cast(numbers, &DataType::UInt64)?
            .as_primitive::<UInt64Type>()
            .unary(count),
        false => arrow_cast::cast(numbers, &DataType::Int64)?
            .as_primitive::<Int64Type>()
            .unary(|number| count(number.cast_unsigned())),
    };
    Ok(Arc::new(counts))
}
