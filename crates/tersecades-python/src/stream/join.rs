//! Joins with tables and with other streams.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use tersecades::engine::operator::join::table::JoinTime;
use tersecades::engine::operator::join::window::WindowJoinSpec;

use crate::duration::Length;
use crate::error::OrRaise;
use crate::join::{self, BACKWARD, Distance, INNER, Keys, LEFT, NamedDirection, NamedKind};
use crate::lookup::{Lookup, lookup_table};
use crate::window::Window;

use super::Stream;

#[expect(
    clippy::too_many_arguments,
    reason = "each is an argument of the method in Python"
)]
#[pymethods]
impl Stream {
    /// Adds columns of the row of `table` whose key equals the stream's; rows without one are
    /// dropped.
    ///
    /// `on` is a column of both, or a pair: the stream's and the table's. `columns` are names in
    /// the table, or `{"name in the table": "new name"}`.
    fn lookup(
        &self,
        table: &Bound<'_, PyAny>,
        on: &Bound<'_, PyAny>,
        columns: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        let lookup = Lookup::new(table, on, columns)?;
        Ok(self.change(|stream| lookup.apply(stream)))
    }

    /// Joins each row with the version of a row of `table` that holds at its event time: of the
    /// rows with equal values of the columns `on`, the one with the latest `valid_from` that is
    /// not after it.
    ///
    /// >>> import pyarrow as pa, tersecades as tc
    /// >>> def table(seconds, **columns):
    /// ...     times = pa.array([s * 1_000 for s in seconds], pa.timestamp("ms"))
    /// ...     return pa.table({"timestamp": times, **columns})
    /// >>> owners = table([0, 10], host=[1, 1], owner=["Ada", "Grace"])
    /// >>> calls = tc.from_arrow(table([3, 12], host=[1, 1]))
    /// >>> owned = calls.versioned_lookup(owners, on="host", valid_from="timestamp")
    /// >>> owned.select("owner").to_pylist()
    /// [{'owner': 'Ada'}, {'owner': 'Grace'}]
    #[pyo3(signature = (table, on, valid_from, how=LEFT))]
    fn versioned_lookup(
        &self,
        table: &Bound<'_, PyAny>,
        on: Keys,
        valid_from: &str,
        how: NamedKind,
    ) -> PyResult<Self> {
        let table = lookup_table(table)?;
        let stream = self.stream.clone();
        let joined = stream.versioned_lookup(&table, &on.pairs(), valid_from, how.0);
        Ok(joined.or_raise()?.into())
    }

    /// Joins rows with equal values of the columns `on`; `other` is read whole and kept first.
    ///
    /// `on` is a column of both, a pair of names, or a list of these. `how` is inner, left,
    /// right, full, semi, anti, right_semi, right_anti or cross; `where` must be true of a pair
    /// as well, and columns of `other` whose names are taken get the suffix.
    ///
    /// >>> import pyarrow as pa, tersecades as tc
    /// >>> hosts = tc.from_arrow(pa.table({"host": [1, 2], "name": ["a", "b"]}))
    /// >>> calls = tc.from_arrow(pa.table({"host": [2, 2, 3]}))
    /// >>> calls.join(hosts, on="host").select("name").to_pylist()
    /// [{'name': 'b'}, {'name': 'b'}]
    #[pyo3(signature = (other, on=Keys::default(), how=INNER, **options))]
    fn join(
        &self,
        other: &Stream,
        on: Keys,
        how: NamedKind,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let options = join::options(options)?;
        Ok(join::equal(self.both(other), (&on, how), options)?.into())
    }

    /// Joins rows with equal values of the columns `on` in the same window.
    ///
    /// The options are those of `join`: `where`, `suffix` and `null_equals_null`.
    #[pyo3(signature = (other, window, on=Keys::default(), how=INNER, **options))]
    fn window_join(
        &self,
        other: &Stream,
        window: &Window,
        on: Keys,
        how: NamedKind,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let window = window.window;
        let time = JoinTime::Window(WindowJoinSpec { window });
        let options = join::options(options)?;
        Ok(join::timed(self.both(other), (&on, how), time, options)?.into())
    }

    /// Joins rows with equal values of the columns `on` where the time of the other row less that
    /// of this one is between `lower` and `upper`: `"-5s"`, `"10s"`.
    ///
    /// The options are those of `join`: `where`, `suffix` and `null_equals_null`.
    #[pyo3(signature = (other, on, lower, upper, how=INNER, **options))]
    fn interval_join(
        &self,
        other: &Stream,
        on: Keys,
        lower: Distance,
        upper: Distance,
        how: NamedKind,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let (time, options) = (join::apart(&lower, &upper), join::options(options)?);
        Ok(join::timed(self.both(other), (&on, how), time, options)?.into())
    }

    /// Joins each row with the row of `other` with equal values of the columns `on` that is
    /// nearest in time, no further away than `tolerance`: `backward` or `forward`, `before` or
    /// `after`, which leave the same time out, or `nearest`.
    ///
    /// The options are `suffix` and `null_equals_null`.
    #[pyo3(signature = (
        other, on=Keys::default(), direction=BACKWARD, tolerance=None, how=LEFT, **options
    ))]
    fn asof_join(
        &self,
        other: &Stream,
        on: Keys,
        direction: NamedDirection,
        tolerance: Option<Length>,
        how: NamedKind,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let time = join::nearest(direction, tolerance.map(|length| length.0));
        let options = join::options(options)?;
        Ok(join::timed(self.both(other), (&on, how), time, options)?.into())
    }
}
