//! An issuer of access tokens on this machine, for tests. It checks what an issuer checks, exchanges each code once and takes each refresh
//! token once: one that comes again ends the whole login, as strict issuers do.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::body::Bytes;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::thread::Running;

/// The client that the issuer knows.
pub const CLIENT_ID: &str = "client-1";
pub const CLIENT_SECRET: &str = "canary-client-secret";

/// A running issuer. It stops when it is dropped.
pub struct Issuer {
    running: Running,
    known: Arc<Mutex<Known>>,
}

/// What the issuer knows.
#[derive(Default)]
struct Known {
    /// Seconds that an access token counts, as the issuer says.
    expires_in: u64,
    /// The challenge and the redirect address of the code that is open.
    open: Option<(String, String)>,
    /// The access token and the refresh token that count.
    access: Option<String>,
    refresh: Option<String>,
    given: u32,
    refreshed: u32,
    polled: u32,
}

impl Issuer {
    /// Starts an issuer on a free port of the loopback interface.
    pub fn start(expires_in: u64) -> io::Result<Self> {
        let known = Arc::new(Mutex::new(Known { expires_in, ..Known::default() }));
        let router = Router::new()
            .route("/authorize", get(authorize))
            .route("/token", post(token))
            .route("/device", post(device))
            .with_state(Arc::clone(&known));
        let running = Running::start(|_| router)?;
        Ok(Self { running, known })
    }

    /// The members of a model's login, without the secret of the client.
    pub fn login(&self) -> Value {
        let at = |path: &str| format!("http://{}{path}", self.running.address);
        json!({
            "client_id": CLIENT_ID, "authorize_url": at("/authorize"), "token_url": at("/token"),
            "device_url": at("/device"), "scopes": ["models"],
        })
    }

    /// A check whether an access token counts, for a server of models.
    pub fn accepts(&self) -> impl Fn(&str) -> bool + Send + Sync + 'static {
        let known = Arc::clone(&self.known);
        move |token| locked(&known).access.as_deref() == Some(token)
    }

    /// From now on access tokens count this long.
    pub fn set_expires_in(&self, seconds: u64) {
        locked(&self.known).expires_in = seconds;
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

    /// How often a token was refreshed.
    pub fn refreshed(&self) -> u32 {
        locked(&self.known).refreshed
    }
}

fn locked(known: &Mutex<Known>) -> MutexGuard<'_, Known> {
    // Each change is complete while the lock is held.
    known.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn authorize(State(known): State<Arc<Mutex<Known>>>, RawQuery(query): RawQuery) -> Response {
    let query = pairs(&query.unwrap_or_default());
    let is = |name: &str, value: &str| query.get(name).is_some_and(|found| found == value);
    let redirect = query.get("redirect_uri").cloned().unwrap_or_default();
    let is_sound = is("response_type", "code")
        && is("client_id", CLIENT_ID)
        && is("code_challenge_method", "S256")
        && is("scope", "models")
        && redirect.starts_with("http://127.0.0.1:")
        && redirect.ends_with("/callback")
        && query.get("state").is_some_and(|state| state.len() >= 43);
    let (true, Some(challenge), Some(state)) = (is_sound, query.get("code_challenge"), query.get("state")) else {
        return (StatusCode::BAD_REQUEST, format!("{query:?}")).into_response();
    };
    locked(&known).open = Some((challenge.clone(), redirect.clone()));
    Redirect::to(&format!("{redirect}?code=canary%2Fcode&state={state}")).into_response()
}

async fn token(State(known): State<Arc<Mutex<Known>>>, headers: HeaderMap, body: Bytes) -> Response {
    let form = pairs(&String::from_utf8_lossy(&body));
    let mut known = locked(&known);
    let is = |name: &str, value: &str| form.get(name).is_some_and(|found| found == value);
    let is_form = headers.get("content-type").is_some_and(|kind| kind == "application/x-www-form-urlencoded");
    if !is_form || !is("client_id", CLIENT_ID) || !is("client_secret", CLIENT_SECRET) {
        return refuse("invalid_client");
    }
    match form.get("grant_type").map(String::as_str).unwrap_or_default() {
        "authorization_code" => {
            let verifier = form.get("code_verifier").cloned().unwrap_or_default();
            let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.as_bytes()));
            let redirect = form.get("redirect_uri").cloned().unwrap_or_default();
            if known.open.take() != Some((challenge, redirect)) || !is("code", "canary/code") {
                return refuse("invalid_grant");
            }
        }
        "refresh_token" => {
            if known.refresh.is_none() || known.refresh.as_ref() != form.get("refresh_token") {
                (known.access, known.refresh) = (None, None);
                return refuse("invalid_grant");
            }
            known.refreshed += 1;
        }
        "urn:ietf:params:oauth:grant-type:device_code" if is("device_code", "canary-device-code") => {
            known.polled += 1;
            if known.polled < 2 {
                return refuse("authorization_pending");
            }
        }
        _ => return refuse("unsupported_grant_type"),
    }
    known.given += 1;
    let (access, refresh) = (format!("canary-access-{:04}", known.given), format!("canary-refresh-{:04}", known.given));
    (known.access, known.refresh) = (Some(access.clone()), Some(refresh.clone()));
    let seconds = known.expires_in;
    let tokens =
        json!({"access_token": access, "token_type": "Bearer", "expires_in": seconds, "refresh_token": refresh});
    Json(tokens).into_response()
}

async fn device() -> Json<Value> {
    Json(json!({
        "device_code": "canary-device-code", "user_code": "AB-CD", "verification_uri": "http://127.0.0.1/d",
        "expires_in": 600, "interval": 1,
    }))
}

fn refuse(error: &str) -> Response {
    (StatusCode::BAD_REQUEST, Json(json!({"error": error, "error_description": "the issuer says no"}))).into_response()
}

/// The pairs of a form or a query.
pub(crate) fn pairs(text: &str) -> BTreeMap<String, String> {
    let pairs = text.split('&').filter_map(|pair| pair.split_once('='));
    pairs.map(|(name, value)| (decoded(name), decoded(value))).collect()
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let mut digit = || rest.next().and_then(|byte| char::from(byte).to_digit(16)).unwrap_or_default();
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => (digit() * 16 + digit()) as u8,
            other => other,
        });
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
