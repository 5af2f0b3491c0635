//! The cluster as clients see it.

use std::time::Duration;

use atlas_api::types;
use atlas_raft::{MemberView, MembersView, Role, Room, Upkeep};
use atlas_types::{Level, MemberId, Timestamp};

use super::Cluster;

/// How long a member's report is shown. Members report once a second.
const FRESH: Duration = Duration::from_secs(3);

impl Cluster {
    /// The cluster as this member sees it now.
    pub(crate) fn status(&self) -> types::ClusterView {
        let view = self.handle().members();
        let leader = self.able_leader(&view).and_then(|leader| view.member(leader));
        let state = self.handle().applied();
        let disk = *self.handle().disk().borrow();
        let voters: Vec<_> = view.members.iter().filter(|member| member.role == Role::Voter).collect();
        let reachable = voters.iter().filter(|member| self.reaches(&view, member)).count();
        types::ClusterView {
            cluster_id: format!("{:032x}", self.handle().cluster_id()),
            mode: self.mode.as_str().to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            level: state.level().0.into(),
            level_known: Level::CURRENT.0.into(),
            leader: leader.map(|leader| leader.peer.label()),
            term: view.term,
            commit: view.committed,
            applied: view.applied,
            changing: view.voters.len() > 1,
            // The clock, the disk and the agreement are those of the answering controller.
            clock_doubt: self.handle().clock_doubt().borrow().map(|doubt| doubt.to_string()),
            disk: types::Disk { room: room(disk.room).to_owned(), free_bytes: disk.free_bytes },
            agreed_at: self.handle().agreement().borrow().seq.0,
            quorum: types::Quorum { voters: voters.len() as u64, reachable: reachable as u64 },
            members: self.members_of(&view),
        }
    }

    /// The leader, if it can lead: a leader that has lost its majority stays one by the rules of Raft, and can do nothing.
    fn able_leader(&self, view: &MembersView) -> Option<MemberId> {
        let leader = view.leader?;
        let mut voters = view.members.iter().filter(|member| member.role == Role::Voter);
        let leads = match leader == self.handle().member() {
            true => {
                let reachable = voters.clone().filter(|member| self.reaches(view, member)).count();
                reachable * 2 > voters.count()
            }
            false => voters.any(|member| member.peer.member == leader && self.reaches(view, member)),
        };
        leads.then_some(leader)
    }

    /// The members as this one sees them now.
    pub(crate) fn members(&self) -> Vec<types::Member> {
        self.members_of(&self.handle().members())
    }

    fn members_of(&self, view: &MembersView) -> Vec<types::Member> {
        view.members.iter().map(|member| self.member(view, member)).collect()
    }

    fn member(&self, view: &MembersView, member: &MemberView) -> types::Member {
        let status = member.status.as_ref().filter(|(_, age)| *age < FRESH);
        let heartbeat = if member.peer.member == self.handle().member() { None } else { self.heartbeat(view, member) };
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let sync_p99 = status.and_then(|(status, _)| status.sync_p99).map(|time| time.as_secs_f64() * 1e3);
        let upkeep = |what: fn(&Upkeep) -> Option<Timestamp>| {
            status.and_then(|(status, _)| what(&status.upkeep)).map(|time| time.0 as f64 / 1e6)
        };
        types::Member {
            id: member.peer.member.0,
            name: member.peer.label(),
            role: role(member, self.able_leader(view) == Some(member.peer.member)).to_owned(),
            reachable: self.reaches(view, member),
            term: status.map(|(status, _)| status.term),
            last_index: status.map(|(status, _)| status.last_index),
            applied: status.map(|(status, _)| status.applied_index),
            matched: member.matched,
            heartbeat_ms: heartbeat.map(millis),
            fsync_p99_ms: sync_p99,
            backup_at: upkeep(|upkeep| upkeep.backup_at),
            certificate_due_at: upkeep(|upkeep| upkeep.certificate_due),
            certificate_ends_at: upkeep(|upkeep| upkeep.certificate_ends),
            short_of_space: status.map(|(status, _)| status.short_of_space),
            level: status.map(|(status, _)| status.level.0.into()),
            version: status.map(|(status, _)| status.version.clone()),
            peer: member.peer.address.clone(),
            worker: member.peer.worker.clone(),
            http: member.peer.http.clone(),
        }
    }

    /// The time since a member was last heard from: by heartbeat on the leader, by the members' reports elsewhere.
    fn heartbeat(&self, view: &MembersView, member: &MemberView) -> Option<Duration> {
        if view.leader == Some(self.handle().member()) {
            return member.heartbeat;
        }
        member.status.as_ref().map(|(_, age)| *age)
    }

    fn reaches(&self, view: &MembersView, member: &MemberView) -> bool {
        member.peer.member == self.handle().member() || self.heartbeat(view, member).is_some_and(|age| age < FRESH)
    }
}

fn room(room: Room) -> &'static str {
    match room {
        Room::Ample => "ample",
        Room::Short => "short",
        Room::None => "none",
    }
}

fn role(member: &MemberView, leads: bool) -> &'static str {
    match member.role {
        Role::Voter if leads => "leader",
        Role::Voter => "follower",
        Role::Learner => "learner",
    }
}
