//! Questions to the user at the terminal.

use std::io::{BufRead, IsTerminal};

use crate::failure::Failure;

/// Asks for confirmation; without a terminal the answer is no.
pub(crate) fn agreed(question: &str) -> Result<bool, Failure> {
    let answer = answer(question)?;
    Ok(answer.is_some_and(|line| ["y", "yes"].contains(&line.to_lowercase().as_str())))
}

/// Asks the user; none if stdin is not a terminal.
pub(crate) fn answer(question: &str) -> Result<Option<String>, Failure> {
    if !std::io::stdin().is_terminal() {
        return Ok(None);
    }
    #[expect(clippy::print_stderr, reason = "a question to the person at the terminal")]
    {
        eprint!("{question}");
    }
    let mut line = String::new();
    let read = std::io::stdin().lock().read_line(&mut line);
    read.map_err(|error| Failure::usage(format!("could not read the answer: {error}")))?;
    Ok(Some(line.trim().to_owned()))
}
