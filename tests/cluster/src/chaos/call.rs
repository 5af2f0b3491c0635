//! One HTTP call and its outcome: done, certainly refused, or unknown.

use std::net::SocketAddr;
use std::time::Duration;

use atlas_env::chain;
use serde_json::Value;

use super::journal::{Outcome, Refusal};

/// Longer than a controller delays a call while its cluster elects a leader.
const TIMEOUT: Duration = Duration::from_secs(8);

/// Longest time for reading all events of a run.
const STREAM_MAX: Duration = Duration::from_secs(60);

/// Error codes that mean that the call may have taken effect.
const UNKNOWN: [&str; 2] = ["E4003", "E9001"];

/// The header with a log index: in a request, the index that the answer must include; in an answer, the index of the
/// controller.
const INDEX: &str = "x-atlas-index";

/// A client of the HTTP API.
#[derive(Debug, Clone)]
pub(crate) struct Http(reqwest::Client);

/// A request.
#[derive(Debug, Clone, Default)]
pub(crate) struct Request<'a> {
    pub(crate) method: &'static str,
    pub(crate) path: &'a str,
    pub(crate) body: Option<Value>,
    pub(crate) bytes: Option<Vec<u8>>,
    /// The idempotency key.
    pub(crate) key: Option<&'a str>,
    /// The log index that the answer must include.
    pub(crate) index: Option<u64>,
}

/// An answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Answer {
    pub(crate) body: Value,
    /// The log index of the controller that answered.
    pub(crate) index: Option<u64>,
}

impl Http {
    pub(crate) fn new() -> Self {
        let client = reqwest::Client::builder().no_proxy().connect_timeout(Duration::from_secs(2)).timeout(TIMEOUT);
        // A controller closes a connection after ten idle seconds, perhaps just when a request is sent on it, so the
        // client closes idle connections earlier.
        let client = client.pool_idle_timeout(Duration::from_secs(5));
        Self(client.build().expect("a client"))
    }

    pub(crate) async fn get(&self, at: SocketAddr, path: &str) -> Outcome<Answer> {
        self.call(at, Request { method: "GET", path, ..Request::default() }).await
    }

    pub(crate) async fn post(&self, at: SocketAddr, path: &str, body: Value) -> Outcome<Answer> {
        self.call(at, Request { method: "POST", path, body: Some(body), ..Request::default() }).await
    }

    /// Opens the event stream after event `after`.
    pub(crate) async fn stream(&self, at: SocketAddr, path: &str, after: u64) -> Result<reqwest::Response, String> {
        let request = self.0.get(format!("http://{at}{path}")).header("accept", "text/event-stream");
        let request = request.header("last-event-id", after).timeout(STREAM_MAX);
        request.send().await.and_then(reqwest::Response::error_for_status).map_err(|error| chain(&error))
    }

    /// A whole body as text.
    pub(crate) async fn text(&self, at: SocketAddr, path: &str) -> Result<String, String> {
        let answer = self.0.get(format!("http://{at}{path}")).send().await;
        let answer = answer.and_then(reqwest::Response::error_for_status).map_err(|error| chain(&error))?;
        answer.text().await.map_err(|error| chain(&error))
    }

    pub(crate) async fn call(&self, at: SocketAddr, wanted: Request<'_>) -> Outcome<Answer> {
        let method = reqwest::Method::from_bytes(wanted.method.as_bytes()).expect("a method");
        let mut request = self.0.request(method, format!("http://{at}{}", wanted.path));
        if let Some(body) = &wanted.body {
            request = request.json(body);
        }
        if let Some(bytes) = wanted.bytes {
            request = request.body(bytes);
        }
        if let Some(key) = wanted.key {
            request = request.header("idempotency-key", key);
        }
        if let Some(index) = wanted.index {
            request = request.header(INDEX, index);
        }
        let answer = match request.send().await {
            Ok(answer) => answer,
            Err(error) if error.is_connect() => {
                return Outcome::Refused(Refusal { status: 0, code: String::new() });
            }
            Err(error) => return Outcome::Unknown(chain(&error)),
        };
        let status = answer.status();
        let header = |name: &str| answer.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let code = header("atlas-error-code").unwrap_or_default();
        let index = header(INDEX).and_then(|text| text.parse().ok());
        let body = match answer.bytes().await {
            Ok(body) => body,
            // The status arrived, but not the body: the call may have taken effect, but its answer is lost.
            Err(error) => return Outcome::Unknown(chain(&error)),
        };
        if status.is_success() {
            return match serde_json::from_slice(&body) {
                Ok(body) => Outcome::Done(Answer { body, index }),
                Err(error) => Outcome::Unknown(format!("an answer that is no JSON: {error}")),
            };
        }
        if UNKNOWN.contains(&code.as_str()) || (status.is_server_error() && code.is_empty()) {
            return Outcome::Unknown(format!("{status} {code}"));
        }
        Outcome::Refused(Refusal { status: status.as_u16(), code })
    }
}
