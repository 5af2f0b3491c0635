//! `POST /v1/embeddings`.

use atlas_model::{Answer, ModelTask, Request, task};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Number, Value, json};

use crate::body::{self, Node};
use crate::{WireError, parameters, settings};

/// Longest text, so that one text does not fill the memory of a worker. Models take far less.
const TEXT_BYTES_MAX: usize = 1 << 20;

/// A request that was read.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct EmbeddingsRequest {
    /// The model, as the client names it.
    pub model: String,
    /// The request without `model`: the texts are the parts of its message.
    pub request: Request,
    /// How many texts it has.
    pub texts: usize,
    /// How the client wants the vectors.
    pub encoding: EncodingFormat,
    /// The client's own user, for records; not sent to providers.
    pub user: Option<String>,
}

/// How vectors are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EncodingFormat {
    /// As lists of numbers.
    #[default]
    Float,
    /// As `f32`, least byte first, in Base64.
    Base64,
}

/// Reads a body. Errors name the member that is wrong.
pub fn read(body: &[u8]) -> Result<EmbeddingsRequest, WireError> {
    let value = body::parse(body)?;
    let root = Node::root(&value);
    let extra = parameters::admit(root.object()?, parameters::EMBEDDINGS)?;
    let model = settings::model(&root)?;
    let texts = texts(&root.required("input")?)?;
    let encoding = root.member("encoding_format").map(|node| node.word(&["float", "base64"])).transpose()?;
    let encoding = if encoding == Some("base64") { EncodingFormat::Base64 } else { EncodingFormat::Float };
    let kind = root.member("input_type").map(|node| node.word(&["document", "query"])).transpose()?;
    let task = if kind == Some("query") { ModelTask::EmbedQuery } else { ModelTask::EmbedDocuments };
    let count = texts.len();
    let mut request = Request { extra, ..Request::embed(task, texts) };
    if let Some(node) = root.member("dimensions") {
        let most = u32::try_from(task::DIMENSIONS_MAX).unwrap_or(u32::MAX);
        request.extra.insert("dimensions".to_owned(), node.count(1, most)?.into());
    }
    Ok(EmbeddingsRequest { model, request, texts: count, encoding, user: settings::user(&root)? })
}

fn texts(node: &Node<'_>) -> Result<Vec<String>, WireError> {
    if node.value.is_string() {
        return Ok(vec![node.short_text(TEXT_BYTES_MAX)?.to_owned()]);
    }
    if !node.value.is_array() {
        return Err(node.wrong_type("a string or a list of strings"));
    }
    // A list of numbers is one text in tokens, which may be longer than lists of texts.
    let is_tokens = |value: &Value| value.is_number() || value.is_array();
    if node.value.as_array().is_some_and(|list| list.iter().any(is_tokens)) {
        return Err(WireError::unsupported(&node.path, "the input is text; this server takes no tokens"));
    }
    let nodes = node.list(task::TEXTS_MAX)?;
    if nodes.is_empty() {
        return Err(node.wrong("must have at least one text"));
    }
    nodes.iter().map(|node| node.short_text(TEXT_BYTES_MAX).map(str::to_owned)).collect()
}

/// The answer.
///
/// # Errors
///
/// 502 if it has not a usable vector for each text.
pub fn whole(answer: &Answer, request: &EmbeddingsRequest) -> Result<Value, WireError> {
    let vectors = answer.vectors(request.texts).map_err(|error| WireError::provider(error.to_string()))?;
    let entry = |(index, vector): (usize, &Vec<f32>)| {
        let embedding = match request.encoding {
            EncodingFormat::Float => vector.iter().map(|number| float(*number)).collect(),
            EncodingFormat::Base64 => {
                let bytes: Vec<u8> = vector.iter().flat_map(|number| number.to_le_bytes()).collect();
                Value::from(STANDARD.encode(bytes))
            }
        };
        json!({ "object": "embedding", "index": index, "embedding": embedding })
    };
    let data: Vec<Value> = vectors.iter().enumerate().map(entry).collect();
    let tokens = answer.usage.input;
    Ok(json!({
        "object": "list", "data": data, "model": request.model,
        "usage": { "prompt_tokens": tokens, "total_tokens": tokens },
    }))
}

/// A number with as many digits as an `f32` has: as an `f64` it would have twice as many.
fn float(number: f32) -> Value {
    let nearest = number.to_string().parse().ok().and_then(Number::from_f64);
    nearest.map_or(Value::Null, Value::Number)
}

#[cfg(test)]
mod tests {
    use atlas_model::Usage;

    use super::*;

    fn check(body: &Value, expected: Result<Value, &str>) {
        let read = read(body.to_string().as_bytes());
        let shown = read.map(|request| {
            json!([request.request.task, request.request.texts(), request.request.extra, request.texts])
        });
        assert_eq!(shown.map_err(|error| error.to_string()), expected.map_err(str::to_owned), "{body}");
    }

    #[test]
    fn requests_are_read() {
        check(&json!({"model": "e", "input": "a"}), Ok(json!(["embed_documents", ["a"], {}, 1])));
        check(
            &json!({"model": "e", "input": ["a", "b"], "input_type": "query", "dimensions": 8, "user": "u"}),
            Ok(json!(["embed_query", ["a", "b"], {"dimensions": 8}, 2])),
        );
        for (input, expected) in [
            (json!(""), "input must not be empty"),
            (json!([]), "input must have at least one text"),
            (json!(["a", ""]), "input[1] must not be empty"),
            (json!([1, 2]), "\"input\" is not supported: the input is text; this server takes no tokens"),
            (json!([[1]]), "\"input\" is not supported: the input is text; this server takes no tokens"),
            (json!([null]), "input[0] must be a string, not null"),
            (json!(7), "input must be a string or a list of strings, not a number"),
            (json!(vec!["x"; 2_049]), "input has 2049 elements, and may have 2048"),
        ] {
            check(&json!({"model": "e", "input": input}), Err(expected));
        }
        check(&json!({"model": "e"}), Err("the required parameter \"input\" is missing"));
        check(&json!({"input": "a"}), Err("the required parameter \"model\" is missing"));
        check(
            &json!({"model": "e", "input": "a", "encoding_format": "int8"}),
            Err("encoding_format must be one of float, base64, not \"int8\""),
        );
        check(
            &json!({"model": "e", "input": "a", "dimensions": 0}),
            Err("dimensions must be an integer from 1 to 16384, not 0"),
        );
    }

    #[test]
    fn vectors_are_written_both_ways() {
        let vectors = [vec![0.1, -2.0], vec![1e-7, 3.0]];
        let answer = Answer::of_vectors("m-1", &vectors, 2, Usage { input: 4, ..Usage::default() }).expect("usable");
        let mut request = EmbeddingsRequest { model: "e".to_owned(), texts: 2, ..EmbeddingsRequest::default() };
        let written = whole(&answer, &request).expect("vectors");
        assert_eq!(
            written.to_string(),
            r#"{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.1,-2.0]},{"object":"embedding","index":1,"embedding":[1e-7,3.0]}],"model":"e","usage":{"prompt_tokens":4,"total_tokens":4}}"#
        );
        request.encoding = EncodingFormat::Base64;
        assert_eq!(whole(&answer, &request).expect("vectors")["data"][0]["embedding"], "zczMPQAAAMA=");
        request.texts = 3;
        assert_eq!(whole(&answer, &request).expect_err("refused").status, 502);
    }
}
