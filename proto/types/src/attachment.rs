//! What goes out with a lease beside its assignment: secrets, a bearer, models, MCP servers, and what policies leave the agent.
//!
//! Attachments exist in memory and in the frame of the grant. No command, event, snapshot, history or trace has a field for
//! them. The types with values have no `Debug`, `Display` or `PartialOrd`, so that no log line can contain a value by
//! mistake, and their memory is overwritten when the last copy is dropped.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use subtle::ConstantTimeEq as _;
use zeroize::Zeroizing;

/// Most bytes of the value of one secret, and of a bearer.
pub const SECRET_BYTES_MAX: usize = 16 << 10;

/// Most secrets of one lease.
pub const ATTACHED_SECRETS_MAX: usize = 128;

/// Most models of one lease: those that are asked for and their fallbacks.
pub const ATTACHED_MODELS_MAX: usize = 16;

/// Most MCP servers of one lease.
pub const ATTACHED_SERVERS_MAX: usize = 16;

/// Most bytes of all attachments of one lease.
pub const ATTACHMENTS_BYTES_MAX: usize = 512 << 10;

/// A text that only its user may see. Copies share one buffer, which is overwritten when the last of them is dropped.
#[derive(Clone)]
pub struct SecretText(Arc<Zeroizing<Box<str>>>);

impl SecretText {
    /// Takes over the buffer of `text`.
    pub fn new(text: impl Into<Box<str>>) -> Self {
        Self(Arc::new(Zeroizing::new(text.into())))
    }

    /// The text, for the one who uses it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

/// For encoders: the bytes of the text.
impl AsRef<[u8]> for SecretText {
    fn as_ref(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

/// Takes the same time wherever two texts of equal length differ.
impl PartialEq for SecretText {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_bytes().ct_eq(other.0.as_bytes()).into()
    }
}

impl Eq for SecretText {}

/// Where the value of an attached secret is.
#[derive(Clone, PartialEq, Eq)]
pub enum SecretSource {
    /// Here.
    Value(SecretText),
    /// In an environment variable of the worker.
    Environment {
        /// Its name.
        variable: String,
    },
    /// In a file of the worker's machine.
    File {
        /// Its path.
        path: String,
        /// The member of the JSON or YAML document in the file; none if the whole file is the value.
        member: Option<String>,
    },
}

/// A secret of a lease.
#[derive(Clone, PartialEq, Eq)]
pub struct AttachedSecret {
    pub source: SecretSource,
    /// The agent's contract names it, so the agent gets its value. Otherwise only the worker uses it, for a model's key.
    pub declared: bool,
}

/// A model that a lease may call.
#[derive(Clone, PartialEq, Eq)]
pub struct AttachedModel {
    /// The name of its object.
    pub name: String,
    /// The spec of its object, canonical JSON; its key is a reference to a secret.
    pub spec: Arc<[u8]>,
    /// The names, in the contract of an agent with several models, for which this is the first model. Its fallbacks follow from the specs.
    pub asked: Vec<String>,
}

/// An MCP server that a lease may call.
#[derive(Clone, PartialEq, Eq)]
pub struct AttachedServer {
    /// The name of its object.
    pub name: String,
    /// The spec of its object, canonical JSON; credentials in it are references to secrets.
    pub spec: Arc<[u8]>,
    /// A person has logged in at it: the leader has access tokens.
    pub login: bool,
}

/// Most words of one list of [`Bounds`].
pub const BOUNDS_WORDS_MAX: usize = 16;

/// What policies leave an agent at most of what its contract permits. None is no bound.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bounds {
    /// Scopes of files.
    pub filesystem: Option<Vec<String>>,
    /// Directions of the network; an empty list leaves none.
    pub network: Option<Vec<String>>,
    /// Upper bound of `max_memory_mb`.
    pub memory_mb: Option<u64>,
    /// Upper bound of `max_cpu_seconds`.
    pub cpu_seconds: Option<u64>,
}

impl Bounds {
    /// Whether nothing is bounded.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// What is left if both hold.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let both = |left: Option<Vec<String>>, right: Option<Vec<String>>| match (left, right) {
            (Some(left), Some(right)) => Some(left.into_iter().filter(|word| right.contains(word)).collect()),
            (left, right) => left.or(right),
        };
        let least = |left: Option<u64>, right: Option<u64>| left.into_iter().chain(right).min();
        Self {
            filesystem: both(self.filesystem, other.filesystem),
            network: both(self.network, other.network),
            memory_mb: least(self.memory_mb, other.memory_mb),
            cpu_seconds: least(self.cpu_seconds, other.cpu_seconds),
        }
    }

    /// What is left of the scopes of files that a contract permits.
    pub fn files_left(&self, permitted: &[String]) -> Vec<String> {
        left(self.filesystem.as_deref(), permitted, |_| false)
    }

    /// What is left of the network that a contract permits. The name of a host is outbound. Without `outbound` nothing is left: a sandbox
    /// gives the whole network or none.
    pub fn network_left(&self, permitted: &[String]) -> Vec<String> {
        let is_outbound = |bound: &[String]| bound.iter().any(|word| word.eq_ignore_ascii_case("outbound"));
        if !self.network.as_deref().is_none_or(is_outbound) {
            return Vec::new();
        }
        let directions = ["inbound", "outbound"];
        left(self.network.as_deref(), permitted, |word| {
            !directions.iter().any(|direction| word.eq_ignore_ascii_case(direction))
        })
    }
}

fn left(bound: Option<&[String]>, permitted: &[String], fits: impl Fn(&str) -> bool) -> Vec<String> {
    let Some(bound) = bound else { return permitted.to_vec() };
    let is_left = |word: &&String| bound.iter().any(|bound| bound.eq_ignore_ascii_case(word)) || fits(word);
    permitted.iter().filter(is_left).cloned().collect()
}

/// One kind of attachment.
#[derive(Clone, PartialEq, Eq)]
pub enum Attachment {
    /// Secrets by name.
    Secrets(BTreeMap<String, AttachedSecret>),
    /// The credential of the caller, as the `Authorization` header has it.
    Bearer(SecretText),
    /// The model that the agent asks for, then its fallbacks in order; then those of further names.
    Models(Vec<AttachedModel>),
    /// The MCP servers that the agent names and that exist.
    Servers(Vec<AttachedServer>),
    /// What policies leave the agent.
    Bounds(Bounds),
}

/// All attachments of a lease, at most one of each kind.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Attachments(Vec<Attachment>);

impl Attachments {
    /// The attachments of a list. Of two of one kind, the later one counts.
    pub fn new(all: impl IntoIterator<Item = Attachment>) -> Self {
        let mut kept = Self::default();
        for attachment in all {
            let kind = std::mem::discriminant(&attachment);
            kept.0.retain(|other| std::mem::discriminant(other) != kind);
            kept.0.push(attachment);
        }
        kept
    }

    /// True if nothing goes out with the lease.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// One attachment of each kind.
    pub fn iter(&self) -> impl Iterator<Item = &Attachment> {
        self.0.iter()
    }

    /// A secret by name.
    pub fn secret(&self, name: &str) -> Option<&AttachedSecret> {
        self.secrets().find(|(known, _)| *known == name).map(|(_, secret)| secret)
    }

    /// The secrets by name.
    pub fn secrets(&self) -> impl Iterator<Item = (&str, &AttachedSecret)> {
        let secrets = self.0.iter().filter_map(|attachment| match attachment {
            Attachment::Secrets(secrets) => Some(secrets),
            _ => None,
        });
        secrets.flatten().map(|(name, secret)| (name.as_str(), secret))
    }

    /// The credential of the caller.
    pub fn bearer(&self) -> Option<&SecretText> {
        self.0.iter().find_map(|attachment| match attachment {
            Attachment::Bearer(bearer) => Some(bearer),
            _ => None,
        })
    }

    /// The model that the agent asks for, then its fallbacks; empty if there are none.
    pub fn models(&self) -> &[AttachedModel] {
        let models = self.0.iter().find_map(|attachment| match attachment {
            Attachment::Models(models) => Some(models.as_slice()),
            _ => None,
        });
        models.unwrap_or_default()
    }

    /// The MCP servers that the agent may call.
    pub fn servers(&self) -> &[AttachedServer] {
        let servers = self.0.iter().find_map(|attachment| match attachment {
            Attachment::Servers(servers) => Some(servers.as_slice()),
            _ => None,
        });
        servers.unwrap_or_default()
    }

    /// What policies leave the agent; none if they bound nothing.
    pub fn bounds(&self) -> Option<&Bounds> {
        self.0.iter().find_map(|attachment| match attachment {
            Attachment::Bounds(bounds) => Some(bounds),
            _ => None,
        })
    }

    /// True if a value among them must not leave the machine in clear text.
    pub fn are_private(&self) -> bool {
        let is_value = |secret: &AttachedSecret| matches!(secret.source, SecretSource::Value(_));
        self.bearer().is_some() || self.secrets().any(|(_, secret)| is_value(secret))
    }

    /// Bytes of names and values.
    pub fn bytes(&self) -> usize {
        let secret = |(name, secret): (&str, &AttachedSecret)| {
            name.len()
                + match &secret.source {
                    SecretSource::Value(value) => value.expose().len(),
                    SecretSource::Environment { variable } => variable.len(),
                    SecretSource::File { path, member } => path.len() + member.as_deref().map_or(0, str::len),
                }
        };
        let secrets: usize = self.secrets().map(secret).sum();
        let models: usize = self
            .models()
            .iter()
            .map(|model| model.name.len() + model.spec.len() + model.asked.iter().map(String::len).sum::<usize>())
            .sum();
        let servers: usize = self.servers().iter().map(|server| server.name.len() + server.spec.len()).sum();
        let words = |bounds: &Bounds| bounds.filesystem.iter().chain(&bounds.network).flatten().map(String::len).sum();
        let bounds: usize = self.bounds().map_or(0, words);
        secrets + models + servers + bounds + self.bearer().map_or(0, |bearer| bearer.expose().len())
    }
}

/// Counts, and no values.
impl fmt::Debug for Attachments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bearers = usize::from(self.bearer().is_some());
        let (secrets, models, servers) = (self.secrets().count(), self.models().len(), self.servers().len());
        write!(f, "Attachments({secrets} secrets, {bearers} bearers, {models} models, {servers} servers)")
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn value(text: &str, declared: bool) -> AttachedSecret {
        AttachedSecret { source: SecretSource::Value(SecretText::new(text)), declared }
    }

    fn all() -> Attachments {
        let variable = SecretSource::Environment { variable: "ATLAS_SECRET_B".to_owned() };
        let secrets = BTreeMap::from([
            ("a".to_owned(), value("canary", true)),
            ("b".to_owned(), AttachedSecret { source: variable, declared: true }),
        ]);
        let model = AttachedModel { name: "fast".to_owned(), spec: (*b"{}").into(), asked: Vec::new() };
        Attachments::new([
            Attachment::Secrets(secrets),
            Attachment::Bearer(SecretText::new("canary")),
            Attachment::Models(vec![model]),
            Attachment::Servers(vec![AttachedServer { name: "github".to_owned(), spec: (*b"{}").into(), login: true }]),
        ])
    }

    #[test]
    fn debug_shows_no_value() {
        expect!["Attachments(2 secrets, 1 bearers, 1 models, 1 servers)"].assert_eq(&format!("{:?}", all()));
        expect!["Attachments(0 secrets, 0 bearers, 0 models, 0 servers)"]
            .assert_eq(&format!("{:?}", Attachments::default()));
    }

    #[test]
    fn each_kind_is_found() {
        let all = all();
        assert!(all.secret("a").is_some_and(|secret| *secret == value("canary", true)));
        assert!(all.secret("a").is_some_and(|secret| *secret != value("canarx", true)));
        assert!(all.secret("c").is_none());
        assert!(all.bearer().is_some_and(|bearer| bearer.expose() == "canary"));
        assert_eq!(all.models().iter().map(|model| model.name.as_str()).collect::<Vec<_>>(), ["fast"]);
        assert_eq!(all.servers().iter().map(|server| server.name.as_str()).collect::<Vec<_>>(), ["github"]);
        let texts = ["a", "canary", "bATLAS_SECRET_B", "fast{}", "canary", "github{}"];
        assert_eq!(all.bytes(), texts.map(str::len).iter().sum::<usize>());
    }

    #[test]
    fn the_later_one_of_a_kind_counts() {
        let bearer = |text| Attachment::Bearer(SecretText::new(text));
        let both = Attachments::new([bearer("one"), bearer("two")]);
        assert_eq!(both.iter().count(), 1);
        assert!(both.bearer().is_some_and(|bearer| bearer.expose() == "two"));
    }

    #[test]
    fn only_values_are_private() {
        assert!(all().are_private());
        let variable = SecretSource::Environment { variable: "V".to_owned() };
        let secret = AttachedSecret { source: variable, declared: true };
        let secrets = Attachment::Secrets(BTreeMap::from([("b".to_owned(), secret)]));
        assert!(!Attachments::new([secrets, Attachment::Models(Vec::new())]).are_private());
    }

    #[test]
    fn bounds_leave_what_the_contract_permits_within_them() {
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let bounds = |files: &str, network: &str| Bounds {
            filesystem: Some(words(files)),
            network: Some(words(network)),
            ..Bounds::default()
        };
        let left = |bounds: &Bounds, files: &str, network: &str| {
            (bounds.files_left(&words(files)).join(" "), bounds.network_left(&words(network)).join(" "))
        };
        let check = |bounds: &Bounds, files: &str, network: &str, expected: (&str, &str)| {
            let (files, network) = left(bounds, files, network);
            assert_eq!((files.as_str(), network.as_str()), expected, "{bounds:?}");
        };
        check(&Bounds::default(), "read write", "outbound", ("read write", "outbound"));
        check(&bounds("read", ""), "Read write", "outbound api.example.com", ("Read", ""));
        check(&bounds("", "outbound"), "read", "inbound api.example.com", ("", "api.example.com"));
        check(&bounds("read write", "inbound outbound"), "", "", ("", ""));
        check(&bounds("read", "inbound"), "read", "inbound outbound api.example.com", ("read", ""));
        let first = Bounds { memory_mb: Some(64), ..bounds("read write", "outbound") };
        let second = Bounds { memory_mb: Some(32), cpu_seconds: Some(5), network: None, ..bounds("read", "") };
        let both = first.and(second);
        assert_eq!(both, Bounds { memory_mb: Some(32), cpu_seconds: Some(5), ..bounds("read", "outbound") });
        assert!(Bounds::default().is_empty() && !both.is_empty());
    }
}
