//! References to artifacts that this controller may lack.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use atlas_types::{Digest, Event, EventRecord, Job, Payload, PayloadBody};

/// The most references that wait for a check. If there are more, a full pass is made.
const WANTED_MAX: usize = 65_536;

/// Artifacts that may be missing here.
#[derive(Default)]
pub struct WantedArtifacts {
    digests: Mutex<BTreeSet<Digest>>,
    /// True if a full pass is needed, because references were missed.
    pub(crate) all: AtomicBool,
    /// All artifacts that the history refers to up to this event are on this controller.
    pub(crate) history: AtomicU64,
}

impl WantedArtifacts {
    /// Records the artifacts that an entry refers to.
    pub fn note(&self, events: &[EventRecord]) {
        for event in events {
            match &event.event {
                Event::Job { job, .. } => job_artifacts(job).for_each(|digest| self.want(digest)),
                Event::Agent { agent } => {
                    self.want(agent.digest);
                    artifact_of(&agent.contract).into_iter().for_each(|digest| self.want(digest));
                }
                Event::StepsRecorded { steps, .. } => {
                    steps.iter().filter_map(|step| artifact_of(&step.outcome)).for_each(|digest| self.want(digest));
                }
                Event::StepsFolded { artifact, .. } => {
                    artifact_of(artifact).into_iter().for_each(|digest| self.want(digest));
                }
                Event::Run { run, .. } => {
                    run.payloads().filter_map(artifact_of).for_each(|digest| self.want(digest));
                }
                _ => {}
            }
        }
    }

    /// Records that references were missed.
    pub fn note_all(&self) {
        self.all.store(true, Ordering::Relaxed);
    }

    fn want(&self, digest: Digest) {
        let mut digests = self.digests();
        if digests.len() < WANTED_MAX {
            digests.insert(digest);
        } else {
            self.note_all();
        }
    }

    /// Those that were noted since the last time.
    pub(crate) fn take(&self) -> BTreeSet<Digest> {
        std::mem::take(&mut *self.digests())
    }

    fn digests(&self) -> MutexGuard<'_, BTreeSet<Digest>> {
        self.digests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The artifacts of a job.
fn job_artifacts(job: &Job) -> impl Iterator<Item = Digest> + '_ {
    let own =
        [Some(&job.input), job.output.as_ref(), job.stream.as_deref(), job.context.as_deref()].into_iter().flatten();
    own.chain(job.journal.iter().flat_map(|journal| journal.payloads())).filter_map(artifact_of)
}

fn artifact_of(payload: &Payload) -> Option<Digest> {
    match payload.body {
        PayloadBody::Artifact { digest, .. } => Some(digest),
        PayloadBody::Inline(_) => None,
    }
}
