//! Changes of requests that are configured for a model: another address, a JSON merge patch of the body (RFC 7396), headers.

use std::collections::BTreeMap;

use atlas_model::{Patch, PatchBody};
use regex::{Regex, RegexBuilder};
use serde_json::{Map, Value};

use crate::{EncodeError, Parts, Protocol, json};

/// Maximum number of rules for one client.
const RULES_MAX: usize = 256;
/// Maximum size of a compiled expression.
const REGEX_BYTES_MAX: usize = 256 << 10;

/// Why patches were refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// The text is not what the rules are read from.
    #[error("patches are an object from expressions to patches: {problem}")]
    Form { problem: String },
    /// There are too many rules.
    #[error("there are more than {RULES_MAX} patches")]
    TooMany,
    /// An expression is not valid, or too large.
    #[error("the expression {expression:?} is not valid: {problem}")]
    Expression { expression: String, problem: String },
    /// The body of a patch is no object.
    #[error("the body of the patch for {expression:?} is not an object")]
    Body { expression: String },
}

/// Patches by the names of models, in their order.
#[derive(Debug, Clone, Default)]
pub struct Rules(Vec<(Regex, Patch)>);

impl Rules {
    /// Reads an object from expressions to patches. An expression has to match the whole name of a model.
    pub fn parse(text: &str) -> Result<Self, PatchError> {
        let form = |error: &dyn std::fmt::Display| PatchError::Form { problem: error.to_string() };
        let value = json::parse(text.as_bytes()).map_err(|error| form(&error))?;
        let Value::Object(members) = value else { return Err(form(&"it is no object")) };
        if members.len() > RULES_MAX {
            return Err(PatchError::TooMany);
        }
        members.into_iter().map(rule).collect::<Result<_, _>>().map(Self)
    }

    /// The patch of the first expression that matches.
    pub fn find(&self, model: &str) -> Option<&Patch> {
        self.0.iter().find(|(regex, _)| regex.is_match(model)).map(|(_, patch)| patch)
    }
}

fn rule((expression, patch): (String, Value)) -> Result<(Regex, Patch), PatchError> {
    let mut builder = RegexBuilder::new(&format!("^(?:{expression})$"));
    let regex = builder.size_limit(REGEX_BYTES_MAX).dfa_size_limit(REGEX_BYTES_MAX).build();
    let regex =
        regex.map_err(|error| PatchError::Expression { expression: expression.clone(), problem: error.to_string() })?;
    let patch: Patch =
        serde_json::from_value(patch).map_err(|error| PatchError::Form { problem: error.to_string() })?;
    if patch.body.as_ref().is_some_and(|body| body.members().is_none()) {
        return Err(PatchError::Body { expression });
    }
    Ok((regex, patch))
}

/// The patches of a request in their order: that of the model, then that of the environment's rules, or else of the client's.
/// Rules of the environment that are readable replace the client's, whether one of them matches or not.
pub fn choose(model: &str, own: Option<&Patch>, client: &Rules, environment: Option<&str>) -> Vec<Patch> {
    let environment = environment.and_then(|text| Rules::parse(text).ok());
    let rules = environment.as_ref().unwrap_or(client);
    own.into_iter().chain(rules.find(model)).cloned().collect()
}

/// Changes a request.
pub fn apply(parts: &mut Parts, patch: &Patch, protocol: &dyn Protocol) -> Result<(), EncodeError> {
    if let Some(url) = patch.url.as_ref().filter(|_| !protocol.keeps_url()) {
        parts.url.clone_from(url);
    }
    if let Some(body) = &patch.body {
        apply_body(parts, body, protocol)?;
    }
    apply_headers(parts, &patch.headers)
}

fn apply_body(parts: &mut Parts, patch: &PatchBody, protocol: &dyn Protocol) -> Result<(), EncodeError> {
    let invalid = |problem: &str| EncodeError::Invalid { what: "a patch", problem: problem.to_owned() };
    let patch = patch.members().ok_or_else(|| invalid("its body is not an object"))?;
    let body = json::parse(&parts.body).map_err(|_| invalid("the request has no JSON body"))?;
    let Value::Object(before) = body else { return Err(invalid("the request has no JSON body")) };
    let mut after = before.clone();
    merge(&mut after, &patch);
    for (name, value) in
        patch.iter().filter(|(_, value)| value.is_null()).filter_map(|(name, _)| before.get_key_value(name))
    {
        if let Some(successor) = protocol.successor(name).filter(|successor| !patch.contains_key(*successor)) {
            after.insert(successor.to_owned(), value.clone());
        }
    }
    parts.body = Value::Object(after).to_string().into_bytes();
    Ok(())
}

fn merge(target: &mut Map<String, Value>, patch: &Map<String, Value>) {
    for (name, value) in patch {
        match value {
            Value::Null => drop(target.shift_remove(name)),
            Value::Object(inner) => {
                let slot = target.entry(name).or_insert(Value::Null);
                if !slot.is_object() {
                    *slot = Value::Object(Map::new());
                }
                if let Value::Object(members) = slot {
                    merge(members, inner);
                }
            }
            value => drop(target.insert(name.clone(), value.clone())),
        }
    }
}

/// Values may hold keys, so all of them are treated as secrets.
fn apply_headers(parts: &mut Parts, headers: &BTreeMap<String, Option<String>>) -> Result<(), EncodeError> {
    for (name, value) in headers {
        match value {
            Some(value) => parts.secret_header(name, value)?,
            None => drop(parts.headers.remove(name.as_str())),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::openai::Chat;

    fn check(patch: Value, expected: &Value) {
        let body = json!({"model": "m", "max_tokens": 9, "options": {"a": 1, "b": [1]}});
        let mut parts = Parts::post("https://a.test/v1".to_owned(), &body);
        let patch: Patch = serde_json::from_value(patch).expect("a patch");
        apply(&mut parts, &patch, &Chat::default()).expect("applies");
        let headers: Map<String, Value> =
            parts.headers.iter().map(|(name, value)| (name.to_string(), json!(format!("{value:?}")))).collect();
        let body: Value = serde_json::from_slice(&parts.body).expect("JSON");
        assert_eq!(&json!([parts.url, body, headers]), expected);
    }

    #[test]
    fn requests_are_changed() {
        let plain = json!({"content-type": "\"application/json\""});
        check(
            json!({"url": "https://b.test", "body": {"options": {"a": null, "b": [2], "c": {"d": null}}, "top": 1}}),
            &json!(["https://b.test", {"model": "m", "max_tokens": 9, "options": {"b": [2], "c": {}}, "top": 1}, plain]),
        );
        check(
            json!({"headers": {"X-Key": "secret", "content-type": null}}),
            &json!(["https://a.test/v1", {"model": "m", "max_tokens": 9, "options": {"a": 1, "b": [1]}}, {"x-key": "Sensitive"}]),
        );
        check(
            json!({"body": "{\"max_tokens\": null, \"options\": 1.5}"}),
            &json!(["https://a.test/v1", {"model": "m", "options": 1.5, "max_completion_tokens": 9}, plain]),
        );
        check(
            json!({"body": {"max_tokens": null, "max_completion_tokens": 3, "options": null}}),
            &json!(["https://a.test/v1", {"model": "m", "max_completion_tokens": 3}, plain]),
        );
    }

    #[test]
    fn patches_that_cannot_be_applied() {
        let mut parts = Parts::get("https://a.test".to_owned());
        let patch = |value: Value| serde_json::from_value::<Patch>(value).expect("a patch");
        let mut refused = |value| apply(&mut parts, &patch(value), &Chat::default()).expect_err("refused").to_string();
        assert_eq!(refused(json!({"body": {"a": 1}})), "a patch is not valid: the request has no JSON body");
        assert_eq!(refused(json!({"body": "[1]"})), "a patch is not valid: its body is not an object");
        assert_eq!(
            refused(json!({"headers": {"a b": "c"}})),
            "the header \"a b\" has characters that HTTP does not allow"
        );
    }

    #[test]
    fn rules_match_whole_names_in_their_order() {
        let rules = Rules::parse(
            r#"{"gpt-4o|o1": {"url": "https://1"}, "gpt-.*": {"url": "https://2"}, "a\\/b": {"url": "https://3"}}"#,
        );
        let rules = rules.expect("rules");
        let found = |model| rules.find(model).and_then(|patch| patch.url.clone());
        assert_eq!(found("gpt-4o").as_deref(), Some("https://1"));
        assert_eq!(found("gpt-4o-mini").as_deref(), Some("https://2"));
        assert_eq!(found("a/b").as_deref(), Some("https://3"));
        assert_eq!(found("my-gpt-4o"), None);
    }

    #[test]
    fn rules_that_are_wrong() {
        let refused = |text: &str| Rules::parse(text).expect_err("refused");
        assert!(matches!(refused("["), PatchError::Form { .. }));
        assert!(matches!(refused("[]"), PatchError::Form { .. }));
        assert!(matches!(refused(r#"{"a": 1}"#), PatchError::Form { .. }));
        assert!(matches!(refused(r#"{"(": {}}"#), PatchError::Expression { .. }));
        assert!(matches!(refused(r#"{"(a{1000}){1000}": {}}"#), PatchError::Expression { .. }));
        assert!(matches!(refused(r#"{"a": {"body": "x"}}"#), PatchError::Body { .. }));
        let many: Map<String, Value> = (0..257).map(|at| (at.to_string(), json!({}))).collect();
        assert_eq!(refused(&Value::Object(many).to_string()), PatchError::TooMany);
    }

    #[test]
    fn rules_of_the_environment_replace_those_of_the_client() {
        let client = Rules::parse(r#"{".*": {"url": "client"}}"#).expect("rules");
        let own = Patch { url: Some("own".to_owned()), ..Patch::default() };
        let urls = |environment| {
            let chosen = choose("m", Some(&own), &client, environment);
            chosen.into_iter().filter_map(|patch| patch.url).collect::<Vec<_>>()
        };
        assert_eq!(urls(None), ["own", "client"]);
        assert_eq!(urls(Some(r#"{"m": {"url": "environment"}}"#)), ["own", "environment"]);
        assert_eq!(urls(Some(r#"{"x": {"url": "environment"}}"#)), ["own"]);
        assert_eq!(urls(Some("broken")), ["own", "client"]);
    }
}
