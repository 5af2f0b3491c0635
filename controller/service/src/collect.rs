//! Reading the sources of document bases ([ADR 86](../../../docs/adr/0086-sources-of-document-bases.md)): the leader submits a job of the
//! cluster's own agent when a base is due, and so does whoever asks for it. What is stored in the base decides when that is, and by what the job
//! is known, so that another leader finds the same job.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use atlas_api::types::BaseCollecting;
use atlas_bases::{CollectedBase, collecting, collection_due, collection_key};
use atlas_desk::on_behalf;
use atlas_env::chain;
use atlas_jobs::Draft;
use atlas_objects::BaseSpec;
use atlas_raft::Leadership;
use atlas_state::State;
use atlas_types::{Job, JobId, JobStatus, Object, ObjectKey, ObjectKind, ObjectName, RequestId};
use serde_json::json;

use crate::probes::{self, OwnAgent, Standing};
use crate::service::Shared;
use crate::{Caller, Consistency, Error, Service, Submission};

/// How often the leader looks for bases that are due.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// Most bases whose sources are read at the same time because they are due.
const RUNNING_MAX: usize = 4;
/// How long a job counts among these although no worker has taken it.
const WAITING_MAX: Duration = Duration::from_secs(60);
/// For how long a base is left alone for which there could be no job: at first, and at most.
const AGAIN: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(300));
/// The priority of the jobs. One priority, because a job that is due and one that somebody asks for may be the same.
const PRIORITY: i64 = 0;

impl Service {
    /// Reads the sources of a base now. If a job does so already, the answer is that job.
    pub async fn collect_base(&self, caller: &Caller, name: &str) -> Result<BaseCollecting, Error> {
        self.bases().sources(caller, name).await?;
        let state = self.state(Consistency::Linearizable).await?;
        let key = base_key(caller, name)?;
        let object = state.object(&key).ok_or_else(|| Error::UnknownObject(format!("no such base: \"{name}\"")))?;
        let Begun { job, .. } = self.begin_collection(object).await?;
        Ok(collecting(job))
    }

    /// Submits the job for a base, or finds the one that runs.
    async fn begin_collection(&self, object: &Object) -> Result<Begun, Error> {
        let spec = read(object)?;
        let cluster = on_behalf::cluster_in(object.key.namespace.clone());
        let own = probes::collector()?;
        let state = self.shared.current().await?;
        match own.standing(&state, &cluster.namespace) {
            Standing::Ready => {}
            Standing::Missing => drop(self.register_made(&cluster, own.package.clone()).await?),
            Standing::Foreign => {
                self.shared.needs.is_foreign(&cluster.namespace, own);
                return Err(Error::VersionTaken(own.foreign()));
            }
        }
        let now = self.shared.env.clock.monotonic();
        let begun = Begun::new(self.submit(&cluster, submission(own, object, &spec)?).await?, &spec, now);
        let state = self.shared.current().await?;
        let has_failed = |job: &&Arc<Job>| job.status.is_terminal() && job.status != JobStatus::Completed;
        let Some(failed) = state.job(begun.job).filter(has_failed) else { return Ok(begun) };
        // That is not written down yet. The next one is known by another key then.
        self.end_failed(&object.key, Some(failed), &begun).await?;
        let state = self.state(Consistency::Linearizable).await?;
        let object = state.object(&object.key).ok_or(Error::Overloaded)?;
        let spec = read(object)?;
        Ok(Begun::new(self.submit(&cluster, submission(own, object, &spec)?).await?, &spec, now))
    }

    /// The job that reads the sources of a base, as somebody has asked for it; none if nobody has, or if how it ended is written down.
    fn asked_for(&self, state: &State, object: &Object, spec: &BaseSpec) -> Option<Begun> {
        if spec.sources.is_empty() {
            return None;
        }
        let submission = submission(probes::collector().ok()?, object, spec).ok()?;
        let cluster = on_behalf::cluster_in(object.key.namespace.clone());
        // A repeat has no id of its own.
        let job = Draft::new(&cluster, &submission, JobId(0)).remembered(state)?.ok()?;
        state.job(job)?;
        Some(Begun::new(job, spec, self.shared.env.clock.monotonic()))
    }

    /// Writes down that a job ended without having written down how.
    async fn end_failed(&self, key: &ObjectKey, job: Option<&Arc<Job>>, begun: &Begun) -> Result<(), Error> {
        // One that is completed has written it down before.
        if job.is_some_and(|job| job.status == JobStatus::Completed) {
            return Ok(());
        }
        let state = self.shared.current().await?;
        let Some(object) = state.object(key) else { return Ok(()) };
        // Another one has ended since: this one is no longer what the base is about.
        if last(&read(object)?) != begun.after {
            return Ok(());
        }
        let ended = CollectedBase {
            job: Some(begun.job),
            sources: begun.sources.clone(),
            documents: 0,
            errors: vec![reason(job.map(|job| &**job))],
            failed: true,
        };
        self.write_down(key, &ended).await
    }

    async fn write_down(&self, key: &ObjectKey, ended: &CollectedBase) -> Result<(), Error> {
        let cluster = on_behalf::cluster_in(key.namespace.clone());
        match self.bases().end_collection(&cluster, key.name.as_str(), ended).await {
            Err(Error::UnknownObject(_)) => Ok(()),
            ended => ended.map(drop),
        }
    }
}

/// A job that reads the sources of a base.
#[derive(Debug)]
struct Begun {
    job: JobId,
    /// The job that had read them before; empty if there was none.
    after: String,
    /// What it reads.
    sources: Vec<String>,
    /// Since when this member knows of it.
    since: Duration,
}

impl Begun {
    fn new(job: JobId, spec: &BaseSpec, since: Duration) -> Self {
        Self { job, after: last(spec), sources: spec.sources.clone(), since }
    }
}

/// What the leader knows of bases.
#[derive(Debug, Default)]
struct Known {
    running: BTreeMap<ObjectKey, Begun>,
    /// Bases for which there could be no job, or whose end could not be written down.
    paused: BTreeMap<ObjectKey, Pause>,
}

/// How often something failed in a row, and when it is tried again.
#[derive(Debug, Clone, Copy, Default)]
struct Pause {
    failures: u32,
    until: Duration,
}

impl Known {
    /// Leaves a base alone for a while, longer each time.
    fn pause(&mut self, key: &ObjectKey, now: Duration) {
        let pause = self.paused.entry(key.clone()).or_default();
        let (first, longest) = AGAIN;
        pause.until = now + first.saturating_mul(1 << pause.failures.min(10)).min(longest);
        pause.failures = pause.failures.saturating_add(1);
    }

    /// Whether nothing is done for a base now.
    fn is_left_alone(&self, key: &ObjectKey, now: Duration) -> bool {
        self.running.contains_key(key) || self.paused.get(key).is_some_and(|pause| now < pause.until)
    }

    /// How many more jobs may begin. One that no worker takes costs nobody else his turn.
    fn room(&self, state: &State, now: Duration) -> usize {
        let has_lease = |begun: &Begun| state.job(begun.job).is_some_and(|job| job.lease.is_some());
        let counts = |begun: &&Begun| has_lease(begun) || now < begun.since + WAITING_MAX;
        RUNNING_MAX.saturating_sub(self.running.values().filter(counts).count())
    }
}

/// The submission of a job that reads the sources of a base: a repeat finds the same job.
fn submission(own: &OwnAgent, object: &Object, spec: &BaseSpec) -> Result<Submission, Error> {
    // One that is named twice is read once.
    let mut seen = BTreeSet::new();
    let sources: Vec<&String> = spec.sources.iter().filter(|source| seen.insert(*source)).collect();
    let input = json!({"base": object.key.name.as_str(), "sources": sources});
    let request_id = RequestId::new(&collection_key(object.uid.0, spec))?;
    Ok(Submission { request_id: Some(request_id), ..own.submission(&input, PRIORITY) })
}

/// The job that has read the sources of a base last; empty if there was none.
fn last(spec: &BaseSpec) -> String {
    spec.collected.as_ref().map(|collected| collected.job.clone()).unwrap_or_default()
}

fn reason(job: Option<&Job>) -> String {
    let Some(job) = job else { return "the job that read the sources is gone".to_owned() };
    let told = job.failure.as_ref().map(|failure| failure.error.to_string());
    let what = match (job.status, told) {
        (_, Some(told)) => told,
        (status, None) => format!("is {}", status.as_str()),
    };
    format!("the job {}: {what}", job.id)
}

fn base_key(caller: &Caller, name: &str) -> Result<ObjectKey, Error> {
    let (kind, name) = (ObjectKind::new("base")?, ObjectName::new(name)?);
    Ok(ObjectKey { namespace: caller.namespace.clone(), kind, name })
}

fn read(object: &Object) -> Result<BaseSpec, Error> {
    BaseSpec::read(&object.spec).map_err(|error| Error::internal("read a base", &error))
}

/// Reads sources while this member leads.
pub(crate) async fn collect(shared: Arc<Shared>) {
    let mut leadership = shared.handle.leadership();
    let leads = |leadership: &Leadership| matches!(leadership, Leadership::Leader { .. });
    let service = Service { shared: Arc::clone(&shared) };
    while leadership.wait_for(leads).await.is_ok() {
        let mut known = Known::default();
        while leads(&leadership.borrow()) {
            if let Err(error) = look(&service, &mut known).await {
                tracing::debug!(
                    error = &error as &dyn std::error::Error,
                    "could not look for sources of document bases"
                );
            }
            shared.env.clock.sleep(LOOK_EVERY).await;
        }
    }
}

/// Looks at all bases. What fails for one costs no other its turn.
async fn look(service: &Service, known: &mut Known) -> Result<(), Error> {
    let clock = &service.shared.env.clock;
    let state = service.shared.handle.applied();
    let has_ended = |begun: &Begun| state.job(begun.job).is_none_or(|job| job.status.is_terminal());
    let ended: Vec<ObjectKey> =
        known.running.iter().filter(|(_, begun)| has_ended(begun)).map(|(key, _)| key.clone()).collect();
    for key in ended {
        let Some(begun) = known.running.remove(&key) else { continue };
        let written = service.end_failed(&key, state.job(begun.job), &begun).await;
        settle(known, &key, written, clock.monotonic());
    }
    let state = service.shared.handle.applied();
    let (wall, now) = (clock.wall().0.div_euclid(1_000_000), clock.monotonic());
    known.paused.retain(|key, _| state.object(key).is_some());
    let mut room = known.room(&state, now);
    let objects: Vec<Arc<Object>> = state.objects_of_kind(&ObjectKind::new("base")?).cloned().collect();
    for object in objects {
        let Some(spec) = read(&object).ok().filter(|_| !known.is_left_alone(&object.key, now)) else { continue };
        if collection_due(&spec).is_none_or(|due| due > wall) {
            if let Some(begun) = service.asked_for(&state, &object, &spec) {
                known.running.insert(object.key.clone(), begun);
            }
        } else if room > 0 {
            room -= 1;
            begin(service, known, &object, &spec).await;
        }
    }
    Ok(())
}

/// Begins to read the sources of a base that is due.
async fn begin(service: &Service, known: &mut Known, object: &Object, spec: &BaseSpec) {
    let (key, clock) = (&object.key, &service.shared.env.clock);
    let error = match service.begin_collection(object).await {
        Ok(begun) => {
            known.paused.remove(key);
            known.running.insert(key.clone(), begun);
            return;
        }
        Err(error) => error,
    };
    let ended = CollectedBase {
        job: None,
        sources: spec.sources.clone(),
        documents: 0,
        errors: vec![chain(&error)],
        failed: true,
    };
    // What passes by itself is not worth an entry in the log.
    let written = if error.is_transient() { Ok(()) } else { service.write_down(key, &ended).await };
    settle(known, key, written.and(Err(error)), clock.monotonic());
}

/// Notes whether something succeeded for a base.
fn settle(known: &mut Known, key: &ObjectKey, done: Result<(), Error>, now: Duration) {
    match done {
        Ok(()) => drop(known.paused.remove(key)),
        Err(error) => {
            tracing::debug!(error = &error as &dyn std::error::Error, base = %key.name, "could not read the sources of a document base");
            known.pause(key, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use atlas_types::Namespace;

    use super::*;

    #[test]
    fn a_base_that_fails_is_left_alone_for_a_while() {
        let key = |name: &str| base_key(&on_behalf::cluster_in(Namespace::default_namespace()), name).expect("a key");
        let mut known = Known::default();
        let now = Duration::from_secs(100);
        assert!(!known.is_left_alone(&key("a"), now));
        known.pause(&key("a"), now);
        assert!(known.is_left_alone(&key("a"), now) && !known.is_left_alone(&key("b"), now));
        assert!(!known.is_left_alone(&key("a"), now + AGAIN.0));
        for _ in 0..50 {
            known.pause(&key("a"), now);
        }
        let last = now + AGAIN.1;
        assert!(known.is_left_alone(&key("a"), now + AGAIN.0) && !known.is_left_alone(&key("a"), last));
        settle(&mut known, &key("a"), Ok(()), now);
        assert!(!known.is_left_alone(&key("a"), now));
    }
}
