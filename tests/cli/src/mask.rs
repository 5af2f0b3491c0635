//! Replaces text that differs between runs with placeholders.

use regex::Regex;

/// The masks, applied in this order: longer patterns come first.
const MASKS: [(&str, &str); 31] = [
    (r"━+", "<bar>"),
    (r"at revision \d+", "at revision <n>"),
    (r"20\d\d-\d\d-\d\d \d\d:\d\d:\d\d [+-]\d\d:\d\d", "<moment>"),
    (r"it ends 20\d\d-\d\d-\d\d \d\d:\d\d:\d\d UTC", "it ends <moment>"),
    (r"(?m)^(c\d +(?:leader|follower) +)\d.*$", "$1<term>  <applied>  <heartbeat>  <fsync>"),
    (r"(?m)^(laptop +ready +)\d+/.*$", "$1<cores>  <memory>  <gpus>  <slots>"),
    (r"(leased +\w+), (?:epoch \d+, token \d+|attempt \d+)", "$1, <lease>"),
    (r"question-[0-9a-f]{16}", "question-<id>"),
    (r"job-[0-9a-f]{16}", "job-<id>"),
    (r"chain-[0-9a-f]{16}", "chain-<id>"),
    (r"job-[0-9a-f]{8}\b", "job-<id>"),
    (r"\b(log|token) \d+", "$1 <n>"),
    (r"\d+ of \d+ free", "<n> of <n> free"),
    (r"\d+ places", "<n> places"),
    (r"trace [0-9a-f]{32}", "trace <trace>"),
    (r"sha256:[0-9a-f]{8,64}", "sha256:<digest>"),
    (r"\d\d:\d\d:\d\d\.\d{3}", "<clock>"),
    (r"(<clock> +)\+0\b", "$1+<time>"),
    (r"http://127\.0\.0\.1:\d+", "http://127.0.0.1:<port>"),
    (r"127\.0\.0\.1:\d+", "127.0.0.1:<port>"),
    (r"\(pid \d+\)", "(pid <pid>)"),
    (r"\(leader c\d, term \d+\)", "(leader <controller>, term <n>)"),
    (r"→ w\d, (?:cold start|warm)", "→ <worker>, <start>"),
    (r"new leader c\d", "new leader <controller>"),
    (r"· leader c\d ·", "· leader <controller> ·"),
    (r"(commit|apply lag) \d+( \d{3})*", "$1 <n>"),
    (r"\d+ cores?, [0-9.]+ GiB, (no GPU|\d+ × [^\n]*)", "<hardware>"),
    (r"(<1|\d+(\.\d+)?) (ms|s)\b", "<time>"),
    (r"/tmp/[A-Za-z0-9._/-]+", "<folder>"),
    (r"\d+(\.\d+)? (KiB|MiB|GiB|B)\b", "<size>"),
    (r#""[A-Za-z0-9_.-]+" \(pid"#, "\"<program>\" (pid"),
];

/// Masks a text. Masked words have different widths and so leave different gaps: in lines with a mask and in table
/// headings, every gap becomes two spaces; other lines are unchanged.
pub(crate) fn mask(text: &str) -> String {
    let mut masked = text.to_owned();
    for (pattern, word) in MASKS {
        masked = Regex::new(pattern).expect("a pattern").replace_all(&masked, word).into_owned();
    }
    let gap = Regex::new(r"(\S) {2,}").expect("a pattern");
    let even = |line: &str| {
        let head = !line.is_empty() && !line.contains(|c: char| c.is_lowercase());
        if head || line.contains('<') { gap.replace_all(line, "$1  ").into_owned() } else { line.to_owned() }
    };
    masked.split('\n').map(even).collect::<Vec<_>>().join("\n")
}

#[test]
fn what_differs_between_runs_is_masked() {
    let text = "job-4f3a09c1d27be685  hello 0.1.0  queued <1 ms → laptop, cold start 38 ms → completed in 1.2 s\n";
    let masked = "job-<id>  hello 0.1.0  queued <time> → laptop, cold start <time> → completed in <time>\n";
    assert_eq!(mask(text), masked);
    assert_eq!(mask("in use by \"atlas\" (pid 4121)"), "in use by \"<program>\" (pid <pid>)");
}
