//! Errors in one line, for logs and answers.

use std::error::Error;

/// An error and its causes in one line, outermost first.
pub fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        next = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{0}")]
    struct Layer(&'static str, #[source] Option<Box<Layer>>);

    #[test]
    fn causes_follow_what_they_caused() {
        let error = Layer("no start", Some(Box::new(Layer("no log", Some(Box::new(Layer("no room", None)))))));
        assert_eq!(chain(&error), "no start: no log: no room");
        assert_eq!(chain(&Layer("alone", None)), "alone");
    }
}
