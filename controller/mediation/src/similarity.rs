//! How similar two names of fields are (compatibility §11.3).

use std::collections::BTreeSet;

/// Longer names are similar only if they are equal. The comparison costs the product of both lengths.
const CHARS_MAX: usize = 512;

/// Abbreviations and what they stand for.
const ABBREVIATIONS: [(&str, &str); 17] = [
    ("cfg", "config"),
    ("cnt", "count"),
    ("ctx", "context"),
    ("desc", "description"),
    ("dst", "destination"),
    ("err", "error"),
    ("fmt", "format"),
    ("idx", "index"),
    ("len", "length"),
    ("msg", "message"),
    ("num", "number"),
    ("req", "request"),
    ("res", "result"),
    ("resp", "response"),
    ("src", "source"),
    ("txt", "text"),
    ("val", "value"),
];

/// From 0 to 1. Not symmetric: shared words count relative to the words of the target.
pub fn similarity(source: &str, target: &str) -> f64 {
    if source == target {
        return 1.0;
    }
    if source.len().max(target.len()) > CHARS_MAX {
        return 0.0;
    }
    let (lower_source, lower_target) = (source.to_lowercase(), target.to_lowercase());
    let (source_words, target_words) = (tokenize(source), tokenize(target));
    if lower_source == lower_target || source_words == target_words {
        return 0.95;
    }
    let target_set: BTreeSet<&String> = target_words.iter().collect();
    let common = source_words.iter().collect::<BTreeSet<_>>().intersection(&target_set).count();
    match common {
        0 => ratio(&lower_source, &lower_target),
        common => (0.5 + 0.4 * count(common) / count(target_set.len())).min(0.9),
    }
}

/// The words of a name, in lower case, with abbreviations written out.
pub fn tokenize(name: &str) -> Vec<String> {
    let mut words = Vec::new();
    for part in name.split('_') {
        let bytes = part.as_bytes();
        let mut start = 0;
        while start < bytes.len() {
            let end = word_end(bytes, start);
            if end > start {
                words.push(written_out(part[start..end].to_ascii_lowercase()));
            }
            // What is no word is skipped by its first byte; the bytes of other characters are no words either.
            start = end.max(start + 1);
        }
    }
    words
}

/// Where the word ends that begins at `start`; `start` itself if none begins there. A word is a run of capitals before the
/// capital of the next word, a run of small letters with at most one capital before it, a run of capitals, or of digits.
fn word_end(bytes: &[u8], start: usize) -> usize {
    let run = |from: usize, is: fn(&u8) -> bool| from + bytes[from..].iter().take_while(|byte| is(byte)).count();
    let capitals = run(start, u8::is_ascii_uppercase);
    let small = run(capitals, u8::is_ascii_lowercase);
    match (capitals - start, small > capitals) {
        (0, true) | (1, true) => small,
        (2.., true) => capitals - 1,
        (1.., false) => capitals,
        (0, false) => run(start, u8::is_ascii_digit),
    }
}

fn written_out(word: String) -> String {
    let full = ABBREVIATIONS.iter().find(|(short, _)| *short == word);
    full.map_or(word, |(_, full)| (*full).to_owned())
}

/// Twice the length of the common parts through both lengths (Ratcliff and Obershelp).
fn ratio(one: &str, other: &str) -> f64 {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    match one.len() + other.len() {
        0 => 1.0,
        both => 2.0 * count(common(&one, &other)) / count(both),
    }
}

/// The length of the longest common part, plus that of the common parts on its left and on its right.
fn common(one: &[char], other: &[char]) -> usize {
    // Pieces that are still to be compared. A stack instead of recursion, whose depth a name could choose.
    let mut pieces = vec![(one, other)];
    let mut total = 0;
    while let Some((one, other)) = pieces.pop() {
        let (start, other_start, length) = longest(one, other);
        if length > 0 {
            total += length;
            pieces.push((&one[..start], &other[..other_start]));
            pieces.push((&one[start + length..], &other[other_start + length..]));
        }
    }
    total
}

/// The longest common part: its places and its length. Of several, the first in `one`, then the first in `other`.
fn longest(one: &[char], other: &[char]) -> (usize, usize, usize) {
    let mut best = (0, 0, 0);
    // Lengths of the common parts that end before the current character of `one`, by their end in `other`.
    let mut before = vec![0; other.len() + 1];
    for (place, character) in one.iter().enumerate() {
        let mut ending = vec![0; other.len() + 1];
        for (other_place, other_character) in other.iter().enumerate() {
            if character == other_character {
                let length = before[other_place] + 1;
                ending[other_place + 1] = length;
                if length > best.2 {
                    best = (place + 1 - length, other_place + 1 - length, length);
                }
            }
        }
        before = ending;
    }
    best
}

#[expect(clippy::cast_precision_loss, reason = "lengths of names")]
fn count(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    use super::*;

    #[expect(clippy::needless_pass_by_value, reason = "the tests read better")]
    fn check(names: &[&str], expected: Expect) {
        let words: Vec<String> = names.iter().map(|name| format!("{name}: {}", tokenize(name).join(" "))).collect();
        expected.assert_eq(&words.join("\n"));
    }

    #[test]
    fn names_are_split_into_words() {
        check(
            &["XMLParser", "line2", "userName", "HTTPServerURL", "a__b-c.d", "msg_cnt", "Ärger", ""],
            expect![[r"
                XMLParser: xml parser
                line2: line 2
                userName: user name
                HTTPServerURL: http server url
                a__b-c.d: a b c d
                msg_cnt: message count
                Ärger: rger
                : "]],
        );
    }

    #[test]
    fn scores() {
        let score = |source, target| format!("{:.6}", similarity(source, target));
        assert_eq!(score("text", "text"), "1.000000");
        assert_eq!(score("TEXT", "text"), "0.950000");
        assert_eq!(score("userName", "user_name"), "0.950000");
        assert_eq!(score("_", ""), "0.950000");
        assert_eq!(score("text", "translated_text"), "0.700000");
        assert_eq!(score("body_text", "text"), "0.900000");
        assert_eq!(score("abcd", "bcde"), "0.750000");
        assert_eq!(score("alpha", "zzz"), "0.000000");
        assert_eq!(score(&"a".repeat(600), &"b".repeat(600)), "0.000000");
    }

    proptest! {
        #[test]
        fn scores_are_between_0_and_1(source in ".{0,12}", target in ".{0,12}") {
            prop_assert!((0.0..=1.0).contains(&similarity(&source, &target)));
            prop_assert!((similarity(&source, &source) - 1.0).abs() < 1e-12);
        }
    }
}
