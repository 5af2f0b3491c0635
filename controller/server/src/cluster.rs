//! The cluster itself: its members, joining, and changes by operators.
//!
//! Only the leader changes the group; any controller accepts such requests and forwards them. A controller that joins
//! becomes a learner at once, and a voter once it is complete, which a leader task decides ([`duty`]).

pub(crate) mod duty;
mod join;
mod remote;
mod token;
mod view;

use std::sync::Arc;
use std::time::Duration;

use atlas_env::Env;
use atlas_raft::{Handle, Leadership, Peer};
use atlas_service::{Caller, Error, Service};
use atlas_types::{JoinKind, MemberId, level};
use atlas_wire::proto::peer::v1 as wire;
use futures::future::join_all;
use tokio::sync::Mutex;

use crate::options::Mode;

pub(crate) use remote::join as ask_to_join;
pub(crate) use token::Token;

/// How often a change is tried in total while leadership changes.
const TRIES: u32 = 3;
/// The pause before another try.
const PAUSE: Duration = Duration::from_millis(300);

/// Answers questions of the doors about the cluster. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Cluster {
    service: Service,
    env: Env,
    mode: Mode,
    /// Locked while a controller joins. If two want the same name at the same time, the second finds the first.
    joining: Arc<Mutex<()>>,
}

/// How long a machine may take to refuse a connection.
const REFUSE_MAX: Duration = Duration::from_millis(300);

async fn may_run(env: &Env, address: &str) -> bool {
    use std::io::ErrorKind::{AddrNotAvailable, HostUnreachable, NetworkUnreachable, PermissionDenied, TimedOut};
    match tokio::time::timeout(REFUSE_MAX, env.net.connect(address)).await {
        Ok(Err(error)) => {
            let unclear = [AddrNotAvailable, HostUnreachable, NetworkUnreachable, PermissionDenied, TimedOut];
            unclear.contains(&error.kind())
        }
        Ok(Ok(_)) | Err(_) => true,
    }
}

/// A change that the leader must make.
#[derive(Debug, Clone, Copy)]
enum Change {
    Remove(MemberId),
    HandOver(Option<MemberId>),
}

impl Cluster {
    /// The cluster of a controller.
    pub(crate) fn new(service: Service, mode: Mode, env: Env) -> Self {
        Self { service, env, mode, joining: Arc::default() }
    }

    /// Whether this member has the data that a voter must have.
    pub(crate) async fn completeness(&self) -> wire::ReadyResponse {
        let complete = self.service.completeness().await;
        wire::ReadyResponse { history_complete: complete.history, artifacts_complete: complete.artifacts }
    }

    fn handle(&self) -> &Handle {
        self.service.handle()
    }

    /// Whether no other member runs, as far as its machine says: its name is unknown, or the connection is refused. One that does not answer
    /// may run behind a fault of the network, and one whose certificate is refused runs: `env` has the network without TLS.
    pub(crate) async fn is_alone(&self, env: &Env) -> bool {
        let members = self.handle().members().members;
        let others = members.iter().filter(|view| view.peer.member != self.handle().member());
        let runs = others.map(|view| may_run(env, &view.peer.address));
        !join_all(runs).await.contains(&true)
    }

    /// Creates a token with which a controller or a worker joins, valid for `ttl`, at most an hour. Also returns the
    /// validity. A repeat of a named request gets the same token.
    pub(crate) async fn create_token(
        &self,
        caller: &Caller,
        kind: JoinKind,
        ttl: Duration,
    ) -> Result<(Token, Duration), Error> {
        let named = caller.request_id.as_ref().filter(|_| self.handle().applied().level() >= level::REPEATED_TOKENS);
        let Some(key) = named else {
            let token = Token::draw(&*self.env.entropy);
            return self.service.create_join_token(caller, token.hash(), kind, ttl).await.map(|()| (token, ttl));
        };
        let caller = caller.clone().with_request_id(Some(token::name_of(key)?));
        let salt = self.env.entropy.u128();
        let new = (Token::of(salt, key).hash(), salt);
        let (salt, holds) = self.service.create_salted_join_token(&caller, new, kind, ttl).await?;
        Ok((Token::of(salt, key), Duration::from_micros(holds.0)))
    }

    /// Revokes a join token.
    pub(crate) async fn revoke_token(&self, caller: &Caller, token: &Token) -> Result<(), Error> {
        self.service.revoke_join_token(caller, token.hash()).await
    }

    /// The member with this number or name.
    pub(crate) fn find(&self, text: &str) -> Result<MemberId, Error> {
        let members = self.handle().members().members;
        let found = members.iter().find(|view| view.peer.member.0.to_string() == text || view.peer.label() == text);
        found.map(|view| view.peer.member).ok_or_else(|| Error::UnknownMember(text.to_owned()))
    }

    /// The name of a member.
    pub(crate) fn label(&self, member: MemberId) -> String {
        let view = self.handle().members();
        view.member(member).map_or_else(|| format!("c{member}"), |view| view.peer.label())
    }

    /// Removes a member for good. A leader that is removed hands leadership over first.
    pub(crate) async fn remove(&self, member: MemberId) -> Result<(), Error> {
        if self.handle().members().leader == Some(member) && self.handle().members().members.len() > 1 {
            self.hand_over(None).await?;
        }
        self.change(Change::Remove(member)).await.map(|_| ())
    }

    /// Transfers leadership to a member, by default to the one with the most of the log. Returns the new leader and its
    /// term.
    pub(crate) async fn hand_over(&self, to: Option<MemberId>) -> Result<(MemberId, u64), Error> {
        self.change(Change::HandOver(to)).await
    }

    /// Makes a change at the leader, on whichever member that is.
    async fn change(&self, change: Change) -> Result<(MemberId, u64), Error> {
        let mut tries = 1;
        loop {
            let made = match self.leader() {
                Some(leader) if leader.member != self.handle().member() => {
                    remote::change(&self.env, self.handle().cluster_id(), &leader, change).await
                }
                _ => self.change_here(change).await,
            };
            match made {
                // Leadership changed, and nothing was written.
                Err(Error::NoLeader) if tries < TRIES => {
                    tries += 1;
                    self.env.clock.sleep(PAUSE).await;
                }
                made => return made,
            }
        }
    }

    /// Makes a change if this member leads.
    async fn change_here(&self, change: Change) -> Result<(MemberId, u64), Error> {
        match change {
            Change::Remove(member) => {
                self.handle().remove(member).await?;
                Ok((member, 0))
            }
            Change::HandOver(to) => Ok(self.handle().transfer_leader(to).await?),
        }
    }

    /// The leader, as far as this member knows.
    fn leader(&self) -> Option<Peer> {
        match &*self.handle().leadership().borrow() {
            Leadership::Follower { leader } => leader.clone(),
            Leadership::Leader { .. } => Some(self.handle().own()),
            Leadership::Stopped { .. } => None,
        }
    }
}
