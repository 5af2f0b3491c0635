//! Tokens that are valid, and those that must not be.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use expect_test::{Expect, expect};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _};
use serde_json::json;

use super::*;

const ISSUER: &str = "https://issuer.example";

/// Signs tokens.
enum Signer {
    P256(EcdsaKeyPair),
    Ed(Ed25519KeyPair),
}

impl Signer {
    fn p256() -> Self {
        let random = SystemRandom::new();
        let key = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).expect("a key");
        let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, key.as_ref(), &random).expect("a key");
        Self::P256(key)
    }

    fn ed() -> Self {
        let key = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).expect("a key");
        Self::Ed(Ed25519KeyPair::from_pkcs8(key.as_ref()).expect("a key"))
    }

    fn jwk(&self, id: &str) -> Value {
        match self {
            Self::P256(key) => {
                let (x, y) = key.public_key().as_ref()[1..].split_at(32);
                json!({"kty": "EC", "crv": "P-256", "kid": id, "x": text(x), "y": text(y)})
            }
            Self::Ed(key) => json!({"kty": "OKP", "crv": "Ed25519", "kid": id, "x": text(key.public_key().as_ref())}),
        }
    }

    fn sign(&self, header: &Value, claims: &Value) -> String {
        let message = format!("{}.{}", text(header.to_string().as_bytes()), text(claims.to_string().as_bytes()));
        let signature = match self {
            Self::P256(key) => text(key.sign(&SystemRandom::new(), message.as_bytes()).expect("a signature").as_ref()),
            Self::Ed(key) => text(key.sign(message.as_bytes()).as_ref()),
        };
        format!("{message}.{signature}")
    }
}

fn text(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

fn keys(list: &[Value]) -> Keys {
    Keys::read(json!({"keys": list}).to_string().as_bytes()).unwrap_or_else(|error| panic!("{error}"))
}

fn verified(token: &str, keys: &Keys, claim: &str) -> String {
    let claims = [("groups".to_owned(), vec!["ops".to_owned(), "admins".to_owned()])].into();
    let audiences = ["atlas".to_owned()];
    let expected = Expectation { issuer: ISSUER, audiences: &audiences, principal_claim: claim, claims: &claims };
    match verify(token, keys, &expected, 1_000) {
        Ok(verified) => format!("ok {}", verified.principal),
        Err(error) => format!("! {error}"),
    }
}

fn check(changes: &[Value], expected: &Expect) {
    let signer = Signer::p256();
    let keys = keys(&[signer.jwk("one")]);
    let lines = changes.iter().map(|change| {
        let mut claims = json!({"iss": ISSUER, "aud": "atlas", "sub": "ann", "exp": 1_100, "groups": ["dev", "ops"]});
        for (name, value) in change.as_object().into_iter().flatten() {
            claims[name] = value.clone();
        }
        let token = signer.sign(&json!({"alg": "ES256", "kid": "one"}), &claims);
        let claim = if change.get("email").is_some() { "email" } else { "sub" };
        format!("{change} {}\n", verified(&token, &keys, claim))
    });
    expected.assert_eq(&lines.collect::<String>());
}

#[test]
fn claims_decide() {
    check(
        &[
            json!({}),
            json!({"aud": ["other", "atlas"], "groups": "admins"}),
            json!({"email": "ann@example.com", "email_verified": true}),
            json!({"email": "ann@example.com", "email_verified": "true"}),
            json!({"email": "ann@example.com", "email_verified": false}),
            json!({"email": "ann@example.com"}),
            json!({"exp": 941}),
            json!({"exp": 940}),
            json!({"exp": "1100"}),
            json!({"exp": null}),
            json!({"exp": 1e300, "nbf": 1_060.5}),
            json!({"nbf": 1_061}),
            json!({"aud": "other"}),
            json!({"aud": null}),
            json!({"iss": "https://issuer.example/"}),
            json!({"iss": null}),
            json!({"groups": ["dev"]}),
            json!({"groups": {"ops": true}}),
            json!({"sub": ""}),
            json!({"sub": 7}),
        ],
        &expect![[r#"
            {} ok ann
            {"aud":["other","atlas"],"groups":"admins"} ok ann
            {"email":"ann@example.com","email_verified":true} ok ann@example.com
            {"email":"ann@example.com","email_verified":"true"} ok ann@example.com
            {"email":"ann@example.com","email_verified":false} ! its claim "email_verified" does not have a value that is asked for
            {"email":"ann@example.com"} ! its claim "email_verified" does not have a value that is asked for
            {"exp":941} ok ann
            {"exp":940} ! it has expired
            {"exp":"1100"} ! its claim "exp" does not have a value that is asked for
            {"exp":null} ! its claim "exp" does not have a value that is asked for
            {"exp":1e+300,"nbf":1060.5} ok ann
            {"nbf":1061} ! it is not valid yet
            {"aud":"other"} ! it is for another audience
            {"aud":null} ! it is for another audience
            {"iss":"https://issuer.example/"} ! InvalidIssuer
            {"iss":null} ! Missing required claim: iss
            {"groups":["dev"]} ! its claim "groups" does not have a value that is asked for
            {"groups":{"ops":true}} ! its claim "groups" does not have a value that is asked for
            {"sub":""} ! its claim "sub" does not have a value that is asked for
            {"sub":7} ! its claim "sub" does not have a value that is asked for
        "#]],
    );
}

#[test]
fn every_algorithm_counts_with_a_key_of_its_kind_alone() {
    let rsa: Value = serde_json::from_str(include_str!("rsa.json")).expect("JSON");
    let rsa_key = json!({"kty": "RSA", "kid": "rsa", "n": rsa["n"], "e": "AQAB", "use": "sig"});
    let (p256, ed) = (Signer::p256(), Signer::ed());
    let known = keys(&[rsa_key, p256.jwk("p256"), ed.jwk("ed")]);
    let claims = json!({"iss": ISSUER, "aud": "atlas", "sub": "ann", "exp": 2_000, "groups": ["ops"]});
    let none = BTreeMap::new();
    let audiences = ["atlas".to_owned()];
    let expected = Expectation { issuer: ISSUER, audiences: &audiences, principal_claim: "sub", claims: &none };
    let works = |token: &str, keys: &Keys| verify(token, keys, &expected, 1_000).map(|verified| verified.principal);
    for algorithm in ["RS256", "PS256"] {
        let token = rsa[algorithm].as_str().expect("a token");
        assert_eq!(works(token, &known).as_deref(), Ok("ann"), "{algorithm}");
        let (message, signature) = token.rsplit_once('.').expect("three parts");
        let wrong = format!("{message}.{}", signature.chars().rev().collect::<String>());
        assert!(works(&wrong, &known).is_err(), "{algorithm}");
    }
    let es256 = |id: &str| p256.sign(&json!({"alg": "ES256", "kid": id}), &claims);
    assert_eq!(works(&es256("p256"), &known).as_deref(), Ok("ann"));
    assert_eq!(works(&ed.sign(&json!({"alg": "EdDSA", "kid": "ed"}), &claims), &known).as_deref(), Ok("ann"));
    // A token without a key id is that of the only key.
    let without = p256.sign(&json!({"alg": "ES256"}), &claims);
    assert_eq!(works(&without, &keys(&[p256.jwk("p256")])).as_deref(), Ok("ann"));
    assert_eq!(works(&without, &known), Err(TokenError::UnknownKey));
    assert_eq!(works(&es256("gone"), &known), Err(TokenError::UnknownKey));
    for wrong in [
        // Signed by another key, by a key of another kind, not at all, and with a secret that is public.
        Signer::p256().sign(&json!({"alg": "ES256", "kid": "p256"}), &claims),
        ed.sign(&json!({"alg": "ES256", "kid": "p256"}), &claims),
        p256.sign(&json!({"alg": "RS256", "kid": "p256"}), &claims),
        p256.sign(&json!({"alg": "none", "kid": "p256"}), &claims),
        p256.sign(&json!({"alg": "HS256", "kid": "p256"}), &claims),
        p256.sign(&json!({"alg": "ES384", "kid": "p256"}), &claims),
        format!("{}.", es256("p256").rsplit_once('.').expect("three parts").0),
        "a.b.c".to_owned(),
        String::new(),
        "x".repeat(TOKEN_BYTES_MAX + 1),
    ] {
        assert!(matches!(works(&wrong, &known), Err(TokenError::Refused(_))), "{wrong}");
    }
}

#[test]
fn a_token_says_whose_it_is_before_it_is_checked() {
    let token = Signer::ed().sign(&json!({"alg": "EdDSA", "kid": "k"}), &json!({"iss": ISSUER}));
    assert_eq!(
        UncheckedToken::read(&token),
        Some(UncheckedToken { issuer: ISSUER.to_owned(), key: Some("k".to_owned()) })
    );
    for other in ["", "atl_ci_00", "a.b.c", &"x".repeat(TOKEN_BYTES_MAX + 1)] {
        assert_eq!(UncheckedToken::read(other), None);
    }
}

#[test]
fn documents_of_issuers_are_checked() {
    use crate::documents::{DocumentError, key_address};
    let metadata = |issuer: &str, keys: &str| json!({"issuer": issuer, "jwks_uri": keys}).to_string();
    let found = |document: &str| key_address(ISSUER, document.as_bytes());
    assert_eq!(found(&metadata(ISSUER, "https://keys.example/k")).as_deref(), Ok("https://keys.example/k"));
    assert_eq!(
        found(&metadata("https://other.example", "https://keys.example/k")),
        Err(DocumentError::OtherIssuer("https://other.example".to_owned()))
    );
    assert!(matches!(found(&metadata(ISSUER, "http://keys.example/k")), Err(DocumentError::OpenKeys(_))));
    assert!(matches!(found("[]"), Err(DocumentError::Unreadable(_))));
    let read = |document: Value| Keys::read(document.to_string().as_bytes()).map(drop);
    let shared = json!({"kty": "oct", "k": "AAAA"});
    let unknown = json!({"kty": "new", "kid": "x"});
    let mut closed = Signer::ed().jwk("e");
    closed["use"] = json!("enc");
    assert_eq!(read(json!({"keys": [unknown, closed]})), Err(DocumentError::NoKeys));
    assert!(matches!(read(json!({"keys": 7})), Err(DocumentError::Unreadable(_))));
    // A shared key is never used, whatever the set says.
    let token = Signer::ed().sign(&json!({"alg": "HS256"}), &json!({"iss": ISSUER}));
    if let Ok(keys) = Keys::read(json!({"keys": [shared]}).to_string().as_bytes()) {
        assert!(verified(&token, &keys, "sub").starts_with("! it is signed with HS256"));
    }
}

proptest::proptest! {
    #[test]
    fn no_text_makes_a_panic(text in "[A-Za-z0-9_.-]{0,200}|\\PC{0,50}") {
        let keys = keys(&[Signer::ed().jwk("e")]);
        let _ = UncheckedToken::read(&text);
        proptest::prop_assert!(verified(&text, &keys, "sub").starts_with('!'));
        let _ = Keys::read(text.as_bytes());
    }
}
