//! One connection to a server: the handshake, its tools, calls.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use atlas_env::Env;
use atlas_mcp_spec::{RemoteTool, TOOLS_MAX, Transport};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ClientCapabilities, ClientConfig, Implementation, PaginatedRequestParams,
    ProtocolVersion, Tool,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, ClientServiceExt as _, NotificationContext, RunningService,
    ServiceError,
};
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::{ClientHandler, RoleClient};
use serde_json::{Map, Value};

use crate::bounded::Bounded;
use crate::bounds::{CLOSE_MAX, DEFINITIONS_BYTES_MAX, MESSAGE_BYTES_MAX, MESSAGES_MAX, PAGES_MAX};
use crate::error::{McpError, McpErrorKind};
use crate::network::Network;
use crate::outcome::Called;
use crate::program::{Launcher, Program};
use crate::target::Target;
use crate::{http, sse};

/// The connection of a target that is not shared.
pub(crate) type Own = Arc<tokio::sync::Mutex<Option<Arc<Connection>>>>;

/// What the server may ask of this side: nothing. It can only say that its tools have changed.
#[derive(Clone, Default)]
struct Handler {
    changed: Arc<AtomicBool>,
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let name = Implementation::new("atlas", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), name)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.changed.store(true, Ordering::Relaxed);
    }
}

type Service = RunningService<RoleClient, Handler>;

/// An open connection.
pub(crate) struct Connection {
    service: Service,
    changed: Arc<AtomicBool>,
    /// Whether the connection ended because the server sent too many messages.
    flooded: Arc<AtomicBool>,
    tools: Mutex<Option<Arc<[RemoteTool]>>>,
    /// Microseconds of the monotonic clock at the last use.
    used: AtomicU64,
    /// Calls that are under way.
    open: AtomicUsize,
    /// Ends the program of the server.
    _keeper: Option<Box<dyn Send + Sync>>,
}

impl Connection {
    /// Opens a connection: the handshake with sessions first, which every server of today knows, then the one without.
    pub(crate) async fn open(
        env: &Env,
        network: &Network,
        target: &Target,
        launcher: &dyn Launcher,
    ) -> Result<Self, McpError> {
        let handler = Handler::default();
        let (changed, flooded) = (Arc::clone(&handler.changed), Arc::default());
        let (service, keeper) = match target.spec.transport {
            Transport::Http => (Self::http((env, network), target, handler, &flooded).await?, None),
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
        let used = AtomicU64::new(micros(env));
        Ok(Self {
            service,
            changed,
            flooded,
            tools: Mutex::default(),
            used,
            open: AtomicUsize::new(0),
            _keeper: keeper,
        })
    }

    async fn http(
        (env, network): (&Env, &Network),
        target: &Target,
        handler: Handler,
        flooded: &Arc<AtomicBool>,
    ) -> Result<Service, McpError> {
        let transport = || Ok(Bounded::new(http::transport(env, network, target)?, env, flooded));
        let first = handler.clone().serve_with_lifecycle(transport()?, ClientLifecycleMode::Initialize).await;
        let error = match first {
            Ok(service) => return Ok(service),
            Err(error) => McpError::handshake(&target.name, &error),
        };
        if error.kind != McpErrorKind::Protocol {
            return Err(error);
        }
        let newest = ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::LATEST] };
        let second = handler.serve_with_lifecycle(transport()?, newest).await;
        second.map_err(|_| error)
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
        let transport = AsyncRwTransport::new(launched.stdout, launched.stdin).with_max_line_length(MESSAGE_BYTES_MAX);
        let transport = Bounded::new(transport, env, flooded);
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
        !self.service.is_closed() && !self.service.peer().is_transport_closed()
    }

    /// Since when the connection is unused; none while a call is under way.
    pub(crate) fn idle_since(&self) -> Option<Duration> {
        (self.open.load(Ordering::Relaxed) == 0).then(|| Duration::from_micros(self.used.load(Ordering::Relaxed)))
    }

    /// The tools of the server. They are read again after the server said that they have changed.
    pub(crate) async fn tools(&self, env: &Env, target: &Target) -> Result<Arc<[RemoteTool]>, McpError> {
        let _in_use = InUse::new(self, env);
        let changed = self.changed.swap(false, Ordering::Relaxed);
        let known = self.tools.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(known) = known.filter(|_| !changed) {
            return Ok(known);
        }
        let listed: Arc<[RemoteTool]> = self.list(&target.name).await?.into();
        *self.tools.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&listed));
        Ok(listed)
    }

    async fn list(&self, server: &str) -> Result<Vec<RemoteTool>, McpError> {
        let refused = |why: String| McpError::new(McpErrorKind::Protocol, format!("the MCP server {server} {why}"));
        let (mut tools, mut cursor, mut bytes): (Vec<RemoteTool>, Option<String>, usize) = (Vec::new(), None, 0);
        for _ in 0..PAGES_MAX {
            let asked = cursor.take().map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor)));
            let page = self.service.list_tools(asked).await.map_err(|error| self.failed(server, &error))?;
            for tool in page.tools {
                let tool = remote(tool);
                bytes += tool.definition().to_string().len();
                if bytes > DEFINITIONS_BYTES_MAX {
                    return Err(refused(format!("describes its tools with more than {DEFINITIONS_BYTES_MAX} bytes")));
                }
                if !tools.iter().any(|other| other.name == tool.name) {
                    tools.push(tool);
                }
                if tools.len() > TOOLS_MAX {
                    return Err(refused(format!("has more than {TOOLS_MAX} tools")));
                }
            }
            cursor = page.next_cursor.filter(|cursor| !cursor.is_empty());
            if cursor.is_none() {
                return Ok(tools);
            }
        }
        Err(refused(format!("lists its tools in more than {PAGES_MAX} pages")))
    }

    /// Calls a tool. Dropping the future cancels the call at the server.
    pub(crate) async fn call(
        &self,
        env: &Env,
        server: &str,
        tool: &str,
        arguments: Map<String, Value>,
    ) -> Result<Called, McpError> {
        let _in_use = InUse::new(self, env);
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let answer = self.service.call_tool_once(params).await.map_err(|error| self.failed(server, &error))?;
        match answer {
            CallToolResponse::Complete(result) => Called::of(server, result),
            CallToolResponse::InputRequired(_) => {
                let text = format!(
                    "the tool {tool} of the MCP server {server} asks for more input, which an agent cannot give"
                );
                Err(McpError::new(McpErrorKind::Refused, text))
            }
            _ => {
                let text =
                    format!("the MCP server {server} answered the call of {tool} with something else than a result");
                Err(McpError::new(McpErrorKind::Protocol, text))
            }
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
