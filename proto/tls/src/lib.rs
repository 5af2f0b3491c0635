//! Certificates of controllers and nodes, and TLS over the environment's network ([ADR 41](../../../docs/adr/0041-tls.md)).
//!
//! Each cluster has an [`Authority`]: a certificate that everybody trusts, and its key, which every controller has. A
//! controller issues its own certificate and keeps it in memory; a node gets one for a join token. Both say in a URI
//! who they are ([`Subject`]). Controllers and workers check each other by that name, never by the host name, so a
//! certificate does not depend on addresses. Clients of the HTTP interface check host names, as HTTPS does.
//!
//! This crate does not decide what a subject may do.

mod authority;
mod credentials;
mod error;
mod files;
mod group;
mod net;
mod subject;
#[cfg(test)]
mod tests;
mod token;
mod verify;
mod watch;

pub use authority::{Authority, KEY_BYTES, NodeKey, authorities, fingerprint};
pub use credentials::{Credentials, Names};
pub use error::TlsError;
pub use files::{
    AUTHORITY, AUTHORITY_KEY, Enrolled, Issued, certificates, certificates_of, private_text, write_private,
};
pub use group::GroupToken;
pub use net::{Clients, TlsNet, listener};
pub use subject::Subject;
pub use token::NodeToken;
pub use watch::{Refused, Watch};

/// A certificate as it is sent.
pub use rustls::pki_types::CertificateDer;
