//! Tells an orchestrator about the jobs that ended, in order and at least once. What it does with that never changes a job: the job has ended.
//!
//! How far it was told is the status of the selection, so the next leader goes on there.

use std::sync::Arc;

use atlas_objects::{ROUTING, RoutingSpec};
use atlas_state::State;
use atlas_types::{
    Event, EventRecord, EventSeq, Job, JobChange, JobStatus, Micros, Namespace, Object, ObjectKey, ObjectKind,
    ObjectName, Observation,
};
use serde::{Deserialize, Serialize};

use super::candidate::Candidate;
use super::consult::Call;
use super::router::{PAUSE, WINDOW};
use super::shadow::{self, Comparison, Subject};
use crate::{Error, EventFilter, EventKind, Next, Service};

/// How long an orchestrator may take for what it is told at once.
const PATIENCE: Micros = Micros::from_secs(10);

/// How often it is told the same before that is given up.
const ATTEMPTS_MAX: u32 = 3;

/// After how many events without the end of a job the status is written.
const EVENTS_PER_STATUS: u64 = 4_096;

/// What the cluster says about a selection.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Status {
    /// The last event about which the orchestrator was told, or that was none to tell.
    cursor: u64,
    /// Ended jobs about which it was told.
    told: u64,
    /// Those about which it could not be told.
    missed: u64,
    /// How often the candidate would have decided the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    shadow: Option<Comparison>,
}

/// The object of a namespace's selection.
fn selection(state: &State, namespace: &Namespace) -> Option<Arc<Object>> {
    let (kind, name) = (ObjectKind::new("routing").ok()?, ObjectName::new(ROUTING).ok()?);
    state.object(&ObjectKey { namespace: namespace.clone(), kind, name }).cloned()
}

/// What happened to what an orchestrator was to be told.
enum Told {
    Yes,
    /// It could not be told.
    No,
    /// Rules and programs outside hear nothing.
    Deaf,
}

/// Follows the ends of jobs for one selection of a namespace.
pub(super) struct Teller {
    pub(super) service: Service,
    pub(super) namespace: Namespace,
    pub(super) generation: EventSeq,
}

impl Teller {
    /// Runs until another orchestrator is selected; its task is aborted then.
    pub(super) async fn run(self) {
        let Some(object) = selection(&self.service.shared.handle.applied(), &self.namespace) else { return };
        let mut status: Status = serde_json::from_slice(&object.status).unwrap_or_default();
        // After the default orchestrator, which was told nothing, the new one begins with itself. Otherwise it goes on where the last one was.
        let Ok(spec) = RoutingSpec::read(&object.spec) else { return };
        status.shadow = spec.shadow.as_ref().map(|candidate| status.shadow.take().unwrap_or_default().of(candidate));
        if spec.previous.is_none() || status.cursor == 0 {
            status.cursor = status.cursor.max(self.generation.0);
        }
        loop {
            match self.follow(&object, &spec, &mut status).await {
                Ok(()) => return,
                Err(Error::EventsGone { earliest }) => status.cursor = earliest.0.saturating_sub(1).max(status.cursor),
                Err(error) => {
                    tracing::debug!(error = &error as &dyn std::error::Error, "an orchestrator waits for events");
                    self.service.shared.env.clock.sleep(PAUSE).await;
                }
            }
        }
    }

    /// Tells what comes after the cursor, until the controller stops.
    async fn follow(&self, object: &Object, spec: &RoutingSpec, status: &mut Status) -> Result<(), Error> {
        let mut reader = self.service.follow_namespace(&self.namespace, EventSeq(status.cursor)).await?;
        let filter = EventFilter { kinds: vec![EventKind::Job], name: None };
        let mut written = status.cursor;
        loop {
            let Next::Changes(records) = reader.next_events(&filter).await? else { return Ok(()) };
            let ended: Vec<(Call, Arc<Job>)> = records.iter().filter_map(ended).collect();
            for window in ended.chunks(WINDOW) {
                if let Some(name) = &spec.orchestrator {
                    match self.tell(name, window).await {
                        Told::Yes => status.told += window.len() as u64,
                        Told::No => status.missed += window.len() as u64,
                        Told::Deaf => {}
                    }
                }
                if let (Some(candidate), Some(comparison)) = (&spec.shadow, &mut status.shadow) {
                    self.compare(candidate, window, comparison).await;
                }
            }
            status.cursor = status.cursor.max(reader.cursor().0);
            if !ended.is_empty() || status.cursor - written >= EVENTS_PER_STATUS {
                self.write(object, status).await;
                written = status.cursor;
            }
        }
    }

    async fn tell(&self, name: &str, window: &[(Call, Arc<Job>)]) -> Told {
        for _ in 0..ATTEMPTS_MAX {
            let agent = match Candidate::of(&self.service.shared.handle.applied(), &self.namespace, name) {
                Some(Candidate::Agent(agent)) => agent,
                Some(Candidate::Rules(_) | Candidate::External(_)) => return Told::Deaf,
                None => return Told::No,
            };
            match self.service.consult(&agent, window, PATIENCE).await {
                Ok(_) => return Told::Yes,
                Err(silence) => {
                    tracing::info!(%silence, namespace = %self.namespace, "an orchestrator was not told about ended jobs")
                }
            }
            self.service.shared.env.clock.sleep(PAUSE).await;
        }
        Told::No
    }

    /// Asks a candidate what it would have decided about jobs that ended.
    async fn compare(&self, candidate: &str, window: &[(Call, Arc<Job>)], comparison: &mut Comparison) {
        let found = Candidate::of(&self.service.shared.handle.applied(), &self.namespace, candidate);
        let wishes = match found {
            Some(found) => {
                let jobs: Vec<_> = window.iter().map(|(_, job)| shadow::as_asked(job)).collect();
                self.service.wishes(&found, &jobs, PATIENCE).await
            }
            None => vec![Err(format!("Orchestrator not found: {candidate}")); window.len()],
        };
        for ((_, job), wish) in window.iter().zip(&wishes) {
            comparison.note(&Subject::of(job), wish);
        }
    }

    async fn write(&self, object: &Object, status: &Status) {
        let status = serde_json::to_value(status).ok().and_then(|value| atlas_objects::canonical(&value).ok());
        let Some(status) = status else { return };
        let (key, uid, revision) = (object.key.clone(), object.uid, object.revision);
        let observation = Observation { key, uid, revision, status: status.into() };
        if let Err(error) = self.service.observe_objects(vec![observation]).await {
            // The next status says it again.
            tracing::debug!(error = &error as &dyn std::error::Error, "the status of a selection was not written");
        }
    }
}

/// What is to be told about an event.
fn ended(record: &EventRecord) -> Option<(Call, Arc<Job>)> {
    let Event::Job { change: JobChange::Ended, job, .. } = &record.event else { return None };
    let call = match job.status {
        JobStatus::Completed => Call::Complete,
        JobStatus::Failed => Call::Failed,
        JobStatus::Cancelled | JobStatus::Pending | JobStatus::Running => return None,
    };
    Some((call, Arc::clone(job)))
}
