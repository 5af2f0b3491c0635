use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::sign;

fn call<'c>(body: &'c str, headers: &[(&'static str, &str)]) -> Call<'c> {
    let headers = headers.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
    Call { body: body.as_bytes(), headers }
}

/// The example of GitHub's "Validating webhook deliveries".
#[test]
fn github_signs_the_body() {
    let signature = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
    let accepts = |secret: &str, body: &str, signature: &str| {
        Scheme::GitHub.accepts(&[secret], &call(body, &[("x-hub-signature-256", signature)]), 0, 0)
    };
    let secret = "It's a Secret to Everybody";
    assert!(accepts(secret, "Hello, World!", signature));
    assert!(!accepts(secret, "Hello, World?", signature) && !accepts("other", "Hello, World!", signature));
    // The older header has SHA-1, and the digits alone name no algorithm.
    assert!(!accepts(secret, "Hello, World!", &signature["sha256=".len()..]));
    assert!(!accepts(secret, "Hello, World!", ""));
}

/// The example of Slack's "Verifying requests from Slack".
#[test]
fn slack_signs_version_time_and_body() {
    let body = "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar\
        &user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com\
        %2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121\
        .803a0bc887a14d10d2c447fce8b6703c";
    let signature = "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503";
    let at = |now, window| {
        let headers = [("x-slack-signature", signature), ("x-slack-request-timestamp", "1531420618")];
        Scheme::Slack.accepts(&["8f742231b10e8888abcd99yyyzzz85a5"], &call(body, &headers), window, now)
    };
    assert!(at(1_531_420_618, 0) && at(1_531_420_918, 0) && at(1_531_420_318, 0));
    assert!(!at(1_531_420_919, 0), "five minutes by default");
    assert!(at(1_531_420_919, 301) && !at(1_531_420_629, 10));
}

/// The example of the specification of Standard Webhooks.
#[test]
fn standard_webhooks_sign_id_time_and_body() {
    let body = r#"{"test": 2432232314}"#;
    let accepts = |secret: &str, signature: &str| {
        let headers = [
            ("webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek"),
            ("webhook-timestamp", "1614265330"),
            ("webhook-signature", signature),
        ];
        Scheme::Standard.accepts(&[secret], &call(body, &headers), 0, 1_614_265_330)
    };
    let (secret, signature) =
        ("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    assert!(accepts(secret, signature) && accepts(&secret["whsec_".len()..], signature));
    assert!(accepts(secret, &format!("v1a,xyz v1,bm9uc2Vuc2U= {signature}")), "one of several");
    assert!(!accepts(secret, &signature["v1,".len()..]) && !accepts("not base64!", signature));
}

/// `printf '1492774577.{"id":"evt_1"}' | openssl dgst -sha256 -hmac whsec_test_secret`
#[test]
fn stripe_signs_time_and_body() {
    let digest = "799c4ba7bb339f3c8601adfd112f0e477c930a268be1243d341abb8286501c2f";
    let accepts = |header: &str, now| {
        Scheme::Stripe.accepts(
            &["whsec_test_secret"],
            &call(r#"{"id":"evt_1"}"#, &[("stripe-signature", header)]),
            0,
            now,
        )
    };
    let header =
        format!("t=1492774577,v1={digest},v0=6ffbb59b2300aae63f272406069a9788598b792a944a07aba816edb039989a39");
    assert!(accepts(&header, 1_492_774_577) && accepts(&header, 1_492_774_877) && !accepts(&header, 1_492_774_878));
    let two = format!("t=1492774577, v1={}, v1={digest}", "0".repeat(64));
    assert!(accepts(&two, 1_492_774_577), "one of several");
    assert!(!accepts(&format!("t=1492774578,v1={digest}"), 1_492_774_577), "the time is signed");
    assert!(!accepts(&format!("v1={digest}"), 1_492_774_577) && !accepts(&format!("t=x,v1={digest}"), 1_492_774_577));
    assert!(!accepts(&format!("t=1492774577,v0={digest}"), 1_492_774_577));
}

/// `printf '{"id":820982911946154508}' | openssl dgst -sha256 -hmac hush -binary | base64`
#[test]
fn shopify_signs_the_body_in_base64() {
    let accepts = |signature: &str| {
        Scheme::Shopify.accepts(
            &["hush"],
            &call(r#"{"id":820982911946154508}"#, &[("x-shopify-hmac-sha256", signature)]),
            0,
            0,
        )
    };
    assert!(accepts("qBvrsZF7RfB1iS6BX6IHqJTp5L911P7intnPeTPsH0I="));
    assert!(!accepts("qBvrsZF7RfB1iS6BX6IHqJTp5L911P7intnPeTPsH0J=") && !accepts(""));
}

#[test]
fn any_signature_fits_with_any_secret() {
    let body = "{}";
    let (old, new) = (sign("old", body.as_bytes()), sign("new", body.as_bytes()));
    let accepts = |secrets: &[&str], signature: &str| {
        Scheme::Atlas.accepts(secrets, &call(body, &[("x-atlas-signature", signature)]), 0, 0)
    };
    assert!(accepts(&["old", "new"], &old) && accepts(&["old", "new"], &new));
    assert!(accepts(&["new"], &format!("sha256={old},sha256={new}")) && accepts(&["old"], &format!("{new}, {old}")));
    assert!(!accepts(&["new"], &old) && !accepts(&[], &new) && !accepts(&["new"], ","));
    // So many are not compared.
    let many = [old.as_str(); SIGNATURES_MAX].join(",");
    assert!(!accepts(&["new"], &format!("{many},{new}")));
}

#[test]
fn a_window_asks_for_a_signed_time_stamp() {
    let signature = sign("key", b"100.{}");
    let accepts = |stamp: &str, now| {
        let headers = [("x-atlas-signature", signature.as_str()), ("x-atlas-timestamp", stamp)];
        Scheme::Atlas.accepts(&["key"], &call("{}", &headers), 60, now)
    };
    assert!(accepts("100", 100) && accepts("100", 160) && !accepts("100", 161) && !accepts("101", 100));
    assert!(!accepts("", 100) && !accepts("99999999999999999999", 100) && !accepts("-9223372036854775808", i64::MAX));
}

#[test]
fn greetings_start_nothing() {
    let of = |scheme: Scheme, body: Value, headers: &[(&'static str, &str)]| {
        scheme.greeting(&call("", headers), body.as_object().expect("members"))
    };
    let hello = json!({"type": "url_verification", "challenge": "3eZb"});
    assert_eq!(of(Scheme::Slack, hello.clone(), &[]), Some(json!({"challenge": "3eZb"})));
    assert_eq!(of(Scheme::GitHub, hello, &[]), None);
    assert_eq!(of(Scheme::GitHub, json!({}), &[("x-github-event", "ping")]), Some(json!({"pong": true})));
    assert_eq!(of(Scheme::GitHub, json!({}), &[("x-github-event", "push")]), None);
    assert_eq!(of(Scheme::Slack, json!({"type": "url_verification", "challenge": "x".repeat(2_000)}), &[]), None);
}

#[test]
fn deliveries_have_the_names_of_their_senders() {
    let of = |scheme: Scheme, body: Value, headers: &[(&'static str, &str)]| {
        scheme.delivery(&call("", headers), body.as_object().expect("members"))
    };
    assert_eq!(of(Scheme::GitHub, json!({}), &[("x-github-delivery", "d1")]), Some("d1".to_owned()));
    assert_eq!(of(Scheme::Stripe, json!({"id": "evt_1"}), &[]), Some("evt_1".to_owned()));
    assert_eq!(of(Scheme::Slack, json!({"event_id": "Ev1"}), &[]), Some("Ev1".to_owned()));
    assert_eq!(of(Scheme::Slack, json!({"event_id": 1}), &[]), None);
    assert_eq!(of(Scheme::Standard, json!({}), &[("webhook-id", "msg_1")]), Some("msg_1".to_owned()));
}

#[test]
fn a_repeat_is_known_whatever_its_header_says_besides() {
    let stamped =
        |scheme: Scheme, body: &str, headers: &[(&'static str, &str)]| scheme.stamped(&call(body, headers), 60);
    let atlas = |stamp: &str, signature: &str, body: &str| {
        stamped(Scheme::Atlas, body, &[("x-atlas-timestamp", stamp), ("x-atlas-signature", signature)])
    };
    let first = atlas("100", "ab", "{}");
    assert!(first.is_some());
    for signature in ["sha256=ab", "00,ab", "ab,ab", "AB", " ab"] {
        assert_eq!(atlas("100", signature, "{}"), first, "{signature}");
    }
    assert_ne!(atlas("101", "ab", "{}"), first);
    assert_ne!(atlas("100", "ab", "[]"), first);
    let stripe = |text: &str| stamped(Scheme::Stripe, "{}", &[("stripe-signature", text)]);
    assert_eq!(stripe("t=100,v1=00,v1=ab"), stripe("t=100,v1=ab"));
    assert_eq!(stamped(Scheme::GitHub, "{}", &[("x-hub-signature-256", "sha256=ab")]), None);
}

proptest! {
    #[test]
    fn no_header_panics(text in ".{0,80}", secret in ".{0,20}", now in any::<i64>()) {
        for scheme in Scheme::ALL {
            let headers: Vec<(&'static str, &str)> = SIGNED_HEADERS.iter().map(|name| (*name, text.as_str())).collect();
            scheme.accepts(&[secret.as_str()], &call("{}", &headers), 60, now);
        }
    }
}
