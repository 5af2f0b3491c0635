//! The agent `wordcount`: a plain function from the document on stdin to the document on stdout.

use std::collections::HashMap;

use serde_json::{Value, json};

/// Number of frequent words in the output if the input has no `top`.
const TOP_DEFAULT: u64 = 5;

/// Why a document cannot be counted.
#[derive(Debug, thiserror::Error)]
pub enum WordcountError {
    /// The document is not JSON.
    #[error("the input is not JSON")]
    Json(#[source] serde_json::Error),
    /// The document has no text; the contract's schema already refuses such an input.
    #[error("the input has no text")]
    NoText,
}

/// Answers one document `{"input": {"text", "top"?}, "context"}` of the exec provider.
///
/// Lines end at a line break or at the end of the text, words at white space. Frequent words are counted without case
/// and surrounding punctuation; equally frequent words are sorted alphabetically.
///
/// ```
/// let output = atlas_bundled::wordcount(br#"{"input": {"text": "one two\nOne!", "top": 1}}"#).expect("a document");
/// let top = serde_json::json!([{"word": "one", "count": 2}]);
/// assert_eq!(output, serde_json::json!({"lines": 2, "words": 3, "characters": 12, "bytes": 12, "top": top}));
/// ```
pub fn wordcount(document: &[u8]) -> Result<Value, WordcountError> {
    let document: Value = serde_json::from_slice(document).map_err(WordcountError::Json)?;
    let input = &document["input"];
    let text = input["text"].as_str().ok_or(WordcountError::NoText)?;
    let top = usize::try_from(input["top"].as_u64().unwrap_or(TOP_DEFAULT)).unwrap_or(usize::MAX);
    Ok(json!({
        "lines": text.lines().count(),
        "words": text.split_whitespace().count(),
        "characters": text.chars().count(),
        "bytes": text.len(),
        "top": frequent(text, top),
    }))
}

fn frequent(text: &str, most: usize) -> Vec<Value> {
    let mut counts: HashMap<String, usize> = HashMap::new();
    for word in text.split_whitespace() {
        let word = word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
        if !word.is_empty() {
            *counts.entry(word).or_default() += 1;
        }
    }
    let mut counts: Vec<(String, usize)> = counts.into_iter().collect();
    counts
        .sort_by(|(left, left_count), (right, right_count)| right_count.cmp(left_count).then_with(|| left.cmp(right)));
    counts.truncate(most);
    counts.into_iter().map(|(word, count)| json!({"word": word, "count": count})).collect()
}
