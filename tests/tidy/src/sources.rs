//! Sources: sizes, forbidden words, and traces of the machine they were written on.

use std::path::{Path, PathBuf};

use crate::tree;

/// Past this a file is about two things.
const LINES_MAX: usize = 600;

#[test]
fn files_are_about_one_thing() {
    let is_test = |path: &Path| {
        path.starts_with("tests") || path.ends_with("tests.rs") || path.iter().any(|part| part == "tests")
    };
    let files = tree::files(&[".rs"]);
    let lines = |path: &Path| tree::read(path).lines().count();
    let findings: Vec<_> = files
        .iter()
        .filter(|path| !is_test(path) && lines(path) > LINES_MAX)
        .map(|path| format!("{} has {} lines", path.display(), lines(path)))
        .collect();
    tree::report("past 600 lines a second thing has moved in", &findings);
}

#[test]
fn modules_say_what_they_are_for() {
    let opens = |path: &Path| tree::read(path).lines().any(|line| line.starts_with("//!"));
    // The tests of a module beside it are described by the module.
    let is_own = |path: &Path| !path.ends_with("tests.rs");
    let files = tree::files(&[".rs"]);
    let findings: Vec<_> =
        files.iter().filter(|path| is_own(path) && !opens(path)).map(|path| path.display().to_string()).collect();
    tree::report("a module opens with what it is for (`//!`)", &findings);
}

#[test]
fn nothing_is_left_for_later_or_switched_off() {
    // Spelt in halves, so that this file does not find itself.
    let words = [
        concat!("#[ign", "ore"),
        concat!("tod", "o!("),
        concat!("unimple", "mented!("),
        concat!("#[all", "ow("),
        concat!("#![all", "ow("),
        concat!("FIX", "ME"),
        concat!("TO", "DO"),
        concat!("XX", "X:"),
    ];
    report_words(
        "finish it, or write an issue; `#[expect(lint, reason = …)]` instead of an allow",
        &[".rs", ".py"],
        &words,
    );
}

#[test]
fn no_file_names_the_machine_it_was_written_on() {
    let words = [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/home", "/"), concat!("/tmp/", "brief")];
    let endings = [".rs", ".py", ".toml", ".md", ".yaml", ".yml", ".sh", ".proto", ".json", ".jsonl", ".lock"];
    report_words("paths of a machine do not belong in the tree", &endings, &words);
}

#[test]
fn code_names_features_and_not_their_levels() {
    let table = Path::new("proto/types/src/level.rs");
    let is_code =
        |path: &&PathBuf| !path.starts_with("tests") && !path.ends_with("tests.rs") && path.as_path() != table;
    let mut findings = Vec::new();
    for path in tree::files(&[".rs"]).iter().filter(is_code).filter(|path| path.iter().all(|part| part != "tests")) {
        let text = tree::read(path);
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        let bare = |line: &&str| {
            line.split("Level(").skip(1).any(|after| after.starts_with(|next: char| next.is_ascii_digit()))
        };
        findings.extend(code.lines().filter(bare).map(|line| format!("{}: {}", path.display(), line.trim())));
    }
    tree::report("name the feature: `level::DRAIN_DEADLINE` (proto/types/src/level.rs)", &findings);
}

fn report_words(rule: &str, endings: &[&str], words: &[&str]) {
    let mut findings = Vec::new();
    for path in tree::files(endings) {
        for (number, line) in tree::read(&path).lines().enumerate() {
            for word in words.iter().filter(|word| line.contains(**word)) {
                findings.push(format!("{}:{}: {word}", path.display(), number + 1));
            }
        }
    }
    tree::report(rule, &findings);
}
