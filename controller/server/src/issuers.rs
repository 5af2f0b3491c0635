//! The way to issuers of access tokens: by the client of webhooks, with its rules for addresses.

use std::time::Duration;

use atlas_env::Env;
use atlas_oauth::{ANSWER_BYTES_MAX, Request};
use atlas_service::{Fetched, Issuers};
use atlas_webhooks::{Exchange, HttpAnswer, OutgoingBody};
use bytes::Bytes;
use futures::future::{BoxFuture, FutureExt as _};

/// How long an issuer may take.
const TIMEOUT: Duration = Duration::from_secs(30);

pub(crate) struct Outside(Exchange);

impl Outside {
    pub(crate) fn new(env: &Env) -> Self {
        Self(Exchange::new(env, TIMEOUT, ANSWER_BYTES_MAX))
    }
}

impl Issuers for Outside {
    fn send<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<(u16, Bytes), String>> {
        let Request { url, content_type, headers, body } = request;
        let body = Bytes::copy_from_slice(body.expose().as_bytes());
        self.0.post(OutgoingBody { url, content_type, headers, body }).boxed()
    }

    fn fetch<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Result<Fetched, String>> {
        let fetched = |HttpAnswer { status, challenge, body }| Fetched { status, challenge, body };
        async move { self.0.get(url).await.map(fetched) }.boxed()
    }

    fn ask<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<Fetched, String>> {
        let Request { url, content_type, headers, body } = request;
        let body = Bytes::copy_from_slice(body.expose().as_bytes());
        let fetched = |HttpAnswer { status, challenge, body }| Fetched { status, challenge, body };
        async move { self.0.ask(OutgoingBody { url, content_type, headers, body }).await.map(fetched) }.boxed()
    }
}
