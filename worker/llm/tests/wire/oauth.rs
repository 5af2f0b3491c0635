//! Logins at an issuer in the same process, which checks what an issuer checks and gives each refresh token once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use atlas_env::Env;
use atlas_llm::Parts;
use atlas_llm::auth::Auth;
use atlas_llm::client::{Client, Target};
use atlas_llm::gemini::Gemini;
use atlas_llm::oauth::token::Expiry;
use atlas_llm::oauth::{Device, Issuer, Login, Poll, Session, Store, StoreError, Tokens};
use atlas_model::{Message, Request};
use axum::body::Bytes;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http_body_util::{BodyExt, Full};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::machine::{BEGIN, run, wait};
use crate::network::Memory;
use crate::talk::Provider;

const ISSUER: &str = "localhost:3";
const REDIRECT: &str = "http://127.0.0.1:4/callback";

/// What the issuer knows.
#[derive(Default)]
struct Known {
    challenge: Option<String>,
    refresh: Option<String>,
    given: u32,
    polls: u32,
}

type Shared = Arc<Mutex<Known>>;

/// Serves the pages of an issuer and, at [`crate::talk::HOST`], a model that takes its newest token alone.
fn serve(env: &Env, network: &Memory) -> Shared {
    let known = Shared::default();
    let pages =
        Router::new().route("/authorize", get(authorize)).route("/token", post(token)).route("/device", post(device));
    let model = Router::new().route("/v1beta/models/gemini-test:generateContent", post(model));
    for (host, router) in [(ISSUER, pages), (crate::talk::HOST, model)] {
        let arrivals = network.serve(host);
        let router = router.with_state(Arc::clone(&known));
        env.spawn("test issuer", async move { axum::serve(arrivals, router).await.expect("serves") });
    }
    known
}

fn pairs(text: &str) -> BTreeMap<String, String> {
    let url = |text: &str| {
        let bytes = text.replace('+', " ");
        let mut parts = bytes.split('%');
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(first, |text, part| {
            let (digits, rest) = part.split_at(2);
            format!("{text}{}{rest}", char::from(u8::from_str_radix(digits, 16).expect("digits")))
        })
    };
    text.split('&').filter_map(|pair| pair.split_once('=')).map(|(name, value)| (url(name), url(value))).collect()
}

async fn authorize(State(known): State<Shared>, RawQuery(query): RawQuery) -> Response {
    let query = pairs(&query.unwrap_or_default());
    let is = |name: &str, value: &str| query.get(name).is_some_and(|found| found == value);
    let is_sound = is("response_type", "code")
        && is("client_id", "client-1")
        && is("redirect_uri", REDIRECT)
        && is("code_challenge_method", "S256")
        && is("access_type", "offline")
        && query.get("state").is_some_and(|state| state.len() == 43);
    if !is_sound {
        return StatusCode::BAD_REQUEST.into_response();
    }
    known.lock().expect("a lock").challenge = query.get("code_challenge").cloned();
    Redirect::to(&format!("{REDIRECT}?code=the%2Fcode&state={}", query["state"])).into_response()
}

async fn token(State(known): State<Shared>, headers: HeaderMap, body: Bytes) -> Response {
    let form = pairs(std::str::from_utf8(&body).expect("UTF-8"));
    let mut known = known.lock().expect("a lock");
    let is = |name: &str, value: &str| form.get(name).is_some_and(|found| found == value);
    let is_form = headers["content-type"] == "application/x-www-form-urlencoded";
    let grant = form.get("grant_type").map(String::as_str).unwrap_or_default();
    if !is_form || !is("client_id", "client-1") || !is("client_secret", "the secret") {
        return refuse("invalid_client");
    }
    match grant {
        "authorization_code" => {
            let challenge =
                form.get("code_verifier").map(|text| URL_SAFE_NO_PAD.encode(Sha256::digest(text.as_bytes())));
            // A code is exchanged once.
            let expected = known.challenge.take();
            if expected.is_none() || challenge != expected || !is("code", "the/code") || !is("redirect_uri", REDIRECT) {
                return refuse("invalid_grant");
            }
        }
        "refresh_token" if known.refresh.is_some() && known.refresh.as_ref() == form.get("refresh_token") => {}
        "urn:ietf:params:oauth:grant-type:device_code" if is("device_code", "dc") => {
            known.polls += 1;
            if known.polls < 3 {
                return refuse("authorization_pending");
            }
        }
        _ => return refuse("invalid_grant"),
    }
    known.given += 1;
    let refresh = format!("canary-refresh-{}", known.given);
    known.refresh = Some(refresh.clone());
    let access = format!("canary-access-{}", known.given);
    Json(json!({"access_token": access, "token_type": "Bearer", "expires_in": 3600, "refresh_token": refresh}))
        .into_response()
}

fn refuse(error: &str) -> Response {
    (StatusCode::BAD_REQUEST, Json(json!({"error": error}))).into_response()
}

async fn device() -> Json<Value> {
    Json(
        json!({"device_code": "dc", "user_code": "AB-CD", "verification_uri": "http://localhost:3/d", "expires_in": 600}),
    )
}

async fn model(State(known): State<Shared>, headers: HeaderMap) -> Response {
    let expected = format!("Bearer canary-access-{}", known.lock().expect("a lock").given);
    let found = headers.get("authorization").map(|value| value.to_str().expect("text")).unwrap_or_default();
    if found != expected {
        let error = json!({"error": {"code": 401, "message": format!("{found} is not valid")}});
        return (StatusCode::UNAUTHORIZED, Json(error)).into_response();
    }
    let candidate = json!({"content": {"parts": [{"text": "Sunny."}]}, "finishReason": "STOP"});
    Json(json!({"candidates": [candidate]})).into_response()
}

fn issuer() -> Issuer {
    Issuer {
        authorize_url: format!("http://{ISSUER}/authorize"),
        token_url: format!("http://{ISSUER}/token"),
        device_url: Some(format!("http://{ISSUER}/device")),
        ..Issuer::gemini("client-1".into(), "the secret".into())
    }
}

/// Sends what a browser or the command line sends.
async fn send(env: &Env, network: &Memory, parts: Parts) -> (StatusCode, HeaderMap, Bytes) {
    let uri: http::Uri = parts.url.parse().expect("an address");
    let stream = network.open(uri.authority().expect("a host").as_str()).expect("connected");
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.expect("HTTP");
    env.spawn("test connection", async move { drop(connection.await) });
    let mut request = http::Request::new(Full::new(Bytes::from(parts.body)));
    *request.method_mut() = parts.method;
    *request.uri_mut() = uri.path_and_query().expect("a path").as_str().parse().expect("a path");
    *request.headers_mut() = parts.headers;
    request.headers_mut().insert("host", ISSUER.parse().expect("a host"));
    let (head, body) = sender.send_request(request).await.expect("answered").into_parts();
    (head.status, head.headers, body.collect().await.expect("a body").to_bytes())
}

/// A store in memory.
#[derive(Default)]
struct Stored(Mutex<Option<Tokens>>);

impl Store for Stored {
    fn load(&self, _client: &str) -> Result<Option<Tokens>, StoreError> {
        Ok(self.0.lock().expect("a lock").clone())
    }

    fn save(&self, _client: &str, tokens: &Tokens) -> Result<(), StoreError> {
        *self.0.lock().expect("a lock") = Some(tokens.clone());
        Ok(())
    }
}

fn session(store: &Arc<Stored>) -> Session {
    Session::new("work".into(), issuer(), Arc::clone(store) as _, "atlasctl login".into())
}

fn now(env: &Env) -> u64 {
    u64::try_from(env.clock.wall().0 / 1_000_000).expect("a time")
}

fn target(session: Session) -> Target {
    let protocol = Arc::new(Gemini { auth: Auth::Token(Arc::new(session)) });
    Provider { protocol, path: "/v1beta", model: "gemini-test", strict: |_| Ok(()) }.target()
}

#[test]
fn a_login_and_the_calls_after_it() {
    run(|env, network| async move {
        let known = serve(&env, &network);
        let login = Login::begin(REDIRECT, &[7; 64]);
        let (status, headers, _) = send(&env, &network, Parts::get(login.url(&issuer()))).await;
        assert_eq!(status, StatusCode::SEE_OTHER);
        let back = headers["location"].to_str().expect("text").strip_prefix("http://127.0.0.1:4").expect("our address");
        let code = login.callback(back).expect("a code");
        let (status, _, body) = send(&env, &network, login.exchange(&issuer(), &code).expect("encoded")).await;
        let tokens = Tokens::read(status, &body, now(&env), Expiry::Required, &[]).expect("tokens");
        let (status, _, body) = send(&env, &network, login.exchange(&issuer(), &code).expect("encoded")).await;
        assert!(Tokens::read(status, &body, now(&env), Expiry::Required, &[]).is_err(), "a code is used once");

        let store = Arc::new(Stored::default());
        session(&store).logged_in(tokens).expect("stored");
        let client = Client::new(env.clone());
        let request = Request { messages: vec![Message::user("Weather?")], ..Request::default() };
        let targets = [target(session(&store))];
        let minute = Duration::from_secs(60);
        let ask = async || client.call(&targets, &request, minute, &mut |_| {}).await;
        assert_eq!(ask().await.expect("an answer").answer.text(), "Sunny.");
        assert_eq!(known.lock().expect("a lock").given, 1, "the token of the login is used");
        wait(Duration::from_secs(3600)).await;
        assert_eq!(ask().await.expect("an answer").answer.text(), "Sunny.");
        let stored = store.0.lock().expect("a lock").clone().expect("tokens");
        assert_eq!(stored.refresh, Some("canary-refresh-2".into()), "the issuer changed the refresh token");
        // Another process of this client renewed the token: this one is refused, and renews it as well.
        known.lock().expect("a lock").given = 5;
        let error = ask().await.expect_err("refused").error;
        assert_eq!((error.kind.name(), error.message.contains("canary")), ("credentials", false), "{error}");
        assert_eq!(ask().await.expect("an answer").answer.text(), "Sunny.");
        // The issuer ends the login.
        known.lock().expect("a lock").refresh = None;
        wait(Duration::from_secs(3600)).await;
        let error = ask().await.expect_err("ended").error;
        assert_eq!(error.message, "\"work\": the issuer ended the login; run \"atlasctl login\" (invalid_grant)");
    });
}

#[test]
fn calls_that_wait_renew_a_token_once() {
    run(|env, network| async move {
        let known = serve(&env, &network);
        known.lock().expect("a lock").refresh = Some("canary-refresh-0".into());
        let store = Arc::new(Stored::default());
        let expired = Some(u64::try_from(BEGIN).expect("a time"));
        let tokens = Tokens { access: "old".into(), refresh: Some("canary-refresh-0".into()), expires_at: expired };
        store.save("work", &tokens).expect("stored");
        let client = Client::new(env);
        let request = Request { messages: vec![Message::user("Weather?")], ..Request::default() };
        let targets = [target(session(&store))];
        let calls = (0..20).map(|_| async {
            let called = client.call(&targets, &request, Duration::from_secs(60), &mut |_| {}).await;
            assert_eq!(called.expect("an answer").answer.text(), "Sunny.");
        });
        futures::future::join_all(calls).await;
        assert_eq!(known.lock().expect("a lock").given, 1);
    });
}

#[test]
fn a_login_on_another_machine() {
    run(|env, network| async move {
        serve(&env, &network);
        let (status, _, body) = send(&env, &network, Device::request(&issuer()).expect("encoded")).await;
        let mut device = Device::read(status, &body, now(&env)).expect("a code");
        assert_eq!((device.user_code.as_str(), device.interval), ("AB-CD", 5));
        let begin = now(&env);
        let tokens = loop {
            let (status, _, body) = send(&env, &network, device.poll(&issuer()).expect("encoded")).await;
            match device.answer(&issuer(), status, &body, now(&env)).expect("waits or done") {
                Poll::Wait(seconds) => wait(Duration::from_secs(seconds)).await,
                Poll::Done(tokens) => break tokens,
            }
        };
        assert_eq!((now(&env) - begin, tokens.access), (10, "canary-access-1".into()));
    });
}
