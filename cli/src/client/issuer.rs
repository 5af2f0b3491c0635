//! Requests to issuers of tokens, which are other servers than the controllers.

use std::time::Duration;

use atlas_env::Env;
use futures::StreamExt;
use reqwest::Url;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue};

use super::transport::{Transport, Trust};
use crate::exit::Exit;
use crate::failure::Failure;

/// Longest wait for an answer.
const ANSWER_MAX: Duration = Duration::from_secs(30);

/// A client of issuers. It trusts the certificates that this machine trusts, and follows no redirects.
pub(crate) struct IssuerClient {
    requests: reqwest::Client,
    transport: Transport,
    env: Env,
}

impl IssuerClient {
    pub(crate) fn new() -> Result<Self, Failure> {
        let requests = reqwest::Client::builder().no_proxy().build();
        let requests =
            requests.map_err(|error| Failure::usage(format!("the HTTP client could not be set up: {error}")))?;
        Ok(Self { requests, transport: Transport::new(&Trust::Machine, true)?, env: Env::system() })
    }

    /// Reads a page: its status and its bytes.
    pub(crate) async fn get(&self, url: &str) -> Result<(u16, Vec<u8>), Failure> {
        self.send(url, self.requests.get(address(url)?)).await
    }

    /// Sends a request of a login.
    pub(crate) async fn post(&self, request: &atlas_oauth::Request) -> Result<(u16, Vec<u8>), Failure> {
        let mut message = self.requests.post(address(&request.url)?).header(CONTENT_TYPE, request.content_type);
        for (name, value) in &request.headers {
            let (Ok(name), Ok(value)) = (HeaderName::try_from(name.as_str()), HeaderValue::try_from(value.as_str()))
            else {
                return Err(Failure::usage(format!("\"{name}\" cannot be sent to the issuer")));
            };
            message = message.header(name, value);
        }
        self.send(&request.url, message.body(request.body.expose().to_owned())).await
    }

    async fn send(&self, url: &str, request: reqwest::RequestBuilder) -> Result<(u16, Vec<u8>), Failure> {
        let failed = |why: &dyn std::fmt::Display| {
            Failure::new("E4002", Exit::Unreachable, format!("could not reach the issuer at {url}: {why}"))
        };
        let request = request.header(ACCEPT, "application/json").build().map_err(|error| failed(&error))?;
        let answered = async {
            let response = self.transport.execute(request).await.map_err(|error| failed(&atlas_env::chain(&error)))?;
            let (status, mut pieces) = (response.status().as_u16(), response.bytes_stream());
            let mut body = Vec::new();
            while let Some(piece) = pieces.next().await {
                body.extend_from_slice(&piece.map_err(|error| failed(&error))?);
                if body.len() > atlas_oauth::ANSWER_BYTES_MAX {
                    return Err(failed(&"its answer is too long"));
                }
            }
            Ok((status, body))
        };
        tokio::select! {
            biased;
            answer = answered => answer,
            () = self.env.clock.sleep(ANSWER_MAX) => Err(failed(&"no answer within 30 s")),
        }
    }
}

fn address(url: &str) -> Result<Url, Failure> {
    Url::parse(url).map_err(|error| Failure::usage(format!("\"{url}\" is not an address: {error}")))
}
