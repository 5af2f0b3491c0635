//! Answers with vectors.

use std::fmt;

use atlas_model::task::{DIMENSIONS_MAX, TEXTS_MAX, numbers};
use atlas_model::{Answer, CallError, Usage};
use serde::de::{DeserializeOwned, Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::Dialect;
use crate::failure;
use crate::whole::refused;

/// Reads an answer for `asked` texts.
pub(super) fn answer(dialect: Dialect, body: &[u8], model: &str, asked: usize) -> Result<Answer, CallError> {
    let (vectors, input) = match dialect {
        Dialect::Openai | Dialect::Voyage | Dialect::Jina => {
            let Listed { data, usage } = parsed(body)?;
            (in_order(data.0, asked)?, usage.map_or(0, |usage| usage.tokens()))
        }
        Dialect::Cohere => {
            let Cohere { embeddings, meta } = parsed(body)?;
            let units = meta.and_then(|meta| meta.billed_units);
            (plain(embeddings.float), units.and_then(|units| units.input_tokens).map_or(0, whole))
        }
        Dialect::Gemini => {
            let Gemini { embeddings } = parsed(body)?;
            (embeddings.0.into_iter().map(|vector| vector.values.0).collect(), 0)
        }
        Dialect::Ollama => {
            let Ollama { embeddings, prompt_eval_count } = parsed(body)?;
            (plain(embeddings), prompt_eval_count.unwrap_or(0))
        }
    };
    let usage = Usage { input, ..Usage::default() };
    Answer::of_vectors(model, &vectors, asked, usage).map_err(|error| failure::answer(error.to_string()))
}

/// The members of an answer that count; others are skipped.
fn parsed<T: DeserializeOwned>(body: &[u8]) -> Result<T, CallError> {
    serde_json::from_slice(body).map_err(|error| refused(body, &format!("the answer has no vectors ({error})")))
}

/// Vectors by the numbers of their texts. Servers that give none send them in order; one that gives some is not understood.
fn in_order(entries: Vec<Entry>, asked: usize) -> Result<Vec<Vec<f32>>, CallError> {
    if entries.len() != asked || entries.iter().all(|entry| entry.index.is_none()) {
        return Ok(entries.into_iter().map(|entry| entry.embedding.0).collect());
    }
    let mut ordered: Vec<Option<Vec<f32>>> = vec![None; asked];
    for Entry { index, embedding } in entries {
        let place = index.and_then(|index| usize::try_from(index).ok());
        let slot = place.and_then(|place| ordered.get_mut(place));
        let (Some(slot), Some(place)) = (slot, place) else {
            let shown = index.map_or("none".to_owned(), |index| index.to_string());
            return Err(failure::answer(format!("a vector has the index {shown}, and there are {asked} texts")));
        };
        if slot.replace(embedding.0).is_some() {
            return Err(failure::answer(format!("two vectors have the index {place}")));
        }
    }
    Ok(ordered.into_iter().flatten().collect())
}

fn plain(list: List<Numbers>) -> Vec<Vec<f32>> {
    list.0.into_iter().map(|numbers| numbers.0).collect()
}

/// A count that a provider writes with a fraction.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the conversion stops at both ends")]
fn whole(count: f64) -> u64 {
    count as u64
}

#[derive(Deserialize)]
struct Listed {
    data: List<Entry>,
    usage: Option<Counts>,
}

#[derive(Deserialize)]
struct Entry {
    index: Option<u64>,
    embedding: Numbers,
}

#[derive(Deserialize)]
struct Counts {
    prompt_tokens: Option<u64>,
    total_tokens: Option<u64>,
}

impl Counts {
    fn tokens(&self) -> u64 {
        self.prompt_tokens.filter(|tokens| *tokens > 0).or(self.total_tokens).unwrap_or(0)
    }
}

#[derive(Deserialize)]
struct Cohere {
    embeddings: CohereVectors,
    meta: Option<CohereMeta>,
}

#[derive(Deserialize)]
struct CohereVectors {
    float: List<Numbers>,
}

#[derive(Deserialize)]
struct CohereMeta {
    billed_units: Option<CohereUnits>,
}

#[derive(Deserialize)]
struct CohereUnits {
    input_tokens: Option<f64>,
}

#[derive(Deserialize)]
struct Gemini {
    embeddings: List<GeminiVector>,
}

#[derive(Deserialize)]
struct GeminiVector {
    values: Numbers,
}

#[derive(Deserialize)]
struct Ollama {
    embeddings: List<Numbers>,
    prompt_eval_count: Option<u64>,
}

/// A list of at most [`TEXTS_MAX`] elements.
pub(crate) struct List<T>(pub(crate) Vec<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Elements<T>(std::marker::PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Elements<T> {
            type Value = List<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<List<T>, A::Error> {
                let mut list = Vec::new();
                while let Some(element) = elements.next_element()? {
                    if list.len() == TEXTS_MAX {
                        return Err(A::Error::custom(format!("a list has more than {TEXTS_MAX} elements")));
                    }
                    list.push(element);
                }
                Ok(List(list))
            }
        }

        deserializer.deserialize_seq(Elements(std::marker::PhantomData))
    }
}

/// A vector: numbers, or their bytes in Base64, which some servers send unasked.
struct Numbers(Vec<f32>);

impl<'de> Deserialize<'de> for Numbers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Elements;

        impl<'de> Visitor<'de> for Elements {
            type Value = Numbers;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of numbers, or Base64")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Numbers, E> {
                numbers(text).map(Numbers).map_err(|_| E::custom("a vector is a text, and not the Base64 of numbers"))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Numbers, A::Error> {
                let mut vector = Vec::new();
                while let Some(number) = elements.next_element::<f32>()? {
                    if vector.len() == DIMENSIONS_MAX {
                        let text = format!("a vector has more than {DIMENSIONS_MAX} dimensions");
                        return Err(A::Error::custom(text));
                    }
                    vector.push(number);
                }
                Ok(Numbers(vector))
            }
        }

        deserializer.deserialize_any(Elements)
    }
}
