//! The proposals of leader tasks, by importance.

use std::time::Duration;

use atlas_duty::{DownNodes, Follow, Run, Sessions, Strategy, Task};
use atlas_state::State;
use atlas_types::{ClusterTime, Command, EventSeq, MemberId, Micros, Namespace, Origin, Request, SinkAck};

/// The inputs of the leader tasks of one plan, besides the state.
pub(super) struct Duties<'l> {
    pub(super) now: ClusterTime,
    pub(super) sessions: &'l Sessions,
    pub(super) voters: &'l [MemberId],
    pub(super) strategy: Strategy,
    /// The nodes that are down, the leader's monotonic time, and after how long such a node is forgotten.
    pub(super) down: (&'l DownNodes, Duration, Option<Duration>),
    /// How long retired agent versions are kept. Set only when a check for expired ones is due.
    pub(super) retired_keep: Option<Duration>,
    /// This member and how far its history is synced, when an acknowledgement is due.
    pub(super) sink: Option<(MemberId, EventSeq)>,
}

impl Duties<'_> {
    /// At most `budget` commands that follow from `state`. The caller repeats this with the resulting state until no
    /// more commands follow.
    pub(super) fn plan(&self, run: &mut impl Run, state: &State, budget: usize) -> Vec<Request> {
        let mut commands = run.run(Task::AcknowledgeHistory, || self.sink_ack(state).into_iter().collect());
        let left = budget.saturating_sub(commands.len());
        commands.extend(run.run(Task::Prune, || atlas_duty::prune(state, self.voters, left).into_iter().collect()));
        if let (down, now, Some(after)) = self.down {
            let left = budget.saturating_sub(commands.len());
            commands.extend(run.run(Task::Forget, || down.forget(state, now, after, left)));
        }
        if let Some(keep) = self.retired_keep {
            let left = budget.saturating_sub(commands.len());
            let delete = || atlas_duty::delete_retired(state, self.now, Micros::from(keep), left);
            commands.extend(run.run(Task::DeleteRetired, delete));
        }
        let left = budget.saturating_sub(commands.len());
        commands.extend(run.run(Task::Advance, || atlas_duty::advance(state, left)));
        // Jobs are planned on the same state as the other tasks. A placement that their commands invalidate is refused
        // and planned again.
        let left = budget.saturating_sub(commands.len());
        let jobs = Follow { sessions: self.sessions, now: self.now, strategy: self.strategy };
        let jobs = jobs.plan(run, state, left);
        if commands.is_empty() {
            return jobs;
        }
        commands.extend(jobs);
        commands
    }

    fn sink_ack(&self, state: &State) -> Option<Request> {
        let (member, synced) = self.sink?;
        let event_seq = synced.min(state.event_seq());
        (event_seq > state.sink(member)).then(|| Request {
            origin: Origin::duty(Namespace::default_namespace()),
            command: Command::SinkAck(SinkAck { member, event_seq }),
        })
    }
}

#[cfg(test)]
mod tests {
    use atlas_duty::Tasks;
    use atlas_replica::Head;
    use atlas_types::{BootId, Inventory, JobId, JobStatus, NodeId, RegisterNode, Timestamp};

    use super::*;
    use crate::tests::{agent, submit};

    /// Runs tasks as a leader does, except that one of them panics.
    struct Broken<'t, R>(Task, &'t mut R);

    impl<R: Run> Run for Broken<'_, R> {
        fn run(&mut self, task: Task, work: impl FnOnce() -> Vec<Request>) -> Vec<Request> {
            let broken = self.0 == task;
            self.1.run(task, || if broken { panic!("on purpose") } else { work() })
        }
    }

    /// A cluster with one node and one waiting job.
    fn waiting() -> Head {
        let mut head = Head::new(State::new(7));
        head.raise(atlas_types::Level::CURRENT);
        let inventory = Inventory { places: 1, ..Inventory::default() };
        let node = RegisterNode { node: NodeId::new("n1").expect("a name"), boot_id: BootId(1), inventory };
        let node =
            Request { origin: Origin::duty(Namespace::default_namespace()), command: Command::RegisterNode(node) };
        let requests = vec![agent(), node, submit(JobId(1))];
        let planned = head.plan(requests, Timestamp(1), ClusterTime(1), &mut |_, _| Vec::new());
        assert!(planned.outcomes.iter().all(Result::is_ok), "{:?}", planned.outcomes);
        head
    }

    #[test]
    fn a_leader_task_that_panics_does_not_switch_the_others_off() {
        let (sessions, down) = (Sessions::new(Duration::from_secs(10)), DownNodes::default());
        let tasks = [
            Task::AcknowledgeHistory,
            Task::Prune,
            Task::Forget,
            Task::DeleteRetired,
            Task::Advance,
            Task::Lose,
            Task::Expire,
            Task::Route,
            Task::Schedule,
        ];
        for broken in tasks {
            let mut head = waiting();
            let duties = Duties {
                now: ClusterTime(2),
                sessions: &sessions,
                voters: &[MemberId(1)],
                strategy: Strategy::BinPack,
                down: (&down, Duration::ZERO, Some(Duration::ZERO)),
                retired_keep: Some(Duration::ZERO),
                sink: Some((MemberId(1), EventSeq(1))),
            };
            let mut tasks = Tasks::default();
            let mut turn = tasks.at(Duration::ZERO);
            let planned = head.plan(Vec::new(), Timestamp(2), ClusterTime(2), &mut |state, budget| {
                duties.plan(&mut Broken(broken, &mut turn), state, budget)
            });
            let reported: Vec<Task> = tasks.take_panics().iter().map(|panicked| panicked.task).collect();
            assert_eq!((planned.panics, reported), (0, vec![broken]));
            let status = head.state().job(JobId(1)).expect("a job").status;
            let granted = status == JobStatus::Running;
            assert_eq!(granted, broken != Task::Schedule, "{broken} panics, and the job is {status:?}");
            let acknowledged = head.state().sink(MemberId(1)) == EventSeq(1);
            assert_eq!(acknowledged, broken != Task::AcknowledgeHistory, "{broken}");
        }
    }
}
