//! C2cProbeCount: slow, failing probes between clusters, counted in hopping windows.
//!
//! `cargo run --release -p tersecades --example c2c`

use std::time::Duration;

use tersecades::prelude::*;

fn main() -> tersecades::Result<()> {
    let probes = PingmeshSource::new(Pingmesh::new(PingmeshOptions::default())?, 65_536);
    let mut windows = Stream::from_source(Box::new(probes))
        .event_time(col("timestamp"), Duration::from_secs(3))
        .filter(col("error_code").not_eq(0).and(col("rtt_us").gt_eq(100)))
        .window(hop(Duration::from_secs(60), Duration::from_secs(10)))
        .group_by(["src_cluster", "dst_cluster"])
        .aggregate([count().alias("probes")])
        .run()?;
    for pairs in windows.by_ref() {
        println!(
            "a window closed with {} pairs of clusters",
            pairs?.num_rows()
        );
    }
    println!("{} rows in all", windows.metrics().rows);
    Ok(())
}
