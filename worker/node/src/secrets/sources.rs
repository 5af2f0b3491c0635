//! Where the values of secrets are: in the lease, in environment variables of this worker, and in files that its operator names.
//!
//! A lease can name only variables with the prefix of secrets and only files in the directory of secrets: what else this machine has is
//! not for agents.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use atlas_contract::secret_file::{self, SecretFileError};
use atlas_secrets::{Rules, variable_of};
use atlas_types::{Attachments, SECRET_BYTES_MAX, SecretSource, SecretText};
use tracing::warn;

/// The largest file of secrets.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// What a variable with a secret begins with. Objects name variables with this prefix; a worker with another one replaces it.
const VARIABLE_PREFIX: &str = "ATLAS_SECRET_";

/// Where values of secrets are on the machine of a worker, and which of them its agents may have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretSources {
    /// The directory of files that secrets with the provider `file` name. A secret can name no other file of the machine.
    pub directory: Option<PathBuf>,
    /// A file with a JSON or YAML object of values by name, for secrets that are not objects of the cluster.
    pub file: Option<PathBuf>,
    /// What the names of environment variables with secrets begin with.
    pub prefix: String,
    /// The secrets that agents may have.
    pub allowed: Rules,
}

impl Default for SecretSources {
    fn default() -> Self {
        let (directory, prefix) = (Some(PathBuf::from("/run/secrets")), VARIABLE_PREFIX.to_owned());
        Self { directory, file: None, prefix, allowed: Rules::Any }
    }
}

/// Finds the values of one attempt. The file of values is read once, when a name is first looked up in it.
pub(crate) struct Resolver<'a> {
    sources: &'a SecretSources,
    attachments: &'a Attachments,
    environment: &'a dyn Fn(&str) -> Option<String>,
    file: OnceCell<BTreeMap<String, String>>,
}

impl<'a> Resolver<'a> {
    pub(crate) fn new(
        sources: &'a SecretSources,
        attachments: &'a Attachments,
        environment: &'a dyn Fn(&str) -> Option<String>,
    ) -> Self {
        Self { sources, attachments, environment, file: OnceCell::new() }
    }

    /// The value of a secret. The object of the name decides where it is; without an object it is in the environment or, if there is no
    /// such variable, in the file of values. Why there is no value is only in the log of the worker.
    pub(crate) fn secret(&self, name: &str) -> Option<SecretText> {
        match self.attachments.secret(name).map(|secret| &secret.source) {
            Some(SecretSource::Value(value)) => Some(value.clone()),
            Some(SecretSource::Environment { variable }) => match variable.strip_prefix(VARIABLE_PREFIX) {
                Some(rest) => self.variable(name, rest),
                None => {
                    warn!(%name, "the variable of a secret does not begin with {VARIABLE_PREFIX}");
                    None
                }
            },
            Some(SecretSource::File { path, member }) => {
                let read = read_file(path, member.as_deref(), self.sources.directory.as_deref());
                let read = read.inspect_err(|error| warn!(%name, %error, "could not read the file of a secret"));
                read.ok().flatten().and_then(|value| bounded(name, value))
            }
            None => self.variable(name, name).or_else(|| self.in_file(name)),
        }
    }

    fn variable(&self, name: &str, rest: &str) -> Option<SecretText> {
        let value = (self.environment)(&variable_of(Some(&self.sources.prefix), rest))?;
        bounded(name, value)
    }

    fn in_file(&self, name: &str) -> Option<SecretText> {
        let path = self.sources.file.as_deref()?;
        let values = self.file.get_or_init(|| {
            read_values(path)
                .inspect_err(|error| warn!(path = %path.display(), %error, "could not read the file of secrets"))
                .unwrap_or_default()
        });
        bounded(name, values.get(name)?.clone())
    }
}

fn bounded(name: &str, value: String) -> Option<SecretText> {
    if value.len() > SECRET_BYTES_MAX {
        warn!(%name, "the value of a secret has more than {SECRET_BYTES_MAX} bytes");
        return None;
    }
    Some(SecretText::new(value))
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
    Document(#[from] SecretFileError),
    #[error("the value is not a text")]
    NotText,
}

/// A file as a whole without the line end after it, or a member of the document in it; none if there is no such member.
fn read_file(path: &str, member: Option<&str>, directory: Option<&Path>) -> Result<Option<String>, FileError> {
    let directory = directory.ok_or(FileError::NoDirectory)?;
    if path.is_empty() || !Path::new(path).components().all(|part| matches!(part, Component::Normal(_))) {
        return Err(FileError::Outside);
    }
    let bytes = read_bytes(&directory.join(path))?;
    match member {
        Some(member) => Ok(secret_file::read(path, &bytes)?.remove(member)),
        None => {
            let text = String::from_utf8(bytes).map_err(|_| FileError::NotText)?;
            let value = text.strip_suffix('\n').map(|text| text.strip_suffix('\r').unwrap_or(text));
            Ok(Some(value.unwrap_or(&text).to_owned()))
        }
    }
}

fn read_values(path: &Path) -> Result<BTreeMap<String, String>, FileError> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    Ok(secret_file::read(&name, &read_bytes(path)?)?)
}

fn read_bytes(path: &Path) -> Result<Vec<u8>, FileError> {
    Ok(atlas_env::read_bytes(path, FILE_BYTES_MAX)?)
}

#[cfg(test)]
mod tests {
    use atlas_types::{AttachedSecret, Attachment};
    use expect_test::{Expect, expect};

    use super::*;

    fn attached(secrets: Vec<(&str, SecretSource)>) -> Attachments {
        let one = |(name, source): (&str, SecretSource)| (name.to_owned(), AttachedSecret { source, declared: true });
        Attachments::new([Attachment::Secrets(secrets.into_iter().map(one).collect())])
    }

    fn variable(name: &str) -> SecretSource {
        SecretSource::Environment { variable: name.to_owned() }
    }

    fn file(path: &str, member: Option<&str>) -> SecretSource {
        SecretSource::File { path: path.to_owned(), member: member.map(Into::into) }
    }

    fn environment(name: &str) -> Option<String> {
        match name {
            "ATLAS_SECRET_TOK" => Some("t1".to_owned()),
            "X_TOK" => Some("t2".to_owned()),
            "ATLAS_SECRET_EMPTY" => Some(String::new()),
            "ATLAS_SECRET_LARGE" => Some("x".repeat(SECRET_BYTES_MAX + 1)),
            "PATH" => Some("/bin".to_owned()),
            _ => None,
        }
    }

    fn check(sources: &SecretSources, secrets: Vec<(&str, SecretSource)>, names: &[&str], expected: &Expect) {
        let attachments = attached(secrets);
        let resolver = Resolver::new(sources, &attachments, &environment);
        let shown = |name: &&str| match resolver.secret(name) {
            Some(value) => format!("{name}={}", value.expose()),
            None => format!("no {name}"),
        };
        expected.assert_eq(&names.iter().map(shown).collect::<Vec<_>>().join(" "));
    }

    #[test]
    fn an_object_decides_where_a_value_is() {
        let secrets = vec![
            ("TOK", SecretSource::Value(SecretText::new("stored"))),
            ("renamed", variable("ATLAS_SECRET_TOK")),
            ("other", variable("PATH")),
        ];
        check(
            &SecretSources::default(),
            secrets,
            &["TOK", "renamed", "other", "EMPTY", "LARGE"],
            &expect!["TOK=stored renamed=t1 no other EMPTY= no LARGE"],
        );
    }

    #[test]
    fn a_prefix_replaces_the_usual_one() {
        let sources = SecretSources { prefix: "X_".to_owned(), ..SecretSources::default() };
        check(
            &sources,
            vec![("renamed", variable("ATLAS_SECRET_TOK"))],
            &["TOK", "renamed"],
            &expect!["TOK=t2 renamed=t2"],
        );
    }

    #[test]
    fn the_file_of_values_comes_after_the_environment() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("s.yaml");
        std::fs::write(&path, "TOK: file\nN: 5\nT: true\nE: ''\nZ: null\n").expect("a file");
        let sources = SecretSources { file: Some(path.clone()), ..SecretSources::default() };
        let names = ["TOK", "N", "T", "E", "Z", "missing"];
        check(&sources, vec![], &names, &expect!["TOK=t1 N=5 T=True E= Z=None no missing"]);
        std::fs::write(&path, "- no object").expect("a file");
        check(&sources, vec![], &["N"], &expect!["no N"]);
        check(&sources, vec![("N", file("N", None))], &["N"], &expect!["no N"]);
        let missing = SecretSources { file: Some(dir.path().join("none.json")), ..SecretSources::default() };
        check(&missing, vec![], &["N", "TOK"], &expect!["no N TOK=t1"]);
    }

    #[test]
    fn files_are_read_in_their_directory_alone() {
        let dir = tempfile::tempdir().expect("a directory");
        std::fs::create_dir(dir.path().join("in")).expect("a directory");
        std::fs::write(dir.path().join("outside"), "canary").expect("a file");
        std::fs::write(dir.path().join("in/whole"), "v1\n").expect("a file");
        std::fs::write(dir.path().join("in/all.yaml"), "K: 5\n").expect("a file");
        std::fs::write(dir.path().join("in/large"), vec![b'x'; SECRET_BYTES_MAX + 1]).expect("a file");
        let sources = SecretSources { directory: Some(dir.path().join("in")), ..SecretSources::default() };
        let absolute = dir.path().join("outside").display().to_string();
        let secrets = vec![
            ("whole", file("whole", None)),
            ("member", file("all.yaml", Some("K"))),
            ("absent", file("all.yaml", Some("X"))),
            ("large", file("large", None)),
            ("missing", file("missing", None)),
            ("up", file("../outside", None)),
            ("empty", file("", None)),
            ("absolute", file(&absolute, None)),
        ];
        let names: Vec<&str> = secrets.iter().map(|(name, _)| *name).collect();
        check(
            &sources,
            secrets.clone(),
            &names,
            &expect!["whole=v1 member=5 no absent no large no missing no up no empty no absolute"],
        );
        let none = SecretSources { directory: None, ..SecretSources::default() };
        check(&none, secrets, &["whole"], &expect!["no whole"]);
    }
}
