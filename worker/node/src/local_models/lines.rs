//! The lines that go to the process of a local model and come from it (`agents/sdk/python/atlas/_embed.py`).

use atlas_model::task::numbers;
use serde::{Deserialize, Serialize};

/// Most bytes of an answer: 64 vectors of 256 numbers have about 90 KB.
pub(super) const ANSWER_BYTES_MAX: u64 = 1 << 20;

/// Asks for vectors.
#[derive(Serialize)]
pub(super) struct Asked<'a> {
    pub(super) id: u64,
    pub(super) dimensions: u32,
    pub(super) texts: &'a [String],
}

/// A line of the process.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Line {
    Made { id: u64, tokens: u64, vectors: Vec<String> },
    Refused { id: u64, error: String },
    Failed { failed: String },
    Ready { ready: bool },
}

/// What a line says that is the answer to a question.
#[derive(Debug, PartialEq)]
pub(super) enum Said {
    Made {
        tokens: u64,
        vectors: Vec<Vec<f32>>,
    },
    /// The model could not do it, and goes on.
    Refused(String),
}

/// The first line. An error says why the model is not ready.
pub(super) fn ready(line: &[u8]) -> Result<(), String> {
    match serde_json::from_slice(line) {
        Ok(Line::Ready { ready: true }) => Ok(()),
        Ok(Line::Failed { failed }) => Err(failed),
        _ => Err(strange(line)),
    }
}

/// The answer to the question `asked`, which was for so many texts. An error says what the process did instead.
pub(super) fn answer(line: &[u8], asked: u64, texts: usize) -> Result<Said, String> {
    match serde_json::from_slice(line) {
        Ok(Line::Made { id, tokens, vectors }) if id == asked && vectors.len() == texts => {
            let vectors = vectors.iter().map(|vector| numbers(vector)).collect::<Result<_, _>>();
            Ok(Said::Made { tokens, vectors: vectors.map_err(|error| error.to_string())? })
        }
        Ok(Line::Refused { id, error }) if id == asked => Ok(Said::Refused(error)),
        _ => Err(strange(line)),
    }
}

fn strange(line: &[u8]) -> String {
    let head: String = String::from_utf8_lossy(line).chars().take(100).collect();
    format!("it said what is no answer: {head:?}")
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    use super::*;

    fn check(line: &str, expected: &Expect) {
        let shown = match (ready(line.as_bytes()), answer(line.as_bytes(), 7, 1)) {
            (Ok(()), _) => "ready".to_owned(),
            (_, Ok(said)) => format!("{said:?}"),
            (Err(first), Err(second)) if first == second => first,
            (Err(first), Err(_)) => format!("not ready: {first}"),
        };
        expected.assert_eq(&shown);
    }

    #[test]
    fn lines_are_read_or_refused() {
        check(r#"{"ready": true}"#, &expect!["ready"]);
        check(r#"{"failed": "no weights"}"#, &expect!["not ready: no weights"]);
        check(r#"{"id": 7, "tokens": 3, "vectors": ["AACAPw=="]}"#, &expect!["Made { tokens: 3, vectors: [[1.0]] }"]);
        check(r#"{"id": 7, "error": "too much"}"#, &expect![[r#"Refused("too much")"#]]);
        check(
            r#"{"id": 8, "tokens": 3, "vectors": ["AACAPw=="]}"#,
            &expect![[r#"it said what is no answer: "{\"id\": 8, \"tokens\": 3, \"vectors\": [\"AACAPw==\"]}""#]],
        );
        check(
            r#"{"id": 7, "tokens": 3, "vectors": []}"#,
            &expect![[r#"it said what is no answer: "{\"id\": 7, \"tokens\": 3, \"vectors\": []}""#]],
        );
        check("hello", &expect![[r#"it said what is no answer: "hello""#]]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_answered(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(ready(&bytes).is_err() && answer(&bytes, 7, 1).is_err());
        }
    }
}
