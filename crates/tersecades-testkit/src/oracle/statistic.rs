//! Lines through pairs and forms of distributions, in two passes.

use tersecades_columnar::types::Value;

use super::evaluate::as_float;

/// Relative error of what is computed from powers of deviations.
const ERROR: f64 = 1e-6;

fn mean(numbers: &[f64]) -> f64 {
    numbers.iter().sum::<f64>() / numbers.len() as f64
}

fn deviations(numbers: &[f64]) -> Vec<f64> {
    let mean = mean(numbers);
    numbers.iter().map(|number| number - mean).collect()
}

fn is_constant(numbers: &[f64]) -> bool {
    numbers.iter().all(|number| *number == numbers[0])
}

fn summed(left: &[f64], right: &[f64]) -> f64 {
    left.iter().zip(right).map(|(a, b)| a * b).sum()
}

/// A number of the line through pairs of `ys` over `xs`, and its slack.
pub(super) fn regression(function: &str, ys: &[Value], xs: &[Value]) -> (Value, f64) {
    let present = |(x, y): &(&Value, &Value)| **x != Value::Null && **y != Value::Null;
    let pairs = xs.iter().zip(ys).filter(present);
    let (xs, ys): (Vec<f64>, Vec<f64>) = pairs.map(|(x, y)| (as_float(x), as_float(y))).unzip();
    if function == "regr_count" {
        return (Value::from(xs.len() as u64), 0.0);
    }
    if xs.is_empty() {
        return (Value::Null, 0.0);
    }
    let (dx, dy) = (deviations(&xs), deviations(&ys));
    let (xx, yy, xy) = (summed(&dx, &dx), summed(&dy, &dy), summed(&dx, &dy));
    let largest = |numbers: &[f64]| {
        numbers
            .iter()
            .fold(0.0, |most: f64, number| most.max(number.abs()))
    };
    let (size_x, size_y) = (largest(&xs), largest(&ys));
    let slack = |size: f64| ERROR * size * xs.len() as f64;
    let steepest = (yy / xx).sqrt();
    let slope = xy / xx;
    let found = |number: f64, slack: f64| (Value::Float(number), slack);
    match function {
        "regr_avgx" => found(mean(&xs), slack(size_x)),
        "regr_avgy" => found(mean(&ys), slack(size_y)),
        "regr_sxx" => found(xx, slack(size_x * size_x)),
        "regr_syy" => found(yy, slack(size_y * size_y)),
        "regr_sxy" => found(xy, slack(size_x * size_y)),
        _ if is_constant(&xs) => (Value::Null, 0.0),
        "regr_slope" => found(slope, ERROR * steepest),
        "regr_intercept" => {
            let slack = ERROR * (size_y + steepest * size_x);
            found(mean(&ys) - slope * mean(&xs), slack)
        }
        _ if is_constant(&ys) => found(1.0, 0.0),
        _ => found(xy * xy / (xx * yy), ERROR),
    }
}

/// The product of values, by their logarithms, and its slack.
fn product(values: &[Value]) -> (Value, f64) {
    if values.is_empty() {
        return (Value::Null, 0.0);
    }
    let numbers = values.iter().map(as_float);
    let digits: f64 = numbers.clone().map(|number| number.abs().log2()).sum();
    let is_negative = numbers.filter(|number| number.is_sign_negative()).count() % 2 == 1;
    let product = if is_negative {
        -digits.exp2()
    } else {
        digits.exp2()
    };
    let slack = ERROR * product.abs() * (1.0 + digits.abs()) + f64::MIN_POSITIVE;
    (
        Value::Float(product),
        if slack.is_nan() { 0.0 } else { slack },
    )
}

/// Skewness, kurtosis or product of values, and their slack.
pub(super) fn form(function: &str, values: &[Value]) -> (Value, f64) {
    if function == "product" {
        return product(values);
    }
    let numbers: Vec<f64> = values.iter().map(as_float).collect();
    let least = match function {
        "skewness" => 3,
        "kurtosis" => 4,
        _ => 2,
    };
    if numbers.len() < least || is_constant(&numbers) {
        return (Value::Null, 0.0);
    }
    let count = numbers.len() as f64;
    let apart = deviations(&numbers);
    let power = |exponent: i32| apart.iter().map(|d| d.powi(exponent)).sum::<f64>() / count;
    let (second, third, fourth) = (power(2), power(3), power(4));
    let form = match function {
        "skewness" => {
            (count * (count - 1.0)).sqrt() / (count - 2.0) * third / (second * second.sqrt())
        }
        "kurtosis" => {
            let scaled = (count + 1.0) * fourth / (second * second) - 3.0 * (count - 1.0);
            (count - 1.0) * scaled / ((count - 2.0) * (count - 3.0))
        }
        _ => fourth / (second * second) - 3.0,
    };
    (Value::Float(form), ERROR * (1.0 + form.abs()))
}
