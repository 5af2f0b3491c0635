//! Tests services whose histories and artifacts differ at first and are then synchronised.

mod artifacts;
mod base_readers;
mod base_vectors;
mod bases;
mod bounds;
mod chunk_texts;
mod collect;
mod conversations;
mod document_models;
mod enrollment;
mod inbound;
mod library;
mod model_limits;
mod objects;
mod probes;
mod usable_models;

use std::sync::Arc;
use std::time::Duration;

use atlas_desk::requests;
use atlas_env::Env;
use atlas_history::{EndedJob, Gap, History, HistoryError, SqliteHistory};
use atlas_telemetry::Metrics;
use atlas_types::{
    Attempt, Command, Digest, Door, Event, EventRecord, EventSeq, Failure, FailureKind, Job, JobChange, JobId,
    JobStatus, MemberId, Payload, PayloadBody, PruneJobs, SubmitJob, Timestamp, Verdict,
};
use bytes::Bytes;
use serde_json::json;

use crate::testing::{Net, set};
use crate::*;

/// A group of one with the stores of a member of `net`.
struct Node {
    service: Service,
    history: Arc<dyn History>,
    _followers: Followers,
    _raft: atlas_raft::Service,
    _dir: tempfile::TempDir,
}

impl Node {
    async fn start(net: &Arc<Net>, member: u64) -> Self {
        Self::start_in(net, member, Env::system()).await
    }

    async fn start_in(net: &Arc<Net>, member: u64, env: Env) -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let options = atlas_raft::Options::new(dir.path().to_owned());
        let (handle, raft) = atlas_raft::start(options, env.clone()).await.expect("starts");
        let options = atlas_history::Options {
            sync_interval: Duration::from_millis(5),
            gather_interval: Duration::from_millis(1),
            ..atlas_history::Options::new(dir.path().join("history.sqlite"))
        };
        let history = SqliteHistory::open(options, env.clone(), |_| ()).expect("opens");
        let history: Arc<dyn History> = Arc::new(history);
        let service = Service::new(Parts {
            handle,
            history: history.clone(),
            artifacts: net.artifacts(member),
            peers: net.way(MemberId(member)),
            metrics: Metrics::new(),
            keys: None,
            authentication: None,
            audit: Audit::default(),
            issuers: Arc::new(NoIssuers),
            externals: Arc::new(NoExternals),
            stores: Stores::default(),
            limits: Limits::default(),
            env,
        });
        let followers = Followers::start(&service);
        net.serve(member, service.clone());
        Self { service, history, _followers: followers, _raft: raft, _dir: dir }
    }

    async fn propose(&self, command: Command) {
        let request = requests::of(&caller(), command);
        let outcomes = self.service.handle().propose(vec![request]).await.expect("applied");
        assert!(outcomes[0].is_ok(), "{outcomes:?}");
    }

    /// A job that ends at once, because no agent has its name.
    async fn job(&self, id: u64, input: Payload) {
        let failure = Failure { kind: FailureKind::NoAgent, error: "no such agent".into() };
        let (agent, verdict) = ("nobody".parse().expect("a name"), Verdict::Refused { pin: None, failure });
        let command = SubmitJob::new(JobId(id), agent, verdict, input);
        self.propose(Command::SubmitJob(command)).await;
    }

    /// Waits until the history has all events, and drops all ended jobs from the state.
    async fn prune(&self) {
        let event_seq = self.service.handle().applied().event_seq();
        let own = MemberId(1);
        until("history is acknowledged", async || self.service.handle().applied().sink(own) >= event_seq).await;
        self.propose(Command::PruneJobs(PruneJobs { voters: vec![own], event_seq, limit: 1_000 })).await;
        assert_eq!(self.service.handle().applied().jobs_total(), 0);
    }

    /// Makes the history one whose state came as a snapshot after all events of `other`.
    async fn miss(&self, other: &Self) {
        let through = other.service.handle().applied().event_seq();
        other.service.shared.known(through).await.expect("written");
        self.history.resync(Vec::<EndedJob>::new(), through).await.expect("queued");
        self.service.shared.known(through).await.expect("written");
    }

    /// Adds an ended job to its history only.
    async fn remember(&self, job: Job) {
        let seq = EventSeq(self.service.handle().applied().event_seq().0 + 1);
        let event = Event::Job { change: JobChange::Ended, old_status: JobStatus::Running, job: Arc::new(job) };
        self.history.append([EventRecord { seq, at: Timestamp(1), event }].into()).await.expect("queued");
        self.service.shared.known(seq).await.expect("written");
    }

    fn gaps(&self) -> Vec<Gap> {
        self.history.gaps().borrow().to_vec()
    }

    async fn found(&self, id: u64) -> Result<bool, Error> {
        match self.service.job(&caller(), JobId(id), View::Plain, Consistency::Linearizable).await {
            Ok(_) => Ok(true),
            Err(Error::UnknownJob) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

fn caller() -> Caller {
    Caller::anonymous(Door::Local)
}

fn inline() -> Payload {
    Payload::inline(b"{}")
}

fn artifact(digest: Digest) -> Payload {
    Payload { key_id: 0, body: PayloadBody::Artifact { digest, size_bytes: 3 } }
}

async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let clock = Env::system().clock;
    for _ in 0..1_500 {
        if holds().await {
            return;
        }
        clock.sleep(Duration::from_millis(10)).await;
    }
    panic!("in vain: {what}");
}

#[tokio::test]
async fn a_history_with_a_gap_lets_others_answer_until_it_is_filled() {
    let net = Net::new(2);
    let (one, two) = (Node::start(&net, 1).await, Node::start(&net, 2).await);
    for id in 1..=40 {
        one.job(id, inline()).await;
    }
    net.give_parts(false);
    two.miss(&one).await;
    assert_eq!(two.gaps().len(), 1);
    assert!(!two.service.completeness().await.history);
    // One job, a prefix of an id, a list and old events are all answered through the other member.
    assert!(two.found(7).await.expect("answered"));
    assert!(!two.found(99).await.expect("answered"));
    assert_eq!(two.service.job_id(&caller(), "job-0000000000000007").await.expect("found"), JobId(7));
    assert_eq!(
        two.service.job_id(&caller(), "000000000000000").await.map_err(|error| error.entry().code),
        Err("E3002")
    );
    let query = JobQuery { limit: 100, ..JobQuery::default() };
    let listed = two.service.jobs(&caller(), &query, View::Plain, Consistency::Linearizable).await.expect("listed");
    assert_eq!(listed.len(), 40);
    let error = two.service.follow(&caller(), Follow { after: Some(EventSeq(0)), ..Follow::default() }).await.err();
    assert!(error.is_none() || matches!(error, Some(Error::HistoryBehind)), "{error:?}");
    // Without the other member, the service reports that the data is unknown.
    net.cut(&[1]);
    assert!(matches!(two.found(7).await, Err(Error::HistoryBehind)));
    assert!(two.service.jobs(&caller(), &query, View::Plain, Consistency::Linearizable).await.is_err());
    net.cut(&[]);
    net.give_parts(true);
    until("the gap is filled", async || two.gaps().is_empty()).await;
    net.cut(&[1]);
    assert!(two.found(7).await.expect("answered"));
    let (ours, theirs) = (two.history.events(EventSeq(0), 999).await, one.history.events(EventSeq(0), 999).await);
    assert_eq!(ours.expect("reads").len(), theirs.expect("reads").len());
}

#[tokio::test]
async fn a_gap_that_no_member_can_fill_is_given_up() {
    let net = Net::new(3);
    let (one, two, three) = (Node::start(&net, 1).await, Node::start(&net, 2).await, Node::start(&net, 3).await);
    one.job(1, inline()).await;
    net.cut(&[1]);
    two.miss(&one).await;
    three.miss(&one).await;
    // The member that may have the events does not answer, so it is asked again.
    until("it was asked more than once", async || net.asked_in_vain(2) > 1 && net.asked_in_vain(3) > 1).await;
    assert_eq!((two.gaps().len(), three.gaps().len()), (1, 1));
    one.history.resync(Vec::new(), EventSeq(50)).await.expect("queued");
    one.service.shared.known(EventSeq(50)).await.expect("written");
    two.history.resync(Vec::new(), EventSeq(50)).await.expect("queued");
    three.history.resync(Vec::new(), EventSeq(50)).await.expect("queued");
    net.cut(&[]);
    until("all are filled or given up", async || {
        one.gaps().is_empty() && two.gaps().is_empty() && three.gaps().is_empty()
    })
    .await;
    for node in [&two, &three] {
        assert!(node.history.job(JobId(1)).await.expect("reads").is_some(), "what the first one had was fetched");
        assert!(matches!(node.history.events(EventSeq(49), 9).await, Err(HistoryError::Gone { .. })));
    }
}

#[tokio::test]
async fn every_member_comes_to_have_what_is_referred_to() {
    let net = Net::new(3);
    let (one, two) = (Node::start(&net, 1).await, Node::start(&net, 2).await);
    let of_state = net.artifacts(3).keep(Bytes::from_static(b"one")).await.expect("kept");
    let of_history = net.artifacts(3).keep(Bytes::from_static(b"two")).await.expect("kept");
    one.job(1, artifact(of_state)).await;
    until("the state's artifact is fetched", async || net.having(of_state).await.contains(&MemberId(1))).await;
    // Another member's history contains a job with an artifact that this history has not seen.
    one.job(2, artifact(of_history)).await;
    two.miss(&one).await;
    until("history is whole", async || two.gaps().is_empty()).await;
    let complete = two.service.completeness().await;
    assert!(complete.history && complete.artifacts, "{complete:?}");
    assert!(net.having(of_history).await.contains(&MemberId(2)));
    // A file that was lost with a disk is fetched again by the next full pass, or before that when it is read.
    std::fs::remove_file(net.path(2, of_history)).expect("removable");
    assert_eq!(two.service.artifact(of_history).await.expect("read"), "two");
}

#[tokio::test]
async fn an_artifact_that_is_nowhere_keeps_nobody_from_being_complete() {
    let net = Net::new(2);
    let (one, _two) = (Node::start(&net, 1).await, Node::start(&net, 2).await);
    one.job(1, artifact(Digest([9; 32]))).await;
    assert!(one.service.completeness().await.artifacts);
    net.cut(&[2]);
    assert!(!one.service.completeness().await.artifacts, "the other one may have it");
}

#[tokio::test]
async fn what_nothing_refers_to_is_collected_and_nothing_else() {
    let net = Net::holding(1, Duration::from_secs(2));
    net.vote(vec![set(&[1])]);
    let one = Node::start(&net, 1).await;
    let store = async |text: &'static str| {
        one.service.artifacts().store(Bytes::from_static(text.as_bytes())).await.expect("stored")
    };
    let (of_state, of_history, garbage) = (store("one").await, store("two").await, store("six").await);
    one.job(1, artifact(of_history)).await;
    one.prune().await;
    one.job(2, artifact(of_state)).await;
    until("garbage is collected", async || net.having(garbage).await.is_empty()).await;
    // An artifact that is stored later is collected as well. By then, all artifacts without references have been
    // removed.
    let later = store("later").await;
    until("later garbage is collected", async || net.having(later).await.is_empty()).await;
    assert_eq!(one.service.artifact(of_state).await.expect("kept"), "one");
    assert_eq!(one.service.artifact(of_history).await.expect("kept"), "two");
    assert!(one.found(1).await.expect("answered"));
}

#[tokio::test]
async fn a_submission_that_is_there_already_is_not_made_again() {
    let net = Net::new(1);
    let one = Node::start(&net, 1).await;
    let submission =
        |input: &'static [u8]| Submission::new("nobody".parse().expect("a name"), Bytes::from_static(input));
    let submit = async |input: &'static [u8]| {
        one.service.shared.jobs.submit_as(&caller(), &submission(input), Some(JobId(7))).await.expect("taken")
    };
    assert_eq!(submit(b"{}").await, JobId(7));
    // Proposed again after a change of leadership, when the request id was already forgotten.
    assert_eq!(submit(b"{}").await, JobId(7));
    assert_eq!(one.service.handle().applied().jobs_total(), 1);
    // Another job that drew the same id is not a repeat.
    assert_ne!(submit(b"[]").await, JobId(7));
    assert_eq!(one.service.handle().applied().jobs_total(), 2);
}

#[tokio::test]
async fn a_log_whose_lines_nobody_can_tell_at_the_moment_does_not_end() {
    let net = Net::new(2);
    let (one, two) = (Node::start(&net, 1).await, Node::start(&net, 2).await);
    one.job(1, inline()).await;
    let job = one.service.handle().applied().job(JobId(1)).expect("it ended").clone();
    // The log lines are stored at the other member, which is cut off.
    let said = Bytes::from_static(br#"[{"attempt":1,"number":1,"text":"hello"}]"#);
    let stream = artifact(net.artifacts(1).keep(said).await.expect("kept"));
    two.remember(Job { stream: Some(Box::new(stream)), ..Job::clone(&job) }).await;
    net.cut(&[1]);
    let mut reader = two.service.follow_logs(&caller(), JobId(1), None, false).await.expect("a job");
    {
        let next = reader.next();
        tokio::pin!(next);
        let early = tokio::time::timeout(Duration::from_millis(500), &mut next).await;
        assert!(early.is_err(), "it ended without its lines: {early:?}");
        net.cut(&[]);
        let Some(LogOutput::Lines(lines)) = next.await else { panic!("the rest") };
        assert_eq!(lines.iter().map(|line| line.number).collect::<Vec<_>>(), [1]);
    }
    assert_eq!(reader.next().await, None);
}

#[tokio::test]
async fn a_job_that_was_never_leased_shows_no_lease() {
    let net = Net::new(1);
    let node = Node::start(&net, 1).await;
    node.job(1, inline()).await;
    let lease = |shown: &Shown| {
        let mut text = Vec::new();
        shown.write(&mut text, View::Full);
        let job: serde_json::Value = serde_json::from_slice(&text).expect("JSON");
        ["node", "epoch", "fencing_token", "attempt"].map(|name| job.get(name).cloned().unwrap_or_default())
    };
    let none = [json!(""), json!(null), json!(null), json!(0)];
    let job = node.service.job(&caller(), JobId(1), View::Full, Consistency::Linearizable).await.expect("there");
    assert_eq!(lease(&job), none);

    // A job that ran: its changes are derived from its final record, but its submission shows nothing of the run.
    let job = Job {
        id: JobId(2),
        started_at: Timestamp(1),
        node: Some("w1".parse().expect("a name")),
        attempt: Attempt(2),
        warm: true,
        ..Job::clone(job.job())
    };
    node.remember(job).await;
    let told = node.service.follow_job(&caller(), JobId(2), false).await.expect("there").so_far;
    let told: Vec<_> = told.iter().map(|change| lease(&Shown::inline(change.job.clone()))).collect();
    assert_eq!((told.len(), &told[0]), (3, &none));
    assert_eq!(told[1], [json!("w1"), json!(null), json!(null), json!(2)]);
}
