//! Version requirements: one small grammar for lookups, dependencies and installation.
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

use crate::Version;

/// Which versions will do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Requirement {
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

/// A text that is not a requirement.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is not a version requirement; use 1.2.3, ^1.2.3, ~1.2.3, >=1.2.3, >1.2.3 or *")]
pub struct RequirementError(pub String);

impl Requirement {
    /// Reads a requirement.
    ///
    /// ```
    /// # use atlas_types::requirement::Requirement;
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

    /// Whether a published version will do, whatever its text: an exact one is compared as text, all else by [`precedence`].
    ///
    /// ```
    /// # use atlas_types::requirement::Requirement;
    /// let requirement = Requirement::parse(">=1.0.0").expect("a requirement");
    /// assert!(requirement.matches_published("1.0.0-rc1") && !requirement.matches_published("nightly"));
    /// ```
    pub fn matches_published(&self, version: &str) -> bool {
        let numbers = precedence(version);
        let from = |least: Version| numbers[..] >= [least.major, least.minor, least.patch][..];
        let below = |next: [u64; 3]| numbers[..] < next[..];
        match *self {
            Self::Any => true,
            Self::Exact(wanted) => version == wanted.to_string(),
            Self::AtLeast(least) => from(least),
            Self::After(before) => numbers[..] > [before.major, before.minor, before.patch][..],
            Self::Compatible(least) => from(least) && below(next_breaking(least)),
            Self::Patches(least) => from(least) && below([least.major, least.minor.saturating_add(1), 0]),
        }
    }

    /// The highest of the published versions that will do; of equal ones the first.
    pub fn latest_published<'v>(&self, versions: impl IntoIterator<Item = &'v str>) -> Option<&'v str> {
        let fitting = versions.into_iter().filter(|version| self.matches_published(version));
        fitting.reduce(|highest, version| if precedence(version) > precedence(highest) { version } else { highest })
    }
}

/// The numbers by which published versions are ordered: what follows the first `-` or `+` does not count, and a
/// version of anything but numbers is lower than all others.
pub fn precedence(version: &str) -> Vec<u64> {
    let numbers = version.split(['-', '+']).next().unwrap_or_default().split('.').map(str::parse);
    numbers.collect::<Result<_, _>>().unwrap_or_else(|_| vec![0, 0, 0])
}

/// Whether nothing breaks between the two: every number up to the first that is not zero is the same.
fn compatible(least: Version, version: Version) -> bool {
    [version.major, version.minor, version.patch] < next_breaking(least)
}

/// The version before which nothing breaks that works with `least`: the number behind the first that is not zero starts again.
fn next_breaking(least: Version) -> [u64; 3] {
    match (least.major, least.minor) {
        (0, 0) => [0, 0, least.patch.saturating_add(1)],
        (0, minor) => [0, minor.saturating_add(1), 0],
        (major, _) => [major.saturating_add(1), 0, 0],
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
    fn published_versions_are_ordered_by_their_numbers() {
        for (requirement, yes, no) in [
            ("*", vec!["1.0.0", "nightly"], vec![]),
            ("1.0.0", vec!["1.0.0"], vec!["1.0.0-rc1", "01.0.0", "1.0"]),
            (">=1.0.0", vec!["1.0.0-rc1", "1.0.0+build", "1.0.0.1", "2"], vec!["1.0", "0.9.9", "x.9.9"]),
            (">1.0.0", vec!["1.0.1-rc1", "1.0.0.1"], vec!["1.0.0+b"]),
            ("^1.2.3", vec!["1.9.0-a"], vec!["2.0.0-a", "1.2.3x"]),
            ("^0.0.3", vec!["0.0.3-a"], vec!["0.0.4"]),
            ("~1.2.3", vec!["1.2.9+b"], vec!["1.3.0-a"]),
        ] {
            let parsed = Requirement::parse(requirement).expect("a requirement");
            assert!(yes.iter().all(|text| parsed.matches_published(text)), "{requirement}");
            assert!(!no.iter().any(|text| parsed.matches_published(text)), "{requirement}");
        }
        let latest = |texts: &[&'static str]| Requirement::Any.latest_published(texts.iter().copied());
        assert_eq!(latest(&["1.2.0", "1.10.0-rc1", "1.9.0", "latest"]), Some("1.10.0-rc1"));
        assert_eq!(latest(&["1.0.0-rc1", "1.0.0"]), Some("1.0.0-rc1"));
        assert_eq!(latest(&[]), None);
    }

    #[test]
    fn anything_else_is_refused() {
        for text in ["1", "1.x", "^1", "=1.0.0", "<2.0.0", "1.0.0 || 2.0.0", "latest", ">=", "1.0.0-a"] {
            assert!(Requirement::parse(text).is_err(), "{text}");
        }
    }
}
