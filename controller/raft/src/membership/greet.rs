//! Members exchange their identities, addresses, feature levels and states.
//!
//! Each member asks every other member once a second. The leader writes changed addresses into the membership. A member
//! that the leader reports as removed stops, so that a member removed while it was offline does not continue.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use atlas_types::{Level, MemberId, Timestamp};
use atlas_wire::proto::peer::v1 as wire;
use atlas_wire::proto::peer::v1::peer_service_client::PeerServiceClient;
use openraft::Instant as _;
use openraft::async_runtime::WatchReceiver;
use tonic::transport::Channel;

use super::{Group, Status, Upkeep};
use crate::channel::peer_channel;
use crate::consensus::ELECTION_MIN;
use crate::machine::leader_id;
use crate::member::{Member, Peer};
use crate::monitor::wall::WallWatch;

/// How often members greet each other.
const GREET_EVERY: Duration = Duration::from_secs(1);
/// The time limit for an answer.
const GREET_MAX: Duration = Duration::from_secs(1);
/// How long a comparison of clocks stays valid.
const AHEAD_MAX: Duration = Duration::from_secs(5);
/// Why a removed member stops.
const REMOVED: &str =
    "this member was removed from its cluster; to rejoin, it needs an empty data directory and a token";

/// The report of another member.
#[derive(Debug, Clone)]
pub(crate) struct Met {
    /// The monotonic time of the report.
    pub(super) at: Duration,
    /// Its current addresses, if reported.
    own: Option<Member>,
    pub(super) status: Option<Status>,
    /// How far the other member's wall clock is ahead of this one's in microseconds, if measured.
    ahead: Option<i64>,
}

impl Group {
    /// Greets the other members until this member learns that it was removed. Returns the reason to stop.
    pub(crate) async fn greet(self) -> Arc<str> {
        let mut channels = BTreeMap::new();
        let mut wall = WallWatch::default();
        // The leader's address as the other members report it. A member that was offline may not know the leader.
        let mut leader = None;
        loop {
            let mut addresses = self.others();
            addresses.extend(leader.take());
            channels.retain(|address, _| addresses.contains(address));
            let mut asked = Vec::new();
            for address in addresses {
                let channel = match channels.get(&address) {
                    Some(channel) => Channel::clone(channel),
                    None => match peer_channel(&self.env, &address) {
                        Ok(channel) => channels.entry(address).or_insert(channel).clone(),
                        // An invalid address is reported when the log is sent to that member.
                        Err(_) => continue,
                    },
                };
                asked.push(self.ask(channel));
            }
            for (answer, ahead) in futures::future::join_all(asked).await.into_iter().flatten() {
                if answer.removed {
                    return REMOVED.into();
                }
                leader = Some(answer.leader_address).filter(|address| !address.is_empty()).or(leader);
                self.meet(answer.member_id, answer.feature_level, answer.info, answer.status, ahead);
            }
            self.look_at_wall(&mut wall);
            self.keep_addresses().await;
            self.env.clock.sleep(GREET_EVERY).await;
        }
    }

    /// Greets the member to which a channel connects.
    ///
    /// Also returns how far the other wall clock is ahead of this one, compared with the midpoint between request and
    /// answer.
    async fn ask(&self, channel: Channel) -> Option<(wire::HelloResponse, Option<i64>)> {
        let request = wire::HelloRequest {
            cluster_id: self.cluster_id.to_be_bytes().to_vec().into(),
            member_id: self.id().0,
            feature_level: self.level.0,
            info: Some((*self.own).clone().into()),
            status: Some(self.status().into()),
        };
        let mut client = PeerServiceClient::new(channel);
        let asked = self.env.clock.wall();
        let answer = tokio::select! {
            biased;
            answer = client.hello(request) => answer.ok()?.into_inner(),
            () = self.env.clock.sleep(GREET_MAX) => return None,
        };
        let answered = self.env.clock.wall();
        let theirs = answer.status.as_ref().map_or(0, |status| status.wall_us);
        let ahead = (theirs != 0).then(|| ahead(theirs, asked, answered));
        Some((answer, ahead))
    }

    /// Compares the clocks and updates whether this member's wall clock is in doubt.
    fn look_at_wall(&self, watch: &mut WallWatch) {
        let (wall, now) = (self.env.clock.wall(), self.env.clock.monotonic());
        let mut ahead: Vec<i64> = {
            let met = self.met();
            met.values().filter(|met| now.saturating_sub(met.at) < AHEAD_MAX).filter_map(|met| met.ahead).collect()
        };
        let doubt = watch.look(wall, now, &mut ahead);
        *self.believed.lock().unwrap_or_else(PoisonError::into_inner) = watch.believed();
        self.doubt.send_if_modified(|told| {
            let changed = told.is_some() != doubt.is_some();
            match doubt {
                Some(doubt) if changed => {
                    tracing::warn!(%doubt, "the wall clock is not trusted; entries are stamped by the monotonic clock")
                }
                None if changed => tracing::info!("the wall clock is trusted again"),
                _ => {}
            }
            std::mem::replace(told, doubt) != doubt
        });
    }

    /// Answers a greeting.
    pub(crate) fn hello(&self, request: wire::HelloRequest) -> wire::HelloResponse {
        let wire::HelloRequest { cluster_id: _, member_id, feature_level, info, status } = request;
        let removed = self.is_removed(MemberId(member_id));
        if !removed {
            self.meet(member_id, feature_level, info, status, None);
        }
        let view = self.view();
        let leader = view.leader.and_then(|leader| view.member(leader));
        wire::HelloResponse {
            cluster_id: self.cluster_id.to_be_bytes().to_vec().into(),
            member_id: self.id().0,
            feature_level: self.level.0,
            leader_id: view.leader.map_or(0, |leader| leader.0),
            info: Some((*self.own).clone().into()),
            status: Some(self.status().into()),
            removed,
            leader_address: leader.map(|leader| leader.peer.address.clone()).unwrap_or_default(),
        }
    }

    /// True if this member knows for certain that `member` was removed from the group. A controller gets its number
    /// only once the membership contains it, so a number that is missing in the leader's log was removed.
    fn is_removed(&self, member: MemberId) -> bool {
        if member.0 == 0 || leader_id(&self.raft).is_none() {
            return false;
        }
        let metrics = self.raft.metrics();
        let metrics = metrics.borrow_watched();
        // A deposed leader that does not know it yet may also not know a newer member. No other member can lead earlier
        // than one election timeout after a quorum last answered. If this member is the only voter, no other can lead
        // at all, and there is no quorum to ask.
        let alone = metrics.committed_membership_config.membership().voter_ids().all(|voter| voter == self.id().0);
        let confirmed = alone || metrics.last_quorum_acked.is_some_and(|instant| instant.elapsed() < ELECTION_MIN);
        let known = [&metrics.membership_config, &metrics.committed_membership_config];
        confirmed && known.iter().all(|config| config.membership().get_node(&member.0).is_none())
    }

    /// Records a member's report about itself.
    fn meet(
        &self,
        member: u64,
        level: u32,
        info: Option<wire::MemberInfo>,
        status: Option<wire::MemberStatus>,
        ahead: Option<i64>,
    ) {
        let member = MemberId(member);
        if self.view().member(member).is_none() {
            return;
        }
        let own = info.map(Member::from).filter(|own| !own.peer.is_empty());
        if let Some(own) = &own {
            self.addresses.set(member.0, &own.peer);
        }
        let status = status.map(|status| Status::told(Level(level), status));
        let mut met = self.met();
        let ahead = ahead.or_else(|| met.get(&member)?.ahead);
        met.insert(member, Met { at: self.env.clock.monotonic(), own, status, ahead });
    }

    /// The addresses of the other members.
    fn others(&self) -> BTreeSet<String> {
        let others = self.view().members.into_iter().filter(|view| view.peer.member != self.id());
        let address = |peer: Peer| self.addresses.get(peer.member.0).unwrap_or(peer.address);
        others.map(|view| address(view.peer)).filter(|address| !address.is_empty()).collect()
    }

    /// As the leader, writes the members' current addresses into the membership if they changed.
    async fn keep_addresses(&self) {
        if leader_id(&self.raft).is_none() {
            return;
        }
        let view = self.view();
        let moved: BTreeMap<u64, Member> = {
            let met = self.met();
            // A member that does not know its own address does not report one.
            let own = Some(&*self.own).filter(|own| !own.peer.is_empty());
            let told = |member| if member == self.id() { own } else { met.get(&member)?.own.as_ref() };
            let moved = view.members.iter().filter_map(|view| {
                let told = told(view.peer.member)?;
                (Peer::new(view.peer.member, told.clone()) != view.peer).then(|| (view.peer.member.0, told.clone()))
            });
            moved.collect()
        };
        if moved.is_empty() {
            return;
        }
        let members: Vec<_> = moved.keys().copied().map(MemberId).collect();
        match self.update(moved).await {
            Ok(()) => tracing::info!(?members, "addresses of members changed"),
            // The next round tries again.
            Err(error) => tracing::debug!(%error, "could not save the addresses of members"),
        }
    }
}

/// How far a clock that said `theirs` is ahead of this member's clock, which was read before and after, in
/// microseconds. `theirs` may be any number.
fn ahead(theirs: i64, asked: Timestamp, answered: Timestamp) -> i64 {
    theirs.saturating_sub(asked.0.midpoint(answered.0))
}

impl From<Member> for wire::MemberInfo {
    fn from(Member { name, peer, worker, http }: Member) -> Self {
        Self { name, peer, worker, http }
    }
}

impl From<wire::MemberInfo> for Member {
    fn from(wire::MemberInfo { name, peer, worker, http }: wire::MemberInfo) -> Self {
        Self { name, peer, worker, http }
    }
}

impl From<Status> for wire::MemberStatus {
    fn from(status: Status) -> Self {
        let Status { level: _, version, term, last_index, applied_index, sync_p99, wall, short_of_space, upkeep } =
            status;
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX).max(1);
        let (sync_p99_us, wall_us) = (sync_p99.map_or(0, micros), wall.map_or(0, |wall| wall.0));
        let time = |time: Option<Timestamp>| time.map_or(0, |time| time.0);
        Self {
            version,
            term,
            last_index,
            applied_index,
            sync_p99_us,
            wall_us,
            short_of_space,
            backup_us: time(upkeep.backup_at),
            certificate_due_us: time(upkeep.certificate_due),
            certificate_ends_us: time(upkeep.certificate_ends),
        }
    }
}

impl Status {
    fn told(level: Level, status: wire::MemberStatus) -> Self {
        let wire::MemberStatus { version, term, last_index, applied_index, sync_p99_us, wall_us, .. } = status;
        let time = |micros: i64| (micros != 0).then_some(Timestamp(micros));
        let (wall, short_of_space) = (time(wall_us), status.short_of_space);
        let upkeep = Upkeep {
            backup_at: time(status.backup_us),
            certificate_due: time(status.certificate_due_us),
            certificate_ends: time(status.certificate_ends_us),
        };
        let sync_p99 = (sync_p99_us > 0).then(|| Duration::from_micros(sync_p99_us));
        Self { level, version, term, last_index, applied_index, sync_p99, wall, short_of_space, upkeep }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_is_compared_with_the_middle_of_the_question() {
        assert_eq!(ahead(1_500, Timestamp(1_000), Timestamp(1_200)), 400);
        assert_eq!(ahead(1_000, Timestamp(1_000), Timestamp(1_200)), -100);
    }

    #[test]
    fn a_peer_with_an_absurd_clock_is_far_away_and_nothing_else() {
        let (asked, answered) = (Timestamp(1_700_000_000_000_000), Timestamp(1_700_000_000_000_200));
        assert_eq!(ahead(i64::MIN, asked, answered), i64::MIN);
        assert!(ahead(i64::MAX, asked, answered) > 0);
        assert_eq!(ahead(i64::MAX, Timestamp(i64::MIN), Timestamp(i64::MAX)), i64::MAX);
        let mut watch = WallWatch::default();
        let look = |watch: &mut WallWatch, ahead: i64| watch.look(asked, Duration::from_secs(1), &mut [ahead]);
        for ahead in [i64::MIN, i64::MAX] {
            assert!(look(&mut watch, ahead).is_some());
        }
    }
}
