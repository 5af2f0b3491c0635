use atlas_model::LoginSpec;
use atlas_types::SecretText;
use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;

const NOW: UnixSeconds = 1_795_456_789;

fn known(issuer: &str, client_id: &str, secret: Option<&str>) -> Issuer {
    let spec = format!(r#"{{"issuer": "{issuer}", "client_id": "{client_id}"}}"#);
    let spec: LoginSpec = serde_json::from_str(&spec).expect("a login");
    Issuer::of(&spec, secret.map(SecretText::new)).expect("an issuer")
}

fn gemini() -> Issuer {
    known("gemini", "client-1", Some("client secret"))
}

fn claude() -> Issuer {
    known("claude", "client-2", None)
}

/// A login whose verifier and state are known.
fn login() -> Login {
    let mut random = [0; 64];
    random[63] = 1;
    Login::begin("http://127.0.0.1:9/callback", &random)
}

const STATE: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE";

fn text(request: &Request) -> String {
    format!("{} {}", request.url, request.body.expose())
}

#[test]
fn an_issuer_that_says_that_it_names_itself_does_so() {
    let callback = |login: Login, iss: &str| {
        let code = login.callback(&format!("/callback?state={STATE}&code=c{iss}"));
        code.map(drop).map_err(|error| error.to_string())
    };
    let (named, other) = ("&iss=https%3A%2F%2Fid.example", "&iss=https%3A%2F%2Fother.example");
    for names_issuer in [false, true] {
        let login = || login().of_issuer("https://id.example", names_issuer);
        assert_eq!(callback(login(), named), Ok(()));
        assert_eq!(callback(login(), other), Err("another issuer answered the login".to_owned()));
        assert_eq!(callback(login(), "").is_err(), names_issuer);
    }
    let told = callback(login().of_issuer("https://id.example", true), "").expect_err("refused");
    assert_eq!(told, "the issuer says that its answers name it, and this one does not: it may come from somebody else");
    assert_eq!(callback(login(), ""), Ok(()));
}

#[test]
fn the_page_has_challenge_and_state() {
    expect!["https://accounts.google.com/o/oauth2/v2/auth?response_type=code&client_id=client-1&redirect_uri=http%3A%2F%2F127.0.0.1%3A9%2Fcallback&state=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE&code_challenge=DwBzhbb51LfusnSGBa_hqYSgo7-j8BTQnip4TOnlzRo&code_challenge_method=S256&scope=https%3A%2F%2Fwww.googleapis.com%2Fauth%2Fgenerative-language.peruserquota%20https%3A%2F%2Fwww.googleapis.com%2Fauth%2Fgenerative-language.retriever%20https%3A%2F%2Fwww.googleapis.com%2Fauth%2Fuserinfo.email&access_type=offline&prompt=consent"].assert_eq(&login().url(&gemini()).expect("a page"));
    expect!["https://a.example/?x=1&response_type=code&client_id=client-2&redirect_uri=http%3A%2F%2F127.0.0.1%3A9%2Fcallback&state=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE&code_challenge=DwBzhbb51LfusnSGBa_hqYSgo7-j8BTQnip4TOnlzRo&code_challenge_method=S256&scope=user%3Aprofile%20user%3Ainference&code=true"].assert_eq(&login().url(&Issuer { authorize_url: Some("https://a.example/?x=1".into()), ..claude() }).expect("a page"));
    assert_eq!(login().url(&Issuer { authorize_url: None, ..claude() }), None);
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
    let url = Login::begin("http://127.0.0.1:9/callback", &random).url(&gemini()).expect("a page");
    assert!(url.contains("code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM&"), "{url}");
}

#[test]
fn codes_are_exchanged() {
    let code = login().callback(&format!("/callback?state={STATE}&code=4%2F0A&scope=x")).unwrap();
    let parts = login().proof(code).exchange(&gemini());
    expect!["https://oauth2.googleapis.com/token grant_type=authorization_code&code=4%2F0A&redirect_uri=http%3A%2F%2F127.0.0.1%3A9%2Fcallback&code_verifier=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA&client_id=client-1&client_secret=client%20secret"].assert_eq(&text(&parts));
    assert!(!format!("{parts:?}").contains("0A"));
    let code = login().pasted(&format!("  c1#{STATE}\n")).unwrap();
    let issuer = Issuer { headers: vec![("anthropic-beta".into(), "x".into())], ..claude() };
    let parts = login().proof(code).exchange(&issuer);
    expect![[r#"https://console.anthropic.com/v1/oauth/token {"grant_type":"authorization_code","code":"c1","redirect_uri":"http://127.0.0.1:9/callback","code_verifier":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA","state":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE","client_id":"client-2"}"#]].assert_eq(&text(&parts));
    assert_eq!(parts.headers, [("anthropic-beta".to_owned(), "x".to_owned())]);
}

#[test]
fn other_answers_of_the_browser_are_refused() {
    let check = |target: &str, expected: &Expect| {
        expected.assert_eq(&login().callback(target).expect_err("refused").to_string())
    };
    check(&format!("/other?state={STATE}&code=c"), &expect!["the browser came back to another path than /callback"]);
    check("/callback", &expect!["the state is missing; a pasted text has the form CODE#STATE"]);
    check("/callback?code=c&state=other", &expect!["the state is not that of this login"]);
    check(&format!("/callback?state={STATE}&code="), &expect!["the code is missing"]);
    check(
        "/callback?error=access_denied&error_description=The+person+said+no",
        &expect!["the issuer refused the login: access_denied: The person said no"],
    );
    check(&format!("/callback?{}", "x".repeat(10_000)), &expect!["the text is longer than 8192 bytes"]);
    let check =
        |text: &str, expected: &Expect| expected.assert_eq(&login().pasted(text).expect_err("refused").to_string());
    check("c1", &expect!["the state is missing; a pasted text has the form CODE#STATE"]);
    check("c1#other", &expect!["the state is not that of this login"]);
    check(&format!("#{STATE}"), &expect!["the code is missing"]);
}

#[test]
fn tokens_are_renewed() {
    let parts = gemini().refresh(&SecretText::new("r1"));
    expect!["https://oauth2.googleapis.com/token grant_type=refresh_token&refresh_token=r1&client_id=client-1&client_secret=client%20secret"].assert_eq(&text(&parts));
}

#[test]
fn specs_replace_what_is_known() {
    let spec = |text: &str| serde_json::from_str::<LoginSpec>(text).expect("a login");
    let shown = |text: &str| {
        let issuer = Issuer::of(&spec(text), None).expect("an issuer");
        let Issuer { authorize_url, token_url, scopes, redirect, body, parameters, .. } = issuer;
        format!("{authorize_url:?} {token_url} {scopes:?} {redirect:?} {body:?} {parameters:?}")
    };
    expect![[r#"Some("https://claude.ai/oauth/authorize") https://t.test ["a"] Paste("https://console.anthropic.com/oauth/code/callback") Json [("code", "false")]"#]]
        .assert_eq(&shown(r#"{"issuer": "claude", "client_id": "c", "token_url": "https://t.test", "scopes": ["a"], "parameters": {"code": "false"}}"#));
    expect![[r#"None https://t.test [] Paste("https://p.test") Json []"#]].assert_eq(&shown(
        r#"{"client_id": "c", "token_url": "https://t.test", "body": "json", "code_page": "https://p.test"}"#,
    ));
    assert_eq!(Issuer::of(&spec(r#"{"client_id": "c"}"#), None).err(), Some(IssuerError));
}

#[test]
fn devices_wait_for_the_person() {
    let issuer = Issuer { device_url: Some("https://a.example/device".into()), ..gemini() };
    expect!["https://a.example/device client_id=client-1&scope=https%3A%2F%2Fwww.googleapis.com%2Fauth%2Fgenerative-language.peruserquota%20https%3A%2F%2Fwww.googleapis.com%2Fauth%2Fgenerative-language.retriever%20https%3A%2F%2Fwww.googleapis.com%2Fauth%2Fuserinfo.email"].assert_eq(&text(&Device::request(&issuer).expect("a request")));
    assert!(Device::request(&gemini()).is_none());
    let begun = br#"{"device_code": "d-secret", "user_code": "WDJB-MJHT", "verification_uri": "https://a.example/d", "expires_in": 100, "interval": 7}"#;
    let device = Device::read(200, begun, NOW).expect("a code");
    assert_eq!((device.user_code.as_str(), device.interval, device.expires_at), ("WDJB-MJHT", 7, NOW + 100));
    expect!["https://oauth2.googleapis.com/token grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Adevice_code&device_code=d-secret&client_id=client-1&client_secret=client%20secret"].assert_eq(&text(&Device::poll(&issuer, &device.code)));
    let answer = |status: u16, body: &str| match Poll::read(&issuer, &device.code, (status, body.as_bytes()), NOW) {
        Ok(Poll::Wait { longer }) => format!("wait {longer}"),
        Ok(Poll::Done(tokens)) => format!("done {:?}", tokens.expires_at),
        Err(error) => format!("{} {error}", error.kind.name()),
    };
    assert_eq!(answer(400, r#"{"error": "authorization_pending"}"#), "wait 0");
    assert_eq!(answer(400, r#"{"error": "slow_down"}"#), "wait 5");
    expect!["credentials the code has expired: begin the login again"]
        .assert_eq(&answer(400, r#"{"error": "expired_token"}"#));
    expect!["credentials access_denied: [redacted:code]"]
        .assert_eq(&answer(400, r#"{"error": "access_denied", "error_description": "d-secret"}"#));
    expect!["provider the issuer answered with the HTTP status 500"].assert_eq(&answer(500, ""));
    expect!["done None"].assert_eq(&answer(200, r#"{"access_token": "a", "token_type": "bearer"}"#));
    let read = |status: u16, body: &[u8]| match Device::read(status, body, NOW) {
        Ok(_) => "a code".to_owned(),
        Err(error) => error.to_string(),
    };
    expect!["the answer of the issuer has no user_code"].assert_eq(&read(200, b"{\"device_code\": \"d\"}"));
    expect!["invalid_client"].assert_eq(&read(400, b"{\"error\": \"invalid_client\"}"));
    expect!["the answer of the issuer has no device_code"].assert_eq(&read(200, b"<html>"));
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
        let _ = Device::read(status, &body, NOW);
        let _ = Poll::read(&gemini(), &SecretText::new("code"), (status, &body), NOW);
    }
}
