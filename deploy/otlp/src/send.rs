//! The protocol: one request, by gRPC or by HTTP with protobuf.

use std::sync::Arc;
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue, TE, USER_AGENT};
use http::{HeaderMap, Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use prost::Message;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

use crate::config::{Config, Protocol, Receiver, Signal};

/// The most bytes of an answer that are read.
const ANSWER_BYTES_MAX: usize = 64 << 10;
const AGENT: &str = concat!("OTel-OTLP-Exporter-Atlas/", env!("CARGO_PKG_VERSION"));

/// Why something was not accepted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SendError {
    #[error("the receiver cannot be reached: {0}")]
    Unreachable(String),
    #[error("no answer within {0:?}")]
    Late(Duration),
    #[error("the receiver answered {0}")]
    Status(StatusCode),
    #[error("the receiver answered with the gRPC status {code}: {message}")]
    Grpc { code: u32, message: String },
    #[error("the answer cannot be read")]
    Answer,
}

impl SendError {
    /// Whether the same request can be accepted later, by the rules of OTLP.
    pub(crate) fn is_passing(&self) -> bool {
        match self {
            Self::Unreachable(_) | Self::Late(_) => true,
            Self::Status(status) => matches!(status.as_u16(), 429 | 502..=504),
            Self::Grpc { code, .. } => matches!(code, 1 | 4 | 8 | 10 | 11 | 14 | 15),
            Self::Answer => false,
        }
    }
}

/// Sends requests to a receiver, over connections that are kept open.
pub(crate) struct Sender {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    protocol: Protocol,
    uri: Uri,
    headers: HeaderMap,
    timeout: Duration,
}

impl Sender {
    pub(crate) fn new(config: &Config, receiver: &Receiver, signal: Signal) -> Self {
        let is_grpc = receiver.protocol == Protocol::Grpc;
        let builder = HttpsConnectorBuilder::new().with_tls_config(tls(config)).https_or_http();
        let connector = if is_grpc { builder.enable_http2().build() } else { builder.enable_http1().build() };
        let client = Client::builder(TokioExecutor::new()).http2_only(is_grpc).build(connector);
        let mut headers = config.headers.clone();
        let kind = if is_grpc { "application/grpc" } else { "application/x-protobuf" };
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
        if is_grpc {
            headers.insert(TE, HeaderValue::from_static("trailers"));
        }
        let uri = if is_grpc { method(&receiver.uri, signal) } else { receiver.uri.clone() };
        Self { client, protocol: receiver.protocol, uri, headers, timeout: config.timeout }
    }

    /// Sends a message and returns the receiver's.
    pub(crate) async fn send<A: Message + Default>(&self, message: &impl Message) -> Result<A, SendError> {
        let exchanged = tokio::time::timeout(self.timeout, self.exchange(message)).await;
        exchanged.map_err(|_| SendError::Late(self.timeout))?
    }

    async fn exchange<A: Message + Default>(&self, message: &impl Message) -> Result<A, SendError> {
        let mut request = Request::new(Full::new(self.framed(message)));
        (*request.method_mut(), *request.uri_mut()) = (Method::POST, self.uri.clone());
        *request.headers_mut() = self.headers.clone();
        let unreachable = |error: &dyn std::error::Error| SendError::Unreachable(atlas_env::chain(error));
        let answer = self.client.request(request).await.map_err(|error| unreachable(&error))?;
        let (head, body) = answer.into_parts();
        if !head.status.is_success() {
            return Err(SendError::Status(head.status));
        }
        let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await.map_err(|_| SendError::Answer)?;
        if self.protocol == Protocol::Http {
            return A::decode(body.to_bytes()).map_err(|_| SendError::Answer);
        }
        let trailers = body.trailers().cloned();
        status(&head.headers).or_else(|| status(trailers.as_ref()?)).ok_or(SendError::Answer)??;
        let bytes = body.to_bytes();
        // A flag and the length come before the message.
        A::decode(bytes.get(5..).unwrap_or_default()).map_err(|_| SendError::Answer)
    }

    fn framed(&self, message: &impl Message) -> Bytes {
        let len = message.encoded_len();
        let mut bytes = BytesMut::with_capacity(5 + len);
        if self.protocol == Protocol::Grpc {
            bytes.put_u8(0);
            bytes.put_u32(u32::try_from(len).unwrap_or(u32::MAX));
        }
        // The buffer grows as needed, so this cannot fail.
        let _ = message.encode(&mut bytes);
        bytes.freeze()
    }
}

/// The status of a call in headers or trailers; none if they have none.
fn status(headers: &HeaderMap) -> Option<Result<(), SendError>> {
    let name = HeaderName::from_static("grpc-status");
    let code = headers.get(name)?.to_str().ok().and_then(|code| code.parse().ok()).unwrap_or(2);
    if code == 0 {
        return Some(Ok(()));
    }
    let message = headers.get(HeaderName::from_static("grpc-message")).and_then(|text| text.to_str().ok());
    let message = message.unwrap_or_default().chars().take(200).collect();
    Some(Err(SendError::Grpc { code, message }))
}

/// The address of the method that takes a signal.
fn method(uri: &Uri, signal: Signal) -> Uri {
    let (package, service) = match signal {
        Signal::Traces => ("trace", "TraceService"),
        Signal::Metrics => ("metrics", "MetricsService"),
        Signal::Logs => ("logs", "LogsService"),
    };
    let path = format!("/opentelemetry.proto.collector.{package}.v1.{service}/Export");
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = path.parse().ok();
    Uri::from_parts(parts).unwrap_or_else(|_| uri.clone())
}

fn tls(config: &Config) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    match &config.roots {
        Some(path) => match CertificateDer::pem_file_iter(path) {
            Ok(found) => drop(roots.add_parsable_certificates(found.filter_map(Result::ok))),
            Err(error) => tracing::error!(path = %path.display(), %error, "could not read the certificates for OTLP"),
        },
        None => drop(roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs)),
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    builder.expect("ring supports the default versions of TLS").with_root_certificates(roots).with_no_client_auth()
}
