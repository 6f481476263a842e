//! Pingmesh as one of the generators: its parameters by name, its truth, its table of racks.

use std::io::Write;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use tersecades_columnar::error::Result;

use super::super::kind::{Generator, GeneratorKind};
use super::super::parameter::{Arguments, Parameter, ParameterKind};
use super::super::topology::TopologySize;
use super::super::truth::write_truth;
use super::{Pingmesh, PingmeshOptions};

/// The line of this generator in [`super::super::GENERATORS`].
pub const KIND: GeneratorKind = GeneratorKind {
    name: "pingmesh",
    summary: "probes between the servers of a data centre, one of whose switches goes bad",
    parameters: PARAMETERS,
    open: |rows, seed, arguments| Ok(Box::new(Pingmesh::new(options(rows, seed, arguments)?)?)),
};

/// A parameter on one line.
const fn parameter(
    name: &'static str,
    kind: ParameterKind,
    default: &'static str,
    summary: &'static str,
) -> Parameter {
    Parameter {
        name,
        kind,
        default,
        summary,
    }
}

#[rustfmt::skip]
const PARAMETERS: &[Parameter] = {
    use ParameterKind::{Count, Duration, Flag, Number, Whole};
    &[
        parameter("rate", Count, "100k", "rows in one second of event time"),
        parameter("start_ms", Whole, "1700000003217", "first arrival, in ms since 1970 UTC"),
        parameter("regions", Count, "4", "regions"),
        parameter("clusters", Count, "200", "clusters of all regions together"),
        parameter("racks_per_cluster", Count, "10", "racks in a cluster"),
        parameter("servers_per_rack", Count, "40", "servers in a rack"),
        parameter("cluster_skew", Number, "0.9", "Zipf exponent over clusters; 0: equally busy"),
        parameter("tor_missing_share", Number, "0.01", "share of servers the rack table lacks"),
        parameter("rtt_median_us", Number, "250", "median round trip"),
        parameter("rtt_sigma", Number, "0.6", "standard deviation of the logarithm of round trips"),
        parameter("tail_share", Number, "0.03", "share of round trips from the heavy tail"),
        parameter("error_share", Number, "0.01", "share of probes with an error, faults apart"),
        parameter("jitter_max", Duration, "10ms", "how late any row may be"),
        parameter("late_share", Number, "0.005", "share of rows that are later than that"),
        parameter("late_max", Duration, "2500ms", "how late those are at most"),
        parameter("fault_at", Duration, "30s",
            "when one switch goes bad, after the start; a shorter stream has no fault"),
        parameter("no_fault", Flag, "false", "no switch goes bad"),
        parameter("fault_duration", Duration, "30s", "how long the switch stays bad"),
        parameter("fault_drop_share", Number, "0.5", "share of probes through it that time out"),
        parameter("fault_rtt_factor", Count, "20", "how many times longer the others take"),
    ]
};

fn options(rows: u64, seed: u64, arguments: &Arguments<'_>) -> Result<PingmeshOptions> {
    let fault_at = match arguments.flag("no_fault")? {
        true => None,
        false => Some(arguments.duration("fault_at")?),
    };
    Ok(PingmeshOptions {
        rows,
        seed,
        start_ms: arguments.whole("start_ms")?,
        rows_per_second: arguments.count("rate")?,
        topology: TopologySize {
            regions: arguments.count_u32("regions")?,
            clusters: arguments.count_u32("clusters")?,
            racks_per_cluster: arguments.count_u32("racks_per_cluster")?,
            servers_per_rack: arguments.count_u32("servers_per_rack")?,
        },
        cluster_skew: arguments.number("cluster_skew")?,
        tor_missing_share: arguments.number("tor_missing_share")?,
        rtt_median_us: arguments.number("rtt_median_us")?,
        rtt_sigma: arguments.number("rtt_sigma")?,
        tail_share: arguments.number("tail_share")?,
        error_share: arguments.number("error_share")?,
        jitter_max: arguments.duration("jitter_max")?,
        late_share: arguments.number("late_share")?,
        late_max: arguments.duration("late_max")?,
        fault_at,
        fault_duration: arguments.duration("fault_duration")?,
        fault_drop_share: arguments.number("fault_drop_share")?,
        fault_rtt_factor: arguments.count_u32("fault_rtt_factor")?,
    })
}

impl Generator for Pingmesh {
    fn schema(&self) -> SchemaRef {
        Pingmesh::schema(self)
    }

    fn rows(&self) -> u64 {
        self.options().rows
    }

    fn position(&self) -> u64 {
        Pingmesh::position(self)
    }

    fn seek(&mut self, row: u64) {
        Pingmesh::seek(self, row);
    }

    fn next_batch(&mut self, rows: usize) -> Result<Option<RecordBatch>> {
        Pingmesh::next_batch(self, rows)
    }

    fn write_truth(&self, out: &mut dyn Write) -> Result<()> {
        write_truth(&self.truth(), out)
    }

    fn tables(&self) -> Result<Vec<(&'static str, RecordBatch)>> {
        Ok(vec![("tor", self.tor_table()?)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_by_name_are_the_defaults() {
        let usual = PingmeshOptions::default();
        let arguments = Arguments::new(PARAMETERS, &[]).unwrap();
        assert_eq!(options(usual.rows, usual.seed, &arguments), Ok(usual));
    }

    #[test]
    fn every_parameter_changes_an_option() {
        let usual = options(1, 1, &Arguments::new(PARAMETERS, &[]).unwrap()).unwrap();
        for parameter in PARAMETERS {
            let text = match parameter.kind {
                ParameterKind::Count | ParameterKind::Whole => "7",
                ParameterKind::Number => "0.125",
                ParameterKind::Duration => "7ms",
                ParameterKind::Flag => "true",
            };
            let given = [(parameter.name.to_owned(), text.to_owned())];
            let changed = options(1, 1, &Arguments::new(PARAMETERS, &given).unwrap()).unwrap();
            assert_ne!(changed, usual, "{}", parameter.name);
        }
    }
}
