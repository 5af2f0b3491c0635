//! Changes of the state that commands share: the transitions of jobs and nodes.
//!
//! These functions run after the checks and never refuse. Indexes and events are kept in one place each.

use std::sync::Arc;

use atlas_objects::NamespaceSpec;
use atlas_types::{
    AgentVersion, Answered, AnsweredHow, ClusterTime, Digest, Event, EventRecord, Failure, FailureKind, Inbox, Job,
    JobChange, JobId, JobStatus, JoinToken, Journal, Lease, Namespace, NodeHealth, NodeId, Object, ObjectKey, Origin,
    Outcome, Question, QuestionEnd, QuestionId, Reason, Rejection, RunId, Timestamp, Usage, Wait, level,
};

mod approval;
mod budget;
mod retry;
mod run;

pub(crate) use self::retry::{again, begun_anew};

use crate::node::NodeState;
use crate::state::State;

/// One command at work.
pub(crate) struct Change<'a> {
    pub(crate) state: &'a mut State,
    pub(crate) origin: &'a Origin,
    pub(crate) at: Timestamp,
    pub(crate) clock: ClusterTime,
    pub(crate) events: &'a mut Vec<EventRecord>,
}

impl Change<'_> {
    /// The job of a client's command: one of another namespace does not exist for it.
    pub(crate) fn own_job(&self, id: JobId) -> Result<&Arc<Job>, Rejection> {
        let found = self.state.jobs.get(id).filter(|job| job.namespace == self.origin.namespace);
        found.ok_or(Rejection::UnknownJob { job: id })
    }

    /// The job of a duty's command.
    pub(crate) fn job(&self, id: JobId) -> Result<&Arc<Job>, Rejection> {
        self.state.jobs.get(id).ok_or(Rejection::UnknownJob { job: id })
    }

    pub(crate) fn node(&self, id: &NodeId) -> Result<&Arc<NodeState>, Rejection> {
        self.state.nodes.get(id).ok_or_else(|| Rejection::UnknownNode { node: id.clone() })
    }

    /// Stores the journal of a job that has not ended.
    pub(crate) fn put_journal(&mut self, job: JobId, journal: &Arc<Journal>) {
        let old = self.state.journals.insert(job, Arc::clone(journal));
        self.state.index.journal(old.as_deref(), Some(journal));
    }

    /// Takes the journal of a job out of the table, for the job that ends.
    fn take_journal(&mut self, job: JobId) -> Option<Arc<Journal>> {
        let journal = self.state.journals.remove(&job)?;
        self.state.index.journal(Some(&journal), None);
        Some(journal)
    }

    /// Stores the inbox of a job that has not ended.
    pub(crate) fn put_inbox(&mut self, job: JobId, inbox: &Arc<Inbox>) {
        let old = self.state.inboxes.insert(job, Arc::clone(inbox));
        self.state.index.inbox(old.as_deref(), Some(inbox));
    }

    /// Drops the inbox of a job that ends.
    fn drop_inbox(&mut self, job: JobId) {
        let old = self.state.inboxes.remove(&job);
        self.state.index.inbox(old.as_deref(), None);
    }

    /// Stores a question, or drops it.
    pub(crate) fn set_question(&mut self, id: QuestionId, question: Option<Arc<Question>>) {
        let new = question.clone();
        let old = match question {
            Some(question) => self.state.questions.insert(id, question),
            None => self.state.questions.remove(&id),
        };
        self.state.index.question(old.as_deref(), new.as_deref());
    }

    /// Ends an open question, and wakes its job if it is parked and waits for that. The end of an approval decides about its job.
    pub(crate) fn end_question(&mut self, question: &Question, end: QuestionEnd) {
        let question = Arc::new(Question { end: Some(end), ended_at: self.at, ..question.clone() });
        self.set_question(question.id, Some(Arc::clone(&question)));
        let wait = Wait::Question { id: question.id };
        let job = self.state.jobs.get(question.job).filter(|job| waits_for(job, wait)).map(|job| (**job).clone());
        self.emit(Event::QuestionEnded { question: Arc::clone(&question) });
        if let Some(job) = job {
            self.wake(job);
        }
        self.conclude(&question);
    }

    /// Keeps with a job that ends how its questions ended: they leave the state with it.
    fn note_answers(&self, job: &mut Job) {
        if self.state.level < level::EVIDENCE {
            return;
        }
        let answered = |question: &Arc<Question>| {
            let (by, how) = match &question.end {
                Some(QuestionEnd::Answered { by, .. }) => (Some(by.clone()), AnsweredHow::Answered),
                Some(QuestionEnd::Defaulted) => (None, AnsweredHow::Defaulted),
                Some(QuestionEnd::Expired) => (None, AnsweredHow::Expired),
                // It is open, and ends with the job.
                Some(QuestionEnd::Cancelled) | None => (None, AnsweredHow::Cancelled),
            };
            let at = if question.is_open() { self.at } else { question.ended_at };
            Answered { question: question.id, step: question.step, by, how, at }
        };
        let answers: Vec<Answered> = self.state.questions_of(job.id).map(answered).collect();
        if !answers.is_empty() {
            Arc::make_mut(job.evidence.get_or_insert_default()).answers = answers;
        }
    }

    /// Ends the open questions of a job that has ended.
    fn cancel_questions(&mut self, job: JobId) {
        let open: Vec<_> = self.state.questions_of(job).filter(|question| question.is_open()).cloned().collect();
        for question in open {
            self.end_question(&question, QuestionEnd::Cancelled);
        }
    }

    /// Stores an object and writes its event.
    pub(crate) fn put_object(&mut self, object: Object) {
        let object = Arc::new(object);
        self.store_object(&object);
        self.emit(Event::ObjectPut { object });
    }

    /// Stores an object without an event.
    pub(crate) fn store_object(&mut self, object: &Arc<Object>) {
        let ObjectKey { namespace, kind, name } = object.key.clone();
        let kinds = self.state.objects.entry(namespace).or_default();
        let old = kinds.entry(kind).or_default().insert(name, Arc::clone(object));
        self.state.index.object(old.as_deref(), Some(object));
        self.reorder(&object.key);
    }

    /// Deletes an object and writes its event.
    pub(crate) fn remove_object(&mut self, key: &ObjectKey) {
        let Some(kinds) = self.state.objects.get_mut(&key.namespace) else { return };
        let Some(objects) = kinds.get_mut(&key.kind) else { return };
        let Some(object) = objects.remove(&key.name) else { return };
        if objects.is_empty() {
            kinds.remove(&key.kind);
        }
        if kinds.is_empty() {
            self.state.objects.remove(&key.namespace);
        }
        self.state.index.object(Some(&object), None);
        self.reorder(&object.key);
        self.emit(Event::ObjectDeleted { object });
    }

    /// Brings the waiting jobs of a namespace into the order that its object says.
    fn reorder(&mut self, key: &ObjectKey) {
        if key.kind.as_str() != "namespace" {
            return;
        }
        let Ok(namespace) = Namespace::new(key.name.as_str()) else { return };
        let State { index, jobs, .. } = &mut *self.state;
        let aging = index.objects.limits(&namespace).and_then(NamespaceSpec::aging);
        index.waiting.reorder(&namespace, aging, |place| jobs.at(place).map(|job| &**job));
    }

    /// Writes an event.
    pub(crate) fn emit(&mut self, event: Event) {
        self.state.event_seq = self.state.event_seq.next();
        self.events.push(EventRecord { seq: self.state.event_seq, at: self.at, event });
    }

    /// Stores a job and writes its event.
    pub(crate) fn put(&mut self, job: Job, change: JobChange, old_status: JobStatus) {
        let job = self.store(job);
        self.emit(Event::Job { change, old_status, job });
    }

    /// Stores a job without an event. Where its parent begins to wait with that, or waits no longer, the place is lent or taken back.
    pub(crate) fn store(&mut self, job: Job) -> Arc<Job> {
        let job = Arc::new(job);
        let parent = job.spawned.map(|spawned| spawned.by);
        let waits = |state: &State| parent.is_some_and(|parent| state.children_awaited(parent) > 0);
        let waited = waits(self.state);
        let old = self.state.jobs.insert(Arc::clone(&job));
        self.state.index.job(old.as_deref(), Some(&job));
        let waits = waits(self.state);
        if let Some(parent) = parent.filter(|_| waited != waits) {
            self.lend(parent, waits);
        }
        job
    }

    /// A job begins to wait for its children, or waits no longer. If it runs, it lends its place or takes it back.
    pub(crate) fn lend(&mut self, parent: JobId, waits: bool) {
        let running = |parent: &&Arc<Job>| parent.status == JobStatus::Running;
        let Some(parent) = self.state.jobs.get(parent).filter(running).cloned() else { return };
        self.state.index.lend(&parent, waits);
        if let Some(lease) = &parent.lease {
            self.change_node(&lease.node, None, |node| node.lend(lease.allocation.place, parent.depth(), waits));
            if waits {
                // Its child may have to be the probe.
                self.abandon_probe(&parent, &lease.node, lease.token);
            }
        }
    }

    /// Puts a job into the queue that waited for a time or was parked.
    pub(crate) fn wake(&mut self, mut job: Job) {
        job.reason = Reason::Queued;
        job.queued_at = self.clock;
        let slept = job.parked.take().filter(|parked| parked.due.is_some_and(|due| due <= self.clock));
        job.slept_until = slept.and_then(|parked| parked.until()).unwrap_or_default().max(job.slept_until);
        self.put(job, JobChange::Woken, JobStatus::Pending);
    }

    /// Wakes the parent of a family whose last job has ended, if it is parked and waits for that.
    fn wake_parent(&mut self, parent: JobId, child: JobId) {
        let awaited = Wait::Child { job: child };
        if let Some(parent) = self.state.jobs.get(parent).filter(|parent| waits_for(parent, awaited)) {
            let parent = (**parent).clone();
            self.wake(parent);
        }
    }

    /// Stores an agent version and writes its event.
    pub(crate) fn put_agent(&mut self, agent: Arc<AgentVersion>) {
        self.state.store_agent(&agent);
        self.emit(Event::Agent { agent });
    }

    /// Forgets an agent version and writes its event.
    pub(crate) fn remove_agent(&mut self, agent: Arc<AgentVersion>) {
        if let Some(agents) = self.state.agents.get_mut(&agent.namespace) {
            agents.remove(&(agent.name.clone(), agent.version));
            if agents.is_empty() {
                self.state.agents.remove(&agent.namespace);
            }
        }
        self.state.index.agent(Some(&agent), None);
        self.emit(Event::AgentDeleted { agent });
    }

    /// Stores a join token, or forgets it.
    pub(crate) fn set_token(&mut self, hash: Digest, token: Option<JoinToken>) {
        let tokens = &mut self.state.join_tokens;
        let old = match token {
            Some(token) => tokens.insert(hash, token),
            None => tokens.remove(&hash),
        };
        self.state.index.join_token(old.as_ref(), token.as_ref());
    }

    /// Stores a node that changed and keeps its indexes.
    pub(crate) fn put_node(&mut self, new: NodeState) {
        let new = Arc::new(new);
        let old = self.state.nodes.insert(new.node.id.clone(), Arc::clone(&new));
        self.state.index.node(old.as_deref(), Some(&new));
    }

    /// Changes a node in place and keeps its indexes. Of its warm slots only those of `warm` may change.
    pub(crate) fn change_node(&mut self, id: &NodeId, warm: Option<Digest>, change: impl FnOnce(&mut NodeState)) {
        self.state.change_node(id, warm, change);
    }

    /// Writes that a node changed.
    pub(crate) fn emit_node(&mut self, id: &NodeId) {
        if let Some(node) = self.state.nodes.get(id) {
            let node = Arc::clone(&node.node);
            self.emit(Event::Node { node });
        }
    }

    /// Records a new job at the end of its queue.
    pub(crate) fn submit(&mut self, mut job: Job) {
        self.state.queue_seq += 1;
        job.queue_seq = self.state.queue_seq;
        job.submitted_seq = self.state.seq;
        job.created_at = self.at;
        job.queued_at = self.clock;
        self.put(job, JobChange::Submitted, JobStatus::Pending);
    }

    /// Takes a job's lease back. What its attempt left warm, if it said so, may be used by the next.
    pub(crate) fn release(&mut self, job: &mut Job, idle: Option<u32>) {
        let Some(lease) = job.lease.take() else { return };
        self.abandon_probe(job, &lease.node, lease.token);
        let digest = job.pin.as_ref().map(|pin| pin.digest).filter(|_| idle.is_some());
        let jobs = self.state.jobs.clone();
        let (depth, waits) = (job.depth(), self.state.children_awaited(job.id) > 0);
        self.change_node(&lease.node, digest, |node| {
            node.leases.remove(&lease.token);
            node.free.change_permits(lease.allocation.place, |permits| permits.remove(depth, waits));
            node.admit_owed();
            if node.over {
                let left = node.leases.clone();
                node.recount(left.values().filter_map(|job| jobs.get(*job)?.lease.as_deref()));
            } else {
                node.free.give(&lease.allocation);
            }
            if let (Some(digest), Some(idle)) = (digest, idle) {
                set_warm(node, digest, idle);
            }
        });
    }

    /// Ends a job: a terminal status is final. A failure that its contract retries is followed by a new job.
    pub(crate) fn end(&mut self, mut job: Job, status: JobStatus, failure: Option<Failure>) -> Outcome {
        self.release(&mut job, None);
        let retry = failure.as_ref().and_then(|failure| self.retry_of(&job, failure));
        self.close(job, status, failure, retry)
    }

    /// Records the end of a job that holds no lease any more, and what follows it.
    fn close(&mut self, mut job: Job, status: JobStatus, failure: Option<Failure>, retry: Option<Job>) -> Outcome {
        let old_status = job.status;
        let carrier = job.carrier();
        if let Some(carried) = carrier {
            job.execution = self.clock.since(carried.since);
        }
        job.status = status;
        job.failure = failure;
        job.completed_at = self.at;
        job.successor = retry.as_ref().map(|retry| retry.id);
        job.journal = self.take_journal(job.id);
        let continued = job.journal.clone().filter(|_| retry.is_some() && self.keeps_record(&job));
        self.leave_envelope(&job);
        self.note_answers(&mut job);
        job.parked = None;
        self.drop_inbox(job.id);
        let outcome = Outcome::Ended { status, retry: job.successor };
        self.state.ended.insert(self.state.event_seq.next(), job.id);
        let (id, first, spawned) = (job.id, job.first(), job.spawned);
        let step = job.step.filter(|_| retry.is_none()).map(|_| job.clone());
        self.put(job, JobChange::Ended, old_status);
        if let Some(carried) = carrier {
            self.stop_run(carried.run);
        }
        if let Some(job) = step {
            self.end_step(&job);
        }
        self.cancel_questions(id);
        match (retry, spawned) {
            (Some(retry), _) => {
                let next = retry.id;
                self.submit(retry);
                if let Some(journal) = continued {
                    self.continue_record(next, &journal);
                }
            }
            (None, Some(spawned)) if spawned.awaited => self.wake_parent(spawned.by, first),
            (None, _) => {}
        }
        self.leave_children(id, status != JobStatus::Completed);
        outcome
    }

    /// No job waits for these children any more. They outlive a parent that completed, which may not have cared how they end,
    /// and are cancelled with one that did not.
    fn leave_children(&mut self, parent: JobId, cancel: bool) {
        if self.state.children_awaited(parent) == 0 {
            return;
        }
        let children: Vec<Arc<Job>> = self.state.children(parent).cloned().collect();
        for child in children.into_iter().filter(|child| child.awaited_by().is_some()) {
            // An earlier one's end may have changed it: not among siblings today, and no reason to rely on that.
            let Some(child) = self.state.jobs.get(child.id).map(|child| (**child).clone()) else { continue };
            if cancel {
                self.forsake(child);
            } else {
                self.store(left(child));
            }
        }
    }

    /// Cancels a child for which no job waits any more.
    pub(crate) fn forsake(&mut self, child: Job) {
        let child = left(child);
        if child.reason == Reason::Cancelling {
            self.store(child);
        } else {
            self.cancel(child);
        }
    }

    /// Cancels a job and all below it: what waits or is carried ends at once, what runs under a lease when its worker has stopped it.
    pub(crate) fn cancel(&mut self, mut job: Job) {
        match job.status {
            JobStatus::Pending => {
                self.end(job, JobStatus::Cancelled, None);
            }
            // Its run has nothing to stop first: it sees the end, and starts nothing more.
            JobStatus::Running if job.carrier().is_some() => {
                self.end(job, JobStatus::Cancelled, None);
            }
            JobStatus::Running if job.reason != Reason::Cancelling => {
                let id = job.id;
                job.reason = Reason::Cancelling;
                self.put(job, JobChange::Cancelling, JobStatus::Running);
                let children: Vec<Arc<Job>> = self.state.children(id).cloned().collect();
                for child in children.into_iter().filter(|child| child.awaited_by().is_some()) {
                    self.cancel(Arc::unwrap_or_clone(child));
                }
            }
            JobStatus::Running | JobStatus::Completed | JobStatus::Failed | JobStatus::Cancelled => {}
        }
    }

    /// Ends a job by its worker's report. After a cancel the report only says that the attempt has stopped.
    pub(crate) fn end_by_report(
        &mut self,
        mut job: Job,
        usage: &Usage,
        status: JobStatus,
        failure: Option<Failure>,
    ) -> Outcome {
        job.warmup = usage.warmup;
        job.execution = usage.execution;
        job.warm = usage.warm;
        let cancelling = job.reason == Reason::Cancelling;
        if !cancelling {
            self.judge(&job, failure.as_ref());
        }
        self.release(&mut job, Some(usage.idle));
        if cancelling { self.end(job, JobStatus::Cancelled, None) } else { self.end(job, status, failure) }
    }

    /// Ends a job in doubt as a person decided. Clients see pending → running → ended, for it did run. Nothing follows it: a
    /// retry would run again, unasked, what must not run twice.
    pub(crate) fn end_in_doubt(&mut self, mut job: Job, status: JobStatus, failure: Option<Failure>) -> Outcome {
        job.status = JobStatus::Running;
        job.reason = Reason::Running;
        self.put(job.clone(), JobChange::Granted, JobStatus::Pending);
        self.close(job, status, failure, None)
    }

    /// Fails a job that never ran. Clients see pending → running → failed.
    pub(crate) fn fail_without_run(&mut self, mut job: Job, failure: Failure) -> Outcome {
        job.status = JobStatus::Running;
        job.reason = Reason::Running;
        job.started_at = self.at;
        self.put(job.clone(), JobChange::Granted, JobStatus::Pending);
        self.end(job, JobStatus::Failed, Some(failure))
    }

    /// A running job's lease is lost (B.7).
    pub(crate) fn lose(&mut self, job: &Job) -> Outcome {
        let mut job = job.clone();
        if job.reason == Reason::Cancelling {
            return self.end(job, JobStatus::Cancelled, None);
        }
        match after_loss(&job) {
            Some(reason) => {
                self.release(&mut job, None);
                job.status = JobStatus::Pending;
                job.reason = reason;
                let id = job.id;
                self.put(job, JobChange::Lost, JobStatus::Running);
                // The next attempt finds the children of recorded steps again: their ids do not depend on the lease.
                if !self.state.journals.contains_key(&id) {
                    self.leave_children(id, true);
                }
                Outcome::Ended { status: JobStatus::Pending, retry: None }
            }
            None => {
                let error = format!("lease lost {} times", job.attempts_counted());
                let failure = Failure { kind: FailureKind::LeaseLost, error: error.into() };
                self.end(job, JobStatus::Failed, Some(failure))
            }
        }
    }

    /// Loses all leases of a node, the oldest first.
    pub(crate) fn lose_all(&mut self, node: &NodeState) {
        for (_, id) in node.leases() {
            if let Some(job) = self.state.jobs.get(id).cloned() {
                self.lose(&job);
            }
        }
    }
}

/// Whether a job is parked and waits for this, among other things.
fn waits_for(job: &Job, wait: Wait) -> bool {
    job.parked.as_ref().is_some_and(|parked| parked.waits.contains(&wait))
}

/// A child for which no job waits any more.
fn left(mut child: Job) -> Job {
    if let Some(spawned) = &mut child.spawned {
        spawned.awaited = false;
    }
    child
}

/// What a job whose lease was lost waits for now; none if it has had all its attempts.
fn after_loss(job: &Job) -> Option<Reason> {
    use atlas_types::Effects::{Idempotent, Once, Pure, Reconcilable};
    let spec = job.spec.as_ref()?;
    let started = job.lease.as_ref().is_some_and(|lease| lease.started);
    let more = job.attempts_counted() < spec.max_attempts;
    match spec.effects {
        // Before the attempts are counted: to fail it would let its retry rule run it again unasked. One that parked has started
        // before, and its next attempt continues, but a retry would not.
        Once | Reconcilable if started || job.has_parked() && !more => Some(Reason::InDoubt),
        Pure | Idempotent | Once | Reconcilable => more.then_some(Reason::Lost),
    }
}

/// Notes how many idle warm slots of a package a node has.
pub(crate) fn set_warm(state: &mut NodeState, digest: Digest, idle: u32) {
    let idle = if state.node.health == NodeHealth::Ready { idle } else { 0 };
    if state.node.warm.get(&digest).copied().unwrap_or(0) == idle {
        return;
    }
    let warm = &mut Arc::make_mut(&mut state.node).warm;
    if idle == 0 {
        warm.remove(&digest);
    } else {
        warm.insert(digest, idle);
    }
}

/// The lease under which a report is made, or that it is outdated.
pub(crate) fn live_lease(
    job: Option<&Arc<Job>>,
    holds: impl FnOnce(&Lease) -> bool,
) -> Result<(&Arc<Job>, &Arc<Lease>), Rejection> {
    let job = job.ok_or(Rejection::Fenced)?;
    let lease = job.lease.as_ref().filter(|lease| holds(lease)).ok_or(Rejection::Fenced)?;
    Ok((job, lease))
}

/// The job that a run carries, or that the run does not carry it.
pub(crate) fn carried_job(job: Option<&Arc<Job>>, run: RunId) -> Result<&Arc<Job>, Rejection> {
    job.filter(|job| job.carrier().is_some_and(|carried| carried.run == run)).ok_or(Rejection::NotCarried)
}
