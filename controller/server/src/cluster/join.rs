//! Admitting a controller.

use std::time::Duration;

use atlas_api::catalogue::{Entry, TOKEN_REFUSED};
use atlas_raft::{Leadership, Member, MemberView, Role};
use atlas_service::{Error, TurnedAway, is_denial};
use atlas_types::{Door, JoinKind, Level, MemberId, RequestId};
use atlas_wire::proto::peer::v1 as wire;
use tonic::Status;

use super::token::Token;
use super::{Cluster, remote};
use crate::identity;
use crate::peer_door::status_of;

/// How long the token is valid that is made for a controller with the root token.
const ROOT_TTL: Duration = Duration::from_secs(60);
/// The largest size of a member's name or address.
const WORD_BYTES_MAX: usize = 255;

impl Cluster {
    /// Adds a controller as a learner: here if this member leads, otherwise at the leader.
    pub(crate) async fn join(&self, request: wire::JoinRequest) -> Result<wire::JoinResponse, Status> {
        let leads = matches!(*self.handle().leadership().borrow(), Leadership::Leader { .. });
        if leads {
            return self.join_here(request).await;
        }
        let leader = self.leader().filter(|leader| !leader.address.is_empty() && !request.forwarded);
        let leader = leader.ok_or_else(|| Status::unavailable("the cluster has no leader at the moment"))?;
        remote::join(&self.env, &leader.address, wire::JoinRequest { forwarded: true, ..request }).await
    }

    async fn join_here(&self, request: wire::JoinRequest) -> Result<wire::JoinResponse, Status> {
        let request_id =
            RequestId::new(&request.request_id).map_err(|error| Status::invalid_argument(error.to_string()))?;
        let by_root = self.service.is_root_token(&request.token);
        let hash = if by_root {
            // The same for a repeat of the request, and as hard to guess as the request id.
            atlas_service::digest_of(format!("join by root token: {}", request.request_id).as_bytes())
        } else {
            let token: Result<Token, _> = request.token.parse();
            token
                .map_err(|error| {
                    self.note_refused(&request, TOKEN_REFUSED);
                    Status::invalid_argument(format!("{error}"))
                })?
                .hash()
        };
        let words = [&request.name, &request.peer, &request.worker, &request.http];
        if request.peer.is_empty()
            || words.iter().any(|word| word.len() > WORD_BYTES_MAX || word.chars().any(char::is_control))
        {
            return Err(Status::invalid_argument(
                "a member needs a peer address, and names without control characters",
            ));
        }
        let handle = self.handle();
        let level = handle.applied().level();
        if request.feature_level < level.0 {
            return Err(status_of(&Error::TooOld { needed: level, known: Level(request.feature_level) }));
        }
        // Only concurrent joins on this member need the lock. A new leader finds the joins that an earlier leader
        // started in its log.
        let _turn = self.joining.lock().await;
        let view = handle.members();
        let known = |label: &str| view.members.iter().find(|member| member.peer.label() == label);
        // A controller that repeats its request is still a learner. A voter with this name is another controller, even
        // at the same address.
        let another = |other: &&MemberView| other.role == Role::Voter || other.peer.address != request.peer;
        if let Some(other) = known(&request.name).filter(another) {
            return Err(status_of(&Error::NameTaken(other.peer.label())));
        }
        let above = view.members.iter().map(|member| member.peer.member).max().unwrap_or(MemberId(0));
        let caller = identity::peer();
        if by_root {
            let made = self.service.create_join_token(&caller, hash, JoinKind::Controller, ROOT_TTL).await;
            made.map_err(|error| status_of(&error))?;
        }
        let member = self.service.join_member(&caller, hash, above, request_id).await;
        let member = member.map_err(|error| {
            if is_denial(&error) {
                self.note_refused(&request, error.entry());
            }
            status_of(&error)
        })?;
        // A controller that crashed while joining and returned with another token left a learner with another number.
        let before = |other: &&MemberView| {
            other.role == Role::Learner && other.peer.address == request.peer && other.peer.member != member
        };
        for other in view.members.iter().filter(before).map(|other| other.peer.member) {
            handle.remove(other).await.map_err(|error| status_of(&error.into()))?;
            tracing::info!(member = %other, "removed a learner that rejoined as another member");
        }
        let name = if request.name.is_empty() { format!("c{member}") } else { request.name };
        let known = Member { name: name.clone(), peer: request.peer, worker: request.worker, http: request.http };
        handle.add_learner(member, known).await.map_err(|error| status_of(&error.into()))?;
        tracing::info!(%member, %name, "a controller joined as a learner");
        let cluster_id = handle.cluster_id().to_be_bytes().to_vec().into();
        Ok(wire::JoinResponse { cluster_id, member_id: member.0, name })
    }

    /// Records a controller whose token is refused.
    fn note_refused(&self, request: &wire::JoinRequest, why: Entry) {
        let name = if request.name.is_empty() { &request.peer } else { &request.name };
        let (door, claimed) = (Door::Peer, format!("controller/{name}"));
        let refused = TurnedAway { door, proven: String::new(), claimed, verb: "joinController", why: Some(why) };
        self.service.audit().turned_away(refused);
    }
}
