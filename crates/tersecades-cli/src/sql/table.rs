//! `--table NAME=PATH[,event_time=COLUMN][,lateness=2s][,format=csv]`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tersecades::columnar::nearest::nearest;
use tersecades::sql::TableTime;

use crate::argument;

/// A named file.
#[derive(Debug, Clone)]
pub(crate) struct TableArgument {
    /// Name in queries.
    pub(crate) name: String,
    /// The file.
    pub(crate) path: PathBuf,
    /// Its format, where that does not go by the suffix.
    pub(crate) format: Option<String>,
    /// Its event time.
    pub(crate) time: Option<TableTime>,
}

const OPTIONS: [&str; 3] = ["event_time", "lateness", "format"];

fn exists(path: &str) -> bool {
    Path::new(path).exists()
}

/// Reads the argument.
pub(crate) fn parse(text: &str) -> Result<TableArgument, String> {
    let advice = "write NAME=PATH[,event_time=COLUMN][,lateness=2s][,format=csv]";
    let (name, rest) = text.split_once('=').ok_or(advice)?;
    let (mut column, mut lateness, mut format) = (None, None, None);
    let mut path = rest;
    while let Some((before, option)) = path.rsplit_once(',') {
        match option.split_once('=') {
            Some(("event_time", value)) => column = Some(value.to_owned()),
            Some(("lateness", value)) => lateness = Some(argument::duration(value)?),
            Some(("format", value)) => format = Some(value.to_owned()),
            Some((option, _)) if nearest(option, &OPTIONS).is_some() && !exists(path) => {
                return Err(format!("unknown option `{option}`: {advice}"));
            }
            // A comma of the path.
            _ => break,
        }
        path = before;
    }
    if name.is_empty() || path.is_empty() {
        return Err(advice.to_owned());
    }
    let time = match (column, lateness) {
        (None, Some(_)) => return Err("lateness needs an event_time".to_owned()),
        (None, None) => None,
        (Some(column), lateness) => {
            let lateness = lateness.unwrap_or(Duration::ZERO);
            Some(TableTime { column, lateness })
        }
    };
    Ok(TableArgument {
        name: name.to_owned(),
        path: path.into(),
        format,
        time,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_have_a_name_a_path_and_perhaps_a_time() {
        let table = parse("probes=a,b.parquet,event_time=ts,lateness=2s").unwrap();
        assert_eq!(
            (table.name.as_str(), table.path.to_str()),
            ("probes", Some("a,b.parquet"))
        );
        let time = table.time.unwrap();
        assert_eq!(
            (time.column.as_str(), time.lateness),
            ("ts", Duration::from_secs(2))
        );
        assert!(parse("probes=x.csv").unwrap().time.is_none());
        let piped = parse("rows=-,format=jsonl").unwrap();
        assert_eq!(
            (piped.path.to_str(), piped.format.as_deref()),
            (Some("-"), Some("jsonl"))
        );
        for bad in [
            "probes",
            "=x",
            "probes=",
            "p=x,lateness=2s",
            "p=x,event_time=a,lateness=2",
            "p=x.csv,event_tiem=ts",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
