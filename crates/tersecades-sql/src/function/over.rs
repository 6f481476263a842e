//! Functions of `OVER (...)` as DataFusion's planner sees them; the engine's operator runs them.

use std::sync::{Arc, LazyLock};

use arrow_schema::{DataType, Field, FieldRef};
use datafusion_common::{Result, not_impl_err, plan_err};
use datafusion_expr::function::{PartitionEvaluatorArgs, WindowUDFFieldArgs};
use datafusion_expr::{PartitionEvaluator, Signature, Volatility, WindowUDF, WindowUDFImpl};
use tersecades_columnar::types::logical_type;

/// What the result of a function is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Gives {
    /// A whole number.
    Number,
    /// A fraction.
    Fraction,
    /// A value of the first argument.
    Value,
}

/// A function of rows in an order.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct OverFunction {
    name: &'static str,
    gives: Gives,
    /// Fewest and most arguments.
    arguments: (usize, usize),
    signature: Signature,
}

const FUNCTIONS: &[(&str, Gives, (usize, usize))] = &[
    ("row_number", Gives::Number, (0, 0)),
    ("rank", Gives::Number, (0, 0)),
    ("dense_rank", Gives::Number, (0, 0)),
    ("percent_rank", Gives::Fraction, (0, 0)),
    ("cume_dist", Gives::Fraction, (0, 0)),
    ("ntile", Gives::Number, (1, 1)),
    ("lag", Gives::Value, (1, 3)),
    ("lead", Gives::Value, (1, 3)),
    ("first_value", Gives::Value, (1, 1)),
    ("last_value", Gives::Value, (1, 1)),
    ("nth_value", Gives::Value, (2, 2)),
];

/// All of them.
pub(crate) static OVER_FUNCTIONS: LazyLock<Vec<Arc<WindowUDF>>> = LazyLock::new(|| {
    let function = |&(name, gives, arguments): &(&'static str, Gives, (usize, usize))| {
        Arc::new(WindowUDF::new_from_impl(OverFunction {
            name,
            gives,
            arguments,
            signature: match arguments.1 {
                0 => Signature::nullary(Volatility::Immutable),
                _ => Signature::variadic_any(Volatility::Immutable),
            },
        }))
    };
    FUNCTIONS.iter().map(function).collect()
});

impl WindowUDFImpl for OverFunction {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn field(&self, arguments: WindowUDFFieldArgs) -> Result<FieldRef> {
        let given = arguments.input_fields();
        let (least, most) = self.arguments;
        if given.len() < least || given.len() > most {
            let wanted = match least == most {
                true => least.to_string(),
                false => format!("{least} to {most}"),
            };
            return plan_err!(
                "{} takes {wanted} arguments, got {}",
                self.name,
                given.len()
            );
        }
        let data_type = match (self.gives, given.first()) {
            (Gives::Fraction, _) => DataType::Float64,
            (Gives::Value, Some(value)) => logical_type(value.data_type()),
            _ => DataType::Int64,
        };
        Ok(Arc::new(Field::new(arguments.name(), data_type, true)))
    }

    fn partition_evaluator(
        &self,
        _arguments: PartitionEvaluatorArgs,
    ) -> Result<Box<dyn PartitionEvaluator>> {
        not_impl_err!("{} runs in the engine", self.name)
    }
}
