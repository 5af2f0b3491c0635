//! One word for one thing, in code, documents and what programs print.
//!
//! A reader who meets "calls of models" beside "model calls" looks for the difference. The glossary has the words; here are those that
//! were used beside them, and phrases that nobody says at work.

use std::path::Path;

use crate::tree;

const ENDINGS: [&str; 6] = [".rs", ".proto", ".py", ".md", ".yaml", ".toml"];

/// Where other words have to stay: what others wrote, and what jobs have recorded as it was said.
const ELSEWHERE: [&str; 6] = [
    "third-party",
    // Packages with versions of their own.
    "agents/bundled",
    "tests/tidy/src/words.rs",
    // A model was told so, and journals have it.
    "agents/turn/src/turn.rs",
    "agents/turn/src/tests/judged.rs",
    // The contracts of agents that clusters have registered; a version is immutable.
    "cli/src/command/model/check.yaml",
];

/// A phrase in small letters, and what to write.
const PHRASES: [(&str, &str); 12] = [
    ("calls of models", "model calls"),
    ("calls of the model", "model calls"),
    ("call of a model", "a model call"),
    ("call of the model", "the model call"),
    ("calls of tools", "tool calls"),
    ("call of a tool", "a tool call"),
    ("call of the tool", "the tool call"),
    ("what becomes of", "what happens to"),
    ("what became of", "what happened to"),
    ("in the place of", "instead of"),
    ("normal agent", "Loki agent"),
    ("normal llm agent", "Loki agent"),
];

#[test]
fn things_have_one_word() {
    let mut findings = Vec::new();
    let is_ours = |path: &&std::path::PathBuf| !ELSEWHERE.iter().any(|place| path.starts_with(Path::new(place)));
    for path in tree::files(&ENDINGS).iter().filter(is_ours) {
        for (number, line) in tree::read(path).lines().enumerate() {
            let small = line.to_lowercase();
            for (phrase, better) in PHRASES.iter().filter(|(phrase, _)| small.contains(phrase)) {
                findings.push(format!("{}:{}: {phrase}: {better}", path.display(), number + 1));
            }
        }
    }
    tree::report("write what the glossary has (docs/internals/glossary.md)", &findings);
}
