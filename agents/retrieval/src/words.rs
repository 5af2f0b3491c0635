//! The words of a text, as they are compared.

use rust_stemmers::{Algorithm, Stemmer};
use unicode_normalization::UnicodeNormalization as _;
use unicode_segmentation::UnicodeSegmentation as _;

/// Most bytes of a word that are compared: what begins alike and is longer is the same word.
const WORD_BYTES_MAX: usize = 64;

/// English words that say nothing about a text, sorted.
const STOP_WORDS: [&str; 33] = [
    "a", "an", "and", "are", "as", "at", "be", "but", "by", "for", "if", "in", "into", "is", "it", "no", "not", "of",
    "on", "or", "such", "that", "the", "their", "then", "there", "these", "they", "this", "to", "was", "will", "with",
];

/// Reduces words to what is compared.
pub(crate) struct Words {
    stemmer: Stemmer,
}

impl Words {
    pub(crate) fn new() -> Self {
        Self { stemmer: Stemmer::create(Algorithm::English) }
    }

    /// Calls a function with each word of a text, in order. A name of a program comes whole and in its parts.
    pub(crate) fn each(&self, text: &str, mut found: impl FnMut(&str)) {
        for word in text.unicode_words() {
            if word.bytes().all(|byte| byte.is_ascii_lowercase()) {
                self.word(word, &mut found);
                continue;
            }
            let plain = plain(word);
            let mut parts = 0;
            let runs = plain.split(|letter: char| letter.is_ascii_punctuation() && letter != '\'');
            for part in runs.map(singular).flat_map(humps).filter(|part| !part.is_empty()) {
                parts += 1;
                self.word(&part.to_lowercase(), &mut found);
            }
            if parts > 1 {
                self.word(&plain.to_lowercase(), &mut found);
            }
        }
    }

    /// A word in lower case: nothing if it is a stop word.
    fn word(&self, word: &str, found: &mut impl FnMut(&str)) {
        if STOP_WORDS.binary_search(&word).is_ok() {
            return;
        }
        let word = cut(word);
        // The stemmer knows English alone.
        match word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'\'') {
            true => found(&self.stemmer.stem(word)),
            false => found(word),
        }
    }
}

/// The beginning of a word that is compared.
fn cut(word: &str) -> &str {
    let end = (0..=WORD_BYTES_MAX.min(word.len())).rev().find(|place| word.is_char_boundary(*place));
    word.get(..end.unwrap_or_default()).unwrap_or_default()
}

/// A word with compatible forms of letters alike, and without the accents of Latin, Greek and Cyrillic letters.
fn plain(word: &str) -> String {
    if word.is_ascii() {
        return word.to_owned();
    }
    let letters = word.nfkd().filter(|letter| !('\u{300}'..='\u{36f}').contains(letter));
    letters.map(|letter| if letter == '’' { '\'' } else { letter }).take(WORD_BYTES_MAX).collect()
}

/// An abbreviation in capitals without the `s` of its plural, which the stemmer takes only from words with vowels.
fn singular(word: &str) -> &str {
    let one = word.strip_suffix('s').filter(|one| one.len() > 1 && one.bytes().all(|byte| byte.is_ascii_uppercase()));
    one.unwrap_or(word)
}

/// The parts of a name like `parseHttpRequest` or `HTTPServer`: a capital begins one after a small letter or a digit, and before two
/// small letters.
fn humps(word: &str) -> impl Iterator<Item = &str> {
    let bytes = word.as_bytes();
    let is_small = |place: usize| bytes.get(place).is_some_and(u8::is_ascii_lowercase);
    let begins = move |place: usize| {
        let is_capital = bytes.get(place).is_some_and(u8::is_ascii_uppercase);
        let before = place.checked_sub(1).and_then(|before| bytes.get(before));
        let after_small = before.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
        let after_capital = before.is_some_and(u8::is_ascii_uppercase);
        is_capital && (after_small || (after_capital && is_small(place + 1) && is_small(place + 2)))
    };
    let mut begun = 0;
    (1..=bytes.len()).filter_map(move |place| {
        if place < bytes.len() && !begins(place) {
            return None;
        }
        let part = word.get(begun..place);
        begun = place;
        part
    })
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    use super::*;

    fn words(text: &str) -> Vec<String> {
        let mut found = Vec::new();
        Words::new().each(text, |word| found.push(word.to_owned()));
        found
    }

    fn check(text: &str, expected: &Expect) {
        expected.assert_eq(&words(text).join(" "));
    }

    #[test]
    fn words_lose_their_endings_and_those_that_say_nothing_are_left_out() {
        check("The moons are causing tides.", &expect!["moon caus tide"]);
        check("Don't the dog's children’s generalisations matter?", &expect!["don't dog children generalis matter"]);
        check("to be or not", &expect![[""]]);
    }

    #[test]
    fn names_come_whole_and_in_parts() {
        check("parse_http_request", &expect!["pars http request parse_http_request"]);
        check(
            "parseHttpRequest HTTPServer LLMs Word2Vec sha256",
            &expect!["pars http request parsehttprequest http server httpserver llm word2 vec word2vec sha256"],
        );
        check("std::fs::read 3.14 1,000 v1.2.3 a-b", &expect!["std fs read 3 14 3.14 1 000 1,000 v1 2 3 v1.2.3 b"]);
    }

    #[test]
    fn letters_of_all_scripts_are_compared() {
        check("Café cafe\u{301} ﬁle ÉCOLE Straße", &expect!["cafe cafe file ecol straße"]);
        check("Привет, мир! 漢字かな हिन्दी", &expect!["привет мир 漢 字 か な हिन्दी"]);
        check("😀 — … ___ '", &expect![""]);
    }

    #[test]
    fn stop_words_are_sorted() {
        assert!(STOP_WORDS.is_sorted());
    }

    #[test]
    fn long_words_are_cut() {
        assert_eq!(words(&"é漢".repeat(1000)).iter().map(String::len).max(), Some(3));
        assert_eq!(words(&"7".repeat(10_000)).concat().len(), WORD_BYTES_MAX);
        assert!(words(&"x".repeat(10_000)).concat().len() <= WORD_BYTES_MAX);
    }

    #[test]
    fn long_runs_take_no_square_of_time() {
        for part in ["a.", "aB", "_", "é'", "x\u{301}"] {
            assert!(words(&part.repeat(1 << 17)).len() <= 1 << 18, "{part}");
        }
    }

    proptest! {
        #[test]
        fn any_text_has_bounded_words(text in any::<String>()) {
            for word in words(&text) {
                prop_assert!(!word.is_empty() && word.len() <= WORD_BYTES_MAX, "{word:?}");
            }
        }

        #[test]
        fn case_makes_no_difference(text in "[a-z]{1,12}( [a-z]{1,12}){0,5}") {
            prop_assert_eq!(words(&text), words(&text.to_uppercase()));
        }
    }
}
