//! Turns: who works on an object, one after the other.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use atlas_types::ObjectKey;
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

/// The objects that are worked on at this controller. A turn is taken in the order of arrival.
#[derive(Default)]
pub struct Turns(Mutex<HashMap<ObjectKey, Arc<AsyncMutex<()>>>>);

impl Turns {
    /// Waits for the turn at an object, and has it as long as the answer is kept.
    pub async fn take(&self, key: &ObjectKey) -> OwnedMutexGuard<()> {
        let turn = {
            let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            turns.retain(|_, turn| Arc::strong_count(turn) > 1);
            turns.entry(key.clone()).or_default().clone()
        };
        turn.lock_owned().await
    }
}
