//! Whose sessions are: an id alone opens nothing, because ids are in logs and in the memory of many programs.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use atlas_service::Caller;
use atlas_types::{Namespace, Principal};

/// Who opened a session, and where. Nobody else may use it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Owner {
    principal: Principal,
    namespace: Namespace,
    /// The agent of the server; none at the platform's.
    agent: Option<Arc<str>>,
}

impl Owner {
    /// The owner of what a caller opens at the server of an agent, or of the platform.
    pub(crate) fn new(caller: &Caller, agent: Option<Arc<str>>) -> Self {
        Self { principal: caller.principal.clone(), namespace: caller.namespace.clone(), agent }
    }
}

/// The id of the session of a request, once it is known that the caller opened it.
#[derive(Debug, Clone)]
pub(crate) struct OwnSession(pub(crate) Arc<str>);

/// The owners of sessions, by their ids.
#[derive(Default)]
pub(crate) struct Owners(Mutex<HashMap<Box<str>, Owner>>);

impl Owners {
    fn all(&self) -> MutexGuard<'_, HashMap<Box<str>, Owner>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the owner opened the session.
    pub(crate) fn is(&self, session: &str, owner: &Owner) -> bool {
        self.all().get(session).is_some_and(|known| known == owner)
    }

    /// Notes who opened a session. Those that are not `open` any more are forgotten now and then.
    pub(crate) fn opened(&self, session: &str, owner: Owner, open: impl Fn(&str) -> bool) {
        let mut all = self.all();
        if all.len().is_power_of_two() {
            all.retain(|session, _| open(session));
        }
        all.insert(session.into(), owner);
    }

    pub(crate) fn ended(&self, session: &str) {
        self.all().remove(session);
    }
}

#[cfg(test)]
mod tests {
    use atlas_types::Door;

    use super::*;

    #[test]
    fn sessions_are_known_to_their_owners_only() {
        let caller = Caller::anonymous(Door::Mcp);
        let elsewhere = caller.clone().in_namespace("elsewhere").expect("a namespace");
        let mut somebody = caller.clone();
        somebody.principal = Principal::anonymous();
        let (own, owners) = (Owner::new(&caller, None), Owners::default());
        owners.opened("s", own.clone(), |_| true);
        assert!(owners.is("s", &own));
        for foreign in
            [Owner::new(&elsewhere, None), Owner::new(&somebody, None), Owner::new(&caller, Some("echo".into()))]
        {
            assert!(!owners.is("s", &foreign), "{foreign:?}");
        }
        owners.opened("t", own.clone(), |_| false);
        assert!(!owners.is("s", &own), "what has ended is forgotten");
        owners.ended("t");
        assert!(!owners.is("t", &own));
    }
}
