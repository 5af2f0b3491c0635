//! Which chunks have which words, and how well they fit a question by them (Okapi BM25).

use std::collections::{BTreeMap, BTreeSet};

use crate::words::Words;

/// How fast another occurrence of a word counts less, and how much the length of a chunk counts.
const SATURATION: f64 = 1.5;
const LENGTH: f64 = 0.75;

/// Most different words of a question that are searched, from its beginning.
const ASKED_MAX: usize = 1024;

/// The inverted index: for each word, the chunks that have it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Postings {
    words: BTreeMap<Box<str>, u32>,
    /// Where the chunks of each word begin, and after the last one, where they end.
    begins: Vec<usize>,
    chunks: Vec<u32>,
    /// How often each of them has the word. More than 255 times make no difference to a rank.
    counts: Vec<u8>,
    /// The words of each chunk: how many it has.
    lengths: Vec<u32>,
}

impl Postings {
    /// The postings of texts; at most `u32::MAX`.
    pub(crate) fn new<'a>(texts: impl Iterator<Item = &'a str>) -> Self {
        let words = Words::new();
        let mut postings = Self::default();
        // Words and their counts, chunk after chunk, and where each chunk ends in them.
        let (mut found, mut often, mut ends) = (Vec::<u32>::new(), Vec::<u8>::new(), Vec::<usize>::new());
        let mut own = Vec::<u32>::new();
        for text in texts {
            own.clear();
            words.each(text, |word| own.push(postings.number(word)));
            postings.lengths.push(u32::try_from(own.len()).unwrap_or(u32::MAX));
            own.sort_unstable();
            for same in own.chunk_by(|left, right| left == right) {
                found.extend(same.first());
                often.push(u8::try_from(same.len()).unwrap_or(u8::MAX));
            }
            ends.push(found.len());
        }
        postings.turn(&found, &often, &ends);
        postings
    }

    fn number(&mut self, word: &str) -> u32 {
        if let Some(number) = self.words.get(word) {
            return *number;
        }
        let number = u32::try_from(self.words.len()).unwrap_or(u32::MAX);
        self.words.insert(word.into(), number);
        number
    }

    /// Turns words by chunk into chunks by word.
    fn turn(&mut self, found: &[u32], often: &[u8], ends: &[usize]) {
        let mut begins = vec![0_usize; self.words.len() + 1];
        for word in found {
            begins[*word as usize + 1] += 1;
        }
        for place in 1..begins.len() {
            begins[place] += begins[place - 1];
        }
        let mut next = begins.clone();
        (self.chunks, self.counts) = (vec![0; found.len()], vec![0; found.len()]);
        let (mut chunk, mut left) = (0_u32, ends.iter().copied().peekable());
        for (place, (word, count)) in found.iter().zip(often).enumerate() {
            while left.next_if(|end| *end <= place).is_some() {
                chunk += 1;
            }
            let slot = &mut next[*word as usize];
            self.chunks[*slot] = chunk;
            self.counts[*slot] = *count;
            *slot += 1;
        }
        self.begins = begins;
    }

    /// The chunks that have a word, and how often.
    fn of(&self, word: &str) -> impl Iterator<Item = (u32, u8)> + Clone {
        let number = self.words.get(word).map(|number| *number as usize);
        let range = number.and_then(|number| Some(*self.begins.get(number)?..*self.begins.get(number + 1)?));
        let range = range.unwrap_or_default();
        let chunks = self.chunks.get(range.clone()).unwrap_or_default();
        chunks.iter().copied().zip(self.counts.get(range).unwrap_or_default().iter().copied())
    }

    /// How well each chunk fits a question: 0 if it shares no word with it, or is not readable. Chunks that are not readable change
    /// nothing: how rare a word is, and how long a chunk usually is, is told by the readable ones.
    pub(crate) fn scores(&self, question: &str, is_readable: &impl Fn(u32) -> bool) -> Vec<f64> {
        let mut scores = vec![0.0; self.lengths.len()];
        let (mut all, mut length) = (0_u64, 0_u64);
        for (_, own) in (0_u32..).zip(&self.lengths).filter(|(chunk, _)| is_readable(*chunk)) {
            all += 1;
            length += u64::from(*own);
        }
        let mean = (length as f64 / (all as f64).max(1.0)).max(1.0);
        for word in asked(question) {
            let found = self.of(&word).filter(|(chunk, _)| is_readable(*chunk));
            let with = found.clone().count() as f64;
            let rare = (1.0 + (all as f64 - with + 0.5) / (with + 0.5)).ln();
            for (chunk, count) in found {
                let place = chunk as usize;
                let own = self.lengths.get(place).map_or(0.0, |own| f64::from(*own) / mean);
                let count = f64::from(count);
                let often = count * (SATURATION + 1.0) / (count + SATURATION * (1.0 - LENGTH + LENGTH * own));
                if let Some(score) = scores.get_mut(place) {
                    *score += rare * often;
                }
            }
        }
        scores
    }
}

/// The different words of a question, sorted, so that scores are summed in one order.
fn asked(question: &str) -> BTreeSet<String> {
    let mut asked = BTreeSet::new();
    Words::new().each(question, |word| {
        if asked.len() < ASKED_MAX && !asked.contains(word) {
            asked.insert(word.to_owned());
        }
    });
    asked
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(texts: &[&str], question: &str, expected: &Expect) {
        let scores = Postings::new(texts.iter().copied()).scores(question, &|_| true);
        let shown: Vec<String> = scores.iter().map(|score| format!("{score:.3}")).collect();
        expected.assert_eq(&shown.join(" "));
    }

    #[test]
    fn rare_words_and_short_chunks_score_more() {
        let texts = [
            "the cat and the dog",
            "the cat",
            "a bird",
            "the cat sat on the mat with another cat beside the door of it",
        ];
        check(&texts, "cats", &expect!["0.407 0.500 0.000 0.340"]);
        check(&texts, "dogs, cats", &expect!["1.779 0.500 0.000 0.340"]);
        check(&texts, "whale", &expect!["0.000 0.000 0.000 0.000"]);
        check(&texts, "", &expect!["0.000 0.000 0.000 0.000"]);
        check(&[], "cat", &expect![""]);
        check(&["", "cat"], "cat", &expect!["0.000 0.693"]);
    }

    #[test]
    fn many_occurrences_are_counted_up_to_a_bound() {
        let often = "cat ".repeat(1000);
        check(&[&often, "dog"], "cat", &expect!["1.715 0.000"]);
    }

    #[test]
    fn a_question_is_bounded() {
        let question: String = (0..5000).map(|number| format!("w{number} ")).collect();
        assert_eq!(asked(&question).len(), ASKED_MAX);
    }
}
