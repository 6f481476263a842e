//! T2tProbeCount: slow, failing probes between racks, found by joining addresses to a table.
//!
//! `cargo run --release -p tersecades --example t2t`

use std::sync::Arc;
use std::time::Duration;

use tersecades::prelude::*;

fn main() -> tersecades::Result<()> {
    let probes = Pingmesh::new(PingmeshOptions::default())?;
    let racks = Arc::new(LookupTable::new("tor", probes.tor_table()?));
    let mut windows = Stream::from_source(Box::new(PingmeshSource::new(probes, 65_536)))
        .event_time(col("timestamp"), Duration::from_secs(3))
        .filter(col("error_code").not_eq(0).and(col("rtt_us").gt_eq(100)))
        .lookup_join(&racks, ("src_ip", "ip"), &[("tor_id", "src_tor")])
        .lookup_join(&racks, ("dst_ip", "ip"), &[("tor_id", "dst_tor")])
        .window(hop(Duration::from_secs(60), Duration::from_secs(10)))
        .group_by(["src_tor", "dst_tor"])
        .aggregate([count().alias("probes")])
        .run()?;
    for pairs in windows.by_ref() {
        println!("a window closed with {} pairs of racks", pairs?.num_rows());
    }
    println!("{} rows in all", windows.metrics().rows);
    Ok(())
}
