//! Embeddings: texts to vectors, in the protocols of OpenAI (with Azure and compatible servers), Voyage, Jina, Cohere, Gemini and Ollama.
//!
//! A text that is too long for a model is an error of its provider and not cut in silence, where the protocol lets a request say so.

mod read;
#[cfg(test)]
mod tests;

use atlas_model::task::TEXTS_MAX;
use atlas_model::{ModelSpec, ModelTask, Provider, Request};
use http::HeaderMap;
use serde_json::{Map, Value, json};

use crate::openai::{Access, known};
use crate::whole::Whole;
use crate::{Decoder, EncodeError, Endpoint, Parts, Protocol, cohere, gemini, percent};

pub(crate) use read::List;

/// Most texts of a request to OpenAI and servers like it.
const TEXTS: usize = 256;
/// Most texts of a request to Cohere.
const TEXTS_OF_COHERE: usize = 96;
/// Most texts of a request to Gemini.
const TEXTS_OF_GEMINI: usize = 100;

/// Where protocols differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// OpenAI, Azure and compatible servers.
    Openai,
    /// As OpenAI, and it is told what the texts are for.
    Voyage,
    /// As OpenAI, and newer models are told what the texts are for.
    Jina,
    /// Cohere, version 2.
    Cohere,
    /// Gemini, in batches.
    Gemini,
    /// Ollama's own.
    Ollama,
}

impl Dialect {
    /// That of a server that speaks OpenAI's protocol.
    pub(crate) fn of_server(server: Option<&known::Server>) -> Self {
        match server.map(|server| server.name) {
            Some("voyageai") => Self::Voyage,
            Some("jina") => Self::Jina,
            _ => Self::Openai,
        }
    }
}

/// The protocol.
#[derive(Debug, Clone)]
pub struct EmbeddingProtocol {
    pub dialect: Dialect,
    pub access: Access,
    /// The length of vectors, for models that have several. None: what the provider sends by default.
    pub dimensions: Option<u32>,
}

/// Most texts of a request to a model.
pub fn texts_max(spec: &ModelSpec) -> usize {
    match spec.provider {
        Provider::Cohere => TEXTS_OF_COHERE,
        Provider::Gemini => TEXTS_OF_GEMINI,
        _ => TEXTS,
    }
}

impl Protocol for EmbeddingProtocol {
    fn encode(&self, endpoint: &Endpoint, request: &Request) -> Result<Parts, EncodeError> {
        let texts = texts(request)?;
        let mut parts = Parts::post(self.url(endpoint, &request.model), &self.body(request, &texts)?);
        sign(&self.access, self.dialect == Dialect::Gemini, &mut parts)?;
        parts.endpoint_headers(endpoint)?;
        Ok(parts)
    }

    fn base_url_rule(&self) -> &'static str {
        match self.dialect {
            Dialect::Openai if matches!(self.access, Access::Azure { .. }) => {
                "is that of the resource, such as \"https://NAME.openai.azure.com\""
            }
            Dialect::Openai | Dialect::Voyage | Dialect::Jina => {
                "ends where \"/embeddings\" follows, usually with \"/v1\""
            }
            Dialect::Cohere => "ends with \"/v2\", or is left out",
            Dialect::Gemini => "ends with \"/v1beta\", or is left out",
            Dialect::Ollama => "is that of the server, such as \"http://localhost:11434\", without a path",
        }
    }

    fn decoder(&self, request: &Request, _headers: &HeaderMap) -> Box<dyn Decoder> {
        let (dialect, model, asked) = (self.dialect, request.model.clone(), request.texts().len());
        Box::new(Whole::new(move |body: &[u8]| read::answer(dialect, body, &model, asked)))
    }
}

impl EmbeddingProtocol {
    fn url(&self, endpoint: &Endpoint, model: &str) -> String {
        match (self.dialect, &self.access) {
            (Dialect::Openai, Access::Azure { api_version, .. }) => endpoint.url(&format!(
                "/openai/deployments/{}/embeddings?api-version={}",
                percent::encode(model, ""),
                percent::encode(api_version, "")
            )),
            (Dialect::Openai | Dialect::Voyage | Dialect::Jina, _) => endpoint.url("/embeddings"),
            (Dialect::Cohere, _) => format!("{}/embed", base(endpoint, cohere::BASE_URL)),
            (Dialect::Gemini, _) => {
                format!("{}/{}:batchEmbedContents", base(endpoint, gemini::BASE_URL), gemini::path(model))
            }
            (Dialect::Ollama, _) => endpoint.url("/api/embed"),
        }
    }

    fn body(&self, request: &Request, texts: &[&str]) -> Result<Value, EncodeError> {
        let is_query = request.task == ModelTask::EmbedQuery;
        let mut body = Map::new();
        let mut set = |name: &str, value: Value| drop(body.insert(name.to_owned(), value));
        if self.dialect != Dialect::Gemini {
            set("model", json!(request.model));
        }
        let dimensions = self.dimensions.map(|length| json!(length));
        match self.dialect {
            Dialect::Openai => {
                set("input", json!(texts));
                dimensions.into_iter().for_each(|length| set("dimensions", length));
            }
            Dialect::Voyage => {
                set("input", json!(texts));
                set("input_type", json!(if is_query { "query" } else { "document" }));
                set("truncation", json!(false));
                dimensions.into_iter().for_each(|length| set("output_dimension", length));
            }
            Dialect::Jina => {
                set("input", json!(texts));
                if has_tasks(&request.model) {
                    set("task", json!(if is_query { "retrieval.query" } else { "retrieval.passage" }));
                }
                dimensions.into_iter().for_each(|length| set("dimensions", length));
            }
            Dialect::Cohere => {
                set("texts", json!(texts));
                set("input_type", json!(if is_query { "search_query" } else { "search_document" }));
                set("embedding_types", json!(["float"]));
                set("truncate", json!("NONE"));
                dimensions.into_iter().for_each(|length| set("output_dimension", length));
            }
            Dialect::Gemini => {
                let path = gemini::path(&request.model);
                let task = if is_query { "RETRIEVAL_QUERY" } else { "RETRIEVAL_DOCUMENT" };
                let one = |text: &&str| {
                    let content = json!({"parts": [{"text": text}]});
                    let mut one = json!({"model": path, "content": content, "taskType": task});
                    if let Some(length) = self.dimensions {
                        one["outputDimensionality"] = length.into();
                    }
                    one
                };
                set("requests", texts.iter().map(one).collect());
            }
            Dialect::Ollama => {
                set("input", json!(texts));
                set("truncate", json!(false));
                dimensions.into_iter().for_each(|length| set("dimensions", length));
            }
        }
        body.extend(request.extra.clone());
        Ok(Value::Object(body))
    }
}

/// Whether a model of Jina takes the member `task`: those before version 3 refuse it.
fn has_tasks(model: &str) -> bool {
    !["jina-embeddings-v1", "jina-embeddings-v2", "jina-clip-v1", "jina-embedding-b", "jina-colbert"]
        .iter()
        .any(|old| model.starts_with(old))
}

/// The texts of a request for vectors.
pub(crate) fn texts(request: &Request) -> Result<Vec<&str>, EncodeError> {
    if !matches!(request.task, ModelTask::EmbedDocuments | ModelTask::EmbedQuery) {
        return Err(EncodeError::Unsupported { provider: "an embedding model", feature: "other work".to_owned() });
    }
    bounded(request.texts())
}

/// Texts as many as a request can have.
pub(crate) fn bounded(texts: Vec<&str>) -> Result<Vec<&str>, EncodeError> {
    let problem = match texts.len() {
        0 => "it has no texts".to_owned(),
        1..=TEXTS_MAX => return Ok(texts),
        count => format!("it has {count} texts, more than {TEXTS_MAX}"),
    };
    Err(EncodeError::Invalid { what: "a request", problem })
}

/// The base address without a slash at its end, or the usual one.
pub(crate) fn base<'a>(endpoint: &'a Endpoint, usual: &'a str) -> &'a str {
    if endpoint.base_url.is_empty() { usual } else { endpoint.base_url.trim_end_matches('/') }
}

/// Sets the key, in Google's header or as each other provider wants it.
fn sign(access: &Access, is_google: bool, parts: &mut Parts) -> Result<(), EncodeError> {
    match access {
        Access::Bearer { key, .. } if is_google => parts.secret_header("x-goog-api-key", key.expose()),
        access => access.sign(parts),
    }
}
