//! Access tokens by OAuth 2.

pub mod token;
