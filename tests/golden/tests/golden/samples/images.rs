//! Sample states: the content of snapshots.

use super::*;

/// A state with one of everything.
pub(crate) fn image() -> StateImage {
    let agent = AgentVersion {
        namespace: Namespace::default_namespace(),
        name: agent(),
        version: VERSION,
        digest: PACKAGE,
        package_bytes: 12_345,
        kind: AgentKind::Orchestrator,
        capabilities: vec!["echo".to_owned()],
        contract: Payload::inline(br#"{"name":"echo"}"#),
        spec: Arc::new(spec()),
        labels: labels(),
        registered_at: Timestamp(1_767_225_000_000_000),
        registered_seq: Seq(2),
        retired: true,
        retired_at: None,
        deprecated: None,
        circuit: Circuit::default(),
        revision: 1,
        registered_by: None,
        revisions: Vec::new(),
    };
    let node = Node {
        id: node(),
        epoch: NodeEpoch(2),
        boot_id: BootId(7),
        inventory: inventory().into(),
        operator_labels: BTreeMap::new(),
        health: NodeHealth::Ready,
        cordoned: true,
        draining: true,
        drain_until: None,
        warm: BTreeMap::from([(PACKAGE, 2)]),
        registered_at: Timestamp(1_767_225_000_000_000),
        circuit: Circuit::default(),
        rival: None,
    };
    let origin = origin();
    StateImage {
        cluster_id: CLUSTER,
        level: Level(1),
        seq: Seq(42),
        chain: [0xc4; 32],
        at: Timestamp(1_767_225_600_000_000),
        clock: ClusterTime(90_000_000),
        grant_seq: TOKEN,
        event_seq: EventSeq(40),
        queue_seq: 5,
        member_last: MemberId(4),
        config: ClusterConfig::default(),
        agents: vec![Arc::new(agent)],
        nodes: vec![NodeImage { node: Arc::new(node), inventory_since: FencingToken(1) }],
        jobs: jobs().into_iter().map(Arc::new).collect(),
        ended: vec![EndedImage { event: EventSeq(39), job: JobId(8) }],
        requests: vec![RequestImage {
            namespace: origin.namespace,
            principal: origin.principal,
            request_id: origin.request_id.expect("a request id"),
            body_hash: 0xfeed,
            at: ClusterTime(79_000_000),
            outcome: Outcome::Submitted { job: JOB, repeated: false },
        }],
        sinks: vec![SinkImage { member: MemberId(1), event: EventSeq(38) }],
        join_tokens: vec![JoinToken {
            hash: Digest([0x70; 32]),
            kind: JoinKind::Controller,
            expires: ClusterTime(95_000_000),
            uses: 1,
        }],
        journals: Vec::new(),
        envelopes: Vec::new(),
        inboxes: Vec::new(),
        questions: Vec::new(),
        objects: Vec::new(),
        runs: Vec::new(),
        buckets: Vec::new(),
        progress: 0,
        progress_of: Vec::new(),
    }
}

/// A webhook that was changed once.
pub(crate) fn webhook() -> Object {
    Object {
        key: ObjectKey {
            namespace: Namespace::default_namespace(),
            kind: ObjectKind::new("webhook").expect("a word"),
            name: ObjectName::new("ci").expect("a name"),
        },
        uid: EventSeq(9),
        revision: EventSeq(12),
        labels: Arc::new(labels()),
        spec: Arc::from(*br#"{"events":["job.ended"],"url":"https://ci.example.com"}"#),
        spec_version: 1,
        created: Timestamp(1_767_225_000_000_000),
        updated: AT,
        by: Principal::local(),
        status: Arc::from(*br#"{"cursor":40}"#),
    }
}

/// A state of level 6 with objects.
pub(crate) fn image_with_objects() -> StateImage {
    StateImage { level: Level(6), objects: vec![Arc::new(webhook())], ..image() }
}

/// A journal with a fold and two steps.
pub(crate) fn journal() -> Journal {
    let usage =
        StepUsage { duration: Micros(1_200_000), tokens_input: 900, tokens_output: 40, cost_nanodollars: 1_500 };
    let step = |kind, key, outcome, usage| Arc::new(Step { kind, key: StepKey([key; 16]), outcome, usage });
    let steps = vec![
        step(StepKind::Model, 0x11, Payload::inline(br#"{"text":"hello"}"#), usage),
        step(StepKind::Tools, 0x22, artifact(), StepUsage::default()),
    ];
    Journal { folds: vec![Fold { upto: 2, artifact: artifact() }], steps, ..Journal::default() }
}

pub(crate) fn parked() -> Parked {
    let waits = vec![Wait::Time { at: AT }, Wait::Child { job: JobId(8) }];
    Parked { waits, due: Some(ClusterTime(90_000_000)), token: FencingToken(0) }
}

/// A job that is parked.
pub(crate) fn parked_job() -> Job {
    let running = jobs().pop().expect("there are two");
    Job {
        status: JobStatus::Pending,
        reason: Reason::Parked,
        lease: None,
        attempt: Attempt(3),
        parks: 2,
        used: Micros(2_500_000),
        parked: Some(Arc::new(parked())),
        slept_until: AT,
        ..running
    }
}

/// A job that a run carries.
pub(crate) fn carried_job() -> Job {
    let running = jobs().pop().expect("there are two");
    let spec = Arc::new(RunSpec { carried: true, ..light_spec() });
    let carried = Some(Carried { run: RUN, since: ClusterTime(80_000_000) });
    Job { spec: Some(spec), attempt: Attempt(0), node: None, lease: None, carried, ..running }
}

/// A state of level 6: a job that runs has a journal, and so has one that ended.
pub(crate) fn image_with_journals() -> StateImage {
    let mut image = StateImage { level: Level(6), ..image() };
    let journal = Arc::new(journal());
    for job in image.jobs.iter_mut().filter(|job| job.status.is_terminal()) {
        Arc::make_mut(job).journal = Some(Arc::clone(&journal));
    }
    image.journals = vec![JournalImage { job: JOB, journal }];
    image.config.journal_bytes_max = 1 << 20;
    image
}

/// A state of level 6: a job with a budget has spent something, and reserved something for a call.
pub(crate) fn image_with_envelopes() -> StateImage {
    let mut image = image_with_journals();
    for job in image.jobs.iter_mut().filter(|job| job.id == JOB) {
        Arc::make_mut(job).budget_nanodollars = Some(50_000_000);
    }
    let reserved = [((JOB, StepKey([0x44; 16])), 2_500_000)].into();
    image.envelopes = vec![EnvelopeImage { job: JOB, envelope: Arc::new(Envelope { spent: 7_000_000, reserved }) }];
    image
}

/// An inbox of a read message and another one.
pub(crate) fn inbox() -> Inbox {
    let id = |text| MessageId::new(text).expect("a name");
    let message = Message {
        id: id("m2"),
        answers: Some(StepKey([0x33; 16])),
        channel: None,
        payload: Payload::inline(b"true"),
        from: Principal::local(),
        at: AT,
    };
    Inbox { read: 1, read_ids: vec![id("m1")], messages: vec![Arc::new(message)] }
}

/// A state of level 6: a parked job has an inbox.
pub(crate) fn image_with_inboxes() -> StateImage {
    let mut image = image_with_journals();
    for job in image.jobs.iter_mut().filter(|job| job.id == JOB) {
        *job = Arc::new(parked_job());
    }
    image.inboxes = vec![InboxImage { job: JOB, inbox: Arc::new(inbox()) }];
    image
}

/// Where and why a run failed.
pub(crate) fn run_failure() -> RunFailure {
    RunFailure { step: Some(1), fault: RunFault::Text("Mediation failed at step 1 (echo): no way".into()) }
}

/// A run that waits for its second step, one that failed and one that was cancelled; between them every field is set.
pub(crate) fn runs() -> Vec<Run> {
    let origin = origin();
    let step = |number, job, strategy, output| {
        Arc::new(RunStep { number, agent: "echo".into(), job, strategy, output, fault: None })
    };
    let running = Run {
        namespace: origin.namespace,
        id: RunId(1),
        chain: "review".into(),
        revision: Some(EventSeq(12)),
        definition: Payload::inline(br#"{"steps":[{"agent":"echo"},{"agent":"echo"}]}"#),
        input: artifact(),
        status: RunStatus::Running,
        version: 4,
        total_steps: 2,
        plan: Some(Payload::inline(br#"{"chain":"review","steps":[]}"#)),
        steps: vec![
            step(0, JobId(8), RunStrategy::None, Some(Payload::inline(b"{}"))),
            step(1, JOB, RunStrategy::Coerce, None),
        ],
        failure: None,
        priority: -1,
        metadata: Arc::from(*b"{}"),
        created_at: AT,
        completed_at: Timestamp::NOT_YET,
        started: EventSeq(30),
        ended: None,
        principal: origin.principal,
        door: origin.door,
        trace: origin.trace,
        job: Some(JobId(7)),
        branches: None,
    };
    let ended = Run {
        status: RunStatus::Failed,
        failure: Some(run_failure()),
        completed_at: AT,
        ended: Some(EventSeq(35)),
        ..running.clone()
    };
    let of_job = RunFailure { step: None, fault: RunFault::Job(failure()) };
    let cancelled = RunFailure { step: Some(0), fault: RunFault::Cancelled };
    let other = |id, failure| Run { id: RunId(id), failure: Some(failure), ..ended.clone() };
    vec![running, Run { id: RunId(2), ..ended.clone() }, other(3, of_job), other(4, cancelled)]
}

/// A job of a run's step.
pub(crate) fn step_job() -> Job {
    let running = jobs().pop().expect("there are two");
    let step = Some(StepOf { run: RunId(1), index: 1 });
    Job { step, context: Some(Box::new(Payload::inline(br#"{"step_index":1}"#))), ..running }
}

/// A state of level 6 with runs.
pub(crate) fn image_with_runs() -> StateImage {
    StateImage { level: Level(6), runs: runs().into_iter().map(Arc::new).collect(), ..image() }
}

/// A state of level 6 with token buckets.
pub(crate) fn image_with_buckets() -> StateImage {
    let key = |agent, value| LimitKey { namespace: Namespace::default_namespace(), agent, value };
    let bucket = |key, seconds: u64| Bucket { key, full: ClusterTime(seconds * 1_000_000) };
    let buckets = vec![
        bucket(key(None, None), 91),
        bucket(key(Some(agent()), None), 92),
        bucket(key(Some(agent()), Some("acme".into())), 150),
    ];
    StateImage { level: Level(6), buckets, ..image() }
}

/// A state of level 6 with the progress of namespaces.
pub(crate) fn image_with_shares() -> StateImage {
    let progress_of = vec![(Namespace::default_namespace(), 3 << 20)];
    StateImage { level: Level(6), progress: 2 << 20, progress_of, ..image() }
}

/// A state of level 6 with open circuits: one that waits, one that is ready and one that is probed.
pub(crate) fn image_with_circuits() -> StateImage {
    let plain = image();
    let open = |probe| Some(Open { since: Timestamp(1_767_225_600_000_000), pause: Micros::from_secs(20), probe });
    let circuit = |probe| Circuit { failures: 6, package: Some(PACKAGE), several: true, open: open(probe) };
    let mut agent = (*plain.agents[0]).clone();
    agent.circuit = circuit(Probe::At(ClusterTime(95_000_000)));
    let ready =
        AgentVersion { version: Version { minor: 9, ..VERSION }, circuit: circuit(Probe::Ready), ..agent.clone() };
    let mut node = plain.nodes[0].clone();
    Arc::make_mut(&mut node.node).circuit = circuit(Probe::Runs(TOKEN));
    let config = ClusterConfig { node_failures_max: 5, ..plain.config };
    StateImage { level: Level(6), config, agents: vec![Arc::new(agent), Arc::new(ready)], nodes: vec![node], ..plain }
}

/// A state of level 6 with a version that has its third package.
pub(crate) fn image_with_revisions() -> StateImage {
    let plain = image();
    let revision = |number, registered_by| AgentRevision {
        number,
        digest: Digest([number as u8; 32]),
        package_bytes: 12_000,
        registered_at: Timestamp(1_767_225_000_000_000),
        registered_by,
    };
    let agent = AgentVersion {
        revision: 3,
        registered_by: Some(Principal::local()),
        revisions: vec![revision(1, None), revision(2, Some(Principal::local()))],
        ..(*plain.agents[0]).clone()
    };
    StateImage { level: Level(6), agents: vec![Arc::new(agent)], ..plain }
}

/// A state of level 6 with a run that has branches: a step failed and runs again, two do not run.
pub(crate) fn image_with_branches() -> StateImage {
    let linear = runs().swap_remove(0);
    let step = |number, fault| {
        let strategy = RunStrategy::Direct;
        Arc::new(RunStep { number, agent: "echo".into(), job: JOB, strategy, output: None, fault })
    };
    let faults = [RunFault::Job(failure()), RunFault::Cancelled, RunFault::Text("no".into())];
    let failed = faults.into_iter().map(|fault| step(2, Some(fault)));
    let left = vec![
        StepLeft { number: 0, error: None },
        StepLeft { number: 1, error: Some("Condition failed at step 1 (echo): no".into()) },
    ];
    let branches = Some(Branches { fresh: true, left });
    let run = Run { steps: failed.chain([step(2, None)]).collect(), branches, total_steps: 3, ..linear };
    StateImage { level: Level(6), runs: vec![Arc::new(run)], ..image() }
}

/// What a question asks.
pub(crate) fn ask() -> Arc<Ask> {
    Arc::new(Ask {
        kind: AskKind::Choose { options: vec!["red".into(), "blue".into()], many: false, other: true },
        prompt: "Which colour?".into(),
        answerers: vec![Principal::local()],
        timeout: Some(Micros::from_secs(300)),
        default: Some(Arc::from(*br#""red""#)),
    })
}

/// An open question and one that was answered.
fn questions() -> Vec<Arc<Question>> {
    let open = Question {
        id: QuestionId(9),
        namespace: Namespace::default_namespace(),
        job: JOB,
        step: 4,
        rule: None,
        ask: ask(),
        asked: EventSeq(30),
        asked_at: AT,
        due: Some(ClusterTime(95_000_000)),
        end: None,
        ended_at: Timestamp(0),
    };
    let end = Some(QuestionEnd::Answered { answer: Arc::from(*br#""blue""#), by: Principal::local() });
    let answered = Question { id: QuestionId(10), step: 3, asked: EventSeq(29), end, ended_at: AT, ..open.clone() };
    vec![Arc::new(open), Arc::new(answered)]
}

/// A state of level 6: a running job has asked two questions.
pub(crate) fn image_with_questions() -> StateImage {
    StateImage { questions: questions(), ..image_with_journals() }
}

/// A state of level 6: a policy asks whether a job may run.
pub(crate) fn image_with_approvals() -> StateImage {
    let asked = Question { step: 0, rule: Some(asking_rule()), ..(*questions().remove(0)).clone() };
    StateImage { questions: vec![Arc::new(asked)], ..image_with_journals() }
}
