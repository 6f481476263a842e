//! `year(t)`, `hour(t)` and the like: parts that `date_part` gives, as 64-bit numbers.

use std::sync::Arc;

use arrow_schema::{DataType, Field};
use datafusion_common::{Result, ScalarValue, plan_err};
use datafusion_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::super::FUNCTIONS;
use super::super::date_part::computed_part;
use super::{time_type, udf};

/// Name, part, other names.
const PARTS: &[(&str, &str, &[&str])] = &[
    ("year", "year", &[]),
    ("isoyear", "isoyear", &[]),
    ("quarter", "quarter", &[]),
    ("month", "month", &[]),
    ("week", "week", &["weekofyear"]),
    ("day", "day", &["dayofmonth"]),
    ("dayofyear", "doy", &[]),
    ("dayofweek", "dow", &["weekday"]),
    ("isodow", "isodow", &[]),
    ("hour", "hour", &[]),
    ("minute", "minute", &[]),
    ("second", "second", &[]),
    ("millisecond", "millisecond", &[]),
    ("microsecond", "microsecond", &[]),
];

/// A part of a time.
#[derive(Debug, PartialEq, Eq, Hash)]
struct TimePart {
    name: &'static str,
    part: &'static str,
    aliases: Vec<String>,
    signature: Signature,
}

pub(super) fn functions() -> impl Iterator<Item = ScalarUDF> {
    PARTS.iter().map(|&(name, part, aliases)| {
        let aliases = aliases.iter().map(|alias| (*alias).to_owned());
        udf(TimePart {
            name,
            part,
            aliases: aliases.collect(),
            signature: Signature::user_defined(Volatility::Immutable),
        })
    })
}

impl ScalarUDFImpl for TimePart {
    fn name(&self) -> &str {
        self.name
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        match given {
            [time] => Ok(vec![time_type(self.name, time)?]),
            _ => plan_err!("{} takes 1 argument, got {}", self.name, given.len()),
        }
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int64)
    }

    fn invoke_with_args(&self, mut arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let part = ColumnarValue::Scalar(ScalarValue::from(self.part));
        let field = Arc::new(Field::new("part", DataType::Utf8, false));
        arguments.args.insert(0, part);
        arguments.arg_fields.insert(0, field);
        arguments.return_field = Arc::new(Field::new(self.name, DataType::Int32, true));
        computed_part(&FUNCTIONS.scalars["date_part"], arguments)?.cast_to(&DataType::Int64, None)
    }
}
