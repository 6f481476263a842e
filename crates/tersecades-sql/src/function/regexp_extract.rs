//! `regexp_extract(text, pattern[, group])`: the first match of a pattern, or a group of it.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, Int64Array, StringArray};
use arrow_schema::DataType;
use datafusion_common::{Result, exec_datafusion_err, exec_err, plan_err};
use datafusion_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion_functions::regex::compile_regex;

const NAME: &str = "regexp_extract";

#[derive(Debug, PartialEq, Eq, Hash)]
struct RegexpExtract(Signature);

pub(super) fn function() -> ScalarUDF {
    ScalarUDF::new_from_impl(RegexpExtract(Signature::user_defined(
        Volatility::Immutable,
    )))
}

impl ScalarUDFImpl for RegexpExtract {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.0
    }

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        let is_text = |given: &DataType| given.is_string() || given.is_null();
        let is_number = |given: &DataType| given.is_integer() || given.is_null();
        match given {
            [text, pattern] if is_text(text) && is_text(pattern) => Ok(vec![DataType::Utf8; 2]),
            [text, pattern, group] if is_text(text) && is_text(pattern) && is_number(group) => {
                Ok(vec![DataType::Utf8, DataType::Utf8, DataType::Int64])
            }
            _ => plan_err!("{NAME} takes a text, a pattern and the number of a group"),
        }
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = arguments.number_rows;
        let [texts, pattern, group @ ..] = arguments.args.as_slice() else {
            return exec_err!("{NAME} takes a text and a pattern");
        };
        let ColumnarValue::Scalar(pattern) = pattern else {
            return exec_err!("the pattern of {NAME} must be a constant");
        };
        let groups = match group {
            [group] => group.to_array(rows)?.as_primitive::<Int64Type>().clone(),
            _ => Int64Array::from_value(0, rows),
        };
        let texts = texts.to_array(rows)?;
        let Some(pattern) = pattern.try_as_str().flatten() else {
            let nulls = arrow_array::new_null_array(&DataType::Utf8, rows);
            return Ok(ColumnarValue::Array(nulls));
        };
        let regex = compile_regex(pattern, None)?;
        let found = |row: usize, text: &'_ str| -> Result<String> {
            let group = usize::try_from(groups.value(row));
            let group = group.map_err(|_| exec_datafusion_err!("a group of {NAME} is below 0"))?;
            let captures = regex.captures(text);
            let group = captures.as_ref().and_then(|captures| captures.get(group));
            Ok(group.map_or("", |group| group.as_str()).to_owned())
        };
        let texts: &StringArray = texts.as_string();
        let found = texts.iter().enumerate().map(|(row, text)| {
            let text = text.filter(|_| groups.is_valid(row));
            text.map(|text| found(row, text)).transpose()
        });
        let found: StringArray = found.collect::<Result<_>>()?;
        Ok(ColumnarValue::Array(Arc::new(found)))
    }
}
