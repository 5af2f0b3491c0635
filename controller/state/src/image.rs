//! Converts the state to plain data and back. Indexes are rebuilt, and a loaded state must satisfy every invariant.

use std::sync::Arc;

use atlas_types::{
    Bucket, EndedImage, Envelope, EnvelopeImage, Inbox, InboxImage, Job, JobId, JobStatus, Journal, JournalImage,
    NodeImage, Object, ObjectKey, SinkImage, StateImage,
};

use crate::dedupe::Dedupe;
use crate::halves::both;
use crate::index::Index;
use crate::invariant::Violation;
use crate::jobs::Jobs;
use crate::map::Map;
use crate::node::NodeState;
use crate::state::State;

/// Why an image is not a state.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ImageError {
    /// Something is in it twice.
    #[error("the image contains {what} twice")]
    Twice {
        /// What.
        what: &'static str,
    },
    /// A lease names a node that is not in it.
    #[error("the image has a lease on a node that it does not have")]
    UnknownNode,
    /// It breaks an invariant.
    #[error("the image is not a state that commands lead to")]
    Violation(#[source] Violation),
}

impl State {
    /// Everything that cannot be derived, in order.
    pub fn to_image(&self) -> StateImage {
        let node =
            |node: &Arc<NodeState>| NodeImage { node: Arc::clone(&node.node), inventory_since: node.inventory_since };
        StateImage {
            cluster_id: self.cluster_id,
            level: self.level,
            seq: self.seq,
            chain: self.chain,
            at: self.at,
            clock: self.clock,
            grant_seq: self.grant_seq,
            event_seq: self.event_seq,
            queue_seq: self.queue_seq,
            member_last: self.member_last,
            config: (*self.config).clone(),
            agents: self.agents.values().flat_map(|agents| agents.values().cloned()).collect(),
            nodes: self.nodes.values().map(node).collect(),
            jobs: self.jobs.iter_by_id().cloned().collect(),
            ended: self.ended.iter().map(|(event, job)| EndedImage { event: *event, job: *job }).collect(),
            requests: self.dedupe.to_image(),
            sinks: self.sinks.iter().map(|(member, event)| SinkImage { member: *member, event: *event }).collect(),
            join_tokens: self.join_tokens.values().copied().collect(),
            objects: self.all_objects().cloned().collect(),
            runs: self.runs.values().cloned().collect(),
            journals: self.journals.iter().map(|(job, journal)| journal_image(*job, journal)).collect(),
            envelopes: self.envelopes.iter().map(|(job, envelope)| envelope_image(*job, envelope)).collect(),
            inboxes: self.inboxes.iter().map(|(job, inbox)| inbox_image(*job, inbox)).collect(),
            questions: self.questions.values().cloned().collect(),
            progress: self.progress,
            progress_of: self.progress_of.iter().map(|(namespace, progress)| (namespace.clone(), *progress)).collect(),
            buckets: self.buckets.iter().map(|(key, full)| Bucket { key: key.clone(), full: *full }).collect(),
        }
    }

    /// The state that an image shows.
    pub fn from_image(image: StateImage) -> Result<Self, ImageError> {
        let mut state = Self::new(image.cluster_id);
        state.level = image.level;
        state.seq = image.seq;
        state.chain = image.chain;
        state.at = image.at;
        state.clock = image.clock;
        state.grant_seq = image.grant_seq;
        state.event_seq = image.event_seq;
        state.queue_seq = image.queue_seq;
        state.member_last = image.member_last;
        state.config = Arc::new(image.config);
        for agent in image.agents {
            let agents = state.agents.entry(agent.namespace.clone()).or_default();
            once("an agent version", agents.insert((agent.name.clone(), agent.version), agent).is_none())?;
        }
        for NodeImage { node, inventory_since } in image.nodes {
            let id = node.id.clone();
            once("a node", state.nodes.insert(id, Arc::new(NodeState::new(node, inventory_since))).is_none())?;
        }
        for EndedImage { event, job } in image.ended {
            once("an ending", state.ended.insert(event, job).is_none())?;
        }
        let requests = image.requests.len() as u64;
        state.dedupe = Dedupe::from_image(image.requests);
        once("a request", state.dedupe.len() == requests)?;
        for SinkImage { member, event } in image.sinks {
            once("a member", state.sinks.insert(member, event).is_none())?;
        }
        for token in image.join_tokens {
            once("a join token", state.join_tokens.insert(token.hash, token).is_none())?;
        }
        for JournalImage { job, journal } in image.journals {
            once("a journal", state.journals.insert(job, journal).is_none())?;
        }
        for EnvelopeImage { job, envelope } in image.envelopes {
            once("an envelope", state.envelopes.insert(job, envelope).is_none())?;
        }
        for InboxImage { job, inbox } in image.inboxes {
            once("an inbox", state.inboxes.insert(job, inbox).is_none())?;
        }
        for question in image.questions {
            once("a question", state.questions.insert(question.id, question).is_none())?;
        }
        for object in image.objects {
            let ObjectKey { namespace, kind, name } = object.key.clone();
            let objects = state.objects.entry(namespace).or_default().entry(kind).or_default();
            once("an object", objects.insert(name, object).is_none())?;
        }
        for run in image.runs {
            once("a run", state.runs.insert(run.id, run).is_none())?;
        }
        state.progress = image.progress;
        for (namespace, progress) in image.progress_of {
            once("a progress", state.progress_of.insert(namespace, progress).is_none())?;
        }
        for Bucket { key, full } in image.buckets {
            once("a bucket", state.buckets.insert(key, full).is_none())?;
        }
        state.rebuild(image.jobs)?;
        state.check_loaded().map_err(ImageError::Violation)?;
        Ok(state)
    }

    /// Takes the jobs in and rebuilds what is derived from agents, nodes, jobs and join tokens. Tables and indexes of
    /// many jobs are built beside each other.
    fn rebuild(&mut self, mut jobs: Vec<Arc<Job>>) -> Result<(), ImageError> {
        let ids: Vec<_> = jobs.iter().map(|job| (job.id, job.queue_seq)).collect();
        // In the order of the tables, because neighbours are found fast.
        jobs.sort_unstable_by_key(|job| job.queue_seq);
        let (tables, index) =
            both(is_many(jobs.len() as u64), || Jobs::of(&ids, &jobs), || self.job_index(jobs.iter()));
        self.jobs = tables.ok_or(ImageError::Twice { what: "a job" })?;
        let mut nodes: Map<_, _> = self.nodes.clone();
        for (job, lease) in jobs.iter().filter_map(|job| Some((job, job.lease.as_ref()?))) {
            let node = nodes.get_mut(&lease.node).ok_or(ImageError::UnknownNode)?;
            Arc::make_mut(node).take(lease, job.depth());
        }
        for job in index.spawns.waiting().filter_map(|id| self.jobs.get(id)) {
            let Some(lease) = &job.lease else { continue };
            let Some(node) = nodes.get_mut(&lease.node) else { continue };
            Arc::make_mut(node).lend(lease.allocation.place, job.depth(), true);
        }
        let owing: Vec<_> =
            nodes.iter().filter(|(_, node)| node.free.places_owed() != [0; 2]).map(|(id, _)| id.clone()).collect();
        for id in owing {
            nodes.get_mut(&id).map(Arc::make_mut).into_iter().for_each(NodeState::admit_owed);
        }
        self.nodes = nodes;
        self.index = self.whole_index(index);
        Ok(())
    }

    /// The indexes as agents, nodes, jobs, join tokens and objects alone give them.
    pub(crate) fn rebuilt_index(&self) -> Index {
        self.whole_index(self.job_index(self.jobs.iter()))
    }

    /// What objects, progress and jobs add to the indexes. The jobs come by place.
    fn job_index<'j>(&self, jobs: impl Iterator<Item = &'j Arc<Job>>) -> Index {
        let mut index = Index::default();
        // Before the jobs, whose order depends on them.
        self.all_objects().for_each(|object| index.object(None, Some(object)));
        for (namespace, spec) in index.objects.clone().all_limits() {
            index.waiting.reorder(namespace, spec.aging(), |_| None);
        }
        self.progress_of.iter().for_each(|(namespace, progress)| index.progress(namespace, Some(*progress)));
        jobs.for_each(|job| index.add(None, Some(job)));
        index
    }

    /// Adds the rest.
    fn whole_index(&self, mut index: Index) -> Index {
        index.share_all();
        for parent in index.spawns.clone().waiting() {
            if let Some(parent) = self.jobs.get(parent).filter(|parent| parent.status == JobStatus::Running) {
                index.lend(parent, true);
            }
        }
        for node in self.nodes.values() {
            index.node(None, Some(node));
        }
        for agent in self.agents.values().flat_map(|agents| agents.values()) {
            index.agent(None, Some(agent));
        }
        for token in self.join_tokens.values() {
            index.join_token(None, Some(token));
        }
        for journal in self.journals.values() {
            index.journal(None, Some(journal));
        }
        for inbox in self.inboxes.values() {
            index.inbox(None, Some(inbox));
        }
        for question in self.questions.values() {
            index.question(None, Some(question));
        }
        self.runs.values().for_each(|run| index.run(None, Some(run)));
        self.buckets.iter().for_each(|(key, full)| index.bucket(key, None, Some(*full)));
        index
    }

    /// All objects by namespace, kind and name.
    pub(crate) fn all_objects(&self) -> impl Iterator<Item = &Arc<Object>> {
        self.objects.values().flat_map(|kinds| kinds.values()).flat_map(|objects| objects.values())
    }
}

/// Whether so many jobs are worth a second thread.
pub(crate) fn is_many(jobs: u64) -> bool {
    jobs >= 10_000
}

fn journal_image(job: JobId, journal: &Arc<Journal>) -> JournalImage {
    JournalImage { job, journal: Arc::clone(journal) }
}

fn envelope_image(job: JobId, envelope: &Arc<Envelope>) -> EnvelopeImage {
    EnvelopeImage { job, envelope: Arc::clone(envelope) }
}

fn inbox_image(job: JobId, inbox: &Arc<Inbox>) -> InboxImage {
    InboxImage { job, inbox: Arc::clone(inbox) }
}

fn once(what: &'static str, is_new: bool) -> Result<(), ImageError> {
    if is_new { Ok(()) } else { Err(ImageError::Twice { what }) }
}
