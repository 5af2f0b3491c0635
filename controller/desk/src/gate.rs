//! The gate: whatever door a request comes through, it names the operation that it stands for, and the row of that operation decides. What is
//! done with an object of a kind is decided by the row of that kind.
//!
//! Who owns what an operation changes is decided where that is read, in `ownership`.

use atlas_access::Right;
use atlas_api::{OperationId, Ownership};
use atlas_objects::{Kind, Scope};

use crate::ownership::may_control_own;
use crate::{Attempted, Caller, Desk, Error};

impl Caller {
    /// Refuses a caller that may not use an operation: it lacks the right in its namespace, or in the cluster for what belongs to no namespace.
    /// One that may change only what it began itself is let in.
    pub fn may(&self, operation: OperationId) -> Result<(), Error> {
        let row = operation.row();
        match row.ownership {
            Ownership::OwnOrControl => may_control_own(self),
            Ownership::Any if row.in_namespace => self.needs(row.right),
            Ownership::Any => self.needs_in_cluster(row.right),
        }
    }
}

/// Refuses a caller that may not read objects of a kind. Tokens, roles, bindings and policies are shown to those who may change them.
pub fn may_read_objects(caller: &Caller, kind: &dyn Kind) -> Result<(), Error> {
    match right(kind) {
        Right::AccessManage => caller.needs_in_cluster(Right::AccessManage),
        _ => caller.needs(Right::ObjectsRead),
    }
}

/// Refuses a caller that may not write objects of a kind. What configures the whole cluster needs its right in the cluster.
pub fn may_write_objects(caller: &Caller, kind: &dyn Kind) -> Result<(), Error> {
    match kind.scope() {
        Scope::Namespace => caller.needs(right(kind)),
        Scope::Cluster => caller.needs_in_cluster(right(kind)),
    }
}

fn right(kind: &dyn Kind) -> Right {
    // A test knows that each kind names a right.
    Right::of(kind.right()).unwrap_or(Right::AccessManage)
}

impl Desk {
    /// Like [`Caller::may`], and a denial goes to the audit under the name of the operation.
    pub async fn admit(&self, caller: &Caller, operation: OperationId, object: &str) -> Result<(), Error> {
        let Err(error) = caller.may(operation) else { return Ok(()) };
        self.audit.denied(caller, Attempted { verb: operation.name(), object }, &error).await;
        Err(error)
    }
}
