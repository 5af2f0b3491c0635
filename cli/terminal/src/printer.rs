//! Prints an answer as it arrives.

use crate::Style;
use crate::block::Blocks;
use crate::look::{Look, paint};

/// Prints one answer after another.
///
/// All that [`Printer::push`] returned, joined, depends on the text alone and not on how it was cut into pieces. It has no sequence that
/// moves the cursor or erases anything.
///
/// ```
/// # use atlas_terminal::{Printer, Style};
/// let mut printer = Printer::new(Style::plain(20));
/// assert_eq!(printer.push("The answer is for"), "The answer is");
/// assert_eq!(printer.push("ty-two."), "");
/// assert_eq!(printer.finish(), "\nforty-two.\n");
/// ```
#[derive(Debug)]
pub struct Printer {
    style: Style,
    blocks: Blocks,
    /// Whether something was taken since the last answer ended.
    has_text: bool,
}

impl Printer {
    /// A printer with nothing printed yet. The cursor is taken to be at the start of a line.
    pub fn new(style: Style) -> Self {
        Self { style, blocks: Blocks::new(style), has_text: false }
    }

    /// Takes the next piece of the answer and returns what to write to the terminal now. It may be empty: what a mark such as `**` means is
    /// known when its partner arrives, and a word is printed when it ends.
    pub fn push(&mut self, piece: &str) -> String {
        self.has_text |= !piece.is_empty();
        if self.style.raw {
            return piece.to_owned();
        }
        self.blocks.push(piece)
    }

    /// Ends the answer: returns what was still kept, and a line end if the cursor is not at the start of a line. Raw text gets none. The
    /// printer is then as new.
    pub fn finish(&mut self) -> String {
        self.has_text = false;
        if self.style.raw {
            return String::new();
        }
        self.blocks.finish()
    }

    /// The provider started again and sends its answer from the beginning: returns the rest of what was kept, and a line that says so if
    /// there was any text. What was printed before stays. Raw text gets no such line: a caller that passes an answer on to another program
    /// keeps it until it is complete.
    pub fn reset(&mut self) -> String {
        let had_text = self.has_text;
        let mut written = self.finish();
        if had_text && !self.style.raw {
            let pieces = [("--- the model started again ---\n", Look::DIM)];
            paint(&mut written, &self.style, &[], pieces.into_iter());
        }
        written
    }
}

#[cfg(test)]
mod tests;
