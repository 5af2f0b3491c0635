//! Vital tasks: when one of them ends, the process must exit and be restarted.

use std::sync::Arc;

use tokio::sync::watch;

/// Reports whether all vital tasks are running. Clones share the state.
#[derive(Debug, Clone)]
pub struct Vitals(Arc<watch::Sender<Option<Arc<str>>>>);

impl Default for Vitals {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(None)))
    }
}

impl Vitals {
    /// Completes with the reason when a vital task has ended without being aborted.
    pub async fn failed(&self) -> Arc<str> {
        let mut reason = self.0.subscribe();
        match reason.wait_for(Option::is_some).await.as_deref() {
            Ok(Some(reason)) => Arc::clone(reason),
            // Not reached: the sender lives as long as `self`, so the wait ends only with a reason.
            _ => std::future::pending().await,
        }
    }

    /// Records that `name` has ended. Only the first reason is kept, because it usually causes the later ones.
    pub(crate) fn ended(&self, name: &str, how: &str) {
        self.0.send_if_modified(|reason| {
            let first = reason.is_none();
            if first {
                *reason = Some(format!("\"{name}\" {how}").into());
            }
            first
        });
    }
}
