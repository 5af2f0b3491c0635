//! Values that are not drawn field by field: those with cases, and those that their readers bound.

use std::sync::Arc;

use atlas_types::*;

use super::{Draw, samples};

samples! {
    Architecture: |draw| draw.pick(&[Architecture::X86_64, Architecture::Arm64]),
    Place: |draw| draw.pick(&Place::ALL),
    Rate: |draw| Self { jobs: draw.u32().max(1), per: draw.value(), burst: draw.u32().max(1) },
    Open: |draw| Self { since: draw.value(), pause: draw.value(), probe: draw.value() },
    Probe: |draw| match draw.below(3) {
        0 => Self::Ready,
        1 => Self::At(draw.value()),
        _ => Self::Runs(draw.value()),
    },
    Reason: |draw| {
        let until = draw.value();
        draw.pick(&[
            Self::Queued,
            Self::Backoff { until },
            Self::Delayed { until },
            Self::Routing { until },
            Self::Approval,
            Self::Lost,
            Self::InDoubt,
            Self::Parked,
            Self::Running,
            Self::Cancelling,
        ])
    },
    Verdict: |draw| match draw.below(3) {
        0 => Self::Accepted(draw.value()),
        1 => Self::Asked { pin: draw.value(), asks: draw.value() },
        _ => Self::Refused { pin: draw.value(), failure: draw.value() },
    },
    Decision: |draw| match draw.below(3) {
        0 => Self::Execute,
        1 => Self::Reject(draw.value()),
        _ => Self::Redirect(draw.value(), draw.value()),
    },
    RouteJob: |draw| Self {
        job: draw.value(),
        generation: draw.value(),
        decider: draw.value(),
        decision: draw.value(),
        priority: draw.value(),
        // An empty one is none.
        rule: draw.value::<Option<Arc<str>>>().filter(|rule| !rule.is_empty()),
    },
    Wait: |draw| match draw.below(5) {
        0 => Self::Time { at: draw.value() },
        1 => Self::Child { job: draw.value() },
        2 => Self::Message,
        3 => Self::Question { id: draw.value() },
        _ => Self::Answer { question: draw.value() },
    },
    QuestionRule: |draw| match draw.below(3) {
        0 => Self::Fail,
        1 => Self::Wait,
        _ => Self::Answer(draw.value()),
    },
    AskKind: |draw| match draw.below(5) {
        0 => Self::Approve { options: draw.value(), other: draw.value() },
        1 => Self::Choose { options: draw.value(), many: draw.value(), other: draw.value() },
        2 => Self::Confirm,
        3 => Self::Text,
        _ => Self::Form { schema: draw.value() },
    },
    Ask: |draw| Self {
        kind: draw.value(),
        prompt: draw.value(),
        answerers: draw.value(),
        timeout: draw.value(),
        default: draw.value(),
    },
    QuestionEnd: |draw| match draw.below(4) {
        0 => Self::Answered { answer: draw.value(), by: draw.value() },
        1 => Self::Defaulted,
        2 => Self::Expired,
        _ => Self::Cancelled,
    },
    RunFault: |draw| match draw.below(3) {
        0 => Self::Text(draw.value()),
        1 => Self::Job(draw.value()),
        _ => Self::Cancelled,
    },
    RunFailure: |draw| Self { step: draw.value(), fault: draw.value() },
    RunDefinition: |draw| match draw.flag() {
        true => Self::Named(draw.value()),
        false => Self::Given { chain: draw.value(), steps: draw.value(), document: draw.value() },
    },
    RunNext: |draw| match draw.below(4) {
        0 => Self::Complete,
        1 => Self::Fail(draw.value()),
        2 => Self::Wave(draw.value()),
        _ => Self::Step { agent: draw.value(), strategy: draw.value(), submit: draw.value() },
    },
    WaveEnd: |draw| match draw.flag() {
        true => Self::Complete,
        false => Self::Fail(draw.value()),
    },
    TriggerStart: |draw| match draw.flag() {
        true => Self::Run(draw.value()),
        false => Self::Job(draw.value()),
    },
    CarriedEnd: |draw| match draw.flag() {
        true => Self::Completed(draw.value()),
        false => Self::Failed { failure: draw.value(), output: draw.value() },
    },
    Resolution: |draw| match draw.below(3) {
        0 => Self::RunAgain,
        1 => Self::Completed(draw.value()),
        _ => Self::Failed(draw.value()),
    },
    Expect: |draw| {
        let revision = draw.value();
        draw.pick(&[Self::Any, Self::Absent, Self::Revision(revision)])
    },
    SpawnedBy: |draw| match draw.flag() {
        true => Self::Attempt(draw.value()),
        false => Self::Run { job: draw.value(), run: draw.value() },
    },
    Spawner: |draw| Self { job: draw.value(), token: draw.value() },
    Request: |draw| Self { origin: draw.value(), command: draw.value() },
    Entry: |draw| {
        let mut requests = vec![draw.value()];
        requests.extend(draw.value::<Vec<_>>());
        Self {
            cluster_id: draw.value(),
            level: Level(draw.value()),
            min_reader_level: draw.level(),
            parent: Parent { seq: draw.value(), chain: draw.value() },
            at: draw.value(),
            clock: draw.value(),
            requests,
        }
    },
    LimitKey: |draw| Self { namespace: draw.value(), agent: draw.value(), value: draw.value() },
    Bucket: |draw| Self { key: draw.value(), full: draw.value() },
    Envelope: |draw| Self { spent: draw.value(), reserved: draw.value() },
    StateImage: |draw| Self {
        cluster_id: draw.value(),
        level: draw.level(),
        seq: draw.value(),
        chain: draw.value(),
        at: draw.value(),
        clock: draw.value(),
        grant_seq: draw.value(),
        event_seq: draw.value(),
        queue_seq: draw.value(),
        member_last: draw.value(),
        config: draw.value(),
        agents: draw.value(),
        nodes: draw.list(|draw| NodeImage { node: draw.value(), inventory_since: draw.value() }),
        jobs: draw.value(),
        ended: draw.list(|draw| EndedImage { event: draw.value(), job: draw.value() }),
        requests: draw.list(|draw| RequestImage {
            namespace: draw.value(),
            principal: draw.value(),
            request_id: draw.value(),
            body_hash: draw.value(),
            at: draw.value(),
            outcome: draw.value(),
        }),
        sinks: draw.list(|draw| SinkImage { member: draw.value(), event: draw.value() }),
        join_tokens: draw.value(),
        objects: draw.value(),
        runs: draw.value(),
        buckets: draw.value(),
        progress: draw.value(),
        progress_of: draw.value(),
        journals: draw.list(|draw| JournalImage { job: draw.value(), journal: draw.value() }),
        envelopes: draw.list(|draw| EnvelopeImage { job: draw.value(), envelope: draw.value() }),
        inboxes: draw.list(|draw| InboxImage { job: draw.value(), inbox: draw.value() }),
        questions: draw.value(),
    },
}

impl Draw {
    /// A level that this program knows.
    fn level(&mut self) -> Level {
        Level(self.below(u64::from(Level::CURRENT.0) + 1) as u32)
    }

    pub(super) fn message_id(&mut self) -> MessageId {
        MessageId::new(self.pick(&["m1", "0190-def"])).expect("a name")
    }

    pub(super) fn channel(&mut self) -> Channel {
        Channel::new(self.pick(&["approvals", "a/b .."])).expect("a name")
    }

    pub(super) fn object_kind(&mut self) -> ObjectKind {
        let word = self.pick(&["namespace", "webhook", "later-kind"]);
        ObjectKind::new(word).expect("a word")
    }

    pub(super) fn object_name(&mut self) -> ObjectName {
        ObjectName::new(self.node_id().as_str()).expect("a name")
    }

    /// One event of each kind.
    pub(crate) fn events(&mut self) -> Vec<Event> {
        let (change, old_status) = (JobChange::Granted, JobStatus::Pending);
        vec![
            Event::Job { change, old_status, job: self.value() },
            Event::Agent { agent: self.value() },
            Event::AgentDeleted { agent: self.value() },
            Event::Node { node: self.value() },
            Event::NodeRemoved { node: self.value() },
            Event::Configured { config: self.value() },
            Event::StepsRecorded { job: self.value(), from: self.value(), steps: self.value::<Vec<_>>().into() },
            Event::ObjectPut { object: self.value() },
            Event::ObjectDeleted { object: self.value() },
            Event::StepsFolded { job: self.value(), upto: self.value(), artifact: self.value() },
            Event::MessageDelivered { job: self.value(), message: self.value(), number: self.value() },
            Event::Erased { namespace: self.value(), job: self.value() },
            Event::Run { change: self.value(), run: self.value() },
            Event::QuestionAsked { question: self.value() },
            Event::QuestionEnded { question: self.value() },
        ]
    }
}
