//! The body of a request as JSON, and its members.
