//! Limits of models: the tries of all workers, as the leader knows them.

use std::sync::{Mutex, MutexGuard, PoisonError};

use atlas_limiter::Limiter;
use tokio::sync::Notify;

/// The tries of all workers.
#[derive(Debug, Default)]
pub struct ModelLimits {
    limiter: Mutex<Limiter>,
    changed: Notify,
}

impl ModelLimits {
    /// Changes what is known of the tries. What may begin now is looked at afterwards.
    pub fn change<T>(&self, change: impl FnOnce(&mut Limiter) -> T) -> T {
        let changed = change(&mut self.limiter());
        self.look();
        changed
    }

    /// Another try may begin, for example because a limit was changed.
    pub fn look(&self) {
        self.changed.notify_one();
    }

    /// Waits for a change since the last time.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }

    pub(crate) fn limiter(&self) -> MutexGuard<'_, Limiter> {
        self.limiter.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
