//! Requests that reached a server but not its API: the base URL of the model is wrong.

use atlas_model::{CallError, CallErrorKind};
use http::{HeaderMap, StatusCode, Uri};

use super::Http;
use crate::Parts;

/// Words of a server about a model that it does not know, which its address is not to blame for.
const ABOUT_MODELS: [&str; 3] = ["model", "deployment", "publisher"];

/// The error of a refused request. If nothing is at its path, the error says where it went and what the base URL must be.
pub(super) fn refused(http: &Http, parts: &Parts, model: &str, error: CallError) -> CallError {
    let is_path = matches!(
        error.status.map(StatusCode::from_u16),
        Some(Ok(StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED))
    );
    let path = parts.url.parse::<Uri>().map(|uri| uri.path().to_owned()).unwrap_or_default();
    // Servers repeat the path, which may have these words as well.
    let words = error.message.replace(&path, "").to_lowercase();
    let is_model = ABOUT_MODELS.iter().any(|word| words.contains(word)) || words.contains(&model.to_lowercase());
    if !is_path || is_model { error } else { explained(http, parts, error) }
}

/// The error of an answer with a status of success. A page for people is no API.
pub(super) fn answered(http: &Http, parts: &Parts, headers: &HeaderMap, error: CallError) -> CallError {
    let content_type =
        headers.get(http::header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let is_page = error.kind == CallErrorKind::Answer && content_type.to_ascii_lowercase().starts_with("text/html");
    if is_page { explained(http, parts, error) } else { error }
}

fn explained(http: &Http, parts: &Parts, mut error: CallError) -> CallError {
    let uri: Uri = parts.url.parse().unwrap_or_default();
    let host = uri.authority().map(ToString::to_string).unwrap_or_default();
    let message = format!(
        "{}: the API is not at {host}{}; the base_url of this model {}",
        error.message.trim_end(),
        uri.path(),
        http.protocol.base_url_rule()
    );
    error.kind = CallErrorKind::Answer;
    error.message = crate::failure::bounded(&message);
    error
}
