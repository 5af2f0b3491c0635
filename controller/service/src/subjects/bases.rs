//! Document bases.

use atlas_bases::Bases;

use crate::Service;

impl Service {
    /// The document bases.
    pub fn bases(&self) -> &Bases {
        &self.shared.bases
    }
}
