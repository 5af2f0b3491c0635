//! A provider of embeddings and rerankers on this machine, for tests: the protocols of OpenAI (`/v1/embeddings`), Jina (`/v1/rerank`) and Cohere
//! (`/v2/embed`, `/v2/rerank`). It refuses what they refuse, sends vectors and scores in another order than they were asked for, and records
//! requests.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::thread::Running;

/// What happens to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Then {
    /// It is answered.
    Answer,
    /// It waits until its client gives up.
    Never,
    /// It is answered once [`Searches::release`] is called.
    Hold,
    /// An error with a status.
    Error(u16),
    /// The answer lacks the last vector or score.
    Half,
}

type Decide = dyn Fn(&Asked, usize) -> Then + Send + Sync;

/// A request as it came in.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// The path.
    pub path: String,
    /// The texts that it is about.
    pub texts: Vec<String>,
    /// The body.
    pub body: Value,
}

/// A running server. It stops when it is dropped.
pub struct Searches {
    running: Running,
    shared: Arc<Shared>,
}

struct Shared {
    decide: Box<Decide>,
    noted: Mutex<Noted>,
    released: watch::Sender<bool>,
}

#[derive(Default)]
struct Noted {
    arrived: Vec<Asked>,
    answered: Vec<Asked>,
}

impl Searches {
    /// Starts on a free port of the loopback interface. `decide` gets each request that is not refused, with a number from 0.
    pub fn start(decide: impl Fn(&Asked, usize) -> Then + Send + Sync + 'static) -> io::Result<Self> {
        let shared =
            Arc::new(Shared { decide: Box::new(decide), noted: Mutex::default(), released: watch::Sender::new(false) });
        let router = Router::new()
            .route("/v1/embeddings", post(serve))
            .route("/v1/rerank", post(serve))
            .route("/v2/embed", post(serve))
            .route("/v2/rerank", post(serve))
            .with_state(Arc::clone(&shared));
        Ok(Self { running: Running::start(|_| router)?, shared })
    }

    /// The base address of a version of the API: `v1` or `v2`.
    pub fn url(&self, version: &str) -> String {
        format!("http://{}/{version}", self.running.address)
    }

    /// The requests so far, without those that were refused.
    pub fn arrived(&self) -> Vec<Asked> {
        self.shared.noted().arrived.clone()
    }

    /// The requests that were answered.
    pub fn answered(&self) -> Vec<Asked> {
        self.shared.noted().answered.clone()
    }

    /// Answers what is held, now and from now on.
    pub fn release(&self) {
        self.shared.released.send_replace(true);
    }
}

impl Shared {
    fn noted(&self) -> MutexGuard<'_, Noted> {
        // Each change is complete while the lock is held.
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn serve(State(shared): State<Arc<Shared>>, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    let asked = match check(uri.path(), &headers, &body) {
        Ok(asked) => asked,
        Err((status, text)) => return error(status, &text),
    };
    let number = {
        let mut noted = shared.noted();
        noted.arrived.push(asked.clone());
        noted.arrived.len() - 1
    };
    let then = (shared.decide)(&asked, number);
    match then {
        Then::Never => return std::future::pending().await,
        // The sender lives as long as the server.
        Then::Hold => drop(shared.released.subscribe().wait_for(|released| *released).await),
        Then::Error(status) => {
            return error(StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), "not now");
        }
        Then::Answer | Then::Half => {}
    }
    let left_out = usize::from(then == Then::Half);
    let answer = answer(&asked, asked.texts.len().saturating_sub(left_out));
    shared.noted().answered.push(asked);
    ([(header::CONTENT_TYPE, "application/json")], answer.to_string()).into_response()
}

/// The members that a path takes, the one with the texts, and how many texts there can be.
fn rules(path: &str) -> (&'static [&'static str], &'static [&'static str], &'static str, usize) {
    match path {
        "/v1/embeddings" => (&["model", "input"], &["dimensions", "encoding_format", "user"], "input", 2_048),
        "/v1/rerank" => (&["model", "query", "documents"], &["top_n", "return_documents"], "documents", 1_000),
        "/v2/embed" => (
            &["model", "texts", "input_type", "embedding_types"],
            &["truncate", "output_dimension", "max_tokens"],
            "texts",
            96,
        ),
        _ => (&["model", "query", "documents"], &["top_n", "max_tokens_per_doc", "priority"], "documents", 1_000),
    }
}

fn check(path: &str, headers: &HeaderMap, body: &[u8]) -> Result<Asked, (StatusCode, String)> {
    let bad = |text: String| (StatusCode::BAD_REQUEST, text);
    let header = headers.get("authorization").and_then(|value| value.to_str().ok()).unwrap_or_default();
    if header.strip_prefix("Bearer ").is_none_or(str::is_empty) {
        return Err((StatusCode::UNAUTHORIZED, "no key".to_owned()));
    }
    let body: Value = serde_json::from_slice(body).map_err(|error| bad(format!("the body is not JSON: {error}")))?;
    let members = body.as_object().ok_or_else(|| bad("the body is no object".to_owned()))?;
    let (needed, allowed, member, most) = rules(path);
    if let Some(missing) = needed.iter().find(|name| !members.contains_key(**name)) {
        return Err(bad(format!("{missing}: field required")));
    }
    let known = |name: &str| needed.iter().chain(allowed).any(|known| *known == name);
    if let Some(name) = members.keys().find(|name| !known(name)) {
        return Err(bad(format!("unrecognized request argument supplied: {name}")));
    }
    let texts = members[member].as_array().into_iter().flatten();
    let texts: Option<Vec<String>> = texts.map(|text| text.as_str().map(str::to_owned)).collect();
    let texts = texts.filter(|texts| texts.iter().all(|text| !text.is_empty()));
    match texts {
        Some(texts) if (1..=most).contains(&texts.len()) => Ok(Asked { path: path.to_owned(), texts, body }),
        _ => Err(bad(format!("{member}: must be 1 to {most} texts that are not empty"))),
    }
}

/// How often a text has each letter: texts with the same letters are near each other.
fn vector(text: &str) -> Vec<f64> {
    let mut counts = vec![0.01; 26];
    for letter in text.bytes().filter(u8::is_ascii_alphabetic) {
        counts[usize::from(letter.to_ascii_lowercase() - b'a')] += 1.0;
    }
    counts
}

/// The share of a query's letters that a text has.
fn score(query: &str, text: &str) -> f64 {
    let has = |letter: &char| text.to_ascii_lowercase().contains(letter.to_ascii_lowercase());
    query.chars().filter(has).count() as f64 / query.chars().count().max(1) as f64
}

fn answer(asked: &Asked, count: usize) -> Value {
    let texts = asked.texts.iter().take(count);
    let tokens: usize = asked.texts.iter().map(|text| text.len().div_ceil(4)).sum();
    let query = asked.body["query"].as_str().unwrap_or_default();
    let scores = || {
        let mut scores: Vec<Value> = texts
            .clone()
            .enumerate()
            .map(|(index, text)| json!({"index": index, "relevance_score": score(query, text)}))
            .collect();
        scores.sort_by(|a, b| {
            b["relevance_score"].as_f64().partial_cmp(&a["relevance_score"].as_f64()).expect("numbers")
        });
        scores
    };
    match asked.path.as_str() {
        "/v1/embeddings" => {
            let entry = |(index, text): (usize, &String)| json!({"object": "embedding", "index": index, "embedding": vector(text)});
            let mut data: Vec<Value> = texts.enumerate().map(entry).collect();
            data.reverse();
            let usage = json!({"prompt_tokens": tokens, "total_tokens": tokens});
            json!({"object": "list", "data": data, "model": asked.body["model"], "usage": usage})
        }
        "/v2/embed" => {
            let vectors: Vec<Vec<f64>> = texts.map(|text| vector(text)).collect();
            let meta = json!({"billed_units": {"input_tokens": tokens}});
            json!({"id": "e-1", "embeddings": {"float": vectors}, "texts": asked.texts, "meta": meta})
        }
        "/v1/rerank" => {
            json!({"model": asked.body["model"], "results": scores(), "usage": {"total_tokens": tokens}})
        }
        _ => json!({"id": "r-1", "results": scores(), "meta": {"billed_units": {"search_units": 1}}}),
    }
}

fn error(status: StatusCode, text: &str) -> Response {
    let body = json!({"error": {"message": text, "type": "invalid_request_error"}});
    (status, [(header::CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}
