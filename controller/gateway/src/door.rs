//! The part that the HTTP door calls with the requests of `/mcp` and of the servers of agents.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use atlas_env::Env;
use atlas_service::{Caller, Consistency, Error, Service};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use rmcp::ServerHandler;
use rmcp::model::ProtocolVersion;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::{Value, json};

use crate::agent::{Addressed, AgentServer};
use crate::body;
use crate::lists::Lists;
use crate::media::{self, AnswerAlone, Form};
use crate::owners::{OwnSession, Owner, Owners};
use crate::priming;
use crate::registry::{self, RegistryOptions};
use crate::server::Server;
use crate::sessions::{InUse, Sessions};
use crate::together;

/// An answer of the gateway: a JSON document or an event stream.
pub type GatewayResponse = http::Response<UnsyncBoxBody<Bytes, Infallible>>;

/// What comes of a request. It is boxed, so that the servers and what `rmcp` makes of them are compiled with this crate, once, and not with
/// the program that awaits it.
type BoxedAnswer<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

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

const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const JSON: HeaderValue = HeaderValue::from_static(media::JSON);

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
pub(crate) struct Served<S> {
    http: StreamableHttpService<S, Sessions>,
    sessions: Arc<Sessions>,
    owners: Owners,
    sessions_max: usize,
    body_bytes_max: usize,
}

impl Gateway {
    /// The gateway to a service.
    pub fn new(service: Service, options: &GatewayOptions, env: Env) -> Self {
        let registry = options.registry.clone();
        let sessions = || Sessions::new(options.session_idle, env.clone());
        let agents = AgentServer { service: service.clone(), turn_max: TURN_MAX };
        let agents = Served::new(agents, sessions(), options);
        let sessions = sessions();
        let lists = Lists::new(service.clone(), sessions.clone(), env.clone(), options.sessions_max);
        let platform = Server { service: service.clone(), options: Arc::new(options.clone()), lists, env };
        let platform = Served::new(platform, sessions, options);
        Self { platform, agents, service, registry }
    }

    /// Answers a request to the platform on behalf of a caller.
    pub fn answer(&self, request: http::Request<Bytes>, caller: Caller) -> BoxedAnswer<'_, GatewayResponse> {
        Box::pin(self.platform.answer(request, caller))
    }

    /// Answers a request to an agent, which comes in on a port. An unknown agent is an error.
    pub fn answer_agent<'a>(
        &'a self,
        mut request: http::Request<Bytes>,
        caller: Caller,
        agent: &'a str,
        port: u16,
    ) -> BoxedAnswer<'a, Result<GatewayResponse, Error>> {
        Box::pin(async move {
            let shown = self.service.agent(&caller, agent, None, Consistency::Linearizable).await?;
            self.service.agent_served(shown.agent.name.as_str(), port);
            request.extensions_mut().insert(Addressed(agent.into()));
            Ok(self.agents.answer(request, caller).await)
        })
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
    pub(crate) fn new(server: S, sessions: Arc<Sessions>, options: &GatewayOptions) -> Self {
        // The door has checked the host and the origin, by the same rule as for every other path.
        let mut config = StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            .disable_allowed_origins()
            .with_max_request_body_bytes(options.body_bytes_max);
        config.session_store = Some(sessions.clone());
        let GatewayOptions { sessions_max, body_bytes_max, .. } = *options;
        let http = StreamableHttpService::new(move || Ok(server.clone()), sessions.clone(), config);
        Self { http, sessions, owners: Owners::default(), sessions_max, body_bytes_max }
    }

    pub(crate) async fn answer(&self, mut request: http::Request<Bytes>, caller: Caller) -> GatewayResponse {
        let agent = request.extensions().get::<Addressed>().map(|Addressed(agent)| agent.clone());
        let owner = Owner::new(&caller, agent);
        let mut used = match self.check_session(&mut request, &owner).await {
            Ok(used) => used,
            Err(refused) => return refused,
        };
        self.sessions.rest();
        let (form, request) = match self.readable(request) {
            Ok(readable) => readable,
            Err(refused) => {
                used.into_iter().for_each(InUse::end);
                return *refused;
            }
        };
        let (mut head, body) = request.into_parts();
        let knows_priming = priming::is_known(&head.headers, &body);
        let (calls, listens) = (head.method == Method::POST, head.method == Method::GET);
        let ends = (head.method == Method::DELETE).then(|| head.extensions.get::<OwnSession>().cloned()).flatten();
        let opens = !head.headers.contains_key(SESSION);
        let is_json = media::is_json(&head.headers);
        head.extensions.insert(caller);
        let request = http::Request::from_parts(head, Full::new(body));
        let again = used.as_ref().filter(|used| used.rested).map(|_| request.clone());
        let mut response = self.http.handle(request).await;
        if let (Some(used), Some(again)) = (&used, again)
            && is_missing(response.status())
            && used.still_rests().await
        {
            response = self.http.handle(again).await;
        }
        let mut response = response.map(|body| body.boxed_unsync());
        used.iter_mut().for_each(InUse::woke);
        if response.status().is_client_error() && !response.headers().contains_key(header::CONTENT_TYPE) {
            response.headers_mut().insert(header::CONTENT_TYPE, TEXT);
        }
        if let Some(session) = response.headers().get(SESSION).and_then(|id| id.to_str().ok()).filter(|_| opens) {
            self.owners.opened(session, owner, |session| self.sessions.is_open(session));
        }
        if let Some(OwnSession(session)) = ends {
            self.owners.ended(&session);
            // The session has ended when this is answered, and some clients take "accepted" for a failure.
            if response.status() == StatusCode::ACCEPTED {
                *response.status_mut() = StatusCode::NO_CONTENT;
            }
        }
        if !knows_priming {
            response = priming::without(response);
        }
        if calls && form == Form::Events {
            response = together::begun(response, &*self.sessions.env.clock).await;
        }
        match form {
            // The body is JSON, but no message.
            _ if response.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE && is_json => {
                used.into_iter().for_each(InUse::end);
                unreadable(
                    -32600,
                    "the body is no message: send one JSON object with \"jsonrpc\": \"2.0\" and a \"method\", and no list of messages",
                )
            }
            Form::Events => match used {
                Some(used) => response.map(|body| used.until_end(body, listens).boxed_unsync()),
                None => response,
            },
            Form::Document => {
                let response = media::alone(response).await;
                used.into_iter().for_each(InUse::end);
                response
            }
        }
    }

    /// Refuses a session that the caller did not open here, as one that does not exist, and a new one beyond the limit.
    async fn check_session(
        &self,
        request: &mut http::Request<Bytes>,
        owner: &Owner,
    ) -> Result<Option<InUse>, GatewayResponse> {
        if let Some(id) = request.headers().get(SESSION) {
            match id.to_str().ok().filter(|id| self.owners.is(id, owner)) {
                Some(id) => {
                    let id = OwnSession(id.into());
                    let used = self.sessions.used(&id.0).await;
                    request.extensions_mut().insert(id);
                    return Ok(used);
                }
                None if is_without_sessions(request.headers()) => drop(request.headers_mut().remove(SESSION)),
                None => return Err(words(StatusCode::NOT_FOUND, "Not Found: Session not found")),
            }
        }
        // A version without sessions needs no room for one.
        if is_without_sessions(request.headers()) && !says_hello(request.headers()) {
            return Ok(None);
        }
        // Requests without a session may open one.
        if self.sessions.is_full(self.sessions_max) { Err(too_many_sessions()) } else { Ok(None) }
    }

    /// The request as `rmcp` reads it, and the form of its answer.
    fn readable(&self, request: http::Request<Bytes>) -> Result<(Form, http::Request<Bytes>), Box<GatewayResponse>> {
        let (mut head, mut body) = request.into_parts();
        let mut form = Form::Events;
        if head.method == Method::POST {
            let listens = head.headers.get("mcp-method").is_some_and(|method| method == "subscriptions/listen");
            form = match media::form(&head.headers) {
                Some(Form::Document) if listens => {
                    return Err(not_acceptable("text/event-stream, where changes are told").into());
                }
                Some(form) => form,
                None => return Err(not_acceptable("application/json or text/event-stream, or both").into()),
            };
            if media::is_json(&head.headers) && body.len() <= self.body_bytes_max {
                body = body::read(body)
                    .map_err(|error| Box::new(unreadable(-32700, &format!("the body is no JSON: {error}"))))?;
            }
        } else if head.method == Method::GET && !media::reads_events(&head.headers) {
            return Err(not_acceptable("text/event-stream").into());
        }
        media::accept_both(&mut head.headers);
        if form == Form::Document {
            head.extensions.insert(AnswerAlone);
        }
        Ok((form, http::Request::from_parts(head, body)))
    }
}

/// Whether a session is not found, before or after it was looked for among those that rest.
fn is_missing(status: StatusCode) -> bool {
    matches!(status, StatusCode::NOT_FOUND | StatusCode::INTERNAL_SERVER_ERROR)
}

/// Whether a request names a version of the protocol that has no sessions. What it says of one means nothing then.
fn is_without_sessions(headers: &HeaderMap) -> bool {
    let version = headers.get("mcp-protocol-version").and_then(|version| version.to_str().ok());
    version.is_some_and(|version| version >= ProtocolVersion::V_2026_07_28.as_str())
}

/// Whether a request is the one that opens a session, as its header says. One that says something else in its body is refused.
fn says_hello(headers: &HeaderMap) -> bool {
    headers.get("mcp-method").is_none_or(|method| method == "initialize")
}

fn too_many_sessions() -> GatewayResponse {
    let text = "too many MCP sessions are open; idle ones end by themselves, so try again in a minute";
    let mut response = words(StatusCode::SERVICE_UNAVAILABLE, text);
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("60"));
    response
}

fn not_acceptable(wanted: &str) -> GatewayResponse {
    words(StatusCode::NOT_ACCEPTABLE, &format!("Not Acceptable: the header Accept must allow {wanted}"))
}

/// The refusal of a body that is no message.
fn unreadable(code: i32, text: &str) -> GatewayResponse {
    let error = json!({ "jsonrpc": "2.0", "id": null, "error": { "code": code, "message": text } });
    with(StatusCode::BAD_REQUEST, JSON, error.to_string())
}

/// An answer in words.
pub(crate) fn words(status: StatusCode, text: &str) -> GatewayResponse {
    with(status, TEXT, text.to_owned())
}

fn with(status: StatusCode, media_type: HeaderValue, text: String) -> GatewayResponse {
    let mut response = http::Response::new(Full::new(Bytes::from(text)).boxed_unsync());
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, media_type);
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
