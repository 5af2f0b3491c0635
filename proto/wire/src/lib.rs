//! gRPC between controller, worker and peers.
//!
//! Owns the generated code ([`proto`]), the messages of the session stream as plain data ([`session`]), the conversions between
//! the two ([`convert`]) and the one table that maps an error kind to gRPC, HTTP and exit codes ([`error`]). It opens no
//! connection and decides nothing: clients and servers do.

pub mod convert;
pub mod error;
pub mod limits;
pub mod proto;
pub mod session;

#[cfg(test)]
mod reference;

pub use convert::ConvertError;
pub use error::Error;
