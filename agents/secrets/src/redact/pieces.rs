//! A text that arrives in pieces, such as the answer of a model: a value may be split between two of them.

use super::{Redactor, overlap};

/// Removes values from a text that arrives in pieces. What may be the start of a value is held back until the next piece shows it.
#[derive(Clone)]
pub struct Pieces {
    redactor: Redactor,
    /// The start of a value, perhaps.
    held: String,
}

impl Pieces {
    pub(super) fn new(redactor: Redactor) -> Self {
        Self { redactor, held: String::new() }
    }

    /// Takes a piece, and returns what can be passed on.
    ///
    /// ```
    /// use atlas_secrets::Redactor;
    /// use atlas_types::SecretText;
    ///
    /// let key = SecretText::new("s3cr3t");
    /// let mut pieces = Redactor::new([("key", &key)]).pieces();
    /// assert_eq!(pieces.push("it is s3c"), "it is ");
    /// assert_eq!(pieces.push("r3t!"), "[redacted:key]!");
    /// assert_eq!(pieces.end(), "");
    /// ```
    pub fn push(&mut self, piece: &str) -> String {
        let Some(patterns) = &self.redactor.0 else { return piece.to_owned() };
        self.held.push_str(piece);
        // A match that ends with the text may be the start of a longer one.
        let begun = patterns.all.iter().map(|(pattern, _)| overlap::ends_with_start_of(&self.held, pattern)).max();
        let mut end = self.held.len() - begun.unwrap_or(0);
        // A match that began earlier goes on into what is held back: it is held back as a whole.
        for found in patterns.automaton.find_iter(&self.held) {
            if found.start() < end && end < found.end() {
                end = found.start();
            }
        }
        let held = self.held.split_off(end);
        let passed = std::mem::replace(&mut self.held, held);
        patterns.replaced(&passed).into_owned()
    }

    /// The rest, once no further piece comes. It may be cut off within a value.
    pub fn end(&mut self) -> String {
        let held = std::mem::take(&mut self.held);
        self.redactor.fragment(&held).into_owned()
    }
}
