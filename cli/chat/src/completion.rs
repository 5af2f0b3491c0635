//! What may follow in a line: commands, names, settings and files.

use std::fs;
use std::path::Path;

use crate::commands::{Standing, command_rows};
use crate::settings::SETTINGS;

/// Most candidates of one completion.
const CANDIDATES_MAX: usize = 200;
/// Most entries of a folder that are looked at.
const ENTRIES_MAX: usize = 2_000;

/// What is known of the cluster and the chat.
#[derive(Debug, Clone, Default)]
pub struct Names {
    pub standing: Standing,
    pub agents: Vec<String>,
    pub models: Vec<String>,
    pub conversations: Vec<String>,
}

/// What may stand from a place of the line on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The byte at which it begins.
    pub start: usize,
    pub text: String,
    /// What it is; empty if the text says it.
    pub hint: String,
}

/// The candidates at the end of a line. Only commands are completed, not messages.
pub fn candidates(line: &str, names: &Names) -> Vec<Candidate> {
    if !line.starts_with('.') || line.contains('\n') {
        return Vec::new();
    }
    let Some(blank) = line.find(' ') else {
        let rows = command_rows(names.standing).filter(|row| row.name.starts_with(line));
        return rows.map(|row| Candidate { start: 0, text: row.name.to_owned(), hint: row.does.to_owned() }).collect();
    };
    let (command, rest) = line.split_at(blank);
    let word = rest.rsplit(' ').next().unwrap_or_default();
    let start = line.len() - word.len();
    let is_first = rest.trim_start() == word;
    let of = |texts: &[String]| -> Vec<Candidate> {
        let found = texts.iter().filter(|text| is_first && text.starts_with(word)).take(CANDIDATES_MAX);
        found.map(|text| Candidate { start, text: text.clone(), hint: String::new() }).collect()
    };
    match command {
        ".model" => of(&names.models),
        ".agent" => of(&names.agents),
        ".conversation" => of(&names.conversations),
        ".set" if is_first => {
            let known = SETTINGS.iter().filter(|(name, _)| name.starts_with(word));
            known
                .map(|(name, takes)| Candidate { start, text: (*name).to_owned(), hint: (*takes).to_owned() })
                .collect()
        }
        ".file" | ".save" | ".export" => files(word, start),
        _ => Vec::new(),
    }
}

/// Files and folders whose path begins with a text. Hidden ones are left out unless a dot was typed.
fn files(word: &str, start: usize) -> Vec<Candidate> {
    let (folder, name) = word.rsplit_once('/').map_or(("", word), |(folder, name)| (folder, name));
    let folder = if word.starts_with('/') && folder.is_empty() { "/" } else { folder };
    let path = if folder.is_empty() { Path::new(".") } else { Path::new(folder) };
    let entries = fs::read_dir(path).into_iter().flatten().take(ENTRIES_MAX).filter_map(Result::ok);
    let mut found: Vec<Candidate> = entries
        .filter_map(|entry| {
            let file = entry.file_name().into_string().ok()?;
            if !file.starts_with(name) || (file.starts_with('.') && !name.starts_with('.')) {
                return None;
            }
            let end = if entry.file_type().ok()?.is_dir() { "/" } else { "" };
            let before = &word[..word.len() - name.len()];
            let text = format!("{before}{}{end}", file.replace(' ', "\\ "));
            Some(Candidate { start, text, hint: String::new() })
        })
        .collect();
    found.sort_by(|one, other| one.text.cmp(&other.text));
    found.truncate(CANDIDATES_MAX);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(line: &str) -> Vec<String> {
        let list = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let names = Names {
            standing: Standing { has_model: true, has_turns: false, has_answer: false },
            agents: list(&["assistant", "coder"]),
            models: list(&["fast", "fine"]),
            conversations: list(&["trip"]),
        };
        candidates(line, &names).into_iter().map(|found| format!("{} {}", found.start, found.text)).collect()
    }

    #[test]
    fn commands_and_names_are_completed() {
        assert_eq!(texts(".mo"), ["0 .model"]);
        assert_eq!(texts(".e"), ["0 .edit", "0 .exit"]);
        assert_eq!(texts(".model f"), ["7 fast", "7 fine"]);
        assert_eq!(texts(".agent c"), ["7 coder"]);
        assert_eq!(texts(".conversation "), ["14 trip"]);
        assert_eq!(texts(".set top"), ["5 top_p", "5 top_k"]);
        for line in ["mo", ".model fast f", ".help x", ".model f\nf", ""] {
            assert_eq!(texts(line), Vec::<String>::new(), "{line}");
        }
    }

    #[test]
    fn files_are_completed() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join("docs")).expect("a folder");
        for name in ["data one.txt", ".hidden", "other"] {
            fs::write(folder.path().join(name), "").expect("written");
        }
        let path = folder.path().display();
        let start = ".file ".len();
        assert_eq!(
            texts(&format!(".file {path}/d")),
            [format!("{start} {path}/data\\ one.txt"), format!("{start} {path}/docs/")]
        );
        assert_eq!(texts(&format!(".file {path}/.h")), [format!("{start} {path}/.hidden")]);
        assert_eq!(texts(&format!(".file {path}/gone/x")), Vec::<String>::new());
    }
}
