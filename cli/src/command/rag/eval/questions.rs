//! Questions with what people judged: JSON lines, read one by one.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read as _};
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use crate::failure::Failure;

/// Most bytes of one line.
const LINE_BYTES_MAX: usize = 1 << 20;

/// Most questions.
const QUESTIONS_MAX: usize = 10_000;

/// Most sources of one question.
const SOURCES_MAX: usize = 10_000;

/// The largest gain. What people judge has a few grades.
const GAIN_MAX: u32 = 1_000;

/// What a line is.
const FORM: &str =
    "a line has `question` and `sources`, a list of texts or an object of whole numbers, such as {\"a.md\": 2}";

/// A question, and how much each source is worth as an answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Judged {
    pub(super) question: String,
    pub(super) gains: BTreeMap<String, u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    question: String,
    sources: Value,
}

/// The questions of a file, or of stdin.
pub(super) fn read(path: &Path) -> Result<Vec<Judged>, Failure> {
    let wrong = |why: String| Failure::usage(format!("could not read the questions in {}: {why}", path.display()));
    let judged = match path.as_os_str().to_str() {
        Some("-") => lines(std::io::stdin().lock()),
        _ if path.is_dir() => {
            return Err(wrong("it is a folder".to_owned()).with_next("write: atlasctl rag eval NAME FILE"));
        }
        _ => File::open(path).map_err(|error| error.to_string()).and_then(|file| lines(BufReader::new(file))),
    };
    let judged = judged.map_err(wrong)?;
    if judged.is_empty() {
        return Err(wrong("it has none".to_owned()).with_next(r#"a line is {"question": "…", "sources": ["a.md"]}"#));
    }
    Ok(judged)
}

fn lines(mut from: impl BufRead) -> Result<Vec<Judged>, String> {
    let (mut judged, mut line) = (Vec::new(), Vec::new());
    for number in 1.. {
        line.clear();
        let read = from.by_ref().take(LINE_BYTES_MAX as u64 + 1).read_until(b'\n', &mut line);
        if read.map_err(|error| error.to_string())? == 0 {
            break;
        }
        if line.len() > LINE_BYTES_MAX {
            return Err(format!("line {number} has more than {LINE_BYTES_MAX} bytes"));
        }
        if line.trim_ascii().is_empty() {
            continue;
        }
        if judged.len() >= QUESTIONS_MAX {
            return Err(format!("it has more than {QUESTIONS_MAX} questions"));
        }
        judged.push(one(&line).map_err(|why| format!("line {number}: {why}"))?);
    }
    Ok(judged)
}

/// Gains by source: those of an object, or 1 for each of a list.
fn gains(sources: Value) -> Option<BTreeMap<String, u32>> {
    match sources {
        Value::Array(sources) => {
            sources.into_iter().map(|source| source.as_str().map(|source| (source.to_owned(), 1))).collect()
        }
        Value::Object(gains) => gains
            .into_iter()
            .map(|(source, gain)| {
                // What is too large is refused by its number.
                Some((source, u32::try_from(gain.as_u64()?).unwrap_or(u32::MAX)))
            })
            .collect(),
        _ => None,
    }
}

fn one(line: &[u8]) -> Result<Judged, String> {
    let Line { question, sources } = serde_json::from_slice(line).map_err(|error| {
        // Its line is that of the file, which is named apart.
        let text = error.to_string();
        let why = text.split(" at line ").next().unwrap_or_default();
        if error.is_data() { format!("{why}; {FORM}") } else { format!("it is not JSON ({why}); {FORM}") }
    })?;
    if question.trim().is_empty() {
        return Err("the question is empty".to_owned());
    }
    let gains = gains(sources).ok_or_else(|| format!("`sources` cannot be read; {FORM}"))?;
    if gains.len() > SOURCES_MAX {
        return Err(format!("it names more than {SOURCES_MAX} sources"));
    }
    if let Some((source, gain)) = gains.iter().find(|(_, gain)| **gain > GAIN_MAX) {
        return Err(format!("the gain {gain} of \"{source}\" is more than {GAIN_MAX}"));
    }
    if !gains.values().any(|gain| *gain > 0) {
        return Err("no source is worth anything as an answer".to_owned());
    }
    Ok(Judged { question, gains })
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str, expected: &Expect) {
        let shown = |judged: Vec<Judged>| format!("{judged:?}");
        expected.assert_eq(&lines(text.as_bytes()).map_or_else(|why| why, shown));
    }

    #[test]
    fn a_line_has_a_question_and_what_answers_it() {
        check(
            "{\"question\": \"a\", \"sources\": [\"x.md\"]}\n\n{\"question\": \"b\", \"sources\": {\"x.md\": 2, \"y.md\": 0}}",
            &expect![[
                r#"[Judged { question: "a", gains: {"x.md": 1} }, Judged { question: "b", gains: {"x.md": 2, "y.md": 0} }]"#
            ]],
        );
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        check("\n{\"question\": \" \", \"sources\": [\"x\"]}", &expect!["line 2: the question is empty"]);
        check("{\"question\": \"a\", \"sources\": []}", &expect!["line 1: no source is worth anything as an answer"]);
        check(
            "{\"question\": \"a\", \"sources\": {\"x\": 0}}",
            &expect!["line 1: no source is worth anything as an answer"],
        );
        check(
            "{\"question\": \"a\", \"sources\": {\"x\": 4000000000}}",
            &expect![[r#"line 1: the gain 4000000000 of "x" is more than 1000"#]],
        );
        for line in [
            "{",
            "[]",
            "{\"question\": \"a\"}",
            "{\"question\": 1, \"sources\": []}",
            "{\"question\": \"a\", \"sources\": {\"x\": -1}}",
            "{\"question\": \"a\", \"sources\": [1]}",
            "{\"question\": \"a\", \"sources\": \"x\"}",
        ] {
            let why = lines(line.as_bytes()).expect_err("no question");
            assert!(why.starts_with("line 1: ") && why.contains("a line has `question` and `sources`"), "{why}");
            assert!(!why.contains("untagged") && !why.contains("column"), "{why}");
        }
        let long = format!("{{\"question\": \"{}\"", "a".repeat(LINE_BYTES_MAX));
        check(&long, &expect!["line 1 has more than 1048576 bytes"]);
        let many = "{\"question\":\"a\",\"sources\":[\"x\"]}\n".repeat(QUESTIONS_MAX + 1);
        check(&many, &expect!["it has more than 10000 questions"]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = lines(bytes.as_slice());
            let _ = one(&[&b"{\"question\": \"a\", \"sources\":"[..], &bytes].concat());
        }
    }
}
