//! The way to issuers of tokens. It is behind a trait: this crate opens no sockets.

use atlas_oauth::Request;
use bytes::Bytes;
use futures::future::BoxFuture;

/// The way to issuers of tokens.
pub trait Issuers: Send + Sync {
    /// Sends a request. The status and the body, at most [`atlas_oauth::ANSWER_BYTES_MAX`] of it, or why there is no answer.
    fn send<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<(u16, Bytes), String>>;

    /// Reads an address without any credential, or says why there is no answer.
    fn fetch<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Result<Fetched, String>>;

    /// Sends a request as [`Self::send`] does, and reads the challenge in the answer too.
    fn ask<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<Fetched, String>>;
}

/// The answer to a request without a credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    pub status: u16,
    /// The header `WWW-Authenticate`.
    pub challenge: Option<String>,
    /// At most [`atlas_oauth::ANSWER_BYTES_MAX`] bytes.
    pub body: Bytes,
}

/// No way to any issuer.
pub struct NoIssuers;

impl Issuers for NoIssuers {
    fn send<'a>(&'a self, _: &'a Request) -> BoxFuture<'a, Result<(u16, Bytes), String>> {
        Box::pin(std::future::ready(Err("this controller reaches no issuer".to_owned())))
    }

    fn fetch<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Fetched, String>> {
        Box::pin(std::future::ready(Err("this controller reaches no issuer".to_owned())))
    }

    fn ask<'a>(&'a self, _: &'a Request) -> BoxFuture<'a, Result<Fetched, String>> {
        Box::pin(std::future::ready(Err("this controller reaches no issuer".to_owned())))
    }
}
