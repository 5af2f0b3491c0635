//! Limits of models of the namespace, which hold for the whole cluster: the leader lets each try of a call begin.

use std::sync::Arc;

use atlas_llm::client::{Gate, Pass};
use atlas_model::{CallError, CallErrorKind, Limits};
use futures::future::{BoxFuture, FutureExt as _};

use super::stored::StoredModel;
use crate::attempt::Work;
use crate::provider::Shared;
use crate::tries::{LimitedModel, Try, TryDoor};

/// What lets tries of a model begin; none if nothing limits it.
pub(super) fn of(model: &StoredModel, work: &Work, shared: &Shared) -> Option<Arc<dyn Gate>> {
    if model.spec.limits == Limits::default() {
        return None;
    }
    let assignment = &work.assignment;
    let (namespace, name) = (assignment.namespace.clone(), model.name.clone());
    let model = LimitedModel { token: assignment.token, job: assignment.job, namespace, name };
    Some(Arc::new(ClusterGate { door: shared.tries.clone(), model }))
}

struct ClusterGate {
    door: TryDoor,
    model: LimitedModel,
}

impl Gate for ClusterGate {
    fn enter(&self, tokens: u64) -> BoxFuture<'_, Result<Box<dyn Pass>, CallError>> {
        async move {
            let begun = self.door.begin(self.model.clone(), tokens).await;
            // No other model is asked for an attempt that is being stopped.
            let stopped = || CallError::new(CallErrorKind::Request, "the attempt was stopped");
            Ok(Box::new(Begun(begun.ok_or_else(stopped)?)) as Box<dyn Pass>)
        }
        .boxed()
    }
}

struct Begun(Try);

impl Pass for Begun {
    fn end(self: Box<Self>, tokens: u64) {
        self.0.end(tokens);
    }
}
