//! What a generator can be asked for: declared once, as data, and read back by name.
//!
//! The command line makes options of the declarations, Python keyword arguments, the documentation
//! tables; all of them hand over plain text, which is parsed here.

use std::time::Duration;

use tersecades_columnar::error::{Error, Result};

/// One thing that a user can choose about a generated stream.
#[derive(Debug)]
pub struct Parameter {
    /// Name, in snake case.
    pub name: &'static str,
    /// How its text is read.
    pub kind: ParameterKind,
    /// The text that counts when none is given.
    pub default: &'static str,
    /// One line for help texts and tables.
    pub summary: &'static str,
}

/// How the text of a [`Parameter`] is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParameterKind {
    /// A count such as `5000`, `20k`, `20M` or `1G`.
    Count,
    /// A whole number, negative ones too.
    Whole,
    /// A number.
    Number,
    /// A duration such as `500ms`, `30s`, `5m` or `1h`.
    Duration,
    /// `true` or `false`; a command line option without a value.
    Flag,
}

impl Parameter {
    /// Whether `text` can be read.
    ///
    /// # Errors
    /// What is wrong with it, as advice.
    pub fn check(&self, text: &str) -> std::result::Result<(), String> {
        match self.kind {
            ParameterKind::Count => parse_count(text).map(drop),
            ParameterKind::Whole => parse_whole(text).map(drop),
            ParameterKind::Number => parse_number(text).map(drop),
            ParameterKind::Duration => parse_duration(text).map(drop),
            ParameterKind::Flag => parse_flag(text).map(drop),
        }
    }
}

/// The values that a stream is asked for: given texts, and defaults for the rest.
#[derive(Debug)]
pub struct Arguments<'a> {
    parameters: &'static [Parameter],
    given: &'a [(String, String)],
}

impl<'a> Arguments<'a> {
    /// `given` (name, text) over the defaults of `parameters`.
    ///
    /// # Errors
    /// `InvalidArgument` for a name that is not declared.
    pub fn new(parameters: &'static [Parameter], given: &'a [(String, String)]) -> Result<Self> {
        for (name, _) in given {
            if !parameters.iter().any(|parameter| parameter.name == name) {
                let known: Vec<&str> = parameters.iter().map(|known| known.name).collect();
                return Err(Error::invalid(format!("there is no parameter `{name}`"))
                    .hint(format!("the parameters are: {}", known.join(", "))));
            }
        }
        Ok(Arguments { parameters, given })
    }

    /// The value of a count.
    ///
    /// # Errors
    /// `InvalidArgument` for text that is none; so say all of these.
    pub fn count(&self, name: &str) -> Result<u64> {
        self.read(name, parse_count)
    }

    /// The value of a count below 2^32.
    ///
    /// # Errors
    /// As [`Self::count`].
    pub fn count_u32(&self, name: &str) -> Result<u32> {
        let narrow = |count| u32::try_from(count).map_err(|_| "use less than 2^32".to_owned());
        self.read(name, |text| parse_count(text).and_then(narrow))
    }

    /// The value of a whole number.
    ///
    /// # Errors
    /// As [`Self::count`].
    pub fn whole(&self, name: &str) -> Result<i64> {
        self.read(name, parse_whole)
    }

    /// The value of a number.
    ///
    /// # Errors
    /// As [`Self::count`].
    pub fn number(&self, name: &str) -> Result<f64> {
        self.read(name, parse_number)
    }

    /// The value of a number from 0 to 1.
    ///
    /// # Errors
    /// As [`Self::count`].
    pub fn share(&self, name: &str) -> Result<f64> {
        let bounded = |share| match (0.0..=1.0).contains(&share) {
            true => Ok(share),
            false => Err("use 0 to 1".to_owned()),
        };
        self.read(name, |text| parse_number(text).and_then(bounded))
    }

    /// The value of a duration.
    ///
    /// # Errors
    /// As [`Self::count`].
    pub fn duration(&self, name: &str) -> Result<Duration> {
        self.read(name, parse_duration)
    }

    /// The value of a flag.
    ///
    /// # Errors
    /// As [`Self::count`].
    pub fn flag(&self, name: &str) -> Result<bool> {
        self.read(name, parse_flag)
    }

    fn read<T>(
        &self,
        name: &str,
        parse: impl FnOnce(&str) -> std::result::Result<T, String>,
    ) -> Result<T> {
        let given = self.given.iter().rev().find(|(key, _)| key == name);
        let declared = self.parameters.iter().find(|known| known.name == name);
        let text = match (given, declared) {
            (Some((_, text)), _) => text.as_str(),
            (None, Some(parameter)) => parameter.default,
            (None, None) => return Err(Error::internal(format!("no parameter `{name}`"))),
        };
        parse(text).map_err(|advice| Error::invalid(format!("`{name}` is `{text}`")).hint(advice))
    }
}

/// A count such as `5000`, `20_000_000`, `20k`, `20M` or `1G`.
fn parse_count(text: &str) -> std::result::Result<u64, String> {
    let advice = || "write a count as 5000, 20k, 20M or 1G".to_owned();
    let is_unit = |c: char| !c.is_ascii_digit() && c != '_';
    let (digits, unit) = text.split_at(text.find(is_unit).unwrap_or(text.len()));
    let factor: u64 = match unit {
        "" => 1,
        "k" => 1_000,
        "M" => 1_000_000,
        "G" => 1_000_000_000,
        _ => return Err(advice()),
    };
    let number: u64 = digits.replace('_', "").parse().map_err(|_| advice())?;
    number
        .checked_mul(factor)
        .ok_or_else(|| "the count is too large".to_owned())
}

fn parse_whole(text: &str) -> std::result::Result<i64, String> {
    text.parse()
        .map_err(|_| "write a whole number of 64 bits".to_owned())
}

fn parse_number(text: &str) -> std::result::Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(number),
        _ => Err("write a number".to_owned()),
    }
}

fn parse_flag(text: &str) -> std::result::Result<bool, String> {
    match text {
        "true" | "True" => Ok(true),
        "false" | "False" => Ok(false),
        _ => Err("write true or false".to_owned()),
    }
}

fn parse_duration(text: &str) -> std::result::Result<Duration, String> {
    let advice = || "write a duration as 500ms, 30s, 5m or 1h".to_owned();
    let is_unit = |c: char| !c.is_ascii_digit();
    let (digits, unit) = text.split_at(text.find(is_unit).ok_or_else(advice)?);
    let unit_ms = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return Err(advice()),
    };
    let number: u64 = digits.parse().map_err(|_| advice())?;
    let millis = number.checked_mul(unit_ms);
    Ok(Duration::from_millis(
        millis.ok_or("the duration is too long")?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARAMETERS: &[Parameter] = &[
        Parameter {
            name: "rate",
            kind: ParameterKind::Count,
            default: "2k",
            summary: "rows a second",
        },
        Parameter {
            name: "share",
            kind: ParameterKind::Number,
            default: "0.5",
            summary: "a share",
        },
    ];

    #[test]
    fn given_texts_win_over_defaults() {
        let given = [("rate".to_owned(), "3M".to_owned())];
        let arguments = Arguments::new(PARAMETERS, &given).unwrap();
        assert_eq!(arguments.count("rate"), Ok(3_000_000));
        assert_eq!(arguments.share("share"), Ok(0.5));
        assert!(arguments.count_u32("rate").is_ok());
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let unknown = [("rat".to_owned(), "3".to_owned())];
        let error = Arguments::new(PARAMETERS, &unknown).unwrap_err();
        assert!(error.hint_text().unwrap().contains("rate, share"));
        let wrong = [
            ("rate".to_owned(), "5G".to_owned()),
            ("share".to_owned(), "1.5".to_owned()),
        ];
        let arguments = Arguments::new(PARAMETERS, &wrong).unwrap();
        assert!(
            arguments
                .count_u32("rate")
                .unwrap_err()
                .message()
                .contains("5G")
        );
        assert_eq!(
            arguments.share("share").unwrap_err().hint_text(),
            Some("use 0 to 1")
        );
        for bad in ["", "5", "s", "-1s", "1.5s", "9999999999999999999h"] {
            assert!(parse_duration(bad).is_err(), "{bad}");
        }
        for bad in ["", "M", "-1", "1.5M", "99999999999G"] {
            assert!(parse_count(bad).is_err(), "{bad}");
        }
    }
}
