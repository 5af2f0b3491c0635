//! Data shared by the simulated hosts and the main loop: the machines' disks, pending questions, and all observations.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use atlas_env::Env;
use atlas_log::recover::{RecoveredLog, recover};
use atlas_log::sim::SimDisk;
use atlas_log::{Driver, Limits};
use atlas_raft::{AppliedBatch, Handle, Leadership, Member};
use atlas_sim::{Coverage, Rng, workload};
use atlas_state::State;
use atlas_types::{Assignment, Command, Inventory, JobId, MemberId};
use tokio::sync::broadcast;

use crate::frames::Frame;
use crate::machine::{self, Liar, Lie, SimFiles, Skew, Sockets};
use crate::seen::Seen;
use crate::wire::{Answer, Ask};
use crate::{Bug, Options};

/// The cluster of every run.
pub(crate) const CLUSTER_ID: u128 = 7;
/// The port for the other members.
pub(crate) const PEER_PORT: u16 = 7402;
/// Short enough for a run of a few seconds.
const SNAPSHOT_LOOK_EVERY: Duration = Duration::from_millis(700);
/// Capacity for the batches that a member applies between two checks.
const BATCHES_MAX: usize = 4_096;

/// The shared data. Clones share it.
#[derive(Clone)]
pub(crate) struct Cluster(Arc<Mutex<Shared>>);

struct Shared {
    options: Options,
    rng: Rng,
    members: Vec<Machine>,
    skews: BTreeMap<String, Skew>,
    sockets: BTreeMap<String, Sockets>,
    questions: BTreeMap<u64, Ask>,
    answers: BTreeMap<u64, Answer>,
    frames: BTreeMap<u64, Frame>,
    inventories: Vec<Inventory>,
    numbers: u64,
    seen: Vec<Seen>,
    coverage: Coverage,
    set_up: bool,
    busy_clients: usize,
    commands: VecDeque<Command>,
    replacement: Option<Replacement>,
    /// The highest number that a member ever had.
    members_ever: u64,
}

/// A member that is lost for good, and its replacement on the same machine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Replacement {
    /// The lost member.
    pub(crate) old: MemberId,
    /// The new member.
    pub(crate) new: MemberId,
    /// The index of the machine.
    pub(crate) member: usize,
}

/// A member's machine, and the running member on it.
struct Machine {
    /// The number in the group. A machine with a new disk gets a new number.
    id: MemberId,
    disk: SimDisk,
    files: SimFiles,
    handle: Option<Handle>,
    batches: Option<broadcast::Receiver<Arc<AppliedBatch>>>,
    transfer: Option<MemberId>,
}

impl Shared {
    /// Registers the sockets of a program that starts on this host.
    fn connect(&mut self, host: &str) -> Sockets {
        let sockets = Sockets::default();
        self.sockets.insert(host.to_owned(), sockets.clone());
        sockets
    }
}

impl Cluster {
    pub(crate) fn new(options: &Options) -> Self {
        let mut rng = Rng::new(options.seed);
        let machine = |member| Machine {
            id: id(member),
            disk: SimDisk::default(),
            files: SimFiles::default(),
            handle: None,
            batches: None,
            transfer: None,
        };
        let members: Vec<_> = (0..options.members).map(machine).collect();
        members.iter().for_each(|machine| machine.disk.set_latency(Duration::ZERO, options.disk_max));
        let names = (1..=options.members).map(|n| format!("c{n}"));
        let names = names.chain((1..=options.nodes).map(|n| format!("w{n}")));
        let skews = names.map(|name| {
            let slow = options.bug == Some(Bug::SlowWorkerClock) && name.starts_with('w');
            let rate = rng.range(0, 20_000) as i64 - 10_000;
            let skew = Skew::of(if slow { -666_000 } else { rate });
            (name, if options.bug == Some(Bug::TimeoutsByWallClock) { skew.one_clock() } else { skew })
        });
        let skews = skews.collect();
        let inventories = (0..options.nodes).map(|node| workload::inventory(node, &mut rng)).collect();
        Self(Arc::new(Mutex::new(Shared {
            options: options.clone(),
            rng,
            members,
            skews,
            sockets: BTreeMap::new(),
            questions: BTreeMap::new(),
            answers: BTreeMap::new(),
            frames: BTreeMap::new(),
            inventories,
            numbers: 0,
            seen: Vec::new(),
            coverage: Coverage::default(),
            set_up: false,
            busy_clients: options.clients,
            commands: VecDeque::new(),
            replacement: None,
            members_ever: options.members as u64,
        })))
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The options of the run.
    pub(crate) fn options(&self) -> Options {
        self.shared().options.clone()
    }

    /// A unique random number.
    pub(crate) fn draw(&self) -> u64 {
        self.shared().rng.next()
    }

    /// The environment for a program that starts on this host.
    pub(crate) fn env(&self, host: &str) -> Env {
        let mut shared = self.shared();
        let skew = shared.skews.get(host).cloned().unwrap_or_default();
        let seed = shared.rng.next();
        machine::env(seed, skew, SimFiles::default(), shared.connect(host))
    }

    /// Ends the connections of the program on this host before it is killed.
    pub(crate) fn going_down(&self, host: &str) {
        if let Some(sockets) = self.shared().sockets.get(host) {
            sockets.end();
        }
    }

    /// The clock error of a host.
    pub(crate) fn skew(&self, host: &str) -> Skew {
        self.shared().skews.get(host).cloned().unwrap_or_default()
    }

    pub(crate) fn disk(&self, member: usize) -> SimDisk {
        self.shared().members[member].disk.clone()
    }

    pub(crate) fn files(&self, member: usize) -> SimFiles {
        self.shared().members[member].files.clone()
    }

    /// The environment, disk and options with which a member starts.
    pub(crate) fn boot(&self, member: usize) -> (Env, Box<dyn Driver>, atlas_raft::Options) {
        let mut shared = self.shared();
        let seed = shared.rng.next();
        let skew = shared.skews.get(&format!("c{}", member + 1)).cloned().unwrap_or_default();
        let sockets = shared.connect(&format!("c{}", member + 1));
        let Shared { options, members, .. } = &mut *shared;
        let bug = options.bug;
        let machine = &mut members[member];
        machine.files = machine.files.again();
        let env = machine::env(seed, skew, machine.files.clone(), sockets);
        let joins = machine.id != id(member);
        let founders = (0..options.members).filter(|_| !joins).map(|n| (id(n), at(n, id(n)))).collect();
        let driver = machine.disk.slow_driver();
        let options = atlas_raft::Options {
            member: machine.id,
            cluster_id: Some(CLUSTER_ID),
            own: at(member, machine.id),
            joins,
            members: founders,
            log: Limits {
                first_segment_bytes: 1 << 16,
                segment_bytes: 1 << 16,
                cache_bytes: 1 << 14,
                ..Limits::default()
            },
            subscription_max: BATCHES_MAX,
            session_ttl: options.session_ttl,
            history: false,
            snapshot_log_bytes: options.snapshot_log_bytes,
            snapshot_look_every: SNAPSHOT_LOOK_EVERY,
            ..atlas_raft::Options::new(PathBuf::from("/data"))
        };
        let lie = match bug {
            Some(Bug::LogNotSynced) => Some(Lie::NotSynced),
            Some(Bug::FailedSyncIgnored) => Some(Lie::NotFailed),
            _ => None,
        };
        if bug == Some(Bug::SnapshotNameNotSynced) {
            machine.files.forget_names();
        }
        match lie {
            Some(lie) => (env, Box::new(Liar { disk: driver, lie }), options),
            None => (env, Box::new(driver), options),
        }
    }

    /// Registers a running member.
    pub(crate) fn up(&self, member: usize, handle: &Handle) {
        let mut shared = self.shared();
        shared.members[member].batches = Some(handle.subscribe());
        shared.members[member].handle = Some(handle.clone());
        shared.seen.push(Seen::Up { member, state: handle.applied() });
    }

    /// Removes a stopped member. Its applied entries must have been collected before.
    pub(crate) fn down(&self, member: usize) {
        let machine = &mut self.shared().members[member];
        machine.handle = None;
        machine.batches = None;
    }

    /// The member's handle, while it is running.
    pub(crate) fn handle(&self, member: usize) -> Option<Handle> {
        self.shared().members[member].handle.clone()
    }

    /// The member's leadership, while it is running.
    pub(crate) fn leadership(&self, member: usize) -> Option<Leadership> {
        let shared = self.shared();
        let handle = shared.members[member].handle.as_ref()?;
        let leadership = handle.leadership();
        Some(leadership.borrow().clone())
    }

    /// True if the predicate holds for the state of any running member.
    pub(crate) fn any_state(&self, holds: impl Fn(&State) -> bool) -> bool {
        let shared = self.shared();
        shared.members.iter().filter_map(|machine| machine.handle.as_ref()).any(|handle| holds(&handle.applied()))
    }

    /// The synced log on a member's disk. None if it cannot be read.
    pub(crate) fn synced_log(&self, member: usize) -> Option<RecoveredLog> {
        let limits = Limits { cache_bytes: usize::MAX, ..Limits::default() };
        recover(&mut self.disk(member).copy().driver(), Some(CLUSTER_ID), 0, 0, &limits).ok()
    }

    /// Asks a member to hand its leadership over. The member's own host performs this.
    pub(crate) fn ask_transfer(&self, member: usize, to: MemberId) {
        self.shared().members[member].transfer = Some(to);
    }

    /// The member to which this member must hand its leadership over, if requested.
    pub(crate) fn take_transfer(&self, member: usize) -> Option<MemberId> {
        self.shared().members[member].transfer.take()
    }

    /// The number of a member in its group.
    pub(crate) fn id(&self, member: usize) -> MemberId {
        self.shared().members[member].id
    }

    /// Gives the machine a new disk and the member on it a new number. False while another member is being replaced.
    pub(crate) fn replace(&self, member: usize) -> bool {
        let mut shared = self.shared();
        if shared.replacement.is_some() {
            return false;
        }
        shared.members_ever += 1;
        let (new, machine) = (MemberId(shared.members_ever), &mut shared.members[member]);
        let old = std::mem::replace(&mut machine.id, new);
        machine.disk.wipe();
        machine.files.wipe();
        shared.replacement = Some(Replacement { old, new, member });
        true
    }

    /// The pending replacement.
    pub(crate) fn replacement(&self) -> Option<Replacement> {
        self.shared().replacement
    }

    /// Completes the replacement once the new member votes.
    pub(crate) fn replaced(&self) {
        self.shared().replacement = None;
    }

    /// Queues a command of an operator, which the leader proposes.
    pub(crate) fn command(&self, command: Command) {
        self.shared().commands.push_back(command);
    }

    /// Takes the next command of an operator.
    pub(crate) fn take_command(&self) -> Option<Command> {
        self.shared().commands.pop_front()
    }

    /// Records an observation.
    pub(crate) fn see(&self, seen: Seen) {
        self.shared().seen.push(seen);
    }

    /// Counts an event for the coverage.
    pub(crate) fn count(&self, what: &'static str) {
        self.shared().coverage.count(what);
    }

    /// The coverage so far.
    pub(crate) fn coverage(&self) -> Coverage {
        self.shared().coverage.clone()
    }

    /// All observations since the last call. Entries applied by members come first.
    pub(crate) fn take_seen(&self) -> Vec<Seen> {
        let mut shared = self.shared();
        let mut seen = Vec::new();
        for (member, machine) in shared.members.iter_mut().enumerate() {
            let Some(batches) = &mut machine.batches else { continue };
            while let Ok(batch) = batches.try_recv() {
                seen.push(Seen::Applied { member, batch });
            }
        }
        seen.append(&mut shared.seen);
        seen
    }

    /// Stores a question and returns its number.
    pub(crate) fn put_question(&self, ask: Ask) -> u64 {
        let mut shared = self.shared();
        shared.numbers += 1;
        let number = shared.numbers;
        shared.questions.insert(number, ask);
        number
    }

    /// The question with this number.
    pub(crate) fn question(&self, number: u64) -> Option<Ask> {
        self.shared().questions.get(&number).cloned()
    }

    pub(crate) fn put_answer(&self, number: u64, answer: Answer) {
        self.shared().answers.insert(number, answer);
    }

    /// Removes a question and returns its answer.
    pub(crate) fn take_answer(&self, number: u64) -> Option<Answer> {
        let mut shared = self.shared();
        shared.questions.remove(&number);
        shared.answers.remove(&number)
    }

    /// The hardware of a worker.
    pub(crate) fn inventory(&self, node: usize) -> Inventory {
        self.shared().inventories[node].clone()
    }

    /// The data that a worker needs to run a job under its lease.
    pub(crate) fn assignment(&self, state: &State, job: JobId) -> Option<Assignment> {
        let assignment = workload::assignment(state, job)?;
        let needs_start = assignment.needs_start && !self.has(Bug::StartUncommitted);
        Some(Assignment { needs_start, ..assignment })
    }

    /// The leading member, as far as the members know.
    pub(crate) fn leader(&self) -> Option<usize> {
        let shared = self.shared();
        let leads = |machine: &Machine| {
            let handle = machine.handle.as_ref();
            handle.is_some_and(|handle| matches!(*handle.leadership().borrow(), Leadership::Leader { .. }))
        };
        shared.members.iter().position(leads)
    }

    /// Stores a frame and returns its number.
    pub(crate) fn put_frame(&self, frame: Frame) -> u64 {
        let mut shared = self.shared();
        shared.numbers += 1;
        let number = shared.numbers;
        shared.frames.insert(number, frame);
        number
    }

    /// Removes a frame.
    pub(crate) fn take_frame(&self, number: u64) -> Option<Frame> {
        self.shared().frames.remove(&number)
    }

    /// Sets that the agents are registered and jobs may be submitted.
    pub(crate) fn set_up(&self) {
        self.shared().set_up = true;
    }

    pub(crate) fn is_set_up(&self) -> bool {
        self.shared().set_up
    }

    /// Records that a client has finished.
    pub(crate) fn client_done(&self) {
        self.shared().busy_clients -= 1;
    }

    pub(crate) fn busy_clients(&self) -> usize {
        self.shared().busy_clients
    }

    /// True if this run has the given deliberate bug.
    pub(crate) fn has(&self, bug: Bug) -> bool {
        self.shared().options.bug == Some(bug)
    }
}

/// The number of a founder in its group.
fn id(member: usize) -> MemberId {
    MemberId(member as u64 + 1)
}

/// A member's name and address.
pub(crate) fn at(member: usize, id: MemberId) -> Member {
    Member { name: format!("m{id}"), ..Member::at(format!("c{}:{PEER_PORT}", member + 1)) }
}
