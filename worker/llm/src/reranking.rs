//! Rerankers: how well each text answers a question, in the protocols of Cohere, Voyage, Jina and servers like Jina's.

#[cfg(test)]
mod tests;

use atlas_model::{Answer, CallError, ModelTask, Request, Usage};
use http::HeaderMap;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::embedding::{List, base, bounded};
use crate::openai::{Access, known};
use crate::whole::{Whole, refused};
use crate::{Decoder, EncodeError, Endpoint, Parts, Protocol, cohere, failure};

/// Where protocols differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// Jina, and servers that have its path and members, such as vLLM and llama.cpp.
    Jina,
    /// Voyage.
    Voyage,
    /// Cohere, version 2.
    Cohere,
}

impl Dialect {
    /// That of a server whose chat protocol is OpenAI's.
    pub(crate) fn of_server(server: Option<&known::Server>) -> Self {
        if server.is_some_and(|server| server.name == "voyageai") { Self::Voyage } else { Self::Jina }
    }
}

/// The protocol.
#[derive(Debug, Clone)]
pub struct RerankingProtocol {
    pub dialect: Dialect,
    pub access: Access,
}

impl Protocol for RerankingProtocol {
    fn encode(&self, endpoint: &Endpoint, request: &Request) -> Result<Parts, EncodeError> {
        if request.task != ModelTask::Rank {
            return Err(EncodeError::Unsupported { provider: "a reranker", feature: "other work".to_owned() });
        }
        let texts = bounded(request.texts())?;
        let url = match self.dialect {
            Dialect::Cohere => format!("{}/rerank", base(endpoint, cohere::BASE_URL)),
            Dialect::Jina | Dialect::Voyage => endpoint.url("/rerank"),
        };
        let mut body = json!({"model": request.model, "query": request.system, "documents": texts});
        let count = texts.len();
        match self.dialect {
            Dialect::Cohere => body["top_n"] = count.into(),
            Dialect::Jina => {
                body["top_n"] = count.into();
                body["return_documents"] = false.into();
            }
            Dialect::Voyage => {
                body["top_k"] = count.into();
                body["truncation"] = false.into();
            }
        }
        if let Value::Object(members) = &mut body {
            members.extend(request.extra.clone());
        }
        let mut parts = Parts::post(url, &body);
        self.access.sign(&mut parts)?;
        parts.endpoint_headers(endpoint)?;
        Ok(parts)
    }

    fn base_url_rule(&self) -> &'static str {
        match self.dialect {
            Dialect::Cohere => "ends with \"/v2\", or is left out",
            Dialect::Jina | Dialect::Voyage => "ends where \"/rerank\" follows, usually with \"/v1\"",
        }
    }

    fn decoder(&self, request: &Request, _headers: &HeaderMap) -> Box<dyn Decoder> {
        let (model, asked) = (request.model.clone(), request.texts().len());
        Box::new(Whole::new(move |body: &[u8]| answer(body, &model, asked)))
    }
}

/// Each text has one result, in any order.
fn answer(body: &[u8], model: &str, asked: usize) -> Result<Answer, CallError> {
    let Ranked { results, usage } =
        serde_json::from_slice(body).map_err(|error| refused(body, &format!("the answer has no scores ({error})")))?;
    let mut scores: Vec<Option<f32>> = vec![None; asked];
    for Ranking { index, score } in results.0 {
        let slot = usize::try_from(index).ok().and_then(|place| scores.get_mut(place));
        let Some(slot) = slot else {
            return Err(failure::answer(format!("a score has the index {index}, and there are {asked} texts")));
        };
        if slot.replace(score).is_some() {
            return Err(failure::answer(format!("two scores have the index {index}")));
        }
    }
    let scores: Vec<f32> = scores.into_iter().flatten().collect();
    let input = usage.and_then(|usage| usage.total_tokens).unwrap_or(0);
    let usage = Usage { input, ..Usage::default() };
    Answer::of_scores(model, &scores, asked, usage).map_err(|error| failure::answer(error.to_string()))
}

#[derive(Deserialize)]
struct Ranked {
    #[serde(alias = "data")]
    results: List<Ranking>,
    usage: Option<Counts>,
}

#[derive(Deserialize)]
struct Ranking {
    index: u64,
    #[serde(rename = "relevance_score", alias = "score")]
    score: f32,
}

#[derive(Deserialize)]
struct Counts {
    total_tokens: Option<u64>,
}
