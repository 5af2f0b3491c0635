//! One order of what words and vectors find.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use crate::{Hit, Rank};

/// Fewest chunks that words and vectors each propose, whatever the question asks for.
const PROPOSED_MIN: usize = 100;

/// How what words and what vectors find becomes one order.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Fusion {
    /// By both scores of each chunk: the one of its words in parts of the best one, and how far its cosine is above the mean of all
    /// readable chunks, in parts of the best one. The sum, each part times its weight, is the score.
    Scores { words: f64, vector: f64 },
    /// By the places alone (reciprocal rank fusion): the sum of each weight divided by the place and twice the chunks that the question
    /// asks for. Words and vectors propose as many chunks as the question asks for.
    Ranks { words: f64, vector: f64 },
}

impl Fusion {
    /// The ranks as Loki fuses them.
    pub const RANKS: Self = Self::Ranks { words: 1.0, vector: 1.125 };
}

impl Default for Fusion {
    /// Scores, words with twice the weight of vectors: the best of the rules that were measured, see docs/internals/performance.md.
    fn default() -> Self {
        Self::Scores { words: 1.0, vector: 0.5 }
    }
}

/// The scores of all chunks, and which of them may be found.
pub(crate) struct Scored<'a, F> {
    pub(crate) words: &'a [f64],
    /// `None` if the question has no vector.
    pub(crate) cosines: Option<&'a [f64]>,
    pub(crate) is_readable: &'a F,
}

impl<F: Fn(u32) -> bool> Scored<'_, F> {
    /// The best chunks, the best first; among equals the one with the lower number.
    pub(crate) fn best(&self, fusion: Fusion, top: usize) -> Vec<Hit> {
        let proposed = match fusion {
            Fusion::Scores { .. } => top.max(PROPOSED_MIN),
            Fusion::Ranks { .. } => top,
        };
        let words = first(self.words, proposed);
        let vectors = self.cosines.map(|cosines| first(cosines, proposed)).unwrap_or_default();
        let mut hits = BTreeMap::<u32, Hit>::new();
        let hit = |chunk: u32| Hit { chunk, score: 0.0, by_words: None, by_vector: None };
        for (rank, chunk) in ranks(&words) {
            hits.entry(chunk).or_insert_with(|| hit(chunk)).by_words = Some(rank);
        }
        for (rank, chunk) in ranks(&vectors) {
            hits.entry(chunk).or_insert_with(|| hit(chunk)).by_vector = Some(rank);
        }
        let mut hits: Vec<Hit> = hits.into_values().collect();
        match (self.cosines, fusion) {
            (None, _) => hits.iter_mut().for_each(|hit| hit.score = score(hit.by_words)),
            (Some(cosines), Fusion::Scores { words: by_words, vector: by_vector }) => {
                let best = |found: &[(u32, f64)]| found.first().map_or(0.0, |(_, score)| *score);
                let (most, nearest, mean) = (best(&words), best(&vectors), self.mean(cosines));
                let at = |scores: &[f64], chunk: u32| scores.get(chunk as usize).copied().unwrap_or_default();
                for hit in &mut hits {
                    let of_words = share(at(self.words, hit.chunk), most);
                    let of_vector = share(at(cosines, hit.chunk) - mean, nearest - mean);
                    hit.score = by_words * of_words + by_vector * of_vector;
                }
            }
            (Some(_), Fusion::Ranks { words: by_words, vector: by_vector }) => {
                let part = |weight: f64, rank: Option<Rank>| {
                    rank.map_or(0.0, |rank| weight / (2.0 * top as f64 + f64::from(rank.place)))
                };
                hits.iter_mut()
                    .for_each(|hit| hit.score = part(by_words, hit.by_words) + part(by_vector, hit.by_vector));
            }
        }
        hits.sort_by(|left, right| order((left.chunk, left.score), (right.chunk, right.score)));
        hits.truncate(top);
        hits
    }

    /// The mean cosine of the readable chunks.
    fn mean(&self, cosines: &[f64]) -> f64 {
        let readable = (0_u32..).zip(cosines).filter(|(chunk, _)| (self.is_readable)(*chunk));
        let (sum, all) = readable.fold((0.0, 0.0), |(sum, all), (_, cosine)| (sum + cosine, all + 1.0));
        share(sum, all)
    }
}

/// A number in parts of another one; 0 if that is not positive.
fn share(number: f64, of: f64) -> f64 {
    if of > 0.0 { number / of } else { 0.0 }
}

fn score(rank: Option<Rank>) -> f64 {
    rank.map_or(0.0, |rank| rank.score)
}

/// The better score first; among equals the lower number.
fn order(left: (u32, f64), right: (u32, f64)) -> Ordering {
    right.1.total_cmp(&left.1).then(left.0.cmp(&right.0))
}

/// The chunks with the best positive scores, at most so many.
fn first(scores: &[f64], most: usize) -> Vec<(u32, f64)> {
    let mut found: Vec<(u32, f64)> =
        (0_u32..).zip(scores).map(|(chunk, score)| (chunk, *score)).filter(|(_, score)| *score > 0.0).collect();
    if most < found.len() {
        found.select_nth_unstable_by(most, |left, right| order(*left, *right));
        found.truncate(most);
    }
    found.sort_unstable_by(|left, right| order(*left, *right));
    found
}

/// The ranks of chunks in their order.
fn ranks(found: &[(u32, f64)]) -> impl Iterator<Item = (Rank, u32)> {
    (1_u32..).zip(found).map(|(place, (chunk, score))| (Rank { place, score: *score }, *chunk))
}
