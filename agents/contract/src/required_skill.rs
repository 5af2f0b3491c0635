//! Entries of `requires.skills`: a name, or a name with the versions that will do.

use std::fmt;

use atlas_types::Version;

use crate::requirement::Requirement;

/// One entry: `NAME`, or `NAME@REQUIREMENT` in the grammar of [`Requirement`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequiredSkill<'a> {
    /// The name, under which the agent calls it.
    pub name: &'a str,
    version: Requirement,
    text: &'a str,
}

impl<'a> RequiredSkill<'a> {
    /// Reads an entry. One whose last part is not a requirement is a name as a whole.
    pub fn of(entry: &'a str) -> Self {
        let any = Self { name: entry, version: Requirement::Any, text: "" };
        let Some((name, text)) = entry.rsplit_once('@').filter(|(name, _)| !name.is_empty()) else { return any };
        Requirement::parse(text).map_or(any, |version| Self { name, version, text })
    }

    /// Whether a version will do.
    pub fn matches(&self, version: Version) -> bool {
        self.version.matches(&version)
    }
}

impl fmt::Display for RequiredSkill<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)?;
        if self.text.is_empty() { Ok(()) } else { write!(f, "@{}", self.text) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_be_followed_by_a_requirement() {
        let version = |text: &str| text.parse().expect("a version");
        for (entry, name, fits, unfit) in [
            ("words", "words", "0.0.1", None),
            ("words@^1.2.0", "words", "1.9.0", Some("2.0.0")),
            ("words@1.0.0", "words", "1.0.0", Some("1.0.1")),
            ("a@b@~1.2.0", "a@b", "1.2.9", Some("1.3.0")),
            ("words@*", "words", "3.0.0", None),
            // Not a requirement.
            ("words@latest", "words@latest", "1.0.0", None),
            ("@1.0.0", "@1.0.0", "2.0.0", None),
            ("", "", "1.0.0", None),
        ] {
            let skill = RequiredSkill::of(entry);
            assert_eq!((skill.name, skill.to_string().as_str()), (name, entry));
            assert!(skill.matches(version(fits)), "{entry}");
            assert!(unfit.is_none_or(|unfit| !skill.matches(version(unfit))), "{entry}");
        }
    }
}
