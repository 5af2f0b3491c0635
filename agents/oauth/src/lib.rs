//! Access tokens by OAuth 2: a person logs in once, and the tokens are renewed from then on.
//!
//! [`Issuer`] says who gives tokens, [`Login`] is the login with a browser (authorization code with PKCE), [`Device`] the login on
//! another machine, and [`Tokens`] are what an issuer gave. MCP servers name their issuer themselves ([`Resource`], [`Endpoints`]). This crate makes requests and reads their answers; others send them.
//!
//! Atlas presents itself as the client that the operator registered with the issuer. It does not take the id, the headers or the
//! instructions of another vendor's program to get a request accepted.

mod answer;
mod device;
mod discovery;
mod flow;
mod issuer;
mod percent;
mod request;
mod server;
mod token;

pub use device::{Device, Poll};
pub use discovery::{Endpoints, OFFLINE_SCOPE, Resource, challenged_scopes, issuer_urls, resource_urls};
pub use flow::{CALLBACK_PATH, Code, INPUT_BYTES_MAX, Login, OauthError, Proof};
pub use issuer::{Body, Issuer, IssuerError, Redirect};
pub use request::Request;
pub use server::{Client, ClientRegistration, ServerClient, ServerLogin, registration};
pub use token::{Expiry, Tokens};

/// Seconds since 1970-01-01 00:00 UTC.
pub type UnixSeconds = u64;

/// Most bytes of an issuer's answer that are read.
pub const ANSWER_BYTES_MAX: usize = 64 << 10;

#[cfg(test)]
mod tests;
