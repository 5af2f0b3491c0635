//! The part that the HTTP door calls with the requests of `/mcp`.

use std::convert::Infallible;
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use atlas_service::{Caller, Service};
use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

use crate::server::Server;

/// An answer of the gateway: a JSON document or an event stream.
pub type GatewayResponse = http::Response<UnsyncBoxBody<Bytes, Infallible>>;

/// The header with the id of a session, of the protocol's versions that have sessions.
const SESSION: &str = "mcp-session-id";

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
}

impl Default for GatewayOptions {
    fn default() -> Self {
        Self {
            wait_max: Duration::from_secs(45),
            body_bytes_max: 1 << 20,
            sessions_max: 10_000,
            session_idle: Duration::from_secs(300),
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

/// The MCP server of a controller.
pub struct Gateway {
    http: StreamableHttpService<Server, LocalSessionManager>,
    sessions: Arc<LocalSessionManager>,
    sessions_max: usize,
}

impl Gateway {
    /// The gateway to a service.
    pub fn new(service: Service, options: GatewayOptions) -> Self {
        let mut sessions = LocalSessionManager::default();
        sessions.session_config.keep_alive = Some(options.session_idle);
        let sessions = Arc::new(sessions);
        // The door has checked the host and the origin, by the same rule as for every other path.
        let config = StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            .disable_allowed_origins()
            .with_max_request_body_bytes(options.body_bytes_max);
        let sessions_max = options.sessions_max;
        let server = Server { service, options };
        let http = StreamableHttpService::new(move || Ok(server.clone()), sessions.clone(), config);
        Self { http, sessions, sessions_max }
    }

    /// Answers a request on behalf of a caller.
    pub async fn answer<B>(&self, mut request: http::Request<B>, caller: Caller) -> GatewayResponse
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
