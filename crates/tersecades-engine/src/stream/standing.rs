//! Several queries over one stream.

use std::sync::Arc;

use arrow_schema::SchemaRef;
use tersecades_columnar::error::{Error, Result};

use crate::expression::lit;
use crate::operator::window_aggregate::feed::{ReadFrom, SharedPanes};
use crate::plan::{Query, uses_of};
use crate::runtime::Running;
use crate::runtime::engine::columns_read;
use crate::runtime::ingest::Ingest;
use crate::runtime::option::TimeKind;
use crate::runtime::share::{Share, groups};
use crate::runtime::standing::{Filler, SharedTable, Standing};

use super::Stream;

/// What fills panes, by the names of its queries, and each query's part in them.
type Filling = (Vec<Filler>, Vec<Option<Share>>);

/// Starts, by `over`, what fills the panes that `queries` over rows of `schema` share.
fn fill(
    queries: &[(String, Stream)],
    schema: &SchemaRef,
    over: &dyn Fn(Stream, Option<&Share>) -> Result<Running>,
) -> Result<Filling> {
    let (mut fillers, mut shares) = (Vec::new(), Vec::new());
    shares.resize_with(queries.len(), || None);
    let asked = queries
        .iter()
        .map(|(_, query)| (&query.query, &query.options));
    for group in groups(asked, schema) {
        let names = group.members.iter().map(|(member, _)| &*queries[*member].0);
        let name = names.collect::<Vec<&str>>().join("`, `");
        let Some((first, _)) = group.members.first() else {
            continue;
        };
        let mut filler = queries[*first].1.clone();
        let Some(steps) = group.steps(&filler.query.steps) else {
            continue;
        };
        filler.query.steps = steps;
        filler.options.keep = None;
        filler.options.keep_late = false;
        filler.options.keep_late_whole = false;
        // Readers count its bytes, each its part.
        filler.options.memory_bytes_limit = None;
        let panes = SharedPanes::default();
        let from = ReadFrom {
            panes: panes.clone(),
            readers: group.members.len(),
            shown: group.show(&name),
        };
        let share = Share::Fill {
            windows: group.windows,
            panes: panes.clone(),
        };
        // What is wrong with a query is said where it is bound by itself.
        let Ok(running) = over(filler, Some(&share)) else {
            continue;
        };
        let Some(plan) = running.aggregate_plan().cloned() else {
            continue;
        };
        for (member, at) in group.members {
            let filler = Arc::clone(&plan);
            let from = from.clone();
            shares[member] = Some(Share::Read { filler, at, from });
        }
        fillers.push(Filler::new(name, running, from));
    }
    Ok((fillers, shares))
}

impl Stream {
    /// Runs `queries`, by name, together over this stream: it is read once, and encoded once where
    /// it is kept.
    ///
    /// Each query is a stream made of a clone of this one and its own steps; its answers, its
    /// watermark and its late rows are those it has alone. What this stream keeps is the retained
    /// range of all.
    ///
    /// # Errors
    /// `InvalidArgument` for a query over another stream, one whose columns are to be encoded by
    /// other schemes than those of this stream, or a name that is given twice;
    /// `Unsupported` for joins of streams, operators on rows before a window, times of arrival and
    /// ranges that are kept for certain queries; what binding each query says.
    ///
    /// # Cost
    /// The queries take turns batch by batch, so that what one has read is in the caches for the
    /// next. Those with the same filters, columns and keys before windows on a grid (`tumble`,
    /// `hop`, `cumulate`) share panes, on one thread: rows are filtered, grouped and added once for
    /// all of them.
    ///
    /// # Examples
    /// ```
    /// use std::{sync::Arc, time::Duration};
    /// use arrow_array::{ArrayRef, Int64Array, RecordBatch, TimestampMillisecondArray};
    /// use tersecades_engine::aggregate::{call, count};
    /// use tersecades_engine::runtime::Keep;
    /// use tersecades_engine::{expression::col, stream::Stream, window::tumble};
    /// let time: ArrayRef = Arc::new(TimestampMillisecondArray::from(vec![0, 400, 1_200]));
    /// let rtt: ArrayRef = Arc::new(Int64Array::from(vec![10, 500, 30]));
    /// let rows = RecordBatch::try_from_iter([("timestamp", time), ("rtt", rtt)]).unwrap();
    /// let probes = Stream::from_batches(rows.schema(), vec![rows]).keep(Keep::Bytes(1 << 20));
    /// let second = || probes.clone().window(tumble(Duration::from_secs(1)));
    /// let queries = [
    ///     ("rows", second().aggregate([count()])),
    ///     ("worst", second().aggregate([call("max", col("rtt"))])),
    /// ];
    /// let mut run = probes.clone().standing(queries).unwrap();
    /// let names: Vec<String> = run.by_ref().map(|found| found.unwrap().0.to_string()).collect();
    /// assert_eq!(names, ["rows", "worst", "rows", "worst"]);
    /// assert_eq!(run.retained().unwrap().rows(), 3);
    /// ```
    pub fn standing<N: Into<String>>(
        self,
        queries: impl IntoIterator<Item = (N, Stream)>,
    ) -> Result<Standing> {
        let queries = self.over_this(queries)?;
        self.can_stand()?;
        for (name, query) in &queries {
            self.can_carry(name, query)?;
        }
        let asked: Vec<&Query> = queries.iter().map(|(_, query)| &query.query).collect();
        let columns = match self.options.keep {
            Some(_) => None,
            None => self.columns_of(&asked)?,
        };
        let origin = self.table.open_with(columns.as_deref(), &self.options)?;
        let uses = |column: &str| uses_of(&asked, column);
        let ingest = Ingest::new(origin, columns, &self.options, &uses)?;
        let table = SharedTable::of(&ingest);
        let over = |mut stream: Stream, share: Option<&Share>| {
            stream.table = Arc::new(table.clone());
            // The columns are encoded, by the schemes of all, and kept by one.
            stream.options.encoding.schemes.clear();
            stream.run_shared(share)
        };
        let keeper = self.options.keep.map(|_| {
            let nothing = self.clone().filter(lit(false));
            over(nothing, None)
        });
        let (fillers, shares) = fill(&queries, ingest.schema(), &over)?;
        let mut running = Vec::with_capacity(queries.len());
        for ((name, mut query), share) in queries.into_iter().zip(shares) {
            query.options.keep = None;
            running.push((name, over(query, share.as_ref())?));
        }
        Ok(Standing::new(
            ingest,
            table,
            (fillers, running),
            keeper.transpose()?,
        ))
    }

    /// The columns that any of the queries reads; all when `None`.
    fn columns_of(&self, queries: &[&Query]) -> Result<Option<Vec<String>>> {
        let mut read = Vec::new();
        for query in queries {
            match columns_read(query, &self.table.schema())? {
                Some(columns) => read.extend(columns),
                None => return Ok(None),
            }
        }
        read.sort_unstable();
        read.dedup();
        // Rows without columns have no number in most formats.
        Ok(Some(read).filter(|columns| !columns.is_empty()))
    }

    /// Refuses a query that cannot be run over this stream beside others.
    fn can_carry(&self, name: &str, query: &Stream) -> Result<()> {
        if query.options.encoding.schemes != self.options.encoding.schemes {
            let what = format!("the query `{name}` encodes columns otherwise than the stream");
            return Err(Error::invalid(what)
                .hint("call .encoding(…) on the stream, before queries are made of its clones"));
        }
        let nested = query.clone().nested()?;
        if !Arc::ptr_eq(&nested.table, &self.table) || query.options.time.kind != TimeKind::Event {
            let why = "an operator on rows comes before its window, or times are of arrival";
            let what = format!("the query `{name}` beside others: {why}");
            return Err(
                Error::unsupported(what).hint("run it by itself, or over the retained range")
            );
        }
        Ok(())
    }

    /// Refuses a stream that others cannot be run over together.
    fn can_stand(&self) -> Result<()> {
        if !self.query.steps.is_empty() {
            return Err(
                Error::invalid("the stream that queries share has steps of its own")
                    .hint("make it a source first: .as_source()"),
            );
        }
        if self.registered.is_some() || self.options.time.kind != TimeKind::Event {
            return Err(Error::unsupported(
                "queries together over a stream that is kept for certain queries, or whose times \
                 are those of arrival",
            )
            .hint("keep all of it: .keep(…); or run each query by itself"));
        }
        Ok(())
    }
}
