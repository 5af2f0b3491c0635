//! Who may do what. A principal is granted roles, each in one namespace or in the whole cluster; a role is a set of rights; an
//! operation needs one right. What is not granted is denied.
//!
//! Pure: where tokens and grants are stored, and which right an operation needs, is decided elsewhere.

mod access;
mod right;
mod role;
mod token;

pub use access::{Access, Attributes, Place};
pub use right::{Right, Rights};
pub use role::{BUILT_IN, built_in};
pub use token::{ROOT, SECRET_DIGITS, is_name, parts, token};
