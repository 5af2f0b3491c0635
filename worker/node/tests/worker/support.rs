//! A controller simulated by the test, and builders for its messages.

use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use atlas_env::Env;
use atlas_package::{PackFile, pack_files};
use atlas_types::{
    Allocation, Assignment, Attempt, Delta, Digest, Failure, FencingToken, JobId, Level, Micros, Namespace, NodeEpoch,
    NodeId, Payload, PayloadBody, Report, ReportKind, ReportResult, StreamEvent, Usage,
};
use atlas_wire::convert::{digest_in, digest_out};
use atlas_wire::proto::worker::v1 as pb;
use atlas_wire::proto::worker::v1::worker_service_server::{WorkerService, WorkerServiceServer};
use atlas_wire::session::{Hello, ModelUses, ToLeader, ToWorker, Welcome};
use atlas_worker::{Options, Worker};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tokio_stream::{Stream, StreamExt};
use tonic::{Request, Response, Status, Streaming};

/// The time limit for every wait in these tests.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

type Chunks<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// The artifacts, and the channel for new sessions.
struct Door {
    artifacts: Arc<Mutex<BTreeMap<Digest, Vec<u8>>>>,
    sessions: mpsc::Sender<Session>,
    /// The number of transfers that break before one succeeds.
    broken: Arc<AtomicU32>,
}

#[tonic::async_trait]
impl WorkerService for Door {
    type SessionStream = Chunks<pb::SessionResponse>;
    type FetchPackageStream = Chunks<pb::FetchPackageResponse>;
    type FetchPayloadStream = Chunks<pb::FetchPayloadResponse>;

    async fn session(
        &self,
        request: Request<Streaming<pb::SessionRequest>>,
    ) -> Result<Response<Self::SessionStream>, Status> {
        let (to_worker, outgoing) = mpsc::channel::<ToWorker>(256);
        let session = Session {
            incoming: request.into_inner(),
            to_worker,
            renewals: true,
            events: Vec::new(),
            deltas: Vec::new(),
        };
        self.sessions.send(session).await.map_err(|_| Status::unavailable("the test is over"))?;
        Ok(Response::new(Box::pin(ReceiverStream::new(outgoing).map(|said| Ok(said.into())))))
    }

    async fn fetch_package(
        &self,
        request: Request<pb::FetchPackageRequest>,
    ) -> Result<Response<Self::FetchPackageStream>, Status> {
        let chunks = self.chunks(&request.into_inner().digest)?;
        Ok(Response::new(Box::pin(tokio_stream::iter(chunks).map(|chunk| Ok(pb::FetchPackageResponse { chunk })))))
    }

    async fn fetch_payload(
        &self,
        request: Request<pb::FetchPayloadRequest>,
    ) -> Result<Response<Self::FetchPayloadStream>, Status> {
        let chunks = self.chunks(&request.into_inner().digest)?;
        Ok(Response::new(Box::pin(tokio_stream::iter(chunks).map(|chunk| Ok(pb::FetchPayloadResponse { chunk })))))
    }

    async fn store_payload(
        &self,
        request: Request<Streaming<pb::StorePayloadRequest>>,
    ) -> Result<Response<pb::StorePayloadResponse>, Status> {
        let mut bytes = Vec::new();
        let mut chunks = request.into_inner();
        while let Some(chunk) = chunks.next().await {
            bytes.extend_from_slice(&chunk?.chunk);
        }
        let (digest, size_bytes) = (atlas_package::digest_of(&bytes), bytes.len() as u64);
        self.artifacts.lock().expect("not poisoned").insert(digest, bytes);
        Ok(Response::new(pb::StorePayloadResponse { digest: digest_out(digest), size_bytes }))
    }
}

impl Door {
    fn chunks(&self, digest: &[u8]) -> Result<Vec<bytes::Bytes>, Status> {
        if self.broken.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok() {
            return Err(Status::unavailable("transport error"));
        }
        let digest = digest_in("digest", digest).map_err(|error| Status::invalid_argument(error.to_string()))?;
        let artifacts = self.artifacts.lock().expect("not poisoned");
        let bytes = artifacts.get(&digest).ok_or_else(|| Status::not_found("no such artifact"))?;
        Ok(bytes.chunks(64 << 10).map(bytes::Bytes::copy_from_slice).collect())
    }
}

/// A controller on a free port.
pub(crate) struct Controller {
    pub(crate) address: SocketAddr,
    artifacts: Arc<Mutex<BTreeMap<Digest, Vec<u8>>>>,
    sessions: mpsc::Receiver<Session>,
    /// The number of transfers that break before one succeeds.
    pub(crate) broken: Arc<AtomicU32>,
    server: tokio::task::AbortHandle,
    next_token: u64,
}

impl Drop for Controller {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Controller {
    #[expect(clippy::disallowed_methods, reason = "the test's own server")]
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        let artifacts = Arc::default();
        let (sender, sessions) = mpsc::channel(8);
        let broken = Arc::<AtomicU32>::default();
        let door = Door { artifacts: Arc::clone(&artifacts), sessions: sender, broken: Arc::clone(&broken) };
        let service = WorkerServiceServer::new(door).max_decoding_message_size(8 << 20);
        let serving = tonic::transport::Server::builder()
            .add_service(service)
            .serve_with_incoming(TcpListenerStream::new(listener));
        let server = tokio::spawn(serving).abort_handle();
        Self { address, artifacts, sessions, broken, server, next_token: 0 }
    }

    /// The next session that a worker opens.
    pub(crate) async fn session(&mut self) -> Session {
        in_time("a session", self.sessions.recv()).await.expect("the server runs")
    }

    /// The session in which a node says that it runs containers, not welcomed yet. An engine that answers late is told with another hello, and
    /// the session before it may be closed without one.
    pub(crate) async fn session_with_containers(&mut self) -> Session {
        loop {
            let mut session = self.session().await;
            let hello = session.next_if_open().await;
            let Some(ToLeader::Hello(hello)) = hello else { continue };
            if hello.inventory.labels.get("container").is_some_and(|told| told == "available") {
                return session;
            }
        }
    }

    /// The next session, welcomed.
    pub(crate) async fn welcomed(&mut self, leases: Vec<Assignment>) -> Session {
        let mut session = self.session().await;
        session.hello().await;
        session.welcome(leases).await;
        session
    }

    /// Publishes an agent made of files and returns the data for its assignments.
    pub(crate) fn publish(&mut self, files: &[(&str, &str)]) -> Agent {
        let file = |&(path, text): &(&str, &str)| PackFile {
            path: path.to_owned(),
            bytes: text.as_bytes().to_vec(),
            executable: text.starts_with("#!"),
        };
        let package = pack_files(files.iter().map(file).collect()).expect("a valid package");
        let (digest, package_bytes) = (package.digest, package.bytes.len() as u64);
        self.artifacts.lock().expect("not poisoned").insert(digest, package.bytes);
        let contract = package.contract;
        Agent { digest, package_bytes, contract }
    }

    /// A job of `agent`.
    pub(crate) fn assignment(&mut self, agent: &Agent, input: &str) -> Assignment {
        self.next_token += 1;
        let spec = agent.contract.run_spec();
        Assignment {
            namespace: Namespace::default_namespace(),
            job: JobId(self.next_token),
            token: FencingToken(self.next_token),
            attempt: Attempt(1),
            agent: agent.contract.name.clone(),
            version: agent.contract.version,
            digest: agent.digest,
            package_bytes: agent.package_bytes,
            input: self.payload(input),
            metadata: b"{\"team\":\"a\"}"[..].into(),
            allocation: Allocation::default(),
            startup_timeout: spec.timeouts.startup,
            execution_timeout: spec.timeouts.execution,
            needs_start: false,
            retry_count: 0,
            trace: None,
            spawn: None,
            lacks: None,
            budget_nanodollars: None,
            context: None,
            fork_steps: None,
            submitted_timeout: None,
            attachments: Default::default(),
            journal: None,
        }
    }

    /// Replaces the artifacts and returns the previous ones.
    pub(crate) fn replace_artifacts(&self, artifacts: BTreeMap<Digest, Vec<u8>>) -> BTreeMap<Digest, Vec<u8>> {
        std::mem::replace(&mut *self.artifacts.lock().expect("not poisoned"), artifacts)
    }

    /// A payload in the form that a controller sends.
    pub(crate) fn payload(&self, text: &str) -> Payload {
        if text.len() <= atlas_types::INLINE_BYTES_MAX {
            return Payload::inline(text.as_bytes());
        }
        let digest = atlas_package::digest_of(text.as_bytes());
        self.artifacts.lock().expect("not poisoned").insert(digest, text.as_bytes().to_vec());
        Payload { key_id: 0, body: PayloadBody::Artifact { digest, size_bytes: text.len() as u64 } }
    }

    /// The content of an artifact.
    pub(crate) fn artifact(&self, payload: &Payload) -> Vec<u8> {
        let PayloadBody::Artifact { digest, .. } = payload.body else { panic!("{payload:?} is inline") };
        self.artifacts.lock().expect("not poisoned").get(&digest).expect("it was stored").clone()
    }

    /// The text of a report's payload.
    pub(crate) fn text(&self, payload: &Payload) -> String {
        match &payload.body {
            PayloadBody::Inline(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            PayloadBody::Artifact { digest, .. } => {
                let artifacts = self.artifacts.lock().expect("not poisoned");
                String::from_utf8_lossy(artifacts.get(digest).expect("it was stored")).into_owned()
            }
        }
    }
}

/// A published agent.
pub(crate) struct Agent {
    pub(crate) digest: Digest,
    pub(crate) package_bytes: u64,
    pub(crate) contract: atlas_contract::Contract,
}

/// An open session from the leader's view.
pub(crate) struct Session {
    incoming: Streaming<pb::SessionRequest>,
    to_worker: mpsc::Sender<ToWorker>,
    /// Whether renewals are answered while the test waits for another frame.
    pub(crate) renewals: bool,
    /// Stream events that arrived while the test waited for another frame.
    pub(crate) events: Vec<StreamEvent>,
    /// Pieces of models' answers that came meanwhile.
    pub(crate) deltas: Vec<Delta>,
}

/// The end of an attempt, for comparison.
#[derive(Debug)]
pub(crate) enum End {
    Completed { output: Payload, usage: Usage, metadata: Option<String> },
    Failed { failure: Failure, output: Option<Payload>, cancelled: bool, metadata: Option<String> },
    NotHeld,
}

impl Session {
    pub(crate) async fn hello(&mut self) -> Hello {
        match self.next().await {
            ToLeader::Hello(hello) => hello,
            other => panic!("hello comes first, not {other:?}"),
        }
    }

    pub(crate) async fn welcome(&mut self, leases: Vec<Assignment>) {
        self.welcome_for(Duration::from_secs(10), leases).await;
    }

    pub(crate) async fn welcome_for(&mut self, ttl: Duration, leases: Vec<Assignment>) {
        let (session_ttl, controllers) = (Micros::from(ttl), Vec::new());
        self.say(ToWorker::Welcome(Welcome {
            epoch: NodeEpoch(1),
            session_ttl,
            leases,
            controllers,
            level: Level::CURRENT,
            hand_back: None,
        }))
        .await;
    }

    pub(crate) async fn grant(&mut self, assignment: &Assignment) {
        self.say(ToWorker::Grant(Box::new(assignment.clone()))).await;
    }

    pub(crate) async fn say(&mut self, said: ToWorker) {
        self.to_worker.send(said).await.expect("the stream is open");
    }

    /// The next frame of any kind, except that the worker uses no limited models.
    pub(crate) async fn next(&mut self) -> ToLeader {
        self.next_if_open().await.expect("the stream is open")
    }

    async fn next_if_open(&mut self) -> Option<ToLeader> {
        loop {
            let frame = in_time("a frame", self.incoming.next()).await?.expect("no error");
            let said = ToLeader::try_from(frame).expect("a well-formed frame");
            if said != ToLeader::AnnounceModels(ModelUses::default()) {
                return Some(said);
            }
        }
    }

    /// Reads until the worker closes the stream.
    pub(crate) async fn until_closed(&mut self) {
        in_time("the end of the stream", async { while let Some(Ok(_)) = self.incoming.next().await {} }).await;
    }

    /// The next report. Renewals and stream events before it are handled.
    pub(crate) async fn report(&mut self) -> (u64, Report) {
        loop {
            match self.next().await {
                ToLeader::Report { number, report } => return (number, report),
                ToLeader::Renew { number } if self.renewals => self.say(ToWorker::RenewAck { number }).await,
                ToLeader::StreamEvents { events, .. } => self.events.extend(events),
                ToLeader::Deltas { deltas, .. } => self.deltas.extend(deltas),
                _ => {}
            }
        }
    }

    /// The end of an attempt, acknowledged.
    pub(crate) async fn end(&mut self) -> (FencingToken, End) {
        loop {
            let (number, report) = self.report().await;
            self.say(ToWorker::ReportAck { number, result: ReportResult::Applied }).await;
            let Some(end) = End::of(report.kind) else { continue };
            return (report.token, end);
        }
    }

    /// Grants a job and waits for its end.
    pub(crate) async fn run(&mut self, assignment: &Assignment) -> End {
        self.grant(assignment).await;
        self.end().await.1
    }
}

impl End {
    /// None for a report of a start.
    pub(crate) fn of(report: ReportKind) -> Option<Self> {
        let text = |metadata: Option<Arc<[u8]>>| metadata.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        match report {
            ReportKind::Started => None,
            ReportKind::Completed { output, usage, metadata } => {
                Some(Self::Completed { output, usage, metadata: text(metadata) })
            }
            ReportKind::Failed { failure, output, cancelled, metadata, .. } => {
                Some(Self::Failed { failure, output, cancelled, metadata: text(metadata) })
            }
            ReportKind::NotHeld => Some(Self::NotHeld),
        }
    }

    /// The output of a completed attempt.
    pub(crate) fn output(&self, controller: &Controller) -> String {
        match self {
            Self::Completed { output, .. } => controller.text(output),
            other => panic!("not completed: {other:?}"),
        }
    }

    /// The error of a failed attempt.
    pub(crate) fn error(&self) -> String {
        match self {
            Self::Failed { failure, cancelled: false, .. } => failure.error.to_string(),
            other => panic!("not failed: {other:?}"),
        }
    }

    /// The metadata that a failed attempt added to the job.
    pub(crate) fn metadata(&self) -> Value {
        match self {
            Self::Failed { metadata, .. } => {
                metadata.as_ref().map_or(Value::Null, |text| serde_json::from_str(text).expect("metadata is JSON"))
            }
            other => panic!("not failed: {other:?}"),
        }
    }

    pub(crate) fn usage(&self) -> Usage {
        match self {
            Self::Completed { usage, .. } => *usage,
            other => panic!("not completed: {other:?}"),
        }
    }
}

/// A worker in this process, with its own directory.
pub(crate) struct Node {
    worker: Worker,
    pub(crate) dir: TempDir,
}

impl Node {
    pub(crate) async fn start(controller: &Controller) -> Self {
        Self::start_with(controller, |_| {}).await
    }

    pub(crate) async fn start_with(controller: &Controller, change: impl FnOnce(&mut Options)) -> Self {
        let dir = tempfile::tempdir().expect("temporary directory");
        let name = NodeId::new("n1").expect("valid name");
        let mut options = Options::new(name, vec![controller.address.to_string()], dir.path().to_owned());
        options.supervisor = Some(supervisor());
        // An engine that answers late changes the inventory, and so begins another session.
        options.container_engine = Some(NO_ENGINE.to_owned());
        // The simulated controller says nothing when a worker stops.
        options.farewell_max = Duration::ZERO;
        change(&mut options);
        let worker = Worker::start(options, Env::system()).await.expect("the worker starts");
        Self { worker, dir }
    }

    pub(crate) async fn shutdown(self) {
        self.shutdown_after(|| true).await;
    }

    /// Stops the worker and inspects its files before its directory is removed.
    pub(crate) async fn shutdown_after<T>(self, look: impl FnOnce() -> T) -> T {
        in_time("the shutdown", self.worker.shutdown()).await;
        look()
    }
}

/// A controller and the session of a node that has sent its hello.
pub(crate) struct Stage {
    pub(crate) controller: Controller,
    pub(crate) node: Node,
    pub(crate) session: Session,
}

impl Stage {
    pub(crate) async fn set() -> Self {
        let mut controller = Controller::start().await;
        let node = Node::start(&controller).await;
        let session = controller.welcomed(Vec::new()).await;
        Self { controller, node, session }
    }
}

/// The worker's program as node `n1` of a controller, with the client of a container engine. Whoever names a program that does not exist gets
/// one session: an engine that answers late begins another.
pub(crate) fn program(controller: &Controller, data_dir: &Path, engine: impl AsRef<OsStr>) -> Command {
    program_at(&supervisor(), controller, data_dir, engine)
}

/// The same with a copy of the worker's program.
pub(crate) fn program_at(at: &Path, controller: &Controller, data_dir: &Path, engine: impl AsRef<OsStr>) -> Command {
    let mut worker = Command::new(at);
    worker.args(["--node", "n1", "--log", "warn", "--controller", &controller.address.to_string(), "--data-dir"]);
    worker.arg(data_dir).arg("--container-engine").arg(engine);
    worker.env_remove("ATLAS_WORKER_CONFIG").stdin(Stdio::null());
    worker
}

/// The name of a container engine that no machine has.
pub(crate) const NO_ENGINE: &str = "no-engine";

/// The supervisor program of process trees.
pub(crate) fn supervisor() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_atlas-worker"))
}

/// Waits for a future with a time limit.
pub(crate) async fn in_time<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, future).await {
        Ok(value) => value,
        Err(_) => panic!("no {what} within {PATIENCE:?}"),
    }
}

/// Waits with a time limit until a condition holds.
pub(crate) async fn until(what: &str, patience: Duration, mut holds: impl FnMut() -> bool) {
    let waiting = async {
        while !holds() {
            #[expect(clippy::disallowed_methods, reason = "the test polls a condition of the outside world")]
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    assert!(tokio::time::timeout(patience, waiting).await.is_ok(), "{what}: not within {patience:?}");
}

/// An exec agent that runs a shell script.
pub(crate) fn shell(script: &str, more: &str) -> Vec<(&'static str, String)> {
    let contract =
        format!("agent:\n  name: sh\n  version: 1.0.0\n  provider:\n    type: exec\n    command: [sh, run.sh]\n{more}");
    vec![("agent.yaml", contract), ("run.sh", script.to_owned())]
}

/// A Python agent.
pub(crate) fn python(code: &str, more: &str) -> Vec<(&'static str, String)> {
    let contract = format!("agent:\n  name: py\n  version: 1.0.0\n{more}");
    vec![("agent.yaml", contract), ("agent.py", code.to_owned())]
}

impl Controller {
    pub(crate) fn publish_owned(&mut self, files: &[(&str, String)]) -> Agent {
        let files: Vec<_> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
        self.publish(&files)
    }
}

/// True, with a message, if there is no Python for tests.
pub(crate) fn without_python() -> bool {
    match atlas_worker::Python::find(None) {
        Ok(_) => false,
        Err(why) => {
            atlas_notice::skip(why);
            true
        }
    }
}
