//! A worker: the real slot machine in a simple shell, with children that end after a while.

use std::collections::BTreeMap;
use std::time::Duration;

use atlas_env::Env;
use atlas_sim::Rng;
use atlas_sim::workload::{self, Agent};
use atlas_slots::{AttemptEnd, Effect, Input, Leave, Options as SlotOptions, SlotId, Slots, StopReason};
use atlas_types::{Assignment, Failure, FailureKind, FencingToken, Inventory, Micros, NodeId, ReportKind, Usage};
use tokio::sync::mpsc;

use crate::cluster::Cluster;
use crate::frames::{Frame, PORT, ToLeader, ToWorker, split};
use crate::machine;
use crate::seen::Seen;

const CONNECT_MAX: Duration = Duration::from_secs(1);
/// The longest time that a kill takes, in milliseconds.
const KILL_MAX: u64 = 20;

/// An event for the worker.
enum Happened {
    /// A stream is open.
    Open(mpsc::UnboundedSender<Frame>),
    /// The leader sent a frame.
    Said(ToWorker),
    /// The stream broke or could not be opened.
    Gone,
}

struct Child {
    ends_at: Duration,
    report: ReportKind,
    usable: bool,
    slot: SlotId,
}

struct Worker {
    cluster: Cluster,
    env: Env,
    rng: Rng,
    node: NodeId,
    boot: u128,
    inventory: Inventory,
    slots: Slots,
    children: BTreeMap<FencingToken, Child>,
    /// Slots that were shut down but not yet reported to the slot machine.
    gone: Vec<SlotId>,
    /// Results that are on disk but not yet reported. In this simulation, a killed process loses its disk as well.
    saved: Vec<u64>,
    /// When the preparation of each attempt will be complete.
    preparing: BTreeMap<FencingToken, Duration>,
    /// The number of streams so far. Frames of older streams are ignored.
    streams: u64,
    out: Option<mpsc::UnboundedSender<Frame>>,
    events: mpsc::UnboundedSender<(u64, Happened)>,
    connect_at: Option<Duration>,
    /// The send times of frames that extend the session. The stream's hello has number 0.
    asked: BTreeMap<u64, Duration>,
}

/// The name of a worker's node.
pub(crate) fn node(index: usize) -> NodeId {
    format!("node-{index}").parse().unwrap_or_else(|_| unreachable!("a node name"))
}

/// Runs as long as the simulation. A crash drops this future and with it the children.
pub(crate) async fn run(cluster: Cluster, index: usize) -> turmoil::Result {
    let env = cluster.env(&format!("w{}", index + 1));
    let rng = Rng::new(cluster.draw());
    let (events, mut happened) = mpsc::unbounded_channel();
    let mut worker = Worker {
        boot: u128::from(cluster.draw()),
        inventory: cluster.inventory(index),
        slots: Slots::new(SlotOptions {
            idle_timeout: Duration::from_secs(10),
            inventory: cluster.inventory(index),
            ..SlotOptions::default()
        }),
        node: node(index),
        children: BTreeMap::new(),
        gone: Vec::new(),
        saved: Vec::new(),
        preparing: BTreeMap::new(),
        streams: 0,
        out: None,
        events,
        connect_at: Some(Duration::ZERO),
        asked: BTreeMap::new(),
        cluster,
        env,
        rng,
    };
    worker.cluster.count("new node epochs");
    loop {
        let now = worker.env.clock.monotonic();
        worker.due(now);
        let wake = worker.next_wake().saturating_sub(worker.env.clock.monotonic());
        tokio::select! {
            biased;
            Some((stream, what)) = happened.recv() => worker.happened(stream, what),
            () = worker.env.clock.sleep(wake.max(Duration::from_millis(1))) => {}
        }
    }
}

impl Worker {
    fn next_wake(&self) -> Duration {
        let child = self.children.values().map(|child| child.ends_at).min();
        let prepared = self.preparing.values().min().copied();
        let all = [child, prepared, self.slots.next_tick(), self.connect_at];
        all.into_iter()
            .flatten()
            .min()
            .unwrap_or(Duration::MAX)
            .min(self.env.clock.monotonic() + Duration::from_secs(5))
    }

    /// Performs the work that is due.
    fn due(&mut self, now: Duration) {
        if self.connect_at.is_some_and(|at| at <= now) {
            self.connect_at = None;
            self.connect();
        }
        if self.slots.next_tick().is_some_and(|at| at <= now) {
            self.step(Input::Tick);
        }
        let here: Vec<_> = self.preparing.extract_if(.., |_, at| *at <= now).collect();
        for (token, _) in here {
            // Sometimes a package cannot be fetched.
            let fails = self.rng.chance(50);
            let report = ReportKind::NotHeld;
            self.step(if fails { Input::Unprepared { token, report } } else { Input::Prepared { token } });
        }
        let ended: Vec<_> = self.children.iter().filter(|(_, child)| child.ends_at <= now).map(|(t, _)| *t).collect();
        for token in ended {
            let Some(child) = self.children.remove(&token) else { continue };
            self.cluster.see(Seen::ChildEnded { token });
            let end = AttemptEnd { report: child.report, slot_usable: child.usable };
            if !child.usable {
                self.gone.push(child.slot);
            }
            self.step(Input::Ended { token, end });
        }
    }

    /// Connects, usually to the leader, like a worker that knows the leader.
    fn connect(&mut self) {
        self.streams += 1;
        let stream = self.streams;
        let members = self.cluster.options().members as u64;
        let any = self.rng.below(members) as usize;
        let member = if self.rng.chance(700) { self.cluster.leader().unwrap_or(any) } else { any };
        let (cluster, env, events) = (self.cluster.clone(), self.env.clone(), self.events.clone());
        self.env.spawn("worker-stream", async move {
            let address = format!("c{}:{PORT}", member + 1);
            let connecting = tokio::time::timeout(CONNECT_MAX, env.net.connect(&address)).await;
            if let Ok(Ok(connection)) = connecting {
                let (mut reader, writer) = split(&cluster, connection);
                let (out, frames) = mpsc::unbounded_channel();
                env.spawn("worker-writer", writer.run(frames));
                let _ = events.send((stream, Happened::Open(out)));
                while let Some(Frame::ToWorker(said)) = reader.next().await {
                    let _ = events.send((stream, Happened::Said(said)));
                }
            }
            let _ = events.send((stream, Happened::Gone));
        });
    }

    fn happened(&mut self, stream: u64, what: Happened) {
        if stream != self.streams {
            return;
        }
        match what {
            Happened::Open(out) => {
                self.out = Some(out);
                self.step(Input::Connected);
            }
            Happened::Said(said) => {
                self.renewed(&said);
                self.step(match said {
                    ToWorker::Welcome { epoch, ttl, seq, leases } => {
                        let tokens = leases.iter().map(|lease| lease.token).collect();
                        let node = self.node.clone();
                        self.cluster.see(Seen::Welcomed { node, epoch, seq, leases: tokens });
                        Input::Welcome { epoch, ttl, leases }
                    }
                    ToWorker::Grant(assignment) => Input::Granted(assignment),
                    ToWorker::Cancel(token) => Input::Cancelled { token, grace: Duration::from_millis(200) },
                    ToWorker::Revoke(token) => Input::Revoked { token },
                    ToWorker::RenewAck(number) => Input::RenewAcked { number },
                    ToWorker::ReportAck { number, result } => Input::ReportAcked { number, result },
                });
            }
            Happened::Gone => {
                if self.out.take().is_some() {
                    self.step(Input::Disconnected);
                }
                self.connect_later();
            }
        }
    }

    /// Reports how long the session certainly lives.
    fn renewed(&mut self, said: &ToWorker) {
        let number = match said {
            ToWorker::Welcome { .. } => 0,
            ToWorker::RenewAck(number) => *number,
            _ => return,
        };
        if let Some(sent) = self.asked.get(&number).copied() {
            self.cluster.see(Seen::Renewed { node: self.node.clone(), sent });
        }
    }

    fn connect_later(&mut self) {
        let pause = Duration::from_millis(self.rng.range(50, 500));
        self.connect_at = Some(self.env.clock.monotonic() + pause);
    }

    fn step(&mut self, input: Input) {
        let now = self.env.clock.monotonic();
        for effect in self.slots.step(input, now) {
            self.perform(effect);
        }
        if let Some(slot) = self.gone.pop() {
            self.step(Input::SlotGone { slot });
        }
        if let Some(number) = self.saved.pop() {
            self.step(Input::Saved { number });
        }
    }

    fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::SendHello { held } => {
                self.asked = BTreeMap::from([(0, machine::now())]);
                let inventory = Box::new(self.inventory.clone());
                let held = held.into_iter().map(|lease| lease.token).collect();
                self.send(ToLeader::Hello { node: self.node.clone(), boot: self.boot, inventory, held });
            }
            Effect::SendRenew { number } => {
                self.asked.insert(number, machine::now());
                self.send(ToLeader::Renew(number));
            }
            Effect::SendReport { number, report } => self.send(ToLeader::Report { number, report }),
            Effect::Disconnect { why } => {
                self.cluster.count(match why {
                    Leave::TimeUsedUp => "sessions expired at the worker",
                    Leave::Unanswered => "leaders left by a worker",
                    Leave::NoWelcome => "hellos without a welcome",
                });
                // Later frames of this stream are ignored.
                self.streams += 1;
                self.out = None;
                self.connect_later();
            }
            Effect::PrepareAttempt { assignment } => {
                let takes = Duration::from_millis(self.rng.range(1, 300));
                self.preparing.insert(assignment.token, self.env.clock.monotonic() + takes);
            }
            Effect::ForgetPrepared { token } => {
                self.preparing.remove(&token);
            }
            Effect::StartAttempt { assignment, slot, .. } => self.start(&assignment, slot),
            Effect::StopAttempt { token, why, grace } => self.stop(token, why, grace),
            Effect::EvictSlot { slot } => self.gone.push(slot),
            Effect::SaveReport { number, .. } => self.saved.push(number),
            Effect::SendWarmChanged { .. }
            | Effect::SendDraining
            | Effect::SendLeaving
            | Effect::Drained
            | Effect::SavedAnswered { .. }
            | Effect::SendPark { .. }
            | Effect::Resume { .. }
            | Effect::BeginEpoch => {}
        }
    }

    fn send(&mut self, frame: ToLeader) {
        if let Some(out) = &self.out {
            // If the writer has ended, the reader reports it.
            let _ = out.send(Frame::ToLeader(frame));
        }
    }

    fn start(&mut self, assignment: &Assignment, slot: SlotId) {
        let agent = Agent::named(&assignment.agent);
        let (job, token) = (assignment.job, assignment.token);
        self.cluster.count("executions");
        self.cluster.see(Seen::ChildStarted { node: self.node.clone(), job, token });
        let runs_for = self.rng.pick(&[5, 50, 300, 1_500, 3_000]) * 1_000;
        let fails = self.rng.chance(if agent == Agent::Flaky { 600 } else { 50 });
        let usage = Usage { execution: Micros(runs_for), ..Usage::default() };
        let report = if fails {
            let failure = Failure { kind: FailureKind::Agent, error: token.to_string().into() };
            ReportKind::Failed { failure, output: None, usage, metadata: None, cancelled: false }
        } else {
            ReportKind::Completed { output: workload::output(token), usage, metadata: None }
        };
        let ends_at = self.env.clock.monotonic() + Duration::from_micros(runs_for);
        let usable = self.rng.chance(900);
        self.children.insert(token, Child { ends_at, report, usable, slot });
    }

    /// Sends a signal to a child. A child may use its whole grace period.
    fn stop(&mut self, token: FencingToken, why: StopReason, grace: Duration) {
        let grace = u64::try_from(grace.as_millis()).unwrap_or(0);
        let takes = self.rng.range(1, KILL_MAX + if why == StopReason::Cancelled { grace } else { 0 });
        let ends_at = self.env.clock.monotonic() + Duration::from_millis(takes);
        if let Some(child) = self.children.get_mut(&token).filter(|child| child.ends_at > ends_at) {
            child.ends_at = ends_at;
            child.usable = false;
        }
    }
}
