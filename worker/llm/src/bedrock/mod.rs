//! Amazon Bedrock: `converse` and `converse-stream`, with signed requests.

mod decode;
mod encode;
pub(crate) mod frames;
mod sigv4;
#[cfg(test)]
mod tests;

use atlas_model::{CallError, CallErrorKind, Request};
use http::{HeaderMap, StatusCode, Uri};

use crate::{Decoder, EncodeError, Endpoint, Parts, Protocol, Secret, UnixSeconds, decoder, failure, percent, utc};

const PROVIDER: &str = "Amazon Bedrock";

/// The name of the service in signatures.
const SERVICE: &str = "bedrock";

/// Bedrock in a region.
#[derive(Debug, Clone)]
pub struct Bedrock {
    pub access: Access,
    /// For example `eu-central-1`.
    pub region: String,
}

/// Who asks.
#[derive(Debug, Clone)]
pub enum Access {
    /// Requests are signed.
    Signed {
        access_key_id: String,
        secret_access_key: Secret,
        /// Belongs to keys that expire.
        session_token: Option<Secret>,
    },
    /// A key of Bedrock's own, which is sent as it is.
    Bearer(Secret),
}

impl Bedrock {
    fn base_url(&self) -> Result<String, EncodeError> {
        percent::check_host_label("the region", &self.region)?;
        let domain = if self.region.starts_with("cn-") { "amazonaws.com.cn" } else { "amazonaws.com" };
        Ok(format!("https://bedrock-runtime.{}.{domain}", self.region))
    }
}

impl Protocol for Bedrock {
    fn encode(&self, endpoint: &Endpoint, request: &Request) -> Result<Parts, EncodeError> {
        let own = self.base_url()?;
        let base_url = if endpoint.base_url.is_empty() { &own } else { endpoint.base_url.trim_end_matches('/') };
        let method = if request.stream { "converse-stream" } else { "converse" };
        // Names of models have colons, names of profiles also slashes.
        let url = format!("{base_url}/model/{}/{method}", percent::encode(&request.model, ""));
        let mut parts = Parts::post(url, &encode::body(request)?);
        parts.leave_out(&encode::left_out(request));
        if let Access::Bearer(key) = &self.access {
            parts.bearer(key)?;
        }
        parts.endpoint_headers(endpoint)?;
        Ok(parts)
    }

    fn base_url_rule(&self) -> &'static str {
        "is that of the region, such as \"https://bedrock-runtime.eu-central-1.amazonaws.com\", without a path, or is left out"
    }

    fn decoder(&self, request: &Request, headers: &HeaderMap) -> Box<dyn Decoder> {
        let reader = decode::Reader::new(request, headers);
        if request.stream { decoder::amazon_events(headers, reader) } else { decoder::whole(reader) }
    }

    fn failure(&self, status: StatusCode, _headers: &HeaderMap, body: &[u8]) -> CallError {
        let mut error = failure::of_response(status, body);
        // The model failed, not the request.
        if status == StatusCode::FAILED_DEPENDENCY {
            error.kind = CallErrorKind::Provider;
        }
        error
    }

    fn keeps_url(&self) -> bool {
        true
    }

    fn sign(&self, parts: &mut Parts, now: UnixSeconds) -> Result<(), CallError> {
        let Access::Signed { access_key_id, secret_access_key, session_token } = &self.access else { return Ok(()) };
        let refused = |error: EncodeError| CallError::new(CallErrorKind::Request, error.to_string());
        let time = utc::basic(now);
        parts.header("x-amz-date", &time).map_err(refused)?;
        if let Some(token) = session_token {
            parts.secret_header("x-amz-security-token", token.expose()).map_err(refused)?;
        }
        let uri: Uri = parts.url.parse().map_err(|_| {
            refused(EncodeError::Invalid { what: "the address", problem: "it cannot be read".to_owned() })
        })?;
        let signed = sigv4::Signed {
            method: parts.method.as_str(),
            path: uri.path(),
            query: uri.query().unwrap_or_default(),
            headers: &signed_headers(&uri, &parts.headers),
            body: &parts.body,
        };
        let scope = sigv4::Scope {
            access_key_id,
            secret_access_key: secret_access_key.expose(),
            region: &self.region,
            service: SERVICE,
        };
        let authorization = sigv4::authorization(&scope, &signed, &time);
        parts.secret_header("authorization", &authorization).map_err(refused)
    }
}

/// The host, the type of the body, and the headers of Amazon. Other headers may change on their way.
fn signed_headers(uri: &Uri, headers: &HeaderMap) -> Vec<(String, String)> {
    let is_signed = |name: &str| name == "content-type" || name.starts_with("x-amz-");
    let sent = headers.iter().filter(|(name, _)| is_signed(name.as_str()));
    let mut signed: Vec<(String, String)> = sent
        .map(|(name, value)| (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
        .collect();
    signed.push(("host".to_owned(), host(uri)));
    signed
}

/// The header `host` as the client sends it: the port only if it is not that of the scheme.
fn host(uri: &Uri) -> String {
    let host = uri.host().unwrap_or_default();
    let usual = if uri.scheme_str() == Some("http") { 80 } else { 443 };
    match uri.port_u16() {
        Some(port) if port != usual => format!("{host}:{port}"),
        _ => host.to_owned(),
    }
}
