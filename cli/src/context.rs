//! What every command has: where the cluster is, how to print, and the two streams.

use std::io::{IsTerminal, Write};

use crate::arguments::Arguments;
use crate::client::Client;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Form, Shown, visible};

/// The surroundings of one command.
pub(crate) struct Context {
    /// The cluster.
    pub(crate) server: String,
    /// How results are printed.
    pub(crate) form: Form,
    colour: bool,
}

impl Context {
    pub(crate) fn new(arguments: &Arguments) -> Self {
        let forbidden = arguments.no_color || std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self {
            server: arguments.server.clone(),
            form: arguments.output,
            colour: !forbidden && std::io::stderr().is_terminal(),
        }
    }

    /// The HTTP client of the cluster.
    pub(crate) fn client(&self) -> Result<Client, Failure> {
        Client::new(&self.server)
    }

    /// Prints a result to stdout in the wanted form.
    pub(crate) fn show(&self, shown: &Shown) -> Result<(), Failure> {
        self.print(&self.form.render(shown))
    }

    /// Prints text to stdout; a reader that went away (`| head`) ends the program in silence.
    pub(crate) fn print(&self, text: &str) -> Result<(), Failure> {
        let mut stdout = std::io::stdout().lock();
        let text = if stdout.is_terminal() { visible(text) } else { text.into() };
        let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
        match written {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => std::process::exit(0),
            Err(error) => Err(Failure::new("E0103", Exit::Short, format!("the result could not be written: {error}"))),
        }
    }

    /// Tells people something beside the result.
    pub(crate) fn note(&self, line: &str) {
        self.tell("", line, "");
    }

    /// A command to try next, dimmed on a terminal.
    pub(crate) fn next(&self, line: &str) {
        self.tell("\u{1b}[2m", line, "");
    }

    /// Prints an error, its head in colour.
    pub(crate) fn report(&self, failure: &Failure) {
        let text = failure.to_string();
        let (head, rest) = text.split_at(text.find(':').unwrap_or(text.len()));
        self.tell("\u{1b}[1;31m", head, rest);
    }

    /// One or more lines on stderr: `head` in colour where there is any, `rest` not.
    fn tell(&self, colour: &str, head: &str, rest: &str) {
        let mut stderr = std::io::stderr().lock();
        let terminal = stderr.is_terminal();
        let shown = |text| if terminal { visible(text) } else { std::borrow::Cow::Borrowed(text) };
        let (on, off) = if self.colour && !colour.is_empty() { (colour, "\u{1b}[0m") } else { ("", "") };
        // A terminal that went away must not fail the command.
        let _ = writeln!(stderr, "{on}{}{off}{}", shown(head), shown(rest));
    }
}
