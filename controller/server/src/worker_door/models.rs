//! Tries of calls of limited models: what workers say about them, and the task that lets them begin.

use std::sync::Arc;
use std::time::Duration;

use atlas_limiter::{Ask, Grant, Held, ModelKey, Past};
use atlas_service::Service;
use atlas_wire::session::{ModelAsk, ModelUse, ModelUses, PastModelUse, ToWorker};
use tonic::Status;

use super::Door;
use super::hub::{Connection, Hub};

/// The most tries of all workers that wait or are under way.
const TRIES_MAX: usize = 262_144;

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
        let (grants, next) = service.grant_models();
        let connections = self.connections();
        for Grant { session, number } in grants {
            // On another stream the worker has said meanwhile that it does not have it.
            if let Some(connection) = connections.get(&session.node).filter(|found| found.session() == session) {
                connection.out.send(ToWorker::ModelGranted { number });
            }
        }
        next
    }
}

/// A try asks whether it may begin. One of a lease that has ended gets no answer: its worker is told of the end.
pub(super) fn ask(service: &Service, connection: &Connection, ask: ModelAsk) -> Result<(), Status> {
    let ModelAsk { number, job, token, model, tokens } = ask;
    let Some(namespace) = connection.leases().held(job, token).map(|held| held.namespace.clone()) else {
        return Ok(());
    };
    let ask = Ask { number, job, model: ModelKey { namespace, model }, tokens };
    let is_full = service.model_limits().change(|limiter| {
        let is_full = limiter.tries() >= TRIES_MAX;
        if !is_full {
            limiter.ask(&connection.session(), ask);
        }
        is_full
    });
    if is_full {
        return Err(Status::resource_exhausted(format!("more than {TRIES_MAX} calls wait for limited models")));
    }
    Ok(())
}

/// A try has ended, or does not want to begin any more.
pub(super) fn done(service: &Service, connection: &Connection, number: u64, tokens: Option<u64>) {
    service.model_limits().change(|limiter| limiter.done(&connection.session(), number, tokens));
}

/// A worker says what its tries use.
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
