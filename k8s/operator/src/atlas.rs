//! The client of the controllers.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use atlas_env::Env;
use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue, IF_MATCH, IF_NONE_MATCH};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::{ClientConfig, RootCertStore};
use serde_json::Value;

use crate::problem::{Problem, Reason};
use crate::request::{Body, Expect, Request};

/// How long a controller may take for an answer. A request that finds no leader waits five seconds for one.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Most bytes of an answer.
const ANSWER_BYTES_MAX: usize = 8 << 20;
/// Most bytes of the file with the token.
const TOKEN_BYTES_MAX: usize = 4_096;

/// Codes of refusals that say that there is no such thing.
const MISSING: [&str; 2] = ["E1101", "E1115"];

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClientError {
    /// No address of a controller.
    #[error("\"{server}\" is not an address such as https://atlas:7400")]
    Server {
        /// What was given.
        server: String,
    },
    /// The certificates cannot be read.
    #[error("the certificates of the cluster cannot be used")]
    Certificates(#[source] atlas_tls::TlsError),
    /// TLS could not be set up.
    #[error("TLS could not be set up")]
    Tls(#[source] rustls::Error),
}

/// A client of the controllers behind one address.
#[derive(Clone)]
pub(crate) struct Atlas {
    http: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    server: String,
    token_file: Option<PathBuf>,
    env: Env,
}

impl Atlas {
    /// A client. The file with the token is read for each request, because Kubernetes replaces it when the secret changes.
    pub(crate) fn new(
        server: &str,
        token_file: Option<PathBuf>,
        ca_file: Option<&PathBuf>,
        env: Env,
    ) -> Result<Self, ClientError> {
        let server = server.trim_end_matches('/');
        let is_address = server.parse::<http::Uri>().is_ok_and(|address| {
            matches!(address.scheme_str(), Some("http" | "https")) && address.host().is_some() && address.path() == "/"
        });
        if !is_address {
            return Err(ClientError::Server { server: server.to_owned() });
        }
        let mut roots = RootCertStore::empty();
        if let Some(file) = ca_file {
            for certificate in atlas_tls::certificates(file).map_err(ClientError::Certificates)? {
                roots.add(certificate).map_err(ClientError::Tls)?;
            }
        } else if server.starts_with("https") {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = config.map_err(ClientError::Tls)?.with_root_certificates(roots).with_no_client_auth();
        let mut connector = HttpConnector::new();
        connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
        connector.enforce_http(false);
        connector.set_nodelay(true);
        let builder = HttpsConnectorBuilder::new().with_tls_config(config).https_or_http().enable_http1();
        let mut client = Client::builder(TokioExecutor::new());
        let http = client.pool_timer(TokioTimer::new()).build(builder.wrap_connector(connector));
        Ok(Self { http, server: server.to_owned(), token_file, env })
    }

    /// Asks for something; none if there is no such thing.
    pub(crate) async fn get(&self, request: &Request) -> Result<Option<Value>, Problem> {
        let (status, body) = self.send(request).await?;
        match status {
            200..=299 => read(&body).map(Some),
            404 if is_missing(&body) => Ok(None),
            _ => Err(Problem::of_answer(status, &body)),
        }
    }

    /// Changes something. What is deleted may be gone already.
    pub(crate) async fn change(&self, request: &Request) -> Result<Value, Problem> {
        let (status, body) = self.send(request).await?;
        match status {
            200..=299 => read(&body),
            404 if request.method == "DELETE" && is_missing(&body) => Ok(Value::Null),
            _ => Err(Problem::of_answer(status, &body)),
        }
    }

    async fn send(&self, request: &Request) -> Result<(u16, Bytes), Problem> {
        let request = self.build(request)?;
        let server = &self.server;
        let unreachable = |why: &str| Problem::new(Reason::Unreachable, format!("{server}: {why}"));
        let answer = async {
            let answer = self.http.request(request).await.map_err(|error| unreachable(&atlas_env::chain(&error)))?;
            let status = answer.status().as_u16();
            let body = Limited::new(answer.into_body(), ANSWER_BYTES_MAX).collect().await;
            let body = body.map_err(|error| unreachable(&error.to_string()))?;
            Ok((status, body.to_bytes()))
        };
        tokio::select! {
            answer = answer => answer,
            () = self.env.clock.sleep(ANSWER_TIMEOUT) => Err(unreachable("no answer in time")),
        }
    }

    fn build(&self, request: &Request) -> Result<http::Request<Full<Bytes>>, Problem> {
        let invalid = |error: &dyn std::fmt::Display| Problem::new(Reason::Invalid, error.to_string());
        let mut builder = http::Request::builder()
            .method(request.method)
            .uri(format!("{}{}", self.server, request.target()))
            .header(ACCEPT, "application/problem+json, application/json");
        if let Some(token) = self.token()? {
            builder = builder.header(AUTHORIZATION, token);
        }
        builder = match request.expect {
            Expect::Any => builder,
            Expect::Absent => builder.header(IF_NONE_MATCH, "*"),
            Expect::Revision(revision) => builder.header(IF_MATCH, format!("\"{revision}\"")),
        };
        let (kind, body) = match &request.body {
            Body::Empty => (None, Bytes::new()),
            Body::Json(body) => (Some("application/json"), Bytes::from(body.to_string())),
            Body::Package { bytes, .. } => (Some("application/gzip"), Bytes::from(bytes.clone())),
        };
        if let Some(kind) = kind {
            builder = builder.header(CONTENT_TYPE, kind);
        }
        builder.body(Full::new(body)).map_err(|error| invalid(&error))
    }

    fn token(&self) -> Result<Option<HeaderValue>, Problem> {
        let Some(path) = &self.token_file else { return Ok(None) };
        let unauthorized = |why: String| Problem::new(Reason::Unauthorized, format!("the token: {why}"));
        let text =
            atlas_env::read_text(path, atlas_env::TOKEN_BYTES_MAX).map_err(|error| unauthorized(error.to_string()))?;
        let text = text.trim();
        // Without the text: it may be most of a token.
        let value = Some(text).filter(|text| !text.is_empty() && text.len() <= TOKEN_BYTES_MAX);
        let value = value.and_then(|text| HeaderValue::from_str(&format!("Bearer {text}")).ok());
        let mut value = value.ok_or_else(|| unauthorized("the file contains no token".to_owned()))?;
        value.set_sensitive(true);
        Ok(Some(value))
    }
}

fn read(body: &[u8]) -> Result<Value, Problem> {
    let unread = |error| Problem::new(Reason::Unreachable, format!("an answer cannot be read: {error}"));
    serde_json::from_slice(body).map_err(unread)
}

fn is_missing(body: &[u8]) -> bool {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    body["code"].as_str().is_some_and(|code| MISSING.contains(&code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_checked() {
        for wrong in ["", "atlas:7400", "ftp://atlas", "http://atlas/path", "http://"] {
            assert!(Atlas::new(wrong, None, None, Env::system()).is_err(), "{wrong}");
        }
        assert!(Atlas::new("http://atlas:7400/", None, None, Env::system()).is_ok());
    }

    #[test]
    fn a_token_is_read_from_its_file_each_time() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("token");
        let atlas = Atlas::new("http://atlas:7400", Some(file.clone()), None, Env::system()).expect("a client");
        assert_eq!(atlas.token().expect_err("no file").reason, Reason::Unauthorized);
        for (text, header) in
            [("atl_a\n", Some("Bearer atl_a")), ("atl_b", Some("Bearer atl_b")), ("\n", None), ("a\nb", None)]
        {
            std::fs::write(&file, text).expect("a file");
            assert_eq!(atlas.token().ok().flatten().as_ref().and_then(|value| value.to_str().ok()), header, "{text:?}");
        }
    }
}
