//! Where machines stand: data centre, cluster, host; and what all of them are called.

use std::sync::Arc;

use arrow_array::StringArray;
use tersecades_columnar::error::{Error, Result};

use super::super::name::{names, uuid};
use super::super::random::{CounterStream, below, high};

/// Streams of the seed.
const VM_STREAM: u64 = 100;
const NODE_STREAM: u64 = 101;

/// Three letters each, as airports are called.
const DATACENTERS: [&str; 16] = [
    "ams", "blr", "cpt", "dub", "fra", "gru", "hkg", "iad", "lhr", "nrt", "ord", "scl", "sea",
    "sin", "syd", "yyz",
];

/// Places of all machines.
pub(super) struct Places {
    datacenter_names: Arc<StringArray>,
    cluster_names: Arc<StringArray>,
    node_names: Arc<StringArray>,
    vm_names: Arc<StringArray>,
    /// By machine: codes of data centre, cluster and host.
    codes: Vec<[i32; 3]>,
}

impl Places {
    /// Machines on hosts of clusters of data centres, every level at least as many as the one
    /// above it.
    pub(super) fn new(
        seed: u64,
        datacenters: u32,
        clusters: u32,
        nodes: u32,
        vms: u32,
    ) -> Result<Self> {
        if datacenters > clusters || clusters > nodes {
            return Err(Error::invalid(format!(
                "{datacenters} data centres, {clusters} clusters and {nodes} nodes do not fit"
            ))
            .hint("use at least one cluster a data centre, and one node a cluster"));
        }
        let vm_draws = CounterStream::new(seed, VM_STREAM);
        let node_draws = CounterStream::new(seed, NODE_STREAM);
        let share = |inner: u32, inners: u32, outers: u32| -> u32 {
            // Both counts are below 2^20, so the quotient is below `outers`.
            (u64::from(inner) * u64::from(outers) / u64::from(inners)) as u32
        };
        let datacenter = |cluster| share(cluster, clusters, datacenters);
        let codes = (0..vms).map(|vm| {
            let node = below(high(vm_draws.draw(u64::from(vm) * 4)), nodes);
            let cluster = share(node, nodes, clusters);
            [datacenter(cluster), cluster, node].map(u32::cast_signed)
        });
        let datacenter_name = |datacenter: u32| DATACENTERS[datacenter as usize];
        let cluster_name = |cluster: u32| {
            let first = (0..cluster)
                .rev()
                .take_while(|it| datacenter(*it) == datacenter(cluster));
            format!(
                "{}-prd-{:03}",
                datacenter_name(datacenter(cluster)),
                first.count()
            )
        };
        let node_name = |node: u32| format!("n-{:08x}", high(node_draws.draw(u64::from(node))));
        let vm_name = |vm: u32| uuid(vm_draws, u64::from(vm));
        Ok(Places {
            datacenter_names: Arc::new(
                (0..datacenters)
                    .map(|it| Some(datacenter_name(it)))
                    .collect(),
            ),
            cluster_names: names(clusters, cluster_name),
            node_names: names(nodes, node_name),
            vm_names: names(vms, vm_name),
            codes: codes.collect(),
        })
    }

    /// Number of machines.
    pub(super) fn vms(&self) -> u64 {
        self.codes.len() as u64
    }

    /// Names of data centres, by code.
    pub(super) fn datacenter_names(&self) -> &Arc<StringArray> {
        &self.datacenter_names
    }

    /// Names of clusters, by code.
    pub(super) fn cluster_names(&self) -> &Arc<StringArray> {
        &self.cluster_names
    }

    /// Names of hosts, by code.
    pub(super) fn node_names(&self) -> &Arc<StringArray> {
        &self.node_names
    }

    /// Names of machines, by machine.
    pub(super) fn vm_names(&self) -> &Arc<StringArray> {
        &self.vm_names
    }

    /// Data centres of `vms`.
    pub(super) fn datacenter_codes(&self, vms: &[i32]) -> Vec<i32> {
        self.level(vms, 0)
    }

    /// Clusters of `vms`.
    pub(super) fn cluster_codes(&self, vms: &[i32]) -> Vec<i32> {
        self.level(vms, 1)
    }

    /// Hosts of `vms`.
    pub(super) fn node_codes(&self, vms: &[i32]) -> Vec<i32> {
        self.level(vms, 2)
    }

    fn level(&self, vms: &[i32], level: usize) -> Vec<i32> {
        vms.iter()
            .map(|vm| self.codes[*vm as usize][level])
            .collect()
    }
}
