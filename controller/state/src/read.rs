//! Queries on the state. Each is a lookup or a walk along an index.

mod nodes;
mod routing;

use std::ops::Bound;
use std::sync::Arc;

use atlas_allocation::ConcurrencyPermits;
use atlas_objects::{NamespaceSpec, View};
use atlas_types::{
    AgentName, AgentVersion, ClusterConfig, ClusterTime, Digest, Envelope, EventSeq, FencingToken, Inbox, Job, JobId,
    JobStatus, Journal, Lease, Level, MemberId, Namespace, NodeId, Object, ObjectKey, ObjectKind, ObjectName, Origin,
    Outcome, Question, QuestionId, Rejection, RequiredAgent, Run, RunId, RunStatus, Seq, Timestamp, Version, level,
    requirement::Requirement,
};

use crate::index::{Class, HeldBack, Timer};
use crate::state::State;

/// The counters and clocks.
impl State {
    /// The cluster that the state belongs to.
    pub fn cluster_id(&self) -> u128 {
        self.cluster_id
    }

    /// Entries applied.
    pub fn seq(&self) -> Seq {
        self.seq
    }

    /// The chain over all entries and outcomes.
    pub fn chain(&self) -> [u8; 32] {
        self.chain
    }

    /// Wall clock of the last entry.
    pub fn at(&self) -> Timestamp {
        self.at
    }

    /// Cluster clock of the last entry.
    pub fn clock(&self) -> ClusterTime {
        self.clock
    }

    /// The last fencing token given out.
    pub fn grant_seq(&self) -> FencingToken {
        self.grant_seq
    }

    /// The last event given out.
    pub fn event_seq(&self) -> EventSeq {
        self.event_seq
    }

    /// The active feature level.
    pub fn level(&self) -> Level {
        self.level
    }

    /// How many names of requests clients were promised to have remembered and this replica forgot before their time, because
    /// more came than it may keep. Counted from its start or its last snapshot.
    pub fn requests_forgotten_early(&self) -> u64 {
        self.dedupe.forgotten_early()
    }

    /// Limits.
    pub fn config(&self) -> &ClusterConfig {
        &self.config
    }

    /// Waiting jobs, for any reason.
    pub fn pending(&self) -> u64 {
        self.index.pending
    }

    /// Waiting jobs that cannot be granted yet.
    pub fn held_back(&self) -> HeldBack {
        self.index.held
    }

    /// Jobs that run.
    pub fn running(&self) -> u64 {
        self.index.running
    }

    /// Jobs that have not ended.
    pub fn active(&self) -> u64 {
        self.index.pending + self.index.running
    }

    /// Payload bytes in the state, objects included; from level 5 on with those of labels and of other texts that clients give.
    pub fn inline_bytes(&self) -> u64 {
        let texts = if self.level >= level::COUNTED_TEXTS { self.index.text_bytes } else { 0 };
        self.index.job_bytes
            + self.index.agent_bytes
            + self.index.inbox_bytes
            + texts
            + self.index.objects.bytes
            + self.index.chains.bytes
            + self.index.questions.bytes
    }

    /// Bytes of the journals of jobs that have not ended.
    pub fn journal_bytes(&self) -> u64 {
        self.index.journal_bytes
    }

    /// Registered agent versions of all namespaces.
    pub fn agents_total(&self) -> u64 {
        self.index.agents
    }

    /// Remembered requests.
    pub fn requests_remembered(&self) -> u64 {
        self.dedupe.len()
    }

    /// What a request that was accepted before is answered, or that its name is taken by another; none if it is not remembered.
    ///
    /// [`State::apply`] looks here first. A door asks as well, before it judges a repeat by what has changed since.
    pub fn remembered(&self, origin: &Origin) -> Option<Result<Outcome, Rejection>> {
        self.dedupe.answer(origin)
    }

    /// What a member's history has confirmed.
    pub fn sink(&self, member: MemberId) -> EventSeq {
        self.sinks.get(&member).copied().unwrap_or_default()
    }

    /// What each member's history has confirmed.
    pub fn sinks(&self) -> impl Iterator<Item = (MemberId, EventSeq)> + '_ {
        self.sinks.iter().map(|(member, event)| (*member, *event))
    }
}

/// Artifacts and history.
impl State {
    /// The artifacts that jobs and agents refer to, by digest.
    pub fn artifacts(&self) -> impl Iterator<Item = Digest> + '_ {
        self.index.artifacts.iter()
    }

    /// Whether a job or an agent refers to an artifact.
    pub fn refers_to(&self, digest: &Digest) -> bool {
        self.index.artifacts.contains(digest)
    }

    /// Jobs that ended up to this event may have left the state: a reader must use a history that has reached it.
    pub fn pruned_through(&self) -> EventSeq {
        let before = self.ended.get_min().map_or(self.event_seq, |(event, _)| EventSeq(event.0 - 1));
        // Nothing leaves that no history has confirmed.
        before.min(self.sinks.values().copied().max().unwrap_or_default())
    }
}

/// Jobs and leases.
impl State {
    /// A job by its id.
    pub fn job(&self, id: JobId) -> Option<&Arc<Job>> {
        self.jobs.get(id)
    }

    /// The job at a place in the queue.
    pub fn job_at(&self, queue_seq: u64) -> Option<&Arc<Job>> {
        self.jobs.at(queue_seq)
    }

    /// How many jobs there are, ended ones included.
    pub fn jobs_total(&self) -> u64 {
        self.jobs.len()
    }

    /// The jobs that have not ended, of all namespaces, the oldest first. Looks at every job.
    pub fn live_jobs(&self) -> impl Iterator<Item = &Arc<Job>> {
        self.jobs.iter().filter(|job| !job.status.is_terminal())
    }

    /// Jobs of a namespace, the newest first, those of one status if one is given. To go on after a page, give the last
    /// job's `queue_seq` as `before`.
    pub fn jobs<'a>(
        &'a self,
        namespace: &Namespace,
        status: Option<JobStatus>,
        before: Option<u64>,
    ) -> Box<dyn Iterator<Item = &'a Arc<Job>> + 'a> {
        let before = before.unwrap_or(u64::MAX);
        let job = |place| self.jobs.at(place);
        let listing = self.index.totals.get(namespace).map(|total| &total.listing).into_iter();
        match status {
            Some(status) => Box::new(listing.flat_map(move |jobs| jobs.newest_with(status, before)).filter_map(job)),
            None => Box::new(listing.flat_map(move |jobs| jobs.newest(before)).filter_map(job)),
        }
    }

    /// Jobs of a namespace whose printed id starts with `prefix` (`job-4f3a`, or the digits alone).
    pub fn jobs_by_prefix<'a>(
        &'a self,
        namespace: &'a Namespace,
        prefix: &str,
    ) -> impl Iterator<Item = &'a Arc<Job>> + 'a {
        let range = id_range(prefix);
        let jobs = range.into_iter().flat_map(|(first, last)| self.jobs.range(first..=last));
        jobs.filter(move |job| job.namespace == *namespace)
    }

    /// Ended jobs by the event that ended them, the oldest first.
    pub fn ended(&self) -> impl ExactSizeIterator<Item = (EventSeq, JobId)> + DoubleEndedIterator + '_ {
        self.ended.iter().map(|(event, job)| (*event, *job))
    }

    /// The jobs that a job spawned, the oldest first, with those that have ended and not left the state yet.
    pub fn children(&self, parent: JobId) -> impl Iterator<Item = &Arc<Job>> {
        self.index.spawns.children(parent).filter_map(|child| self.jobs.get(child))
    }

    /// How many unfinished children a job waits for. While there are any, it lends its place.
    pub fn children_awaited(&self, parent: JobId) -> u32 {
        self.index.spawns.awaited(parent)
    }

    /// Whether a job waits for a child or for a retry of it, whose first job is `first`; none if it has no such child.
    pub(crate) fn awaits_family(&self, parent: JobId, first: JobId) -> Option<bool> {
        let awaits = |job: &Job| job.awaited_by() == Some(parent);
        let Some(mut last) = self.jobs.get(first) else {
            // Pruned when it had failed.
            let mut retries = self.children(parent).filter(|job| job.original == Some(first)).peekable();
            retries.peek()?;
            return Some(retries.any(|job| awaits(job)));
        };
        last.spawned.filter(|spawned| spawned.by == parent)?;
        while let Some(next) = last.successor.and_then(|next| self.jobs.get(next)) {
            last = next;
        }
        Some(awaits(last))
    }

    /// The journal of a job that has not ended, or the one with which it ended; none if it recorded nothing.
    pub fn journal(&self, job: JobId) -> Option<&Arc<Journal>> {
        self.journals.get(&job).or_else(|| self.jobs.get(job)?.journal.as_ref())
    }

    /// The job whose budget pays for the model calls of a job: itself, or the nearest above it that has one.
    pub fn payer(&self, job: JobId) -> Option<&Arc<Job>> {
        // The steps of a run that carries a job are jobs of that one.
        let carried = |job: &Job| {
            let run = job.step?.run;
            self.index.runs.carried_by(run).or_else(|| self.runs.get(&run)?.job)
        };
        let above = |job: &&Arc<Job>| self.jobs.get(job.spawned.map(|spawned| spawned.by).or_else(|| carried(job))?);
        std::iter::successors(self.jobs.get(job), above).find(|job| job.budget_nanodollars.is_some())
    }

    /// What was drawn from the budget of a job that has not ended; none before the first call.
    pub fn envelope(&self, job: JobId) -> Option<&Arc<Envelope>> {
        self.envelopes.get(&job)
    }

    /// The messages of a job that has not ended; none if it never had one.
    pub fn inbox(&self, job: JobId) -> Option<&Arc<Inbox>> {
        self.inboxes.get(&job)
    }

    /// A question of a job that is in the state.
    pub fn question(&self, id: QuestionId) -> Option<&Arc<Question>> {
        self.questions.get(&id)
    }

    /// The questions of a job, in the order in which they were asked.
    pub fn questions_of(&self, job: JobId) -> impl Iterator<Item = &Arc<Question>> {
        let of = self
            .index
            .questions
            .of
            .range((job, EventSeq(0), QuestionId(0))..=(job, EventSeq(u64::MAX), QuestionId(u64::MAX)));
        of.filter_map(|(_, _, id)| self.questions.get(id))
    }

    /// The questions of a namespace after event `after`, in the order in which they were asked; only open ones if `open` is set.
    pub fn questions<'a>(
        &'a self,
        namespace: &Namespace,
        open: bool,
        after: EventSeq,
    ) -> impl Iterator<Item = &'a Arc<Question>> + use<'a> {
        let index = &self.index.questions;
        let places = if open { &index.open } else { &index.all };
        let end = |seq| (namespace.clone(), seq, QuestionId(u64::MAX));
        let range = (Bound::Excluded(end(after)), Bound::Included(end(EventSeq(u64::MAX))));
        places.range(range).filter_map(|(_, _, id)| self.questions.get(id))
    }

    /// All questions of jobs in the state.
    pub fn all_questions(&self) -> impl Iterator<Item = &Arc<Question>> {
        self.questions.values()
    }

    /// How many questions are open, in all namespaces.
    pub fn questions_open(&self) -> u64 {
        self.index.questions.open.len() as u64
    }

    /// The job that a run carries.
    pub fn carried_by(&self, run: RunId) -> Option<&Arc<Job>> {
        self.jobs.get(self.index.runs.carried_by(run)?)
    }

    /// The jobs that wait for a run to carry them, in the order of the queue.
    pub fn waiting_for_runs(&self) -> impl Iterator<Item = &Arc<Job>> {
        self.index.runs.waiting().filter_map(|job| self.jobs.get(job))
    }

    /// The live lease of a job.
    pub fn lease(&self, job: JobId) -> Option<&Arc<Lease>> {
        self.jobs.get(job)?.lease.as_ref()
    }

    /// The live leases of a node, the oldest first.
    pub fn leases_of(&self, node: &NodeId) -> impl Iterator<Item = &Arc<Lease>> {
        let leases = self.nodes.get(node).into_iter().flat_map(|node| node.leases());
        leases.filter_map(|(_, job)| self.lease(job))
    }
}

/// Runs.
impl State {
    /// A run.
    pub fn run(&self, id: RunId) -> Option<&Arc<Run>> {
        self.runs.get(&id)
    }

    /// The runs of a namespace, the newest first, those of one status if one is given.
    pub fn runs<'a>(
        &'a self,
        namespace: &Namespace,
        status: Option<RunStatus>,
    ) -> impl Iterator<Item = &'a Arc<Run>> + use<'a> {
        let runs = self.index.chains.newest(namespace).filter_map(|id| self.runs.get(&id));
        runs.filter(move |run| status.is_none_or(|status| run.status == status))
    }

    /// The runs that can go on: with their first step, or with the one after a step that has ended.
    pub fn runs_ready(&self) -> impl Iterator<Item = &Arc<Run>> {
        self.index.chains.ready().filter_map(|id| self.runs.get(&id))
    }

    /// Whether the bounds of the state have room for so many jobs of steps, and for so many bytes.
    pub fn steps_admitted(&self, bytes: u64, jobs: u64) -> bool {
        self.jobs_total() + jobs <= self.config.jobs_total_max
            && self.inline_bytes() + bytes <= self.config.inline_bytes_max
    }

    /// How many runs have not ended.
    pub fn runs_active(&self) -> u64 {
        self.index.chains.active
    }

    /// The job of a step that has not ended, by the first job of the step.
    pub fn step_job(&self, first: JobId) -> Option<&Arc<Job>> {
        self.jobs.get(self.index.chains.job_of(first)?)
    }
}

/// Objects.
impl State {
    /// An object.
    pub fn object(&self, key: &ObjectKey) -> Option<&Arc<Object>> {
        self.objects.get(&key.namespace)?.get(&key.kind)?.get(&key.name)
    }

    /// The objects of a kind in a namespace by name, those after `after` if it is given.
    pub fn objects<'a>(
        &'a self,
        namespace: &Namespace,
        kind: &ObjectKind,
        after: Option<&ObjectName>,
    ) -> impl Iterator<Item = &'a Arc<Object>> + use<'a> {
        let objects = self.objects.get(namespace).and_then(|kinds| kinds.get(kind));
        let after = after.map_or(Bound::Unbounded, |name| Bound::Excluded(name.clone()));
        objects.into_iter().flat_map(move |objects| objects.range((after.clone(), Bound::Unbounded)).map(|(_, o)| o))
    }

    /// Whether there are policies, in whatever namespaces they count.
    pub fn has_policies(&self) -> bool {
        let kinds = self.objects.get(&Namespace::default_namespace());
        kinds.is_some_and(|kinds| kinds.iter().any(|(kind, objects)| kind.as_str() == "policy" && !objects.is_empty()))
    }

    /// The objects of a kind in all namespaces, the oldest first.
    pub fn objects_of_kind<'a>(&'a self, kind: &ObjectKind) -> impl Iterator<Item = &'a Arc<Object>> + use<'a> {
        self.index.objects.keys(kind).filter_map(|key| self.object(key))
    }

    /// How many objects there are, of all kinds.
    pub fn objects_total(&self) -> u64 {
        self.index.objects.count
    }

    /// How many agent versions a namespace has.
    pub fn agents_of(&self, namespace: &Namespace) -> u64 {
        self.agents.get(namespace).map_or(0, |agents| agents.len() as u64)
    }

    /// The waiting jobs of a namespace.
    pub fn pending_of(&self, namespace: &Namespace) -> u64 {
        self.index.totals.get(namespace).map_or(0, |total| total.pending)
    }

    /// The bytes of the inputs of a namespace's jobs that have not ended.
    pub fn input_bytes_of(&self, namespace: &Namespace) -> u64 {
        self.index.totals.get(namespace).map_or(0, |total| total.input_bytes)
    }

    /// The limits that an object sets for a namespace; none if it has no object.
    pub fn limits_of(&self, namespace: &Namespace) -> Option<&NamespaceSpec> {
        self.index.objects.limits(namespace)
    }

    /// The namespaces that have an object, with the limits that it sets.
    pub fn limited_namespaces(&self) -> impl Iterator<Item = (&Namespace, &NamespaceSpec)> {
        self.index.objects.all_limits()
    }
}

impl View for State {
    fn content_of(&self, namespace: &Namespace) -> Option<&'static str> {
        let has = |status| self.jobs(namespace, Some(status), None).next().is_some();
        if has(JobStatus::Pending) || has(JobStatus::Running) {
            // Ended jobs leave the state on their own.
            Some("jobs")
        } else if self.agents.contains_key(namespace) {
            Some("agent versions")
        } else {
            self.objects.contains_key(namespace).then_some("objects")
        }
    }

    fn spec_of(&self, key: &ObjectKey) -> Option<&[u8]> {
        self.object(key).map(|object| &*object.spec)
    }

    fn is_referenced(&self, key: &ObjectKey) -> bool {
        self.index.objects.is_referenced(key)
    }
}

/// Agents.
impl State {
    /// An agent version.
    pub fn agent(&self, namespace: &Namespace, name: &AgentName, version: Version) -> Option<&Arc<AgentVersion>> {
        self.agents.get(namespace)?.get(&(name.clone(), version))
    }

    /// The agent versions of a namespace, by name and version.
    pub fn agents<'a>(&'a self, namespace: &Namespace) -> impl Iterator<Item = &'a Arc<AgentVersion>> + 'a {
        self.agents.get(namespace).into_iter().flat_map(|agents| agents.iter().map(|(_, agent)| agent))
    }

    /// The versions of one agent, the lowest first, retired ones included.
    pub fn agent_versions<'a>(
        &'a self,
        namespace: &Namespace,
        name: &AgentName,
    ) -> impl DoubleEndedIterator<Item = &'a Arc<AgentVersion>> + 'a {
        let key = |number| (name.clone(), Version { major: number, minor: number, patch: number });
        let versions = key(0)..=key(u64::MAX);
        let agents = self.agents.get(namespace).into_iter();
        agents.flat_map(move |agents| agents.range(versions.clone()).map(|(_, agent)| agent))
    }

    /// The highest version of an agent that is not retired.
    pub fn agent_latest(&self, namespace: &Namespace, name: &AgentName) -> Option<&Arc<AgentVersion>> {
        self.agent_versions(namespace, name).rev().find(|agent| !agent.retired)
    }

    /// All agent versions.
    pub fn agents_everywhere(&self) -> impl Iterator<Item = &Arc<AgentVersion>> {
        self.agents.values().flat_map(|agents| agents.values())
    }

    /// How many jobs of an agent version have not ended.
    pub fn active_of(&self, namespace: &Namespace, name: &AgentName, version: Version) -> u64 {
        let total = self.index.totals.get(namespace);
        total.and_then(|total| total.active_of.get(&(name.clone(), version))).copied().unwrap_or(0)
    }

    /// The required agents whose highest version in service, the one that a call by name gets, is not as required: the name of
    /// each, and with it the range where only that is wrong.
    pub fn missing_agents(&self, namespace: &Namespace, requires: &[RequiredAgent]) -> Vec<String> {
        let missing = |required: &RequiredAgent| {
            let name = AgentName::new(&required.name).ok();
            let Some(found) = name.and_then(|name| self.agent_latest(namespace, &name)) else {
                return Some(required.name.clone());
            };
            // Requirements are checked at registration, so one that cannot be read is of another release.
            let range = Requirement::parse(&required.version).unwrap_or(Requirement::Any);
            (!range.matches(&found.version)).then(|| format!("{} {range}", required.name))
        };
        requires.iter().filter_map(missing).collect()
    }

    /// The running jobs of an agent, without those that runs carry; none if there are none.
    pub fn running_of(&self, namespace: &Namespace, name: &AgentName) -> Option<&ConcurrencyPermits> {
        self.index.totals.get(namespace)?.running_of.get(name)
    }
}

/// Limits of namespaces on running jobs.
impl State {
    /// The running jobs of a namespace, without those that runs carry; none if there are none.
    pub fn running_in(&self, namespace: &Namespace) -> Option<&ConcurrencyPermits> {
        let running = self.index.totals.get(namespace).map(|total| &total.running);
        running.filter(|running| **running != ConcurrencyPermits::default())
    }
}

/// The queue and the timers.
impl State {
    /// Join tokens that have expired or are used up at `now`.
    pub(crate) fn expired_tokens(&self, now: ClusterTime) -> impl Iterator<Item = Digest> + '_ {
        self.join_tokens.values().filter(move |token| token.expires <= now).map(|token| token.hash)
    }

    /// Each class of waiting jobs with its first job, in the order of the queue.
    pub fn class_heads(&self) -> impl Iterator<Item = (&Arc<Class>, &Arc<Job>)> {
        self.index.waiting.heads().filter_map(|(class, place)| Some((class, self.jobs.at(place)?)))
    }

    /// The waiting jobs of a class in their order.
    pub fn waiting_in(&self, class: &Class) -> impl Iterator<Item = &Arc<Job>> {
        self.index.waiting.of(class).filter_map(|place| self.jobs.at(place))
    }

    /// How many jobs of a class wait.
    pub fn waiting_count(&self, class: &Class) -> usize {
        self.index.waiting.len_of(class)
    }

    /// What is due at or before `now`, the first due first.
    pub fn due(&self, now: ClusterTime) -> impl Iterator<Item = &Timer> {
        self.index.timers.due(now)
    }

    /// What is kept since `time` or longer, the oldest first: things that go after a time which the leader's options say.
    pub fn kept_since(&self, time: ClusterTime) -> impl Iterator<Item = &Timer> {
        self.index.timers.kept_since(time)
    }

    /// Triggers by the time at which they fire next, the first first.
    pub fn next_fires(&self) -> impl Iterator<Item = &(Timestamp, ObjectKey)> {
        self.index.timers.fires()
    }

    /// Triggers whose next time is not known.
    pub fn unplanned_triggers(&self) -> impl Iterator<Item = &ObjectKey> {
        self.index.timers.unplanned()
    }

    /// When something is due next.
    pub fn next_due(&self) -> Option<ClusterTime> {
        self.index.timers.next()
    }
}

/// The ids whose 16 digits start with those of `prefix`; none if it is not the beginning of a job id.
fn id_range(prefix: &str) -> Option<(JobId, JobId)> {
    let digits = prefix.strip_prefix(JobId::PREFIX).unwrap_or(prefix);
    let lower = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    if digits.is_empty() || digits.len() > 16 || !digits.bytes().all(lower) {
        return None;
    }
    let free = 4 * (16 - digits.len() as u32);
    let first = u64::from_str_radix(digits, 16).ok()?.checked_shl(free)?;
    let rest = 1_u64.checked_shl(free).map_or(u64::MAX, |span| span - 1);
    Some((JobId(first), JobId(first | rest)))
}
