//! Calls models: tries, retries and fallbacks.
//!
//! A call tries its targets in their order. A target is tried again after failures that may pass: the provider is asked again after the time
//! that it names, or after a pause that doubles. A call that already showed pieces of an answer starts over with [`Progress::Reset`].
//! Redirects are not followed, so a key reaches no other server. Dropping the future ends the call.

pub mod address;
mod astray;
mod backoff;
mod exchange;
mod fit;
mod gate;

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use atlas_env::Env;
use atlas_http::{Connector, Proxy, Trust, limited};
use atlas_model::{Answer, CallError, CallErrorKind, Capability, Delta, Patch, Purpose, Request};
use bytes::Bytes;
use futures::{FutureExt as _, TryFutureExt as _};
use http_body_util::Full;
use hyper_util::client::legacy;
use tracing::Instrument;

use crate::auth::LoginTokens;
use crate::failure::is_outage;
use crate::local::Local;
use crate::scripted::Script;
use crate::{Endpoint, Event, Protocol};

use exchange::Failed;

pub use gate::{Gate, Pass};

type Pool = legacy::Client<Connector, Full<Bytes>>;

/// Proxy settings with connections of their own. More than a worker's models have.
const POOLS_MAX: usize = 64;
/// The usual [`Http::read_timeout`]: models that reason are silent for a while.
pub const READ_TIMEOUT: Duration = Duration::from_secs(120);
/// Maximum time of a probe.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);
/// What a probe finds that cannot wait for a model of this machine.
const NOT_READY: &str = "the worker still makes the model ready, and goes on with it; calls wait for it";
/// How long an unused connection stays open.
const IDLE_TIMEOUT: Duration = Duration::from_secs(90);

/// A model that can be called.
#[derive(Clone)]
pub struct Target {
    /// Its name in Atlas, for events and errors.
    pub name: String,
    /// The id that the provider knows it by; replaces [`Request::model`].
    pub model: String,
    pub backend: Backend,
    /// What it is for. Other work is not sent.
    pub purpose: Purpose,
    /// Whether its answers may arrive in pieces.
    pub stream: bool,
    /// Maximum time of one try.
    pub timeout: Duration,
    /// Maximum number of tries.
    pub attempts: u32,
    /// Maximum time of all tries and the pauses between them.
    pub deadline: Duration,
    /// Tokens that the model can hold. A request whose estimate reaches it is not sent.
    pub context_window: Option<u64>,
    /// Most tokens of an answer; a request that allows more is reduced.
    pub output_tokens_max: Option<u32>,
    /// What the model can do. None: not declared, so everything is sent.
    pub capabilities: Option<BTreeSet<Capability>>,
    /// Lets each try begin, if a limit is shared with other callers.
    pub gate: Option<Arc<dyn Gate>>,
}

/// What answers for a target.
#[derive(Clone)]
pub enum Backend {
    /// A provider.
    Http(Box<Http>),
    /// This machine. Nothing is sent.
    Local(Local),
    /// A script. Nothing is sent.
    Scripted(Arc<Script>),
}

/// A provider and the way to it.
#[derive(Clone)]
pub struct Http {
    pub protocol: Arc<dyn Protocol>,
    pub endpoint: Endpoint,
    /// Changes of each request, in their order.
    pub patches: Vec<Patch>,
    pub proxy: Proxy,
    /// The tokens that prove who sends a request, if the model has a login.
    pub login: Option<Arc<dyn LoginTokens>>,
    /// Whether plain HTTP to other machines is allowed.
    pub plain: bool,
    /// Maximum time between two pieces of an answer.
    pub read_timeout: Duration,
}

/// What happens during a call.
#[derive(Debug)]
pub enum Progress<'a> {
    /// The next try waited so long for a limit. No other time limit counts it.
    Waited(Duration),
    /// A try begins. `number` counts the tries of the target from 1.
    Try { target: &'a Target, number: u32 },
    /// The provider has no such setting; the request goes without it.
    Dropped { target: &'a Target, setting: &'static str },
    /// A piece of the answer.
    Delta(Delta),
    /// All pieces so far are void, and the call starts over.
    Reset,
    /// A try failed. After the pause the target is tried again; without one it is given up.
    Failed { target: &'a Target, error: &'a CallError, pause: Option<Duration> },
}

/// A call that succeeded.
#[derive(Debug, Clone, PartialEq)]
pub struct CompletedCall {
    pub answer: Answer,
    /// The target that answered, by its place.
    pub target: usize,
    /// Tries of all targets together.
    pub tries: u32,
}

/// A call that failed. Its text is the error of the last target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The last error.
    pub error: CallError,
    /// The last error of each target before, with the target's place.
    pub earlier: Vec<(usize, CallError)>,
    /// The targets, by place, that would fail in the same way once more: the provider says so, its API is elsewhere, or the settings do not fit it.
    pub lasting: BTreeSet<usize>,
}

/// What a probe of a target found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Health {
    /// The provider answered and knows the model.
    Reachable { latency: Duration },
    /// The provider cannot be reached, refuses the key, or has no such model.
    Failed(CallError),
    /// The protocol has no request that would show it.
    Unknown,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl Error for Failure {}

impl Target {
    /// A provider with the usual limits: 300 s a try, 3 tries, 600 s in all.
    pub fn new(
        name: impl Into<String>,
        model: impl Into<String>,
        protocol: Arc<dyn Protocol>,
        endpoint: Endpoint,
    ) -> Self {
        let (patches, proxy, login, plain, read_timeout) = (Vec::new(), Proxy::Direct, None, false, READ_TIMEOUT);
        let http = Http { protocol, endpoint, patches, proxy, login, plain, read_timeout };
        Self {
            name: name.into(),
            model: model.into(),
            backend: Backend::Http(Box::new(http)),
            purpose: Purpose::Chat,
            stream: true,
            timeout: Duration::from_secs(300),
            attempts: 3,
            deadline: Duration::from_secs(600),
            context_window: None,
            output_tokens_max: None,
            capabilities: None,
            gate: None,
        }
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Target").field("name", &self.name).field("model", &self.model).finish_non_exhaustive()
    }
}

/// Calls models. Cheap to clone; clones share connections.
#[derive(Clone)]
pub struct Client {
    env: Env,
    trust: Trust,
    /// One pool of connections for each proxy setting.
    pools: Arc<Mutex<BTreeMap<String, Pool>>>,
    /// Held while an access token is renewed.
    tokens: Arc<tokio::sync::Mutex<()>>,
    /// For how long a call tries a provider again that is down.
    patience: Duration,
}

impl Client {
    /// A client without connections. They are opened when a call needs one.
    pub fn new(env: Env) -> Self {
        Self::trusting(env, Trust::default())
    }

    /// A client that accepts the certificates of more servers than the system does.
    pub fn trusting(env: Env, trust: Trust) -> Self {
        Self { env, trust, pools: Arc::default(), tokens: Arc::default(), patience: Duration::MAX }
    }

    /// The same client with calls that try a provider again which is down for this time at most, and leave the rest to their caller.
    #[must_use]
    pub fn patient_for(&self, patience: Duration) -> Self {
        Self { patience, ..self.clone() }
    }

    /// Calls the first target that answers, within `limit`.
    pub async fn call(
        &self,
        targets: &[Target],
        request: &Request,
        limit: Duration,
        watch: &mut (dyn FnMut(Progress<'_>) + Send),
    ) -> Result<CompletedCall, Failure> {
        let end = self.env.clock.monotonic().saturating_add(limit);
        let mut call = Call { client: self, end, shown: false, tries: 0, down_since: None, watch };
        let (mut errors, mut lasting): (Vec<(usize, CallError)>, _) = (Vec::new(), BTreeSet::new());
        for (place, target) in targets.iter().enumerate() {
            match call.target(target, request).await {
                Ok(answer) => return Ok(CompletedCall { answer, target: place, tries: call.tries }),
                Err(Failed { error, retry }) => {
                    let last = !another_model_may_help(error.kind);
                    if retry == Some(false) {
                        lasting.insert(place);
                    }
                    errors.push((place, error));
                    if last {
                        break;
                    }
                }
            }
        }
        let none = || CallError::new(CallErrorKind::Request, "there is no model to call");
        let error = errors.pop().map_or_else(none, |(_, error)| error);
        Err(Failure { error, earlier: errors, lasting })
    }

    /// Whether a target can be reached and its provider knows the model. It calls no model and takes at most 5 s.
    pub async fn probe(&self, target: &Target) -> Health {
        let clock = &self.env.clock;
        let begin = clock.monotonic();
        let (asked, late) = match &target.backend {
            Backend::Http(http) => (self.ask(http, &target.model).boxed(), "no answer within 5 s"),
            Backend::Local(local) => (local.models.probe(&target.model).map_ok(Some).boxed(), NOT_READY),
            Backend::Scripted(_) => return Health::Unknown,
        };
        match limited(&**clock, PROBE_TIMEOUT, asked).await {
            Some(Ok(Some(()))) => Health::Reachable { latency: clock.monotonic().saturating_sub(begin) },
            Some(Ok(None)) => Health::Unknown,
            Some(Err(error)) => Health::Failed(error),
            None => Health::Failed(CallError::new(CallErrorKind::Timeout, late)),
        }
    }

    fn pool(&self, proxy: &Proxy) -> Result<Pool, Box<dyn Error + Send + Sync>> {
        let key = proxy.key();
        let mut pools = self.pools.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pool) = pools.get(&key) {
            return Ok(pool.clone());
        }
        let connector = Connector::new(&self.env, proxy, &self.trust)?;
        let pool: Pool = atlas_http::pool(connector, IDLE_TIMEOUT);
        if pools.len() >= POOLS_MAX {
            pools.clear();
        }
        pools.insert(key, pool.clone());
        Ok(pool)
    }
}

/// Whether the next target is tried after an error. A request that is wrong or forbidden is so for every model.
fn another_model_may_help(kind: CallErrorKind) -> bool {
    !matches!(kind, CallErrorKind::Request | CallErrorKind::Filtered)
}

/// A call under way.
struct Call<'a> {
    client: &'a Client,
    end: Duration,
    /// Pieces were shown that no answer followed.
    shown: bool,
    tries: u32,
    /// When a provider was first found to be down.
    down_since: Option<Duration>,
    watch: &'a mut (dyn FnMut(Progress<'_>) + Send),
}

impl Call<'_> {
    async fn target(&mut self, target: &Target, request: &Request) -> Result<Answer, Failed> {
        let (request, left_out) = fit::fit(target, request)?;
        for setting in left_out {
            (self.watch)(Progress::Dropped { target, setting });
        }
        let clock = &self.client.env.clock;
        let mut end = self.end.min(clock.monotonic().saturating_add(target.deadline));
        let mut failures = 0;
        loop {
            let entered = gate::enter(target, &request, &**clock).await?;
            let waited = entered.as_ref().map_or(Duration::ZERO, |(_, waited)| *waited);
            (self.end, end) = (self.end.saturating_add(waited), end.saturating_add(waited));
            (self.watch)(Progress::Waited(waited));
            let left = end.saturating_sub(clock.monotonic()).min(target.timeout);
            if left.is_zero() {
                return Err(CallError::new(CallErrorKind::Timeout, "there was no time left for the call").into());
            }
            if std::mem::take(&mut self.shown) {
                (self.watch)(Progress::Reset);
            }
            self.tries = self.tries.saturating_add(1);
            (self.watch)(Progress::Try { target, number: failures + 1 });
            let span =
                tracing::info_span!("call model", target = target.name, model = target.model, number = failures + 1);
            let attempt = self.attempt(target, &request, failures).instrument(span);
            let tried = limited(&**clock, left, attempt).await;
            match (entered, &tried) {
                (Some((pass, _)), Some(Ok(answer))) => pass.end(gate::used(&request, answer)),
                // A provider that says nothing before it fails has used nothing, as far as anyone knows.
                (Some((pass, _)), Some(Err(_))) if !self.shown => pass.end(0),
                _ => {}
            }
            let failed = match tried {
                Some(Ok(answer)) => return Ok(answer),
                Some(Err(failed)) => failed,
                None => {
                    let text = format!("no answer within {} s", left.as_secs_f64());
                    CallError::new(CallErrorKind::Timeout, text).into()
                }
            };
            failures += 1;
            let pause = self.pause(target, &failed, failures, end);
            (self.watch)(Progress::Failed { target, error: &failed.error, pause });
            match pause {
                Some(pause) => clock.sleep(pause).await,
                None => return Err(failed),
            }
        }
    }

    /// The pause before the next try of the target; none if there is no next one.
    fn pause(&mut self, target: &Target, failed: &Failed, failures: u32, end: Duration) -> Option<Duration> {
        let now = self.client.env.clock.monotonic();
        let down_since = is_outage(&failed.error).then(|| *self.down_since.get_or_insert(now));
        let retry = failed.retry.unwrap_or(failed.error.kind.is_transient());
        if !retry || failures >= target.attempts {
            return None;
        }
        let env = &self.client.env;
        let own = backoff::pause(failures - 1, env.entropy.u64());
        let pause = failed.error.retry_after.unwrap_or(own);
        // A pause that lasts until the end is of no use; the next target may answer sooner.
        let until = now.saturating_add(pause);
        let in_patience = down_since.is_none_or(|since| until.saturating_sub(since) <= self.client.patience);
        (until < end && in_patience).then_some(pause)
    }

    async fn attempt(&mut self, target: &Target, request: &Request, tries: u32) -> Result<Answer, Failed> {
        let client = self.client;
        match &target.backend {
            Backend::Scripted(script) => {
                let reply = script.call(request, tries);
                client.env.clock.sleep(reply.delay).await;
                let mut answer = None;
                reply.result?.into_iter().for_each(|event| self.event(event, &mut answer));
                Ok(answer.ok_or_else(crate::failure::cut_off)?)
            }
            Backend::Local(local) => Ok(local.call(request).await?),
            Backend::Http(http) => {
                let prepared = client.prepare(http, request).await?;
                for setting in prepared.dropped().iter().filter(|_| tries == 0) {
                    (self.watch)(Progress::Dropped { target, setting });
                }
                let mut answer = None;
                let mut sink = |event| self.event(event, &mut answer);
                client.exchange(http, request, &prepared, &mut sink).await?;
                Ok(answer.ok_or_else(crate::failure::cut_off)?)
            }
        }
    }

    fn event(&mut self, event: Event, answer: &mut Option<Answer>) {
        match event {
            Event::Delta(delta) => {
                self.shown = true;
                (self.watch)(Progress::Delta(delta));
            }
            Event::Answer(whole) => *answer = Some(*whole),
        }
    }
}
