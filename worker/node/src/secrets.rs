//! The secrets of one attempt: found before its program starts, given to that program alone, and removed from everything that leaves the
//! attempt: its log lines, pieces of answers, errors, measurements and its output. Only the inputs of its children stay as they are.

mod sources;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::Arc;

use atlas_env::Env;
use atlas_secrets::{Pieces, Redactor, Reference, Template};
use atlas_types::{Attachments, Failure, FailureKind, SecretSource, SecretText};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::attempt::{Ended, Work};
use crate::model_environment::ModelEnvironment;
use crate::texts::bounded;

use sources::Resolver;
pub use sources::SecretSources;

/// The secrets of one attempt. It has no `Debug`, because it contains values.
#[derive(Clone, Default)]
pub(crate) struct Secrets {
    /// Those that the agent gets.
    declared: Arc<BTreeMap<String, SecretText>>,
    models: Arc<ForModels>,
    /// What is removed from texts, with its names.
    hidden: Vec<(String, SecretText)>,
    redactor: Redactor,
}

/// What the specs of the models and MCP servers of a lease refer to. The agent does not get it.
#[derive(Default)]
struct ForModels {
    secrets: BTreeMap<String, SecretText>,
    variables: BTreeMap<String, SecretText>,
}

impl Secrets {
    /// Finds the secrets that the contract declares. What came with the lease for the worker itself, and the keys of models of the
    /// worker's environment, are only removed from texts.
    pub(crate) async fn of(
        work: &Arc<Work>,
        env: &Env,
        (sources, models): (&SecretSources, &ModelEnvironment),
    ) -> Result<Self, Failure> {
        let contract = &work.agent.contract;
        let calls_models = contract.calls_models();
        if contract.permissions.secrets.is_empty() && work.assignment.attachments.is_empty() && !calls_models {
            return Ok(Self::default());
        }
        let (work, sources, models) = (Arc::clone(work), sources.clone(), models.clone());
        // Files may be slow.
        let found = env.spawn_blocking("read secrets", move || {
            let names = &work.agent.contract.permissions.secrets;
            find(names, &work.assignment.attachments, &sources, &models)
        });
        let failed = |error: String| Failure { kind: FailureKind::Dependency, error: error.into() };
        match found.join().await {
            Ok(found) => found.map_err(failed),
            Err(_) => Err(failed("reading the secrets was interrupted".to_owned())),
        }
    }

    /// Another value that is removed from texts from now on.
    pub(crate) fn hide(&mut self, name: &str, value: SecretText) {
        self.hidden.push((name.to_owned(), value));
        self.redactor = Redactor::new(self.hidden.iter().map(|(name, value)| (name.as_str(), value)));
    }

    /// For texts of the attempt.
    pub(crate) fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// The value of a secret for a model's spec.
    pub(crate) fn of_models(&self, name: &str) -> Option<&SecretText> {
        self.models.secrets.get(name)
    }

    /// The value of a variable of the worker's environment for a model's spec.
    pub(crate) fn variable_of_models(&self, name: &str) -> Option<&SecretText> {
        self.models.variables.get(name)
    }

    /// The value of a secret of the agent.
    pub(crate) fn declared(&self, name: &str) -> Option<&SecretText> {
        self.declared.get(name)
    }

    /// The secrets of the agent, as a member of a JSON document.
    pub(crate) fn json(&self) -> Option<String> {
        let values: BTreeMap<&str, &str> =
            self.declared.iter().map(|(name, value)| (name.as_str(), value.expose())).collect();
        (!values.is_empty()).then(|| serde_json::to_string(&values).unwrap_or_default())
    }

    /// The secrets of the agent as environment variables, none of which replaces one of `others`.
    pub(crate) fn variables(&self, others: &[(OsString, OsString)]) -> Vec<(OsString, OsString)> {
        let variables = self.declared.iter().map(|(name, value)| (variable(name).into(), value.expose().into()));
        let is_new = |(name, _): &(OsString, OsString)| !others.iter().any(|(other, _)| other == name);
        variables.filter(is_new).collect()
    }

    /// Removes values from the output, the error and the metadata of an attempt. The output was checked against its schema before.
    pub(crate) fn redact(&self, end: Ended) -> Ended {
        if self.redactor.is_empty() {
            return end;
        }
        let output = end.output.map(|output| self.output(output));
        let failure = end.failure.map(|failure| Failure { error: self.error(&failure.error).into(), ..failure });
        let metadata = end.metadata.map(|bytes| match self.changed(&bytes) {
            Some(value) => value.to_string().into_bytes().into(),
            None => bytes,
        });
        Ended { output, failure, metadata, ..end }
    }

    fn output(&self, output: Box<RawValue>) -> Box<RawValue> {
        let redacted = match serde_json::from_str::<Value>(output.get()) {
            Ok(mut value) => self.redactor.json(&mut value).then(|| value.to_string()),
            // Too deep to be read: the text is searched as it is.
            Err(_) => match self.redactor.text(output.get()) {
                Cow::Borrowed(_) => None,
                Cow::Owned(text) => Some(text),
            },
        };
        match redacted.map(RawValue::from_string) {
            None => output,
            Some(Ok(redacted)) => redacted,
            // A number that was a value is no JSON any more.
            Some(Err(_)) => RawValue::NULL.to_owned(),
        }
    }

    /// An error text, which may have been cut off at its end.
    fn error(&self, text: &str) -> String {
        match text.strip_suffix('…') {
            Some(cut) => format!("{}…", self.redactor.fragment(cut)),
            None => self.redactor.text(text).into_owned(),
        }
    }

    /// A JSON text without values; none if it contained none.
    fn changed(&self, json: &[u8]) -> Option<Value> {
        let mut value = serde_json::from_slice(json).ok()?;
        self.redactor.json(&mut value).then_some(value)
    }
}

/// The variable of an exec agent with a secret: its name, in capitals with `_` for other characters if it cannot be one.
fn variable(name: &str) -> String {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    if name.bytes().all(is_allowed) && !name.starts_with(|first: char| first.is_ascii_digit()) {
        return name.to_owned();
    }
    let plain = |character: char| if character.is_ascii_alphanumeric() { character.to_ascii_uppercase() } else { '_' };
    name.chars().map(plain).collect()
}

fn find(
    names: &[String],
    attachments: &Attachments,
    sources: &SecretSources,
    own_models: &ModelEnvironment,
) -> Result<Secrets, String> {
    let environment = |name: &str| std::env::var(name).ok();
    let resolver = Resolver::new(sources, attachments, &environment);
    let value = |name: &str| resolver.secret(name);
    let declared = sources.allowed.resolve(names.iter().map(String::as_str), value);
    let declared = declared.map_err(|error| format!("Secret resolution failed: {error}"))?;
    let models = for_models(attachments, &value, &|name| own_models.of_models(name));
    let own = attachments.secrets().filter_map(|(name, secret)| match &secret.source {
        SecretSource::Value(value) => Some((name, value)),
        SecretSource::Environment { .. } | SecretSource::File { .. } => None,
    });
    let bearer = attachments.bearer().map(bare);
    let found = declared.iter().chain(&models.secrets).chain(&models.variables);
    let found = found.map(|(name, value)| (name.as_str(), value));
    let found = found.chain(own).chain(own_models.keys()).chain(bearer.iter().map(|bearer| ("bearer", bearer)));
    let hidden: Vec<_> = found.map(|(name, value)| (name.to_owned(), value.clone())).collect();
    let redactor = Redactor::new(hidden.iter().map(|(name, value)| (name.as_str(), value)));
    Ok(Secrets { declared: Arc::new(declared), models: Arc::new(models), hidden, redactor })
}

/// What the specs of the attached models and MCP servers refer to. A reference that leads nowhere is an error only for a model that is called.
fn for_models(
    attachments: &Attachments,
    secret: &dyn Fn(&str) -> Option<SecretText>,
    variable: &dyn Fn(&str) -> Option<SecretText>,
) -> ForModels {
    let mut found = ForModels::default();
    let models = attachments.models().iter().map(|model| &model.spec);
    for spec in models.chain(attachments.servers().iter().map(|server| &server.spec)) {
        let Ok(mut spec) = serde_json::from_slice::<Value>(spec) else { continue };
        // The secret of the client is for controllers.
        spec.as_object_mut().map(|members| members.remove("login"));
        each_text(&spec, &mut |text| {
            let Ok(template) = Template::parse(text) else { return };
            for reference in template.references() {
                match reference {
                    Reference::Secret(name) => {
                        let value = if found.secrets.contains_key(name) { None } else { secret(name) };
                        found.secrets.extend(value.map(|value| (name.to_owned(), value)));
                    }
                    Reference::Variable(name) => {
                        found.variables.extend(variable(name).map(|value| (name.to_owned(), value)));
                    }
                }
            }
        });
    }
    found
}

/// Visits the texts of a document.
fn each_text(value: &Value, visit: &mut dyn FnMut(&str)) {
    match value {
        Value::String(text) => visit(text),
        Value::Array(items) => items.iter().for_each(|item| each_text(item, visit)),
        Value::Object(members) => members.values().for_each(|member| each_text(member, visit)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// A credential without its scheme.
fn bare(bearer: &SecretText) -> SecretText {
    let text = bearer.expose();
    match text.split_once(' ') {
        Some((_, token)) => SecretText::new(token.trim()),
        None => bearer.clone(),
    }
}

/// Removes values from the lines and the pieces of an attempt, in order.
#[derive(Default)]
pub(crate) struct Said {
    redactor: Redactor,
    /// The line before was cut off, so the next one may begin within a value.
    cut: bool,
    /// The call whose answer arrives in pieces.
    call: Option<((u32, u32), Pieces)>,
}

impl Said {
    pub(crate) fn new(secrets: &Secrets) -> Self {
        Self { redactor: secrets.redactor.clone(), cut: false, call: None }
    }

    /// Takes over what the secrets hide now.
    pub(crate) fn hide(&mut self, secrets: &Secrets) {
        self.redactor = secrets.redactor.clone();
    }

    /// A line of bounded length. Lines of `line_bytes_max` bytes may be cut off at their ends.
    pub(crate) fn line(&mut self, text: String, line_bytes_max: usize) -> String {
        if self.redactor.is_empty() {
            return bounded(text);
        }
        let is_cut = text.len() + 4 > line_bytes_max;
        let after_cut = std::mem::replace(&mut self.cut, is_cut);
        let redacted = if is_cut || after_cut { self.redactor.fragment(&text) } else { self.redactor.text(&text) };
        bounded(redacted.into_owned())
    }

    /// A piece of an answer, as what can be passed on of each call.
    pub(crate) fn piece(&mut self, call: (u32, u32), text: String) -> Vec<((u32, u32), String)> {
        if self.redactor.is_empty() {
            return vec![(call, text)];
        }
        let mut said = Vec::new();
        if self.call.as_ref().is_some_and(|(current, _)| *current != call) {
            said.extend(self.rest());
        }
        // It says only that the pieces before are void.
        if text.is_empty() {
            said.push((call, text));
            return said;
        }
        let (_, pieces) = self.call.get_or_insert_with(|| (call, self.redactor.pieces()));
        said.push((call, pieces.push(&text)));
        said.retain(|(_, text)| !text.is_empty());
        said
    }

    /// What was held back of the last call.
    pub(crate) fn rest(&mut self) -> Option<((u32, u32), String)> {
        let (call, mut pieces) = self.call.take()?;
        Some((call, pieces.end())).filter(|(_, text)| !text.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use atlas_secrets::Rules;
    use atlas_types::{AttachedModel, AttachedSecret, Attachment};
    use expect_test::{Expect, expect};

    use super::*;

    fn attached(secrets: &[(&str, SecretSource)]) -> Attachments {
        let one = |(name, source): &(&str, SecretSource)| {
            ((*name).to_owned(), AttachedSecret { source: source.clone(), declared: true })
        };
        let secrets = Attachment::Secrets(secrets.iter().map(one).collect());
        Attachments::new([secrets, Attachment::Bearer(SecretText::new("Bearer t0k3n-1"))])
    }

    fn value(text: &str) -> SecretSource {
        SecretSource::Value(SecretText::new(text))
    }

    fn check(names: &[&str], secrets: &[(&str, SecretSource)], sources: &SecretSources, expected: &Expect) {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let shown = match find(&names, &attached(secrets), sources, &ModelEnvironment::default()) {
            Ok(found) => found.json().unwrap_or_default(),
            Err(error) => format!("error: {error}"),
        };
        expected.assert_eq(&shown);
    }

    #[test]
    fn declared_names_become_values() {
        let secrets = [("a", value("one")), ("b", value("two"))];
        let any = SecretSources::default();
        check(&["a"], &secrets, &any, &expect![[r#"{"a":"one"}"#]]);
        check(&[], &secrets, &any, &expect![""]);
        check(
            &["a", "atlas_test_c"],
            &secrets,
            &any,
            &expect!["error: Secret resolution failed: Secret 'atlas_test_c' not found"],
        );
        let only = |names: &[&str]| SecretSources {
            allowed: Rules::Only(names.iter().map(|name| (*name).to_owned()).collect()),
            ..SecretSources::default()
        };
        check(&["a"], &secrets, &only(&["a"]), &expect![[r#"{"a":"one"}"#]]);
        let refused = expect!["error: Secret resolution failed: Secret 'b' is not in the allowed secrets whitelist"];
        check(&["a", "b"], &secrets, &only(&["a"]), &refused);
        check(&["b"], &secrets, &only(&[]), &refused);
    }

    #[test]
    fn variables_have_legal_names_and_replace_none() {
        let found = find(
            &["API_KEY".to_owned(), "openai-key".to_owned(), "PATH".to_owned()],
            &attached(&[("API_KEY", value("a")), ("openai-key", value("b")), ("PATH", value("c"))]),
            &SecretSources::default(),
            &ModelEnvironment::default(),
        );
        let variables = found.expect("found").variables(&[("PATH".into(), "/bin".into())]);
        expect![[r#"[("API_KEY", "a"), ("OPENAI_KEY", "b")]"#]].assert_eq(&format!("{variables:?}"));
    }

    fn found_a() -> Secrets {
        let attached = attached(&[("a", value("s3cr3t-value"))]);
        find(&["a".to_owned()], &attached, &SecretSources::default(), &ModelEnvironment::default()).expect("found")
    }

    #[test]
    fn nothing_that_leaves_the_attempt_has_a_value() {
        let secrets = found_a();
        let failure = Failure { kind: FailureKind::Agent, error: "no s3cr3t-value t0k3n-1".into() };
        let metadata = Some(br#"{"x":"s3cr3t-value"}"#[..].into());
        let output = |text: &str| Some(RawValue::from_string(text.to_owned()).expect("JSON"));
        let output_with = output(r#"{"n": 1.50, "x": ["s3cr3t-value", 1]}"#);
        let end = secrets.redact(Ended { metadata, output: output_with, ..Ended::failed(failure) });
        assert_eq!(
            end.output.map(|output| output.get().to_owned()).as_deref(),
            Some(r#"{"n":1.5,"x":["[redacted:a]",1]}"#)
        );
        assert_eq!(&*end.failure.as_ref().expect("a failure").error, "no [redacted:a] [redacted:bearer]");
        assert_eq!(end.metadata.as_deref(), Some(&br#"{"x":"[redacted:a]"}"#[..]));
        let deep = format!("{0}\"s3cr3t-value\"{1}", "[".repeat(200), "]".repeat(200));
        let end = secrets.redact(Ended { output: output(&deep), ..Ended::failed(end.failure.expect("a failure")) });
        assert!(end.output.expect("an output").get().contains(r#"["[redacted:a]"]"#));
        let plain = r#"{"n": 1.50}"#;
        let end = secrets.redact(Ended { output: output(plain), ..Ended::failed(end.failure.expect("a failure")) });
        assert_eq!(end.output.expect("an output").get(), plain, "an output without values stays as it is");
        let cut = Failure { kind: FailureKind::Agent, error: "no s3cr3t-…".into() };
        assert_eq!(&*secrets.redact(Ended::failed(cut)).failure.expect("a failure").error, "no [redacted:a]…");
    }

    #[test]
    fn models_get_what_their_specs_refer_to_and_agents_do_not() {
        let spec = br#"{"key":"secret://k","headers":{"x":"a {{other}} ${VAR}"},"name":"secret://"}"#;
        let model = AttachedModel { name: "m".to_owned(), spec: (*spec).into(), asked: Vec::new() };
        let secret = AttachedSecret { source: value("model-key"), declared: false };
        let secrets = Attachment::Secrets([("k".to_owned(), secret)].into());
        let attachments = Attachments::new([secrets, Attachment::Models(vec![model])]);
        let environment = [("VAR", "from-variable".to_owned()), ("OPENAI_API_KEY", "sk-own".to_owned())];
        let environment = ModelEnvironment::new(environment);
        let found = find(&[], &attachments, &SecretSources::default(), &environment).expect("found");
        assert!(found.of_models("k").is_some_and(|value| value.expose() == "model-key"));
        assert!(found.variable_of_models("VAR").is_some_and(|value| value.expose() == "from-variable"));
        assert!(found.of_models("other").is_none() && found.json().is_none());
        let error = found.error("bad key model-key, from-variable, sk-own");
        assert_eq!(error, "bad key [redacted:k], [redacted:VAR], [redacted:OPENAI_API_KEY]");
    }

    #[test]
    fn values_are_found_across_cut_lines_and_pieces() {
        let secrets = found_a();
        let mut said = Said::new(&secrets);
        assert_eq!(said.line("xxxx s3cr3t".to_owned(), 14), "xxxx [redacted:a]");
        assert_eq!(said.line("-value yy".to_owned(), 14), "[redacted:a] yy");
        assert_eq!(said.line("-value".to_owned(), 14), "-value");
        assert_eq!(said.piece((1, 1), "is s3cr".to_owned()), [((1, 1), "is ".to_owned())]);
        assert_eq!(said.piece((1, 1), "3t-value!".to_owned()), [((1, 1), "[redacted:a]!".to_owned())]);
        assert_eq!(said.piece((1, 1), "s3".to_owned()), []);
        assert_eq!(said.piece((1, 2), "x".to_owned()), [((1, 1), "s3".to_owned()), ((1, 2), "x".to_owned())]);
        assert_eq!(said.rest(), None);
    }
}
