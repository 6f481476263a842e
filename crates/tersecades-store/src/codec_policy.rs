//! What a level is encoded with: the schemes of the paper, or the chooser.

use std::fmt;
use std::str::FromStr;

use tersecades_columnar::encoder::ColumnEncoder;
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::goal::Goal;
use tersecades_columnar::scheme::Scheme;

/// Codecs of a level.
///
/// # Source
/// Compression: CPU vs. Memory Tradeoff (`lsm-compression-tradeoff`), section 3.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CodecPolicy {
    /// Values as they are.
    None,
    /// Differences as runs.
    RleDelta,
    /// Differences as numbers of many sizes.
    VarintDelta,
    /// Runs of numbers of many sizes.
    RleVarint,
    /// What the cost model chooses, column by column and chunk by chunk: for scans in memory and
    /// in the log, small first in runs.
    #[default]
    Auto,
}

/// Policies, their names and schemes.
const POLICIES: &[(CodecPolicy, &str, &str)] = &[
    (CodecPolicy::None, "none", "plain"),
    (CodecPolicy::RleDelta, "rle-delta", "delta(run_length)"),
    (CodecPolicy::VarintDelta, "varint-delta", "delta(varint)"),
    (CodecPolicy::RleVarint, "rle-varint", "run_length(varint)"),
    (CodecPolicy::Auto, "auto", ""),
];

impl CodecPolicy {
    /// Every policy.
    pub fn all() -> impl Iterator<Item = CodecPolicy> {
        POLICIES.iter().map(|(policy, ..)| *policy)
    }

    fn line(self) -> (&'static str, &'static str) {
        let found = POLICIES.iter().find(|(policy, ..)| *policy == self);
        found.map_or(("auto", ""), |(_, name, scheme)| (*name, *scheme))
    }

    /// Makes `encoder` encode so for `goal`; columns that a scheme rules out are chosen for.
    ///
    /// # Errors
    /// `InvalidArgument` for a scheme that names no codec.
    pub(crate) fn apply(self, encoder: &mut ColumnEncoder, goal: &Goal) -> Result<()> {
        encoder.aim(goal.clone());
        let (_, scheme) = self.line();
        if !scheme.is_empty() {
            encoder.pin(scheme.parse::<Scheme>()?);
        }
        Ok(())
    }
}

impl fmt::Display for CodecPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.line().0)
    }
}

impl FromStr for CodecPolicy {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let text = if text == "ours" { "auto" } else { text };
        let found = POLICIES.iter().find(|(_, name, _)| *name == text);
        found.map(|(policy, ..)| *policy).ok_or_else(|| {
            let names: Vec<&str> = POLICIES.iter().map(|(_, name, _)| *name).collect();
            Error::invalid(format!("no codec of a level is named `{text}`")).hint(names.join(", "))
        })
    }
}
