use std::sync::{Arc, Mutex};

use expect_test::{Expect, expect};
use http::StatusCode;
use proptest::prelude::*;

use super::*;
use crate::auth::TokenSource;
use crate::testing::NOW;
use crate::{Parts, Secret};

fn gemini() -> Issuer {
    Issuer::gemini("client-1".into(), "client secret".into())
}

fn claude() -> Issuer {
    Issuer::claude("client-2".into())
}

/// A login whose verifier and state are known.
fn login() -> Login {
    let mut random = [0; 64];
    random[63] = 1;
    Login::begin("http://127.0.0.1:9/callback", &random)
}

const STATE: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE";

fn text(parts: &Parts) -> String {
    format!("{} {} {}", parts.method, parts.url, String::from_utf8_lossy(&parts.body))
}

#[test]
fn the_page_has_challenge_and_state() {
    expect!["https://accounts.google.com/o/oauth2/v2/auth?response_type=code&client_id=client-1&redirect_uri=http%3A%2F%2F127.0.0.1%3A9%2Fcallback&scope=https%3A%2F%2Fwww.googleapis.com%2Fauth%2Fgenerative-language.peruserquota%20https%3A%2F%2Fwww.googleapis.com%2Fauth%2Fgenerative-language.retriever%20https%3A%2F%2Fwww.googleapis.com%2Fauth%2Fuserinfo.email&state=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE&code_challenge=DwBzhbb51LfusnSGBa_hqYSgo7-j8BTQnip4TOnlzRo&code_challenge_method=S256&access_type=offline&prompt=consent"].assert_eq(&login().url(&gemini()));
    expect!["https://a.example/?x=1&response_type=code&client_id=client-2&redirect_uri=http%3A%2F%2F127.0.0.1%3A9%2Fcallback&scope=user%3Aprofile%20user%3Ainference&state=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE&code_challenge=DwBzhbb51LfusnSGBa_hqYSgo7-j8BTQnip4TOnlzRo&code_challenge_method=S256&code=true"].assert_eq(&login().url(&Issuer { authorize_url: "https://a.example/?x=1".into(), ..claude() }));
}

#[test]
fn the_challenge_is_that_of_the_standard() {
    // The example of RFC 7636, appendix B.
    let verifier = [
        116, 24, 223, 180, 151, 153, 224, 37, 79, 250, 96, 125, 216, 173, 187, 186, 22, 212, 37, 77, 105, 214, 191,
        240, 91, 88, 5, 88, 83, 132, 141, 121,
    ];
    let mut random = [0; 64];
    random[..32].copy_from_slice(&verifier);
    let url = Login::begin("http://127.0.0.1:9/callback", &random).url(&gemini());
    assert!(url.contains("code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM&"), "{url}");
}

#[test]
fn codes_are_exchanged() {
    let code = login().callback(&format!("/callback?state={STATE}&code=4%2F0A&scope=x")).unwrap();
    let parts = login().exchange(&gemini(), &code).unwrap();
    expect!["POST https://oauth2.googleapis.com/token grant_type=authorization_code&code=4%2F0A&redirect_uri=http%3A%2F%2F127.0.0.1%3A9%2Fcallback&code_verifier=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA&client_id=client-1&client_secret=client%20secret"].assert_eq(&text(&parts));
    assert!(!format!("{parts:?} {code:?} {:?}", login()).contains("4/0A"));
    let code = login().pasted(&format!("  c1#{STATE}\n")).unwrap();
    let issuer = Issuer { headers: vec![("anthropic-beta".into(), "x".into())], ..claude() };
    let parts = login().exchange(&issuer, &code).unwrap();
    expect![[r#"POST https://console.anthropic.com/v1/oauth/token {"grant_type":"authorization_code","code":"c1","redirect_uri":"http://127.0.0.1:9/callback","code_verifier":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA","state":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE","client_id":"client-2"}"#]].assert_eq(&text(&parts));
    assert_eq!(parts.headers["anthropic-beta"], "x");
}

#[test]
fn other_answers_of_the_browser_are_refused() {
    let check =
        |target: &str, expected: &Expect| expected.assert_eq(&login().callback(target).unwrap_err().to_string());
    check(&format!("/other?state={STATE}&code=c"), &expect!["the browser came back to another path than /callback"]);
    check("/callback", &expect!["the state is missing; a pasted text has the form CODE#STATE"]);
    check("/callback?code=c&state=other", &expect!["the state is not that of this login"]);
    check(&format!("/callback?state={STATE}&code="), &expect!["the code is missing"]);
    check(
        "/callback?error=access_denied&error_description=The+person+said+no",
        &expect!["the issuer refused the login: access_denied: The person said no"],
    );
    check(&format!("/callback?{}", "x".repeat(10_000)), &expect!["the text is longer than 8192 bytes"]);
    let check = |text: &str, expected: &Expect| expected.assert_eq(&login().pasted(text).unwrap_err().to_string());
    check("c1", &expect!["the state is missing; a pasted text has the form CODE#STATE"]);
    check("c1#other", &expect!["the state is not that of this login"]);
    check(&format!("#{STATE}"), &expect!["the code is missing"]);
}

/// A store in memory that can refuse to write.
#[derive(Default)]
struct Memory {
    stored: Mutex<Option<String>>,
    is_full: bool,
}

impl Store for Memory {
    fn load(&self, _client: &str) -> Result<Option<Tokens>, StoreError> {
        let stored = self.stored.lock().unwrap().clone();
        let tokens = stored.map(|text| Tokens::from_stored(&text)).transpose();
        tokens.map(Option::flatten).map_err(|error| StoreError(error.to_string()))
    }

    fn save(&self, _client: &str, tokens: &Tokens) -> Result<(), StoreError> {
        if self.is_full {
            return Err(StoreError("the disk is full".into()));
        }
        *self.stored.lock().unwrap() = Some(tokens.stored().expose().to_owned());
        Ok(())
    }
}

fn session(store: Arc<Memory>) -> Session {
    Session::new("work".into(), gemini(), store, "atlasctl provider login work".into())
}

fn stored(text: &str) -> Arc<Memory> {
    Arc::new(Memory { stored: Mutex::new(Some(text.into())), is_full: false })
}

#[test]
fn tokens_are_stored_and_renewed() {
    let store = stored(r#"{"access_token": "a1", "refresh_token": "r1", "expires_at": 1795456900}"#);
    let session = session(Arc::clone(&store));
    assert!(session.request(NOW).unwrap().is_none());
    assert_eq!(session.token(NOW), Some(Secret::from("a1")));
    let parts = session.request(NOW + 50).unwrap().expect("it ends soon");
    expect!["POST https://oauth2.googleapis.com/token grant_type=refresh_token&refresh_token=r1&client_id=client-1&client_secret=client%20secret"].assert_eq(&text(&parts));
    session.answer(StatusCode::OK, b"{\"access_token\": \"a2\", \"expires_in\": 3600}", NOW + 50).unwrap();
    assert_eq!(session.token(NOW + 60), Some(Secret::from("a2")));
    expect![[r#"{"access_token":"a2","refresh_token":"r1","expires_at":1795460450}"#]]
        .assert_eq(store.stored.lock().unwrap().as_deref().unwrap());
    session.forget();
    let answer = b"{\"access_token\": \"a3\", \"expires_in\": 3600, \"refresh_token\": \"r2\"}";
    assert!(text(&session.request(NOW + 60).unwrap().expect("it was refused")).contains("refresh_token=r1"));
    session.answer(StatusCode::OK, answer, NOW + 60).unwrap();
    session.forget();
    assert!(text(&session.request(NOW + 60).unwrap().expect("it was refused")).contains("refresh_token=r2"));
    assert!(!format!("{session:?}").contains("a3"));
}

#[test]
fn sessions_that_cannot_go_on_name_the_command() {
    let check = |store: Arc<Memory>, expected: &Expect| {
        let error = session(store).request(NOW).unwrap_err();
        expected.assert_eq(&format!("{} {error}", error.kind.name()));
    };
    check(Arc::default(), &expect![[r#"credentials "work": there is no login; run "atlasctl provider login work""#]]);
    check(
        stored("{"),
        &expect![[
            r#"credentials "work": the tokens were not read or written: not JSON: EOF while parsing an object at line 1 column 1"#
        ]],
    );
    check(
        stored(r#"{"access_token": "a1", "expires_at": 1}"#),
        &expect![[r#"credentials "work": the login has ended; run "atlasctl provider login work""#]],
    );
    let session = session(stored(r#"{"access_token": "a1", "refresh_token": "r1-secret", "expires_at": 1}"#));
    assert!(session.request(NOW).unwrap().is_some());
    let answer = |status: u16, body: &[u8]| {
        let error = session.answer(StatusCode::from_u16(status).unwrap(), body, NOW).unwrap_err();
        format!("{} {error}", error.kind.name())
    };
    expect![[r#"credentials "work": the issuer ended the login; run "atlasctl provider login work" (invalid_grant: [redacted])"#]].assert_eq(&answer(400, b"{\"error\": \"invalid_grant\", \"error_description\": \"r1-secret\"}"));
    expect!["provider busy"].assert_eq(&answer(503, b"busy"));
    expect!["answer the answer of the token endpoint does not say when the token expires"]
        .assert_eq(&answer(200, b"{\"access_token\": \"a\"}"));
}

#[test]
fn tokens_that_cannot_be_stored_are_an_error_and_still_used() {
    let store = Arc::new(Memory { stored: Mutex::default(), is_full: true });
    let session = session(store);
    let tokens = Tokens { access: "a".into(), refresh: None, expires_at: None };
    assert_eq!(session.logged_in(tokens), Err(StoreError("the disk is full".into())));
    let error = session.answer(StatusCode::OK, b"{\"access_token\": \"a\", \"expires_in\": 3600}", NOW).unwrap_err();
    expect![[r#""work": the tokens were not read or written: the disk is full"#]].assert_eq(&error.to_string());
    assert_eq!(session.token(NOW), Some(Secret::from("a")));
}

#[test]
fn devices_wait_for_the_person() {
    let issuer = Issuer { device_url: Some("https://a.example/device".into()), ..gemini() };
    expect!["POST https://a.example/device client_id=client-1&scope=https%3A%2F%2Fwww.googleapis.com%2Fauth%2Fgenerative-language.peruserquota%20https%3A%2F%2Fwww.googleapis.com%2Fauth%2Fgenerative-language.retriever%20https%3A%2F%2Fwww.googleapis.com%2Fauth%2Fuserinfo.email"].assert_eq(&text(&Device::request(&issuer).unwrap()));
    assert!(Device::request(&gemini()).is_err());
    let begun = br#"{"device_code": "d-secret", "user_code": "WDJB-MJHT", "verification_uri": "https://a.example/d", "expires_in": 100, "interval": 7}"#;
    let mut device = Device::read(StatusCode::OK, begun, NOW).unwrap();
    assert!(!format!("{device:?}").contains("d-secret"));
    expect!["POST https://oauth2.googleapis.com/token grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Adevice_code&device_code=d-secret&client_id=client-1&client_secret=client%20secret"].assert_eq(&text(&device.poll(&issuer).unwrap()));
    let mut answer = |status: u16, body: &str, later| {
        let status = StatusCode::from_u16(status).unwrap();
        match device.answer(&issuer, status, body.as_bytes(), NOW + later) {
            Ok(Poll::Wait(seconds)) => format!("wait {seconds}"),
            Ok(Poll::Done(tokens)) => format!("done {:?}", tokens.expires_at),
            Err(error) => format!("{} {error}", error.kind.name()),
        }
    };
    assert_eq!(answer(400, r#"{"error": "authorization_pending"}"#, 7), "wait 7");
    assert_eq!(answer(400, r#"{"error": "slow_down"}"#, 14), "wait 12");
    assert_eq!(answer(400, r#"{"error": "authorization_pending"}"#, 26), "wait 12");
    expect!["credentials the code has expired: begin the login again"].assert_eq(&answer(
        400,
        r#"{"error": "authorization_pending"}"#,
        90,
    ));
    expect!["credentials access_denied: [redacted]"].assert_eq(&answer(
        400,
        r#"{"error": "access_denied", "error_description": "d-secret"}"#,
        30,
    ));
    expect!["provider the provider answered 500 Internal Server Error without a text"].assert_eq(&answer(500, "", 30));
    expect!["done None"].assert_eq(&answer(200, r#"{"access_token": "a", "token_type": "bearer"}"#, 30));
    let read = |status: u16, body: &[u8]| Device::read(StatusCode::from_u16(status).unwrap(), body, NOW);
    expect!["the answer of the issuer has no user_code"]
        .assert_eq(&read(200, b"{\"device_code\": \"d\"}").unwrap_err().to_string());
    expect!["invalid_client"].assert_eq(&read(400, b"{\"error\": \"invalid_client\"}").unwrap_err().to_string());
    assert!(read(200, b"<html>").is_err());
}

proptest! {
    #[test]
    fn any_text_of_a_browser_is_read_or_refused(text: String) {
        let _ = login().callback(&text);
        let _ = login().callback(&format!("/callback?{text}"));
        let _ = login().pasted(&text);
    }

    #[test]
    fn any_answer_of_an_issuer_is_read_or_refused(status in 200_u16..600, body: Vec<u8>) {
        let status = StatusCode::from_u16(status).unwrap();
        let _ = Device::read(status, &body, NOW);
        let _ = session(Arc::default()).answer(status, &body, NOW);
    }
}
