//! What is accepted in a definition and is probably not what its author means.

use std::fmt;

/// One warning about a definition. All checks of definitions give their warnings in this form, so that every command shows them alike.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Warning {
    /// A file, a JSON pointer, or a file and a JSON pointer in it.
    pub path: String,
    /// What is wrong there, in lower case.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl Warning {
    /// A warning without a hint.
    pub fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { path: path.into(), message: message.into(), hint: None }
    }

    /// The warning with what to do about it.
    #[must_use]
    pub fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// An unknown key, with the most similar known one.
    pub fn unknown_key(path: impl Into<String>, meant: Option<&str>) -> Self {
        let hint = meant.map(|meant| format!("did you mean \"{meant}\"?"));
        Self { hint, ..Self::new(path, "unknown key, ignored") }
    }

    /// The warning with the file that its path is in.
    #[must_use]
    pub fn in_file(self, file: &str) -> Self {
        let path = if self.path.is_empty() { file.to_owned() } else { format!("{file} {}", self.path) };
        Self { path, ..self }
    }
}

/// `PATH: MESSAGE; HINT`
impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)?;
        match &self.hint {
            Some(hint) => write!(f, "; {hint}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_is_one_line() {
        let plain = Warning::new("", "no path");
        assert_eq!(plain.to_string(), "no path");
        let key = Warning::unknown_key("/agent/nme", Some("name")).in_file("a/agent.yaml");
        assert_eq!(key.to_string(), "a/agent.yaml /agent/nme: unknown key, ignored; did you mean \"name\"?");
        assert_eq!(plain.in_file("f").path, "f");
    }
}
