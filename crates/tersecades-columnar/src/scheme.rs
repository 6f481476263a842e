//! What encodes a column, from the outside in: `delta(bit_pack)`, `fixed_point(0.01)`.
//!
//! A codec may leave its own output to another codec: `delta` makes differences, `bit_pack` packs
//! them. A scheme names the codecs of such a cascade in order, each with the number it is set by,
//! if it takes one. Where a scheme ends before the cascade does, the chooser goes on.

use std::fmt;
use std::str::FromStr;

use crate::codec::Codec;
use crate::error::{Error, Result};
use crate::registry;

/// Most codecs of one cascade.
pub const STAGES_MAX: usize = 4;

/// One codec of a scheme.
#[derive(Debug, Clone, Copy)]
pub struct Stage {
    /// The codec.
    pub codec: &'static dyn Codec,
    /// The number it is set by: a scale, a tolerance.
    pub parameter: Option<f64>,
}

/// The codecs of a cascade, outermost first; empty leaves everything to the chooser.
///
/// # Examples
/// ```
/// use tersecades_columnar::scheme::Scheme;
/// let scheme: Scheme = "dictionary(run_length)".parse().unwrap();
/// assert_eq!(scheme.first().unwrap().codec.name(), "dictionary");
/// assert_eq!(scheme.to_string(), "dictionary(run_length)");
/// assert!("dictionary(".parse::<Scheme>().is_err());
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct Scheme {
    stages: [Option<Stage>; STAGES_MAX],
}

impl From<&'static dyn Codec> for Scheme {
    fn from(codec: &'static dyn Codec) -> Self {
        let mut scheme = Scheme::default();
        scheme.stages[0] = Some(Stage {
            codec,
            parameter: None,
        });
        scheme
    }
}

impl Scheme {
    /// `outer` with `inner` inside.
    pub fn of_two(outer: &'static dyn Codec, inner: &'static dyn Codec) -> Scheme {
        let mut scheme = Scheme::from(outer);
        scheme.stages[1] = Scheme::from(inner).stages[0];
        scheme
    }

    /// This scheme with `codec` inside the innermost; `None` where that is one too many.
    pub fn with(mut self, codec: &'static dyn Codec) -> Option<Scheme> {
        let stage = Stage {
            codec,
            parameter: None,
        };
        self.push(stage).ok()?;
        Some(self)
    }

    /// The outermost codec.
    pub fn first(&self) -> Option<Stage> {
        self.stages[0]
    }

    /// The codecs inside the outermost.
    pub fn rest(&self) -> Scheme {
        let mut rest = Scheme::default();
        rest.stages[..STAGES_MAX - 1].copy_from_slice(&self.stages[1..]);
        rest
    }

    /// How far, at most, values that come back are from those that went in.
    pub fn error_bound(&self) -> f64 {
        let bound = |stage: Stage| Some(stage.codec.error_bound(stage.parameter?));
        self.first().and_then(bound).unwrap_or(0.0)
    }

    fn push(&mut self, stage: Stage) -> Result<()> {
        let free = self.stages.iter_mut().find(|stage| stage.is_none());
        *free.ok_or_else(|| {
            Error::invalid(format!("a cascade has at most {STAGES_MAX} codecs"))
        })? = Some(stage);
        Ok(())
    }
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut open = 0;
        let mut stages = self.stages.iter().flatten().peekable();
        while let Some(stage) = stages.next() {
            f.write_str(stage.codec.name())?;
            if let Some(parameter) = stage.parameter {
                write!(f, "({parameter}")?;
            }
            match (stage.parameter.is_some(), stages.peek().is_some()) {
                (true, true) => f.write_str(", ")?,
                (false, true) => f.write_str("(")?,
                (true, false) | (false, false) => {}
            }
            open += usize::from(stage.parameter.is_some() || stages.peek().is_some());
        }
        (0..open).try_for_each(|_| f.write_str(")"))
    }
}

/// Which codecs take a number.
fn numbered() -> String {
    let codecs = registry::CODECS.iter().filter(|codec| codec.takes_number());
    let names: Vec<&str> = codecs.map(|codec| codec.name()).collect();
    format!("the codecs that are: {}", names.join(", "))
}

impl FromStr for Scheme {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let mut scheme = Scheme::default();
        let mut rest = text.trim();
        while !rest.is_empty() {
            let (name, inside) = match rest.split_once('(') {
                Some((name, inside)) => {
                    let inside = inside.trim_end().strip_suffix(')');
                    let inside = inside.ok_or_else(|| {
                        Error::invalid(format!("`{text}` lacks a closing parenthesis"))
                    })?;
                    (name.trim(), inside.trim())
                }
                None => (rest, ""),
            };
            let (first, more) = inside.split_once(',').unwrap_or((inside, ""));
            let parameter = first.trim().parse::<f64>().ok();
            let codec = registry::by_name(name)?;
            if parameter.is_some() && !codec.takes_number() {
                let message = format!("`{name}` is not set by a number, as `{text}` does");
                return Err(Error::invalid(message).hint(numbered()));
            }
            scheme.push(Stage { codec, parameter })?;
            rest = if parameter.is_some() {
                more.trim()
            } else {
                inside
            };
        }
        Ok(scheme)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemes_are_written_as_they_are_read() {
        for text in [
            "plain",
            "dictionary(run_length)",
            "fixed_point(0.5, run_length(plain))",
            "delta(zstd(9))",
            "",
        ] {
            assert_eq!(text.parse::<Scheme>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn lossy_schemes_have_a_bound() {
        let bound = |text: &str| text.parse::<Scheme>().unwrap().error_bound();
        assert_eq!((bound("zfp(0.5)"), bound("fixed_point(0.5)")), (0.5, 0.25));
        assert_eq!((bound("plain"), bound("")), (0.0, 0.0));
    }

    #[test]
    fn senseless_schemes_are_refused() {
        for text in [
            "zip",
            "plain(",
            "plain)",
            "plain(plain, plain)",
            "plain(0.01)",
            "lz4(9)",
            "delta(4, bit_pack)",
            "plain(plain(plain(plain(plain))))",
        ] {
            assert!(text.parse::<Scheme>().is_err(), "{text}");
        }
    }
}
