//! A group of one with a service, webhooks and things that make events.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use atlas_env::{Clock, Env, SystemClock};
use atlas_history::{History, SqliteHistory};
use atlas_service::{
    ArtifactOptions, Artifacts, Caller, Consistency, Error, Followers, Limits, NoPeers, ObjectChange, Service,
};
use atlas_telemetry::Metrics;
use atlas_types::{
    Command, Door, EventSeq, Expect, Failure, FailureKind, JobId, MemberId, Namespace, Origin, Payload, Request,
    SubmitJob, Timestamp, Verdict,
};
use serde_json::{Value, json};

use crate::secrets::{Secret, Secrets};
use crate::{Parts, Webhooks};

/// What differs between tests.
pub(crate) struct Options {
    pub(crate) events_kept: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self { events_kept: 1_000 }
    }
}

pub(crate) struct Node {
    service: Service,
    env: Env,
    _history: Arc<dyn History>,
    _followers: Followers,
    _raft: atlas_raft::Service,
    _dir: tempfile::TempDir,
}

/// A clock on which waiting takes a fortieth of the time.
struct Hasty(SystemClock);

impl Clock for Hasty {
    fn wall(&self) -> Timestamp {
        self.0.wall()
    }

    fn monotonic(&self) -> Duration {
        self.0.monotonic()
    }

    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        self.0.sleep(duration / 40)
    }
}

/// Secrets of every name but one.
struct Known;

impl Secrets for Known {
    fn find(&self, name: &str) -> Option<Secret> {
        let known = name != "ATLAS_WEBHOOK_MISSING" && !name.ends_with("_PREVIOUS");
        known.then(|| Secret::new(format!("secret of {name}").into_bytes()))
    }
}

impl Node {
    pub(crate) async fn start(options: Options) -> Self {
        let (dir, env) = (tempfile::tempdir().expect("a temporary directory"), Env::system());
        let raft_options = atlas_raft::Options::new(dir.path().to_owned());
        let (handle, raft) = atlas_raft::start(raft_options, env.clone()).await.expect("starts");
        let history = atlas_history::Options {
            events_kept: options.events_kept,
            sync_interval: Duration::from_millis(5),
            gather_interval: Duration::from_millis(1),
            ..atlas_history::Options::new(dir.path().join("history.sqlite"))
        };
        let history = SqliteHistory::open(history, env.clone(), |_| ()).expect("opens");
        let history: Arc<dyn History> = Arc::new(history);
        let peers = Arc::new(NoPeers(MemberId(1)));
        let artifacts = ArtifactOptions::new(dir.path().join("artifacts"));
        let service = Service::new(atlas_service::Parts {
            handle,
            history: history.clone(),
            artifacts: Artifacts::new(artifacts, peers.clone(), env.clone()),
            peers,
            metrics: Metrics::new(),
            limits: Limits { events_recent_max: 2, ..Limits::default() },
            keys: None,
            authentication: None,
            audit: atlas_service::Audit::default(),
            issuers: Arc::new(atlas_service::NoIssuers),
            externals: Arc::new(atlas_service::NoExternals),
            stores: atlas_service::Stores::default(),
            env: env.clone(),
        });
        let followers = Followers::start(&service);
        Self { service, env, _history: history, _followers: followers, _raft: raft, _dir: dir }
    }

    /// Starts deliveries, as a leader that has just taken over does.
    pub(crate) fn deliver(&self) -> Webhooks {
        let env = Env { clock: Arc::new(Hasty(SystemClock::new())), ..self.env.clone() };
        let parts = Parts { service: self.service.clone(), secrets: Arc::new(Known), env };
        Webhooks::start(parts)
    }

    pub(crate) async fn webhook(&self, name: &str, spec: &Value) {
        self.webhook_in("default", name, spec).await;
    }

    pub(crate) async fn webhook_in(&self, namespace: &str, name: &str, spec: &Value) {
        self.put(namespace, "webhook", name, spec).await;
    }

    /// Makes an object, and so an event.
    pub(crate) async fn namespace(&self, name: &str) {
        self.put("default", "namespace", name, &json!({})).await;
    }

    async fn put(&self, namespace: &str, kind: &str, name: &str, spec: &Value) {
        let put = self.service.put_object(&caller(namespace), &change(kind, name), BTreeMap::new(), spec).await;
        put.expect("it is accepted");
    }

    pub(crate) async fn delete_webhook(&self, namespace: &str, name: &str) {
        self.service.delete_object(&caller(namespace), &change("webhook", name)).await.expect("it is deleted");
    }

    /// The number of the event that made a namespace.
    pub(crate) fn event_of(&self, name: &str) -> u64 {
        let kind = "namespace".parse().expect("a word");
        let state = self.service.handle().applied();
        let found = state.objects_of_kind(&kind).find(|found| found.key.name.as_str() == name).map(|found| found.uid.0);
        found.expect("it exists")
    }

    /// A job that ends at once, because no agent has its name.
    pub(crate) async fn job(&self, id: u64, input_bytes: usize) {
        let input = self.service.payload(format!("\"{}\"", "x".repeat(input_bytes)).into()).await.expect("stored");
        self.propose(vec![job(id, input)]).await;
    }

    async fn propose(&self, commands: Vec<Command>) {
        let request = |command| Request { origin: Origin::duty(Namespace::default_namespace()), command };
        let requests = commands.into_iter().map(request).collect();
        let outcomes = self.service.handle().propose(requests).await.expect("applied");
        assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
    }

    /// The status of a webhook in `default`, once it holds.
    pub(crate) async fn status(&self, name: &str, holds: impl Fn(&Value) -> bool) -> Value {
        let mut found = Value::Null;
        for _ in 0..3_000 {
            let object = self.service.object(&caller("default"), "webhook", name, Consistency::Stale).await;
            found = object.expect("it exists").value.status.map_or(Value::Null, Value::Object);
            if holds(&found) {
                return found;
            }
            self.env.clock.sleep(Duration::from_millis(10)).await;
        }
        panic!("in vain, the status is {found}");
    }

    /// Makes so many events that the history drops the first ones. Returns the last of those.
    pub(crate) async fn lose_events(&self) -> u64 {
        // The history looks for events to drop once in 4,096 events; a job has three.
        for batch in 0..3 {
            let jobs = (1..=500).map(|id| job(1_000 * batch + id, Payload::inline(b"{}")));
            self.propose(jobs.collect()).await;
        }
        for _ in 0..3_000 {
            let namespace = Namespace::default_namespace();
            if let Err(Error::EventsGone { earliest }) = self.service.follow_namespace(&namespace, EventSeq(1)).await {
                return earliest.0 - 1;
            }
            self.env.clock.sleep(Duration::from_millis(10)).await;
        }
        panic!("all events are still there");
    }

    pub(crate) fn scrape(&self) -> String {
        self.service.metrics().render()
    }
}

fn job(id: u64, input: Payload) -> Command {
    let failure = Failure { kind: FailureKind::NoAgent, error: "no such agent".into() };
    let (agent, verdict) = ("nobody".parse().expect("a name"), Verdict::Refused { pin: None, failure });
    Command::SubmitJob(SubmitJob::new(JobId(id), agent, verdict, input))
}

fn caller(namespace: &str) -> Caller {
    Caller::anonymous(Door::Local).in_namespace(namespace).expect("a name")
}

fn change(kind: &str, name: &str) -> ObjectChange {
    ObjectChange { kind: kind.into(), name: name.into(), expect: Expect::Any, dry_run: false }
}
