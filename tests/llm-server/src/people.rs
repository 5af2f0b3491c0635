//! An issuer of OpenID Connect on this machine, for tests: people log in with a browser or on another device, and get tokens that say who
//! they are, signed with Ed25519. It checks what an issuer checks, and takes each refresh token once.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use axum::body::Bytes;
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::issuer::pairs;
use crate::thread::Running;

/// The client of `atlasctl`, which is also the audience of the tokens.
pub const CLIENT_ID: &str = "atlasctl-test";

/// A running issuer. It stops when it is dropped.
pub struct People {
    /// Its address.
    pub url: String,
    _running: Running,
    known: Arc<Mutex<Known>>,
}

struct Known {
    url: String,
    key: Ed25519KeyPair,
    /// Seconds that a token counts.
    expires_in: u64,
    /// The challenge and the redirect address of the code that is open.
    open: Option<(String, String)>,
    refresh: Option<String>,
    given: u32,
    refreshed: u32,
    polled: u32,
}

type Shared = Arc<Mutex<Known>>;

impl People {
    /// Starts an issuer on a free port of the loopback interface, whose tokens count for so many seconds.
    pub fn start(expires_in: u64) -> io::Result<Self> {
        let key = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new())
            .and_then(|bytes| Ed25519KeyPair::from_pkcs8(bytes.as_ref()).map_err(|_| ring::error::Unspecified));
        let key = key.map_err(|_| io::Error::other("no key could be made"))?;
        let known =
            Known { url: String::new(), key, expires_in, open: None, refresh: None, given: 0, refreshed: 0, polled: 0 };
        let known = Arc::new(Mutex::new(known));
        let shared = Arc::clone(&known);
        let running = Running::start(|address| {
            locked(&shared).url = format!("http://{address}/realm");
            Router::new()
                .route("/realm/.well-known/openid-configuration", get(description))
                .route("/keys", get(keys))
                .route("/authorize", get(authorize))
                .route("/token", post(token))
                .route("/device", post(device))
                .with_state(shared)
        })?;
        let url = locked(&known).url.clone();
        Ok(Self { url, _running: running, known })
    }

    /// From now on tokens count this long.
    pub fn set_expires_in(&self, seconds: u64) {
        locked(&self.known).expires_in = seconds;
    }

    /// How often a token was refreshed.
    pub fn refreshed(&self) -> u32 {
        locked(&self.known).refreshed
    }

    /// Ends the login: its refresh token counts no more.
    pub fn end(&self) {
        locked(&self.known).refresh = None;
    }
}

fn locked(known: &Mutex<Known>) -> MutexGuard<'_, Known> {
    // Each change is complete while the lock is held.
    known.lock().unwrap_or_else(PoisonError::into_inner)
}

fn text(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

impl Known {
    /// An address beside the one of the issuer.
    fn at(&self, path: &str) -> String {
        format!("{}{path}", self.url.trim_end_matches("/realm"))
    }

    fn id_token(&self) -> String {
        #[expect(
            clippy::disallowed_methods,
            reason = "the tokens are for real controllers, with the time of this machine"
        )]
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let claims = json!({
            "iss": self.url, "aud": CLIENT_ID, "sub": "248289761001", "email": "ann@example.com", "email_verified": true,
            "exp": now + self.expires_in,
        });
        let header = json!({"alg": "EdDSA", "kid": "1"});
        let message = format!("{}.{}", text(header.to_string().as_bytes()), text(claims.to_string().as_bytes()));
        format!("{message}.{}", text(self.key.sign(message.as_bytes()).as_ref()))
    }
}

async fn description(State(known): State<Shared>) -> Json<Value> {
    let known = locked(&known);
    Json(json!({
        "issuer": known.url, "jwks_uri": known.at("/keys"), "authorization_endpoint": known.at("/authorize"),
        "token_endpoint": known.at("/token"), "device_authorization_endpoint": known.at("/device"),
    }))
}

async fn keys(State(known): State<Shared>) -> Json<Value> {
    let x = text(locked(&known).key.public_key().as_ref());
    Json(json!({"keys": [{"kty": "OKP", "crv": "Ed25519", "kid": "1", "x": x}]}))
}

async fn authorize(State(known): State<Shared>, RawQuery(query): RawQuery) -> Response {
    let query = pairs(&query.unwrap_or_default());
    let is = |name: &str, value: &str| query.get(name).is_some_and(|found| found == value);
    let redirect = query.get("redirect_uri").cloned().unwrap_or_default();
    let is_sound = is("response_type", "code")
        && is("client_id", CLIENT_ID)
        && is("code_challenge_method", "S256")
        && is("scope", "openid email profile offline_access")
        && redirect.starts_with("http://127.0.0.1:");
    let (true, Some(challenge), Some(state)) = (is_sound, query.get("code_challenge"), query.get("state")) else {
        return (StatusCode::BAD_REQUEST, format!("{query:?}")).into_response();
    };
    locked(&known).open = Some((challenge.clone(), redirect.clone()));
    Redirect::to(&format!("{redirect}?code=canary-code&state={state}")).into_response()
}

async fn token(State(known): State<Shared>, body: Bytes) -> Response {
    let form = pairs(&String::from_utf8_lossy(&body));
    let mut known = locked(&known);
    let is = |name: &str, value: &str| form.get(name).is_some_and(|found| found == value);
    if !is("client_id", CLIENT_ID) || form.contains_key("client_secret") {
        return refuse("invalid_client");
    }
    match form.get("grant_type").map(String::as_str).unwrap_or_default() {
        "authorization_code" => {
            let verifier = form.get("code_verifier").cloned().unwrap_or_default();
            let redirect = form.get("redirect_uri").cloned().unwrap_or_default();
            if known.open.take() != Some((text(&Sha256::digest(verifier.as_bytes())), redirect))
                || !is("code", "canary-code")
            {
                return refuse("invalid_grant");
            }
        }
        "refresh_token" => {
            // One that comes twice ends the login, as strict issuers do.
            if known.refresh.is_none() || known.refresh.take().as_ref() != form.get("refresh_token") {
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
    let refresh = format!("canary-refresh-{:04}", known.given);
    known.refresh = Some(refresh.clone());
    Json(json!({
        "access_token": format!("canary-access-{:04}", known.given), "token_type": "Bearer", "expires_in": known.expires_in,
        "refresh_token": refresh, "id_token": known.id_token(),
    }))
    .into_response()
}

async fn device() -> Json<Value> {
    Json(json!({
        "device_code": "canary-device-code", "user_code": "AB-CD", "verification_uri": "http://127.0.0.1/d",
        "expires_in": 600, "interval": 1,
    }))
}

fn refuse(error: &str) -> Response {
    (StatusCode::BAD_REQUEST, Json(json!({"error": error}))).into_response()
}
