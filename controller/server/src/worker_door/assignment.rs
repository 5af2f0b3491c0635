//! A lease in the form sent to its holder.

use atlas_state::State;
use atlas_types::{AssignedJournal, Assignment, Job, Lease, SpawnRule, level};

use super::mail::mail;

/// The data that the holder of `lease` needs to run the attempt. None for a job without a version, which never gets a
/// lease.
///
/// `package_bytes_max` is used if the size is unknown, because the version was published again with another package.
pub(super) fn assignment(state: &State, job: &Job, lease: &Lease, package_bytes_max: u64) -> Option<Assignment> {
    let (pin, spec) = (job.pin.as_ref()?, job.spec.as_ref()?);
    let published = state.agent(&job.namespace, &job.agent, pin.version).filter(|agent| agent.digest == pin.digest);
    // The door checked the first job at its submission. A retry was not checked.
    let retried = published.filter(|_| job.original.is_some());
    let lacks = retried.and_then(|agent| atlas_service::lacking(state, &job.namespace, agent));
    Some(Assignment {
        namespace: job.namespace.clone(),
        job: job.id,
        token: lease.token,
        attempt: lease.attempt,
        agent: job.agent.clone(),
        version: pin.version,
        digest: pin.digest,
        package_bytes: published.map_or(package_bytes_max, |agent| agent.package_bytes),
        input: job.input.clone(),
        metadata: job.metadata.clone(),
        context: job.context.as_deref().cloned(),
        allocation: lease.allocation.clone(),
        startup_timeout: spec.timeouts.startup,
        execution_timeout: job.execution_left()?,
        submitted_timeout: job.execution_timeout,
        needs_start: spec.needs_start(),
        retry_count: job.retry_count,
        trace: atlas_otlp::execution(job),
        spawn: Some(SpawnRule {
            depth: job.depth(),
            depth_max: state.config().spawn_depth_max,
            permitted: spec.spawns,
        }),
        lacks: lacks.map(Into::into),
        attachments: Default::default(),
        budget_nanodollars: state.payer(job.id).and_then(|payer| payer.budget_nanodollars),
        fork_steps: job.fork_steps(),
        journal: (state.level() >= level::JOURNAL).then(|| Box::new(assigned_journal(state, job))),
    })
}

/// The journal that an attempt continues, and what the job waited for.
fn assigned_journal(state: &State, job: &Job) -> AssignedJournal {
    let journal = state.journal(job.id).cloned().unwrap_or_default();
    AssignedJournal { journal, unfolded: None, mail: mail(state, job.id, 0), slept_until: job.slept_until }
}
