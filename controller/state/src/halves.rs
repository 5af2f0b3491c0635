//! Two halves of a long computation on two threads. The results depend on the arguments alone, as if one had been
//! computed after the other.

use std::panic::resume_unwind;
use std::thread::{Builder, scope};

/// Computes two values, beside each other if `apart`.
pub(crate) fn both<A: Send, B>(apart: bool, one: impl Fn() -> A + Sync, other: impl FnOnce() -> B) -> (A, B) {
    if !apart {
        return (one(), other());
    }
    scope(|scope| {
        let Ok(beside) = Builder::new().name("load-state".to_owned()).spawn_scoped(scope, &one) else {
            return (one(), other());
        };
        let other = other();
        (beside.join().unwrap_or_else(|panic| resume_unwind(panic)), other)
    })
}
