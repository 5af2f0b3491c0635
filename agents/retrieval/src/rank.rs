//! Ranking chunks by the words of a question.

use std::collections::BTreeMap;

use crate::Chunk;

/// How fast another occurrence of a word counts less, and how much the length of a chunk counts: the usual values of BM25.
const SATURATION: f64 = 1.2;
const LENGTH: f64 = 0.75;

/// Chunks that can be searched.
#[derive(Debug, Clone, Default)]
pub struct Index {
    chunks: Vec<Chunk>,
    /// The words of each chunk: how many there are.
    lengths: Vec<usize>,
    /// For each word, how often each chunk has it.
    words: BTreeMap<String, Vec<(usize, usize)>>,
    mean: f64,
}

impl Index {
    /// An index of chunks.
    pub fn new(chunks: Vec<Chunk>) -> Self {
        let mut index = Self { lengths: Vec::with_capacity(chunks.len()), ..Self::default() };
        for (place, chunk) in chunks.iter().enumerate() {
            let mut counts = BTreeMap::<String, usize>::new();
            let mut length = 0;
            for word in words(&chunk.text) {
                *counts.entry(word).or_default() += 1;
                length += 1;
            }
            for (word, count) in counts {
                index.words.entry(word).or_default().push((place, count));
            }
            index.lengths.push(length);
        }
        index.mean = index.lengths.iter().sum::<usize>() as f64 / index.lengths.len().max(1) as f64;
        index.chunks = chunks;
        index
    }

    /// How many chunks it has.
    pub fn len(&self) -> usize {
        self.chunks.len()
    }

    /// Whether it has no chunks.
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// The best chunks for a question, the best first, at most `most`. Chunks that share no word with it are no hits; among equals, the
    /// one that was added first is first.
    pub fn search(&self, question: &str, most: usize) -> Vec<&Chunk> {
        let mut asked: Vec<String> = words(question).collect();
        asked.sort();
        asked.dedup();
        let mut scores = BTreeMap::<usize, f64>::new();
        for word in &asked {
            let Some(found) = self.words.get(word) else { continue };
            let (all, with) = (self.chunks.len() as f64, found.len() as f64);
            let rare = (1.0 + (all - with + 0.5) / (with + 0.5)).ln();
            for (place, count) in found {
                let count = *count as f64;
                let length = self.lengths.get(*place).copied().unwrap_or_default() as f64 / self.mean.max(1.0);
                let often = count * (SATURATION + 1.0) / (count + SATURATION * (1.0 - LENGTH + LENGTH * length));
                *scores.entry(*place).or_default() += rare * often;
            }
        }
        let mut hits: Vec<(usize, f64)> = scores.into_iter().collect();
        hits.sort_by(|(left, left_score), (right, right_score)| {
            right_score.total_cmp(left_score).then(left.cmp(right))
        });
        hits.into_iter().take(most).filter_map(|(place, _)| self.chunks.get(place)).collect()
    }
}

/// The words of a text, in lower case.
fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn index(texts: &[&str]) -> Index {
        let chunk = |(place, text): (usize, &&str)| Chunk { source: place.to_string(), text: (*text).to_owned() };
        Index::new(texts.iter().enumerate().map(chunk).collect())
    }

    fn check(texts: &[&str], question: &str, most: usize, expected: &[&str]) {
        let index = index(texts);
        let found: Vec<&str> = index.search(question, most).iter().map(|chunk| chunk.source.as_str()).collect();
        assert_eq!(found, expected, "{question}");
    }

    #[test]
    fn rare_words_and_short_chunks_come_first() {
        let texts = [
            "the cat and the dog",
            "the cat",
            "a bird",
            "the cat sat on the mat with another cat beside the door of it",
        ];
        check(&texts, "cat", 9, &["1", "0", "3"]);
        check(&texts, "the dog", 1, &["0"]);
        check(&texts, "BIRD?", 9, &["2"]);
        check(&texts, "whale", 9, &[]);
        check(&texts, "", 9, &[]);
        check(&texts, "cat", 0, &[]);
        check(&[], "cat", 9, &[]);
    }

    #[test]
    fn equals_keep_their_order() {
        check(&["same text", "same text", "other"], "text", 9, &["0", "1"]);
    }

    proptest! {
        #[test]
        fn every_hit_shares_a_word(texts in proptest::collection::vec("[a-d ]{0,20}", 0..20), question in "[a-e ]{0,10}") {
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            let index = index(&texts);
            let asked: Vec<String> = words(&question).collect();
            let hits = index.search(&question, texts.len());
            for hit in &hits {
                prop_assert!(words(&hit.text).any(|word| asked.contains(&word)));
            }
            let sharing = texts.iter().filter(|text| words(text).any(|word| asked.contains(&word))).count();
            prop_assert_eq!(hits.len(), sharing);
        }
    }
}
