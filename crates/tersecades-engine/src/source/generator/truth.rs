//! Ground truth: what a generator broke on purpose, and when.

use std::io::Write;

use tersecades_columnar::error::Result;

/// One fault that a generator put into its stream.
#[derive(Debug, Clone, PartialEq)]
pub struct InjectedFault {
    /// What went wrong, as one word: `tor_bad` is a switch that drops and delays.
    pub kind: &'static str,
    /// The switch, as in the `tor` table.
    pub tor_id: u32,
    /// Name of the region the switch stands in.
    pub region: String,
    /// Name of the cluster the switch stands in.
    pub cluster: String,
    /// First millisecond (event time, since 1970 UTC) of the fault.
    pub from_ms: i64,
    /// First millisecond after the fault.
    pub to_ms: i64,
    /// Share of probes from or to the switch's servers that time out meanwhile.
    pub drop_share: f64,
    /// How many times longer the other probes take meanwhile.
    pub rtt_factor: u32,
}

impl InjectedFault {
    /// The record as one JSON object, without a line end.
    pub fn to_json(&self) -> String {
        object(&[
            ("kind", Part::Text(self.kind)),
            ("tor_id", Part::Whole(self.tor_id.into())),
            ("region", Part::Text(&self.region)),
            ("cluster", Part::Text(&self.cluster)),
            ("from_ms", Part::Whole(self.from_ms)),
            ("to_ms", Part::Whole(self.to_ms)),
            ("drop_share", Part::Number(self.drop_share)),
            ("rtt_factor", Part::Whole(self.rtt_factor.into())),
        ])
    }
}

/// A value in a record of truth.
#[derive(Debug, Clone, Copy)]
pub(super) enum Part<'a> {
    /// A name of letters, digits and `-`, `_` or `.`; nothing in it needs escaping.
    Text(&'a str),
    /// A whole number.
    Whole(i64),
    /// A finite number.
    Number(f64),
}

/// A JSON object of `parts`, without a line end.
pub(super) fn object(parts: &[(&str, Part<'_>)]) -> String {
    let shown = |(name, part): &(&str, Part<'_>)| match part {
        Part::Text(text) => format!("\"{name}\":\"{text}\""),
        Part::Whole(number) => format!("\"{name}\":{number}"),
        Part::Number(number) => format!("\"{name}\":{number}"),
    };
    let parts: Vec<String> = parts.iter().map(shown).collect();
    format!("{{{}}}", parts.join(","))
}

/// Writes `faults` as JSON lines.
///
/// # Errors
/// `Io` (or `Interrupted`) when `out` cannot be written.
pub fn write_truth(faults: &[InjectedFault], out: &mut dyn Write) -> Result<()> {
    for fault in faults {
        writeln!(out, "{}", fault.to_json())?;
    }
    Ok(out.flush()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_one_json_line() {
        let fault = InjectedFault {
            kind: "tor_bad",
            tor_id: 7,
            region: "az-r00".into(),
            cluster: "az-r00-cl1".into(),
            from_ms: -5,
            to_ms: 10,
            drop_share: 0.5,
            rtt_factor: 20,
        };
        let mut lines = Vec::new();
        write_truth(&[fault.clone(), fault], &mut lines).unwrap();
        let expected = "{\"kind\":\"tor_bad\",\"tor_id\":7,\"region\":\"az-r00\",\
            \"cluster\":\"az-r00-cl1\",\"from_ms\":-5,\"to_ms\":10,\"drop_share\":0.5,\
            \"rtt_factor\":20}\n";
        assert_eq!(String::from_utf8(lines).unwrap(), expected.repeat(2));
    }
}
