//! Reading the sources of document bases ([ADR 86](../../../docs/adr/0086-sources-of-document-bases.md)): the leader submits a job of the
//! cluster's own agent when a base is due, and so does whoever asks for it. What is stored in the base decides when that is, and by what the job
//! is known, so that another leader finds the same job.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use atlas_api::types::BaseCollecting;
use atlas_bases::{CollectedBase, collecting, collection_due, collection_key};
use atlas_desk::on_behalf;
use atlas_objects::BaseSpec;
use atlas_raft::Leadership;
use atlas_types::{Job, JobId, JobStatus, Object, ObjectKey, ObjectKind, ObjectName, RequestId};
use serde_json::json;

use crate::probes::{self, Standing};
use crate::service::Shared;
use crate::{Caller, Consistency, Error, Service, Submission};

/// How often the leader looks for bases that are due.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// Most bases whose sources are read at the same time because they are due.
const RUNNING_MAX: usize = 4;
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
        let submission = |object: &Object, spec: &BaseSpec| {
            let input = json!({"base": object.key.name.as_str(), "sources": spec.sources});
            let request_id = RequestId::new(&collection_key(object.uid.0, spec))?;
            Ok::<_, Error>(Submission { request_id: Some(request_id), ..own.submission(&input, PRIORITY) })
        };
        let begun = Begun::new(self.submit(&cluster, submission(object, &spec)?).await?, &spec);
        let state = self.shared.current().await?;
        let has_failed = |job: &&Arc<Job>| job.status.is_terminal() && job.status != JobStatus::Completed;
        let Some(failed) = state.job(begun.job).filter(has_failed) else { return Ok(begun) };
        // That is not written down yet. The next one is known by another key then.
        self.end_failed(&object.key, Some(failed), &begun).await?;
        let state = self.state(Consistency::Linearizable).await?;
        let object = state.object(&object.key).ok_or(Error::Overloaded)?;
        let spec = read(object)?;
        Ok(Begun::new(self.submit(&cluster, submission(object, &spec)?).await?, &spec))
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
            job: begun.job,
            sources: begun.sources.clone(),
            documents: 0,
            errors: vec![reason(job.map(|job| &**job))],
            failed: true,
        };
        let cluster = on_behalf::cluster_in(key.namespace.clone());
        match self.bases().end_collection(&cluster, key.name.as_str(), &ended).await {
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
}

impl Begun {
    fn new(job: JobId, spec: &BaseSpec) -> Self {
        Self { job, after: last(spec), sources: spec.sources.clone() }
    }
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
        let mut running = BTreeMap::new();
        while leads(&leadership.borrow()) {
            if let Err(error) = look(&service, &mut running).await {
                tracing::debug!(
                    error = &error as &dyn std::error::Error,
                    "could not look for sources of document bases"
                );
            }
            shared.env.clock.sleep(LOOK_EVERY).await;
        }
    }
}

async fn look(service: &Service, running: &mut BTreeMap<ObjectKey, Begun>) -> Result<(), Error> {
    let shared = &service.shared;
    let state = shared.handle.applied();
    let has_ended = |begun: &Begun| state.job(begun.job).is_none_or(|job| job.status.is_terminal());
    let ended: Vec<ObjectKey> =
        running.iter().filter(|(_, begun)| has_ended(begun)).map(|(key, _)| key.clone()).collect();
    for key in ended {
        if let Some(begun) = running.get(&key) {
            service.end_failed(&key, state.job(begun.job), begun).await?;
        }
        running.remove(&key);
    }
    let now = shared.env.clock.wall().0.div_euclid(1_000_000);
    let state = shared.handle.applied();
    let due: Vec<Arc<Object>> = state
        .objects_of_kind(&ObjectKind::new("base")?)
        .filter(|object| !running.contains_key(&object.key))
        .filter(|object| read(object).is_ok_and(|spec| collection_due(&spec).is_some_and(|due| due <= now)))
        .take(RUNNING_MAX.saturating_sub(running.len()))
        .cloned()
        .collect();
    for object in due {
        match service.begin_collection(&object).await {
            Ok(begun) => drop(running.insert(object.key.clone(), begun)),
            Err(error) => {
                tracing::debug!(error = &error as &dyn std::error::Error, base = %object.key.name, "could not read the sources of a document base");
            }
        }
    }
    Ok(())
}
