//! The audit trail.

use atlas_audit::Receipt;
use atlas_trail::{AuditQuery, MergedAudit};
use atlas_types::JobId;

use crate::{Audit, Caller, Consistency, Error, Service};

impl Service {
    /// Who did what through this controller.
    pub fn audit(&self) -> &Audit {
        &self.shared.audit
    }

    /// Records of all controllers, by time. A controller that does not answer is named, and keeps its position.
    pub async fn audit_of_all(&self, query: AuditQuery) -> Result<MergedAudit, Error> {
        atlas_trail::read(&self.shared, query).await
    }

    /// The receipt of a job that has ended. Where an audit is kept, a record in it says which one was given to whom.
    pub async fn receipt(&self, caller: &Caller, id: JobId, consistency: Consistency) -> Result<Receipt, Error> {
        atlas_trail::receipt(&self.shared, caller, id, consistency).await
    }
}
