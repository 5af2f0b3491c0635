use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use atlas_types::{JobId, Namespace, NodeEpoch, NodeId};
use proptest::prelude::*;

use super::*;

fn key() -> ModelKey {
    ModelKey { namespace: Namespace::default_namespace(), model: "fast".to_owned() }
}

fn session(node: u8, epoch: u64, stream: u64) -> Session {
    let node = NodeId::new(&format!("n{node}")).expect("a node");
    Session { node, epoch: NodeEpoch(epoch), stream }
}

fn ask(number: u64, tokens: u64) -> Ask {
    Ask { number, job: JobId(number), model: key(), tokens }
}

fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A limiter with some connected nodes, which announced that they use nothing.
fn limiter(nodes: u8) -> Limiter {
    let mut limiter = Limiter::default();
    for node in 0..nodes {
        limiter.connected(session(node, 1, 1), true);
        limiter.announce(&session(node, 1, 1), Vec::new(), Vec::new(), at(0));
    }
    limiter.look(&BTreeSet::new());
    limiter
}

fn granted(limiter: &mut Limiter, now: Duration, limits: Limits) -> Vec<u64> {
    limiter.grants(now, &|_| Some(limits), &mut |_| true).0.into_iter().map(|grant| grant.number).collect()
}

const FOUR: Limits = Limits { concurrency: Some(4), requests: None, tokens: None };
const THREE_A_MINUTE: Limits = Limits { concurrency: None, requests: Some(3), tokens: None };

#[test]
fn a_try_begins_when_another_has_ended() {
    let mut limiter = limiter(2);
    for number in 1..=6 {
        limiter.ask(&session((number % 2) as u8, 1, 1), ask(number, 0));
    }
    assert_eq!(granted(&mut limiter, at(1), FOUR), [1, 2, 3, 4]);
    let wait = limiter.wait_of(JobId(6), at(1), &|_| Some(FOUR)).expect("it waits");
    assert_eq!(wait.1, Wait { before: 1, reason: WaitReason::Concurrency { held: 4, limit: 4 } });
    limiter.done(&session(0, 1, 1), 2, Some(0));
    assert_eq!(granted(&mut limiter, at(1), FOUR), [5]);
    limiter.lost(&session(1, 1, 1).node, NodeEpoch(1));
    assert_eq!(granted(&mut limiter, at(1), FOUR), [6]);
}

#[test]
fn requests_wait_for_the_minute_to_pass() {
    let mut limiter = limiter(1);
    for number in 1..=5 {
        limiter.ask(&session(0, 1, 1), ask(number, 0));
    }
    assert_eq!(granted(&mut limiter, at(10), THREE_A_MINUTE), [1, 2, 3]);
    // One that did not begin leaves its place to another one.
    limiter.done(&session(0, 1, 1), 1, None);
    assert_eq!(granted(&mut limiter, at(20), THREE_A_MINUTE), [4]);
    let (_, wait) = limiter.wait_of(JobId(5), at(21), &|_| Some(THREE_A_MINUTE)).expect("it waits");
    assert_eq!(wait.reason, WaitReason::Requests { used: 3, limit: 3, next: at(50) });
    let (none, next) = limiter.grants(at(21), &|_| Some(THREE_A_MINUTE), &mut |_| true);
    assert_eq!((none, next), (Vec::new(), Some(at(71))));
    assert_eq!(granted(&mut limiter, at(71), THREE_A_MINUTE), [5]);
}

#[test]
fn a_try_that_wants_more_than_all_tokens_goes_alone() {
    let limits = Limits { tokens: Some(100), ..Limits::default() };
    let mut limiter = limiter(1);
    limiter.ask(&session(0, 1, 1), ask(1, 10));
    limiter.ask(&session(0, 1, 1), ask(2, 500));
    limiter.ask(&session(0, 1, 1), ask(3, 10));
    assert_eq!(granted(&mut limiter, at(0), limits), [1]);
    assert_eq!(granted(&mut limiter, at(61), limits), [2]);
    // What it really used counts once it has ended.
    limiter.done(&session(0, 1, 1), 2, Some(90));
    assert_eq!(granted(&mut limiter, at(62), limits), [3]);
}

#[test]
fn a_changed_limit_counts_for_those_that_wait() {
    let mut limiter = limiter(1);
    (1..=4).for_each(|number| limiter.ask(&session(0, 1, 1), ask(number, 0)));
    let limits = |concurrency| Limits { concurrency: Some(concurrency), ..Limits::default() };
    assert_eq!(granted(&mut limiter, at(0), limits(1)), [1]);
    assert_eq!(granted(&mut limiter, at(0), limits(2)), [2]);
    assert_eq!(limiter.grants(at(0), &|_| None, &mut |_| true).0.len(), 2);
}

#[test]
fn a_new_leader_waits_for_what_it_does_not_know() {
    let mut limiter = Limiter::default();
    limiter.restart(at(100));
    let ready: BTreeSet<_> = [0, 1, 2].map(|node| (session(node, 1, 1).node, NodeEpoch(1))).into();
    limiter.connected(session(0, 1, 5), true);
    limiter.ask(&session(0, 1, 5), ask(9, 0));
    assert!(limiter.is_empty(), "it asks before it announces");
    let held = |number| Held { ask: ask(number, 0), age: at(3) };
    let past = Past { model: key(), age: at(30), requests: 2, tokens: 0 };
    limiter.announce(&session(0, 1, 5), (1..=3).map(held).collect(), vec![past], at(100));
    limiter.ask(&session(0, 1, 5), ask(4, 0));
    limiter.look(&ready);
    assert!(granted(&mut limiter, at(101), FOUR).is_empty());
    // One worker is too old to announce anything, and one is lost.
    limiter.connected(session(1, 1, 1), false);
    limiter.look(&ready.iter().take(2).cloned().collect());
    assert_eq!(granted(&mut limiter, at(101), FOUR), [4]);
    limiter.ask(&session(0, 1, 5), ask(5, 0));
    assert!(granted(&mut limiter, at(101), FOUR).is_empty());
    // What the lost node used is not known for a minute.
    let six = Limits { requests: Some(6), ..Limits::default() };
    let (_, wait) = limiter.wait_of(JobId(5), at(102), &|_| Some(six)).expect("it waits");
    assert_eq!(wait.reason, WaitReason::Unknown { next: at(59) });
    assert_eq!(granted(&mut limiter, at(161), six), [5]);
}

#[test]
fn what_a_worker_announces_replaces_what_was_known_of_it() {
    let mut limiter = limiter(1);
    (1..=4).for_each(|number| limiter.ask(&session(0, 1, 1), ask(number, 0)));
    assert_eq!(granted(&mut limiter, at(0), FOUR), [1, 2, 3, 4]);
    limiter.connected(session(0, 1, 2), true);
    limiter.done(&session(0, 1, 1), 1, Some(0));
    // It never got the fourth, and asks for it again.
    let held = (1..=3).map(|number| Held { ask: ask(number, 0), age: at(1) }).collect();
    limiter.announce(&session(0, 1, 2), held, Vec::new(), at(1));
    limiter.ask(&session(0, 1, 2), ask(4, 0));
    limiter.ask(&session(0, 1, 2), ask(5, 0));
    assert_eq!(granted(&mut limiter, at(1), FOUR), [4]);
    // Another process of the node has none of these.
    limiter.connected(session(0, 2, 3), true);
    limiter.announce(&session(0, 2, 3), Vec::new(), Vec::new(), at(2));
    limiter.ask(&session(0, 2, 3), ask(1, 0));
    assert_eq!(granted(&mut limiter, at(2), FOUR), [1]);
}

#[test]
fn a_node_that_is_lost_before_anybody_asks_is_not_forgotten() {
    let mut limiter = Limiter::default();
    limiter.restart(at(100));
    let (kept, lost) = (session(0, 1, 1), session(1, 1, 1));
    limiter.look(&[(kept.node.clone(), kept.epoch), (lost.node.clone(), lost.epoch)].into());
    limiter.lost(&lost.node, lost.epoch);
    limiter.connected(kept.clone(), true);
    limiter.announce(&kept, Vec::new(), Vec::new(), at(110));
    assert!(limiter.is_empty() && !limiter.is_informed());
    limiter.look(&[(kept.node.clone(), kept.epoch)].into());
    limiter.ask(&kept, ask(1, 0));
    assert!(granted(&mut limiter, at(111), THREE_A_MINUTE).is_empty());
    assert_eq!(granted(&mut limiter, at(161), THREE_A_MINUTE), [1]);
}

#[test]
fn what_waits_on_a_stream_that_has_ended_is_forgotten() {
    let mut limiter = limiter(2);
    let (gone, other) = (session(0, 1, 1), session(1, 1, 1));
    (1..=3).for_each(|number| limiter.ask(&gone, ask(number, 0)));
    let one = Limits { concurrency: Some(1), requests: Some(3), tokens: None };
    assert_eq!(granted(&mut limiter, at(0), one), [1]);
    limiter.ask(&other, ask(9, 0));
    assert_eq!((limiter.tries(&gone), limiter.tries(&other)), (3, 1));
    limiter.left(&session(0, 1, 0));
    assert_eq!(limiter.tries(&gone), 3, "an older stream of the node");
    limiter.left(&gone);
    assert_eq!(limiter.tries(&gone), 1);
    assert!(granted(&mut limiter, at(1), one).is_empty(), "one is under way");
    // It alone counts when its node is lost.
    limiter.lost(&gone.node, gone.epoch);
    (10..=11).for_each(|number| limiter.ask(&other, ask(number, 0)));
    let begin = |limiter: &mut Limiter, number| {
        assert_eq!(granted(limiter, at(1), one), [number]);
        limiter.done(&other, number, Some(0));
    };
    begin(&mut limiter, 9);
    begin(&mut limiter, 10);
    assert!(granted(&mut limiter, at(1), one).is_empty());
}

#[test]
fn a_stream_without_room_holds_up_no_other_one() {
    let mut limiter = limiter(2);
    (1..=3).for_each(|number| limiter.ask(&session(0, 1, 1), ask(number, 0)));
    (4..=6).for_each(|number| limiter.ask(&session(1, 1, 1), ask(number, 0)));
    let mut left = 1;
    let mut room = |session: &Session| {
        let takes = session.node.as_str() == "n1" || left > 0;
        left -= usize::from(session.node.as_str() == "n0" && takes);
        takes
    };
    let (grants, next) = limiter.grants(at(0), &|_| Some(FOUR), &mut room);
    assert_eq!(grants.iter().map(|grant| grant.number).collect::<Vec<_>>(), [1, 4, 5, 6]);
    assert_eq!(next, None);
    limiter.done(&session(0, 1, 1), 1, Some(0));
    assert_eq!(granted(&mut limiter, at(0), FOUR), [2], "in their order");
}

/// What happens to a limiter.
#[derive(Debug, Clone)]
enum Op {
    Ask {
        node: u8,
        tokens: u64,
    },
    /// The oldest try under way ends, with this share of what it reserved.
    End {
        node: u8,
        percent: u64,
    },
    Withdraw {
        node: u8,
    },
    Lose {
        node: u8,
    },
    Reconnect {
        node: u8,
        process: bool,
    },
    Pass {
        milliseconds: u64,
    },
    NewLeader,
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let node = || 0_u8..3;
    let op = prop_oneof![
        8 => (node(), 0_u64..300).prop_map(|(node, tokens)| Op::Ask { node, tokens }),
        6 => (node(), 0_u64..100).prop_map(|(node, percent)| Op::End { node, percent }),
        1 => node().prop_map(|node| Op::Withdraw { node }),
        1 => node().prop_map(|node| Op::Lose { node }),
        1 => (node(), any::<bool>()).prop_map(|(node, process)| Op::Reconnect { node, process }),
        4 => (0_u64..20_000).prop_map(|milliseconds| Op::Pass { milliseconds }),
        1 => Just(Op::NewLeader),
    ];
    proptest::collection::vec(op, 1..120)
}

/// A worker as its node runs it.
#[derive(Debug, Default)]
struct Worker {
    epoch: u64,
    stream: u64,
    last: u64,
    waiting: VecDeque<Ask>,
    held: VecDeque<(Ask, Duration)>,
    past: Vec<(Duration, u64)>,
}

impl Worker {
    fn session(&self, node: u8) -> Session {
        session(node, self.epoch, self.stream)
    }

    fn connect(&mut self, limiter: &mut Limiter, node: u8, now: Duration) {
        self.stream += 1;
        let session = self.session(node);
        limiter.connected(session.clone(), true);
        let held = self.held.iter().map(|(ask, at)| Held { ask: ask.clone(), age: now - *at }).collect();
        let past = self.past.iter().filter(|(at, _)| now - *at < COUNTED);
        let past = past.map(|(at, tokens)| Past { model: key(), age: now - *at, requests: 1, tokens: *tokens });
        limiter.announce(&session, held, past.collect(), now);
        self.waiting.iter().for_each(|ask| limiter.ask(&session, ask.clone()));
    }

    /// The process ends, and another one starts.
    fn replace(&mut self) -> Vec<(Duration, u64)> {
        let ended = self.held.drain(..).map(|(ask, at)| (at, ask.tokens)).chain(self.past.drain(..)).collect();
        (self.epoch, self.stream, self.last) = (self.epoch + 1, 0, 0);
        self.waiting.clear();
        ended
    }
}

struct World {
    limiter: Limiter,
    limits: Limits,
    now: Duration,
    workers: BTreeMap<u8, Worker>,
    /// Tries of processes that have ended.
    gone: Vec<(Duration, u64)>,
    /// How many processes this leader has seen end; what they used is known to it alone.
    job: u64,
    order: VecDeque<JobId>,
}

impl World {
    fn new(limits: Limits) -> Self {
        let mut world = Self {
            limiter: Limiter::default(),
            limits,
            now: at(1_000),
            workers: BTreeMap::new(),
            gone: Vec::new(),
            job: 0,
            order: VecDeque::new(),
        };
        world.limiter.restart(world.now);
        for node in 0..3 {
            let mut worker = Worker { epoch: 1, ..Worker::default() };
            worker.connect(&mut world.limiter, node, world.now);
            world.workers.insert(node, worker);
        }
        world.limiter.look(&BTreeSet::new());
        world
    }

    fn perform(&mut self, op: &Op) {
        let now = self.now;
        match op {
            Op::Ask { node, tokens } => {
                let worker = self.workers.get_mut(node).expect("a worker");
                (worker.last, self.job) = (worker.last + 1, self.job + 1);
                let ask = Ask { number: worker.last, job: JobId(self.job), model: key(), tokens: *tokens };
                worker.waiting.push_back(ask.clone());
                self.order.push_back(ask.job);
                self.limiter.ask(&worker.session(*node), ask);
            }
            Op::End { node, percent } => {
                let worker = self.workers.get_mut(node).expect("a worker");
                let Some((ask, at)) = worker.held.pop_front() else { return };
                let tokens = ask.tokens * percent / 100;
                worker.past.push((at, tokens));
                self.limiter.done(&worker.session(*node), ask.number, Some(tokens));
            }
            Op::Withdraw { node } => {
                let worker = self.workers.get_mut(node).expect("a worker");
                let Some(ask) = worker.waiting.pop_back() else { return };
                self.order.retain(|job| *job != ask.job);
                self.limiter.done(&worker.session(*node), ask.number, None);
            }
            Op::Lose { node } => {
                let worker = self.workers.get_mut(node).expect("a worker");
                self.order.retain(|job| worker.waiting.iter().all(|ask| ask.job != *job));
                let epoch = NodeEpoch(worker.epoch);
                self.gone.extend(worker.replace());
                self.limiter.lost(&session(*node, 0, 0).node, epoch);
                worker.connect(&mut self.limiter, *node, now);
            }
            Op::Reconnect { node, process } => {
                let worker = self.workers.get_mut(node).expect("a worker");
                let asked: Vec<JobId> = worker.waiting.iter().map(|ask| ask.job).collect();
                self.order.retain(|job| !asked.contains(job));
                if *process {
                    self.gone.extend(worker.replace());
                } else {
                    self.order.extend(asked);
                }
                worker.connect(&mut self.limiter, *node, now);
            }
            Op::Pass { milliseconds } => self.now += Duration::from_millis(*milliseconds),
            // A leader that is told of all, as no process has ended within the minute before.
            Op::NewLeader if self.gone.iter().all(|(at, _)| now - *at >= COUNTED) => {
                self.limiter.restart(now);
                self.order.clear();
                for (node, worker) in &mut self.workers {
                    worker.connect(&mut self.limiter, *node, now);
                    self.order.extend(worker.waiting.iter().map(|ask| ask.job));
                }
                self.limiter.look(&BTreeSet::new());
            }
            Op::NewLeader => {}
        }
    }

    /// What began within the minute: requests and tokens, as their workers know them.
    fn used(&self) -> (usize, u64) {
        let minute = |at: &Duration| self.now - *at < at_most_a_minute();
        let held = self.workers.values().flat_map(|worker| worker.held.iter().map(|(ask, at)| (*at, ask.tokens)));
        let past = self.workers.values().flat_map(|worker| worker.past.iter().copied());
        let all: Vec<(Duration, u64)> =
            held.chain(past).chain(self.gone.iter().copied()).filter(|(at, _)| minute(at)).collect();
        (all.len(), all.iter().map(|(_, tokens)| tokens).sum())
    }

    /// Grants, and checks each grant. Returns how many there were.
    fn grant(&mut self) -> usize {
        let limits = self.limits;
        let (grants, next) = self.limiter.grants(self.now, &|_| Some(limits), &mut |_| true);
        for Grant { session, number } in &grants {
            let node = session.node.as_str()[1..].parse::<u8>().expect("a number");
            let before = self.used();
            let worker = self.workers.get_mut(&node).expect("a worker");
            assert_eq!(*session, worker.session(node), "on the stream that is open");
            let place = worker.waiting.iter().position(|ask| ask.number == *number).expect("it waits");
            let ask = worker.waiting.remove(place).expect("it waits");
            assert_eq!(self.order.pop_front(), Some(ask.job), "in the order of asking");
            let tokens = ask.tokens;
            worker.held.push_back((ask, self.now));
            let held: usize = self.workers.values().map(|worker| worker.held.len()).sum();
            assert!(self.limits.concurrency.is_none_or(|limit| held <= limit as usize), "{held} at the same time");
            assert!(self.limits.requests.is_none_or(|limit| before.0 < limit as usize), "{} in a minute", before.0 + 1);
            let fits = self.limits.tokens.is_none_or(|limit| before.1 == 0 || before.1 + tokens <= limit);
            assert!(fits, "{} tokens and {tokens} in a minute", before.1);
        }
        let held: usize = self.workers.values().map(|worker| worker.held.len()).sum();
        let is_full = self.limits.concurrency.is_some_and(|limit| held >= limit as usize);
        assert!(self.order.is_empty() || is_full || next.is_some(), "what waits is looked at again");
        assert!(next.is_none_or(|next| next > self.now), "not at once");
        grants.len()
    }
}

fn at_most_a_minute() -> Duration {
    at(60)
}

proptest! {
    #[test]
    fn limits_hold_and_all_begin_in_their_order(
        ops in ops(),
        concurrency in proptest::option::of(1_u32..5),
        requests in proptest::option::of(1_u32..8),
        tokens in proptest::option::of(50_u64..600),
    ) {
        let mut world = World::new(Limits { concurrency, requests, tokens });
        for op in &ops {
            world.perform(op);
            world.grant();
        }
        // Everything that waits begins, as long as what is under way ends.
        let mut rounds = 0;
        while !world.order.is_empty() {
            rounds += 1;
            prop_assert!(rounds < 1_000, "{} wait for ever", world.order.len());
            for node in 0..3 {
                while !world.workers[&node].held.is_empty() {
                    world.perform(&Op::End { node, percent: 50 });
                }
            }
            world.now += at(61);
            world.grant();
        }
        for node in 0..3 {
            while !world.workers[&node].held.is_empty() {
                world.perform(&Op::End { node, percent: 50 });
            }
        }
        world.now += COUNTED;
        world.grant();
        prop_assert!(world.limiter.is_empty(), "nothing is left behind: {:?}", world.limiter);
    }
}
