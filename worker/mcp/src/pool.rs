//! The connections of one worker.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use atlas_env::Env;
use serde_json::{Map, Value};

use crate::bounds::{CONNECTIONS_MAX, PAUSE, PAUSE_MAX, PROBE_MAX};
use crate::connection::{Connection, Own};
use crate::error::{McpError, McpErrorKind};
use crate::network::Network;
use crate::outcome::CallResult;
use crate::program::Launcher;
use crate::target::{Key, Target};
use crate::tools::Listing;

/// How often idle connections are looked for.
const SWEEP: Duration = Duration::from_secs(1);

/// Connections to MCP servers. Clones share them.
#[derive(Clone)]
pub struct Pool(Arc<Inner>);

struct Inner {
    env: Env,
    launcher: Arc<dyn Launcher>,
    network: Network,
    places: Mutex<BTreeMap<Key, Arc<Place>>>,
    /// Whether a task looks for idle connections.
    sweeps: AtomicBool,
}

/// Where the connection to one server is.
struct Place {
    connection: Own,
    idle: Duration,
    failures: Mutex<Failures>,
}

/// What went wrong since the last success.
#[derive(Default)]
struct Failures {
    count: u32,
    /// Monotonic time before which nobody tries again.
    until: Duration,
    last: Option<McpError>,
}

impl Pool {
    /// A pool without connections.
    pub fn new(env: Env, launcher: Arc<dyn Launcher>, network: Network) -> Self {
        let sweeps = AtomicBool::new(false);
        Self(Arc::new(Inner { env, launcher, network, places: Mutex::default(), sweeps }))
    }

    /// The tools of a server, all of them. The list may be a minute old, less if the server is pinned.
    pub async fn tools(&self, target: &Target) -> Result<Arc<Listing>, McpError> {
        self.tools_as(target, false).await
    }

    /// The tools of a server as it lists them now.
    pub async fn tools_now(&self, target: &Target) -> Result<Arc<Listing>, McpError> {
        self.tools_as(target, true).await
    }

    async fn tools_as(&self, target: &Target, now: bool) -> Result<Arc<Listing>, McpError> {
        loop {
            let entry = target.enter().await?;
            let mut end = self.list(entry.target(), now).await;
            if is_forgotten(&end) {
                end = self.list(entry.target(), now).await;
            }
            if !entry.is_outdated(&end) {
                return end;
            }
        }
    }

    /// Calls a tool. After `limit` the call ends, and the server is told. A tool of a pinned server is called only if it is the accepted
    /// one, on the same connection on which it was compared.
    pub async fn call(
        &self,
        target: &Target,
        tool: &str,
        arguments: Map<String, Value>,
        limit: Duration,
    ) -> Result<CallResult, McpError> {
        let clock = &self.0.env.clock;
        let until = clock.monotonic() + limit;
        let left = || until.saturating_sub(clock.monotonic());
        loop {
            let entry = target.enter().await?;
            let mut end = self.call_as(entry.target(), tool, arguments.clone(), left()).await;
            // The server did nothing, so the call is made once more: in a new session, in the time that is left.
            if is_forgotten(&end) {
                end = self.call_as(entry.target(), tool, arguments.clone(), left()).await;
            }
            if !entry.is_outdated(&end) {
                return end;
            }
        }
    }

    /// Whether a server answers: a handshake and its end, on a connection of its own, within three seconds.
    pub async fn probe(&self, target: &Target) -> Result<(), McpError> {
        loop {
            let entry = target.enter().await?;
            let target = entry.target();
            let late = || McpError::timeout(&target.name, "answer a probe", PROBE_MAX);
            let end = self.within(PROBE_MAX, self.0.open(target), late).await;
            if entry.is_outdated(&end) {
                continue;
            }
            end?.close().await;
            return Ok(());
        }
    }

    async fn list(&self, target: &Target, now: bool) -> Result<Arc<Listing>, McpError> {
        let limit = Duration::from_secs(target.spec.start_timeout_seconds.into());
        let env = &self.0.env;
        let asked = env.clock.monotonic();
        let listed = async {
            let connection = self.connection(target).await?;
            let since = if now { asked } else { connection.fresh_since(env, target) };
            connection.tools(env, target, since).await
        };
        self.within(limit, listed, || McpError::timeout(&target.name, "list its tools", limit)).await
    }

    async fn call_as(
        &self,
        target: &Target,
        tool: &str,
        arguments: Map<String, Value>,
        limit: Duration,
    ) -> Result<CallResult, McpError> {
        let start = Duration::from_secs(target.spec.start_timeout_seconds.into()).min(limit);
        let connection = self.connection(target);
        let connection =
            self.within(start, connection, || McpError::timeout(&target.name, "open a connection", start)).await?;
        let call = async {
            connection.admit(&self.0.env, target, tool).await?;
            connection.call(&self.0.env, target, tool, arguments).await
        };
        self.within(limit, call, || McpError::timeout(&target.name, &format!("answer the call of {tool}"), limit)).await
    }

    /// How many connections are open.
    pub fn open(&self) -> usize {
        let places = self.0.places();
        places.values().filter(|place| place.connection.try_lock().is_ok_and(|open| open.is_some())).count()
    }

    /// Closes all connections that nobody uses.
    pub async fn close_idle(&self) {
        self.0.sweep(|_| Duration::ZERO).await;
    }

    async fn within<T>(
        &self,
        limit: Duration,
        work: impl Future<Output = Result<T, McpError>>,
        late: impl FnOnce() -> McpError,
    ) -> Result<T, McpError> {
        tokio::select! {
            biased;
            done = work => done,
            () = self.0.env.clock.sleep(limit) => Err(late()),
        }
    }

    /// The connection of a target: its own, the shared one, or a new one.
    async fn connection(&self, target: &Target) -> Result<Arc<Connection>, McpError> {
        if let Some(own) = &target.own {
            let mut open = own.lock().await;
            return match open.as_ref().filter(|connection| connection.is_open()) {
                Some(connection) => Ok(Arc::clone(connection)),
                None => Ok(Arc::clone(open.insert(Arc::new(self.0.open(target).await?)))),
            };
        }
        let place = self.place(target)?;
        // One opens, and the others wait for it.
        let mut open = place.connection.lock().await;
        if let Some(connection) = open.as_ref().filter(|connection| connection.is_open()) {
            return Ok(Arc::clone(connection));
        }
        *open = None;
        place.may_try(&target.name, self.0.env.clock.monotonic())?;
        match self.0.open(target).await {
            Ok(connection) => {
                place.succeeded();
                Ok(Arc::clone(open.insert(Arc::new(connection))))
            }
            Err(error) => {
                place.failed(&error, self.0.env.clock.monotonic());
                Err(error)
            }
        }
    }

    fn place(&self, target: &Target) -> Result<Arc<Place>, McpError> {
        let place = {
            let mut places = self.0.places();
            if let Some(place) = places.get(&target.key) {
                return Ok(Arc::clone(place));
            }
            if places.len() >= CONNECTIONS_MAX {
                let text = format!(
                    "this worker has {CONNECTIONS_MAX} connections to MCP servers, and none for {}",
                    target.name
                );
                return Err(McpError::new(McpErrorKind::Unreachable, text));
            }
            let idle = Duration::from_secs(target.spec.idle_timeout_seconds.into());
            let place = Arc::new(Place { connection: Own::default(), idle, failures: Mutex::default() });
            places.insert(target.key, Arc::clone(&place));
            place
        };
        self.begin_sweeps();
        Ok(place)
    }

    fn begin_sweeps(&self) {
        if self.0.sweeps.swap(true, Ordering::Relaxed) {
            return;
        }
        let (inner, clock) = (Arc::downgrade(&self.0), Arc::clone(&self.0.env.clock));
        self.0.env.spawn("mcp-idle", async move {
            loop {
                clock.sleep(SWEEP).await;
                let Some(inner) = Weak::upgrade(&inner) else { return };
                inner.sweep(|place| place.idle).await;
            }
        });
    }
}

fn is_forgotten<T>(end: &Result<T, McpError>) -> bool {
    matches!(end, Err(error) if error.kind == McpErrorKind::Session)
}

impl Inner {
    fn places(&self) -> MutexGuard<'_, BTreeMap<Key, Arc<Place>>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn open(&self, target: &Target) -> Result<Connection, McpError> {
        Connection::open(&self.env, &self.network, target, &*self.launcher).await
    }

    /// Closes connections that were not used for their time, and forgets places without one.
    async fn sweep(&self, idle: impl Fn(&Place) -> Duration) {
        let now = self.env.clock.monotonic();
        let mut closing = Vec::new();
        {
            let mut places = self.places();
            places.retain(|_, place| {
                let Ok(mut open) = place.connection.try_lock() else { return true };
                let is_over = |connection: &Arc<Connection>| {
                    let since = connection.idle_since();
                    !connection.is_open() || since.is_some_and(|since| now.saturating_sub(since) >= idle(place))
                };
                if open.as_ref().is_some_and(is_over) {
                    closing.extend(open.take().and_then(Arc::into_inner));
                }
                open.is_some() || place.is_waited_for(now)
            });
        }
        for connection in closing {
            connection.close().await;
        }
    }
}

impl Place {
    fn failures(&self) -> MutexGuard<'_, Failures> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the pause after a failure is still needed.
    fn is_waited_for(&self, now: Duration) -> bool {
        let failures = self.failures();
        failures.count > 0 && now < failures.until + PAUSE_MAX
    }

    /// Refuses a try during the pause after a failure, with the reason of that failure.
    fn may_try(&self, server: &str, now: Duration) -> Result<(), McpError> {
        let failures = self.failures();
        match &failures.last {
            Some(last) if now < failures.until => {
                let left = (failures.until - now).as_secs_f64();
                let text = format!("{}; {server} is tried again in {left:.1} s", last.text);
                Err(McpError::new(last.kind, text))
            }
            _ => Ok(()),
        }
    }

    fn succeeded(&self) {
        *self.failures() = Failures::default();
    }

    fn failed(&self, error: &McpError, now: Duration) {
        let mut failures = self.failures();
        failures.until = now + PAUSE.saturating_mul(1 << failures.count.min(16)).min(PAUSE_MAX);
        failures.count += 1;
        failures.last = Some(error.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_grows_with_each_failure_and_ends_with_a_success() {
        let place = Place { connection: Own::default(), idle: PAUSE, failures: Mutex::default() };
        let error = McpError::new(McpErrorKind::Unreachable, "down");
        let at = Duration::from_secs;
        assert!(place.may_try("s", at(0)).is_ok());
        place.failed(&error, at(0));
        let told = place.may_try("s", at(0)).expect_err("too early");
        assert_eq!((told.kind, told.text.as_str()), (McpErrorKind::Unreachable, "down; s is tried again in 0.5 s"));
        assert!(place.may_try("s", at(1)).is_ok());
        (0..20).for_each(|_| place.failed(&error, at(1)));
        assert!(place.may_try("s", at(60)).is_err() && place.may_try("s", at(61)).is_ok());
        place.succeeded();
        assert!(place.may_try("s", at(1)).is_ok() && !place.is_waited_for(at(1)));
    }
}
