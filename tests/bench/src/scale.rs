//! Measures what a state grows by: the memory and the part of a snapshot for each node, agent, namespace and waiting job, and how long
//! the snapshot of a large state takes to write and to read.

use std::time::Duration;

use anyhow::Result;
use atlas_env::Env;
use atlas_format::{decode_snapshot, encode_snapshot};
use atlas_state::State;
use atlas_types::{Digest, Namespace};

use crate::figures::Row;
use crate::placement::{Simulated, agent, node};
use crate::process::resident_mib_of;

const NODES: usize = 10_000;
const AGENTS: usize = 10_000;
const NAMESPACES: usize = 1_000;
const JOBS: usize = 1_000_000;

pub(crate) fn run(env: &Env, _rows: &[Row]) -> Result<Vec<Row>> {
    let mut growth = Growth::new(env)?;
    growth.by("node", NODES, |cluster| {
        (0..NODES).try_for_each(|number| cluster.apply(&Namespace::default_namespace(), node(number)?).map(drop))
    })?;
    growth.by("agent", AGENTS, |cluster| {
        (0..AGENTS).try_for_each(|number| register(cluster, &Namespace::default_namespace(), number))
    })?;
    growth.by("namespace", NAMESPACES, |cluster| {
        (0..NAMESPACES).try_for_each(|number| register(cluster, &Namespace::new(&format!("space-{number}"))?, 0))
    })?;
    growth.by("waiting_job", JOBS, |cluster| cluster.submit_up_to(JOBS))?;
    growth.finish()
}

/// Registers an agent. A namespace exists by what is in it.
fn register(cluster: &mut Simulated, namespace: &Namespace, number: usize) -> Result<()> {
    let mut digest = [7; 32];
    digest[..8].copy_from_slice(&(number as u64).to_le_bytes());
    let named = (format!("agent-{number}").parse()?, Digest(digest));
    cluster.apply(namespace, agent(&named, (1, 2, 0, 0))).map(drop)
}

struct Growth<'a> {
    env: &'a Env,
    cluster: Simulated,
    snapshot: Vec<u8>,
    rows: Vec<Row>,
}

impl<'a> Growth<'a> {
    fn new(env: &'a Env) -> Result<Self> {
        let mut growth = Self { env, cluster: Simulated::new(0, 8)?, snapshot: Vec::new(), rows: Vec::new() };
        growth.write()?;
        Ok(growth)
    }

    /// Writes a snapshot, and returns how long that took.
    fn write(&mut self) -> Result<Duration> {
        let begun = self.env.clock.monotonic();
        self.snapshot.clear();
        encode_snapshot(&self.cluster.state.to_image(), &mut self.snapshot)?;
        Ok(self.env.clock.monotonic() - begun)
    }

    /// Adds so many things of a kind.
    fn by(&mut self, kind: &str, count: usize, add: impl FnOnce(&mut Simulated) -> Result<()>) -> Result<()> {
        let (before, snapshot) = (resident_mib_of(std::process::id())?, self.snapshot.len());
        add(&mut self.cluster)?;
        let memory = (resident_mib_of(std::process::id())? - before) * 1024.0 / count as f64;
        self.write()?;
        let stored = (self.snapshot.len() - snapshot) as f64 / 1024.0 / count as f64;
        self.rows.push(Row::amount(&format!("scale_{kind}"), memory, "KiB"));
        self.rows.push(Row::amount(&format!("scale_{kind}_snapshot"), stored, "KiB"));
        Ok(())
    }

    fn finish(mut self) -> Result<Vec<Row>> {
        let written = self.write()?;
        let begun = self.env.clock.monotonic();
        let state = State::from_image(decode_snapshot(&self.snapshot[..])?)?;
        let read = self.env.clock.monotonic() - begun;
        drop(state);
        let size = self.snapshot.len() as f64 / f64::from(1 << 20);
        self.rows.push(Row::amount("scale_snapshot", size, "MiB"));
        self.rows.push(Row::amount("scale_snapshot_write", written.as_secs_f64(), "s"));
        self.rows.push(Row::amount("scale_snapshot_read", read.as_secs_f64(), "s"));
        Ok(self.rows)
    }
}
