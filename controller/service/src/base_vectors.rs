//! The leader makes vectors of the chunks of document bases that have none, by jobs of the cluster's own agent. What is stored decides what is
//! left to do, and a job is known by the texts that it is about: another leader goes on where this one stopped, and finds the answers that are not
//! kept yet.

mod batches;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use atlas_artifacts::digest_of;
use atlas_bases::{NewVectors, VectorGap};
use atlas_desk::on_behalf;
use atlas_env::chain;
use atlas_model::Purpose;
use atlas_raft::Leadership;
use atlas_types::{Event, EventRecord, EventSeq, JobId, ObjectKey, ObjectKind};
use futures::stream::FuturesUnordered;
use futures::{StreamExt, future};
use tokio::sync::broadcast::error::RecvError;

use batches::{Batches, RefusedTexts};

use crate::document_models::{Chunks, EmbedAsk, Embedded, Unanswered, find_model};
use crate::needs::UNASKED;
use crate::service::Shared;
use crate::{Caller, Error, Service};

/// Most bases at the same time, and most jobs of one.
const BASES_MAX: usize = 4;
const JOBS_MAX: usize = 4;
/// How long one job may take: it may have to wait for a worker.
const JOB_WAIT: Duration = Duration::from_secs(600);
/// Vectors are kept when there are so many bytes of them, or after this time.
const KEEP_BYTES: usize = 4 << 20;
const KEEP_EVERY: Duration = Duration::from_secs(2);
/// After a failure a base is tried again, later each time.
const AGAIN: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(300));

/// What one leader knows of a base.
#[derive(Debug, Clone, Default)]
struct Known {
    /// The object and its revision when it was last looked at; none if it has to be looked at.
    seen: Option<(EventSeq, EventSeq)>,
    running: bool,
    failures: u32,
    /// When it is tried again after a failure.
    again_at: Option<Duration>,
    refused: RefusedTexts,
}

impl Known {
    /// Whether there may be something to do.
    fn is_due(&self, version: (EventSeq, EventSeq), now: Duration) -> bool {
        !self.running && (self.seen != Some(version) || self.again_at.is_some_and(|at| at <= now))
    }

    /// Notes how a look ended. A failure is written in the object, which is no reason to look again: `version` is that of the object if only that
    /// has changed since.
    fn ended(&mut self, failed: bool, version: Option<(EventSeq, EventSeq)>, now: Duration) {
        self.running = false;
        if failed && version.is_some() {
            self.seen = version;
        }
        self.failures = if failed { self.failures.saturating_add(1) } else { 0 };
        let (first, most) = AGAIN;
        let pause = first.saturating_mul(1 << self.failures.saturating_sub(1).min(10)).min(most);
        self.again_at = failed.then_some(now + pause);
    }
}

/// Makes vectors while this member leads.
pub(crate) async fn build(shared: Arc<Shared>) {
    let mut leadership = shared.handle.leadership();
    let leads = |leadership: &Leadership| matches!(leadership, Leadership::Leader { .. });
    while leadership.wait_for(leads).await.is_ok() {
        let service = Service { shared: Arc::clone(&shared) };
        tokio::select! {
            biased;
            ended = leadership.wait_for(|now| !leads(now)) => if ended.is_err() {
                return;
            },
            () = lead(&service) => return,
        }
    }
}

/// Completes when the log ends.
async fn lead(service: &Service) {
    let (handle, clock) = (&service.shared.handle, &service.shared.env.clock);
    let mut batches = handle.subscribe_to(|batch| batch.events.iter().any(is_of_base));
    let mut known = BTreeMap::<ObjectKey, Known>::new();
    let mut running = FuturesUnordered::new();
    loop {
        for (key, version) in due(&service.shared, &mut known, running.len()) {
            let base = known.entry(key.clone()).or_default();
            (base.seen, base.running) = (Some(version), true);
            running.push(one(service, key, std::mem::take(&mut base.refused)));
        }
        let now = clock.monotonic();
        let next = known.values().filter(|base| !base.running).filter_map(|base| base.again_at).min();
        let again = async {
            match next {
                Some(at) => clock.sleep(at.saturating_sub(now)).await,
                None => future::pending().await,
            }
        };
        tokio::select! {
            biased;
            Some(Ended { key, failed, version, refused }) = running.next() => if let Some(base) = known.get_mut(&key) {
                base.refused = refused;
                base.ended(failed, version, clock.monotonic());
            },
            batch = batches.recv() => if matches!(batch, Err(RecvError::Closed)) {
                return;
            },
            () = again, if running.len() < BASES_MAX => {}
        }
    }
}

fn is_of_base(event: &EventRecord) -> bool {
    matches!(&event.event, Event::ObjectPut { object, .. } if object.key.kind.as_str() == "base")
}

/// The bases to look at now, with their versions.
fn due(
    shared: &Shared,
    known: &mut BTreeMap<ObjectKey, Known>,
    running: usize,
) -> Vec<(ObjectKey, (EventSeq, EventSeq))> {
    let Ok(kind) = ObjectKind::new("base") else { return Vec::new() };
    let (state, now) = (shared.handle.applied(), shared.env.clock.monotonic());
    known.retain(|key, base| base.running || state.object(key).is_some());
    let is_due = |key: &ObjectKey, version| known.get(key).is_none_or(|base| base.is_due(version, now));
    let bases = state.objects_of_kind(&kind).map(|object| (object.key.clone(), (object.uid, object.revision)));
    bases.filter(|(key, version)| is_due(key, *version)).take(BASES_MAX.saturating_sub(running)).collect()
}

/// How a look at a base ended.
struct Ended {
    key: ObjectKey,
    failed: bool,
    /// The object and its revision, if nothing but what the look wrote has changed.
    version: Option<(EventSeq, EventSeq)>,
    refused: RefusedTexts,
}

/// Why a base has not all vectors.
struct Stopped {
    error: Error,
    /// What was missing; none if that is not known.
    missing: Option<VectorGap>,
}

impl From<Error> for Stopped {
    fn from(error: Error) -> Self {
        Self { error, missing: None }
    }
}

/// Makes the vectors of one base.
async fn one(service: &Service, key: ObjectKey, mut refused: RefusedTexts) -> Ended {
    let caller = on_behalf::cluster_in(key.namespace.clone());
    let Err(Stopped { error, missing }) = all(service, &caller, key.name.as_str(), &mut refused).await else {
        return Ended { key, failed: false, version: None, refused };
    };
    tracing::debug!(error = &error as &dyn std::error::Error, base = %key.name, "could not make vectors of a document base");
    // A base that was deleted has nothing left to do.
    let object = service.shared.handle.applied().object(&key).cloned();
    let version = object.as_ref().filter(|object| missing.is_some_and(|missing| missing.is_of(object)));
    let version = version.map(|object| (object.uid, object.revision));
    Ended { key, failed: object.is_some(), version, refused }
}

async fn all(service: &Service, caller: &Caller, name: &str, refused: &mut RefusedTexts) -> Result<(), Stopped> {
    let mut before = String::new();
    loop {
        let Some(missing) = service.bases().missing_vectors(caller, name).await? else { return Ok(()) };
        let nothing = NewVectors { left: missing.len(), ..NewVectors::default() };
        if missing.is_empty() || missing.of != before {
            service.bases().add_vectors(caller, name, &missing, &nothing).await?;
        }
        if missing.is_empty() {
            return Ok(());
        }
        before.clone_from(&missing.of);
        if let Err(error) = made(service, caller, (name, &missing), refused).await {
            let Some(now) = service.bases().missing_vectors(caller, name).await? else { return Ok(()) };
            if now.of != missing.of {
                // A chunk may be gone that a job was about.
                continue;
            }
            let left = now.len();
            let failed = NewVectors { error: told(&error), left, ..NewVectors::default() };
            service.bases().add_vectors(caller, name, &missing, &failed).await?;
            return Err(Stopped { error, missing: Some(missing) });
        }
    }
}

/// Makes and keeps vectors of all texts that have none, except those that the model has refused lately.
async fn made(
    service: &Service,
    caller: &Caller,
    (name, missing): (&str, &VectorGap),
    refused: &mut RefusedTexts,
) -> Result<(), Error> {
    let clock = &service.shared.env.clock;
    let state = service.shared.current().await?;
    let model = find_model(&state, caller, &missing.embedding, Purpose::Embedding)?;
    let model = (model.uid, model.revision);
    missing.check_room(missing.dimension)?;
    let is_skipped = refused.begin(model, clock.monotonic());
    let is_skipped =
        |place: usize| is_skipped && missing.chunk_key(place).is_some_and(|key| refused.texts.contains(&key));
    let mut batches = Batches::new(missing, is_skipped);
    let mut running = FuturesUnordered::new();
    let mut kept = Keeping::new(service, caller, (name, missing));
    loop {
        while running.len() < JOBS_MAX
            && let Some(places) = batches.pop()
        {
            running.push(async move {
                let answer = ask(service, caller, (name, missing, model), &places).await;
                (answer, places)
            });
        }
        match running.next().await {
            None => break,
            Some((Ok(embedded), places)) => {
                batches.succeeded();
                for key in places.iter().filter_map(|place| missing.chunk_key(*place)) {
                    refused.texts.remove(&key);
                }
                kept.add(places, embedded).await?;
            }
            Some((Err(Unanswered::Failed(error)), places)) => batches.failed(places, error),
            Some((Err(Unanswered::Error(error)), _)) => batches.stop(error),
        }
    }
    kept.keep().await?;
    refused.end(missing, batches, clock.monotonic())
}

/// Keeps vectors as they come, and erases them in the jobs that made them: who may read jobs need not be one who may read the documents.
struct Keeping<'a> {
    service: &'a Service,
    caller: &'a Caller,
    name: &'a str,
    missing: &'a VectorGap,
    new: NewVectors,
    jobs: Vec<JobId>,
    left: usize,
    kept_at: Duration,
}

impl<'a> Keeping<'a> {
    fn new(service: &'a Service, caller: &'a Caller, (name, missing): (&'a str, &'a VectorGap)) -> Self {
        let (left, kept_at) = (missing.len(), service.shared.env.clock.monotonic());
        Self { service, caller, name, missing, new: NewVectors::default(), jobs: Vec::new(), left, kept_at }
    }

    /// Adds the answer of a job, and keeps it with those before if there are many, or after a while.
    async fn add(&mut self, places: Vec<usize>, embedded: Embedded) -> Result<(), Error> {
        let dimension = embedded.vectors.dimension();
        self.missing.check_room(dimension)?;
        let (count, job) = (places.len(), embedded.job);
        if let Err(error) = join(&mut self.new, places, embedded) {
            self.keep().await?;
            return Err(error);
        }
        self.left = self.left.saturating_sub(count);
        self.jobs.push(job);
        let bytes = self.new.vectors.as_ref().map_or(0, |vectors| vectors.len() * dimension);
        if bytes >= KEEP_BYTES || self.service.shared.env.clock.monotonic() >= self.kept_at + KEEP_EVERY {
            self.keep().await?;
        }
        Ok(())
    }

    async fn keep(&mut self) -> Result<(), Error> {
        if self.new.vectors.is_none() {
            return Ok(());
        }
        let new = NewVectors { left: self.left, ..std::mem::take(&mut self.new) };
        self.service.bases().add_vectors(self.caller, self.name, self.missing, &new).await?;
        self.kept_at = self.service.shared.env.clock.monotonic();
        for job in self.jobs.drain(..) {
            if let Err(error) = self.service.shared.jobs.erase_job(self.caller, job).await {
                tracing::debug!(error = &error as &dyn std::error::Error, %job, "could not erase the vectors in a job");
            }
        }
        Ok(())
    }
}

/// Adds the answer of a job to those that are not kept yet.
fn join(new: &mut NewVectors, places: Vec<usize>, embedded: Embedded) -> Result<(), Error> {
    match &mut new.vectors {
        Some(vectors) => {
            if new.model != embedded.model {
                return Err(Error::VectorsDiffer("the model for vectors was changed while it was asked".to_owned()));
            }
            let joined = Arc::make_mut(vectors).append_rows(&embedded.vectors);
            joined.map_err(|error| Error::VectorsDiffer(error.to_string()))?;
        }
        None => (new.model, new.vectors) = (embedded.model, Some(embedded.vectors)),
    }
    new.places.extend(places);
    Ok(())
}

/// Asks for the vectors of some texts. The same texts are the same job, as long as the model object is the same and nobody wants all vectors anew.
async fn ask(
    service: &Service,
    caller: &Caller,
    (name, missing, (model, revision)): (&str, &VectorGap, (EventSeq, EventSeq)),
    places: &[usize],
) -> Result<Embedded, Unanswered> {
    let keys: Vec<String> = places.iter().filter_map(|place| missing.chunk_key(*place)).collect();
    let model = (&missing.embedding, model.0, revision.0);
    let told = serde_json::json!([missing.uid.0, model, missing.anew_at, keys]).to_string();
    let ask = EmbedAsk {
        model: missing.embedding.clone(),
        chunks: Chunks { base: name.to_owned(), keys },
        priority: UNASKED,
        wait: JOB_WAIT,
        request_id: Some(format!("vectors-{}", digest_of(told.as_bytes()).hex())),
    };
    service.embed(caller, ask).await
}

/// What an object says about a failure.
fn told(error: &Error) -> String {
    chain(error).chars().take(500).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_is_looked_at_when_it_changes_and_after_failures() {
        let (first, second) = ((EventSeq(1), EventSeq(1)), (EventSeq(1), EventSeq(2)));
        let now = Duration::from_secs(100);
        let mut base = Known::default();
        assert!(base.is_due(first, now));
        (base.seen, base.running) = (Some(first), true);
        assert!(!base.is_due(second, now));
        base.ended(false, Some(second), now);
        assert!(!base.is_due(first, now) && base.is_due(second, now));
        base.ended(true, Some(second), now);
        assert!(!base.is_due(second, now) && base.is_due(second, now + AGAIN.0) && base.is_due(first, now));
        (base.seen, base.running) = (Some(first), true);
        base.ended(true, None, now);
        assert!(!base.is_due(first, now) && base.is_due(second, now), "what others changed meanwhile was not seen");
        for _ in 0..50 {
            base.ended(true, Some(first), now);
        }
        assert!(base.is_due(first, now + AGAIN.1));
    }
}
