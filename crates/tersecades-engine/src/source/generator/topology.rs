//! The data centre that probes run in: regions, clusters, racks, servers.
//!
//! Servers are numbered rack by rack and cluster by cluster, so "in this rack" is one range of
//! numbers. Their addresses are shuffled over 10.0.0.0/8: the order of addresses says nothing
//! about clusters, as after years of handing out and giving back.
//!
//! ```text
//! region 0                      | region 1 ...
//! cluster 0        | cluster 1  | cluster 2 ...
//! rack 1 | rack 2  | rack 3 ... |             rack = top-of-rack switch, ids from 1
//! servers 0..39 | 40..79 | ...
//! ```

use std::sync::Arc;

use arrow_array::{RecordBatch, StringArray, UInt32Array};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use tersecades_columnar::error::{Error, Result};

use super::random::{Chance, CounterStream, below, high, low};

/// The most servers a topology can have: 10.0.0.0/8 at one address in seven.
pub const SERVERS_MAX: u32 = (1 << 24) / ADDRESS_STRIDE - 1;

/// The most clusters a topology can have.
pub const CLUSTERS_MAX: u32 = 1 << 16;

/// Distance between two neighbouring addresses in use.
const ADDRESS_STRIDE: u32 = 7;
/// 10.0.0.0.
const FIRST_ADDRESS: u32 = 0x0a00_0000;

/// Streams of the seed that a topology draws from (the rows of a stream use number 0).
const ADDRESS_STREAM: u64 = 1;
const SERVER_STREAM: u64 = 2;
const NAME_STREAM: u64 = 3;

/// How large each level of a [`Topology`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TopologySize {
    /// Regions.
    pub regions: u32,
    /// Clusters of all regions together; regions share them as evenly as they can.
    pub clusters: u32,
    /// Racks, each with one switch, in a cluster.
    pub racks_per_cluster: u32,
    /// Servers in a rack.
    pub servers_per_rack: u32,
}

impl Default for TopologySize {
    /// 4 regions, 200 clusters, 2,000 racks, 80,000 servers.
    fn default() -> Self {
        TopologySize {
            regions: 4,
            clusters: 200,
            racks_per_cluster: 10,
            servers_per_rack: 40,
        }
    }
}

impl TopologySize {
    /// Servers of all clusters.
    ///
    /// # Errors
    /// `InvalidArgument` when a level is empty, there are more regions than clusters, or a limit
    /// ([`CLUSTERS_MAX`], [`SERVERS_MAX`]) is passed.
    pub fn servers(&self) -> Result<u32> {
        let levels = [
            ("regions", self.regions),
            ("clusters", self.clusters),
            ("racks_per_cluster", self.racks_per_cluster),
            ("servers_per_rack", self.servers_per_rack),
        ];
        if let Some((level, _)) = levels.iter().find(|(_, count)| *count == 0) {
            return Err(Error::invalid(format!("`{level}` is 0")).hint("use 1 or more"));
        }
        if self.regions > self.clusters || self.clusters > CLUSTERS_MAX {
            let message = format!(
                "{} clusters do not suit {} regions",
                self.clusters, self.regions
            );
            let hint = format!("use at least one per region and at most {CLUSTERS_MAX} in all");
            return Err(Error::invalid(message).hint(hint));
        }
        self.clusters
            .checked_mul(self.racks_per_cluster)
            .and_then(|racks| racks.checked_mul(self.servers_per_rack))
            .filter(|servers| *servers <= SERVERS_MAX)
            .ok_or_else(|| {
                Error::invalid(format!("the topology has more than {SERVERS_MAX} servers"))
                    .hint("lower `clusters`, `racks_per_cluster` or `servers_per_rack`")
            })
    }
}

/// What a row says about one end of a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Server {
    /// IPv4 address.
    pub ip: u32,
    /// Index of the cluster, and code in [`Topology::cluster_names`].
    pub cluster: u16,
    /// Index of the region, and code in [`Topology::region_names`].
    pub region: u16,
}

/// Servers with their addresses, racks, clusters and regions.
#[derive(Debug)]
pub struct Topology {
    size: TopologySize,
    servers: Vec<Server>,
    region_names: Arc<StringArray>,
    cluster_names: Arc<StringArray>,
    seed: u64,
}

impl Topology {
    /// The topology of `seed`.
    ///
    /// # Errors
    /// As [`TopologySize::servers`].
    ///
    /// # Cost
    /// 8 bytes per server.
    pub fn new(size: TopologySize, seed: u64) -> Result<Self> {
        let count = size.servers()?;
        let per_cluster = size.racks_per_cluster * size.servers_per_rack;
        let addresses = CounterStream::new(seed, ADDRESS_STREAM).permutation(count);
        let servers = (0..).zip(addresses).map(|(server, place): (u32, u32)| {
            let cluster = server / per_cluster;
            Server {
                ip: FIRST_ADDRESS + place * ADDRESS_STRIDE + 1,
                // Both lie below CLUSTERS_MAX, which `servers()` checked.
                cluster: cluster as u16,
                region: region_of(size, cluster) as u16,
            }
        });
        Ok(Topology {
            size,
            servers: servers.collect(),
            region_names: Arc::new(region_names(size)),
            cluster_names: Arc::new(cluster_names(size, seed)),
            seed,
        })
    }

    /// The sizes it was made with.
    pub fn size(&self) -> TopologySize {
        self.size
    }

    /// Region names by region index, in ascending order.
    pub fn region_names(&self) -> &Arc<StringArray> {
        &self.region_names
    }

    /// Cluster names by cluster index, in ascending order.
    pub fn cluster_names(&self) -> &Arc<StringArray> {
        &self.cluster_names
    }

    /// All servers, by number.
    pub fn servers(&self) -> &[Server] {
        &self.servers
    }

    /// The number of a server of `cluster`, chosen by 32 random bits.
    #[inline]
    pub fn server_in(&self, cluster: u32, bits: u32) -> u32 {
        let per_cluster = self.size.racks_per_cluster * self.size.servers_per_rack;
        cluster * per_cluster + below(bits, per_cluster)
    }

    /// Id of the top-of-rack switch of a server number; ids start at 1.
    pub fn tor_of(&self, server: u32) -> u32 {
        server / self.size.servers_per_rack + 1
    }

    /// Switches in all; their ids are `1..=tors()`.
    pub fn tors(&self) -> u32 {
        self.size.clusters * self.size.racks_per_cluster
    }

    /// The lookup table `ip`, `tor_id`, ascending by `ip`, without about `missing_share` of the
    /// servers (an inventory is never complete).
    ///
    /// # Errors
    /// `Corrupt` if Arrow refuses the batch, which would be a bug.
    pub fn tor_table(&self, missing_share: f64) -> Result<RecordBatch> {
        let missing = Chance::new(missing_share);
        let stream = CounterStream::new(self.seed, SERVER_STREAM);
        let mut rows: Vec<(u32, u32)> = (0..)
            .zip(&self.servers)
            .filter(|(server, _)| !missing.decide(high(stream.draw(u64::from(*server)))))
            .map(|(server, place)| (place.ip, self.tor_of(server)))
            .collect();
        rows.sort_unstable();
        let ips = UInt32Array::from_iter_values(rows.iter().map(|(ip, _)| *ip));
        let tors = UInt32Array::from_iter_values(rows.iter().map(|(_, tor)| *tor));
        Ok(RecordBatch::try_new(
            tor_schema(),
            vec![Arc::new(ips), Arc::new(tors)],
        )?)
    }
}

/// Schema of [`Topology::tor_table`].
pub fn tor_schema() -> SchemaRef {
    let fields = ["ip", "tor_id"].map(|name| Field::new(name, DataType::UInt32, false));
    Arc::new(Schema::new(fields.to_vec()))
}

/// Clusters are cut into `regions` runs whose lengths differ by one at most.
fn region_of(size: TopologySize, cluster: u32) -> u32 {
    let region = u64::from(cluster) * u64::from(size.regions) / u64::from(size.clusters);
    low(region)
}

fn region_names(size: TopologySize) -> StringArray {
    StringArray::from_iter_values((0..size.regions).map(|region| region_name(size, region)))
}

/// For example `az-r03`; numbers have equal width, so names sort as their codes do.
fn region_name(size: TopologySize, region: u32) -> String {
    let width = digits(size.regions - 1).max(2);
    format!("az-r{region:0width$}")
}

/// For example `az-r03-dc07-prod-cl0123-5b1d2c3a4f607182`: 40 characters, as long as real ids are.
fn cluster_names(size: TopologySize, seed: u64) -> StringArray {
    let stream = CounterStream::new(seed, NAME_STREAM);
    let width = digits(size.clusters - 1).max(4);
    StringArray::from_iter_values((0..size.clusters).map(|cluster| {
        let region = region_name(size, region_of(size, cluster));
        let centre = u64::from(cluster) * 31 / u64::from(size.clusters);
        let id = stream.draw(u64::from(cluster));
        format!("{region}-dc{centre:02}-prod-cl{cluster:0width$}-{id:016x}")
    }))
}

fn digits(number: u32) -> usize {
    number
        .checked_ilog10()
        .map_or(1, |power| power as usize + 1)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use arrow_array::cast::AsArray;
    use arrow_array::types::UInt32Type;

    use super::*;

    #[test]
    fn servers_have_distinct_addresses_and_the_right_place() {
        let topology = Topology::new(TopologySize::default(), 1).unwrap();
        let ips: HashSet<u32> = topology.servers().iter().map(|server| server.ip).collect();
        assert_eq!(ips.len(), 80_000);
        assert!(ips.iter().all(|ip| ip >> 24 == 10));
        assert_eq!(topology.tors(), 2000);
        assert_eq!((topology.tor_of(0), topology.tor_of(79_999)), (1, 2000));
        let last = topology.servers().last().unwrap();
        assert_eq!((last.cluster, last.region), (199, 3));
    }

    #[test]
    fn names_are_distinct_ascending_and_forty_characters() {
        let topology = Topology::new(TopologySize::default(), 1).unwrap();
        let names: Vec<&str> = topology.cluster_names().iter().flatten().collect();
        assert!(names.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(names.iter().all(|name| name.len() == 40));
        for server in topology.servers() {
            let region = topology.region_names().value(usize::from(server.region));
            assert!(names[usize::from(server.cluster)].starts_with(region));
        }
    }

    #[test]
    fn names_stay_ascending_when_numbers_grow() {
        let size = TopologySize {
            regions: 130,
            clusters: 12_000,
            ..TopologySize::default()
        };
        let size = TopologySize {
            racks_per_cluster: 1,
            servers_per_rack: 2,
            ..size
        };
        let topology = Topology::new(size, 1).unwrap();
        let names: Vec<&str> = topology.cluster_names().iter().flatten().collect();
        assert!(names.windows(2).all(|pair| pair[0] < pair[1]));
    }

    #[test]
    fn tor_table_is_sorted_and_misses_about_its_share() {
        let topology = Topology::new(TopologySize::default(), 9).unwrap();
        let table = topology.tor_table(0.01).unwrap();
        let missing = 80_000 - table.num_rows();
        assert!((660..940).contains(&missing), "{missing}");
        let ips = table.column(0).as_primitive::<UInt32Type>().values();
        assert!(ips.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!(topology.tor_table(0.0).unwrap().num_rows(), 80_000);
    }

    #[test]
    fn impossible_sizes_are_refused_with_advice() {
        let refused = [
            TopologySize {
                regions: 0,
                ..TopologySize::default()
            },
            TopologySize {
                servers_per_rack: 0,
                ..TopologySize::default()
            },
            TopologySize {
                regions: 201,
                ..TopologySize::default()
            },
            TopologySize {
                clusters: CLUSTERS_MAX + 1,
                ..TopologySize::default()
            },
            TopologySize {
                racks_per_cluster: u32::MAX,
                ..TopologySize::default()
            },
            TopologySize {
                servers_per_rack: 2000,
                ..TopologySize::default()
            },
        ];
        for size in refused {
            let error = Topology::new(size, 1).unwrap_err();
            assert!(error.hint_text().is_some(), "{error}");
        }
    }
}
