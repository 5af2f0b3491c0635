//! What a controller does for its own data.

use std::path::PathBuf;

use crate::{Backup, Completeness, Error, Service};

impl Service {
    /// How complete this controller's data is. Missing artifacts are fetched first, so this call may take long.
    pub async fn completeness(&self) -> Completeness {
        self.shared.upkeep.completeness().await
    }

    /// Collects a backup on any controller, and writes the matching history to a new file.
    pub async fn backup(&self, history_copy: PathBuf) -> Result<Backup, Error> {
        atlas_upkeep::backup(&self.shared, history_copy).await
    }
}
