//! The leader's side of the workers' streams: their reports become requests, applied entries are sent to them.

use std::time::Duration;

use atlas_duty::sessions::{Round, StreamId};
use atlas_state::State;
use atlas_types::{
    Assignment, ClusterTime, Command, DrainNode, Event as StateEvent, HandBack, HandBackDeadline, Job, JobChange,
    JobId, JobStatus, Namespace, NodeEpoch, NodeHealth, NodeId, Outcome, Reason, Rejection, Report, ReportResult,
    WarmChanged,
};

use crate::Bug;
use crate::leader::{Reply, Stream};
use crate::message::{Answer, Conn, Event, Frame, Member, Node, ToNode};
use crate::options::MS;
use crate::workload;
use crate::world::World;

impl World {
    /// Something from a worker arrives. Old connections are read to their end: what they say carries its own token.
    pub(crate) fn node_says(&mut self, member: Member, node: Node, conn: Conn, frame: Frame) {
        let now = Duration::from_micros(self.now);
        let id = self.nodes[node].id.clone();
        let Some(leader) = self.leader(member).filter(|leader| leader.head.is_some()) else {
            return self.close_stream(node, conn);
        };
        let epoch = leader.streams.get(&node).filter(|stream| stream.conn == conn).map(|stream| stream.epoch);
        match frame {
            Frame::Hello { boot, previous } => self.hello(member, node, conn, (boot, previous)),
            Frame::Renew(number) => {
                let renewed = epoch.map(|epoch| leader.sessions.renew(&id, epoch, number, now));
                if renewed != Some(Ok(())) {
                    self.close_stream(node, conn);
                }
            }
            Frame::Report { number, report } => {
                let command = self.report(member, node, &report);
                let job = self.members[member].replica.state().job(report.job);
                let namespace = job.map_or_else(Namespace::default_namespace, |job| job.namespace.clone());
                self.gather(member, workload::request_of(namespace, command), Reply::Report { node, conn, number });
            }
            Frame::Warm { digest, idle } => {
                if let Some(epoch) = epoch {
                    let command = Command::WarmChanged(WarmChanged { node: id, epoch, digest, idle });
                    self.gather(member, workload::request(command), Reply::Nobody);
                }
            }
            Frame::Log(lines) => self.store_log(member, node, lines),
            Frame::Doze(doze) => self.doze_said(member, node, conn, doze),
            Frame::Spawn { number, spawn } => self.spawn_said(member, node, conn, number, spawn),
            Frame::Journal { number, sent } => self.journal_said(member, node, conn, number, sent),
            Frame::Leaving => {
                let Some(epoch) = epoch else { return };
                let found = leader.head.as_ref().and_then(|head| head.state().node(&id).cloned());
                leader.sessions.leave(&id, epoch);
                self.coverage.count("farewells");
                // The operator may have ended the drain meanwhile.
                if found
                    .is_some_and(|found| found.node.epoch == epoch && found.node.draining && found.leases().len() > 0)
                {
                    self.oracle.violate(format!("{id} left although it holds leases"));
                }
            }
            Frame::Parted => {
                let Some(epoch) = epoch else { return };
                leader.streams.remove(&node);
                leader.sessions.broke(&id, epoch, StreamId(conn), now);
                self.coverage.count("streams broken");
            }
            Frame::Draining => {
                if epoch.is_some() {
                    let command = Command::DrainNode(DrainNode { node: id, deadline: None });
                    self.gather(member, workload::request(command), Reply::Nobody);
                }
            }
        }
    }

    fn report(&mut self, member: Member, node: Node, report: &Report) -> Command {
        let (job, mut token, mut node) = (report.job, report.token, self.nodes[node].id.clone());
        if self.options.bug == Some(Bug::NoFencing)
            && let Some(lease) = self.members[member].replica.state().lease(job)
        {
            (token, node) = (lease.token, lease.node.clone());
        }
        workload::report(job, node, token, report.kind.clone())
    }

    pub(crate) fn answer_report(&mut self, node: Node, conn: Conn, number: u64, outcome: &Result<Outcome, Rejection>) {
        // A start that found its job cancelled has ended it: there is nothing to run.
        let over = matches!(outcome, Ok(Outcome::Ended { status: JobStatus::Cancelled, .. }));
        let result = if outcome.is_ok() && !over { ReportResult::Applied } else { ReportResult::Fenced };
        if result == ReportResult::Fenced && !over {
            self.coverage.count("fenced reports");
        }
        self.send_to_node(node, conn, ToNode::ReportAck { number, result });
    }

    /// Answers a hello with all leases of the node, unless the node was lost or restarted in the meantime.
    pub(crate) fn welcome(&mut self, member: Member, node: Node, conn: Conn, epoch: NodeEpoch) {
        let now = Duration::from_micros(self.now);
        let id = self.nodes[node].id.clone();
        let controller = &self.members[member];
        let state = controller.replica.state().clone();
        let current = |state: &State| {
            state.node(&id).is_some_and(|found| found.node.epoch == epoch && found.node.health == NodeHealth::Ready)
        };
        let Some(leader) = self.leader(member) else { return };
        let head_agrees = leader.head.as_ref().is_some_and(|head| current(head.state()));
        if !head_agrees || !current(&state) {
            return self.close_stream(node, conn);
        }
        leader.sessions.hello(&id, epoch, StreamId(conn), now);
        let ttl = leader.sessions.ttl();
        if leader.streams.insert(node, Stream { conn, epoch }).is_some() {
            self.coverage.count("sessions resumed");
        }
        let leases = state.leases_of(&id).filter_map(|lease| assignment(&state, lease.job, self.options.bug)).collect();
        self.send_to_node(node, conn, ToNode::HandBack(hand_back(&state, &id)));
        self.send_to_node(node, conn, ToNode::Welcome { epoch, ttl, leases });
        // A cancel that was told on an earlier stream may be lost.
        let cancelling = |job: JobId| state.job(job).is_some_and(|job| job.reason == Reason::Cancelling);
        for lease in state.leases_of(&id).filter(|lease| cancelling(lease.job)) {
            self.send_to_node(node, conn, ToNode::Cancel(lease.token));
        }
    }

    /// What one applied event means for the workers.
    pub(crate) fn tell_worker(&mut self, member: Member, before: &State, event: &StateEvent) {
        match event {
            StateEvent::Job { change, job, .. } => self.tell_of_job(member, before, *change, job),
            StateEvent::Node { node } if node.health == NodeHealth::Down => {
                let Some(index) = self.nodes.iter().position(|known| known.id == node.id) else { return };
                let Some(leader) = self.leader(member) else { return };
                if let Some(stream) = leader.streams.remove(&index) {
                    self.close_stream(index, stream.conn);
                }
            }
            StateEvent::Node { node } => {
                let by = hand_back(self.members[member].replica.state(), &node.id);
                if let Some((index, conn)) = self.stream_to(member, &node.id) {
                    self.send_to_node(index, conn, ToNode::HandBack(by));
                }
            }
            _ => {}
        }
    }

    fn tell_of_job(&mut self, member: Member, before: &State, change: JobChange, job: &Job) {
        let old = before.lease(job.id).filter(|old| job.lease.as_ref().is_none_or(|lease| lease.token != old.token));
        if let Some(old) = old
            && let Some((node, conn)) = self.stream_to(member, &old.node)
        {
            self.send_to_node(node, conn, ToNode::Revoke(old.token));
        }
        if change == JobChange::Ended {
            self.tell_parent(member, job);
        }
        let Some(lease) = &job.lease else { return };
        let Some((node, conn)) = self.stream_to(member, &lease.node) else { return };
        match change {
            JobChange::Granted => {
                let state = self.members[member].replica.state();
                // The entry that granted it may have ended it again.
                if let Some(assignment) = assignment(state, job.id, self.options.bug)
                    && assignment.token == lease.token
                {
                    self.send_to_node(node, conn, ToNode::Grant(Box::new(assignment)));
                }
            }
            JobChange::Cancelling => self.send_to_node(node, conn, ToNode::Cancel(lease.token)),
            _ => {}
        }
    }

    pub(crate) fn stream_to(&mut self, member: Member, id: &NodeId) -> Option<(Node, Conn)> {
        let node = self.nodes.iter().position(|known| known.id == *id)?;
        let stream = self.leader(member)?.streams.get(&node)?;
        Some((node, stream.conn))
    }

    /// Tells the workers whose renewals the quorum has confirmed.
    pub(crate) fn acknowledge(&mut self, member: Member, round: Round) {
        let Some(leader) = self.leader(member) else { return };
        for renewed in leader.sessions.confirmed(round) {
            if let Some((node, conn)) = self.stream_to(member, &renewed.node) {
                self.send_to_node(node, conn, ToNode::RenewAck(renewed.number));
            }
        }
    }

    pub(crate) fn close_stream(&mut self, node: Node, conn: Conn) {
        self.send_to_node(node, conn, ToNode::Closed);
    }

    /// A member is gone: the workers' ends of its streams break, some at once, some when they are used next.
    pub(crate) fn break_streams_to(&mut self, member: Member) {
        for node in 0..self.nodes.len() {
            if let Some((_, conn)) = self.nodes[node].stream.filter(|(at, _)| *at == member) {
                self.after_up_to(2_000 * MS, Event::ToNode(node, conn, ToNode::Closed));
            }
        }
    }

    pub(crate) fn send_reply(&mut self, reply: Reply, answer: Answer) {
        match reply {
            Reply::Client { client, op } => self.send_to_client(client, op, answer),
            // The worker keeps what was not acknowledged and says it again to the next leader.
            Reply::Hello { node, conn }
            | Reply::Report { node, conn, .. }
            | Reply::Spawn { node, conn, .. }
            | Reply::Journal { node, conn, .. }
            | Reply::Doze { node, conn, .. } => self.close_stream(node, conn),
            Reply::Nobody | Reply::Log => {}
        }
    }
}

/// By when a node gives back what it runs, as the state knows it.
fn hand_back(state: &State, id: &NodeId) -> Option<HandBack> {
    let node = &state.node(id)?.node;
    let deadline = |until: ClusterTime| HandBackDeadline { until, within: until.since(state.clock()) };
    node.draining.then(|| HandBack { deadline: node.drain_until.map(deadline) })
}

/// Everything that a worker needs to run a lease.
fn assignment(state: &State, id: JobId, bug: Option<Bug>) -> Option<Assignment> {
    let assignment = workload::assignment(state, id)?;
    let needs_start = assignment.needs_start && bug != Some(Bug::StartUncommitted);
    Some(Assignment { needs_start, ..assignment })
}
