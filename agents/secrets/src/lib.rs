//! Secrets: references to them, the rules by which names become values, and their removal from texts.
//!
//! A [`Reference`] names a secret, a [`Template`] is a text with references in it, [`Rules`] decide which names an agent may have, and
//! a [`Redactor`] replaces the values of one attempt in everything that leaves it. This crate does not know where values are kept: it
//! reads no file, no variable and no store, and encrypts nothing.

mod redact;
mod reference;
mod rules;
mod template;

pub use redact::{Pieces, Redactor, VALUE_CHARS_MIN};
pub use reference::{Reference, has_reference, is_name};
pub use rules::{ResolveError, Rules, variable_of};
pub use template::{Template, TemplateError};
