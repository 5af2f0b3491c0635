//! What a node sends to join is never printed.

use std::fmt;

use crate::proto::worker::v1 as pb;

/// The generated `Debug` would show the token.
impl fmt::Debug for pb::EnrollRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EnrollRequest")
    }
}
