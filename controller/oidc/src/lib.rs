//! Tokens of OpenID Connect ([ADR 53](../../../docs/adr/0053-tokens-of-issuers.md)): what a token must say, the documents in which an issuer
//! names its keys, and the name that Atlas gives who shows a token. Opens no sockets and asks no clock.
//!
//! Tokens are read by `jsonwebtoken`; the signatures are checked by `ring`, the only cryptography of this program.

mod documents;
mod principal;
mod signatures;
mod token;

pub use documents::{DocumentError, Keys, key_address, metadata_address};
pub use principal::principal_of;
pub use token::{Expectation, TOKEN_BYTES_MAX, TokenError, TokenHolder, UncheckedToken, verify};
