//! Proposals and reads on any member: sent to its own leader loop if it leads, otherwise to the leader that it follows.
//!
//! A change of leadership costs a caller only time: a request without a leader waits for one and is repeated. A
//! proposal whose outcome is unknown is repeated only if its requests have names, because then the state recognises
//! them (B.2, B.3). This module makes no decisions.

pub(crate) mod door;
mod leader;
mod reads;
#[cfg(test)]
mod tests;

use std::pin::Pin;
use std::time::Duration;

use atlas_env::Env;
use atlas_state::State;
use atlas_types::{Command, Level, Rejection, Request, Seq};
use tokio::sync::{mpsc, oneshot, watch};

pub(crate) use self::leader::LeaderLink;
pub(crate) use self::reads::{Ask, READERS_MAX, ReadIndexer};
use crate::error::{Leadership, ProposeError, ReadError};
use crate::local::Answers;
use crate::local::Local;
use crate::member::Peer;

/// How long a caller waits for a leader before the call fails.
const PATIENCE: Duration = Duration::from_secs(5);

/// The pause before the same leader is asked again. Up to half of it is random.
const PAUSE: Duration = Duration::from_millis(100);

/// How long a follower waits, before it returns an answer, until it has applied the entries behind that answer. This
/// helps callers that read the state of this member next. The answer itself is already certain.
const CATCH_UP_MAX: Duration = Duration::from_secs(1);

/// Sends proposals and reads to the leader. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Forward {
    pub(crate) local: Local,
    pub(crate) applied: watch::Receiver<State>,
    pub(crate) link: LeaderLink,
    pub(crate) reads: mpsc::Sender<Ask>,
    pub(crate) env: Env,
}

impl Forward {
    /// Proposes `requests` to the current leader, or to the next one if it is elected in time.
    pub(crate) async fn propose(&self, requests: Vec<Request>) -> Result<Answers, ProposeError> {
        let repeatable = requests.iter().all(is_repeatable);
        let mut patience = Patience::new(self);
        let mut unknown = false;
        loop {
            let error = match self.propose_once(&mut patience, requests.clone(), repeatable).await {
                Ok(answers) => return Ok(answers),
                Err(error) => error,
            };
            unknown |= error == ProposeError::Unknown;
            let again = match error {
                ProposeError::NotLeader { .. } => true,
                ProposeError::Unknown => repeatable,
                _ => false,
            };
            if !again || !patience.wait().await {
                return Err(if unknown { ProposeError::Unknown } else { error });
            }
        }
    }

    /// Waits until this member has applied everything that was acknowledged before this call, and returns its state.
    pub(crate) async fn read(&self) -> Result<State, ReadError> {
        let mut patience = Patience::new(self);
        let reading = async {
            loop {
                match self.read_once(&mut patience).await {
                    Err(ReadError::NotLeader { .. }) if patience.wait().await => {}
                    answer => return answer,
                }
            }
        };
        tokio::select! {
            biased;
            answer = reading => answer,
            // The leader has no quorum, or this follower has no leader. Waiting longer would not help the caller.
            () = self.env.clock.sleep(PATIENCE) => Err(ReadError::NotLeader { leader: None }),
        }
    }

    async fn propose_once(
        &self,
        patience: &mut Patience<'_>,
        requests: Vec<Request>,
        repeatable: bool,
    ) -> Result<Answers, ProposeError> {
        let leader = match patience.leadership() {
            Leadership::Leader { .. } => return self.local.propose(requests).await,
            Leadership::Stopped { reason } => return Err(ProposeError::Stopped { reason }),
            Leadership::Follower { leader: None } => return Err(ProposeError::NotLeader { leader: None }),
            Leadership::Follower { leader: Some(leader) } => leader,
        };
        self.propose_at(leader, patience, requests, repeatable).await
    }

    /// Proposes at another member. The future is boxed, so that the client of gRPC is compiled here, and not again in each crate that proposes.
    fn propose_at<'a>(
        &'a self,
        leader: Peer,
        patience: &'a mut Patience<'_>,
        requests: Vec<Request>,
        repeatable: bool,
    ) -> Pin<Box<dyn Future<Output = Result<Answers, ProposeError>> + Send + 'a>> {
        Box::pin(async move {
            let level = self.level_for(patience, &requests).await?;
            let (requests, refused) = within(level, requests);
            if requests.is_empty() {
                return Ok(refused.into_iter().flatten().map(Err).collect());
            }
            let (answers, seq) = tokio::select! {
                biased;
                proposed = self.link.propose(&leader, &requests) => proposed?,
                // The old leader may never answer. Named requests can safely be repeated at the next leader.
                () = patience.another_leader(&leader), if repeatable => return Err(ProposeError::Unknown),
            };
            self.wait_applied(seq, CATCH_UP_MAX).await;
            let mut answers = answers.into_iter();
            let in_order = refused.into_iter().map(|refused| refused.map(Err).or_else(|| answers.next()));
            in_order.collect::<Option<Answers>>().ok_or(ProposeError::Unknown)
        })
    }

    /// The cluster's feature level as this member knows it, or as the leader knows it if that is too low for a request.
    async fn level_for(&self, patience: &mut Patience<'_>, requests: &[Request]) -> Result<Level, ProposeError> {
        let level = self.applied.borrow().level();
        if requests.iter().all(|request| request.command.level() <= level) {
            return Ok(level);
        }
        match self.read_once(patience).await {
            Ok(state) => Ok(state.level()),
            Err(ReadError::NotLeader { leader }) => Err(ProposeError::NotLeader { leader }),
            Err(ReadError::NoSession) => Err(ProposeError::NotLeader { leader: None }),
            Err(ReadError::Overloaded) => Err(ProposeError::Overloaded),
            Err(ReadError::Stopped { reason }) => Err(ProposeError::Stopped { reason }),
        }
    }

    async fn read_once(&self, patience: &mut Patience<'_>) -> Result<State, ReadError> {
        match patience.leadership() {
            Leadership::Leader { .. } => return self.local.read().await,
            Leadership::Stopped { reason } => return Err(ReadError::Stopped { reason }),
            Leadership::Follower { leader: None } => return Err(ReadError::NotLeader { leader: None }),
            Leadership::Follower { leader: Some(_) } => {}
        }
        let (ask, answered) = oneshot::channel();
        self.reads.try_send(ask).map_err(|_| ReadError::Overloaded)?;
        let seq = answered.await.unwrap_or(Err(ReadError::NotLeader { leader: None }))?;
        let mut applied = self.applied.clone();
        let state = applied.wait_for(|state| state.seq() >= seq).await;
        state.map(|state| state.clone()).map_err(|_| ReadError::NotLeader { leader: None })
    }

    /// Waits until this member has applied `seq` entries; false if that takes longer than `max`.
    pub(crate) async fn wait_applied(&self, seq: Seq, max: Duration) -> bool {
        let mut applied = self.applied.clone();
        tokio::select! {
            biased;
            reached = applied.wait_for(|state| state.seq() >= seq) => reached.is_ok(),
            () = self.env.clock.sleep(max) => false,
        }
    }
}

/// Splits `requests` into those that the cluster's feature level supports and refusals of the others. Unsupported
/// requests are not sent, because an older leader could not decode them, or would ignore their new fields.
fn within(level: Level, requests: Vec<Request>) -> (Vec<Request>, Vec<Option<Rejection>>) {
    let mut fitting = Vec::with_capacity(requests.len());
    let refused = requests.into_iter().map(|request| {
        let needed = request.command.level();
        if needed > level {
            return Some(Rejection::LevelTooLow { needed });
        }
        fitting.push(request);
        None
    });
    let refused = refused.collect();
    (fitting, refused)
}

/// True if repeating the request is harmless. The state recognises a named request, and acknowledging the history twice
/// changes nothing.
fn is_repeatable(request: &Request) -> bool {
    request.origin.request_id.is_some() || matches!(request.command, Command::SinkAck(_))
}

/// The waiting of one caller for a leader.
struct Patience<'f> {
    forward: &'f Forward,
    leadership: watch::Receiver<Leadership>,
    until: Duration,
}

impl<'f> Patience<'f> {
    fn new(forward: &'f Forward) -> Self {
        let until = forward.env.clock.monotonic() + PATIENCE;
        Self { forward, leadership: forward.local.leadership.clone(), until }
    }

    /// The leadership as this member currently knows it.
    fn leadership(&mut self) -> Leadership {
        self.leadership.borrow_and_update().clone()
    }

    /// Completes when this member no longer follows `leader`.
    async fn another_leader(&mut self, leader: &Peer) {
        let another = |now: &Leadership| match now {
            Leadership::Follower { leader: Some(now) } => now.member != leader.member,
            // Without a known leader, the old one may still answer.
            Leadership::Follower { leader: None } => false,
            Leadership::Leader { .. } | Leadership::Stopped { .. } => true,
        };
        // A member that stops does not announce it.
        if self.leadership.wait_for(another).await.is_err() {
            std::future::pending().await
        }
    }

    /// Waits until another attempt may succeed. False when the time is up.
    async fn wait(&mut self) -> bool {
        let Env { clock, entropy, .. } = &self.forward.env;
        let left = self.until.saturating_sub(clock.monotonic());
        let random = PAUSE / 2 * u32::try_from(entropy.u64() % 1_000).unwrap_or(0) / 1_000;
        tokio::select! {
            biased;
            changed = self.leadership.changed() => changed.is_ok() && !left.is_zero(),
            // The leader may have been unreachable for a moment only.
            () = clock.sleep((PAUSE / 2 + random).min(left)) => !left.is_zero(),
        }
    }
}
