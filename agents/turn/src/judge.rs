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
const BREAKS: [&str; 9] =
    ["malformed", "error", "unexpected", "too_many", "cancel", "insufficient", "timeout", "missing_thought", "abort"];

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

/// Whether an answer says nothing: it has no call, and no text behind its thoughts. An end of thoughts without their beginning may be a part
/// of what it says.
pub(crate) fn is_empty(answer: &Answer) -> bool {
    answer.tool_calls().next().is_none() && behind_blocks(&answer.text()).trim().is_empty()
}

/// What a provider says about a refusal: the text of the answer, or its own word.
pub(crate) fn words(answer: &Answer) -> Option<String> {
    let text = answer.text();
    let said = match (&answer.stop, text.trim()) {
        (Stop::Other(word), "") => word.as_str(),
        (_, text) => text,
    };
    Some(bounded(said)).filter(|words| !words.is_empty())
}

/// The beginning of what a provider says, in one line, for a prompt or an error.
pub(crate) fn bounded(said: &str) -> String {
    let said = said.trim();
    let mut chars = said.chars().map(|char| if char.is_control() { ' ' } else { char });
    let mut words: String = chars.by_ref().take(WORDS_MAX).collect();
    if chars.next().is_some() {
        words.push('…');
    }
    words
}

/// The names of tags around thoughts that some servers leave in the text.
const THOUGHTS: [&str; 6] = ["think", "thinking", "thought", "thoughts", "reasoning", "reflection"];

/// A text without the thoughts at its beginning. Some templates open them in the prompt, so that the text has only their end: only the first
/// end without a beginning is looked for, because a text may consist of such ends.
pub fn thoughtless(text: &str) -> &str {
    let text = text.trim_start();
    behind_blocks(THOUGHTS.iter().find_map(|tag| behind_end(text, tag)).unwrap_or(text))
}

/// What follows the blocks of thoughts at the beginning of a text. What one block was searched for is not searched again.
fn behind_blocks(text: &str) -> &str {
    let mut rest = text.trim_start();
    while let Some(behind) = THOUGHTS.iter().find_map(|tag| behind_block(rest, tag)) {
        rest = behind.trim_start();
    }
    rest
}

/// What follows a block of this tag at the beginning of a text.
fn behind_block<'a>(text: &'a str, tag: &str) -> Option<&'a str> {
    let inner = text.strip_prefix('<')?.strip_prefix(tag)?.strip_prefix('>')?;
    inner.split_once(&format!("</{tag}>")).map(|(_, behind)| behind)
}

/// What follows the end of thoughts whose beginning is not in the text.
fn behind_end<'a>(text: &'a str, tag: &str) -> Option<&'a str> {
    // The text of a value may have the tag; thoughts are no JSON.
    if text.starts_with(['{', '[', '"', '`', '<']) {
        return None;
    }
    let (before, behind) = text.split_once(&format!("</{tag}>"))?;
    (!before.contains(&format!("<{tag}>"))).then_some(behind)
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
        for broken in ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "ERROR", "network_error", "abort"] {
            assert_eq!(ended(broken), Ended::Broken, "{broken}");
        }
        for whole in ["", "eos", "pause_turn", "load"] {
            assert_eq!(ended(whole), Ended::Whole, "{whole}");
        }
    }

    /// Work that grows with the square of the length would not end here.
    #[test]
    fn a_text_of_tags_alone_is_judged_in_one_pass() {
        let (times, all) = ((1 << 20) / 16, |unit: &str| unit.len() * ((1 << 20) / 16));
        let ends = "x</reflection>";
        for (unit, left) in [
            (ends, all(ends) - ends.len()),
            ("<think></think>", 0),
            ("<think>", all("<think>")),
            ("<think>x</thinking>", all("<think>x</thinking>")),
        ] {
            assert_eq!(thoughtless(&unit.repeat(times)).len(), left, "{unit}");
        }
    }

    #[test]
    fn an_end_without_a_beginning_may_be_what_an_answer_says() {
        let answer = |text: &str| Answer {
            parts: vec![atlas_model::Part::Text { text: text.to_owned() }],
            stop: Stop::End,
            usage: atlas_model::Usage::default(),
            model: String::new(),
            id: None,
            raw: serde_json::Map::new(),
        };
        assert!(!is_empty(&answer("Close it with </think>")));
        assert!(is_empty(&answer("<think>so</think> <reasoning>so</reasoning>\n")));
    }

    #[test]
    fn words_are_one_short_line() {
        assert_eq!(bounded(" a\nb\u{1b}[2J "), "a b [2J");
        assert_eq!(bounded(&"ä".repeat(400)), format!("{}…", "ä".repeat(300)));
        assert_eq!(bounded(&"ä".repeat(300)), "ä".repeat(300));
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
