//! Times in texts: Arrow takes none without seconds, and cuts those before 1970 towards it.
//!
//! ```text
//! CAST(text AS TIMESTAMP)    ─▶ CAST(with_seconds(text) AS TIMESTAMP), of dates too
//! to_timestamp_seconds(text) ─▶ to_timestamp_seconds(to_timestamp(with_seconds(text)))
//! ```

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_schema::DataType;
use datafusion_common::config::ConfigOptions;
use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_common::{DFSchema, Result, ScalarValue};
use datafusion_expr::expr_rewriter::FunctionRewrite;
use datafusion_expr::{
    ColumnarValue, Expr, ExprSchemable, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use tersecades_engine::expression::{texts_with_seconds, with_seconds};

use super::{FUNCTIONS, of_one};

const WITH_SECONDS: &str = "with_seconds";
const TO_TIMESTAMP: &str = "to_timestamp";

/// What reads a time of nanoseconds, or its day.
const FINE: [&str; 3] = [TO_TIMESTAMP, "to_timestamp_nanos", "to_date"];

/// What reads a time of nanoseconds and cuts it to a unit.
const COARSE: [&str; 4] = [
    "to_timestamp_seconds",
    "to_timestamp_millis",
    "to_timestamp_micros",
    "to_unixtime",
];

#[derive(Debug, PartialEq, Eq, Hash)]
struct WithSeconds {
    signature: Signature,
}

impl ScalarUDFImpl for WithSeconds {
    fn name(&self) -> &str {
        WITH_SECONDS
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        of_one(&arguments, |texts| {
            let texts = arrow_cast::cast(texts, &DataType::Utf8)?;
            let whole = texts_with_seconds(texts.as_string());
            Ok(whole.map_or(texts, |whole| Arc::new(whole)))
        })
    }
}

/// Completes such texts.
#[derive(Debug)]
pub(crate) struct TimeTexts;

impl FunctionRewrite for TimeTexts {
    fn name(&self) -> &str {
        "time_texts"
    }

    fn rewrite(
        &self,
        expr: Expr,
        schema: &DFSchema,
        _config: &ConfigOptions,
    ) -> Result<Transformed<Expr>> {
        let is_time = |to: &DataType| matches!(to, DataType::Timestamp(..) | DataType::Date32);
        let (reads, is_coarse) = match &expr {
            Expr::Cast(cast) => (is_time(cast.field.data_type()), false),
            Expr::TryCast(cast) => (is_time(cast.field.data_type()), false),
            // With a second argument there is a format.
            Expr::ScalarFunction(call) if call.args.len() == 1 => {
                let is_coarse = COARSE.contains(&call.func.name());
                (is_coarse || FINE.contains(&call.func.name()), is_coarse)
            }
            _ => (false, false),
        };
        if !reads {
            return Ok(Transformed::no(expr));
        }
        expr.map_children(|child| {
            if !is_text(&child.get_type(schema)?) {
                return Ok(Transformed::no(child));
            }
            let whole = completed(child);
            Ok(match is_coarse {
                true => Transformed::yes(FUNCTIONS.scalars[TO_TIMESTAMP].call(vec![whole.data])),
                false => whole,
            })
        })
    }
}

fn is_text(data_type: &DataType) -> bool {
    let text = match data_type {
        DataType::Dictionary(_, value) => value,
        other => other,
    };
    matches!(
        text,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View
    )
}

/// The text with seconds.
fn completed(text: Expr) -> Transformed<Expr> {
    match &text {
        Expr::Literal(value, _) => match value.try_as_str().flatten().and_then(with_seconds) {
            Some(whole) => Transformed::yes(Expr::Literal(ScalarValue::from(whole), None)),
            None => Transformed::no(text),
        },
        Expr::ScalarFunction(call) if call.func.name() == WITH_SECONDS => Transformed::no(text),
        _ => {
            let signature = Signature::any(1, Volatility::Immutable);
            let function = Arc::new(ScalarUDF::new_from_impl(WithSeconds { signature }));
            Transformed::yes(function.call(vec![text]))
        }
    }
}
