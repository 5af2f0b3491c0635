//! Logs of running attempts: a worker tells its leader how many lines an attempt has, and the leader stores them with those of the
//! attempts before.

use atlas_types::{Command, FencingToken, JobId, Payload, PayloadBody, StoreLog};

use crate::Bug;
use crate::leader::Reply;
use crate::message::{Event, Frame, Member, Node};
use crate::options::MS;
use crate::workload;
use crate::world::World;

/// So many lines of an attempt.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lines {
    pub(crate) job: JobId,
    pub(crate) token: FencingToken,
    pub(crate) count: u64,
}

impl World {
    /// An attempt has logged a line more, and will log another later.
    pub(crate) fn log_said(&mut self, node: Node, lines: Lines) {
        if !self.nodes[node].children().contains(&lines.token) {
            // The attempt is over. The network may have held its last lines back until its lease has ended.
            let holds = self.oracle.state().lease(lines.job).is_some_and(|lease| lease.token == lines.token);
            let late = self.raft.leader.filter(|_| self.faults_on && !holds);
            return late.into_iter().for_each(|member| self.store_log(member, node, lines));
        }
        self.send_frame(node, Frame::Log(lines));
        self.after_up_to(3_000 * MS, Event::LogSaid(node, Lines { count: lines.count + 1, ..lines }));
    }

    /// The leader stores the lines that it has of an attempt.
    pub(crate) fn store_log(&mut self, member: Member, node: Node, lines: Lines) {
        let Lines { job, mut token, count } = lines;
        let mut id = self.nodes[node].id.clone();
        let state = self.members[member].replica.state();
        let Some(found) = state.job(job) else { return };
        let namespace = found.namespace.clone();
        let mut stored = found.stream.as_deref().map(read_log).unwrap_or_default();
        // What was relayed before is not stored again.
        if stored.iter().any(|&(known, lines)| known == token && lines >= count) {
            return;
        }
        stored.retain(|(known, _)| *known < token);
        stored.push((token, count));
        if self.options.bug == Some(Bug::LogUnfenced)
            && let Some(lease) = state.lease(job)
        {
            (token, id) = (lease.token, lease.node.clone());
        }
        let command = StoreLog { job, node: id, token, stream: write_log(&stored) };
        self.gather(member, workload::request_of(namespace, Command::StoreLog(command)), Reply::Log);
    }
}

/// A stored log: the attempts, and how many lines of each.
fn write_log(log: &[(FencingToken, u64)]) -> Payload {
    let words: Vec<String> = log.iter().map(|(token, count)| format!("{token}:{count}")).collect();
    Payload::inline(words.join(" ").as_bytes())
}

/// Reads a stored log.
pub(crate) fn read_log(stream: &Payload) -> Vec<(FencingToken, u64)> {
    let PayloadBody::Inline(bytes) = &stream.body else { return Vec::new() };
    let words = std::str::from_utf8(bytes).unwrap_or_default().split_whitespace();
    let attempt = |word: &str| {
        let (token, count) = word.split_once(':')?;
        Some((FencingToken(token.parse().ok()?), count.parse().ok()?))
    };
    words.filter_map(attempt).collect()
}
