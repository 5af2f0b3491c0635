use std::collections::BTreeMap;

use atlas_types::{Namespace, ObjectKey};
use expect_test::{Expect, expect};

use super::with_fallbacks;
use crate::tests::{check, key};
use crate::{View, check_among, kind};

/// Objects by name, all of the kind `model`.
struct Models(BTreeMap<String, Vec<u8>>);

impl Models {
    /// `a:b,c d` are the models `a` with the fallbacks `b` and `c`, and `d` without any.
    fn new(text: &str) -> Self {
        Self(text.split_whitespace().map(model).collect())
    }
}

fn model(text: &str) -> (String, Vec<u8>) {
    let (name, fallbacks) = text.split_once(':').unwrap_or((text, ""));
    let names: Vec<String> =
        fallbacks.split(',').filter(|name| !name.is_empty()).map(|name| format!("{name:?}")).collect();
    let spec = format!(r#"{{"fallbacks":[{}],"name":"m","provider":"openai"}}"#, names.join(","));
    (name.to_owned(), spec.into_bytes())
}

impl View for Models {
    fn content_of(&self, _: &Namespace) -> Option<&'static str> {
        None
    }

    fn spec_of(&self, key: &ObjectKey) -> Option<&[u8]> {
        self.0.get(key.name.as_str()).map(Vec::as_slice)
    }

    fn is_referenced(&self, key: &ObjectKey) -> bool {
        key.name.as_str() == "used"
    }
}

#[test]
fn documents() {
    check(
        "model",
        &[
            r#"{"name":"m","provider":"openai"}"#,
            r#"{"fallbacks":["b","c"],"later":1,"name":"m","provider":"openai"}"#,
            r#"{"fallbacks":["a"],"name":"m","provider":"openai"}"#,
            r#"{"fallbacks":["b/c"],"name":"m","provider":"openai"}"#,
            r#"{"key":"sk-1","name":"m","provider":"openai"}"#,
            r#"{"name":"m","provider":"gizmo"}"#,
            r#"{"provider": "openai"}"#,
            r"[]",
        ],
        &expect![[r#"
            ok {"name":"m","provider":"openai"}
            ok {"fallbacks":["b","c"],"later":1,"name":"m","provider":"openai"}
            ! `spec.fallbacks` names the model itself
            ! `spec.fallbacks` has a name that is refused: an object name must not contain "/"
            ! `spec.key` is not a reference: write secret://NAME or ${VARIABLE}, never the value itself
            ! `spec` cannot be read: unknown variant `gizmo`, expected one of `openai`, `openai-responses`, `azure`, `anthropic`, `gemini`, `vertex`, `bedrock`, `cohere`, `ollama`, `local`, `scripted` at line 1 column 30
            ! `spec` cannot be read: the document is not canonical JSON
            ! `spec` is not an object
        "#]],
    );
}

/// What a changed model is answered among others.
fn check_change(others: &str, changed: &str, expected: &Expect) {
    let (name, spec) = model(changed);
    let key = key("model", &name);
    let kind = kind(&key.kind).expect("a kind");
    let answer = check_among(kind, &Models::new(others), &key, &spec);
    expected.assert_eq(&answer.map_or_else(|refusal| refusal.to_string(), |()| "ok".to_owned()));
}

#[test]
fn fallbacks_exist_and_do_not_lead_back() {
    check_change("b c", "a:b,c", &expect!["ok"]);
    check_change("b:c c", "a:b,c", &expect!["ok"]);
    check_change("b", "a:b,c", &expect![[r#"`spec.fallbacks` names the model "c", which does not exist"#]]);
    check_change("a b:a", "a:b", &expect!["`spec.fallbacks` leads back to the model itself"]);
    check_change("a b:c c:d d:a", "a:b", &expect!["`spec.fallbacks` leads back to the model itself"]);
    let chain: Vec<String> = (0..16).map(|n| format!("m{n}:m{}", n + 1)).collect();
    check_change(&format!("{} m16", chain[1..].join(" ")), "a:m1", &expect!["ok"]);
    check_change(
        &format!("{} m16", chain.join(" ")),
        "a:m0",
        &expect!["`spec.fallbacks` leads to more than 16 models"],
    );
}

#[test]
fn fallbacks_are_tried_in_order_each_once() {
    let models = Models::new("a:b,c b:d c:d,e d e");
    let names = |start: &str| {
        let found = with_fallbacks(&models, &key("model", start));
        found.iter().map(|key| key.name.to_string()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!((names("a"), names("d"), names("gone")), ("a b d c e".into(), "d".into(), String::new()));
}

#[test]
fn a_model_in_use_is_kept() {
    let kind = kind(&key("model", "a").kind).expect("a kind");
    let models = Models::new("a");
    assert_eq!(kind.used_by(&models, &key("model", "used")), Some("a tier or as a fallback of another model"));
    assert_eq!(kind.used_by(&models, &key("model", "a")), None);
}
