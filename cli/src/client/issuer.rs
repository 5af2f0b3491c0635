//! Requests to issuers of tokens, which are other servers than the controllers.

use std::time::Duration;

use atlas_env::{Env, chain};
use atlas_http::body::{self, BodyError};
use atlas_http::limited;
use http::Method;
use http::header::{ACCEPT, HeaderName, HeaderValue};
use url::Url;

use super::request::Request;
use super::transport::{Transport, Trust};
use crate::exit::Exit;
use crate::failure::Failure;

/// Longest wait for an answer.
const ANSWER_MAX: Duration = Duration::from_secs(30);

/// A client of issuers. It trusts the certificates that this machine trusts, and follows no redirects.
pub(crate) struct IssuerClient {
    transport: Transport,
    env: Env,
}

impl IssuerClient {
    pub(crate) fn new() -> Result<Self, Failure> {
        Ok(Self { transport: Transport::new(&Trust::Machine, true)?, env: Env::system() })
    }

    /// Reads a page: its status and its bytes.
    pub(crate) async fn get(&self, url: &str) -> Result<(u16, Vec<u8>), Failure> {
        self.send(url, Request::new(Method::GET, address(url)?)).await
    }

    /// Sends a request of a login.
    pub(crate) async fn post(&self, request: &atlas_oauth::Request) -> Result<(u16, Vec<u8>), Failure> {
        let body = request.body.expose().to_owned().into();
        let mut message = Request::new(Method::POST, address(&request.url)?).content(request.content_type, body);
        for (name, value) in &request.headers {
            let (Ok(name), Ok(value)) = (HeaderName::try_from(name.as_str()), HeaderValue::try_from(value.as_str()))
            else {
                return Err(Failure::usage(format!("\"{name}\" cannot be sent to the issuer")));
            };
            message = message.header(name, value);
        }
        self.send(&request.url, message).await
    }

    async fn send(&self, url: &str, request: Request) -> Result<(u16, Vec<u8>), Failure> {
        let failed = |why: &dyn std::fmt::Display| {
            Failure::new("E4002", Exit::Unreachable, format!("could not reach the issuer at {url}: {why}"))
        };
        let request = request.header(ACCEPT, HeaderValue::from_static("application/json"));
        let answered = async {
            let sent = self.transport.execute(&request, &None).await;
            let mut response = sent.map_err(|error| failed(&chain(&error)))?;
            let body = body::whole(response.body_mut(), atlas_oauth::ANSWER_BYTES_MAX).await;
            let body = body.map_err(|error| match error {
                BodyError::TooLarge => failed(&"its answer is too long"),
                BodyError::Broken(error) => failed(&error),
            })?;
            Ok::<_, Failure>((response.status().as_u16(), body))
        };
        let late = || Err(failed(&"no answer within 30 s"));
        limited(&*self.env.clock, ANSWER_MAX, answered).await.unwrap_or_else(late)
    }
}

fn address(url: &str) -> Result<Url, Failure> {
    Url::parse(url).map_err(|error| Failure::usage(format!("\"{url}\" is not an address: {error}")))
}
