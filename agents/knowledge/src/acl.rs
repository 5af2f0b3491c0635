//! Which domains an agent reads and writes (compatibility §23.3).

use std::collections::BTreeSet;
use std::fmt;

use atlas_contract::yaml::{self, Budget, YamlError};
use atlas_contract::{Knowledge, python};
use serde_json::Value;

/// The word for all domains.
const ANY: &str = "*";

/// The access list of an agent: the lists of its contract, and the domains that the operator protects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acl {
    pub read_domains: Vec<String>,
    pub write_domains: Vec<String>,
    pub protected: ProtectedDomains,
}

/// Domains that `*` does not open for writing; an agent must name them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProtectedDomains(pub BTreeSet<String>);

/// Why an agent may do something in a domain, or may not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The contract names the domain.
    Named,
    /// The contract says `*`.
    Any,
    /// The contract says `*`, which does not count for a protected domain.
    Protected,
    /// The contract does not name it.
    NotNamed,
}

impl Reason {
    /// Whether it is one that allows it.
    pub fn is_allowed(self) -> bool {
        matches!(self, Self::Named | Self::Any)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Named => "its contract names it",
            Self::Any => "its contract says *",
            Self::Protected => "it is protected, and the contract says * without naming it",
            Self::NotNamed => "its contract does not name it",
        })
    }
}

/// Why a text is not a knowledge policy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProtectedError {
    #[error("the knowledge policy is not YAML")]
    Yaml(#[source] YamlError),
    #[error("a knowledge policy is a mapping, not {got}")]
    NotAMapping {
        /// The Python name of its type.
        got: &'static str,
    },
    #[error("protected_domains is not a list of text")]
    NotAList,
}

impl Acl {
    /// The access list of an agent with this contract; none if the contract does not enable knowledge.
    pub fn of(knowledge: &Knowledge, protected: &ProtectedDomains) -> Option<Self> {
        let Knowledge { enabled, read_domains, write_domains } = knowledge;
        enabled.then(|| Self {
            read_domains: read_domains.clone(),
            write_domains: write_domains.clone(),
            protected: protected.clone(),
        })
    }

    /// Reads and writes everything.
    pub fn everything() -> Self {
        let any = || vec![ANY.to_owned()];
        Self { read_domains: any(), write_domains: any(), protected: ProtectedDomains::default() }
    }

    /// Whether the agent reads every domain.
    pub fn reads_all(&self) -> bool {
        self.read_domains.iter().any(|allowed| allowed == ANY)
    }

    /// Whether the agent reads a domain.
    pub fn reads(&self, domain: &str) -> bool {
        self.reading(domain).is_allowed()
    }

    /// Whether the agent writes a domain. A domain that is listed may always be written, also one that is protected and listed beside `*`.
    pub fn writes(&self, domain: &str) -> bool {
        self.writing(domain).is_allowed()
    }

    /// Why the agent reads a domain, or does not.
    pub fn reading(&self, domain: &str) -> Reason {
        let named = self.read_domains.iter().any(|allowed| allowed == domain && domain != ANY);
        match (named, self.reads_all()) {
            (true, _) => Reason::Named,
            (false, true) => Reason::Any,
            (false, false) => Reason::NotNamed,
        }
    }

    /// Why the agent writes a domain, or does not.
    pub fn writing(&self, domain: &str) -> Reason {
        let named = self.write_domains.iter().any(|allowed| allowed == domain && domain != ANY);
        let any = self.write_domains.iter().any(|allowed| allowed == ANY);
        match (named, any) {
            (true, _) => Reason::Named,
            (false, true) if self.protected.0.contains(domain) => Reason::Protected,
            (false, true) => Reason::Any,
            (false, false) => Reason::NotNamed,
        }
    }
}

impl ProtectedDomains {
    /// Reads the knowledge policy of an operator: a mapping with `protected_domains`. An empty file protects nothing.
    pub fn parse(text: &[u8]) -> Result<Self, ProtectedError> {
        let document = yaml::load_strictly(text, Budget::default()).map_err(ProtectedError::Yaml)?;
        let members = match &document {
            Value::Null => return Ok(Self::default()),
            Value::Object(members) => members,
            other => return Err(ProtectedError::NotAMapping { got: python::type_name(other) }),
        };
        let domains = match members.get("protected_domains") {
            None | Some(Value::Null) => return Ok(Self::default()),
            Some(value) => value.as_array().ok_or(ProtectedError::NotAList)?,
        };
        let text = |domain: &Value| domain.as_str().map(str::to_owned).ok_or(ProtectedError::NotAList);
        domains.iter().map(text).collect::<Result<_, _>>().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn texts(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    /// What an agent may do in the domain `physics`, which is protected.
    #[track_caller]
    fn check(read: &[&str], write: &[&str], expected: (bool, bool)) {
        let protected = ProtectedDomains(BTreeSet::from(["physics".to_owned()]));
        let acl = Acl { read_domains: texts(read), write_domains: texts(write), protected };
        assert_eq!((acl.reads("physics"), acl.writes("physics")), expected);
        let (reading, writing) = (acl.reading("physics"), acl.writing("physics"));
        assert_eq!((reading.is_allowed(), writing.is_allowed()), expected, "{reading}; {writing}");
    }

    #[test]
    fn protection_counts_for_writing_alone() {
        check(&["*"], &["*"], (true, false));
        check(&["*"], &[], (true, false));
        check(&["*"], &["physics"], (true, true));
        check(&["*"], &["*", "physics"], (true, true));
        check(&["physics"], &["ai"], (true, false));
        check(&[], &["physics"], (false, true));
        check(&["phys", "Physics"], &["phys*"], (false, false));
    }

    #[test]
    fn unprotected_domains_are_open_to_the_star() {
        let acl = Acl { write_domains: texts(&["*"]), ..Acl::everything() };
        assert!(acl.writes("ai") && acl.reads("ai"));
    }

    #[test]
    fn knowledge_must_be_enabled() {
        let mut knowledge = Knowledge { enabled: false, read_domains: texts(&["a"]), write_domains: texts(&["b"]) };
        assert_eq!(Acl::of(&knowledge, &ProtectedDomains::default()), None);
        knowledge.enabled = true;
        let acl = Acl::of(&knowledge, &ProtectedDomains::default()).expect("enabled");
        assert_eq!((acl.reads("a"), acl.reads("b"), acl.writes("b")), (true, false, true));
    }

    #[test]
    fn policies_are_read_or_refused() {
        let parsed = |text: &str| {
            let parsed = ProtectedDomains::parse(text.as_bytes()).map_err(|error| error.to_string());
            parsed.map(|protected| protected.0.into_iter().collect::<Vec<_>>().join(","))
        };
        for (text, domains) in [("", ""), ("protected_domains:", ""), ("protected_domains: [b, a]\nread: x", "a,b")] {
            assert_eq!(parsed(text), Ok(domains.to_owned()), "{text}");
        }
        for (text, error) in [
            ("[a]", "a knowledge policy is a mapping, not list"),
            ("protected_domains: a", "protected_domains is not a list of text"),
            ("protected_domains: [1]", "protected_domains is not a list of text"),
            ("a: [", "the knowledge policy is not YAML"),
        ] {
            assert_eq!(parsed(text), Err(error.to_owned()), "{text}");
        }
        assert!(ProtectedDomains::parse(&vec![b'a'; 2 << 20]).is_err());
    }

    proptest! {
        #[test]
        fn nothing_protected_is_written_without_being_named(
            write in proptest::collection::vec("[ab*]", 0..3), protected in proptest::collection::btree_set("[ab]", 0..2), domain in "[ab]",
        ) {
            let acl = Acl { write_domains: write.clone(), protected: ProtectedDomains(protected.clone()), ..Acl::everything() };
            if acl.writes(&domain) && !write.contains(&domain) {
                prop_assert!(!protected.contains(&domain));
            }
        }
    }
}
