//! `md5(text)`: the MD5 digest of text or bytes, in hexadecimal digits.

use std::sync::Arc;

use arrow_array::StringArray;
use arrow_array::cast::AsArray;
use arrow_schema::DataType;
use datafusion_common::{Result, exec_err, plan_err};
use datafusion_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::of_one;

const NAME: &str = "md5";

#[derive(Debug, PartialEq, Eq, Hash)]
struct Md5(Signature);

pub(super) fn function() -> ScalarUDF {
    ScalarUDF::new_from_impl(Md5(Signature::user_defined(Volatility::Immutable)))
}

impl ScalarUDFImpl for Md5 {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.0
    }

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        match given {
            [text] if text.is_string() || text.is_null() => Ok(vec![DataType::Utf8]),
            [bytes] if bytes.is_binary() => Ok(vec![DataType::Binary]),
            [other] => plan_err!("{NAME} takes text, got {other}: write CAST(x AS VARCHAR)"),
            _ => plan_err!("{NAME} takes 1 argument, got {}", given.len()),
        }
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        of_one(&arguments, |values| {
            let digest = |bytes: &[u8]| format!("{:x}", md5::compute(bytes));
            let digests: StringArray = match values.data_type() {
                DataType::Utf8 => {
                    let texts = values.as_string::<i32>().iter();
                    texts.map(|text| Some(digest(text?.as_bytes()))).collect()
                }
                DataType::Binary => {
                    let bytes = values.as_binary::<i32>().iter();
                    bytes.map(|bytes| bytes.map(digest)).collect()
                }
                other => return exec_err!("{NAME} takes text, got {other}"),
            };
            Ok(Arc::new(digests))
        })
    }
}
