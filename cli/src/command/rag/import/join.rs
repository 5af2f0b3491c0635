//! Puts chunks of a text together again. A chunk may repeat the end of the chunk before it, and blanks at its ends are gone.

/// What comes between two chunks of which the second repeats nothing.
const BETWEEN: &str = "\n\n";

/// The text of chunks that repeat at most so many bytes of the chunk before.
pub(super) fn joined<'c>(chunks: impl IntoIterator<Item = &'c str>, overlap_max: usize) -> String {
    let mut text = String::new();
    let mut before = "";
    for chunk in chunks.into_iter().filter(|chunk| !chunk.is_empty()) {
        let repeated = repeated(before, chunk, overlap_max);
        if repeated == 0 && !text.is_empty() {
            text.push_str(BETWEEN);
        }
        text.push_str(chunk.get(repeated..).unwrap_or_default());
        before = chunk;
    }
    text
}

/// How many bytes at the beginning of a chunk are the end of the one before: the longest such text that both cut between words.
fn repeated(before: &str, chunk: &str, overlap_max: usize) -> usize {
    let (end, start) = (before.as_bytes(), chunk.as_bytes());
    // The whole chunk may not be a repetition: it would be no chunk.
    let most = overlap_max.min(end.len()).min(start.len().saturating_sub(1));
    let (pattern, tail) = (start.get(..most).unwrap_or_default(), end.get(end.len() - most..).unwrap_or_default());
    let borders = borders(pattern);
    let fallback = |length: usize| length.checked_sub(1).and_then(|at| borders.get(at)).copied().unwrap_or_default();
    let mut length = 0;
    for byte in tail {
        while length > 0 && pattern.get(length) != Some(byte) {
            length = fallback(length);
        }
        if pattern.get(length) == Some(byte) {
            length += 1;
        }
    }
    while length > 0 && !(is_between_words(before, before.len() - length) && is_between_words(chunk, length)) {
        length = fallback(length);
    }
    length
}

/// For each beginning of a pattern the length of its longest proper beginning that is also its end.
fn borders(pattern: &[u8]) -> Vec<usize> {
    let mut borders = vec![0; pattern.len()];
    let mut length = 0;
    for at in 1..pattern.len() {
        while length > 0 && pattern[at] != pattern[length] {
            length = borders[length - 1];
        }
        if pattern[at] == pattern[length] {
            length += 1;
        }
        borders[at] = length;
    }
    borders
}

/// Whether a text can be cut here: at its ends, and beside something that is no part of a word.
fn is_between_words(text: &str, at: usize) -> bool {
    let Some((before, after)) = text.split_at_checked(at) else { return false };
    let is_of_word = |character: Option<char>| character.is_some_and(char::is_alphanumeric);
    !(is_of_word(before.chars().next_back()) && is_of_word(after.chars().next()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_a_chunk_repeats_is_there_once() {
        for (chunks, overlap, text) in [
            (&["one two three", "two three four"][..], 20, "one two three four"),
            (&["one two three", "three four", "four five"], 5, "one two three four five"),
            // Nothing is repeated.
            (&["one", "two"], 20, "one\n\ntwo"),
            // More than Loki repeats is another text that is the same.
            (&["a b c", "a b c d"], 2, "a b c\n\na b c d"),
            // A letter that is the same is no repetition.
            (&["end", "dark"], 20, "end\n\ndark"),
            (&["über alles", "alles ä"], 20, "über alles ä"),
            (&["x", "x"], 20, "x\n\nx"),
            (&[], 20, ""),
            (&["", "a", ""], 20, "a"),
        ] {
            assert_eq!(joined(chunks.iter().copied(), overlap), text, "{chunks:?}");
        }
    }

    proptest! {
        #[test]
        fn words_that_were_cut_apart_are_joined(
            words in proptest::collection::vec("[a-zä]{1,6}", 4..40),
            size in 3_usize..8,
            shared in 1_usize..3,
        ) {
            // Words that differ, so that only what was repeated looks repeated.
            let words: Vec<String> = words.iter().enumerate().map(|(at, word)| format!("{word}{at}")).collect();
            let mut chunks = Vec::new();
            let mut at = 0;
            while at < words.len() {
                let end = (at + size).min(words.len());
                chunks.push(words[at..end].join(" "));
                at = if end == words.len() { end } else { end - shared };
            }
            let text = joined(chunks.iter().map(String::as_str), 64);
            prop_assert_eq!(text, words.join(" "));
        }

        #[test]
        fn nothing_is_lost(chunks in proptest::collection::vec("[ab \u{e9}]{0,12}", 0..6), overlap in 0_usize..16) {
            let text = joined(chunks.iter().map(String::as_str), overlap);
            for chunk in &chunks {
                prop_assert!(text.contains(chunk.as_str()), "{:?} is not in {:?}", chunk, text);
            }
        }
    }
}
