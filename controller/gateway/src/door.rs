//! The part that the HTTP door calls with the requests of `/mcp` and of the servers of agents.

use std::convert::Infallible;
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use atlas_env::Env;
use atlas_service::{Caller, Consistency, Error, Service};
use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::Value;

use crate::agent::{Addressed, AgentServer};
use crate::lists::Lists;
use crate::registry::{self, RegistryOptions};
use crate::server::Server;

/// An answer of the gateway: a JSON document or an event stream.
pub type GatewayResponse = http::Response<UnsyncBoxBody<Bytes, Infallible>>;

/// The header with the id of a session, of the protocol's versions that have sessions.
pub(crate) const SESSION: &str = "mcp-session-id";

/// The limits of the gateway. Each is an option of the controller.
#[derive(Debug, Clone)]
pub struct GatewayOptions {
    /// How long a call waits for its job before it answers with the job's id.
    pub wait_max: Duration,
    /// The largest request.
    pub body_bytes_max: usize,
    /// The most open sessions; further ones are refused until idle ones end.
    pub sessions_max: usize,
    /// After how long an idle session ends.
    pub session_idle: Duration,
    /// How the registry document names and addresses the agents.
    pub registry: RegistryOptions,
}

impl Default for GatewayOptions {
    fn default() -> Self {
        Self {
            wait_max: Duration::from_secs(45),
            body_bytes_max: 1 << 20,
            sessions_max: 10_000,
            session_idle: Duration::from_secs(300),
            registry: RegistryOptions::default(),
        }
    }
}

impl GatewayOptions {
    /// How long a call waits that asks for so many seconds. The error is a sentence for the model.
    pub(crate) fn wait(&self, seconds: Option<f64>) -> Result<Duration, String> {
        let Some(seconds) = seconds else { return Ok(self.wait_max) };
        let wait =
            Duration::try_from_secs_f64(seconds).map_err(|_| "'wait_seconds' is a number from 0 on".to_owned())?;
        Ok(wait.min(self.wait_max))
    }
}

/// The longest turn of a conversation.
const TURN_MAX: Duration = Duration::from_secs(3_600);

/// The MCP servers of a controller: that of the platform, and one for each agent.
pub struct Gateway {
    platform: Served<Server>,
    agents: Served<AgentServer>,
    service: Service,
    registry: RegistryOptions,
}

/// One kind of server with its sessions.
struct Served<S> {
    http: StreamableHttpService<S, LocalSessionManager>,
    sessions: Arc<LocalSessionManager>,
    sessions_max: usize,
}

impl Gateway {
    /// The gateway to a service.
    pub fn new(service: Service, options: &GatewayOptions, env: Env) -> Self {
        let registry = options.registry.clone();
        let agents = Served::new(AgentServer { service: service.clone(), turn_max: TURN_MAX }, options);
        let lists = Lists::new(service.clone(), env, options.sessions_max);
        let platform = Served::new(Server { service: service.clone(), options: options.clone(), lists }, options);
        Self { platform, agents, service, registry }
    }

    /// Answers a request to the platform on behalf of a caller.
    pub async fn answer<B>(&self, request: http::Request<B>, caller: Caller) -> GatewayResponse
    where
        B: http_body::Body + Send + 'static,
        B::Error: Display,
    {
        self.platform.answer(request, caller).await
    }

    /// Answers a request to an agent, which comes in on a port. An unknown agent is an error.
    pub async fn answer_agent<B>(
        &self,
        mut request: http::Request<B>,
        caller: Caller,
        agent: &str,
        port: u16,
    ) -> Result<GatewayResponse, Error>
    where
        B: http_body::Body + Send + 'static,
        B::Error: Display,
    {
        let shown = self.service.agent(&caller, agent, None, Consistency::Linearizable).await?;
        self.service.agent_served(shown.agent.name.as_str(), port);
        request.extensions_mut().insert(Addressed(agent.into()));
        Ok(self.agents.answer(request, caller).await)
    }

    /// The registry document. `base` is the address of this controller as the client sees it; agents with a port of their own have that of
    /// `ports`.
    pub async fn registry(&self, caller: &Caller, base: &str, ports: &[(String, u16)]) -> Result<Value, Error> {
        let agents = self.service.served_agents(caller).await?;
        let base = self.registry.url.as_deref().unwrap_or(base);
        let url = |name: &str| match ports.iter().find(|(agent, _)| agent == name) {
            Some((_, port)) => format!("{}/mcp", with_port(base, *port)),
            None => format!("{base}/agents/{name}/mcp"),
        };
        Ok(registry::document(&self.registry, &agents, url))
    }
}

/// An address with another port.
fn with_port(base: &str, port: u16) -> String {
    let (scheme, host) = base.split_once("://").unwrap_or(("http", base));
    let end = if host.starts_with('[') { host.find(']').map(|at| at + 1) } else { host.rfind(':') };
    format!("{scheme}://{}:{port}", &host[..end.unwrap_or(host.len())])
}

impl<S: ServerHandler + Clone> Served<S> {
    fn new(server: S, options: &GatewayOptions) -> Self {
        let mut sessions = LocalSessionManager::default();
        sessions.session_config.keep_alive = Some(options.session_idle);
        let sessions = Arc::new(sessions);
        // The door has checked the host and the origin, by the same rule as for every other path.
        let config = StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            .disable_allowed_origins()
            .with_max_request_body_bytes(options.body_bytes_max);
        let sessions_max = options.sessions_max;
        let http = StreamableHttpService::new(move || Ok(server.clone()), sessions.clone(), config);
        Self { http, sessions, sessions_max }
    }

    async fn answer<B>(&self, mut request: http::Request<B>, caller: Caller) -> GatewayResponse
    where
        B: http_body::Body + Send + 'static,
        B::Error: Display,
    {
        // Requests without a session may open one.
        if !request.headers().contains_key(SESSION) && self.sessions.sessions.read().await.len() >= self.sessions_max {
            return too_many_sessions();
        }
        request.extensions_mut().insert(caller);
        self.http.handle(request).await.map(|body| body.boxed_unsync())
    }
}

fn too_many_sessions() -> GatewayResponse {
    let text = "too many MCP sessions are open; idle ones end by themselves, so try again in a minute";
    let mut response = http::Response::new(Full::new(Bytes::from_static(text.as_bytes())).boxed_unsync());
    *response.status_mut() = http::StatusCode::SERVICE_UNAVAILABLE;
    response.headers_mut().insert(http::header::RETRY_AFTER, http::HeaderValue::from_static("60"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_replaced() {
        assert_eq!(with_port("http://localhost:7400", 8201), "http://localhost:8201");
        assert_eq!(with_port("https://atlas.example", 8201), "https://atlas.example:8201");
        assert_eq!(with_port("http://[::1]:7400", 8201), "http://[::1]:8201");
    }
}
