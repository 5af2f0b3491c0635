//! A controller in a temporary directory, and a worker that only sends and receives frames.

use std::sync::Arc;
use std::time::Duration;

use atlas_env::Env;
use atlas_state::State;
use atlas_types::{
    AgentKind, AgentPin, Assignment, Attempt, BootId, CancelJob, Command, Digest, Door, Effects, FencingToken,
    HandBack, Inventory, JobId, Level, Micros, Namespace, NodeEpoch, NodeId, Origin, Payload, PayloadBody, Principal,
    RegisterAgent, Report, ReportKind, Request, RetryRule, RunSpec, StreamEvent, StreamKind, SubmitJob, Timeouts,
    Timestamp, Usage, Verdict, Version,
};
use atlas_wire::limits::CONTROLLER_FRAME_BYTES_MAX;
use atlas_wire::proto::worker::v1::worker_service_client::WorkerServiceClient;
use atlas_wire::proto::worker::v1::{SessionRequest, SessionResponse};
use atlas_wire::session::{Hello, ToLeader, ToWorker, Welcome};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;
use tonic::transport::Channel;

use crate::watch::Watch;
use crate::worker_door::hub::Program;
use crate::{Controller, Options};

/// The time limit for every wait in these tests, even on a busy machine.
const SOON: Duration = Duration::from_secs(60);
/// The workers in these tests do not renew, so their sessions must outlive every test.
const SESSION_TTL: Duration = Duration::from_secs(600);
/// The number of large submissions in one request, so that a test waits for one sync and not for each.
const TOGETHER: usize = 12;

pub(super) async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(SOON, what).await.expect("it happens soon")
}

pub(super) type Client = WorkerServiceClient<Channel>;

/// A controller with the agents `plain` and `once`.
pub(super) struct Cluster {
    pub(super) controller: Controller,
    dir: tempfile::TempDir,
}

fn agent(name: &str, effects: Effects) -> Command {
    Command::RegisterAgent(RegisterAgent {
        name: name.parse().expect("a name"),
        version: Version { major: 1, minor: 0, patch: 0 },
        digest: Digest([1; 32]),
        package_bytes: 10,
        kind: AgentKind::Agent,
        capabilities: Vec::new(),
        contract: Payload::inline(b"{}"),
        spec: Arc::new(RunSpec {
            demand: Default::default(),
            effects,
            max_attempts: 3,
            concurrency: None,
            retry: RetryRule::default(),
            timeouts: Timeouts { queue: None, startup: Micros::from_secs(5), execution: Micros::from_secs(60) },
            carried: false,
            durable: false,
            spawns: false,
            requires: Vec::new(),
            secrets: Vec::new(),
            model: None,
            other_models: Vec::new(),
            servers: Vec::new(),
            rate: None,
            per_key: None,
            failures_max: None,
        }),
        labels: Default::default(),
        immutable: false,
    })
}

/// Registers an agent without particular features.
pub(super) fn plain_agent(name: &str) -> Command {
    agent(name, Effects::Idempotent)
}

/// Submits a job with an empty input.
pub(super) fn plain_submission(job: u64, agent: &str) -> Command {
    submission(job, agent, Payload::inline(b"{}"))
}

/// Registers an agent that declares secrets.
pub(super) fn agent_with_secrets(name: &str, secrets: &[&str]) -> Command {
    let Command::RegisterAgent(command) = agent(name, Effects::Idempotent) else { unreachable!("an agent") };
    let secrets = secrets.iter().map(|secret| (*secret).to_owned()).collect();
    let spec = Arc::new(RunSpec { secrets, ..(*command.spec).clone() });
    Command::RegisterAgent(RegisterAgent { spec, ..command })
}

fn submission(job: u64, agent: &str, input: Payload) -> Command {
    let pin = AgentPin { version: Version { major: 1, minor: 0, patch: 0 }, digest: Digest([1; 32]) };
    let agent = agent.parse().expect("a name");
    Command::SubmitJob(SubmitJob::new(JobId(job), agent, Verdict::Accepted(pin), input))
}

impl Cluster {
    pub(super) async fn start() -> Self {
        Self::start_with(|_| {}).await
    }

    /// A controller with other options.
    pub(super) async fn start_with(change: impl FnOnce(&mut Options)) -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let any = "127.0.0.1:0".parse().expect("an address");
        let mut options =
            Options { http: any, grpc: any, session_ttl: SESSION_TTL, ..Options::new(dir.path().to_owned()) };
        change(&mut options);
        let controller = soon(Controller::start(options, Env::system())).await.expect("starts");
        let cluster = Self { controller, dir };
        cluster.does(agent("plain", Effects::Idempotent)).await;
        cluster.does(agent("once", Effects::Once)).await;
        cluster
    }

    /// Proposes a command that must be accepted.
    pub(super) async fn does(&self, command: Command) {
        self.does_all(vec![command]).await;
    }

    /// Proposes commands that must be accepted.
    pub(super) async fn does_all(&self, commands: Vec<Command>) {
        self.does_all_as(&Principal::local(), commands).await;
    }

    /// Submits a job of `plain` for somebody else.
    pub(super) async fn submit_as(&self, principal: &Principal, job: u64) {
        self.does_all_as(principal, vec![submission(job, "plain", Payload::inline(b"{}"))]).await;
    }

    async fn does_all_as(&self, principal: &Principal, commands: Vec<Command>) {
        let origin = Origin {
            namespace: Namespace::default_namespace(),
            principal: principal.clone(),
            door: Door::Local,
            request_id: None,
            body_hash: 0,
            trace: None,
        };
        let requests =
            commands.into_iter().map(|command| Request { origin: origin.clone(), command }).collect::<Vec<_>>();
        let answers = soon(self.controller.service().handle().propose(requests)).await;
        assert!(answers.as_ref().is_ok_and(|answers| answers.iter().all(Result::is_ok)), "{answers:?}");
    }

    pub(super) async fn submit(&self, job: u64, agent: &str) {
        self.does(submission(job, agent, Payload::inline(b"{}"))).await;
    }

    /// Submits a job that carries the credential of its caller.
    pub(super) async fn submit_with_bearer(&self, job: u64) {
        let Command::SubmitJob(command) = submission(job, "plain", Payload::inline(b"{}")) else { return };
        self.does(Command::SubmitJob(SubmitJob { bearer: true, ..command })).await;
    }

    /// Submits jobs of `plain` with the largest inline inputs.
    pub(super) async fn submit_large(&self, jobs: std::ops::RangeInclusive<u64>) {
        let jobs: Vec<_> = jobs.collect();
        for together in jobs.chunks(TOGETHER) {
            let input = |job: u64| Payload::inline(format!("\"{job:0>64998}\"").as_bytes());
            self.does_all(together.iter().map(|&job| submission(job, "plain", input(job))).collect()).await;
        }
    }

    pub(super) async fn cancel(&self, job: u64) {
        self.does(Command::CancelJob(CancelJob { job: JobId(job), running: true })).await;
    }

    /// A job's status and result.
    pub(super) fn job(&self, job: u64) -> String {
        let state = self.controller.service().handle().applied();
        let job = state.job(JobId(job)).expect("a job");
        format!("{} {:?} {:?}", job.status.as_str(), job.output, job.stream)
    }

    /// Why a job failed.
    pub(super) fn failure(&self, job: u64) -> String {
        let state = self.controller.service().handle().applied();
        let failure = state.job(JobId(job)).and_then(|job| job.failure.clone()).expect("it failed");
        format!("{:?}: {}", failure.kind, failure.error)
    }

    /// A separate door that does not follow the log.
    pub(super) fn door(&self) -> Arc<super::super::Door> {
        super::super::Door::new(super::super::Parts {
            service: self.controller.service().clone(),
            env: Env::system(),
            session_ttl: Duration::from_secs(1),
            tls: None,
            watch: Watch::new(Door::Worker),
        })
    }

    /// The number of events so far. Entries without events can be written at any time, so entries are not counted.
    /// The file of an artifact.
    pub(super) fn artifact(&self, payload: &Payload) -> std::path::PathBuf {
        let PayloadBody::Artifact { digest, .. } = payload.body else { panic!("{payload:?} is no artifact") };
        let hex = digest.hex();
        self.dir.path().join("artifacts").join(&hex[..2]).join(&hex[2..])
    }

    pub(super) fn events(&self) -> u64 {
        self.controller.service().handle().applied().event_seq().0
    }

    pub(super) fn entries(&self) -> u64 {
        self.controller.service().handle().applied().seq().0
    }

    pub(super) async fn client(&self) -> Client {
        let address = format!("http://{}", self.controller.grpc_addr());
        soon(Client::connect(address)).await.expect("connects")
    }

    /// A worker that has sent its hello.
    pub(super) async fn worker(&self, node: &str, boot: u128) -> Worker {
        let mut worker = self.stranger().await;
        worker.say(hello(node, boot)).await;
        worker
    }

    /// A worker with `places` places that has sent its hello.
    pub(super) async fn worker_of(&self, node: &str, boot: u128, places: u32) -> Worker {
        let mut worker = self.stranger().await;
        worker.say(hello_with(node, boot, places)).await;
        worker
    }

    /// The first applied state of which this is so.
    pub(super) async fn until(&self, is_so: impl Fn(&State) -> bool) -> State {
        let handle = self.controller.service().handle();
        let mut batches = handle.subscribe();
        let found = async {
            loop {
                let state = handle.applied();
                if is_so(&state) {
                    return state;
                }
                // After a gap the state is read again as well.
                let _ = batches.recv().await;
            }
        };
        soon(found).await
    }

    /// A new process of a node whose worker has just gone, and its welcome. It is refused until the controller knows of that.
    pub(super) async fn successor(&self, node: &str, boot: u128) -> (Worker, String) {
        let tried = async {
            loop {
                let mut worker = self.worker(node, boot).await;
                let heard = worker.hears().await;
                if heard.starts_with("welcome") {
                    return (worker, heard);
                }
                assert!(heard.contains("renews its session"), "{heard}");
                tokio::task::yield_now().await;
            }
        };
        soon(tried).await
    }

    /// A stream on which nothing has been sent.
    pub(super) async fn stranger(&self) -> Worker {
        Worker::open(self.client().await).await.expect("a stream")
    }
}

/// The identity of the process that `worker("n1", 1)` simulates.
pub(super) fn identity() -> (NodeId, NodeEpoch, BootId) {
    ("n1".parse().expect("a name"), NodeEpoch(1), BootId(1))
}

/// A worker process without leases.
pub(super) fn program(level: Level, private: bool) -> Program {
    Program { stream: 1, level, private, held: Default::default(), address: "127.0.0.1:1".into() }
}

pub(super) fn hello(node: &str, boot: u128) -> ToLeader {
    hello_with(node, boot, 2)
}

fn hello_with(node: &str, boot: u128, places: u32) -> ToLeader {
    let inventory = Inventory { places, ..Inventory::default() };
    let node = node.parse().expect("a name");
    let (level, leases) = (Level::CURRENT, Vec::new());
    ToLeader::Hello(Hello { node, boot_id: BootId(boot), inventory, level, leases, previous: None })
}

pub(super) fn report(number: u64, job: u64, token: u64, kind: ReportKind) -> ToLeader {
    ToLeader::Report { number, report: Report { job: JobId(job), token: FencingToken(token), kind } }
}

pub(super) fn completed(output: &str) -> ReportKind {
    ReportKind::Completed { output: Payload::inline(output.as_bytes()), usage: Usage::default(), metadata: None }
}

pub(super) fn line(job: u64, number: u64, text: &str) -> ToLeader {
    let event = StreamEvent {
        number,
        at: Timestamp(1_000_000),
        kind: StreamKind::Log,
        level: "info".to_owned(),
        text: text.to_owned(),
    };
    ToLeader::StreamEvents { job: JobId(job), attempt: Attempt(1), events: vec![event] }
}

/// A worker's open stream.
pub(super) struct Worker {
    frames: mpsc::Sender<SessionRequest>,
    answers: Streaming<SessionResponse>,
}

impl Worker {
    /// Opens a stream.
    pub(super) async fn open(client: Client) -> Result<Self, tonic::Status> {
        let (frames, sent) = mpsc::channel(16);
        let mut client = client.max_decoding_message_size(CONTROLLER_FRAME_BYTES_MAX);
        let answers = soon(client.session(ReceiverStream::new(sent))).await?;
        Ok(Self { frames, answers: answers.into_inner() })
    }

    /// The lease of the next frame, which must be a grant.
    pub(super) async fn grant(&mut self) -> Assignment {
        match self.frame().await {
            ToWorker::Grant(assignment) => *assignment,
            other => panic!("{other:?}"),
        }
    }

    pub(super) async fn say(&mut self, said: ToLeader) {
        self.say_frame(said.into()).await;
    }

    pub(super) async fn say_frame(&mut self, frame: SessionRequest) {
        // If the door has closed the stream, the received frames show it.
        let _ = soon(self.frames.send(frame)).await;
    }

    /// The next frame, which must be a welcome.
    pub(super) async fn welcome(&mut self) -> Welcome {
        match self.frame().await {
            ToWorker::Welcome(welcome) => welcome,
            other => panic!("{other:?}"),
        }
    }

    /// The next frame.
    pub(super) async fn frame(&mut self) -> ToWorker {
        let frame = soon(self.answers.message()).await.expect("it is sent").expect("a frame");
        ToWorker::try_from(frame).expect("well-formed")
    }

    /// The next frame as text, or how the stream ended.
    pub(super) async fn hears(&mut self) -> String {
        match soon(self.answers.message()).await {
            Ok(Some(frame)) => words(ToWorker::try_from(frame).expect("well-formed")),
            Ok(None) => "end".to_owned(),
            Err(status) => format!("{:?}: {}", status.code(), status.message()),
        }
    }
}

fn words(said: ToWorker) -> String {
    match said {
        ToWorker::Welcome(welcome) => {
            let leases: Vec<_> = welcome.leases.iter().map(|lease| (lease.job.0, lease.token.0)).collect();
            let back = welcome.hand_back.map(|_| format!(", {}", hand_back(welcome.hand_back)));
            let (epoch, ttl) = (welcome.epoch, welcome.session_ttl.as_duration());
            format!("welcome epoch {epoch} ttl {ttl:?} leases {leases:?}{}", back.unwrap_or_default())
        }
        ToWorker::HandBack(by) => hand_back(by),
        ToWorker::Grant(lease) => format!(
            "grant job {} token {} attempt {} of {} {} needs_start {}",
            lease.job.0, lease.token, lease.attempt, lease.agent, lease.version, lease.needs_start
        ),
        ToWorker::Cancel { job, token, .. } => format!("cancel job {} token {token}", job.0),
        ToWorker::Revoke { job, token } => format!("revoke job {} token {token}", job.0),
        ToWorker::ReportAck { number, result } => format!("report {number} {result:?}"),
        ToWorker::StreamAck { job, attempt, number } => format!("stream of {} attempt {attempt} to {number}", job.0),
        other => format!("{other:?}"),
    }
}

fn hand_back(by: Option<HandBack>) -> String {
    match by {
        // Rounded up, because some time may have passed when a stream begins.
        Some(HandBack { deadline: Some(by) }) => format!("hand back within {} s", by.within.0.div_ceil(1_000_000)),
        Some(HandBack { deadline: None }) => "hand back in its own time".to_owned(),
        None => "hand back nothing".to_owned(),
    }
}
