//! The HTTP API as this program uses it: one method per kind of request, refusals as [`Failure`]s.

mod events;
mod issuer;
mod mcp;
mod namespace;
mod objects;
mod request;
mod stale;
mod transport;
mod unreachable;

use std::fmt;
use std::io::Write;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use atlas_env::Env;
use atlas_http::body::{self, BodyError};
use atlas_http::sse::ServerEvent;
use http::header::{ACCEPT, AUTHORIZATION, HeaderName, HeaderValue, IF_NONE_MATCH, WARNING};
use http::{Method, Response, StatusCode};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use serde::Deserialize;
use serde_json::Value;
use url::Url;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::visible;
use crate::sign_in::Renewal;
use crate::words;

use request::Request;
use transport::{Delay, Transport};

pub(crate) use events::Events;
pub(crate) use issuer::IssuerClient;
pub(crate) use mcp::McpAnswer;
pub(crate) use objects::all_objects;
pub(crate) use transport::Trust;

/// Largest answer that is read into memory.
const ANSWER_BYTES_MAX: usize = 64 << 20;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// For a body larger than this, the client sends the head of the request first and waits `ASK_FIRST` before it sends
/// the body: by default, controllers refuse larger bodies.
const ASK_FIRST_BYTES: usize = 1 << 20;
const ASK_FIRST: Duration = Duration::from_millis(100);

/// A renewed token as a header, and its end in Unix seconds.
type Renewed = (HeaderValue, Option<u64>);

/// A client of one cluster, by one or more of its controllers.
#[derive(Clone)]
pub struct Client {
    transport: Transport,
    servers: Vec<Url>,
    /// The index of the server that answered last.
    current: Arc<AtomicUsize>,
    env: Env,
    talk: Talk,
    namespace: Option<String>,
    /// The header by which requests show who sends them.
    authorization: Option<HeaderValue>,
    /// Set if the token can be renewed.
    renewal: Option<Renewal>,
    /// The renewed token and its end, in Unix seconds.
    renewed: Arc<tokio::sync::Mutex<Option<Renewed>>>,
    /// Whether reads are answered from the state of one controller, without asking the others.
    stale: bool,
    /// How long to wait between the head of a request and its large body.
    ask_first: Duration,
}

/// `application/problem+json` (RFC 9457) with our members.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Problem {
    code: String,
    title: String,
    #[serde(alias = "message")]
    detail: String,
    error: String,
    errors: Vec<ProblemPlace>,
    hint: String,
    retry_after_s: Option<u64>,
}

/// Information about requests on stderr.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Talk {
    /// Print each request with its trace id.
    pub(crate) trace: bool,
    /// Print the log index of the controller that answered.
    pub(crate) verbose: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ProblemPlace {
    pointer: String,
    message: String,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Client({})", self.base())
    }
}

impl Client {
    /// A client of the controllers in `list`: addresses with or without `http://` or `https://`, separated by commas. If
    /// a controller cannot answer, the client asks the next one; any controller can answer any request.
    pub fn new(list: &str) -> Result<Self, Failure> {
        Self::trusting(list, &Trust::default())
    }

    /// Like [`Self::new`], with the certificates that are trusted.
    pub(crate) fn trusting(list: &str, trust: &Trust) -> Result<Self, Failure> {
        let servers = list.split(',').map(str::trim).filter(|server| !server.is_empty());
        let servers: Vec<Url> = servers.map(address).collect::<Result<_, _>>()?;
        if servers.is_empty() {
            return Err(Failure::usage(format!("\"{list}\" contains no controller address")));
        }
        let transport = Transport::new(trust, servers.iter().any(|server| server.scheme() == "https"))?;
        Ok(Self {
            transport,
            servers,
            current: Arc::default(),
            env: Env::system(),
            talk: Talk::default(),
            namespace: None,
            authorization: None,
            renewal: None,
            renewed: Arc::default(),
            stale: false,
            ask_first: ASK_FIRST,
        })
    }

    /// The same client, which also prints information about its requests.
    #[must_use]
    pub(crate) fn talking(self, talk: Talk) -> Self {
        Self { talk, ..self }
    }

    /// The same client with a token.
    pub(crate) fn with_token(self, token: Option<&str>) -> Result<Self, Failure> {
        Ok(Self { authorization: token.map(bearer).transpose()?, ..self })
    }

    /// The same client, which renews its token when it ends.
    #[must_use]
    pub(crate) fn renewing(self, renewal: Option<Renewal>) -> Self {
        Self { renewal, ..self }
    }

    /// The same client, whose reads need no majority if `stale`.
    #[must_use]
    pub(crate) fn reading_stale(self, stale: bool) -> Self {
        Self { stale, ..self }
    }

    /// The addresses, with their scheme.
    pub(crate) fn base(&self) -> String {
        let addresses: Vec<&str> = self.servers.iter().map(|server| server.as_str().trim_end_matches('/')).collect();
        addresses.join(",")
    }

    /// Whether nothing on a network can read what is sent: it is encrypted, or all addresses are on the loopback interface.
    pub(crate) fn is_private(&self) -> bool {
        self.servers.iter().all(|server| server.scheme() == "https" || is_here(server))
    }

    /// Asks for an object.
    pub async fn get(&self, path: &[&str], query: &[(&str, &str)]) -> Result<Value, Failure> {
        self.answer(self.request(Method::GET, path)?.query(query)).await
    }

    /// Like [`get`](Self::get), for an address that controllers of an older release do not know: null from them.
    pub(crate) async fn get_if_known(&self, path: &[&str]) -> Result<Value, Failure> {
        match self.get(path, &[]).await {
            Err(failure) if failure.exit == Exit::NotFound => Ok(Value::Null),
            answer => answer,
        }
    }

    /// Like [`get`](Self::get), for a part of what a command shows: the inner failure is that the caller may not see it.
    pub(crate) async fn get_if_allowed(
        &self,
        path: &[&str],
        query: &[(&str, &str)],
    ) -> Result<Result<Value, Failure>, Failure> {
        allowed(self.get(path, query).await)
    }

    /// Sends a body and reads the answer.
    pub async fn post(&self, path: &[&str], query: &[(&str, &str)], body: &Value) -> Result<Value, Failure> {
        self.answer(self.request(Method::POST, path)?.query(query).json(body)).await
    }

    /// Puts a document instead of another.
    pub async fn put(&self, path: &[&str], query: &[(&str, &str)], body: &Value) -> Result<Value, Failure> {
        self.answer(self.request(Method::PUT, path)?.query(query).json(body)).await
    }

    /// Like [`Self::put`], but refused if there is such a document already.
    pub(crate) async fn put_new(&self, path: &[&str], query: &[(&str, &str)], body: &Value) -> Result<Value, Failure> {
        let request = self.request(Method::PUT, path)?.header(IF_NONE_MATCH, HeaderValue::from_static("*"));
        self.answer(request.query(query).json(body)).await
    }

    /// Deletes what a path names.
    pub async fn delete(&self, path: &[&str]) -> Result<Value, Failure> {
        self.answer(self.request(Method::DELETE, path)?).await
    }

    /// Deletes what a path and a query name.
    pub(crate) async fn delete_with(&self, path: &[&str], query: &[(&str, &str)]) -> Result<Value, Failure> {
        self.answer(self.request(Method::DELETE, path)?.query(query)).await
    }

    /// Submits with an idempotency key from the caller, so that a repeated request gets the first answer.
    pub(crate) async fn post_named(
        &self,
        path: &[&str],
        query: &[(&str, &str)],
        body: &Value,
        key: &str,
    ) -> Result<Value, Failure> {
        let request = self.request(Method::POST, path)?.query(query).header_of(IDEMPOTENCY_KEY, key)?;
        self.answer(request.json(body)).await
    }

    /// Like [`Self::post`], but refused if there is already what it would make.
    pub(crate) async fn post_new(&self, path: &[&str], query: &[(&str, &str)], body: &Value) -> Result<Value, Failure> {
        let request = self.request(Method::POST, path)?.header(IF_NONE_MATCH, HeaderValue::from_static("*"));
        self.answer(request.query(query).json(body)).await
    }

    /// Registers an agent from its package. Only with `replace` it takes the place of another package of the same version.
    pub async fn register(&self, package: Vec<u8>, replace: bool) -> Result<Value, Failure> {
        self.upload(&["api", "agents"], replacing(replace), package).await
    }

    /// Deploys a skill from its package, with the same rule.
    pub async fn deploy_skill(&self, package: Vec<u8>, replace: bool) -> Result<Value, Failure> {
        self.upload(&["api", "skills"], replacing(replace), package).await
    }

    async fn upload(&self, path: &[&str], query: &[(&str, &str)], bytes: Vec<u8>) -> Result<Value, Failure> {
        let request = self.request(Method::POST, path)?.query(query);
        self.answer(request.content("application/gzip", bytes.into())).await
    }

    /// Downloads bytes, piece by piece.
    pub(crate) async fn download(
        &self,
        path: &[&str],
        mut each: impl FnMut(&[u8]) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let request = self.request(Method::GET, path)?;
        let accept = HeaderValue::from_static("*/*, application/problem+json");
        let mut body = self.send(request.header(ACCEPT, accept)).await?.into_body();
        while let Some(frame) = body.frame().await {
            if let Ok(piece) = frame.map_err(|error| self.unreachable(&error))?.into_data() {
                each(&piece)?;
            }
        }
        Ok(())
    }

    /// Follows a stream of events until the stream ends or `each` stops it.
    pub(crate) async fn events(
        &self,
        path: &[&str],
        query: &[(&str, &str)],
        mut each: impl FnMut(ServerEvent) -> Result<bool, Failure>,
    ) -> Result<(), Failure> {
        let mut events = self.open(path, query).await?;
        while let Some(frame) = events.next().await? {
            if !each(frame)? {
                break;
            }
        }
        Ok(())
    }

    /// Builds an address from path segments; an id with special characters stays one segment.
    fn request(&self, method: Method, path: &[&str]) -> Result<Request, Failure> {
        let mut url = self.servers.first().cloned().ok_or_else(|| Failure::usage("no controller address is given"))?;
        let wrong = || Failure::usage(format!("\"{}\" is not a valid address for requests", self.base()));
        url.path_segments_mut().map_err(|()| wrong())?.pop_if_empty().extend(path);
        if let Some(name) = self.namespace.as_deref().filter(|_| namespace::has_namespace(path)) {
            url.query_pairs_mut().append_pair("namespace", name);
        }
        if self.stale && stale::asks(&method, path)? {
            url.query_pairs_mut().append_pair("consistency", "stale");
        }
        let request = Request::new(method, url);
        Ok(match &self.authorization {
            Some(authorization) => request.header(AUTHORIZATION, authorization.clone()),
            None => request,
        })
    }

    async fn answer(&self, request: Request) -> Result<Value, Failure> {
        let accept = HeaderValue::from_static("application/problem+json, application/json");
        let response = self.send(request.header(ACCEPT, accept)).await?;
        let body = self.body(response).await?;
        serde_json::from_slice(&body).map_err(Failure::answer)
    }

    /// Sends a request to the controller that answered last; if that controller cannot answer, to the others in turn. A
    /// request that changes something gets an idempotency key, so that the change happens once even if several
    /// controllers receive the request.
    async fn send(&self, request: Request) -> Result<Response<Incoming>, Failure> {
        let mut request = self.with_renewed_token(request).await?;
        let [_, _, ..] = &self.servers[..] else { return self.send_once(request).await };
        if request.method != Method::GET && !request.headers.contains_key(IDEMPOTENCY_KEY) {
            let name = format!("atlasctl-{:032x}", self.env.entropy.u128());
            request = request.header_of(IDEMPOTENCY_KEY, &name)?;
        }
        let first = self.current.load(Ordering::Relaxed);
        let mut refused: Option<Failure> = None;
        for step in 0..self.servers.len() {
            let place = (first + step) % self.servers.len();
            let mut again = request.clone();
            aim(&mut again.url, &self.servers[place]);
            match self.send_once(again).await {
                Err(failure) if failure.exit == Exit::Unreachable => {
                    // A refusal from a controller is more useful to the user than an unreachable controller.
                    if refused.as_ref().is_none_or(|refused| telling(&failure) > telling(refused)) {
                        refused = Some(failure);
                    }
                }
                answer => {
                    self.current.store(place, Ordering::Relaxed);
                    return answer;
                }
            }
        }
        Err(refused.unwrap_or_else(|| Failure::usage("the request cannot be repeated")))
    }

    /// The request with the renewed token instead of one that has ended.
    async fn with_renewed_token(&self, request: Request) -> Result<Request, Failure> {
        let Some(renewal) = &self.renewal else { return Ok(request) };
        let mut renewed = self.renewed.lock().await;
        let is_due = renewed.as_ref().map_or_else(|| renewal.is_due(), |(_, end)| renewal.is_over(*end));
        if is_due {
            let (token, end) = renewal.token().await?;
            *renewed = Some((bearer(&token)?, end));
        }
        Ok(match &*renewed {
            Some((token, _)) => request.header(AUTHORIZATION, token.clone()),
            None => request,
        })
    }

    async fn send_once(&self, mut request: Request) -> Result<Response<Incoming>, Failure> {
        let trace = format!("{:032x}", self.env.entropy.u128().max(1));
        if self.talk.trace {
            let parent = format!("00-{trace}-{:016x}-01", self.env.entropy.u64().max(1));
            request = request.header_of(HeaderName::from_static("traceparent"), &parent)?;
        }
        let since = self.env.clock.monotonic();
        let answer = self.transport.execute(&request, &self.ask_first(&request)).await;
        let took = words::milliseconds((self.env.clock.monotonic() - since).as_secs_f64() * 1000.0);
        if self.talk.trace {
            let became = answer.as_ref().map_or_else(|_| "no answer".to_owned(), |answer| answer.status().to_string());
            tell(&format!("{} {} → {became} in {took}   trace {trace}", request.method, request.url));
        }
        let response = match answer {
            Ok(response) => response,
            Err(error) => {
                let explained = unreachable::explain(&error, &request.url, self.transport.trusts_given()).await;
                return Err(explained.unwrap_or_else(|| self.unreachable(&error)));
            }
        };
        let applied = response.headers().get("X-Atlas-Index").and_then(|index| index.to_str().ok());
        if let (true, Some(applied)) = (self.talk.verbose, applied) {
            tell(&format!("read at log index {applied}"));
        }
        for warning in response.headers().get_all(WARNING).iter().filter_map(|value| value.to_str().ok()) {
            tell(&format!("{}{}", words::WARNING, text_of(warning)));
        }
        if response.status().is_success() {
            return Ok(response);
        }
        let status = response.status();
        let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let (code, after) = (header("Atlas-Error-Code"), header("Retry-After"));
        // A controller that refuses a body may close the connection before it has received all of the body. The part of
        // its answer that has arrived is still used.
        let body = self.body(response).await.unwrap_or_default();
        let mut failure = refusal(status, code, &body);
        failure.retry_after = failure.retry_after.or_else(|| after?.parse().ok());
        Err(failure)
    }

    /// Delays a large body, so that the controller can refuse the request by its head. If the controller closed the
    /// connection while the body is being sent, its answer would be lost.
    fn ask_first(&self, request: &Request) -> Delay {
        (request.body.len() > ASK_FIRST_BYTES).then(|| (Arc::clone(&self.env.clock), self.ask_first))
    }

    async fn body(&self, response: Response<Incoming>) -> Result<Vec<u8>, Failure> {
        body::whole(&mut response.into_body(), ANSWER_BYTES_MAX).await.map_err(|error| match error {
            BodyError::TooLarge => Failure::answer(format!("it is longer than {ANSWER_BYTES_MAX} bytes")),
            BodyError::Broken(error) => self.unreachable(&error),
        })
    }

    fn unreachable(&self, error: &(dyn std::error::Error + 'static)) -> Failure {
        unreachable::nobody(error, &self.base(), self.servers.iter().all(is_here))
    }
}

/// Whether an address is on the loopback interface.
fn is_here(server: &Url) -> bool {
    server.host_str().is_some_and(|host| {
        let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        host == "localhost" || address.is_ok_and(|address| address.is_loopback())
    })
}

/// The header that shows a token.
fn bearer(token: &str) -> Result<HeaderValue, Failure> {
    let value = HeaderValue::from_str(&format!("Bearer {}", token.trim()));
    // Without the text: it may be most of a token.
    let mut value = value.map_err(|_| Failure::usage("the token has characters that no token has"))?;
    value.set_sensitive(true);
    Ok(value)
}

/// Ranks failures by how much they tell the user: an unreachable server (E4002) ranks lowest.
fn telling(failure: &Failure) -> u8 {
    match failure.code.as_deref() {
        Some("E4002") => 0,
        Some("E4001") => 1,
        _ => 2,
    }
}

/// A line on stderr.
fn tell(line: &str) {
    // The request must succeed even if the terminal was closed.
    let _ = writeln!(std::io::stderr().lock(), "{}", visible(line));
}

/// The text of a header `Warning`: `299 atlas "text"`. Another form is shown as it is.
fn text_of(warning: &str) -> String {
    let quoted = warning.splitn(3, ' ').nth(2).and_then(|text| text.strip_prefix('"')?.strip_suffix('"'));
    quoted.map_or_else(|| warning.to_owned(), |text| text.replace("\\\"", "\""))
}

/// The address of a controller.
fn address(server: &str) -> Result<Url, Failure> {
    let server = server.trim_end_matches('/');
    let url = if server.contains("://") { server.to_owned() } else { format!("http://{server}") };
    let url = Url::parse(&url).map_err(|error| Failure::usage(format!("\"{server}\" is not an address: {error}")))?;
    if !["http", "https"].contains(&url.scheme()) {
        let text = format!("\"{server}\" begins with {}: only http:// and https:// are supported", url.scheme());
        return Err(Failure::usage(text));
    }
    Ok(url)
}

/// Replaces the host and port of an address with those of another controller.
fn aim(url: &mut Url, server: &Url) {
    // Both addresses are HTTP addresses, so setting the scheme, the host and the port cannot fail.
    let _ = url.set_scheme(server.scheme());
    let _ = url.set_host(server.host_str());
    let _ = url.set_port(server.port());
}

/// The server's explanation of a refusal; if the body has none, the HTTP status.
fn refusal(status: StatusCode, code: Option<String>, body: &[u8]) -> Failure {
    let problem: Problem = serde_json::from_slice(body).unwrap_or_default();
    let unexplained = format!("the server answered {status}");
    explained(problem, code, unexplained, Exit::of_http(status.as_u16()))
}

/// Tells a right that is missing from other failures.
pub(crate) fn allowed<T>(answer: Result<T, Failure>) -> Result<Result<T, Failure>, Failure> {
    match answer {
        Err(failure) if failure.code.as_deref() == Some("E2107") => Ok(Err(failure)),
        answer => answer.map(Ok),
    }
}

/// The refusal of one element of a request.
pub(crate) fn refusal_of_element(problem: &Value) -> Failure {
    explained(Problem::deserialize(problem).unwrap_or_default(), None, "refused".to_owned(), Exit::Invalid)
}

/// A problem as a failure; `unexplained` is the message of a problem without text.
fn explained(problem: Problem, code: Option<String>, unexplained: String, exit: Exit) -> Failure {
    let texts = [problem.detail, problem.error, problem.title];
    let message = texts.into_iter().find(|text| !text.is_empty()).unwrap_or(unexplained);
    let place = |place: ProblemPlace| {
        let pointer = if place.pointer.is_empty() { "/".to_owned() } else { place.pointer };
        (pointer, place.message)
    };
    let code = Some(problem.code).filter(|code| !code.is_empty()).or(code);
    Failure {
        next: Some(problem.hint).filter(|hint| !hint.is_empty()).or_else(|| next(code.as_deref()?)),
        code,
        message,
        places: problem.errors.into_iter().map(place).collect(),
        retry_after: problem.retry_after_s,
        exit,
    }
}

/// A command to try next; the server suggests none, because it does not know which client it answers.
fn next(code: &str) -> Option<String> {
    Some(match code {
        "E3001" | "E3002" => "list them: atlasctl job list".to_owned(),
        "E5001" => "list them: atlasctl node list".to_owned(),
        code => format!("what it means: atlasctl explain-error {code}"),
    })
}

/// The query of an upload.
fn replacing(replace: bool) -> &'static [(&'static str, &'static str)] {
    if replace { &[("replace", "true")] } else { &[] }
}

#[cfg(test)]
mod tests;
