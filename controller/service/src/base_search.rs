//! Searches in document bases: by words and vectors, ranked by a model if the base names one. Workers ask the models, by jobs of the cluster's own
//! agent ([`document_models`](crate::document_models)).

use atlas_api::types::{DocumentHit, DocumentQuery, FoundDocuments, HitRank};
use atlas_bases::{VectorQuestion, chunk_key};

use crate::document_models::{Chunks, QuestionAsk, RankAsk};
use crate::{Caller, Consistency, Error, Service};

/// The priority of what somebody waits for.
const ASKED: i64 = 0;

/// How many chunks a model that ranks gets for each that is wanted, and how many at least and at most.
const RANKED_FOR_EACH: u64 = 2;
const RANKED: (u64, u64) = (20, 100);

impl Service {
    /// The chunks of a base that fit a question best.
    pub async fn search_documents(
        &self,
        caller: &Caller,
        name: &str,
        query: DocumentQuery,
        consistency: Consistency,
    ) -> Result<FoundDocuments, Error> {
        if query.words_only || query.query.trim().is_empty() {
            return self.bases().search(caller, name, query, None, consistency).await;
        }
        let models = self.bases().models(caller, name, consistency).await?;
        let asked = match &models.embedding {
            Some(model) => {
                let text = beginning(&query.query, models.chunk_bytes);
                Some(self.embed_question(caller, QuestionAsk { model, text, priority: ASKED }).await?)
            }
            None => None,
        };
        let vector = asked.as_ref().map(|asked| VectorQuestion { model: &asked.model, numbers: &asked.numbers });
        let Some(model) = models.reranker.as_ref().filter(|_| !query.unranked) else {
            return self.bases().search(caller, name, query, vector, consistency).await;
        };
        let wanted = query.top_k.unwrap_or(models.top_k);
        let (least, most) = RANKED;
        let proposed = wanted.saturating_mul(RANKED_FOR_EACH).clamp(least, most).max(wanted);
        // A number that is refused is told as it was given.
        let proposed = if wanted == 0 { wanted } else { proposed };
        let more = DocumentQuery { top_k: Some(proposed), ..query.clone() };
        let mut found = self.bases().search(caller, name, more, vector, consistency).await?;
        if !found.hits.is_empty() {
            let keys = found.hits.iter().map(|hit| chunk_key(&hit.text)).collect();
            let chunks = Chunks { base: name.to_owned(), keys };
            let ask = RankAsk { model, query: &query.query, chunks, priority: ASKED };
            let most = usize::try_from(wanted).unwrap_or(usize::MAX);
            match self.rank(caller, ask).await {
                Ok(scores) => found.hits = ranked(found.hits, &scores, most, query.explain),
                Err(error) => {
                    let now = self.bases().models(caller, name, Consistency::Linearizable).await?;
                    if now.of == models.of {
                        return Err(error);
                    }
                    // A part that was found may be gone since. What was found answers all the same.
                    found.hits.truncate(most);
                }
            }
        }
        Ok(found)
    }
}

/// Hits in the order of their scores, the best first; equals stay in their order.
fn ranked(hits: Vec<DocumentHit>, scores: &[f64], most: usize, explain: bool) -> Vec<DocumentHit> {
    let mut hits: Vec<(f64, DocumentHit)> = scores.iter().copied().zip(hits).collect();
    hits.sort_by(|(left, _), (right, _)| right.total_cmp(left));
    hits.truncate(most);
    let place = |(place, (score, hit)): (u64, (f64, DocumentHit))| DocumentHit {
        score,
        by_model: explain.then_some(HitRank { place, score }),
        ..hit
    };
    (1..).zip(hits).map(place).collect()
}

/// The beginning of a text, at most so many bytes.
fn beginning(text: &str, bytes: u64) -> &str {
    let most = usize::try_from(bytes).unwrap_or(usize::MAX).min(text.len());
    let end = (0..=most).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    text.get(..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_decides_the_order() {
        let hit = |source: &str| DocumentHit { source: source.to_owned(), score: 9.0, ..DocumentHit::default() };
        let hits = ranked(vec![hit("a"), hit("b"), hit("c"), hit("d")], &[0.1, 0.9, 0.9, f64::NEG_INFINITY], 3, true);
        let told: Vec<_> = hits.iter().map(|hit| (hit.source.as_str(), hit.score)).collect();
        assert_eq!(told, [("b", 0.9), ("c", 0.9), ("a", 0.1)]);
        assert_eq!(hits[2].by_model, Some(HitRank { place: 3, score: 0.1 }));
        assert_eq!(ranked(vec![hit("a")], &[1.0], 3, false)[0].by_model, None);
    }

    #[test]
    fn a_long_question_is_cut_between_characters() {
        assert_eq!((beginning("aéb", 2), beginning("aéb", 3), beginning("aéb", 99)), ("a", "aé", "aéb"));
    }
}
