//! Random steps over a few jobs, agents and nodes, so that they interact.

use std::ops::Range;
use std::sync::Arc;

use atlas_types::{
    AgentPin, Allocation, BootId, CancelJob, CarriedEnd, CarryJob, Command, CompleteJob, Cordon, DrainNode, EndCarried,
    FailJob, FailPending, Failure, FailureKind, FencingToken, FoldSteps, ForkJob, ForsakeChild, GrantLease, Inventory,
    Job, JobId, LabelNode, LoseLease, LoseNode, MemberId, Namespace, NodeEpoch, NodeId, Origin, ParkJob, Payload,
    PruneJobs, RecordSteps, RegisterNode, RemoveNode, Request, Resolution, ResolveJob, RetryJob, RunId, SinkAck,
    SpawnedBy, Spawner, StartJob, Step as Recorded, StepKey, StepKind, StepUsage, SubmitJob, Timestamp, Usage, Version,
    Wait, WakeJob, WarmChanged,
};
use proptest::prelude::*;

use crate::State;
use crate::tests::build::{artifact, node};
use crate::tests::script::apply;

#[derive(Debug, Clone)]
pub(crate) enum Step {
    Submit { id: u64, agent: u8, priority: i64 },
    Spawn { parent: usize, id: u64, agent: u8 },
    Forsake { child: usize },
    Grant { job: usize, node: u8 },
    GrantExactly { job: JobId, node: NodeId, epoch: NodeEpoch, allocation: Allocation },
    Report { job: usize, kind: u8, stale: bool, idle: u32 },
    LoseNode { node: u8, epoch: u64 },
    Register { node: u8, boot: u128, cores: u32, places: u32, zone: bool },
    Label { node: u8, zone: Option<char> },
    Cordon { node: u8, cordoned: bool },
    Drain { node: u8, deadline: Option<u64> },
    Remove { node: u8 },
    Warm { node: u8, idle: u32 },
    Cancel { job: usize, running: bool },
    FailPending { job: usize },
    Wake { job: usize },
    Retry { job: usize, id: u64 },
    Fork { job: usize, id: u64, steps: u64 },
    Resolve { job: usize, kind: u8 },
    Record { job: usize, back: u64, steps: u8, bytes: usize, stale: bool },
    Fold { job: usize, back: u64, inline: bool },
    Park { job: usize, back: u64, seconds: u64, used: u64, child: Option<usize>, stale: bool },
    Carry { job: usize, run: u64 },
    EndCarried { job: usize, other: bool, fails: bool },
    Prune { limit: u32 },
    Pass(u64),
}

pub(crate) fn steps(count: Range<usize>) -> impl Strategy<Value = Vec<Step>> {
    proptest::collection::vec(prop_oneof![4 => step(), 1 => family()], count)
}

/// Without families, which the model does not know: their rules have tests of their own.
pub(super) fn steps_of_strangers(count: Range<usize>) -> impl Strategy<Value = Vec<Step>> {
    proptest::collection::vec(step(), count)
}

fn family() -> impl Strategy<Value = Step> {
    let job = 0..12_usize;
    prop_oneof![
        6 => (job.clone(), 12..40_u64, 0..7_u8).prop_map(|(parent, id, agent)| Step::Spawn { parent, id, agent }),
        1 => job.clone().prop_map(|child| Step::Forsake { child }),
        6 => (job.clone(), 0..3_u64, job).prop_map(|(job, seconds, child)| {
            Step::Park { job, back: 0, seconds, used: 1, child: Some(child), stale: false }
        }),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let (job, node) = (0..12_usize, 0..3_u8);
    prop_oneof![
        6 => (1..12_u64, 0..7_u8, -1..2_i64).prop_map(|(id, agent, priority)| Step::Submit { id, agent, priority }),
        8 => (job.clone(), node.clone()).prop_map(|(job, node)| Step::Grant { job, node }),
        8 => (job.clone(), 0..4_u8, proptest::bool::weighted(0.1), 0..3_u32)
            .prop_map(|(job, kind, stale, idle)| Step::Report { job, kind, stale, idle }),
        1 => (node.clone(), 1..4_u64).prop_map(|(node, epoch)| Step::LoseNode { node, epoch }),
        3 => (node.clone(), 1..3_u128, 0..4_u32, 1..4_u32, any::<bool>())
            .prop_map(|(node, boot, cores, places, zone)| Step::Register { node, boot, cores, places, zone }),
        2 => (node.clone(), proptest::option::of(proptest::char::range('b', 'c')))
            .prop_map(|(node, zone)| Step::Label { node, zone }),
        1 => (node.clone(), any::<bool>()).prop_map(|(node, cordoned)| Step::Cordon { node, cordoned }),
        1 => (node.clone(), proptest::option::of(0..3_u64)).prop_map(|(node, deadline)| Step::Drain { node, deadline }),
        1 => node.clone().prop_map(|node| Step::Remove { node }),
        1 => (node, 0..3_u32).prop_map(|(node, idle)| Step::Warm { node, idle }),
        2 => (job.clone(), any::<bool>()).prop_map(|(job, running)| Step::Cancel { job, running }),
        1 => job.clone().prop_map(|job| Step::FailPending { job }),
        2 => job.clone().prop_map(|job| Step::Wake { job }),
        1 => (job.clone(), 1..12_u64).prop_map(|(job, id)| Step::Retry { job, id }),
        1 => (job.clone(), 1..12_u64, 0..5_u64).prop_map(|(job, id, steps)| Step::Fork { job, id, steps }),
        2 => (job.clone(), 0..3_u8).prop_map(|(job, kind)| Step::Resolve { job, kind }),
        4 => (job.clone(), 0..3_u64, 0..4_u8, 0..12_000_usize, proptest::bool::weighted(0.1))
            .prop_map(|(job, back, steps, bytes, stale)| Step::Record { job, back, steps, bytes, stale }),
        1 => (job.clone(), 0..3_u64, proptest::bool::weighted(0.1))
            .prop_map(|(job, back, inline)| Step::Fold { job, back, inline }),
        4 => (job, 0..5_u64, 0..3_u64, 0..40_u64, proptest::bool::weighted(0.1)).prop_map(|(job, back, seconds, used, stale)| {
            Step::Park { job, back: back / 4, seconds, used, child: None, stale }
        }),
        3 => (0..12_usize, 1..4_u64).prop_map(|(job, run)| Step::Carry { job, run }),
        2 => (0..12_usize, proptest::bool::weighted(0.1), any::<bool>())
            .prop_map(|(job, other, fails)| Step::EndCarried { job, other, fails }),
        1 => (1..3_u32).prop_map(|limit| Step::Prune { limit }),
        2 => (0..3_u64).prop_map(Step::Pass),
    ]
}

impl Step {
    /// Applies the step, whatever comes of it.
    pub(crate) fn run(&self, state: &mut State) {
        if let Self::Pass(seconds) = self {
            state.clock = state.clock.plus(atlas_types::Micros::from_secs(*seconds));
        } else {
            let request = self.request(state);
            let (_, _) = apply(state, request);
        }
    }

    /// The step as a request. Jobs are named by their number in the listing, so that retries are met as well.
    pub(super) fn request(&self, state: &State) -> Request {
        Request { origin: Origin::duty(Namespace::default_namespace()), command: self.command(state) }
    }

    fn command(&self, state: &State) -> Command {
        match *self {
            Self::Submit { id, agent, priority } => Command::SubmitJob(submit(id, agent, priority)),
            Self::Spawn { parent, id: child, agent } => {
                let parent = nth(state, parent);
                let run = parent.as_deref().and_then(Job::carrier).map(|carried| carried.run);
                let spawner = Some(match (run, &parent) {
                    (Some(run), Some(parent)) => SpawnedBy::Run { job: parent.id, run },
                    _ => SpawnedBy::Attempt(spawner(parent.as_deref())),
                });
                Command::SubmitJob(SubmitJob { spawner, ..submit(child, agent, 0) })
            }
            Self::Forsake { child } => {
                let child = nth(state, child);
                let parent = child.as_ref().and_then(|child| state.job(child.spawned?.by)).map(|parent| &**parent);
                let node = parent.and_then(|parent| parent.node.clone()).unwrap_or_else(|| name(0));
                Command::ForsakeChild(ForsakeChild { spawner: spawner(parent), node, child: id(child) })
            }
            Self::Grant { job, node: at } => {
                let job = nth(state, job);
                let node = name(at);
                let spec = job.as_ref().and_then(|job| job.spec.clone());
                let found = state.node(&node);
                let depth = job.as_ref().map_or(0, |job| job.depth());
                let fit = found.zip(spec);
                let fit = fit.and_then(|(found, spec)| found.free.fit(&found.node.inventory, &spec.demand, depth));
                let epoch = found.map_or(NodeEpoch(1), |found| found.node.epoch);
                let (job, allocation) = (id(job), fit.unwrap_or_default());
                Command::GrantLease(GrantLease { job, node, epoch, allocation })
            }
            Self::GrantExactly { job, ref node, epoch, ref allocation } => {
                let (node, allocation) = (node.clone(), allocation.clone());
                Command::GrantLease(GrantLease { job, node, epoch, allocation })
            }
            Self::Report { job, kind, stale, idle } => report(nth(state, job), kind, stale, idle),
            Self::LoseNode { node, epoch } => Command::LoseNode(LoseNode { node: name(node), epoch: NodeEpoch(epoch) }),
            Self::Register { node, boot, cores, places, zone } => {
                let labels = zone.then(|| ("zone".to_owned(), "b".to_owned())).into_iter().collect();
                let inventory = Inventory { cores, places, llm_places: places / 2, labels, ..Inventory::default() };
                Command::RegisterNode(RegisterNode { node: name(node), boot_id: BootId(boot), inventory })
            }
            Self::Label { node, zone } => {
                let labels = [("zone".to_owned(), zone.map(String::from))].into();
                Command::LabelNode(LabelNode { node: name(node), labels })
            }
            Self::Cordon { node, cordoned } => Command::Cordon(Cordon { node: name(node), cordoned }),
            Self::Drain { node, deadline } => {
                let deadline = deadline.map(atlas_types::Micros::from_secs);
                Command::DrainNode(DrainNode { node: name(node), deadline })
            }
            Self::Remove { node } => Command::RemoveNode(RemoveNode { node: name(node) }),
            Self::Warm { node, idle } => {
                let digest = atlas_types::Digest([1; 32]);
                Command::WarmChanged(WarmChanged { node: name(node), epoch: NodeEpoch(1), digest, idle })
            }
            Self::Cancel { job, running } => Command::CancelJob(CancelJob { job: id(nth(state, job)), running }),
            Self::FailPending { job } => {
                Command::FailPending(FailPending { job: id(nth(state, job)), failure: failure() })
            }
            Self::Wake { job } => Command::WakeJob(WakeJob { job: id(nth(state, job)) }),
            Self::Retry { job, id: new } => {
                let (resume, questions) = (new.is_multiple_of(2), None);
                Command::RetryJob(RetryJob { job: id(nth(state, job)), id: JobId(new), resume, questions })
            }
            Self::Fork { job, id: new, steps } => {
                let job = id(nth(state, job));
                let pin = state.job(job).and_then(|job| job.pin.clone());
                let digest = atlas_types::Digest([1; 32]);
                let pin = pin.unwrap_or(AgentPin { version: Version { major: 1, minor: 0, patch: 0 }, digest });
                let (cut, folded) = (Some(artifact(9)), StepUsage::default());
                Command::ForkJob(ForkJob { job, id: JobId(new), steps, pin, model: None, cut, folded, added: None })
            }
            Self::Resolve { job, kind } => {
                let resolution = match kind {
                    0 => Resolution::RunAgain,
                    1 => Resolution::Completed(Payload::inline(b"1")),
                    _ => Resolution::Failed("no".into()),
                };
                Command::ResolveJob(ResolveJob { job: id(nth(state, job)), resolution })
            }
            Self::Record { job, back, steps, bytes, stale } => {
                let (job, node, token) = holder(nth(state, job), stale);
                let from = state.journal(job).map_or(0, |journal| journal.next()).saturating_sub(back);
                let steps = (from..from + u64::from(steps)).map(|number| journaled(number, bytes)).collect();
                Command::RecordSteps(RecordSteps { job, node, token, from, steps })
            }
            Self::Fold { job, back, inline } => {
                let (job, node, token) = holder(nth(state, job), false);
                let upto = state.journal(job).map_or(0, |journal| journal.next()).saturating_sub(back);
                let artifact = if inline { Payload::inline(b"[]") } else { artifact(1) };
                Command::FoldSteps(FoldSteps { job, node, token, upto, artifact })
            }
            Self::Park { job, back, seconds, used, child, stale } => {
                let (job, node, token) = holder(nth(state, job), stale);
                let journal_length = state.journal(job).map_or(0, |journal| journal.next()).saturating_sub(back);
                // With a child the time is left out now and then, so that the child alone wakes the job.
                let time = Wait::Time { at: Timestamp(state.at.0 + (seconds * 1_000_000) as i64) };
                let time = (child.is_none() || seconds > 0).then_some(time);
                let child = child.map(|child| Wait::Child { job: id(nth(state, child)) });
                let waits = time.into_iter().chain(child).collect();
                let (used, read) = (atlas_types::Micros::from_secs(used), 0);
                Command::ParkJob(ParkJob { job, node, token, journal_length, waits, used, read })
            }
            Self::Carry { job, run } => Command::CarryJob(CarryJob { job: id(nth(state, job)), run: RunId(run) }),
            Self::EndCarried { job, other, fails } => {
                let job = nth(state, job);
                let run = job.as_ref().and_then(|job| job.carried).map_or(9, |carried| carried.run.0);
                let end = if fails {
                    CarriedEnd::Failed { failure: failure(), output: None }
                } else {
                    CarriedEnd::Completed(Payload::inline(b"1"))
                };
                let run = RunId(run + u64::from(other));
                Command::EndCarried(EndCarried { job: id(job), run, end, metadata: None })
            }
            Self::Prune { limit } => {
                let (member, event_seq) = (MemberId(1), state.event_seq());
                // Every other time history is behind: then the prune must be refused.
                if limit == 1 {
                    return Command::SinkAck(SinkAck { member, event_seq });
                }
                Command::PruneJobs(PruneJobs { voters: vec![member], event_seq: state.sink(member), limit })
            }
            Self::Pass(_) => unreachable!("time passes without a command"),
        }
    }
}

fn submit(id: u64, number: u8, priority: i64) -> SubmitJob {
    let pin = atlas_kit::pin(atlas_kit::digest(number + 1));
    atlas_kit::job(id).of(&format!("a{number}")).pinned_to(pin).with_priority(priority).submission()
}

fn spawner(parent: Option<&Job>) -> Spawner {
    let lease = parent.and_then(|parent| parent.lease.as_ref());
    Spawner {
        job: parent.map_or(JobId(99), |parent| parent.id),
        token: lease.map_or(FencingToken(0), |lease| lease.token),
    }
}

/// A job, and the node and token of its lease.
fn holder(found: Option<Arc<Job>>, stale: bool) -> (JobId, NodeId, FencingToken) {
    let lease = found.as_ref().and_then(|job| job.lease.clone());
    let node = lease.as_ref().map_or_else(|| name(0), |lease| lease.node.clone());
    (id(found), node, FencingToken(lease.map_or(0, |lease| lease.token.0).saturating_sub(stale.into())))
}

/// A step whose content follows from its number, except that it may differ in size from the one recorded before.
fn journaled(number: u64, bytes: usize) -> Arc<Recorded> {
    let (outcome, usage) = (Payload::inline(&vec![b' '; bytes / 1_000 * 1_000]), StepUsage::default());
    Arc::new(Recorded { kind: StepKind::Model, key: StepKey([number as u8; 16]), outcome, usage })
}

fn report(found: Option<Arc<Job>>, kind: u8, stale: bool, idle: u32) -> Command {
    let (job, node, token) = holder(found, stale);
    let usage = Usage { idle, ..Usage::default() };
    let output = Payload::inline(b"1");
    match kind {
        0 => Command::StartJob(StartJob { job, node, token }),
        1 => Command::CompleteJob(CompleteJob { job, node, token, output, usage, metadata: None, stream: None }),
        2 => {
            let (failure, output) = (failure(), Some(output));
            Command::FailJob(FailJob { job, node, token, failure, output, usage, metadata: None, stream: None })
        }
        _ => Command::LoseLease(LoseLease { job, token }),
    }
}

fn failure() -> Failure {
    Failure { kind: FailureKind::Agent, error: "boom".into() }
}

fn nth(state: &State, at: usize) -> Option<Arc<Job>> {
    state.jobs(&Namespace::default_namespace(), None, None).nth(at).cloned()
}

fn id(job: Option<Arc<Job>>) -> JobId {
    job.map_or(JobId(999), |job| job.id)
}

fn name(number: u8) -> NodeId {
    node(&format!("n{number}"))
}
