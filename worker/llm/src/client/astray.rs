//! Requests that reached a server but not its API: the base URL of the model is wrong.

use atlas_model::{CallError, CallErrorKind};
use http::{HeaderMap, StatusCode, Uri};

use super::Http;
use crate::Parts;

/// Words of a server about a model that it does not know, which its address is not to blame for.
const ABOUT_MODELS: [&str; 3] = ["model", "deployment", "publisher"];

/// The error of a refused request if nothing is at its path: where it went and what the base URL must be.
pub(super) fn refused(http: &Http, parts: &Parts, model: &str, error: &CallError) -> Option<CallError> {
    let is_path = matches!(
        error.status.map(StatusCode::from_u16),
        Some(Ok(StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED))
    );
    let path = parts.url.parse::<Uri>().map(|uri| uri.path().to_owned()).unwrap_or_default();
    // Servers repeat the path, which may have these words as well.
    let words = error.message.replace(&path, "").to_lowercase();
    let is_model = ABOUT_MODELS.iter().any(|word| words.contains(word)) || words.contains(&model.to_lowercase());
    (is_path && !is_model).then(|| explained(http, parts, error))
}

/// The error of an answer with a status of success if it is a page for people, which is no API.
pub(super) fn answered(http: &Http, parts: &Parts, headers: &HeaderMap, error: &CallError) -> Option<CallError> {
    let content_type =
        headers.get(http::header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let is_page = error.kind == CallErrorKind::Answer && content_type.to_ascii_lowercase().starts_with("text/html");
    is_page.then(|| explained(http, parts, error))
}

fn explained(http: &Http, parts: &Parts, error: &CallError) -> CallError {
    let uri: Uri = parts.url.parse().unwrap_or_default();
    let host = uri.authority().map(ToString::to_string).unwrap_or_default();
    let shown = shown(&http.endpoint.base_url, uri.path());
    let said = error.message.trim_end();
    // Servers repeat the path.
    let said = if uri.path().len() > 1 { said.replace(uri.path(), &shown) } else { said.to_owned() };
    let rule = http.protocol.base_url_rule();
    let message = format!("{said}: the API is not at {host}{shown}; the base_url of this model {rule}");
    CallError { kind: CallErrorKind::Answer, message: crate::failure::bounded(&message), ..error.clone() }
}

/// The path of a request as errors show it: gateways have keys in the path of the base URL, so that only what the protocol adds
/// to it is shown.
fn shown(base_url: &str, path: &str) -> String {
    if base_url.is_empty() {
        return path.to_owned();
    }
    let base = base_url.parse::<Uri>().map(|uri| uri.path().trim_end_matches('/').to_owned());
    match base.as_deref().map(|base| (base, path.strip_prefix(base))) {
        Ok(("", _)) => path.to_owned(),
        Ok((_, Some(added))) => format!("/…{added}"),
        Ok((_, None)) | Err(_) => "/…".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_of_the_base_url_is_not_shown() {
        for (base_url, path, expected) in [
            ("https://gateway.example", "/chat/completions", "/chat/completions"),
            ("https://gateway.example/", "/v1/messages", "/v1/messages"),
            ("https://gateway.example/t0ken/v1/", "/t0ken/v1/chat/completions", "/…/chat/completions"),
            ("https://gateway.example/t0ken", "/other/t0ken", "/…"),
            ("no URL", "/t0ken", "/…"),
            ("", "/v1/projects/p", "/v1/projects/p"),
        ] {
            assert_eq!(shown(base_url, path), expected, "{base_url}");
        }
    }
}
