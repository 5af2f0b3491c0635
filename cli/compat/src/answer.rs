//! What a verb answers: a text on stdout, or a refusal on stderr.

use std::io::Write;

/// The message on stderr of a command that exits 1.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refusal(pub(super) String);

impl Refusal {
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

/// The text for stdout, or the refusal.
pub(super) type Answer = Result<String, Refusal>;

/// Prints a result; a closed pipe (`| head`) is not a failure.
pub(super) fn print(text: &str) -> Result<(), Refusal> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Refusal::new(format!("Error: could not write the result: {error}")))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}
