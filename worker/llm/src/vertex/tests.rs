use std::sync::Arc;

use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::adc::{Adc, AdcError, FILE_BYTES_MAX};
use super::*;
use crate::auth::TokenSource;
use crate::testing::{NOW, ask, check_answer, check_request, typed};

/// A key that was made for these tests.
const KEY: &str = include_str!("tests/key.pem");
/// The statement that openssl signs with the key.
const ASSERTION: &str = include_str!("tests/assertion.txt");

fn protocol(location: &str) -> VertexAi {
    VertexAi {
        project: "my-project".into(),
        location: location.into(),
        auth: Auth::Bearer("ya29.secret".into()),
        quota_project: None,
    }
}

fn request(model: &str, stream: bool) -> Request {
    Request { model: model.into(), stream, ..ask("hi") }
}

fn user_file() -> Value {
    json!({
        "type": "authorized_user",
        "client_id": "id.apps.googleusercontent.com",
        "client_secret": "cs secret",
        "refresh_token": "1//rt-secret",
        "quota_project_id": "payer",
    })
}

fn account_file() -> Value {
    json!({
        "type": "service_account",
        "client_email": "atlas@project.iam.gserviceaccount.com",
        "private_key_id": "key-1",
        "private_key": KEY,
        "token_uri": "https://oauth2.googleapis.com/token",
    })
}

#[test]
fn models_have_the_path_of_their_publisher() {
    let url = |location: &str, model: &str, stream| {
        let parts = protocol(location).encode(&Endpoint::default(), &request(model, stream));
        parts.map(|parts| parts.url).unwrap_or_else(|error| error.to_string())
    };
    expect!["https://europe-west4-aiplatform.googleapis.com/v1/projects/my-project/locations/europe-west4/publishers/google/models/gemini-2.5-pro:generateContent"].assert_eq(&url("europe-west4", "gemini-2.5-pro", false));
    expect!["https://aiplatform.googleapis.com/v1/projects/my-project/locations/global/publishers/google/models/gemini-2.5-pro:streamGenerateContent?alt=sse"].assert_eq(&url("global", "gemini-2.5-pro", true));
    expect!["https://us-east5-aiplatform.googleapis.com/v1/projects/my-project/locations/us-east5/publishers/anthropic/models/claude-sonnet-4@20250514:rawPredict"].assert_eq(&url("us-east5", "claude-sonnet-4@20250514", false));
    expect!["https://us-east5-aiplatform.googleapis.com/v1/projects/my-project/locations/us-east5/publishers/anthropic/models/claude-sonnet-4@20250514:streamRawPredict"].assert_eq(&url("us-east5", "claude-sonnet-4@20250514", true));
    expect!["https://europe-west4-aiplatform.googleapis.com/v1/projects/my-project/locations/europe-west4/publishers/mistralai/models/codestral-2501:rawPredict"].assert_eq(&url("europe-west4", "codestral-2501", false));
    expect![[r#"Vertex AI does not support the model "llama-4/x""#]].assert_eq(&url("global", "llama-4/x", true));
    expect!["the location is not valid: it has other characters than a-z, 0-9 and -, or not 1 to 63 of them"]
        .assert_eq(&url("evil.example.com/", "gemini-2.5-pro", true));
    expect!["the location is not valid: it has other characters than a-z, 0-9 and -, or not 1 to 63 of them"]
        .assert_eq(&url("", "gemini-2.5-pro", true));
}

#[test]
fn claude_has_its_version_in_the_body() {
    let vertex = VertexAi { quota_project: Some("payer".into()), ..protocol("us-east5") };
    check_request(
        &vertex,
        "http://localhost:9/v1",
        &request("claude-sonnet-4@20250514", true),
        &expect![[r#"
        POST http://localhost:9/v1/projects/my-project/locations/us-east5/publishers/anthropic/models/claude-sonnet-4@20250514:streamRawPredict
        authorization: Sensitive
        content-type: "application/json"
        x-goog-user-project: "payer"
        {
          "max_tokens": 4096,
          "messages": [
            {
              "role": "user",
              "content": "hi"
            }
          ],
          "anthropic_version": "vertex-2023-10-16",
          "stream": true
        }
    "#]],
    );
}

#[test]
fn gemini_has_its_own_body() {
    check_request(
        &protocol("global"),
        "http://localhost:9/v1/",
        &request("gemini-2.5-pro", false),
        &expect![[r#"
        POST http://localhost:9/v1/projects/my-project/locations/global/publishers/google/models/gemini-2.5-pro:generateContent
        authorization: Sensitive
        content-type: "application/json"
        {
          "contents": [
            {
              "role": "user",
              "parts": [
                {
                  "text": "hi"
                }
              ]
            }
          ]
        }
    "#]],
    );
}

#[test]
fn mistral_has_the_body_of_chat_completions() {
    let request = Request { top_k: Some(3), ..request("mistral-medium-3", true) };
    check_request(
        &protocol("us-central1"),
        "http://localhost:9/v1",
        &request,
        &expect![[r#"
        POST http://localhost:9/v1/projects/my-project/locations/us-central1/publishers/mistralai/models/mistral-medium-3:streamRawPredict
        authorization: Sensitive
        content-type: "application/json"
        {
          "model": "mistral-medium-3",
          "messages": [
            {
              "role": "user",
              "content": "hi"
            }
          ],
          "stream": true
        }
    "#]],
    );
}

#[test]
fn answers_have_the_form_of_the_publisher() {
    let decoder = |model| protocol("global").decoder(&request(model, false), &typed("application/json"));
    let claude = json!({"content": [{"type": "text", "text": "Hello"}], "model": "claude", "stop_reason": "end_turn"});
    check_answer(
        decoder("claude-x"),
        claude.to_string().as_bytes(),
        &expect![[r#"
        answer None of claude: End
          {"type":"text","text":"Hello"}
          {"input":0,"output":0,"cache_read":0,"cache_write":0,"reasoning":0}
    "#]],
    );
    let mistral = json!({"choices": [{"message": {"content": "Hello"}, "finish_reason": "stop"}]});
    check_answer(
        decoder("mistral-x"),
        mistral.to_string().as_bytes(),
        &expect![[r#"
        answer None of mistral-x: End
          {"type":"text","text":"Hello"}
          {"input":0,"output":0,"cache_read":0,"cache_write":0,"reasoning":0}
    "#]],
    );
    let gemini = json!({"candidates": [{"content": {"parts": [{"text": "Hello"}]}, "finishReason": "STOP"}]});
    check_answer(
        decoder("gemini-x"),
        gemini.to_string().as_bytes(),
        &expect![[r#"
            answer None of gemini-x: End
              {"type":"text","text":"Hello"}
              {"input":0,"output":0,"cache_read":0,"cache_write":0,"reasoning":0}
        "#]],
    );
}

#[test]
fn a_refresh_token_is_exchanged_once() {
    let adc = Arc::new(Adc::parse(&user_file().to_string()).unwrap());
    assert_eq!(adc.quota_project.as_deref(), Some("payer"));
    let vertex = VertexAi { auth: Auth::Token(adc), ..protocol("global") };
    let parts = vertex.token_request(NOW).unwrap().expect("no token yet");
    expect!["https://oauth2.googleapis.com/token grant_type=refresh_token&client_id=id.apps.googleusercontent.com&client_secret=cs%20secret&refresh_token=1%2F%2Frt-secret"].assert_eq(&format!("{} {}", parts.url, String::from_utf8_lossy(&parts.body)));
    assert!(!format!("{parts:?}").contains("secret"));
    let mut early = Parts::get("http://localhost".into());
    assert_eq!(vertex.sign(&mut early, NOW).unwrap_err().message, "there is no valid access token");
    let answer = br#"{"access_token": "ya29.new", "expires_in": 3599, "scope": "x", "token_type": "Bearer"}"#;
    vertex.token_answer(StatusCode::OK, answer, NOW).unwrap();
    assert!(vertex.token_request(NOW + 3000).unwrap().is_none());
    assert!(vertex.token_request(NOW + 3540).unwrap().is_some());
    let mut parts = vertex.encode(&Endpoint::default(), &request("gemini-x", false)).unwrap();
    assert!(!parts.headers.contains_key("authorization"));
    vertex.sign(&mut parts, NOW).unwrap();
    assert_eq!(parts.headers["authorization"], "Bearer ya29.new");
    vertex.failure(StatusCode::TOO_MANY_REQUESTS, &HeaderMap::new(), b"");
    assert!(vertex.token_request(NOW).unwrap().is_none());
    vertex.failure(StatusCode::UNAUTHORIZED, &HeaderMap::new(), b"");
    assert!(vertex.token_request(NOW).unwrap().is_some(), "a refused token is not used again");
}

#[test]
fn a_refused_exchange_names_no_secret() {
    let adc = Adc::parse(&user_file().to_string()).unwrap();
    let body = br#"{"error": "invalid_grant", "error_description": "Bad token 1//rt-secret"}"#;
    let error = adc.answer(StatusCode::BAD_REQUEST, body, NOW).unwrap_err();
    expect!["credentials invalid_grant: Bad token [redacted:refresh_token]"].assert_eq(&format!(
        "{} {}",
        error.kind.name(),
        error.message
    ));
    assert!(!format!("{adc:?}").contains("secret\""));
}

#[test]
fn a_service_account_signs() {
    let adc = Adc::parse(&account_file().to_string()).unwrap();
    let parts = adc.request(NOW).unwrap().expect("no token yet");
    let grant = "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer";
    assert_eq!(String::from_utf8(parts.body).unwrap(), format!("{grant}&assertion={}", ASSERTION.trim()));
}

#[test]
fn files_that_are_no_credentials_are_refused() {
    let check = |text: &str, expected: &Expect| expected.assert_eq(&Adc::parse(text).unwrap_err().to_string());
    let without = |file: Value, name: &str, value: Value| {
        let mut file = file;
        file[name] = value;
        file.to_string()
    };
    check("", &expect!["the file is no JSON"]);
    check("{}", &expect![[r#"the member "type" is missing"#]]);
    check(&without(user_file(), "refresh_token", json!("")), &expect![[r#"the member "refresh_token" is missing"#]]);
    check(
        &without(account_file(), "private_key", json!("-----BEGIN PRIVATE KEY-----\n")),
        &expect![[r#"the member "private_key" is no RSA key in PEM"#]],
    );
    check(
        &without(account_file(), "token_uri", json!("http://example.com")),
        &expect![[r#"the member "token_uri" does not begin with https://"#]],
    );
    check(
        &without(user_file(), "type", json!("external_account")),
        &expect![[
            r#"credentials of the type "external_account" are not supported, but "authorized_user" and "service_account" are"#
        ]],
    );
    assert_eq!(Adc::parse(&" ".repeat(FILE_BYTES_MAX + 1)).unwrap_err(), AdcError::TooLarge);
}
