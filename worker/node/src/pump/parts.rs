//! The parts of a pump, and the pump before its first input.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use atlas_env::Env;
use atlas_slots::{Deltas, Slots, Spool};
use atlas_types::level;
use atlas_wire::limits::TEXT_BYTES_MAX;
use tokio::sync::mpsc;

use super::journals::Journals;
use super::models::Tries;
use super::spawns::Spawns;
use super::tools::Tools;
use super::waits::Waits;
use super::{Identity, News, Pump};
use crate::packages::Packages;
use crate::payloads::Transfers;
use crate::provider::Shared;
use crate::results::Results;

/// The parts from which a [`Pump`] is made.
pub(crate) struct Parts {
    pub(crate) env: Env,
    pub(crate) identity: Identity,
    pub(crate) slots: Slots,
    pub(crate) spool: Spool,
    pub(crate) shared: Shared,
    pub(crate) packages: Packages,
    pub(crate) transfers: Transfers,
    pub(crate) results: Results,
    pub(crate) news: mpsc::Sender<News>,
    pub(crate) drain_timeout: Duration,
    pub(crate) prepare_timeout: Duration,
    pub(crate) stop_grace: Duration,
}

impl Pump {
    pub(crate) fn new(parts: Parts) -> Self {
        let Parts {
            env,
            identity,
            slots,
            spool,
            shared,
            packages,
            transfers,
            results,
            news,
            drain_timeout,
            prepare_timeout,
            stop_grace,
        } = parts;
        Self {
            env,
            identity,
            slots,
            spool,
            shared,
            packages,
            transfers,
            results,
            news,
            drain_timeout,
            prepare_timeout,
            stop_grace,
            stream: None,
            welcomed: false,
            earlier: None,
            attempts: BTreeMap::new(),
            prepared: BTreeMap::new(),
            mailboxes: BTreeMap::new(),
            tasks: BTreeMap::new(),
            spawns: Spawns::default(),
            journals: Journals::default(),
            waits: Waits::default(),
            tools: Tools::default(),
            tries: Tries::default(),
            leader_level: level::FIRST,
            deltas: Deltas::new(TEXT_BYTES_MAX),
            deltas_due: None,
            caused: VecDeque::new(),
            held_back: false,
            lease_end: None,
            drained: false,
        }
    }
}
