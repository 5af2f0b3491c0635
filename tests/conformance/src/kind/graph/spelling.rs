//! Kinds and texts of errors. The rows name kinds in words of their own, of which the samples show some; texts are ours.

/// The words that rows may use for a kind of ours, if they differ from it.
const OTHERS: &[(&str, &[&str])] = &[
    ("extraction", &["llm", "llm-extraction", "structured"]),
    ("llm", &["llm-timeout", "llm-tools", "llm-iterations"]),
    ("script-not-found", &["script-missing", "script"]),
    ("script-extension", &["script-unsupported", "script-ext", "script"]),
    ("script-start", &["script-spawn", "script"]),
    ("script-empty", &["script-no-output", "script-output", "no-output"]),
    ("script-object", &["script-not-object", "script-json"]),
    ("agent-timeout", &["agent", "timeout"]),
    ("agent-depth", &["agent", "depth", "max-depth"]),
    ("approval", &["interaction", "no-answer", "human"]),
    ("input", &["interaction", "no-answer", "human"]),
    ("no-answer", &["approval", "input", "interaction", "human"]),
    ("input-validation", &["input", "validation-failed", "length"]),
    ("map-over", &["map-not-array", "map-array", "map"]),
    ("map-missing-key", &["map-key"]),
    ("map-branch-type", &["map-branch"]),
    ("visit-cap", &["loop", "max-loops", "loop-cap", "visits", "max-visits", "max-iterations", "loop-limit"]),
    ("several-ends", &["multiple-ends", "ends", "many-ends"]),
    ("write-conflict", &["conflict"]),
    ("reducer", &["reducer-type"]),
    ("empty-frontier", &["frontier", "emptied", "no-frontier"]),
    ("timed-out", &["timeout", "graph-timeout"]),
    ("aborted", &["abort"]),
    ("unknown-node", &["not-found", "node-not-found"]),
];

/// Beginnings of texts that model nodes write when they fail.
const FAILURES: [&str; 2] = ["LLM node failed: ", "LLM node structured-extraction failed: "];

/// Whether a row's word names a kind of ours.
pub(super) fn same(own: &str, expected: &str) -> bool {
    let others = OTHERS.iter().find(|(kind, _)| *kind == own).map(|(_, others)| *others).unwrap_or_default();
    own == expected || others.contains(&expected)
}

/// Whether two texts are the same up to a text of an error.
pub(super) fn same_text(expected: &str, own: &str) -> bool {
    let up_to = |text: &str, failure: &str| text.find(failure).map(|at| text[..at + failure.len()].to_owned());
    expected == own
        || FAILURES.iter().any(|failure| {
            let expected = up_to(expected, failure);
            expected.is_some() && expected == up_to(own, failure)
        })
}
