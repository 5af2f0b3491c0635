//! The gate: whatever door a request comes through, it names the operation that it stands for, and the row of that operation decides.
//!
//! Who owns what an operation changes is decided where that is read, in `ownership`.

use atlas_api::{OperationId, Ownership};

use crate::{Attempted, Caller, Error, Service};

impl Caller {
    /// Refuses a caller that may not use an operation: it lacks the right in its namespace, or in the cluster for what belongs to no namespace.
    /// One that may change only what it began itself is let in.
    pub fn may(&self, operation: OperationId) -> Result<(), Error> {
        let row = operation.row();
        match row.ownership {
            Ownership::OwnOrControl => self.may_control_own(),
            Ownership::Any if row.in_namespace => self.needs(row.right),
            Ownership::Any => self.needs_in_cluster(row.right),
        }
    }
}

impl Service {
    /// The same, and a denial goes to the audit under the name of the operation.
    pub async fn admit(&self, caller: &Caller, operation: OperationId, object: &str) -> Result<(), Error> {
        let Err(error) = caller.may(operation) else { return Ok(()) };
        self.audit().denied(caller, Attempted { verb: operation.name(), object }, &error).await;
        Err(error)
    }
}
