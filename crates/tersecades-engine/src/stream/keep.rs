//! Retained ranges: exact, or as much as registered queries can observe.

use std::sync::Arc;

use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::nearest::nearest;

use crate::observe::{Observed, Registered};
use crate::plan::{Query, Step};
use crate::runtime::option::{RunOptions, TimeKind};
use crate::runtime::stage::check_final;
use crate::runtime::{Keep, Retained};
use crate::window::Updates;

use super::Stream;

/// What `explain` calls the query that runs while the range is filled.
const OWN_QUERY: &str = "the stream itself";

impl Stream {
    /// Keeps the newest part of the stream, encoded, for [`Stream::from_retained`]; every value is
    /// kept as it is.
    pub fn keep(mut self, keep: Keep) -> Self {
        self.options.keep = Some(keep);
        self.registered = None;
        self
    }

    /// Keeps of the newest part of the stream what `queries`, by name, and this stream's own steps
    /// can observe: columns that only comparisons read as classes of values, an event time that
    /// only windows read as their panes, columns that none reads not at all.
    ///
    /// No answer of these queries changes; [`Retained::query`] runs them, [`Stream::describe`] says
    /// what is kept and why, and a later query that would see more is refused. Each query is a
    /// stream made of a clone of this one before its own steps.
    ///
    /// # Errors
    /// `InvalidArgument` for a query over another stream, or a name that is given twice.
    ///
    /// # Examples
    /// ```
    /// use std::{sync::Arc, time::Duration};
    /// use arrow_array::{ArrayRef, Int64Array, RecordBatch, TimestampMillisecondArray};
    /// use tersecades_engine::aggregate::count;
    /// use tersecades_engine::runtime::Keep;
    /// use tersecades_engine::{expression::col, stream::Stream, window::tumble};
    /// let time: ArrayRef = Arc::new(TimestampMillisecondArray::from(vec![0, 400, 1_200]));
    /// let rtt: ArrayRef = Arc::new(Int64Array::from(vec![10, 500, 30]));
    /// let rows = RecordBatch::try_from_iter([("timestamp", time), ("rtt", rtt)]).unwrap();
    /// let probes = Stream::from_batches(rows.schema(), vec![rows]);
    /// let slow = probes.clone().filter(col("rtt").gt_eq(100));
    /// let slow = slow.window(tumble(Duration::from_secs(1))).aggregate([count()]);
    /// let probes = probes.keep_for(Keep::Bytes(1 << 20), [("slow", slow)]).unwrap();
    /// let mut run = probes.aggregate([count()]).run().unwrap();
    /// while run.step().unwrap() {}
    /// let kept = run.retained().unwrap();
    /// assert_eq!(kept.query("slow").unwrap().run().unwrap().count(), 1);
    /// // The times themselves are gone.
    /// assert!(Stream::from_retained(kept).run().is_err());
    /// ```
    pub fn keep_for<N: Into<String>>(
        mut self,
        keep: Keep,
        queries: impl IntoIterator<Item = (N, Stream)>,
    ) -> Result<Self> {
        let queries = self.over_this(queries)?;
        let register = |(name, query): (String, Stream)| Registered {
            name,
            exact: exact_because(&query.options).map(str::to_owned),
            time: query.options.time.of_timed_rows(),
            query: query.query,
        };
        self.options.keep = Some(keep);
        self.registered = Some(queries.into_iter().map(register).collect());
        Ok(self)
    }

    /// The queries, each of which is made of a clone of this stream.
    pub(super) fn over_this<N: Into<String>>(
        &self,
        queries: impl IntoIterator<Item = (N, Stream)>,
    ) -> Result<Vec<(String, Stream)>> {
        let mut named: Vec<(String, Stream)> = Vec::new();
        for (name, query) in queries {
            let name = name.into();
            if !Arc::ptr_eq(&query.table, &self.table) {
                let message = format!("the query `{name}` reads another stream, or a join of them");
                return Err(Error::invalid(message)
                    .hint("make it of a clone of the stream itself, or keep all: .keep(…)"));
            }
            if named.iter().any(|(known, _)| *known == name) {
                return Err(Error::invalid(format!("two queries are named `{name}`")));
            }
            named.push((name, query));
        }
        Ok(named)
    }

    /// What is kept of each column, where that is less than all.
    ///
    /// # Errors
    /// What binding the registered queries says.
    pub(super) fn observed(&self) -> Result<Option<Observed>> {
        let Some(registered) = &self.registered else {
            return Ok(None);
        };
        let mut queries = registered.clone();
        queries.push(Registered {
            name: OWN_QUERY.to_owned(),
            query: self.query.clone(),
            exact: exact_because(&self.options).map(str::to_owned),
            time: self.options.time.of_timed_rows(),
        });
        let event_time = &self.query.event_time.expression;
        Observed::of(&self.table.schema(), event_time, queries).map(Some)
    }

    /// Refuses a query over a range that keeps less than it would see.
    pub(super) fn admitted(&self) -> Result<()> {
        if self.options.keep.is_some() {
            // What is kept again may be read by any query.
            let everything = Query {
                event_time: self.query.event_time.clone(),
                steps: Vec::new(),
            };
            self.table.admit(&everything, None)?;
        }
        // To put rows in order, or to take the first, is to see each by itself.
        let counts = |step: &Step| matches!(step, Step::Aggregate { .. });
        check_final(self.query.steps.iter().any(counts) && self.table.has_updates())?;
        self.table.admit(&self.query, exact_because(&self.options))
    }
}

impl Stream {
    /// Whether rows may replace earlier ones: results of windows that come more than once.
    pub(crate) fn has_updates(&self) -> bool {
        let mut windows = self.query.steps.iter().filter_map(|step| match step {
            Step::Aggregate { window, .. } => Some(window),
            _ => None,
        });
        match windows.next_back() {
            Some(window) => window.updates != Updates::default(),
            None => self.table.has_updates(),
        }
    }
}

impl Retained {
    /// The query that the range is kept for under this name, over the range as it is.
    ///
    /// # Errors
    /// `InvalidArgument`, listing the names there are.
    pub fn query(&self, name: &str) -> Result<Stream> {
        let observed = self.observed();
        if let Some(known) = observed.and_then(|observed| observed.query(name)) {
            let mut stream = Stream::from_retained(self).query(known.query.clone());
            stream.options.time = known.time.clone();
            return Ok(stream);
        }
        let known = observed.map_or_else(Vec::new, Observed::query_names);
        let error = Error::invalid(format!("no query is registered as `{name}`"));
        Err(match nearest(name, &known) {
            Some(near) => error.hint(format!("did you mean `{near}`?")),
            None => error.hint(format!("registered are: {}", known.join(", "))),
        })
    }
}

/// What besides its steps makes a query see the values it reads as they are.
fn exact_because(options: &RunOptions) -> Option<&'static str> {
    if options.keep_late || options.keep_late_whole {
        return Some("late rows are handed out");
    }
    let time = &options.time;
    let by_clock = time.kind != TimeKind::Event || time.future_limit.is_some();
    by_clock.then_some("times are compared with the clock")
}
