//! One connection to a server: the handshake, its tools, calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use atlas_env::Env;
use atlas_mcp_spec::{RemoteTool, TOOLS_MAX, Transport, Verdict};
use rmcp::model::{
    CallToolRequestParams, ClientCapabilities, ClientConfig, Implementation, PaginatedRequestParams, ProtocolVersion,
    RequestParamsMeta as _, Tool,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, ClientServiceExt as _, NotificationContext, RunningService,
    ServiceError,
};
use rmcp::{ClientHandler, RoleClient};
use serde_json::{Map, Value};

use crate::bounded::Bounded;
use crate::bounds::{
    CLOSE_MAX, DEFINITIONS_BYTES_MAX, MESSAGES_MAX, PAGES_MAX, PINNED_AGE_MAX, ROUNDS_MAX, TOOLS_AGE_MAX,
};
use crate::error::{McpError, McpErrorKind};
use crate::http::Session;
use crate::lines::Lines;
use crate::network::Network;
use crate::outcome::CallResult;
use crate::program::{Launcher, Program};
use crate::target::Target;
use crate::tools::{Complaints, Known, Listing};
use crate::{era, http, reading, sse};

/// The connection of a target that is not shared.
pub(crate) type Own = Arc<tokio::sync::Mutex<Option<Arc<Connection>>>>;

/// What the server may ask of this side: nothing. It can only say that its tools have changed.
#[derive(Clone, Default)]
struct Handler {
    changes: Arc<AtomicU64>,
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let name = Implementation::new("atlas", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), name)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.changes.fetch_add(1, Ordering::SeqCst);
    }
}

type Service = RunningService<RoleClient, Handler>;

/// An open connection.
pub(crate) struct Connection {
    service: Service,
    /// Whether the connection ended because the server sent too many messages.
    flooded: Arc<AtomicBool>,
    tools: Known,
    session: Arc<Session>,
    /// Whether this connection ends when the server is started again, or when its session is forgotten.
    is_session: bool,
    /// Microseconds of the monotonic clock at the last use.
    used: AtomicU64,
    /// Calls that are under way.
    open: AtomicUsize,
    /// Ends the program of the server.
    _keeper: Option<Box<dyn Send + Sync>>,
}

impl Connection {
    /// Opens a connection.
    pub(crate) async fn open(
        env: &Env,
        network: &Network,
        target: &Target,
        launcher: &dyn Launcher,
    ) -> Result<Self, McpError> {
        let handler = Handler::default();
        let (tools, flooded) = (Known::new(Arc::clone(&handler.changes)), Arc::default());
        let mut session = Arc::<Session>::default();
        let (service, keeper) = match target.spec.transport {
            Transport::Http => {
                let service;
                (service, session) = Self::http((env, network), target, handler, &flooded).await?;
                (service, None)
            }
            Transport::Sse => {
                let transport = Bounded::new(sse::connect(env, network, target).await?, env, &flooded);
                (
                    Self::begun(
                        target,
                        handler.serve_with_lifecycle(transport, ClientLifecycleMode::Initialize).await,
                    )?,
                    None,
                )
            }
            Transport::Stdio => Self::stdio(env, target, (launcher, handler), &flooded).await?,
        };
        check_version(&target.name, &service)?;
        let used = AtomicU64::new(micros(env));
        Ok(Self {
            service,
            flooded,
            tools,
            is_session: target.spec.transport != Transport::Http || session.opened.load(Ordering::SeqCst),
            session,
            used,
            open: AtomicUsize::new(0),
            _keeper: keeper,
        })
    }

    /// Opens a connection over HTTP: in the era that the server was last known to speak, then in the other one.
    async fn http(
        (env, network): (&Env, &Network),
        target: &Target,
        handler: Handler,
        flooded: &Arc<AtomicBool>,
    ) -> Result<(Service, Arc<Session>), McpError> {
        let url = target.spec.url.as_deref().unwrap_or_default();
        let (known, mut failed) = (network.eras.of(url), Vec::new());
        while let Some((era, limit)) = era::next(known, &failed) {
            // Each try has its own: a session that the first one opened is not that of the second.
            let session = Arc::default();
            let transport = Bounded::new(http::transport(env, network, target, &session)?, env, flooded);
            let late = async {
                match limit {
                    Some(limit) => env.clock.sleep(limit).await,
                    None => std::future::pending().await,
                }
            };
            let error = tokio::select! {
                biased;
                begun = handler.clone().serve_with_lifecycle(transport, era.lifecycle()) => match begun {
                    Ok(service) => {
                        network.eras.keep(url, era);
                        return Ok((service, session));
                    }
                    Err(error) => McpError::handshake(&target.name, &error),
                },
                () = late => McpError::timeout(&target.name, "answer", limit.unwrap_or_default()),
            };
            failed.push((era, error));
        }
        Err(era::told(&target.name, failed))
    }

    async fn stdio(
        env: &Env,
        target: &Target,
        (launcher, handler): (&dyn Launcher, Handler),
        flooded: &Arc<AtomicBool>,
    ) -> Result<(Service, Option<Box<dyn Send + Sync>>), McpError> {
        let variables: Vec<_> = target.env.iter().map(|(name, value)| (name.as_str(), value)).collect();
        let program = Program {
            server: &target.name,
            command: target.spec.command.as_deref().unwrap_or_default(),
            args: &target.args,
            env: &variables,
            directory: target.spec.cwd.as_deref(),
            rights: target.rights.as_deref(),
        };
        let launched = launcher.launch(program).await.map_err(|why| {
            McpError::new(McpErrorKind::Unreachable, format!("the MCP server {} does not start: {why}", target.name))
        })?;
        let transport = Bounded::new(Lines::new(launched.stdout, launched.stdin), env, flooded);
        let begun = handler.serve_with_lifecycle(transport, ClientLifecycleMode::Initialize).await;
        let service = Self::begun(target, begun).map_err(|error| match (launched.complaint)() {
            Some(complaint) => McpError::new(error.kind, format!("{}; it said: {complaint}", error.text)),
            None => error,
        });
        Ok((service?, Some(launched.keeper)))
    }

    fn begun(target: &Target, begun: Result<Service, ClientInitializeError>) -> Result<Service, McpError> {
        begun.map_err(|error| McpError::handshake(&target.name, &error))
    }

    /// False once the connection has ended.
    pub(crate) fn is_open(&self) -> bool {
        let is_forgotten = self.session.forgotten.load(Ordering::SeqCst);
        !is_forgotten && !self.service.is_closed() && !self.service.peer().is_transport_closed()
    }

    /// Since when the connection is unused; none while a call is under way.
    pub(crate) fn idle_since(&self) -> Option<Duration> {
        (self.open.load(Ordering::Relaxed) == 0).then(|| Duration::from_micros(self.used.load(Ordering::Relaxed)))
    }

    /// The tools of the server, as it listed them after `since`. They are read again after the server said that they have changed.
    pub(crate) async fn tools(&self, env: &Env, target: &Target, since: Duration) -> Result<Arc<Listing>, McpError> {
        let _in_use = InUse::new(self, env);
        if let Some(known) = self.tools.after(since) {
            return Ok(known);
        }
        let asked = self.tools.ask(env.clock.monotonic());
        let listing = self.list(&target.name).await?;
        for why in &listing.left_out {
            tracing::warn!(server = target.name, "left out of the tools of an MCP server: {why}");
        }
        let listing = Arc::new(listing);
        self.tools.keep(asked, &listing);
        Ok(listing)
    }

    /// Since when a list must have been asked for to count now. Without a session nothing tells that a server was started again, so the
    /// tools of a pinned one are compared before each call.
    pub(crate) fn fresh_since(&self, env: &Env, target: &Target) -> Duration {
        let age = match (target.spec.pinned, self.is_session) {
            (false, _) => TOOLS_AGE_MAX,
            (true, true) => PINNED_AGE_MAX,
            (true, false) => Duration::ZERO,
        };
        env.clock.monotonic().saturating_sub(age)
    }

    /// Refuses a tool of a pinned server that is not the accepted one.
    pub(crate) async fn admit(&self, env: &Env, target: &Target, tool: &str) -> Result<(), McpError> {
        let (spec, server) = (&target.spec, &target.name);
        if !spec.pinned {
            return Ok(());
        }
        let listing = self.tools(env, target, self.fresh_since(env, target)).await?;
        let why = match listing.iter().find(|listed| listed.name == tool).map(|listed| spec.pins.verdict(listed)) {
            Some(Verdict::Accepted) => return Ok(()),
            Some(Verdict::New) => "is held back because it is new",
            Some(Verdict::Changed) => "is held back because it is changed",
            None => {
                let text = format!("the tool {tool} of the MCP server {server} does not exist");
                return Err(McpError::new(McpErrorKind::Refused, text));
            }
        };
        let text = format!(
            "the tool {tool} of the MCP server {server} {why}; accept it: atlasctl mcp accept-changes {server}"
        );
        Err(McpError::new(McpErrorKind::Refused, text))
    }

    async fn list(&self, server: &str) -> Result<Listing, McpError> {
        let refused = |why: String| McpError::new(McpErrorKind::Protocol, format!("the MCP server {server} {why}"));
        let (mut tools, mut complaints) = (Vec::<RemoteTool>::new(), Complaints::default());
        let (mut cursor, mut bytes) = (None::<String>, 0);
        for number in 1..=PAGES_MAX {
            let asked =
                cursor.as_ref().map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor.clone())));
            let page = match self.service.list_tools(asked).await.map_err(|error| self.failed(server, &error)) {
                Ok(page) => page,
                // A page that the server cannot give takes no tools of others away.
                Err(error) if number > 1 && error.kind == McpErrorKind::Refused => {
                    let ended = format!("page {number} and what follows: {}", error.text);
                    return Ok(Listing { tools, left_out: complaints.lines(Some(ended)) });
                }
                Err(error) => return Err(error),
            };
            complaints.extend(reading::left_out(&page));
            for tool in page.tools {
                let tool = remote(tool);
                bytes += tool.definition().to_string().len();
                if bytes > DEFINITIONS_BYTES_MAX {
                    return Err(refused(format!("describes its tools with more than {DEFINITIONS_BYTES_MAX} bytes")));
                }
                if tools.iter().any(|other| other.name == tool.name) {
                    complaints.push(|| format!("tool {:?} is listed twice; the first one counts", tool.name));
                } else {
                    tools.push(tool);
                }
                if tools.len() > TOOLS_MAX {
                    return Err(refused(format!("has more than {TOOLS_MAX} tools")));
                }
            }
            let next = page.next_cursor.filter(|next| !next.is_empty());
            if next.is_none() {
                return Ok(Listing { tools, left_out: complaints.lines(None) });
            }
            if next == cursor {
                let ended = format!("what follows page {number}: its \"nextCursor\" is that of the page before");
                return Ok(Listing { tools, left_out: complaints.lines(Some(ended)) });
            }
            cursor = next;
        }
        Err(refused(format!("lists its tools in more than {PAGES_MAX} pages")))
    }

    /// Calls a tool. Dropping the future cancels the call at the server.
    pub(crate) async fn call(
        &self,
        env: &Env,
        target: &Target,
        tool: &str,
        arguments: Map<String, Value>,
    ) -> Result<CallResult, McpError> {
        let _in_use = InUse::new(self, env);
        let server = &target.name;
        let mut params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        if let Some(trace) = &target.trace {
            params.set_traceparent(trace);
        }
        // What the server asks the person for is declined: nobody is there.
        let answer = self.service.call_tool_with_mrtr_max_rounds(params, ROUNDS_MAX).await;
        match answer {
            Ok(result) => CallResult::of(server, result),
            Err(ServiceError::InputRequiredRoundsExceeded { .. }) => {
                let text = format!(
                    "the tool {tool} of the MCP server {server} asks for more input, which an agent cannot give"
                );
                Err(McpError::new(McpErrorKind::Refused, text))
            }
            Err(ServiceError::UnexpectedResponse) => {
                let text =
                    format!("the MCP server {server} answered the call of {tool} with something else than a result");
                Err(McpError::new(McpErrorKind::Protocol, text))
            }
            Err(error) => Err(self.failed(server, &error)),
        }
    }

    /// What a failed request says about the server.
    fn failed(&self, server: &str, error: &ServiceError) -> McpError {
        if self.flooded.load(Ordering::Relaxed) {
            let text = format!("the MCP server {server} sent more than {MESSAGES_MAX} messages in 10 s");
            return McpError::new(McpErrorKind::Lost, text);
        }
        McpError::request(server, error)
    }

    /// Says goodbye, which ends the session at the server.
    pub(crate) async fn close(mut self) {
        // What is left after this time is dropped, and with it the connection.
        let _ = self.service.close_with_timeout(CLOSE_MAX).await;
    }
}

/// Refuses a version of the protocol that this side does not know.
fn check_version(server: &str, service: &Service) -> Result<(), McpError> {
    let Some(info) = service.peer().peer_info() else { return Ok(()) };
    let version = &info.protocol_version;
    if ProtocolVersion::KNOWN_VERSIONS.contains(version) {
        return Ok(());
    }
    let known: Vec<&str> = ProtocolVersion::KNOWN_VERSIONS.iter().map(ProtocolVersion::as_str).collect();
    let shown: String = version.as_str().chars().take(64).collect();
    let text = format!(
        "the MCP server {server} wants the version {shown:?} of the protocol, which is none of {}; update the server",
        known.join(", ")
    );
    Err(McpError::new(McpErrorKind::Protocol, text))
}

fn remote(tool: Tool) -> RemoteTool {
    RemoteTool {
        name: tool.name.into_owned(),
        description: tool.description.map(Into::into).unwrap_or_default(),
        input_schema: Value::Object(tool.input_schema.as_ref().clone()),
    }
}

fn micros(env: &Env) -> u64 {
    u64::try_from(env.clock.monotonic().as_micros()).unwrap_or(u64::MAX)
}

/// Keeps a connection from being idle.
struct InUse<'a> {
    connection: &'a Connection,
    env: &'a Env,
}

impl<'a> InUse<'a> {
    fn new(connection: &'a Connection, env: &'a Env) -> Self {
        connection.open.fetch_add(1, Ordering::Relaxed);
        Self { connection, env }
    }
}

impl Drop for InUse<'_> {
    fn drop(&mut self) {
        self.connection.used.store(micros(self.env), Ordering::Relaxed);
        self.connection.open.fetch_sub(1, Ordering::Relaxed);
    }
}
