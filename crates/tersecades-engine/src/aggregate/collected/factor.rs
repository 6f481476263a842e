//! Products of numbers, whose exponents have room: what overflows on the way comes back.

use std::any::Any;

use tersecades_columnar::codec::Work;
use tersecades_columnar::error::Result;
use tersecades_columnar::types::Physical;

use super::{CollectWork, Collection, Collects, Rows, Second, collected, taken};
use crate::runtime::state::{StateReader, StateWriter};

/// What aggregates ask for.
pub const FACTORS: Collects = Collects {
    name: "factors",
    second: Second::No,
    by_parameter: false,
    start: |arguments, _| {
        let scale = arguments.first().map_or(0, |argument| argument.scale());
        Box::new(Factors {
            divisor: 10f64.powi(i32::from(scale)),
            products: Vec::new(),
        })
    },
};

/// Bits of the fraction of a float.
const FRACTION_BITS: u32 = f64::MANTISSA_DIGITS - 1;
const EXPONENT_MASK: u64 = 0x7ff << FRACTION_BITS;
const EXPONENT_BIAS: i64 = 1_023;

/// The product `mantissa * 2^exponent` of so many values.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Product {
    count: u64,
    /// At least one and below two, or zero, infinite or no number.
    mantissa: f64,
    exponent: i64,
}

impl Product {
    /// That of no value.
    const NONE: Product = Product {
        count: 0,
        mantissa: 1.0,
        exponent: 0,
    };

    fn of(value: f64) -> Self {
        Product {
            count: 1,
            mantissa: value,
            exponent: 0,
        }
        .normal()
    }

    fn normal(self) -> Self {
        if self.mantissa == 0.0 || !self.mantissa.is_finite() {
            return self;
        }
        let (mantissa, raised) = match self.mantissa.is_subnormal() {
            true => (self.mantissa * 2f64.powi(64), 64),
            false => (self.mantissa, 0),
        };
        let bits = mantissa.to_bits();
        let own = ((bits & EXPONENT_MASK) >> FRACTION_BITS).cast_signed() - EXPONENT_BIAS;
        let one = EXPONENT_BIAS.cast_unsigned() << FRACTION_BITS;
        Product {
            mantissa: f64::from_bits(bits & !EXPONENT_MASK | one),
            exponent: self.exponent.saturating_add(own - raised),
            ..self
        }
    }

    fn times(self, other: Product) -> Self {
        Product {
            count: self.count + other.count,
            mantissa: self.mantissa * other.mantissa,
            exponent: self.exponent.saturating_add(other.exponent),
        }
        .normal()
    }

    /// The product of so many of it.
    fn repeated(self, mut times: u64) -> Self {
        let (mut power, mut all) = (self, Product::NONE);
        while times > 0 {
            if times % 2 == 1 {
                all = all.times(power);
            }
            power = power.times(power);
            times /= 2;
        }
        all
    }

    fn value(self) -> f64 {
        // Twice half of it, as what is left of a tiny result is rounded once.
        let exponent = self.exponent.clamp(-2_000, 2_000) as i32;
        let half = exponent / 2;
        self.mantissa * 2f64.powi(half) * 2f64.powi(exponent - half)
    }
}

/// Products by group id.
#[derive(Debug, Clone)]
pub struct Factors {
    /// What decimals are divided by.
    divisor: f64,
    products: Vec<Product>,
}

impl Factors {
    /// The product of group `id`; `None` of no value.
    pub fn product(&self, id: u32) -> Option<f64> {
        let product = self.products.get(id as usize)?;
        (product.count > 0).then(|| product.value())
    }
}

impl Collection for Factors {
    fn grow(&mut self, groups: usize) {
        self.products.resize(groups, Product::NONE);
    }

    fn clear(&mut self) {
        self.products.clear();
    }

    fn add(&mut self, rows: Rows<'_>, work: (&mut CollectWork, &mut Work)) -> Result<()> {
        let (products, divisor) = (&mut self.products, self.divisor);
        rows.for_each_value(work, |id, values, index, count| {
            let value = match values.physical {
                Physical::Float { .. } => values.float(index),
                _ => values.integer(index) as f64 / divisor,
            };
            let product = &mut products[id as usize];
            *product = product.times(Product::of(value).repeated(count));
        })
    }

    fn merge(&mut self, other: &dyn Collection, targets: &[u32]) {
        if let Ok(other) = collected::<Factors>(other) {
            for (product, target) in taken(&other.products, targets) {
                self.products[target] = self.products[target].times(*product);
            }
        }
    }

    fn byte_size(&self) -> usize {
        self.products.capacity() * size_of::<Product>()
    }

    fn snapshot(&self, out: &mut StateWriter) {
        for product in &self.products {
            out.u64(product.count);
            out.f64(product.mantissa);
            out.i64(product.exponent);
        }
    }

    fn restore(&mut self, groups: usize, from: &mut StateReader<'_>) -> Result<()> {
        self.clear();
        for _ in 0..groups {
            self.products.push(Product {
                count: from.u64()?,
                mantissa: from.f64()?,
                exponent: from.i64()?,
            });
        }
        Ok(())
    }

    fn copy(&self) -> Box<dyn Collection> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn product(values: &[f64]) -> f64 {
        let factors = values.iter().map(|value| Product::of(*value));
        factors.fold(Product::NONE, Product::times).value()
    }

    #[test]
    fn products_are_those_of_floats_without_their_limits_on_the_way() {
        let tiny = f64::from_bits(3);
        for (values, expected) in [
            (&[1.5, -2.0, 2.0][..], -6.0),
            (&[1e200, 1e200, 1e-300, 1e-100], 1.0),
            (&[tiny, 1.0], tiny),
            (&[tiny, 0.5], f64::from_bits(2)),
            (&[1e-300, 1e-300], 0.0),
            (&[1e300, -1e300], f64::NEG_INFINITY),
            (&[f64::INFINITY, 2.0], f64::INFINITY),
        ] {
            let got = product(values);
            let is_near = (got - expected).abs() <= 4.0 * f64::EPSILON * expected.abs();
            assert!(got == expected || is_near, "{values:?}: {got}");
        }
        assert!(product(&[f64::INFINITY, 0.0]).is_nan());
        assert!(product(&[f64::NAN, 0.0]).is_nan());
        assert_eq!(product(&[-1.0, 0.0]).to_bits(), (-0.0f64).to_bits());
        assert_eq!(Product::of(-3.0).repeated(5).value(), -243.0);
        assert_eq!(Product::of(-3.0).repeated(5).count, 5);
    }
}
