//! Machines that a port turns away, on their way to the audit.

use std::sync::{Arc, OnceLock};

use atlas_api::catalogue::Entry;
use atlas_service::{Audit, TurnedAway};
use atlas_tls::Subject;
use atlas_types::Door;

/// Records who is turned away at one port. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Watch {
    door: Door,
    /// Known once the audit is open, which is after the port is bound.
    audit: Arc<OnceLock<Audit>>,
}

impl Watch {
    pub(crate) fn new(door: Door) -> Self {
        Self { door, audit: Arc::default() }
    }

    /// From now on records are written.
    pub(crate) fn record_in(&self, audit: &Audit) {
        // There is one audit.
        let _ = self.audit.set(audit.clone());
    }

    pub(crate) fn turned_away(
        &self,
        proven: Option<&Subject>,
        claimed: String,
        verb: &'static str,
        why: Option<Entry>,
    ) {
        if let Some(audit) = self.audit.get() {
            audit.turned_away(TurnedAway {
                door: self.door,
                proven: proven.map(named).unwrap_or_default(),
                claimed,
                verb,
                why,
            });
        }
    }

    /// The same for handshakes.
    pub(crate) fn of_handshakes(&self) -> atlas_tls::Watch {
        let watch = self.clone();
        atlas_tls::Watch::new(move |refused: atlas_tls::Refused| {
            let claimed = refused.claimed.as_ref().map(named).unwrap_or_default();
            watch.turned_away(refused.claimed.as_ref().filter(|_| refused.proven), claimed, "connect", None);
        })
    }
}

/// The name of a machine in records.
pub(crate) fn named(subject: &Subject) -> String {
    match subject {
        Subject::Node(node) => format!("node/{node}"),
        Subject::Controller(Some(member)) => format!("controller/{member}"),
        Subject::Controller(None) => "controller".to_owned(),
    }
}
