//! Errors for users: a code, a one-line cause, the location, and a command to try.

use std::fmt;

use serde_json::{Value, json};

use crate::exit::Exit;

/// An error that ends a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The error code, such as `E1102`; none for wrong use of the command line.
    pub(crate) code: Option<String>,
    /// One line of cause.
    pub message: String,
    /// Locations as JSON pointers, each with a description.
    pub(crate) places: Vec<(String, String)>,
    /// One line with a command to try.
    pub(crate) next: Option<String>,
    /// Seconds after which a retry may work.
    pub(crate) retry_after: Option<u64>,
    /// The exit code of the program.
    pub exit: Exit,
}

impl Failure {
    pub(crate) fn new(code: &str, exit: Exit, message: impl Into<String>) -> Self {
        Self {
            code: Some(code.to_owned()),
            message: message.into(),
            places: Vec::new(),
            next: None,
            retry_after: None,
            exit,
        }
    }

    /// Wrong use of the command line.
    pub fn usage(message: impl Into<String>) -> Self {
        Self {
            code: None,
            message: message.into(),
            places: Vec::new(),
            next: None,
            retry_after: None,
            exit: Exit::Usage,
        }
    }

    /// An answer that does not follow the API: from another program, or from another version of Atlas.
    pub fn answer(what: impl fmt::Display) -> Self {
        let message = format!("the server's answer could not be read: {what}");
        Self::new("E4005", Exit::Unreachable, message).with_next("compare versions: atlasctl version")
    }

    /// The failure as JSON.
    pub(crate) fn value(&self) -> Value {
        let places = self.places.iter().map(|(place, message)| json!({"pointer": place, "message": message}));
        json!({"error": {
            "code": self.code, "message": self.message, "errors": places.collect::<Vec<_>>(), "hint": self.next,
            "retry_after_s": self.retry_after, "exit": self.exit as u8,
        }})
    }

    #[must_use]
    pub(crate) fn with_next(mut self, next: impl Into<String>) -> Self {
        self.next = Some(next.into());
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.code {
            Some(code) => write!(f, "error[{code}]: {}", self.message)?,
            None => write!(f, "error: {}", self.message)?,
        }
        let width = self.places.iter().map(|(place, _)| place.chars().count()).max().unwrap_or(0);
        for (place, sentence) in &self.places {
            write!(f, "\n  at {place:width$}    {sentence}")?;
        }
        if let Some(after) = self.retry_after {
            write!(f, "\ntry again in {after} s")?;
        }
        if let Some(next) = &self.next {
            write!(f, "\n{next}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Failure {}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn a_refusal_says_where_and_what_to_try() {
        let mut failure = Failure::new("E1102", Exit::Invalid, "the input does not fit the contract of hello 0.1.0")
            .with_next("show the contract: atlasctl agent schema hello");
        failure.places = vec![
            ("/".to_owned(), "\"name\" is required".to_owned()),
            ("/nme".to_owned(), "not allowed here; did you mean \"name\"?".to_owned()),
        ];
        expect![[r#"
            error[E1102]: the input does not fit the contract of hello 0.1.0
              at /       "name" is required
              at /nme    not allowed here; did you mean "name"?
            show the contract: atlasctl agent schema hello"#]]
        .assert_eq(&failure.to_string());
    }

    #[test]
    fn wrong_use_has_no_code() {
        expect!["error: two inputs"].assert_eq(&Failure::usage("two inputs").to_string());
    }
}
