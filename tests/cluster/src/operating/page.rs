//! A page of `docs/operating`: the commands on it, in order.

use std::collections::VecDeque;
use std::path::Path;

/// One command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    /// The machine on which the command runs: `c1` for the prompt `c1$`. A bare `$` is the operator's own machine.
    pub(super) machine: String,
    pub(super) command: String,
}

/// The name of the operator's own machine.
pub(super) const DESK: &str = "desk";

/// The remaining commands of a page.
pub(super) struct Page {
    name: String,
    lines: VecDeque<Line>,
}

impl Page {
    pub(super) fn open(name: &str) -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/operating").join(name);
        let text = std::fs::read_to_string(&path).expect("a page");
        Self { name: name.to_owned(), lines: lines(&text) }
    }

    /// The next command, which must start with `begins`, so that a change of a page also needs a change of its test.
    #[track_caller]
    pub(super) fn next(&mut self, begins: &str) -> Line {
        let line = self.lines.pop_front().unwrap_or_else(|| panic!("{} ends before \"{begins}\"", self.name));
        assert!(line.command.starts_with(begins), "{}: \"{}\" comes before \"{begins}\"", self.name, line.command);
        line
    }

    /// Checks that no commands remain.
    #[track_caller]
    pub(super) fn end(self) {
        assert_eq!(self.lines, [], "{} goes on", self.name);
    }
}

impl Line {
    /// The same command, with a placeholder replaced.
    pub(super) fn with(mut self, word: &str, meaning: &str) -> Self {
        assert!(self.command.contains(word), "{} has no {word}", self.command);
        self.command = self.command.replace(word, meaning);
        self
    }
}

/// The commands in code blocks of type `console`; lines without a prompt are output.
fn lines(text: &str) -> VecDeque<Line> {
    let mut found: VecDeque<Line> = VecDeque::new();
    let (mut console, mut goes_on) = (false, false);
    for line in text.lines() {
        if line.starts_with("```") {
            console = line == "```console";
        } else if goes_on && let Some(last) = found.back_mut() {
            last.command.push_str(line.trim_start());
        } else if console
            && let Some((machine, command)) = line.split_once("$ ")
            && machine.chars().all(|letter| letter.is_ascii_alphanumeric())
        {
            let machine = if machine.is_empty() { DESK } else { machine };
            found.push_back(Line { machine: machine.to_owned(), command: command.to_owned() });
        }
        goes_on = console
            && found.back_mut().is_some_and(|last| match last.command.strip_suffix('\\') {
                Some(begun) => {
                    last.command = begun.to_owned();
                    true
                }
                None => false,
            });
    }
    found
}

#[test]
fn commands_are_found_with_their_machines() {
    let line = |machine: &str, command: &str| Line { machine: machine.to_owned(), command: command.to_owned() };
    let text = "text\n```console\nc1$ a \\\n    b\nsays $ this\n$ c $(d)\n```\n$ no\n```sh\n$ no\n```\n";
    assert_eq!(lines(text), [line("c1", "a b"), line(DESK, "c $(d)")]);
}
