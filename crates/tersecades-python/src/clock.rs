//! A clock that tests and replays move.

use std::time::Duration;

use pyo3::prelude::*;
use tersecades::prelude;

use crate::duration::Length;

/// A clock that stands until it is moved, for queries whose answers depend on what time it is.
///
/// >>> import tersecades as tc
/// >>> clock = tc.TestClock("100s")
/// >>> clock.advance("5s")
/// >>> clock
/// TestClock(105s)
#[pyclass(name = "TestClock", module = "tersecades", frozen)]
pub(crate) struct TestClock {
    pub(crate) clock: prelude::TestClock,
}

#[pymethods]
impl TestClock {
    #[new]
    #[pyo3(signature = (since_epoch=None))]
    fn new(since_epoch: Option<Length>) -> Self {
        let at = since_epoch.map_or(Duration::ZERO, |length| length.0);
        TestClock {
            clock: prelude::TestClock::at(at),
        }
    }

    /// Moves it to a time since 1970 UTC; to an earlier time it does not move.
    fn set(&self, since_epoch: Length) {
        self.clock.set(since_epoch.0);
    }

    /// Moves it on.
    fn advance(&self, by: Length) {
        self.clock.advance(by.0);
    }

    fn __repr__(&self) -> String {
        let now = prelude::Clock::now(&self.clock);
        format!("TestClock({now:?})")
    }
}

/// Adds the class to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<TestClock>()
}
