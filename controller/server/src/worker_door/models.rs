//! Tries of calls of limited models: what workers say about them, and the task that lets them begin.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use atlas_limiter::{Ask, Grant, Held, ModelKey, Past, Session};
use atlas_service::Service;
use atlas_wire::limits::MODEL_USES_MAX;
use atlas_wire::session::{ModelAsk, ModelUse, ModelUses, PastModelUse, ToWorker};

use super::Door;
use super::hub::{Connection, Hub};

/// When grants for which a stream had no room are looked at again.
const ROOM_PAUSE: Duration = Duration::from_millis(20);

/// Lets tries begin, as the limits of their models allow.
pub(super) async fn grant(door: Arc<Door>) {
    loop {
        let next = door.hub.grant_models(&door.service);
        let changed = door.service.model_limits().changed();
        let clock = &door.env.clock;
        match next.map(|at| at.saturating_sub(clock.monotonic())) {
            Some(pause) => {
                tokio::select! {
                    () = changed => {}
                    () = clock.sleep(pause) => {}
                }
            }
            None => changed.await,
        }
    }
}

impl Hub {
    /// Tells workers which tries begin now. Returns when to look again if nothing changes before.
    fn grant_models(&self, service: &Service) -> Option<Duration> {
        let mut room: BTreeMap<Session, usize> = BTreeMap::new();
        room.extend(self.connections().values().map(|found| (found.session(), found.out.room())));
        let mut is_full = false;
        let (grants, next) = service.grant_models(&mut |session| match room.get_mut(session) {
            Some(0) => {
                is_full = true;
                false
            }
            Some(left) => {
                *left -= 1;
                true
            }
            // It has ended, or this round does not know it yet.
            None => false,
        });
        let untaken = self.send_grants(grants);
        if !untaken.is_empty() {
            service.model_limits().change(|limiter| {
                untaken.iter().for_each(|Grant { session, number }| limiter.done(session, *number, None));
            });
        }
        let again = is_full.then(|| self.now().saturating_add(ROOM_PAUSE));
        next.into_iter().chain(again).min()
    }

    /// Returns those whose streams have ended meanwhile: they have not begun.
    fn send_grants(&self, grants: Vec<Grant>) -> Vec<Grant> {
        let connections = self.connections();
        let mut untaken = Vec::new();
        for grant in grants {
            match connections.get(&grant.session.node).filter(|found| found.session() == grant.session) {
                Some(connection) => connection.out.send(ToWorker::ModelGranted { number: grant.number }),
                None => untaken.push(grant),
            }
        }
        untaken
    }
}

/// A try asks whether it may begin. One of a lease that has ended gets no answer: its worker is told of the end. Neither do those of a
/// worker with too many tries: none sends them.
pub(super) fn ask(service: &Service, connection: &Connection, ask: ModelAsk) {
    let ModelAsk { number, job, token, model, tokens } = ask;
    let Some(namespace) = connection.leases().held(job, token).map(|held| held.namespace.clone()) else {
        return;
    };
    let ask = Ask { number, job, model: ModelKey { namespace, model }, tokens };
    let session = connection.session();
    service.model_limits().change(|limiter| {
        if limiter.tries(&session) < MODEL_USES_MAX {
            limiter.ask(&session, ask);
        }
    });
}

/// A try has ended, or does not want to begin any more.
pub(super) fn done(service: &Service, connection: &Connection, number: u64, tokens: Option<u64>) {
    service.model_limits().change(|limiter| limiter.done(&connection.session(), number, tokens));
}

/// A worker says what its tries use. A frame has no more than `MODEL_USES_MAX` of them.
pub(super) fn announce(door: &Door, connection: &Connection, uses: ModelUses) {
    let held = uses.held.into_iter().map(|ModelUse { number, job, namespace, model, tokens, age }| Held {
        ask: Ask { number, job, model: ModelKey { namespace, model }, tokens },
        age: age.as_duration(),
    });
    let past = uses.past.into_iter().map(|PastModelUse { namespace, model, age, requests, tokens }| Past {
        model: ModelKey { namespace, model },
        age: age.as_duration(),
        requests,
        tokens,
    });
    let (held, past, now) = (held.collect(), past.collect(), door.env.clock.monotonic());
    door.service.model_limits().change(|limiter| limiter.announce(&connection.session(), held, past, now));
}
