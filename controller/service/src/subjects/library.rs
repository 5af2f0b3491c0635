//! Memory and knowledge that agents share.

use atlas_library::Library;

use crate::Service;

impl Service {
    /// What agents know together.
    pub fn library(&self) -> &Library {
        &self.shared.library
    }
}
