//! Ids: every id is a type of its own, so that no bare string or number crosses a function boundary as one.

use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, LazyLock};

/// Why a text is not an id of the wanted kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// The text is empty or longer than the kind allows.
    #[error("{} {kind} has 1 to {max} bytes, this one has {len}", article(kind))]
    Length {
        /// Which kind of id was read.
        kind: &'static str,
        /// Bytes found.
        len: usize,
        /// Most bytes allowed.
        max: usize,
    },
    /// A character that is refused because ids become paths, headers and log fields.
    #[error("{} {kind} must not contain {found:?}", article(kind))]
    Character {
        /// Which kind of id was read.
        kind: &'static str,
        /// The text that is refused.
        found: String,
    },
    /// The text is not of the form `prefix-hex`.
    #[error("\"{text}\" is not a {kind}")]
    Form {
        /// Which kind of id was read.
        kind: &'static str,
        text: String,
    },
}

/// What stands before the name of a kind of id.
fn article(kind: &str) -> &'static str {
    if kind.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" }
}

/// What a name must not hold that may become a path: control characters, `/`, `\` and `..`.
fn leads_elsewhere(text: &str) -> Option<String> {
    let refused = |c: char| c.is_control() || c == '/' || c == '\\';
    let found = text.chars().find(|&c| refused(c)).map(String::from);
    found.or_else(|| text.contains("..").then(|| "..".to_owned()))
}

/// What the name of an agent must not hold. It never becomes the path of a file; `..` between slashes would change that of a URL.
fn refused_of_agent(text: &str) -> Option<String> {
    let control = text.chars().find(|c| c.is_control()).map(String::from);
    control.or_else(|| text.split(['/', '\\']).any(|part| part == "..").then(|| "..".to_owned()))
}

/// What the name of a channel must not hold. It becomes no path.
fn refused_of_channel(text: &str) -> Option<String> {
    text.chars().find(|c| c.is_control()).map(String::from)
}

/// What the word of a kind must not hold: anything but lower-case letters and `-`.
fn refused_of_kind(text: &str) -> Option<String> {
    text.chars().find(|&c| !c.is_ascii_lowercase() && c != '-').map(String::from)
}

macro_rules! name_id {
    ($(#[$doc:meta])* $name:ident, $kind:literal, $max:literal, $refused:path) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Most bytes of such a name.
            pub const LEN_MAX: usize = $max;

            /// Checks length and characters.
            pub fn new(text: &str) -> Result<Self, IdError> {
                if text.is_empty() || text.len() > $max {
                    return Err(IdError::Length { kind: $kind, len: text.len(), max: $max });
                }
                if let Some(found) = $refused(text) {
                    return Err(IdError::Character { kind: $kind, found });
                }
                Ok(Self(text.into()))
            }

            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl FromStr for $name {
            type Err = IdError;
            fn from_str(text: &str) -> Result<Self, IdError> {
                Self::new(text)
            }
        }
    };
}

name_id!(
    /// A tenant's namespace; first in every key and index. `default` when nobody names one.
    Namespace, "namespace", 63, leads_elsewhere
);
name_id!(
    /// The name of an agent, as in its contract.
    AgentName, "agent name", 255, refused_of_agent
);
name_id!(
    /// The name of a worker machine, given by its operator and unique in the cluster.
    NodeId, "node name", 253, leads_elsewhere
);
name_id!(
    /// Who asked: a person, a machine or the cluster itself.
    Principal, "principal", 255, leads_elsewhere
);
name_id!(
    /// The caller's own name for one request (its idempotency key); a repeat gets the first answer again.
    RequestId, "request id", 255, leads_elsewhere
);
name_id!(
    /// The sender's name for one message to a job; a job gets a message of one name once.
    MessageId, "message id", 128, leads_elsewhere
);

name_id!(
    /// What a message to a job is about, as its sender says: a job can wait for the next one of a channel.
    Channel, "channel", 128, refused_of_channel
);

name_id!(
    /// A kind of object, such as `webhook`.
    ObjectKind, "object kind", 63, refused_of_kind
);
name_id!(
    /// The name of an object, unique among those of its namespace and kind.
    ObjectName, "object name", 253, leads_elsewhere
);

impl AgentName {
    /// Whether programs of every feature level can read it: those below 5 refuse `/`, `\` and `..` in it.
    pub fn is_plain(&self) -> bool {
        leads_elsewhere(&self.0).is_none()
    }
}

/// The name of [`Namespace::system`].
const SYSTEM: &str = "atlas-system";

impl Namespace {
    /// The namespace of callers that name none.
    pub fn default_namespace() -> Self {
        static DEFAULT: LazyLock<Namespace> = LazyLock::new(|| Namespace("default".into()));
        DEFAULT.clone()
    }

    /// The namespace of the agents that run skills. Their names follow from the contents of the packages, so that namespaces share them.
    pub fn of_skills() -> Self {
        Self(Self::SKILLS.into())
    }

    /// Whether it is [`Self::of_skills`].
    pub fn is_of_skills(&self) -> bool {
        *self.0 == *Self::SKILLS
    }

    const SKILLS: &str = "atlas-skills";

    /// The namespace of the jobs in which the cluster calls orchestrators.
    pub fn system() -> Self {
        Self(SYSTEM.into())
    }

    /// Whether it is [`Self::system`].
    pub fn is_system(&self) -> bool {
        &*self.0 == SYSTEM
    }
}

/// The first character of the names that controllers give requests.
const GENERATED: char = '~';

impl RequestId {
    /// A name that a controller gives a request which came without one, so that it can be repeated.
    pub fn generated(random: u128) -> Self {
        Self(format!("{GENERATED}{random:032x}").into())
    }

    /// Whether it has the form of [`Self::generated`]: remembered only as long as the controller may repeat the request.
    pub fn is_generated(&self) -> bool {
        self.0.starts_with(GENERATED)
    }
}

impl Principal {
    /// The principal of everything that comes in while authentication is off (`dev` on loopback).
    pub fn local() -> Self {
        Self("local".into())
    }

    /// Who sends a request without a token while authentication is on.
    pub fn anonymous() -> Self {
        Self("anonymous".into())
    }

    /// The cluster itself: commands that its leader's duties plan.
    pub fn cluster() -> Self {
        Self("cluster".into())
    }
}

macro_rules! number_id {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub $inner);

        impl $name {
            /// The number after this one.
            #[must_use]
            pub fn next(self) -> Self {
                Self(self.0 + 1)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0)
            }
        }
    };
}

number_id!(
    /// How many entries a state has applied.
    Seq(u64)
);
number_id!(
    /// The number of a state event: gapless, from 1.
    EventSeq(u64)
);
number_id!(
    /// Outdates every older lease: `grant_seq` of the state, one more a grant.
    FencingToken(u64)
);
number_id!(
    /// A node's incarnation: one more for each new boot id; a reconnect is not a new epoch.
    NodeEpoch(u64)
);
number_id!(
    /// A lease-long try at a job, numbered from 1.
    Attempt(u32)
);
number_id!(
    /// A controller's number in the Raft group.
    MemberId(u64)
);

macro_rules! hex_id {
    ($(#[$doc:meta])* $name:ident, $kind:literal, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u64);

        impl $name {
            /// What a printed id starts with.
            pub const PREFIX: &'static str = $prefix;
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}{:016x}", Self::PREFIX, self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{self}")
            }
        }

        impl FromStr for $name {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                let wrong = || IdError::Form { kind: $kind, text: text.chars().take(64).collect() };
                let hex = text.strip_prefix(Self::PREFIX).ok_or_else(wrong)?;
                let lower = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
                if hex.len() != 16 || !hex.bytes().all(lower) {
                    return Err(wrong());
                }
                u64::from_str_radix(hex, 16).map(Self).map_err(|_| wrong())
            }
        }
    };
}

hex_id!(
    /// One request to run one agent version on one input. Prints as `job-` and 16 hex digits.
    JobId, "job id", "job-"
);
hex_id!(
    /// What a chain or a graph does once. Prints as `run-` and 16 hex digits.
    RunId, "run id", "run-"
);
hex_id!(
    /// A question of a job to people. Prints as `question-` and 16 hex digits.
    QuestionId, "question id", "question-"
);

impl RunId {
    /// The id as clients see it (compatibility §12.4).
    pub fn shown(self) -> String {
        format!("{}{:016x}", Self::SHOWN_PREFIX, self.0)
    }

    /// What [`Self::shown`] starts with.
    pub const SHOWN_PREFIX: &str = "chain-";

    /// Reads [`Self::shown`].
    pub fn of_shown(text: &str) -> Option<Self> {
        let digits = text.strip_prefix(Self::SHOWN_PREFIX)?;
        format!("{}{digits}", Self::PREFIX).parse().ok()
    }
}

impl JobId {
    /// The id of the job that follows `self`, which failed, as retry number `n`.
    ///
    /// Derived rather than drawn, so that `apply` can make one without randomness (splitmix64 over id and number).
    #[must_use]
    pub fn derive(self, n: u64) -> Self {
        let mut z = self.0 ^ (n.wrapping_add(1)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        Self(z ^ (z >> 31))
    }
}

impl JobId {
    /// Its first eight digits, where a part is enough: in the id that agents of a team know each other by.
    pub fn short(self) -> String {
        format!("{:08x}", self.0 >> 32)
    }
}

impl QuestionId {
    /// Its first eight digits.
    pub fn short(self) -> String {
        format!("{:08x}", self.0 >> 32)
    }
}

/// Random per worker process: tells a restart from a reconnect.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BootId(pub u128);

impl fmt::Display for BootId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "boot-{:032x}", self.0)
    }
}

impl fmt::Debug for BootId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// The SHA-256 of an artifact: a package or a payload too large to be inline. Prints as `sha256:` and 64 hex digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// What a printed digest starts with.
    pub const PREFIX: &'static str = "sha256:";

    /// The 64 hex digits alone, as used in file names.
    pub fn hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", Self::PREFIX, self.hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", Self::PREFIX, &self.hex()[..8])
    }
}

impl FromStr for Digest {
    type Err = IdError;

    /// Reads 64 lower-case hex digits, with or without the prefix.
    fn from_str(text: &str) -> Result<Self, IdError> {
        let wrong = || IdError::Form { kind: "digest", text: text.chars().take(80).collect() };
        let hex = text.strip_prefix(Self::PREFIX).unwrap_or(text);
        if hex.len() != 64 || !hex.is_ascii() {
            return Err(wrong());
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(hex.as_bytes().chunks(2)) {
            let pair = std::str::from_utf8(pair).map_err(|_| wrong())?;
            *byte = u8::from_str_radix(pair, 16).map_err(|_| wrong())?;
        }
        Ok(Self(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn job_ids_read_back_as_printed() {
        let id = JobId(0x4f3a_09c1_d27b_e685);
        assert_eq!(id.to_string(), "job-4f3a09c1d27be685");
        assert_eq!(id.to_string().parse(), Ok(id));
        let run = RunId(0xaa);
        assert_eq!((run.to_string().as_str(), run.to_string().parse()), ("run-00000000000000aa", Ok(run)));
        assert!(id.to_string().parse::<RunId>().is_err());
    }

    #[test]
    fn hostile_ids_are_refused() {
        for text in ["", "job-", "job-4F3a09c1d27be685", "job-+f3a09c1d27be685", "job-4f3a09c1d27be6850", "x"] {
            assert!(text.parse::<JobId>().is_err(), "{text:?}");
        }
        for text in ["", "a/b", "a\\b", "..", "a\nb"] {
            assert!(NodeId::new(text).is_err(), "{text:?}");
        }
        for text in ["", "..", "../a", "a/..", "a\\..\\b", "a\nb"] {
            assert!(AgentName::new(text).is_err(), "{text:?}");
        }
        for (text, plain) in [("a b", true), ("a b/c", false), ("a\\b", false), ("a..b", false)] {
            assert_eq!(AgentName::new(text).map(|name| name.is_plain()), Ok(plain), "{text:?}");
        }
        assert!(AgentName::new(&"x".repeat(256)).is_err());
    }

    #[test]
    fn digests_read_back_as_printed() {
        let digest = Digest([0xab; 32]);
        assert_eq!(digest.to_string().parse(), Ok(digest));
        assert_eq!(digest.hex().parse(), Ok(digest));
        assert!("sha256:é".parse::<Digest>().is_err());
    }

    #[test]
    fn derived_ids_differ() {
        let id = JobId(7);
        assert_ne!(id.derive(1), id.derive(2));
        assert_ne!(id.derive(1), id);
    }
}
