//! Work of models that do not converse: texts to vectors, and texts in the order in which they answer a question.
//!
//! Such a request is a [`Request`] and such an answer an [`Answer`], so that they go the way of every model call: limits, budgets, prices,
//! retries and records. A request has its texts as the parts of one message. An answer has no parts: its member [`NUMBERS`] has one text a
//! vector, or one for all scores, with the numbers as `f32`, least byte first, in Base64.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Answer, Message, Part, Purpose, Request, Role, Stop, Usage};

/// The member of [`Answer::raw`] with vectors or scores.
pub const NUMBERS: &str = "numbers";
/// Most numbers of a vector.
pub const DIMENSIONS_MAX: usize = 16_384;
/// Most texts of a request.
pub const TEXTS_MAX: usize = 2_048;

/// What a model is asked to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelTask {
    /// Answer messages.
    #[default]
    Chat,
    /// Turn texts that are searched into vectors.
    EmbedDocuments,
    /// Turn questions into vectors.
    EmbedQuery,
    /// Say how well each text answers the question, which is the system text.
    Rank,
}

impl ModelTask {
    /// What a model must be for.
    pub fn purpose(self) -> Purpose {
        match self {
            Self::Chat => Purpose::Chat,
            Self::EmbedDocuments | Self::EmbedQuery => Purpose::Embedding,
            Self::Rank => Purpose::Reranker,
        }
    }

    /// Whether it is a conversation. Requests of others are serialised with their task.
    pub fn is_chat(&self) -> bool {
        *self == Self::Chat
    }
}

/// Why an answer has no vectors or scores.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NumbersError {
    /// It has not as many as were asked for.
    #[error("the answer has {got} {what} for {asked} texts")]
    Count {
        /// Vectors or scores.
        what: &'static str,
        /// How many it has.
        got: usize,
        /// How many texts were asked about.
        asked: usize,
    },
    /// Vectors of one answer have different lengths.
    #[error("vector {place} has {got} dimensions, and vector 0 has {first}")]
    Dimension {
        /// The place of the vector, from 0.
        place: usize,
        /// Its dimensions.
        got: usize,
        /// Those of the first one.
        first: usize,
    },
    /// A vector is empty or too long.
    #[error("vector {place} has {got} dimensions; there are 1 to {DIMENSIONS_MAX}")]
    Size {
        /// The place of the vector, from 0.
        place: usize,
        /// Its dimensions.
        got: usize,
    },
    /// A number is infinite or none.
    #[error("{what} {place} is not finite")]
    NotFinite {
        /// A vector or a score.
        what: &'static str,
        /// Its place, from 0.
        place: usize,
    },
    /// All numbers of a vector are 0, so that it has no direction.
    #[error("vector {place} is all zeros")]
    Zero {
        /// Its place, from 0.
        place: usize,
    },
    /// A text is not the Base64 of numbers.
    #[error("the answer is no list of numbers")]
    Form,
}

impl Request {
    /// A request for the vectors of texts: those that are searched, or questions.
    pub fn embed(task: ModelTask, texts: impl IntoIterator<Item = String>) -> Self {
        let parts = texts.into_iter().map(|text| Part::Text { text }).collect();
        let messages = vec![Message { role: Role::User, parts }].into();
        Self { task, messages, max_tokens: Some(0), ..Self::default() }
    }

    /// A request for how well each text answers a question.
    pub fn rank(question: &str, texts: impl IntoIterator<Item = String>) -> Self {
        Self { system: question.to_owned(), ..Self::embed(ModelTask::Rank, texts) }
    }

    /// The texts of a request that is no conversation.
    pub fn texts(&self) -> Vec<&str> {
        let parts = self.messages.iter().flat_map(|message| &message.parts);
        parts.filter_map(|part| if let Part::Text { text } = part { Some(text.as_str()) } else { None }).collect()
    }
}

impl Answer {
    /// An answer with a vector for each of `asked` texts, once all are usable.
    pub fn of_vectors(model: &str, vectors: &[Vec<f32>], asked: usize, usage: Usage) -> Result<Self, NumbersError> {
        check(vectors, asked)?;
        Ok(Self::of_numbers(model, vectors.iter().map(Vec::as_slice), usage))
    }

    /// An answer with a score for each of `asked` texts, once all are usable.
    pub fn of_scores(model: &str, scores: &[f32], asked: usize, usage: Usage) -> Result<Self, NumbersError> {
        check_scores(scores, asked)?;
        Ok(Self::of_numbers(model, std::iter::once(scores), usage))
    }

    fn of_numbers<'n>(model: &str, lists: impl Iterator<Item = &'n [f32]>, usage: Usage) -> Self {
        let text = |numbers: &[f32]| {
            let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
            Value::from(STANDARD.encode(bytes))
        };
        let raw = Map::from_iter([(NUMBERS.to_owned(), lists.map(text).collect())]);
        Self { parts: Vec::new(), stop: Stop::End, usage, model: model.to_owned(), id: None, raw }
    }

    /// The vectors of `asked` texts.
    pub fn vectors(&self, asked: usize) -> Result<Vec<Vec<f32>>, NumbersError> {
        let vectors = self.numbers()?;
        check(&vectors, asked)?;
        Ok(vectors)
    }

    /// The scores of `asked` texts; more is better.
    pub fn scores(&self, asked: usize) -> Result<Vec<f32>, NumbersError> {
        let scores = self.numbers()?.into_iter().next().unwrap_or_default();
        check_scores(&scores, asked)?;
        Ok(scores)
    }

    fn numbers(&self) -> Result<Vec<Vec<f32>>, NumbersError> {
        let list = self.raw.get(NUMBERS).and_then(Value::as_array).ok_or(NumbersError::Form)?;
        list.iter().map(|text| numbers(text.as_str().ok_or(NumbersError::Form)?)).collect()
    }
}

/// The numbers of a text in Base64.
pub fn numbers(text: &str) -> Result<Vec<f32>, NumbersError> {
    let bytes = STANDARD.decode(text).map_err(|_| NumbersError::Form)?;
    let (whole, rest) = bytes.as_chunks::<4>();
    if !rest.is_empty() {
        return Err(NumbersError::Form);
    }
    Ok(whole.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect())
}

/// Refuses vectors that no search can use.
fn check(vectors: &[Vec<f32>], asked: usize) -> Result<(), NumbersError> {
    if vectors.len() != asked {
        return Err(NumbersError::Count { what: "vectors", got: vectors.len(), asked });
    }
    let first = vectors.first().map_or(0, Vec::len);
    for (place, vector) in vectors.iter().enumerate() {
        let got = vector.len();
        if !(1..=DIMENSIONS_MAX).contains(&got) {
            return Err(NumbersError::Size { place, got });
        }
        if got != first {
            return Err(NumbersError::Dimension { place, got, first });
        }
        if !vector.iter().all(|number| number.is_finite()) {
            return Err(NumbersError::NotFinite { what: "vector", place });
        }
        if vector.iter().all(|number| *number == 0.0) {
            return Err(NumbersError::Zero { place });
        }
    }
    Ok(())
}

fn check_scores(scores: &[f32], asked: usize) -> Result<(), NumbersError> {
    if scores.len() != asked {
        return Err(NumbersError::Count { what: "scores", got: scores.len(), asked });
    }
    match scores.iter().position(|score| !score.is_finite()) {
        Some(place) => Err(NumbersError::NotFinite { what: "score", place }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn refused(vectors: &[Vec<f32>], asked: usize, expected: &str) {
        let error = Answer::of_vectors("m", vectors, asked, Usage::default()).expect_err("refused");
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn vectors_that_no_search_can_use_are_refused() {
        refused(&[vec![1.0]], 2, "the answer has 1 vectors for 2 texts");
        refused(&[vec![1.0], vec![1.0, 2.0]], 2, "vector 1 has 2 dimensions, and vector 0 has 1");
        refused(&[vec![]], 1, "vector 0 has 0 dimensions; there are 1 to 16384");
        refused(&[vec![1.0; 16_385]], 1, "vector 0 has 16385 dimensions; there are 1 to 16384");
        refused(&[vec![f32::NAN]], 1, "vector 0 is not finite");
        refused(&[vec![0.0, -0.0]], 1, "vector 0 is all zeros");
        let scores = |scores: &[f32], asked| {
            Answer::of_scores("m", scores, asked, Usage::default()).expect_err("refused").to_string()
        };
        assert_eq!(scores(&[1.0], 2), "the answer has 1 scores for 2 texts");
        assert_eq!(scores(&[f32::INFINITY], 1), "score 0 is not finite");
    }

    #[test]
    fn texts_that_are_no_numbers_are_refused() {
        for text in ["?", "AAA=", "AAAAAAA="] {
            assert_eq!(numbers(text), Err(NumbersError::Form), "{text}");
        }
        assert_eq!(numbers("AACAPw=="), Ok(vec![1.0]));
    }

    #[test]
    fn requests_of_conversations_are_written_as_before() {
        let json = |request: &Request| serde_json::to_value(request).expect("JSON");
        assert_eq!(json(&Request::default()).get("task"), None);
        let request = Request::rank("q", ["a".to_owned(), "b".to_owned()]);
        assert_eq!(json(&request)["task"], "rank");
        assert_eq!((request.system.as_str(), request.texts()), ("q", vec!["a", "b"]));
    }

    proptest! {
        #[test]
        fn numbers_come_back(vectors in prop::collection::vec(prop::collection::vec(0.1_f32..1e30, 3), 1..5)) {
            let answer = Answer::of_vectors("m", &vectors, vectors.len(), Usage::default()).expect("usable");
            prop_assert_eq!(&answer.vectors(vectors.len()).expect("readable"), &vectors);
            let scores = &vectors[0];
            let answer = Answer::of_scores("m", scores, 3, Usage::default()).expect("usable");
            prop_assert_eq!(&answer.scores(3).expect("readable"), scores);
        }
    }
}
