//! Window functions of event time: placeholders that the lowering of a group-by recognises.
//!
//! Both spellings of a window become these: `FROM HOP(TABLE t, DESCRIPTOR(ts), ...)` adds the
//! columns `window_start` and `window_end` computed by them, `GROUP BY hop(ts, ...)` groups by
//! them. None of them is ever evaluated.

use std::sync::{Arc, LazyLock};

use arrow_schema::{DataType, TimeUnit};
use datafusion_common::{Result, not_impl_err, plan_err};
use datafusion_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use tersecades_engine::expression::{Expression, col};

/// Which end of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Edge {
    /// Its first moment.
    Start,
    /// The moment after its last.
    End,
}

impl Edge {
    /// Both of them.
    pub(crate) const BOTH: [Edge; 2] = [Edge::Start, Edge::End];

    /// Its column in results of windows, as a value.
    pub(crate) fn value(self) -> Expression {
        col(self.column())
    }

    /// Its column in results of windows.
    pub(crate) fn column(self) -> &'static str {
        match self {
            Edge::Start => "window_start",
            Edge::End => "window_end",
        }
    }
}

/// The kind of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// `TUMBLE(time, size [, offset])`
    Tumble,
    /// `HOP(time, slide, size [, offset])`
    Hop,
    /// `CUMULATE(time, step, size)`
    Cumulate,
    /// `SESSION(time, gap)`
    Session,
    /// `COUNT(time, rows)`
    Count,
    /// `CALENDAR(time, unit, zone [, offset])`
    Calendar,
}

impl Kind {
    /// Every kind.
    pub(crate) const ALL: [Kind; 6] = [
        Kind::Tumble,
        Kind::Hop,
        Kind::Cumulate,
        Kind::Session,
        Kind::Count,
        Kind::Calendar,
    ];

    /// The name in SQL.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Tumble => "tumble",
            Kind::Hop => "hop",
            Kind::Cumulate => "cumulate",
            Kind::Session => "session",
            Kind::Count => "count",
            Kind::Calendar => "calendar",
        }
    }

    /// The name in `GROUP BY`, where `count` is an aggregate.
    pub(crate) fn key_name(self) -> &'static str {
        match self {
            Kind::Count => "count_window",
            kind => kind.name(),
        }
    }

    /// The kind named `name` in `FROM`.
    pub(crate) fn of_table(name: &str) -> Option<Kind> {
        let mut kinds = Kind::ALL.into_iter();
        kinds.find(|kind| kind.name().eq_ignore_ascii_case(name))
    }

    /// The kind named `name` in `GROUP BY`.
    pub(crate) fn of_key(name: &str) -> Option<Kind> {
        let mut kinds = Kind::ALL.into_iter();
        kinds.find(|kind| kind.key_name().eq_ignore_ascii_case(name))
    }

    /// How it is written.
    pub(crate) fn usage(self) -> &'static str {
        match self {
            Kind::Tumble => "TUMBLE(TABLE t, DESCRIPTOR(time), size [, offset])",
            Kind::Hop => "HOP(TABLE t, DESCRIPTOR(time), slide, size [, offset])",
            Kind::Cumulate => "CUMULATE(TABLE t, DESCRIPTOR(time), step, size)",
            Kind::Session => "SESSION(TABLE t, DESCRIPTOR(time), gap)",
            Kind::Count => "COUNT(TABLE t, DESCRIPTOR(time), rows)",
            Kind::Calendar => {
                "CALENDAR(TABLE t, DESCRIPTOR(time), 'day', 'Europe/Berlin' [, offset])"
            }
        }
    }

    /// Fewest and most arguments after the time.
    pub(crate) fn parameters(self) -> (usize, usize) {
        match self {
            Kind::Tumble => (1, 2),
            Kind::Hop => (2, 3),
            Kind::Cumulate => (2, 2),
            Kind::Session | Kind::Count => (1, 1),
            Kind::Calendar => (2, 3),
        }
    }
}

/// A function that stands for an edge of the window of a row.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct WindowEdge {
    /// The kind.
    pub(crate) kind: Kind,
    /// The edge.
    pub(crate) edge: Edge,
    name: String,
    signature: Signature,
}

/// All of them, as `hop_start` and `hop_end`.
pub(crate) static WINDOW_EDGES: LazyLock<Vec<Arc<ScalarUDF>>> = LazyLock::new(|| {
    let edges = |kind: Kind| [(kind, Edge::Start), (kind, Edge::End)];
    let function = |(kind, edge)| {
        Arc::new(ScalarUDF::new_from_impl(WindowEdge {
            kind,
            edge,
            name: edge_name(kind, edge),
            // Volatile, so that no rule of the optimiser moves or merges it.
            signature: Signature::variadic_any(Volatility::Volatile),
        }))
    };
    Kind::ALL
        .into_iter()
        .flat_map(edges)
        .map(function)
        .collect()
});

/// The name of the function of an edge.
pub(crate) fn edge_name(kind: Kind, edge: Edge) -> String {
    match edge {
        Edge::Start => format!("{}_start", kind.name()),
        Edge::End => format!("{}_end", kind.name()),
    }
}

impl ScalarUDFImpl for WindowEdge {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        let (least, most) = self.kind.parameters();
        let Some((time, parameters)) = arguments.split_first() else {
            return plan_err!("{} needs a time", self.name);
        };
        if parameters.len() < least || parameters.len() > most {
            return plan_err!("write {}", self.kind.usage());
        }
        match time {
            DataType::Timestamp(..) => Ok(time.clone()),
            time if time.is_integer() => Ok(DataType::Timestamp(TimeUnit::Millisecond, None)),
            DataType::Date32 => Ok(DataType::Timestamp(TimeUnit::Second, None)),
            other => plan_err!("the time of a window must be a timestamp, this one is {other}"),
        }
    }

    fn invoke_with_args(&self, _arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        not_impl_err!("{} outside of a GROUP BY", self.name)
    }
}

/// The function of the condition that stands on a window table, so that its windows are not lost
/// where nothing reads their edges.
pub(crate) const IN_WINDOW: &str = "in_window";

/// The function [`IN_WINDOW`] of both edges.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct InWindow {
    signature: Signature,
}

/// The one of it.
pub(crate) static IN_WINDOW_MARK: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    Arc::new(ScalarUDF::new_from_impl(InWindow {
        // Volatile, so that no rule of the optimiser moves it.
        signature: Signature::any(2, Volatility::Volatile),
    }))
});

impl ScalarUDFImpl for InWindow {
    fn name(&self) -> &str {
        IN_WINDOW
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn invoke_with_args(&self, _arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        not_impl_err!("{IN_WINDOW} outside of a window table")
    }
}
