//! What the programs themselves wrote, line by line. The kernel orders the lines of one file, whoever appends them.

use std::fs;
use std::io;
use std::path::Path;

/// What a line says happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    Starts,
    Before,
    Enter,
    Effect,
    After,
    Looked,
    Waits,
    Went,
    Ends,
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    /// The process's way through the program.
    pub(super) run: String,
    pub(super) job: String,
    pub(super) word: Word,
    /// The number of the step, or the name of a wait.
    pub(super) of: String,
    /// The idempotency key, in the line of an effect.
    pub(super) key: String,
}

impl Line {
    pub(super) fn step(&self) -> u64 {
        self.of.parse().unwrap_or(0)
    }

    pub(super) fn is(&self, word: Word, step: u64) -> bool {
        self.word == word && self.of == step.to_string()
    }
}

/// The lines of a family so far.
pub(super) fn read(folder: &Path, family: &str) -> Vec<Line> {
    match fs::read_to_string(folder.join(format!("{family}.trace"))) {
        Ok(text) => parse(&text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => panic!("the trace of {family} cannot be read: {error}"),
    }
}

pub(super) fn parse(text: &str) -> Vec<Line> {
    text.lines().map(|line| one(line).unwrap_or_else(|| panic!("no line of a program: {line:?}"))).collect()
}

fn one(line: &str) -> Option<Line> {
    let words: Vec<&str> = line.split(' ').collect();
    let [run, job, word, of, key] = words[..] else { return None };
    let word = match word {
        "starts" => Word::Starts,
        "before" => Word::Before,
        "enter" => Word::Enter,
        "effect" => Word::Effect,
        "after" => Word::After,
        "looked" => Word::Looked,
        "waits" => Word::Waits,
        "went" => Word::Went,
        "ends" => Word::Ends,
        _ => return None,
    };
    let [run, job, of, key] = [run, job, of, key].map(str::to_owned);
    Some(Line { run, job, word, of, key })
}
