//! Access tokens by OAuth 2: a person logs in once, and the tokens are renewed from then on.
//!
//! [`flow`] has the login with a browser (authorization code with PKCE), [`device`] the login on another machine, [`session`] the
//! tokens of a client that is logged in, and [`loopback`] the listener that a browser is sent back to. Everything but the listener
//! is pure: it makes requests and reads their answers.
//!
//! Atlas presents itself as the client that the operator registered with the issuer. It does not take the id, the headers or the
//! instructions of another vendor's program to get a request accepted.

pub mod device;
pub mod flow;
pub mod loopback;
pub mod session;
pub mod token;

pub use device::{Device, Poll};
pub use flow::{Body, Code, Issuer, Login, OauthError, Redirect};
pub use session::{Session, Store, StoreError};
pub use token::Tokens;

#[cfg(test)]
mod tests;
