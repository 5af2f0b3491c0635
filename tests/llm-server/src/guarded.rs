//! An MCP server that wants access tokens, and the issuer that gives them, at one address of this machine. Both check what the standards
//! say: a client registers itself, a code is exchanged once, a refresh token counts once, and a token is for this server alone.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::body::Bytes;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{any, get, post};
use axum::{Json, Router};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::issuer::pairs;
use crate::thread::Running;

/// A running server with its issuer. It stops when it is dropped.
pub struct Guarded {
    running: Running,
    known: Shared,
}

type Shared = Arc<Mutex<Known>>;

/// What the issuer knows, and what was seen.
#[derive(Default)]
struct Known {
    /// The address of the server, which tokens must be for.
    resource: String,
    issuer: String,
    expires_in: u64,
    /// The redirect addresses of clients by their ids.
    clients: BTreeMap<String, String>,
    /// The client, the challenge and the redirect address of the code that is open.
    open: Option<(String, String, String)>,
    access: Option<String>,
    refresh: Option<(String, String)>,
    given: u32,
    refreshed: u32,
    calls: u32,
}

impl Guarded {
    /// Starts on a free port of the loopback interface. Tokens count `expires_in` seconds.
    pub fn start(expires_in: u64) -> io::Result<Self> {
        let known = Arc::new(Mutex::new(Known { expires_in, ..Known::default() }));
        let router = Router::new()
            .route("/mcp", any(serve))
            .route("/about/mcp", get(describe_server))
            .route("/.well-known/oauth-authorization-server/issuer", get(describe_issuer))
            .route("/issuer/register", post(register))
            .route("/issuer/authorize", get(authorize))
            .route("/issuer/token", post(token))
            .with_state(Arc::clone(&known));
        let running = Running::start(|address| {
            let at = |path: &str| format!("http://{address}{path}");
            let mut known = locked(&known);
            (known.resource, known.issuer) = (at("/mcp"), at("/issuer"));
            router
        })?;
        Ok(Self { running, known })
    }

    /// The address of the server.
    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.running.address)
    }

    /// The access token counts no more. The refresh token still does.
    pub fn expire(&self) {
        locked(&self.known).access = None;
    }

    /// Ends the login.
    pub fn end(&self) {
        let mut known = locked(&self.known);
        (known.access, known.refresh) = (None, None);
    }

    /// How many clients registered, how often a token was refreshed, and how many calls the server answered.
    pub fn seen(&self) -> (usize, u32, u32) {
        let known = locked(&self.known);
        (known.clients.len(), known.refreshed, known.calls)
    }
}

fn locked(known: &Mutex<Known>) -> MutexGuard<'_, Known> {
    // Each change is complete while the lock is held.
    known.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn describe_server(State(known): State<Shared>) -> Json<Value> {
    let known = locked(&known);
    Json(json!({
        "resource": known.resource, "authorization_servers": [known.issuer], "scopes_supported": ["tools"],
        "bearer_methods_supported": ["header"],
    }))
}

async fn describe_issuer(State(known): State<Shared>) -> Json<Value> {
    let issuer = locked(&known).issuer.clone();
    Json(json!({
        "issuer": issuer, "authorization_endpoint": format!("{issuer}/authorize"), "token_endpoint": format!("{issuer}/token"),
        "registration_endpoint": format!("{issuer}/register"), "response_types_supported": ["code"],
        "grant_types_supported": ["authorization_code", "refresh_token"], "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": ["none"], "authorization_response_iss_parameter_supported": true,
    }))
}

async fn register(State(known): State<Shared>, headers: HeaderMap, body: Bytes) -> Response {
    let asked: Value = serde_json::from_slice(&body).unwrap_or_default();
    let is_json = headers.get("content-type").is_some_and(|kind| kind == "application/json");
    let redirect = asked["redirect_uris"][0].as_str().unwrap_or_default().to_owned();
    let is_sound = is_json
        && asked["redirect_uris"].as_array().is_some_and(|all| all.len() == 1)
        && asked["token_endpoint_auth_method"] == "none"
        && asked["scope"] == "tools"
        && asked["client_name"].is_string()
        && asked["application_type"] == "native"
        && redirect.starts_with("http://127.0.0.1:")
        && redirect.ends_with("/callback");
    if !is_sound {
        return refuse("invalid_client_metadata");
    }
    let mut known = locked(&known);
    let id = format!("client-{}", known.clients.len() + 1);
    known.clients.insert(id.clone(), redirect.clone());
    (StatusCode::CREATED, Json(json!({"client_id": id, "redirect_uris": [redirect]}))).into_response()
}

async fn authorize(State(known): State<Shared>, RawQuery(query): RawQuery) -> Response {
    let query = pairs(&query.unwrap_or_default());
    let mut known = locked(&known);
    let value = |name: &str| query.get(name).cloned().unwrap_or_default();
    let (client, redirect, state) = (value("client_id"), value("redirect_uri"), value("state"));
    let is_sound = value("response_type") == "code"
        && known.clients.get(&client) == Some(&redirect)
        && value("code_challenge_method") == "S256"
        && value("scope") == "tools"
        && value("resource") == known.resource
        && state.len() >= 43;
    if !is_sound {
        return (StatusCode::BAD_REQUEST, format!("{query:?}")).into_response();
    }
    known.open = Some((client, value("code_challenge"), redirect.clone()));
    let issuer = known.issuer.replace(':', "%3A").replace('/', "%2F");
    Redirect::to(&format!("{redirect}?code=canary%2Fcode&state={state}&iss={issuer}")).into_response()
}

async fn token(State(known): State<Shared>, headers: HeaderMap, body: Bytes) -> Response {
    let form = pairs(&String::from_utf8_lossy(&body));
    let mut known = locked(&known);
    let value = |name: &str| form.get(name).cloned().unwrap_or_default();
    let client = value("client_id");
    let is_form = headers.get("content-type").is_some_and(|kind| kind == "application/x-www-form-urlencoded");
    if !is_form || !known.clients.contains_key(&client) {
        return refuse("invalid_client");
    }
    if value("resource") != known.resource {
        return refuse("invalid_target");
    }
    match value("grant_type").as_str() {
        "authorization_code" => {
            let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(value("code_verifier").as_bytes()));
            let redirect = value("redirect_uri");
            if known.open.take() != Some((client.clone(), challenge, redirect)) || value("code") != "canary/code" {
                return refuse("invalid_grant");
            }
        }
        "refresh_token" => {
            if known.refresh != Some((client.clone(), value("refresh_token"))) {
                (known.access, known.refresh) = (None, None);
                return refuse("invalid_grant");
            }
            known.refreshed += 1;
        }
        _ => return refuse("unsupported_grant_type"),
    }
    known.given += 1;
    let (access, refresh) = (format!("canary-access-{:04}", known.given), format!("canary-refresh-{:04}", known.given));
    (known.access, known.refresh) = (Some(access.clone()), Some((client, refresh.clone())));
    let seconds = known.expires_in;
    Json(json!({"access_token": access, "token_type": "Bearer", "expires_in": seconds, "refresh_token": refresh}))
        .into_response()
}

/// The MCP server. Its tool tells the token that it was called with, which nobody may see.
async fn serve(State(known): State<Shared>, method: Method, headers: HeaderMap, body: Bytes) -> Response {
    if method == Method::GET {
        // Many servers have no stream, and answer this before they look for a token.
        return StatusCode::METHOD_NOT_ALLOWED.into_response();
    }
    let mut known = locked(&known);
    let token = headers.get("authorization").and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
    if token.is_none() || token != known.access.as_deref() {
        let origin = known.resource.trim_end_matches("/mcp");
        // Only this says where the description is.
        let challenge = format!("Bearer resource_metadata=\"{origin}/about/mcp\", scope=\"tools\"");
        return (StatusCode::UNAUTHORIZED, [("www-authenticate", challenge)], "").into_response();
    }
    if method != Method::POST {
        return StatusCode::METHOD_NOT_ALLOWED.into_response();
    }
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    if message["id"].is_null() {
        return StatusCode::ACCEPTED.into_response();
    }
    let result = match message["method"].as_str().unwrap_or_default() {
        "initialize" => json!({
            "protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
            "serverInfo": {"name": "guarded", "version": "1"},
        }),
        "tools/list" => {
            json!({"tools": [{"name": "tell", "description": "Tells.", "inputSchema": {"type": "object"}}]})
        }
        "tools/call" => {
            known.calls += 1;
            let text = format!("called with {}", token.unwrap_or_default());
            json!({"content": [{"type": "text", "text": text}]})
        }
        _ => json!({}),
    };
    Json(json!({"jsonrpc": "2.0", "id": message["id"], "result": result})).into_response()
}

fn refuse(error: &str) -> Response {
    (StatusCode::BAD_REQUEST, Json(json!({"error": error, "error_description": "the issuer says no"}))).into_response()
}
