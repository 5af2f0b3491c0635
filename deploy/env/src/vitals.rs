//! Vital tasks: when one ends, the process must exit and be started again.

use std::sync::Arc;

use tokio::sync::watch;

/// Whether what is vital still runs. Clones share it.
#[derive(Debug, Clone)]
pub struct Vitals(Arc<watch::Sender<Option<Arc<str>>>>);

impl Default for Vitals {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(None)))
    }
}

impl Vitals {
    /// Completes with the reason when something vital has ended though nobody stopped it.
    pub async fn failed(&self) -> Arc<str> {
        let mut reason = self.0.subscribe();
        match reason.wait_for(Option::is_some).await.as_deref() {
            Ok(Some(reason)) => Arc::clone(reason),
            // The sender lives as long as `self`, and only a reason ends the wait.
            _ => std::future::pending().await,
        }
    }

    /// Tells that `name` has ended. The first reason stands: others follow from it.
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
