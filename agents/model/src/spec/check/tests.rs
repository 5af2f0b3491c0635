use expect_test::{Expect, expect};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{Capability, ModelSpec, NanoDollars, PriceList, Provider, Purpose};

/// What a spec is answered that has these members beside a provider and a name.
fn check(members: &[Value], expected: &Expect) {
    let line = |more: &Value| {
        let mut spec = json!({ "provider": "openai", "name": "m" });
        let (spec_members, more) = (spec.as_object_mut().expect("an object"), more.as_object().expect("an object"));
        spec_members.extend(more.clone());
        let answer = ModelSpec::read(spec.to_string().as_bytes());
        let mut shown = Value::from(more.clone()).to_string();
        shown.truncate(100);
        match answer {
            Ok(_) => format!("ok {shown}\n"),
            Err(error) => format!("{shown}\n  ! {error}\n"),
        }
    };
    expected.assert_eq(&members.iter().map(line).collect::<String>());
}

#[test]
fn a_spec_needs_a_provider_and_a_name() {
    let read = |text: &str| ModelSpec::read(text.as_bytes()).map_err(|error| error.to_string());
    let spec = read(r#"{"name":"gpt-4o-mini","provider":"openai-responses","later":[1]}"#).expect("a spec");
    assert_eq!((spec.provider, spec.purpose, spec.stream), (Provider::OpenaiResponses, Purpose::Chat, true));
    assert_eq!((spec.timeout_seconds, spec.retry.attempts, spec.retry.deadline_seconds), (300, 3, 600));
    for wrong in ["{}", r#"{"provider":"openai"}"#, r#"{"name":"m"}"#, r#"{"name":"m","provider":"gizmo"}"#, "[]", "x"]
    {
        assert!(read(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn every_provider_is_read_by_its_word() {
    for provider in Provider::ALL {
        assert_eq!(serde_json::to_value(provider).expect("a word"), provider.as_str());
    }
}

#[test]
fn keys_are_references() {
    check(
        &[
            json!({"key": "secret://openai-key"}),
            json!({"key": "${OPENAI_API_KEY}"}),
            json!({"key": null}),
            json!({"key": "sk-live-4711"}),
            json!({"key": ""}),
            json!({"headers": {"Authorization": "Bearer {{gateway}}", "x-team": "a"}}),
            json!({"headers": {"Authorization": "Bearer sk-live"}}),
            json!({"headers": {"X-API-Key": "sk-live"}}),
            json!({"parameters": {"region": "eu-west-1", "session_token": "secret://aws"}}),
            json!({"parameters": {"session_token": "AQoD"}}),
            json!({"patch": {"headers": {"authorization": null, "x-api-key": "secret://k"}}}),
            json!({"patch": {"headers": {"x-api-key": "k"}}}),
        ],
        &expect![[r#"
            ok {"key":"secret://openai-key"}
            ok {"key":"${OPENAI_API_KEY}"}
            ok {"key":null}
            {"key":"sk-live-4711"}
              ! `spec.key` is not a reference: write secret://NAME or ${VARIABLE}, never the value itself
            {"key":""}
              ! `spec.key` is not a reference: write secret://NAME or ${VARIABLE}, never the value itself
            ok {"headers":{"Authorization":"Bearer {{gateway}}","x-team":"a"}}
            {"headers":{"Authorization":"Bearer sk-live"}}
              ! `spec.headers` has a value of Authorization that contains no reference: write secret://NAME or {{NAME}}
            {"headers":{"X-API-Key":"sk-live"}}
              ! `spec.headers` has a value of X-API-Key that contains no reference: write secret://NAME or {{NAME}}
            ok {"parameters":{"region":"eu-west-1","session_token":"secret://aws"}}
            {"parameters":{"session_token":"AQoD"}}
              ! `spec.parameters` has a value of session_token that is not a reference: write secret://NAME or ${VARIABLE}, never the value itself
            ok {"patch":{"headers":{"authorization":null,"x-api-key":"secret://k"}}}
            {"patch":{"headers":{"x-api-key":"k"}}}
              ! `spec.patch.headers` has a value of x-api-key that contains no reference: write secret://NAME or {{NAME}}
        "#]],
    );
}

#[test]
fn addresses_and_headers() {
    let url = |url: &str| json!({ "base_url": url });
    check(
        &[
            url("https://api.openai.com/v1"),
            url("http://127.0.0.1:11434"),
            url("https://user:word@a.b"),
            url("https:///v1"),
            url("file:///etc/passwd"),
            url("https://a.b/ c"),
            url(&format!("https://a.b/{}", "x".repeat(2_048))),
            json!({"provider": "azure"}),
            json!({"provider": "azure", "base_url": "https://a.openai.azure.com"}),
            json!({"patch": {"url": "ftp://a"}}),
            json!({"headers": {"Host": "a"}}),
            json!({"headers": {"a b": "c"}}),
            json!({"headers": {"a": "b\r\nc: d"}}),
            json!({"headers": {"a": "x".repeat(1_025)}}),
            json!({"headers": (0..33).map(|n| (format!("h{n}"), Value::from("v"))).collect::<serde_json::Map<_, _>>()}),
            json!({"parameters": {"Region": "a"}}),
            json!({"parameters": {"region": "a\u{0}"}}),
            json!({"name": ""}),
            json!({"name": "a b"}),
            json!({"name": "x".repeat(257)}),
        ],
        &expect![[r#"
            ok {"base_url":"https://api.openai.com/v1"}
            ok {"base_url":"http://127.0.0.1:11434"}
            {"base_url":"https://user:word@a.b"}
              ! `spec.base_url` contains a user name; keep credentials out of addresses
            {"base_url":"https:///v1"}
              ! `spec.base_url` names no host
            {"base_url":"file:///etc/passwd"}
              ! `spec.base_url` does not start with http:// or https://
            {"base_url":"https://a.b/ c"}
              ! `spec.base_url` contains a space, a control character or a character beyond ASCII; percent-encode it
            {"base_url":"https://a.b/xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
              ! `spec.base_url` is longer than 2048 bytes
            {"provider":"azure"}
              ! `spec.base_url` is needed for the provider azure
            ok {"provider":"azure","base_url":"https://a.openai.azure.com"}
            {"patch":{"url":"ftp://a"}}
              ! `spec.patch.url` does not start with http:// or https://
            {"headers":{"Host":"a"}}
              ! `spec.headers` has a member "Host", which belongs to the connection
            {"headers":{"a b":"c"}}
              ! `spec.headers` has a member "a b", which is not the name of a header
            {"headers":{"a":"b\r\nc: d"}}
              ! `spec.headers` has a value of a that is too long or contains other than printable ASCII
            {"headers":{"a":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
              ! `spec.headers` has a value of a that is too long or contains other than printable ASCII
            {"headers":{"h0":"v","h1":"v","h2":"v","h3":"v","h4":"v","h5":"v","h6":"v","h7":"v","h8":"v","h9":"v
              ! `spec.headers` has more than 32 members
            {"parameters":{"Region":"a"}}
              ! `spec.parameters` has a member "Region", which is not a word of a to z, 0 to 9 and _
            {"parameters":{"region":"a\u0000"}}
              ! `spec.parameters` has a value of region that is too long or contains control characters
            {"name":""}
              ! `spec.name` has 1 to 256 bytes
            {"name":"a b"}
              ! `spec.name` contains a space or a control character
            {"name":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
              ! `spec.name` has 1 to 256 bytes
        "#]],
    );
}

#[test]
fn patches() {
    check(
        &[
            json!({"patch": {}}),
            json!({"patch": {"body": {"reasoning": {"effort": "low"}, "top_p": null}}}),
            json!({"patch": {"body": "{\"temperature\": 0.5}"}}),
            json!({"patch": {"body": "[1]"}}),
            json!({"patch": {"body": "{"}}),
            json!({"patch": {"body": 1}}),
            json!({"patch": {"body": format!("{{\"a\":\"{}\"}}", "x".repeat(16_384))}}),
            json!({"patch": "x"}),
        ],
        &expect![[r#"
            ok {"patch":{}}
            ok {"patch":{"body":{"reasoning":{"effort":"low"},"top_p":null}}}
            ok {"patch":{"body":"{\"temperature\": 0.5}"}}
            {"patch":{"body":"[1]"}}
              ! `spec.patch.body` is not the JSON text of an object
            {"patch":{"body":"{"}}
              ! `spec.patch.body` is not the JSON text of an object
            {"patch":{"body":1}}
              ! `spec` cannot be read: data did not match any variant of untagged enum PatchBody at line 1 column 50
            {"patch":{"body":"{\"a\":\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
              ! `spec.patch.body` is longer than 16384 bytes
            {"patch":"x"}
              ! `spec` cannot be read: invalid type: string "x", expected struct Patch at line 1 column 43
        "#]],
    );
}

#[test]
fn numbers_and_lists() {
    check(
        &[
            json!({"prices": {"input": "0.40", "output": 2}}),
            json!({"prices": {"input": "0.40"}}),
            json!({"prices": {"input": "-1", "output": "1"}}),
            json!({"limits": {"concurrency": 4, "requests_per_minute": 60, "tokens_per_minute": 100_000}}),
            json!({"limits": {"concurrency": 0}}),
            json!({"limits": {"tokens_per_minute": 0}}),
            json!({"context_window": 0}),
            json!({"output_tokens_max": 4_294_967_296_u64}),
            json!({"timeout_seconds": 0}),
            json!({"timeout_seconds": 86_401}),
            json!({"retry": {"attempts": 21}}),
            json!({"retry": {"deadline_seconds": 0}}),
            json!({"capabilities": ["tools", "vision", "json_schema", "reasoning"]}),
            json!({"capabilities": ["flight"]}),
            json!({"fallbacks": ["b", "a"]}),
            json!({"fallbacks": ["b", "b"]}),
            json!({"fallbacks": ["a", "b", "c", "d", "e", "f", "g", "h", "i"]}),
            json!({"type": "embedding", "stream": false}),
            json!({"type": "gizmo"}),
        ],
        &expect![[r#"
            ok {"prices":{"input":"0.40","output":2}}
            {"prices":{"input":"0.40"}}
              ! `spec` cannot be read: missing field `output` at line 1 column 57
            {"prices":{"input":"-1","output":"1"}}
              ! `spec` cannot be read: an amount is a decimal number such as 0.40 at line 1 column 54
            ok {"limits":{"concurrency":4,"requests_per_minute":60,"tokens_per_minute":100000}}
            {"limits":{"concurrency":0}}
              ! `spec.limits.concurrency` is between 1 and 1000000
            {"limits":{"tokens_per_minute":0}}
              ! `spec.limits.tokens_per_minute` is between 1 and 1000000000000
            {"context_window":0}
              ! `spec.context_window` is between 1 and 1000000000
            {"output_tokens_max":4294967296}
              ! `spec` cannot be read: invalid value: integer `4294967296`, expected u32 at line 1 column 62
            {"timeout_seconds":0}
              ! `spec.timeout_seconds` is between 1 and 86400
            {"timeout_seconds":86401}
              ! `spec.timeout_seconds` is between 1 and 86400
            {"retry":{"attempts":21}}
              ! `spec.retry.attempts` is between 1 and 20
            {"retry":{"deadline_seconds":0}}
              ! `spec.retry.deadline_seconds` is between 1 and 86400
            ok {"capabilities":["tools","vision","json_schema","reasoning"]}
            {"capabilities":["flight"]}
              ! `spec` cannot be read: unknown variant `flight`, expected one of `tools`, `vision`, `json_schema`, `reasoning` at line 1 column 56
            ok {"fallbacks":["b","a"]}
            {"fallbacks":["b","b"]}
              ! `spec.fallbacks` names "b" twice
            {"fallbacks":["a","b","c","d","e","f","g","h","i"]}
              ! `spec.fallbacks` has more than 8 items
            ok {"type":"embedding","stream":false}
            {"type":"gizmo"}
              ! `spec` cannot be read: unknown variant `gizmo`, expected one of `chat`, `embedding`, `reranker` at line 1 column 46
        "#]],
    );
}

#[test]
fn a_model_has_its_own_prices_or_those_of_the_list() {
    let day = "2026-01-01".parse().expect("a day");
    let input = |provider: &str, name: &str, prices: Value| {
        let spec = json!({ "provider": provider, "name": name, "prices": prices }).to_string();
        let spec = ModelSpec::read(spec.as_bytes()).expect("a spec");
        spec.prices_on(PriceList::embedded(), day).map(|prices| prices.input.to_string())
    };
    let own = json!({ "input": "7", "output": "8" });
    assert_eq!(input("openai", "gpt-4o-mini", own.clone()).as_deref(), Some("7.00"));
    assert_eq!(input("openai", "gpt-4o-mini", Value::Null).as_deref(), Some("0.15"));
    assert_eq!(input("openai", "unheard-of", Value::Null), None);
    assert_eq!(input("ollama", "unheard-of", Value::Null).as_deref(), Some("0.00"));
    assert_eq!(input("ollama", "unheard-of", own).as_deref(), Some("7.00"));
}

#[test]
fn all_members_are_read() {
    let spec = ModelSpec::read(include_bytes!("../../../../../controller/objects/golden/model.json")).expect("a spec");
    let prices = spec.prices.expect("prices");
    assert_eq!((prices.input, prices.cache_read), (NanoDollars(400_000_000), Some(NanoDollars(100_000_000))));
    assert!(spec.capabilities.contains(&Capability::JsonSchema));
    let written = serde_json::to_vec(&spec).expect("JSON");
    assert_eq!(ModelSpec::read(&written).expect("a spec"), spec);
}

proptest! {
    #[test]
    fn no_error_repeats_a_key(key in "[a-zA-Z0-9]{20,40}") {
        let spec = json!({ "provider": "openai", "name": "m", "key": key });
        let error = ModelSpec::read(spec.to_string().as_bytes()).expect_err("a literal");
        prop_assert!(!error.to_string().contains(&key));
    }

    #[test]
    fn any_bytes_are_answered(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _answer = ModelSpec::read(&bytes);
    }
}
