//! The secrets of one attempt: found before its program starts, given to that program alone, and removed from its log lines, its pieces of
//! answers, its errors and its measurements. An output is not changed: it is what the agent was asked for.
//!
//! A value comes with the lease, from an environment variable of this worker, or from a file in its directory of secrets. A lease can
//! name only variables with the prefix of secrets and only files in that directory: what else this machine has is not for agents.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Read as _;
use std::path::{Component, Path};
use std::sync::Arc;

use atlas_contract::secret_file;
use atlas_secrets::{Pieces, Redactor, Reference, Rules, Template, variable_of};
use atlas_types::{Attachments, Failure, FailureKind, SECRET_BYTES_MAX, SecretSource, SecretText};
use serde_json::Value;
use tracing::warn;

use crate::provider::bounded;
use crate::slot::{Ended, Shared, Work};

/// The largest file of secrets.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// What every variable with a secret begins with.
const VARIABLE_PREFIX: &str = "ATLAS_SECRET_";

/// The secrets of one attempt. It has no `Debug`, because it contains values.
#[derive(Clone, Default)]
pub(crate) struct Secrets {
    /// Those that the agent gets.
    declared: Arc<BTreeMap<String, SecretText>>,
    models: Arc<ForModels>,
    redactor: Redactor,
}

/// What the specs of the models of a lease refer to. The agent does not get it.
#[derive(Default)]
struct ForModels {
    secrets: BTreeMap<String, SecretText>,
    variables: BTreeMap<String, SecretText>,
}

impl Secrets {
    /// Finds the secrets that the contract declares. What came with the lease for the worker itself is only removed from texts.
    pub(crate) async fn of(work: &Arc<Work>, shared: &Shared) -> Result<Self, Failure> {
        if work.agent.contract.permissions.secrets.is_empty() && work.assignment.attachments.is_empty() {
            return Ok(Self::default());
        }
        let (work, settings) = (Arc::clone(work), Arc::clone(&shared.settings));
        // Files may be slow.
        let found = shared.env.spawn_blocking("read secrets", move || {
            let names = &work.agent.contract.permissions.secrets;
            let variable = |name: &str| settings.models.of_models(name);
            find(names, &work.assignment.attachments, settings.secrets.as_deref(), &variable)
        });
        let failed = |error: String| Failure { kind: FailureKind::Dependency, error: error.into() };
        match found.join().await {
            Ok(found) => found.map_err(failed),
            Err(_) => Err(failed("reading the secrets was interrupted".to_owned())),
        }
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

    /// Removes values from the error and the metadata of an attempt.
    pub(crate) fn redact(&self, end: Ended) -> Ended {
        if self.redactor.is_empty() {
            return end;
        }
        let failure = end.failure.map(|failure| Failure { error: self.error(&failure.error).into(), ..failure });
        let metadata = end.metadata.map(|bytes| match self.changed(&bytes) {
            Some(value) => value.to_string().into_bytes().into(),
            None => bytes,
        });
        Ended { failure, metadata, ..end }
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
    directory: Option<&Path>,
    variable: &dyn Fn(&str) -> Option<SecretText>,
) -> Result<Secrets, String> {
    let value = |name: &str| match attachments.secret(name).map(|secret| &secret.source) {
        Some(source) => read(name, source, directory),
        None => read(name, &SecretSource::Environment { variable: variable_of(None, name) }, directory),
    };
    let declared = Rules::Any.resolve(names.iter().map(String::as_str), value);
    let declared = declared.map_err(|error| format!("Secret resolution failed: {error}"))?;
    let models = for_models(attachments, &value, variable);
    let own = attachments.secrets().filter_map(|(name, secret)| match &secret.source {
        SecretSource::Value(value) => Some((name, value)),
        SecretSource::Environment { .. } | SecretSource::File { .. } => None,
    });
    let bearer = attachments.bearer().map(bare);
    let redactor = {
        let declared = declared.iter().chain(&models.secrets).chain(&models.variables);
        let declared = declared.map(|(name, value)| (name.as_str(), value));
        Redactor::new(declared.chain(own).chain(bearer.iter().map(|bearer| ("bearer", bearer))))
    };
    Ok(Secrets { declared: Arc::new(declared), models: Arc::new(models), redactor })
}

/// What the specs of the attached models refer to. A reference that leads nowhere is an error only for a model that is called.
fn for_models(
    attachments: &Attachments,
    secret: &dyn Fn(&str) -> Option<SecretText>,
    variable: &dyn Fn(&str) -> Option<SecretText>,
) -> ForModels {
    let mut found = ForModels::default();
    for model in attachments.models() {
        let Ok(spec) = serde_json::from_slice::<Value>(&model.spec) else { continue };
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

/// The value of a source. Why there is none is only in the log of the worker.
fn read(name: &str, source: &SecretSource, directory: Option<&Path>) -> Option<SecretText> {
    match source {
        SecretSource::Value(value) => Some(value.clone()),
        SecretSource::Environment { variable } if variable.starts_with(VARIABLE_PREFIX) => {
            let value = std::env::var(variable).ok().filter(|value| value.len() <= SECRET_BYTES_MAX);
            value.map(SecretText::new)
        }
        SecretSource::Environment { .. } => {
            warn!(%name, "the variable of a secret does not begin with {VARIABLE_PREFIX}");
            None
        }
        SecretSource::File { path, member } => read_file(path, member.as_deref(), directory)
            .inspect_err(|error| warn!(%name, %error, "could not read the file of a secret"))
            .ok()
            .flatten(),
    }
}

#[derive(Debug, thiserror::Error)]
enum FileError {
    #[error("this worker has no directory of secrets")]
    NoDirectory,
    #[error("the path leads out of the directory of secrets")]
    Outside,
    #[error("{0}")]
    Io(#[from] std::io::Error),
    #[error("{0}")]
    Document(#[from] secret_file::SecretFileError),
    #[error("the value is no text or has more than {SECRET_BYTES_MAX} bytes")]
    Value,
}

/// A file as a whole without the line end after it, or a member of the document in it; none if there is no such member.
fn read_file(path: &str, member: Option<&str>, directory: Option<&Path>) -> Result<Option<SecretText>, FileError> {
    let directory = directory.ok_or(FileError::NoDirectory)?;
    if path.is_empty() || !Path::new(path).components().all(|part| matches!(part, Component::Normal(_))) {
        return Err(FileError::Outside);
    }
    let mut bytes = Vec::new();
    std::fs::File::open(directory.join(path))?.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    let value = match member {
        Some(member) => secret_file::read(path, &bytes)?.remove(member),
        None => {
            let text = String::from_utf8(bytes).map_err(|_| FileError::Value)?;
            Some(
                text.strip_suffix('\n').map(|text| text.strip_suffix('\r').unwrap_or(text)).unwrap_or(&text).to_owned(),
            )
        }
    };
    match value {
        Some(value) if value.len() > SECRET_BYTES_MAX => Err(FileError::Value),
        value => Ok(value.map(SecretText::new)),
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

    fn file(path: &str, member: Option<&str>) -> SecretSource {
        SecretSource::File { path: path.to_owned(), member: member.map(Into::into) }
    }

    fn check(names: &[&str], secrets: &[(&str, SecretSource)], directory: Option<&Path>, expected: &Expect) {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let shown = match find(&names, &attached(secrets), directory, &|_| None) {
            Ok(found) => found.json().unwrap_or_default(),
            Err(error) => format!("error: {error}"),
        };
        expected.assert_eq(&shown);
    }

    #[test]
    fn declared_names_become_values() {
        let secrets = [("a", value("one")), ("b", value("two"))];
        check(&["a"], &secrets, None, &expect![[r#"{"a":"one"}"#]]);
        check(&[], &secrets, None, &expect![""]);
        check(
            &["a", "atlas_test_c"],
            &secrets,
            None,
            &expect!["error: Secret resolution failed: Secret 'atlas_test_c' not found"],
        );
        let path = SecretSource::Environment { variable: "PATH".to_owned() };
        check(&["p"], &[("p", path)], None, &expect!["error: Secret resolution failed: Secret 'p' not found"]);
    }

    #[test]
    fn files_are_read_in_their_directory_alone() {
        let dir = tempfile::tempdir().expect("a directory");
        std::fs::create_dir(dir.path().join("in")).expect("a directory");
        std::fs::write(dir.path().join("outside"), "canary").expect("a file");
        std::fs::write(dir.path().join("in/whole"), "v1\n").expect("a file");
        std::fs::write(dir.path().join("in/all.yaml"), "K: 5\n").expect("a file");
        std::fs::write(dir.path().join("in/large"), vec![b'x'; SECRET_BYTES_MAX + 1]).expect("a file");
        let inside = dir.path().join("in");
        let check = |source: SecretSource, expected: &Expect| check(&["s"], &[("s", source)], Some(&inside), expected);
        check(file("whole", None), &expect![[r#"{"s":"v1"}"#]]);
        check(file("all.yaml", Some("K")), &expect![[r#"{"s":"5"}"#]]);
        let refused = expect!["error: Secret resolution failed: Secret 's' not found"];
        let absolute = dir.path().join("outside").display().to_string();
        for (path, member) in [
            ("all.yaml", Some("X")),
            ("large", None),
            ("missing", None),
            ("../outside", None),
            ("", None),
            (absolute.as_str(), None),
        ] {
            check(file(path, member), &refused);
        }
        self::check(&["s"], &[("s", file("whole", None))], None, &refused);
    }

    #[test]
    fn variables_have_legal_names_and_replace_none() {
        let found = find(
            &["API_KEY".to_owned(), "openai-key".to_owned(), "PATH".to_owned()],
            &attached(&[("API_KEY", value("a")), ("openai-key", value("b")), ("PATH", value("c"))]),
            None,
            &|_| None,
        );
        let variables = found.expect("found").variables(&[("PATH".into(), "/bin".into())]);
        expect![[r#"[("API_KEY", "a"), ("OPENAI_KEY", "b")]"#]].assert_eq(&format!("{variables:?}"));
    }

    #[test]
    fn nothing_that_leaves_the_attempt_has_a_value() {
        let secrets =
            find(&["a".to_owned()], &attached(&[("a", value("s3cr3t-value"))]), None, &|_| None).expect("found");
        let failure = Failure { kind: FailureKind::Agent, error: "no s3cr3t-value t0k3n-1".into() };
        let metadata = Some(br#"{"x":"s3cr3t-value"}"#[..].into());
        let end = secrets.redact(Ended { metadata, ..Ended::failed(failure) });
        assert_eq!(&*end.failure.expect("a failure").error, "no [redacted:a] [redacted:bearer]");
        assert_eq!(end.metadata.as_deref(), Some(&br#"{"x":"[redacted:a]"}"#[..]));
        let cut = Failure { kind: FailureKind::Agent, error: "no s3cr3t-…".into() };
        assert_eq!(&*secrets.redact(Ended::failed(cut)).failure.expect("a failure").error, "no [redacted:a]…");
    }

    #[test]
    fn models_get_what_their_specs_refer_to_and_agents_do_not() {
        let spec = br#"{"key":"secret://k","headers":{"x":"a {{other}} ${VAR}"},"name":"secret://"}"#;
        let model = AttachedModel { name: "m".to_owned(), spec: (*spec).into() };
        let secret = AttachedSecret { source: value("model-key"), declared: false };
        let secrets = Attachment::Secrets([("k".to_owned(), secret)].into());
        let attachments = Attachments::new([secrets, Attachment::Models(vec![model])]);
        let variable = |name: &str| (name == "VAR").then(|| SecretText::new("from-variable"));
        let found = find(&[], &attachments, None, &variable).expect("found");
        assert!(found.of_models("k").is_some_and(|value| value.expose() == "model-key"));
        assert!(found.variable_of_models("VAR").is_some_and(|value| value.expose() == "from-variable"));
        assert!(found.of_models("other").is_none() && found.json().is_none());
        let error = found.error("bad key model-key, from-variable");
        assert_eq!(error, "bad key [redacted:k], [redacted:VAR]");
    }

    #[test]
    fn values_are_found_across_cut_lines_and_pieces() {
        let secrets =
            find(&["a".to_owned()], &attached(&[("a", value("s3cr3t-value"))]), None, &|_| None).expect("found");
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
