//! What a parked durable agent takes in the state of a controller, without a server: the job, its record and what it waits for.

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use atlas_duty::{Strategy, schedule};
use atlas_types::{
    AgentPin, ClusterConfig, Command, ConfigureCluster, Digest, GrantLease, JobId, Micros, Namespace, Outcome, ParkJob,
    Payload, RecordSteps, Step, StepKey, StepKind, StepUsage, SubmitJob, Verdict, Version, Wait,
};

use crate::figures::Row;
use crate::placement::{Simulated, agent};
use crate::process::resident_mib_of;

/// Jobs that are parked, and how many more before them that memory is not measured of.
const JOBS: u64 = 100_000;
const NOT_COUNTED: u64 = 1_000;
/// As many as run on the node at a time.
const PLACES: u64 = 16;
const PARKED_MAX_KIB: f64 = 2.0;
const VERSION: Version = Version { major: 1, minor: 0, patch: 0 };

/// The records of a job that has made one step.
const RECORDS: [(StepKind, &[u8]); 2] = [
    (StepKind::Start, br#"{"began_us":1780128000000000,"seed":4503599627370495}"#),
    (StepKind::Code, br#"{"call":"step:reserve:0123456789abcdef:1","name":"reserve","at_us":1780128000000000,"alone":true,"value":null}"#),
];

pub(super) fn run() -> Result<Row> {
    let mut cluster = Simulated::new(1, 1)?;
    let namespace = Namespace::new("team-0")?;
    // By default there is room for the journals of 10,000 jobs.
    let config = ClusterConfig { journal_bytes_max: 64 << 30, ..cluster.state.config().clone() };
    cluster.apply(&Namespace::default_namespace(), Command::ConfigureCluster(ConfigureCluster { config }))?;
    let pin = ("waiter".parse()?, Digest([99; 32]));
    cluster.apply(&namespace, agent(&pin, (0, 0, 0, 0)))?;
    let mut before = 0.0;
    for first in (1..=NOT_COUNTED + JOBS).step_by(PLACES as usize) {
        if before == 0.0 && first > NOT_COUNTED {
            before = resident_mib_of(std::process::id())?;
        }
        for id in first..first + PLACES {
            let verdict = Verdict::Accepted(AgentPin { version: VERSION, digest: pin.1 });
            let input = Payload::inline(br#"{"order": 1234567}"#);
            cluster.apply(&namespace, Command::SubmitJob(SubmitJob::new(JobId(id), pin.0.clone(), verdict, input)))?;
        }
        for request in schedule(&cluster.state, &BTreeSet::new(), Strategy::BinPack, PLACES as usize) {
            let Command::GrantLease(grant) = request.command else { bail!("not a grant: {request:?}") };
            park(&mut cluster, &namespace, grant)?;
        }
    }
    let kib = (resident_mib_of(std::process::id())? - before) * 1024.0 / JOBS as f64;
    Ok(Row::amount("durable_parked_state", kib, "KiB").value_against(&format!("{PARKED_MAX_KIB} KiB"), PARKED_MAX_KIB))
}

/// Runs a job until it has a record and waits for a message.
fn park(cluster: &mut Simulated, namespace: &Namespace, grant: GrantLease) -> Result<()> {
    let (job, node) = (grant.job, grant.node.clone());
    let Outcome::Granted { token, .. } = cluster.apply(namespace, Command::GrantLease(grant))? else {
        bail!("{job} was not granted")
    };
    for (from, (kind, outcome)) in (0_u64..).zip(RECORDS) {
        let key = StepKey((u128::from(job.0) << 64 | u128::from(from)).to_be_bytes());
        let step = Arc::new(Step { kind, key, outcome: Payload::inline(outcome), usage: StepUsage::default() });
        let record = RecordSteps { job, node: node.clone(), token, from, steps: vec![step] };
        cluster.apply(namespace, Command::RecordSteps(record))?;
    }
    let (journal_length, waits) = (RECORDS.len() as u64, vec![Wait::Message]);
    let park = ParkJob { job, node, token, journal_length, waits, used: Micros::from_secs(5), read: 0 };
    cluster.apply(namespace, Command::ParkJob(park)).context("the job does not park")?;
    Ok(())
}
