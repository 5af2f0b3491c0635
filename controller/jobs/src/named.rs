//! What an input names of what its agent asks for: models and MCP servers, as `{input.MEMBER}`. Who sends a lease reads it, and fetches no input
//! that is an artifact: for these it is in the metadata.

use std::collections::BTreeMap;

use atlas_state::State;
use atlas_types::{Command, NAMED_METADATA, ObjectName, PayloadBody, Request, Verdict};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// Adds to a submission what its input names, if the input is an artifact.
pub(crate) fn add(request: &mut Request, input: &[u8], state: &State) {
    let Command::SubmitJob(submit) = &mut request.command else { return };
    let (Verdict::Accepted(pin) | Verdict::Asked { pin, .. }) = &submit.verdict else { return };
    if matches!(submit.input.body, PayloadBody::Inline(_)) {
        return;
    }
    let agent = state.agent(&request.origin.namespace, &submit.agent, pin.version);
    let asked = agent.iter().flat_map(|agent| agent.spec.model.iter().chain(&agent.spec.servers));
    let named = named(asked.map(String::as_str), input);
    if named.is_empty() {
        return;
    }
    // Submissions have an object here.
    let mut metadata: Map<String, Value> = serde_json::from_slice(&submit.metadata).unwrap_or_default();
    metadata.insert(NAMED_METADATA.to_owned(), named.into());
    submit.metadata = Value::Object(metadata).to_string().into_bytes().into();
}

/// The members of an input that name what an agent asks for.
fn named<'a>(asked: impl Iterator<Item = &'a str>, input: &[u8]) -> Map<String, Value> {
    let members = asked.filter_map(|asked| asked.strip_prefix("{input.")?.strip_suffix('}'));
    let mut members = members.peekable();
    if members.peek().is_none() {
        return Map::new();
    }
    // Only these members are read; the others may be large.
    let texts: BTreeMap<String, &RawValue> = serde_json::from_slice(input).unwrap_or_default();
    let name = |member: &str| {
        let text: String = serde_json::from_str(texts.get(member)?.get()).ok()?;
        (text.len() <= ObjectName::LEN_MAX).then(|| (member.to_owned(), text.into()))
    };
    members.filter_map(name).collect()
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(asked: &[&str], input: &str, expected: &Expect) {
        expected.assert_eq(&Value::Object(named(asked.iter().copied(), input.as_bytes())).to_string());
    }

    #[test]
    fn members_that_name_something_are_found() {
        let input = r#"{"texts": ["a"], "model": "small", "server": "lab", "n": 1}"#;
        check(&["{input.model}"], input, &expect![[r#"{"model":"small"}"#]]);
        let asked = ["{input.model}", "{input.server}", "fixed"];
        check(&asked, input, &expect![[r#"{"model":"small","server":"lab"}"#]]);
        check(&["fast", "fixed"], input, &expect!["{}"]);
    }

    #[test]
    fn other_members_name_nothing() {
        let long = format!(r#"{{"model": "{}"}}"#, "a".repeat(ObjectName::LEN_MAX + 1));
        for input in [r#"{"model": 1}"#, r#"{"other": "small"}"#, "[]", "{", "", &long] {
            check(&["{input.model}"], input, &expect!["{}"]);
        }
        check(&["{input.", "{input.}"], "{}", &expect!["{}"]);
    }
}
