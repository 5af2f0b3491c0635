//! What an answer is good for, by why the model stopped and what it said.

use atlas_model::{Answer, Stop};

/// Most characters of a provider's words in an error.
const WORDS_MAX: usize = 300;

/// How a model ended an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// It said what it had to say.
    Whole,
    /// At a limit of tokens.
    Cut,
    /// It, or the filter of its provider, refused.
    Refused,
    /// It broke off, for example in a call that cannot be read.
    Broken,
}

/// Parts of words for refusals. Each protocol knows more of them than its adapter.
const REFUSALS: [&str; 10] = [
    "refus",
    "filter",
    "safety",
    "blocked",
    "blocklist",
    "prohibited",
    "recitation",
    "guardrail",
    "sensitive",
    "toxic",
];
/// Parts of words for limits.
const LIMITS: [&str; 5] = ["length", "max_tokens", "max_output_tokens", "context_window", "truncat"];
/// Parts of words for answers that broke off.
const BREAKS: [&str; 8] =
    ["malformed", "error", "unexpected", "too_many", "cancel", "insufficient", "timeout", "missing_thought"];

impl Ended {
    pub(crate) fn of(stop: &Stop) -> Self {
        match stop {
            Stop::End | Stop::Tools | Stop::Text => Self::Whole,
            Stop::Length => Self::Cut,
            Stop::Refused => Self::Refused,
            Stop::Other(word) => Self::of_word(word),
        }
    }

    fn of_word(word: &str) -> Self {
        let lower = word.to_ascii_lowercase();
        let has = |parts: &[&str]| parts.iter().any(|part| lower.contains(part));
        match () {
            () if has(&REFUSALS) => Self::Refused,
            () if has(&LIMITS) => Self::Cut,
            () if has(&BREAKS) => Self::Broken,
            () => Self::Whole,
        }
    }
}

/// Whether an answer says nothing: it has no call, and no text behind its thoughts.
pub(crate) fn is_empty(answer: &Answer) -> bool {
    answer.tool_calls().next().is_none() && thoughtless(&answer.text()).trim().is_empty()
}

/// What a provider says about a refusal: the text of the answer, or its own word.
pub(crate) fn words(answer: &Answer) -> Option<String> {
    let text = answer.text();
    let said = match (&answer.stop, text.trim()) {
        (Stop::Other(word), "") => word.as_str(),
        (_, text) => text,
    };
    (!said.is_empty()).then(|| {
        let mut words: String = said.chars().take(WORDS_MAX).collect();
        if words.len() < said.len() {
            words.push('…');
        }
        words
    })
}

/// The names of tags around thoughts that some servers leave in the text.
const THOUGHTS: [&str; 6] = ["think", "thinking", "thought", "thoughts", "reasoning", "reflection"];

/// A text without the thoughts at its beginning. Some templates open them in the prompt, so that the text has only their end.
pub(crate) fn thoughtless(text: &str) -> &str {
    let mut rest = text.trim_start();
    while let Some(behind) = THOUGHTS.iter().find_map(|tag| behind(rest, tag)) {
        rest = behind.trim_start();
    }
    rest
}

/// What follows a block of this tag at the beginning of a text.
fn behind<'a>(text: &'a str, tag: &str) -> Option<&'a str> {
    let end = format!("</{tag}>");
    match text.strip_prefix(&format!("<{tag}>")) {
        Some(inner) => inner.split_once(&end).map(|(_, behind)| behind),
        // The text of a value may have the tag; thoughts are no JSON.
        None if text.starts_with(['{', '[', '"', '`', '<']) => None,
        None => {
            text.split_once(&end).filter(|(before, _)| !before.contains(&format!("<{tag}>"))).map(|(_, behind)| behind)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_providers_are_sorted() {
        let ended = |word: &str| Ended::of(&Stop::Other(word.to_owned()));
        for refused in ["SAFETY", "RECITATION", "PROHIBITED_CONTENT", "ERROR_TOXIC", "sensitive", "content_filter"] {
            assert_eq!(ended(refused), Ended::Refused, "{refused}");
        }
        for cut in ["model_length", "max_output_tokens", "repetition_truncation"] {
            assert_eq!(ended(cut), Ended::Cut, "{cut}");
        }
        for broken in ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "ERROR", "network_error"] {
            assert_eq!(ended(broken), Ended::Broken, "{broken}");
        }
        for whole in ["", "eos", "pause_turn", "load"] {
            assert_eq!(ended(whole), Ended::Whole, "{whole}");
        }
    }

    #[test]
    fn thoughts_are_at_the_beginning() {
        for (text, rest) in [
            ("<think>a {b}</think>\n{}", "{}"),
            (" <thinking>\n</thinking> <think>x</think>{}", "{}"),
            ("<reasoning>a</reasoning>", ""),
            ("I see.\n</think>\n{}", "{}"),
            ("{} <think>a</think>", "{} <think>a</think>"),
            (r#"{"a": "</think>"}"#, r#"{"a": "</think>"}"#),
            ("see <think>a</think> b", "see <think>a</think> b"),
            ("<think>{}", "<think>{}"),
            ("<b>{}</b>", "<b>{}</b>"),
        ] {
            assert_eq!(thoughtless(text), rest, "{text}");
        }
    }
}
