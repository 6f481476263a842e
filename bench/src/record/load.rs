//! How busy the machine is with anything else.

use std::time::Instant;

/// Ticks a second of the counters of Linux.
const TICKS_PER_S: f64 = 100.0;

/// What the processors had done at a time, all of it and for the programs of the run.
#[derive(Debug, Clone)]
pub(crate) struct Load {
    programs: Vec<u32>,
    at: Instant,
    busy_s: f64,
    own_s: f64,
}

impl Load {
    /// What they have done so far, of it `programs` and what those waited for; `None` where the
    /// system does not tell.
    pub(crate) fn of(programs: Vec<u32>) -> Option<Self> {
        let machine = std::fs::read_to_string("/proc/stat").ok()?;
        let own = |program: &u32| {
            let stat = std::fs::read_to_string(format!("/proc/{program}/stat"));
            own_s(&stat.ok()?)
        };
        Some(Load {
            at: Instant::now(),
            busy_s: busy_s(&machine)?,
            own_s: programs.iter().map(own).sum::<Option<f64>>()?,
            programs,
        })
    }

    /// Processors that other programs, and other machines on the same hardware, kept busy since.
    pub(crate) fn others_since(self) -> Option<f64> {
        let end = Load::of(self.programs)?;
        let others_s = (end.busy_s - self.busy_s) - (end.own_s - self.own_s);
        let seconds = self.at.elapsed().as_secs_f64();
        // Ticks are counted, not measured: a short run can come out below nothing.
        Some((others_s / seconds).max(0.0))
    }
}

/// Seconds that all processors worked, or were kept from working by the hardware's other guests.
fn busy_s(stat: &str) -> Option<f64> {
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    let ticks = line.split_whitespace().map(|text| text.parse::<f64>().ok());
    let ticks: Vec<f64> = ticks.collect::<Option<_>>()?;
    // user, nice, system, (idle, waiting,) interrupts, soft interrupts, stolen
    let busy = ticks.get(..3)?.iter().chain(ticks.get(5..8)?);
    Some(busy.sum::<f64>() / TICKS_PER_S)
}

/// Seconds that a program and the programs it waited for worked.
fn own_s(stat: &str) -> Option<f64> {
    // The second field is the name, in parentheses, and may have anything in it.
    let (_, fields) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let ticks = fields
        .get(11..15)?
        .iter()
        .map(|text| text.parse::<f64>().ok());
    Some(ticks.collect::<Option<Vec<f64>>>()?.iter().sum::<f64>() / TICKS_PER_S)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_and_waiting_are_not_work() {
        let stat = "cpu  100 20 30 4000 500 6 7 80 0 0\ncpu0 1 2 3\n";
        assert_eq!(busy_s(stat), Some(2.43));
        assert_eq!(busy_s("cpu  100 20"), None);
    }

    #[test]
    fn own_work_is_found_behind_any_name() {
        let stat = "7 (a) b (c) R 1 7 7 0 -1 4194304 1 2 3 4 150 50 20 30 20 0";
        assert_eq!(own_s(stat), Some(2.5));
    }
}
