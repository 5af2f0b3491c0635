//! Version requirements: one small grammar for lookups, dependencies and installation (spec §3.3).
//!
//! | form | means |
//! |---|---|
//! | `*` or nothing | any version |
//! | `1.2.3` | exactly this one |
//! | `>=1.2.3`, `>1.2.3` | from this one on, after this one |
//! | `^1.2.3` | the first number that is not zero stays: below 2.0.0, `^0.2.3` below 0.3.0, `^0.0.3` below 0.0.4 |
//! | `~1.2.3` | below 1.3.0 |

use std::fmt;
use std::str::FromStr;

use atlas_types::Version;

/// Which versions will do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Requirement {
    /// Any.
    Any,
    /// This one.
    Exact(Version),
    /// This one or a later one.
    AtLeast(Version),
    /// A later one.
    After(Version),
    /// From this one to the next breaking one.
    Compatible(Version),
    /// From this one to the next minor one.
    Patches(Version),
}

/// A text that is no requirement.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is not a version requirement; use 1.2.3, ^1.2.3, ~1.2.3, >=1.2.3, >1.2.3 or *")]
pub struct RequirementError(pub String);

impl Requirement {
    /// Reads a requirement.
    ///
    /// ```
    /// # use atlas_contract::requirement::Requirement;
    /// let requirement = Requirement::parse("^1.2.0").expect("a requirement");
    /// let versions = ["1.2.0", "1.10.1", "2.0.0"].map(|text| text.parse().expect("a version"));
    /// assert_eq!(requirement.latest(versions).map(|version| version.to_string()).as_deref(), Some("1.10.1"));
    /// ```
    pub fn parse(text: &str) -> Result<Self, RequirementError> {
        type Form = fn(Version) -> Requirement;
        const FORMS: [(&str, Form); 4] = [
            (">=", Requirement::AtLeast),
            (">", Requirement::After),
            ("^", Requirement::Compatible),
            ("~", Requirement::Patches),
        ];
        let trimmed = text.trim();
        if matches!(trimmed, "" | "*") {
            return Ok(Self::Any);
        }
        let signed = FORMS.into_iter().find_map(|(sign, make)| Some((make, trimmed.strip_prefix(sign)?.trim_start())));
        let (make, version) = signed.unwrap_or((Self::Exact, trimmed));
        let version = version.parse().map_err(|_| RequirementError(text.chars().take(64).collect()))?;
        Ok(make(version))
    }

    /// Whether a version will do.
    pub fn matches(&self, version: &Version) -> bool {
        match *self {
            Self::Any => true,
            Self::Exact(wanted) => *version == wanted,
            Self::AtLeast(least) => *version >= least,
            Self::After(before) => *version > before,
            Self::Compatible(least) => *version >= least && compatible(least, *version),
            Self::Patches(least) => *version >= least && (version.major, version.minor) == (least.major, least.minor),
        }
    }

    /// The highest of the versions that will do.
    pub fn latest(&self, versions: impl IntoIterator<Item = Version>) -> Option<Version> {
        versions.into_iter().filter(|version| self.matches(version)).max()
    }
}

/// Whether nothing breaks between the two: every number up to the first that is not zero is the same.
fn compatible(least: Version, version: Version) -> bool {
    match (least.major, least.minor) {
        (0, 0) => version == least,
        (0, minor) => (version.major, version.minor) == (0, minor),
        (major, _) => version.major == major,
    }
}

impl FromStr for Requirement {
    type Err = RequirementError;

    fn from_str(text: &str) -> Result<Self, RequirementError> {
        Self::parse(text)
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("*"),
            Self::Exact(version) => write!(f, "{version}"),
            Self::AtLeast(version) => write!(f, ">={version}"),
            Self::After(version) => write!(f, ">{version}"),
            Self::Compatible(version) => write!(f, "^{version}"),
            Self::Patches(version) => write!(f, "~{version}"),
        }
    }
}

/// The highest of some versions.
pub fn latest(versions: impl IntoIterator<Item = Version>) -> Option<Version> {
    Requirement::Any.latest(versions)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_takes_its_versions() {
        for (requirement, yes, no) in [
            ("*", vec!["0.0.0", "9.9.9"], vec![]),
            ("1.2.3", vec!["1.2.3"], vec!["1.2.4"]),
            (">=1.0.0", vec!["1.0.0", "10.0.0"], vec!["0.9.9"]),
            ("> 1.0.0", vec!["1.0.1"], vec!["1.0.0"]),
            ("^1.2.3", vec!["1.2.3", "1.10.0"], vec!["1.2.2", "2.0.0"]),
            ("^0.2.3", vec!["0.2.9"], vec!["0.3.0", "1.0.0", "0.2.2"]),
            ("^0.0.3", vec!["0.0.3"], vec!["0.0.4"]),
            ("~1.2.3", vec!["1.2.9"], vec!["1.3.0", "1.2.2"]),
        ] {
            let parsed = Requirement::parse(requirement).expect("a requirement");
            let matches = |text: &str| parsed.matches(&text.parse().expect("a version"));
            assert!(yes.iter().all(|text| matches(text)), "{requirement}");
            assert!(!no.iter().any(|text| matches(text)), "{requirement}");
            assert_eq!(parsed.to_string(), requirement.replace(' ', ""));
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for text in ["1", "1.x", "^1", "=1.0.0", "<2.0.0", "1.0.0 || 2.0.0", "latest", ">=", "1.0.0-a"] {
            assert!(Requirement::parse(text).is_err(), "{text}");
        }
    }
}
