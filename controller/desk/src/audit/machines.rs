//! Machines that were turned away at the ports of workers and controllers.
//!
//! These ports refuse inside of handshakes and streams, so nothing waits for the disk here: a record is written right after the
//! refusal.

use atlas_api::catalogue::Entry;
use atlas_audit::{Decision, Record};
use atlas_types::Door;

use super::Audit;
use super::limit::Who;

/// A machine that was turned away.
#[derive(Debug, Clone)]
pub struct TurnedAway {
    /// The port: that of workers or of controllers.
    pub door: Door,
    /// Who its certificate proves it to be, such as `node/w1`; empty if it proves nothing.
    pub proven: String,
    /// Who it claims to be, or what it claims to hold.
    pub claimed: String,
    /// What it wanted to do, such as `openSession`.
    pub verb: &'static str,
    /// Why; none where there is no code for it.
    pub why: Option<Entry>,
}

impl Audit {
    /// Records a machine that was turned away, or counts it if there are too many.
    pub fn turned_away(&self, machine: TurnedAway) {
        let Some(inner) = &self.0 else { return };
        let TurnedAway { door, proven, claimed, verb, why } = machine;
        let who = Who::Machine { door: door.as_str(), proven: proven.clone() };
        let record = Record {
            at_ms: inner.now_ms(),
            principal: if proven.is_empty() { "anonymous".to_owned() } else { proven },
            on_behalf_of: String::new(),
            namespace: String::new(),
            door: door.as_str().to_owned(),
            verb: verb.to_owned(),
            object: claimed,
            decision: Decision::Deny,
            code: why.map(|why| why.code.to_owned()).unwrap_or_default(),
            request_id: String::new(),
            count: 0,
        };
        drop(inner.queue_denial(who, record));
    }
}
