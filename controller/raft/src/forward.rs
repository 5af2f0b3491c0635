//! Proposals and reads on any member: at its own leader loop if it leads, else at the leader that it follows.
//!
//! A change of leadership costs a caller only time: a request without a leader waits for one and is repeated. A
//! proposal whose outcome is unknown is repeated only if its requests have names, because then the state recognises
//! them (B.2, B.3). Nothing is decided here.

pub(crate) mod door;
mod leader;
mod reads;
#[cfg(test)]
mod tests;

use std::time::Duration;

use atlas_env::Env;
use atlas_state::State;
use atlas_types::{Command, Level, Rejection, Request, Seq};
use tokio::sync::{mpsc, oneshot, watch};

pub(crate) use self::leader::LeaderLink;
pub(crate) use self::reads::{Ask, READERS_MAX, ReadIndexer};
use crate::error::{Leadership, ProposeError, ReadError};
use crate::handle::Answers;
use crate::local::Local;
use crate::member::Peer;

/// How long a caller waits for a leader before it gets an error.
const PATIENCE: Duration = Duration::from_secs(5);

/// The pause before a leader that is still the same is asked again, of which up to the half is random.
const PAUSE: Duration = Duration::from_millis(100);

/// How long a follower that knows an answer waits until it has applied what the answer tells of. It is for callers that look
/// at the state of this member next; the answer itself is certain before.
const CATCH_UP_MAX: Duration = Duration::from_secs(1);

/// Brings proposals and reads to the leader. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Forward {
    pub(crate) local: Local,
    pub(crate) applied: watch::Receiver<State>,
    pub(crate) link: LeaderLink,
    pub(crate) reads: mpsc::Sender<Ask>,
    pub(crate) env: Env,
}

impl Forward {
    /// Proposes `requests` at the leader that is elected in time.
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

    /// The state of this member, once it holds everything that was acknowledged before this call.
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
            // A leader without a quorum, or a follower without a leader: waiting longer would not tell the caller more.
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
        let level = self.level_for(patience, &requests).await?;
        let (requests, refused) = within(level, requests);
        if requests.is_empty() {
            return Ok(refused.into_iter().flatten().map(Err).collect());
        }
        let (answers, seq) = tokio::select! {
            biased;
            proposed = self.link.propose(&leader, &requests) => proposed?,
            // Its answer may never come. With names the next leader can be asked.
            () = patience.another_leader(&leader), if repeatable => return Err(ProposeError::Unknown),
        };
        self.wait_applied(seq, CATCH_UP_MAX).await;
        let mut answers = answers.into_iter();
        let in_order = refused.into_iter().map(|refused| refused.map(Err).or_else(|| answers.next()));
        in_order.collect::<Option<Answers>>().ok_or(ProposeError::Unknown)
    }

    /// The cluster's feature level: what this member knows of it, or the leader if that is too low for a request.
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

/// What the cluster's feature level has of these requests, and why each of the others is refused. They are not sent: the leader may run
/// an older program, which could not read them, or would read them without what is new in them.
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

/// Whether asking twice does no more than asking once: a named request is known again, and a history that is synced stays so.
fn is_repeatable(request: &Request) -> bool {
    request.origin.request_id.is_some() || matches!(request.command, Command::SinkAck(_))
}

/// One caller's waiting for a leader.
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

    /// Who leads, as far as this member knows now.
    fn leadership(&mut self) -> Leadership {
        self.leadership.borrow_and_update().clone()
    }

    /// Completes when `leader` is not followed any more.
    async fn another_leader(&mut self, leader: &Peer) {
        let another = |now: &Leadership| match now {
            Leadership::Follower { leader: Some(now) } => now.member != leader.member,
            // Without a known leader, the old one may still answer.
            Leadership::Follower { leader: None } => false,
            Leadership::Leader { .. } | Leadership::Stopped { .. } => true,
        };
        // A member does not announce its end.
        if self.leadership.wait_for(another).await.is_err() {
            std::future::pending().await
        }
    }

    /// Waits until another attempt may go better; false when the time is up.
    async fn wait(&mut self) -> bool {
        let Env { clock, entropy, .. } = &self.forward.env;
        let left = self.until.saturating_sub(clock.monotonic());
        let random = PAUSE / 2 * u32::try_from(entropy.u64() % 1_000).unwrap_or(0) / 1_000;
        tokio::select! {
            biased;
            changed = self.leadership.changed() => changed.is_ok() && !left.is_zero(),
            // The leader may have been away for a moment only.
            () = clock.sleep((PAUSE / 2 + random).min(left)) => !left.is_zero(),
        }
    }
}
