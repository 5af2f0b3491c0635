//! Where messages come from: a person at a terminal, or the lines of standard input.

use std::fs::OpenOptions;
use std::io::{BufRead as _, IsTerminal as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use atlas_chat::{EditedLine, LineEditor, Names, joined};

use super::turn::{Person, Said};
use crate::config::Config;
use crate::failure::Failure;

/// Longest line of standard input.
const LINE_BYTES_MAX: u64 = 1 << 20;

/// What was read.
pub(super) enum Read {
    Text(String),
    /// The line was given up.
    Interrupted,
    End,
}

/// Where messages come from.
pub(super) enum Lines {
    Terminal(Box<LineEditor>),
    /// Lines of standard input, with the beginning of a message of several lines.
    Pipe(Option<String>),
}

impl Lines {
    /// The lines of standard input. On a terminal they are edited, with completion from `names`.
    pub(super) fn open(names: &Arc<Mutex<Names>>) -> Result<Self, Failure> {
        if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
            return Ok(Self::Pipe(None));
        }
        let editor = LineEditor::new(history().as_deref(), Arc::clone(names));
        let editor = editor.map_err(|error| Failure::usage(format!("the terminal cannot be used: {error}")))?;
        Ok(Self::Terminal(Box::new(editor)))
    }

    /// Whether a person types them.
    pub(super) fn is_terminal(&self) -> bool {
        matches!(self, Self::Terminal(_))
    }

    /// The next message.
    pub(super) fn next(&mut self, prompt: &str) -> Result<Read, Failure> {
        match self {
            Self::Terminal(editor) => match editor.read(prompt) {
                Ok(EditedLine::Text(text)) => Ok(Read::Text(text)),
                Ok(EditedLine::Interrupted) => Ok(Read::Interrupted),
                Ok(EditedLine::Ended) => Ok(Read::End),
                Err(error) => Err(Failure::usage(format!("the terminal cannot be read: {error}"))),
            },
            Self::Pipe(before) => loop {
                let Some(line) = line()? else {
                    // A block that nobody closed is a message as well.
                    return Ok(before.take().map_or(Read::End, Read::Text));
                };
                if let Some(text) = joined(before, &line) {
                    return Ok(Read::Text(text));
                }
            },
        }
    }
}

/// A line of standard input, without its end.
fn line() -> Result<Option<String>, Failure> {
    let mut bytes = Vec::new();
    let mut stdin = std::io::Read::take(std::io::stdin().lock(), LINE_BYTES_MAX + 1);
    let count = stdin.read_until(b'\n', &mut bytes);
    let count = count.map_err(|error| Failure::usage(format!("could not read standard input: {error}")))?;
    if count == 0 {
        return Ok(None);
    }
    if bytes.len() as u64 > LINE_BYTES_MAX {
        return Err(Failure::usage(format!("a line of standard input is longer than {LINE_BYTES_MAX} bytes")));
    }
    let text = String::from_utf8(bytes).map_err(|_| Failure::usage("standard input is not UTF-8"))?;
    Ok(Some(text.trim_end_matches(['\n', '\r']).to_owned()))
}

/// The file with the lines that were typed before, readable by its owner only. None if it cannot be made.
fn history() -> Option<PathBuf> {
    let path = Config::path()?.parent()?.join("chat-history");
    std::fs::create_dir_all(path.parent()?).ok()?;
    OpenOptions::new().append(true).create(true).mode(0o600).open(&path).ok()?;
    Some(path)
}

/// Who answers questions of a job: the person at the terminal, if there is one.
pub(crate) struct Attendant;

impl Person for Attendant {
    fn is_there(&self) -> bool {
        std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
    }

    fn line(&mut self, prompt: &str) -> Said {
        match LineEditor::plain().read(prompt) {
            Ok(EditedLine::Text(words)) => Said::Words(words),
            Ok(EditedLine::Interrupted) => Said::Interrupt,
            Ok(EditedLine::Ended) | Err(_) => Said::Nothing,
        }
    }
}
