//! The knobs of a store, kept with it as lines `name=value`.

use std::fmt::{self, Write as _};
use std::str::FromStr;
use std::time::Duration;

use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::nearest::nearest;

use crate::codec_policy::CodecPolicy;
use crate::placement::Placement;

/// When a row counts as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// When it is on the device; rows that wait at the same time share one sync.
    #[default]
    Durable,
    /// The same, and the first of a group waits so long for others to join.
    Group(Duration),
    /// When the operating system has it. Unsafe: a power cut loses acknowledged rows.
    Os,
}

impl fmt::Display for Durability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Durability::Durable => f.write_str("durable"),
            Durability::Group(wait) => write!(f, "group({}ms)", wait.as_millis()),
            Durability::Os => f.write_str("os"),
        }
    }
}

impl FromStr for Durability {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let wait = text
            .strip_prefix("group(")
            .and_then(|rest| rest.strip_suffix("ms)"))
            .and_then(|wait| wait.parse().ok());
        match (text, wait) {
            ("durable", _) => Ok(Durability::Durable),
            ("os", _) => Ok(Durability::Os),
            (_, Some(wait)) => Ok(Durability::Group(Duration::from_millis(wait))),
            _ => Err(Error::invalid(format!("no durability is named `{text}`"))
                .hint("durable, group(4ms), or os, which is unsafe")),
        }
    }
}

/// How runs are merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Layout {
    /// A level fills with runs until they become one of the next: cheap to write.
    #[default]
    Tiered,
    /// A level is one run, into which those above are merged: cheap to read.
    Leveled,
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Layout::Tiered => "tiered",
            Layout::Leveled => "leveled",
        })
    }
}

impl FromStr for Layout {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "tiered" => Ok(Layout::Tiered),
            "leveled" => Ok(Layout::Leveled),
            _ => {
                Err(Error::invalid(format!("no layout is named `{text}`"))
                    .hint("tiered or leveled"))
            }
        }
    }
}

/// What can be set of a store.
#[derive(Debug, Clone, PartialEq)]
pub struct StoreOptions {
    /// When a row counts as written.
    pub durability: Durability,
    /// Encoded bytes in memory above which a run is written.
    pub buffer_bytes: usize,
    /// Rows in memory above which a run is written.
    pub buffer_rows: usize,
    /// Runs of a level that become one, and how much larger each level is.
    pub level_ratio: usize,
    /// How runs are merged.
    pub layout: Layout,
    /// Codecs of level 0, 1 and so on; the last holds for all that follow.
    pub codecs: Vec<CodecPolicy>,
    /// Where the runs of level 0, 1 and so on lie; the last holds for all that follow.
    pub tiers: Vec<Placement>,
    /// Most rows of a chunk.
    pub chunk_rows: usize,
    /// Rows of one key above which its chunks hold no other.
    pub series_rows: usize,
    /// Bits of the Bloom filter for each key; 0 for none.
    pub bloom_bits: usize,
    /// Rows older than this, against the newest, may go; in units of the time column.
    pub keep_time: Option<i64>,
    /// Bytes of runs above which the oldest go.
    pub keep_bytes: Option<u64>,
}

impl Default for StoreOptions {
    fn default() -> Self {
        StoreOptions {
            durability: Durability::default(),
            buffer_bytes: 32 << 20,
            buffer_rows: 2 << 20,
            level_ratio: 10,
            layout: Layout::default(),
            codecs: vec![CodecPolicy::Auto],
            tiers: vec![Placement::default()],
            chunk_rows: 65_536,
            series_rows: 4_096,
            bloom_bits: 10,
            keep_time: None,
            keep_bytes: None,
        }
    }
}

/// Names of the options, in the order they are written.
pub const OPTIONS: &[(&str, &str)] = &[
    ("durability", "durable, group(4ms) or os (unsafe)"),
    (
        "buffer_bytes",
        "encoded bytes in memory before a run is written",
    ),
    ("buffer_rows", "rows in memory before a run is written"),
    ("level_ratio", "runs of a level that become one"),
    ("layout", "tiered or leveled"),
    (
        "codecs",
        "none, rle-delta, varint-delta, rle-varint or auto, one for each level, by `/`",
    ),
    ("tiers", "hot, warm or cold, one for each level, by `/`"),
    ("chunk_rows", "most rows of a chunk"),
    (
        "series_rows",
        "rows of a key above which its chunks hold no other",
    ),
    (
        "bloom_bits",
        "bits of the Bloom filter for each key, 0 for none",
    ),
    (
        "keep_time",
        "age of rows that may go, in units of the time column",
    ),
    ("keep_bytes", "bytes of runs above which the oldest go"),
];

impl StoreOptions {
    /// Sets an option by its name.
    ///
    /// # Errors
    /// `InvalidArgument` for unknown names, naming the nearest, and values that make no sense.
    pub fn set(&mut self, name: &str, value: &str) -> Result<()> {
        match name {
            "durability" => self.durability = value.parse()?,
            "buffer_bytes" => self.buffer_bytes = number(name, value, 1)?,
            "buffer_rows" => self.buffer_rows = number(name, value, 1)?,
            "level_ratio" => self.level_ratio = number(name, value, 2)?,
            "layout" => self.layout = value.parse()?,
            "codecs" => {
                let codecs = value.split('/').map(CodecPolicy::from_str);
                self.codecs = codecs.collect::<Result<_>>()?;
            }
            "tiers" => {
                let tiers = value.split('/').map(Placement::from_str);
                self.tiers = tiers.collect::<Result<_>>()?;
            }
            "chunk_rows" => self.chunk_rows = number(name, value, 1)?.min(CHUNK_ROWS_MAX),
            "series_rows" => self.series_rows = number(name, value, 1)?,
            "bloom_bits" => self.bloom_bits = number(name, value, 0)?.min(BLOOM_BITS_MAX),
            "keep_time" => self.keep_time = limit(name, value)?,
            "keep_bytes" => self.keep_bytes = limit(name, value)?,
            _ => {
                let names: Vec<&str> = OPTIONS.iter().map(|(name, _)| *name).collect();
                let error = Error::invalid(format!("a store has no option `{name}`"));
                return Err(match nearest(name, &names) {
                    Some(near) => error.hint(format!("did you mean `{near}`?")),
                    None => error.hint(format!("the options are {}", names.join(", "))),
                });
            }
        }
        Ok(())
    }

    /// The codecs of level `level`.
    pub(crate) fn codec(&self, level: usize) -> CodecPolicy {
        let last = self.codecs.len().saturating_sub(1);
        self.codecs
            .get(level.min(last))
            .copied()
            .unwrap_or_default()
    }

    /// Where the runs of level `level` lie.
    pub(crate) fn tier(&self, level: usize) -> Placement {
        let last = self.tiers.len().saturating_sub(1);
        self.tiers.get(level.min(last)).copied().unwrap_or_default()
    }

    /// Whether bytes of level `from` are what level `to` wants.
    pub(crate) fn suits(&self, from: usize, to: usize) -> bool {
        self.codec(from) == self.codec(to) && !self.tier(from).reencodes_for(self.tier(to))
    }

    /// All options, a line each.
    pub(crate) fn to_text(&self) -> String {
        let codecs: Vec<String> = self.codecs.iter().map(ToString::to_string).collect();
        let tiers: Vec<String> = self.tiers.iter().map(ToString::to_string).collect();
        let optional = |value: Option<String>| value.unwrap_or_else(|| "all".to_owned());
        let values = [
            self.durability.to_string(),
            self.buffer_bytes.to_string(),
            self.buffer_rows.to_string(),
            self.level_ratio.to_string(),
            self.layout.to_string(),
            codecs.join("/"),
            tiers.join("/"),
            self.chunk_rows.to_string(),
            self.series_rows.to_string(),
            self.bloom_bits.to_string(),
            optional(self.keep_time.map(|time| time.to_string())),
            optional(self.keep_bytes.map(|bytes| bytes.to_string())),
        ];
        let mut text = String::new();
        for ((name, _), value) in OPTIONS.iter().zip(values) {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{name}={value}");
        }
        text
    }

    /// Whether they can be read back from what [`StoreOptions::to_text`] writes.
    ///
    /// # Errors
    /// `InvalidArgument` for a value that makes no sense.
    pub(crate) fn check(&self) -> Result<()> {
        if let Durability::Group(wait) = self.durability
            && !wait.subsec_nanos().is_multiple_of(1_000_000)
        {
            return Err(Error::invalid("a group waits for whole milliseconds"));
        }
        let text = self.to_text();
        let mut values = text.lines().filter_map(|line| line.split_once('='));
        values.try_for_each(|(name, value)| {
            let read = StoreOptions::default().set(name, value);
            read.map_err(|error| match value.is_empty() {
                true => Error::invalid(format!("`{name}` is empty"))
                    .hint("name at least one, which holds for all levels"),
                false => error,
            })
        })
    }

    /// What [`StoreOptions::to_text`] wrote.
    ///
    /// # Errors
    /// `Unsupported` for options that this release does not know.
    pub(crate) fn from_text(text: &str) -> Result<Self> {
        let mut options = StoreOptions::default();
        for line in text.lines() {
            let (name, value) = line
                .split_once('=')
                .ok_or_else(|| Error::corrupt("an option of the store lacks its value"))?;
            options.set(name, value).map_err(|error| {
                Error::unsupported(error.message()).hint("a newer release wrote this store")
            })?;
        }
        Ok(options)
    }
}

/// Most rows of a chunk that may be asked for.
const CHUNK_ROWS_MAX: usize = 1 << 20;
const BLOOM_BITS_MAX: usize = 64;

fn number(name: &str, value: &str, least: usize) -> Result<usize> {
    let parsed = value.parse().ok().filter(|number| *number >= least);
    parsed.ok_or_else(|| {
        Error::invalid(format!(
            "`{name}` is a number from {least} on, not `{value}`"
        ))
        .hint("digits alone: no units, no separators")
    })
}

fn limit<T: FromStr>(name: &str, value: &str) -> Result<Option<T>> {
    match value {
        "all" => Ok(None),
        _ => value.parse().map(Some).map_err(|_| {
            let hint = match name {
                "keep_time" => "in units of the time column: 604800000 for 7 days of ms",
                _ => "in bytes, as 10485760",
            };
            Error::invalid(format!("`{name}` is a number or `all`, not `{value}`")).hint(hint)
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_as_they_were_written() {
        let mut options = StoreOptions::default();
        for (name, value) in [
            ("durability", "group(4ms)"),
            ("layout", "leveled"),
            ("codecs", "none/rle-delta/auto"),
            ("tiers", "hot/cold"),
            ("keep_time", "604800000"),
        ] {
            options.set(name, value).unwrap();
        }
        assert_eq!(options.codec(1).to_string(), "rle-delta");
        assert_eq!(options.codec(7).to_string(), "auto");
        let back = StoreOptions::from_text(&options.to_text()).unwrap();
        assert_eq!(back, options);
        assert!(StoreOptions::from_text("colour=blue").is_err());
        let error = options.set("bufer_rows", "1").unwrap_err();
        assert!(error.hint_text().unwrap().contains("buffer_rows"));
    }
}
