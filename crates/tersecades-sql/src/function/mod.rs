//! Functions that SQL knows, and those of them that DataFusion's scalar ones lack.

pub(crate) mod aggregate;
pub(crate) mod arithmetic;
pub(crate) mod cast;
pub(crate) mod choice;
pub(crate) mod compare;
mod concat;
mod date_bin;
mod date_day;
pub(crate) mod date_interval;
pub(crate) mod date_part;
pub(crate) mod division;
pub(crate) mod far;
pub(crate) mod float;
pub(crate) mod float_time;
pub(crate) mod join;
pub(crate) mod key;
pub(crate) mod list;
mod md5;
mod number;
pub(crate) mod over;
pub(crate) mod pattern;
pub(crate) mod real;
mod regexp_extract;
pub(crate) mod series;
pub(crate) mod set;
pub(crate) mod shift;
pub(crate) mod signed;
pub(crate) mod string_agg;
mod time;
pub(crate) mod time_cast;
pub(crate) mod time_text;
pub(crate) mod timestamp;
pub(crate) mod whole;
pub(crate) mod window;

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use arrow_array::ArrayRef;
use datafusion_common::{Result, exec_err};
use datafusion_expr::planner::ExprPlanner;
use datafusion_expr::{AggregateUDF, ColumnarValue, ScalarFunctionArgs, ScalarUDF, WindowUDF};
use datafusion_functions::utils::make_scalar_function;

use aggregate::{CountOfRows, GROUPING, SQL_AGGREGATES};
use cast::{CAST_MARK, CAST_TO};
use concat::NullTexts;
use date_bin::DateBin;
use date_day::DaysOfDates;
use division::FloatQuotients;
use join::{AS_OF, AS_OF_MARK};
use over::OVER_FUNCTIONS;
use signed::{SIGNED, SIGNED_MARK};
use string_agg::STRING_AGGS;
use timestamp::MAKE_TIMESTAMP;
use window::{IN_WINDOW, IN_WINDOW_MARK, Kind, WINDOW_EDGES};

/// Functions by name.
pub(crate) struct Functions {
    pub(crate) scalars: BTreeMap<String, Arc<ScalarUDF>>,
    pub(crate) aggregates: BTreeMap<String, Arc<AggregateUDF>>,
    pub(crate) over: BTreeMap<String, Arc<WindowUDF>>,
    /// What turns operators and special forms into functions.
    pub(crate) planners: Vec<Arc<dyn ExprPlanner>>,
}

/// Names that DataFusion has not given to its functions.
const SYNONYMS: [(&str, &str); 4] = [
    ("sign", "signum"),
    ("prefix", "starts_with"),
    ("suffix", "ends_with"),
    ("regexp_matches", "regexp_like"),
];

/// The functions of every session.
pub(crate) static FUNCTIONS: LazyLock<Functions> = LazyLock::new(|| {
    let mut scalars = BTreeMap::new();
    let functions = datafusion_functions::all_default_functions();
    let marks = [&*AS_OF_MARK, &*CAST_MARK, &*IN_WINDOW_MARK, &*SIGNED_MARK];
    let ours = WINDOW_EDGES.iter().chain(marks).chain([&*MAKE_TIMESTAMP]);
    let texts = [regexp_extract::function(), md5::function()];
    let built = time::functions().chain(number::functions()).chain(texts);
    let ours = ours.cloned().chain(built.map(Arc::new));
    for function in functions.into_iter().chain(ours) {
        let function = match function.name() {
            "date_bin" => DateBin::over(function),
            _ => function,
        };
        for alias in function.aliases() {
            scalars.insert(alias.clone(), Arc::clone(&function));
        }
        scalars.insert(function.name().to_owned(), function);
    }
    for (name, known) in SYNONYMS {
        if let Some(function) = scalars.get(known).cloned() {
            scalars.insert(name.to_owned(), function);
        }
    }
    let aggregates = SQL_AGGREGATES.iter().chain(STRING_AGGS.iter());
    let aggregates = aggregates.chain([&*GROUPING]);
    let over = OVER_FUNCTIONS.iter();
    Functions {
        scalars,
        aggregates: aggregates
            .map(|f| (f.name().to_owned(), Arc::clone(f)))
            .collect(),
        over: over.map(|f| (f.name().to_owned(), Arc::clone(f))).collect(),
        planners: vec![
            Arc::new(CountOfRows),
            Arc::new(NullTexts),
            Arc::new(FloatQuotients),
            Arc::new(DaysOfDates),
            Arc::new(datafusion_functions::core::planner::CoreFunctionPlanner {}),
            Arc::new(datafusion_functions::datetime::planner::DatetimeFunctionPlanner),
            Arc::new(datafusion_functions::unicode::planner::UnicodeFunctionPlanner),
        ],
    }
});

impl Functions {
    /// Whether a function has this name.
    pub(crate) fn contains(&self, name: &str) -> bool {
        let name = name.to_lowercase();
        self.scalars.contains_key(&name)
            || self.aggregates.contains_key(&name)
            || self.over.contains_key(&name)
    }

    /// Names of all functions that queries call.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> + '_ {
        let scalars = self.scalars.keys().chain(self.aggregates.keys());
        let names = scalars.chain(self.over.keys()).map(String::as_str);
        let keys = Kind::ALL.iter().map(|kind| kind.key_name());
        names
            .chain(keys)
            .filter(|name: &&str| ![AS_OF, CAST_TO, IN_WINDOW, SIGNED].contains(name))
    }
}

/// What `compute` gives for the one argument of a function, be it a column or one value.
fn of_one(
    arguments: &ScalarFunctionArgs,
    compute: impl Fn(&ArrayRef) -> Result<ArrayRef>,
) -> Result<ColumnarValue> {
    let compute = |arrays: &[ArrayRef]| match arrays {
        [array] => compute(array),
        _ => exec_err!("the function has one argument"),
    };
    make_scalar_function(compute, Vec::new())(&arguments.args)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_query_is_offered_a_mark() {
        let names: Vec<&str> = FUNCTIONS.names().collect();
        assert!(names.contains(&"abs"));
        for mark in [AS_OF, CAST_TO, IN_WINDOW, SIGNED] {
            assert!(FUNCTIONS.contains(mark) && !names.contains(&mark), "{mark}");
        }
    }
}
