//! Agent versions: three numbers, nothing else (compatibility §2.1).

use std::fmt;
use std::str::FromStr;

/// A version of an agent, `major.minor.patch`; ordered by its numbers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// Raised by a change that breaks callers.
    pub major: u64,
    /// Raised by an addition.
    pub minor: u64,
    /// Raised by a repair.
    pub patch: u64,
}

/// Why a text is not a version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is not a version of the form 1.2.3")]
pub struct VersionError(pub String);

impl FromStr for Version {
    type Err = VersionError;

    fn from_str(text: &str) -> Result<Self, VersionError> {
        let wrong = || VersionError(text.chars().take(64).collect());
        let number = |part: Option<&str>| -> Result<u64, VersionError> {
            let digits = part.filter(|p| !p.is_empty() && p.bytes().all(|b| b.is_ascii_digit())).ok_or_else(wrong)?;
            digits.parse().map_err(|_| wrong())
        };
        let mut parts = text.split('.');
        let version = Self { major: number(parts.next())?, minor: number(parts.next())?, patch: number(parts.next())? };
        if parts.next().is_some() {
            return Err(wrong());
        }
        Ok(version)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

impl fmt::Debug for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_three_plain_numbers_are_a_version() {
        assert_eq!("1.20.3".parse::<Version>().map(|v| v.to_string()), Ok("1.20.3".to_owned()));
        for text in ["", "1", "1.0", "1.0.0.0", "v1.0.0", "1.0.0-a", "1..0", "+1.0.0", "99999999999999999999.0.0"] {
            assert!(text.parse::<Version>().is_err(), "{text:?}");
        }
    }
}
