//! The leader tasks on a real state: statements in, proposed commands out. Every proposed command must be accepted.

use std::sync::Arc;
use std::time::Duration;

use atlas_state::State;
use atlas_types::{
    CarriedEnd, CarryJob, ClusterConfig, ClusterTime, Command, CompleteJob, ConfigureCluster, CreateJoinToken, Digest,
    Effects, EndCarried, EventSeq, FailJob, Failure, FailureKind, FencingToken, JobId, JoinKind, Level, MemberId,
    Micros, Namespace, NodeEpoch, NodeId, Origin, Outcome, ParkJob, Payload, RecordSteps, Rejection, RemoveNode,
    Request, RequiredAgent, RetireAgent, RetryRule, RunId, SinkAck, Step, StepKey, StepKind, StepUsage, Timestamp,
    Usage, Version, Wait,
};
use expect_test::{Expect, expect};

use crate::sessions::{Sessions, StreamId};
use crate::{Strategy, delete_retired, expire, follow, lose, prune, schedule};

mod runs;
mod shares;

const TTL: Duration = Duration::from_secs(8);
const VERSION: Version = Version { major: 1, minor: 0, patch: 0 };

struct Script {
    state: State,
    clock: ClusterTime,
    sessions: Sessions,
    out: String,
}

/// Runs the sentences and compares what the duties among them proposed.
#[expect(clippy::needless_pass_by_value, reason = "`expect!` makes values; tests read better without `&`")]
fn check(text: &str, expected: Expect) {
    let sessions = Sessions::new(TTL);
    let mut script = Script { state: State::new(1), clock: ClusterTime(0), sessions, out: String::new() };
    text.split(';').map(str::trim).filter(|sentence| !sentence.is_empty()).for_each(|sentence| script.run(sentence));
    script.state.check_invariants().expect("the invariants hold");
    assert!(!script.out.is_empty(), "the script asks for nothing");
    expected.assert_eq(&script.out);
}

impl Script {
    fn run(&mut self, sentence: &str) {
        let words: Vec<&str> = sentence.split_whitespace().collect();
        match words[..] {
            ["node", name, places] => self.must(atlas_kit::node(name).with_places(number(places) as u32).registered()),
            ["agent", name, ref rest @ ..] => self.must(agent(name, rest)),
            ["submit", id, name] => self.must(submit(id, name)),
            ["retire", name] => self.must(Command::RetireAgent(RetireAgent {
                name: name.parse().expect("an agent name"),
                version: VERSION,
            })),
            ["complete", id] => self.must(self.completion(id)),
            ["fail", id] => self.must(self.failure(id)),
            ["park", id, seconds] => self.park(id, number(seconds)),
            ["remove", name] => self.must(Command::RemoveNode(RemoveNode { node: name.parse().expect("a node name") })),
            ["carry", id, run] => self.must(Command::CarryJob(CarryJob { job: job(id), run: RunId(number(run)) })),
            ["keep", count] => self.must(keep(number(count))),
            ["ack", member, event] => {
                let (member, event_seq) = (MemberId(number(member)), EventSeq(number(event)));
                self.must(Command::SinkAck(SinkAck { member, event_seq }));
            }
            ["after", seconds] => self.clock = self.clock.plus(Micros::from_secs(number(seconds))),
            ["schedule"] => self.duty(schedule(&self.state, self.sessions.away(), Strategy::BinPack, 100)),
            ["schedule", budget] => {
                let budget = number(budget) as usize;
                self.duty(schedule(&self.state, self.sessions.away(), Strategy::BinPack, budget));
            }
            ["follow"] => self.duty(follow(&self.state, &self.sessions, self.clock, Strategy::BinPack, 100)),
            ["hello", name, epoch] => {
                let (node, epoch) = incarnation(name, epoch);
                self.sessions.hello(&node, epoch, StreamId(1), self.now());
            }
            ["broke", name, epoch] => {
                let (node, epoch) = incarnation(name, epoch);
                self.sessions.broke(&node, epoch, StreamId(1), self.now());
            }
            ["tick"] => self.sessions.tick(self.now()),
            ["token", ttl] => self.must(token(ttl)),
            ["expire"] => self.duty(expire(&self.state, self.clock, 100)),
            ["level", level] => self.state.raise(Level(number(level) as u32)),
            ["delete-retired", keep] => {
                let keep = Micros::from_secs(number(keep));
                self.duty(delete_retired(&self.state, self.clock, keep, 100));
            }
            ["prune", ref voters @ ..] => {
                let voters: Vec<_> = voters.iter().map(|voter| MemberId(number(voter))).collect();
                self.duty(prune(&self.state, &voters, 100).into_iter().collect());
            }
            ["lose", name, epoch] => {
                let (node, epoch) = incarnation(name, epoch);
                let mut sessions = Sessions::new(TTL);
                sessions.hello(&node, epoch, StreamId(1), Duration::ZERO);
                sessions.leave(&node, epoch);
                self.duty(lose(&self.state, &sessions, 100));
            }
            _ => panic!("no such sentence: {sentence}"),
        }
    }

    fn now(&self) -> Duration {
        Duration::from_micros(self.clock.0)
    }

    fn apply(&mut self, request: &Request) -> Result<Outcome, Rejection> {
        let at = Timestamp(1 + self.clock.0 as i64);
        self.state.begin_entry(at, self.clock);
        let (outcome, _) = self.state.apply(request, at, self.clock);
        self.state.end_entry();
        outcome
    }

    fn must(&mut self, command: Command) {
        let request = Request { origin: Origin::duty(Namespace::default_namespace()), command };
        self.apply(&request).unwrap_or_else(|rejection| panic!("{rejection}: {request:?}"));
    }

    fn duty(&mut self, requests: Vec<Request>) {
        if requests.is_empty() {
            self.out += "nothing\n";
        }
        for request in requests {
            let outcome = self.apply(&request).unwrap_or_else(|rejection| panic!("{rejection}: {request:?}"));
            self.out += &match request.command {
                Command::GrantLease(command) => format!("grant j{} to {}", command.job.0, command.node),
                Command::FailPending(command) => format!("fail j{}: {}", command.job.0, command.failure.error),
                Command::FailJob(command) => format!("stop j{}: {}", command.job.0, command.failure.error),
                Command::EndCarried(EndCarried { job, run, end: CarriedEnd::Failed { failure, .. }, .. }) => {
                    format!("stop j{} of {run}: {}", job.0, failure.error)
                }
                Command::DeleteAgent(command) => format!("delete {} {}", command.name, command.version),
                Command::WakeJob(_) => "wake a retry".to_owned(),
                Command::RevokeJoinToken(command) => format!("forget the token of {} s", command.hash.0[0]),
                Command::LoseNode(command) => format!("lose {} epoch {}", command.node, command.epoch),
                Command::PruneJobs(command) => format!("prune to {}: {outcome:?}", command.event_seq),
                other => panic!("not a duty's command: {other:?}"),
            };
            self.out.push('\n');
        }
    }

    fn lease(&self, id: &str) -> (JobId, NodeId, FencingToken) {
        let id = job(id);
        let lease = self.state.lease(id).expect("a lease");
        (id, lease.node.clone(), lease.token)
    }

    /// Records the first step of a job and parks it for a time.
    fn park(&mut self, id: &str, seconds: u64) {
        let (job, node, token) = self.lease(id);
        let (kind, key, usage) = (StepKind::Start, StepKey([1; 16]), StepUsage::default());
        let steps = vec![Arc::new(Step { kind, key, outcome: Payload::inline(b"{}"), usage })];
        self.must(Command::RecordSteps(RecordSteps { job, node: node.clone(), token, from: 0, steps }));
        let at = Timestamp(self.state.at().0 + 1_000_000 * seconds as i64);
        let (waits, used, read) = (vec![Wait::Time { at }], Micros(0), 0);
        self.must(Command::ParkJob(ParkJob { job, node, token, journal_length: 1, waits, used, read }));
    }

    fn completion(&self, id: &str) -> Command {
        let (job, node, token) = self.lease(id);
        let output = Payload::inline(b"{}");
        let usage = Usage { idle: 1, ..Usage::default() };
        Command::CompleteJob(CompleteJob { job, node, token, output, usage, metadata: None, stream: None })
    }

    fn failure(&self, id: &str) -> Command {
        let (job, node, token) = self.lease(id);
        let failure = Failure { kind: FailureKind::Agent, error: "boom".into() };
        let usage = Usage::default();
        Command::FailJob(FailJob { job, node, token, failure, output: None, usage, metadata: None, stream: None })
    }
}

/// A token that is found by how long it holds.
fn token(ttl: &str) -> Command {
    let (hash, ttl) = (Digest([number(ttl) as u8; 32]), Micros::from_secs(number(ttl)));
    Command::CreateJoinToken(CreateJoinToken { hash, kind: JoinKind::Worker, ttl, uses: 1, salt: None })
}

fn number(text: &str) -> u64 {
    text.parse().unwrap_or_else(|_| panic!("not a number: {text}"))
}

fn job(id: &str) -> JobId {
    JobId(number(&id[1..]))
}

fn digest(name: &str) -> Digest {
    let mut bytes = [0; 32];
    bytes[..name.len()].copy_from_slice(name.as_bytes());
    Digest(bytes)
}

fn agent(name: &str, words: &[&str]) -> Command {
    let mut spec = atlas_kit::spec();
    spec.timeouts.startup = Micros::from_secs(5);
    for word in words {
        match word.split_once('=').expect("key=value") {
            ("queue", value) => spec.timeouts.queue = Some(Micros::from_secs(number(value))),
            ("gpus", value) => spec.demand.gpus = number(value) as u32,
            ("requires", value) => {
                spec.requires.push(RequiredAgent { name: value.to_owned(), version: "^1.0.0".to_owned() });
            }
            ("on", value) => spec.demand.node = Some(value.parse().expect("a node name")),
            ("carried", _) => spec.carried = true,
            ("effects", _) => spec.effects = Effects::Once,
            ("limit", value) => spec.concurrency = Some(number(value) as u32),
            ("retries", value) => {
                spec.retry = RetryRule { max_retries: number(value) as u32, backoff_base: Micros::from_secs(2) };
            }
            _ => panic!("no such property of an agent: {word}"),
        }
    }
    atlas_kit::agent(name).with_package(digest(name)).with_spec(spec).registered()
}

fn submit(id: &str, name: &str) -> Command {
    atlas_kit::job(number(&id[1..])).of(name).pinned_to(atlas_kit::pin(digest(name))).submitted()
}

fn keep(count: u64) -> Command {
    Command::ConfigureCluster(ConfigureCluster {
        config: ClusterConfig { jobs_ended_kept: count, ..ClusterConfig::default() },
    })
}

#[test]
fn jobs_are_granted_while_there_is_room() {
    check(
        "agent echo; node n1 2; submit j1 echo; submit j2 echo; submit j3 echo; schedule; schedule; complete j1; schedule",
        expect![[r#"
            grant j1 to n1
            grant j2 to n1
            nothing
            grant j3 to n1
        "#]],
    );
}

#[test]
fn a_job_goes_where_its_package_is_warm() {
    check(
        "agent echo; node n2 4; submit j1 echo; schedule; complete j1; node n1 1; submit j2 echo; submit j3 echo; schedule",
        expect![[r#"
            grant j1 to n2
            grant j2 to n2
            grant j3 to n1
        "#]],
    );
}

#[test]
fn a_job_that_can_never_run_fails_once_a_node_is_known() {
    check(
        "agent big gpus=1; submit j1 big; schedule; node n1 4; schedule; schedule",
        expect![[r#"
            nothing
            fail j1: Insufficient hardware for big: GPU
            nothing
        "#]],
    );
}

#[test]
fn a_job_that_woke_waits_for_a_node_with_its_recorded_steps() {
    check(
        "level 6; agent echo effects=once retries=1 on=n1; node n1 1; submit j1 echo; schedule; park j1 5; after 9; expire;
        lose n1 1; remove n1; node n2 1; submit j2 echo; schedule; schedule; node n1 1; schedule",
        expect![[r#"
            grant j1 to n1
            wake a retry
            lose n1 epoch 1
            fail j2: Insufficient hardware for echo: node=n1
            nothing
            grant j1 to n1
        "#]],
    );
}

#[test]
fn a_job_for_a_run_is_never_granted_and_its_limits_hold() {
    check(
        "level 6; agent graph carried=1 queue=10 on=n9; agent echo; node n1 4; submit j1 graph; submit j2 graph; submit j3 echo; schedule; carry j1 7;
        lose n1 1; schedule; after 9; expire; after 1; expire; after 49; expire; after 1; expire; expire",
        expect![[r#"
            grant j3 to n1
            lose n1 epoch 1
            nothing
            nothing
            fail j2: Queue timeout: not started within 10.0s
            nothing
            stop j1 of run-0000000000000007: Execution timed out after 60.0s
            nothing
        "#]],
    );
}

#[test]
fn an_agents_limit_holds() {
    check(
        "agent solo limit=1; node n1 4; submit j1 solo; submit j2 solo; schedule; schedule; complete j1; schedule",
        expect![[r#"
            grant j1 to n1
            nothing
            grant j2 to n1
        "#]],
    );
}

#[test]
fn waits_end_by_the_clusters_clock() {
    check(
        "agent echo queue=10; submit j1 echo; after 9; expire; after 1; expire; expire",
        expect![[r#"
            nothing
            fail j1: Queue timeout: not started within 10.0s
            nothing
        "#]],
    );
}

#[test]
fn a_retry_that_wakes_is_not_passed_by_a_younger_job() {
    check(
        "agent echo retries=1; node n1 1; submit j1 echo; follow; fail j1; after 2; submit j2 echo; follow; follow",
        expect![[r#"
            grant j1 to n1
            wake a retry
            grant j13757245211066428519 to n1
        "#]],
    );
}

#[test]
fn a_retry_wakes_when_its_back_off_has_passed() {
    check(
        "agent echo retries=1; node n1 1; submit j1 echo; schedule; fail j1; schedule; after 1; expire; after 1; expire",
        expect![[r#"
            grant j1 to n1
            nothing
            nothing
            wake a retry
        "#]],
    );
}

#[test]
fn a_run_that_nobody_ends_is_stopped() {
    check(
        "agent echo; node n1 1; submit j1 echo; schedule; after 674; expire; after 1; expire; expire",
        expect![[r#"
            grant j1 to n1
            nothing
            stop j1: Execution timed out after 60.0s
            nothing
        "#]],
    );
}

#[test]
fn a_node_is_lost_once_and_only_in_its_epoch() {
    check(
        "node n1 1; lose n1 2; lose n1 1; lose n1 1; lose n2 1",
        expect![[r#"
            nothing
            lose n1 epoch 1
            nothing
            nothing
        "#]],
    );
}

#[test]
fn ended_jobs_go_when_a_majority_has_them() {
    let jobs = "keep 1; agent echo; node n1 9; submit j1 echo; submit j2 echo; submit j3 echo; schedule; complete j1; \
                complete j2; complete j3;";
    check(
        &format!(
            "{jobs} prune 1 2 3; ack 1 11; prune 1 2 3; ack 2 10; prune 1 2 3; ack 2 11; prune 1 2 3; prune 1 2 3"
        ),
        expect![[r#"
            grant j1 to n1
            grant j2 to n1
            grant j3 to n1
            nothing
            nothing
            prune to 10: Pruned { jobs: 1 }
            prune to 11: Pruned { jobs: 1 }
            nothing
        "#]],
    );
}

#[test]
fn a_retry_that_lacks_an_agent_fails_without_a_lease() {
    check(
        "agent helper; agent echo retries=2 requires=helper requires=ghost; node n1 1; submit j1 echo; schedule; fail j1;
        retire helper; after 2; follow; after 4; follow; after 8; follow",
        expect![[r#"
            grant j1 to n1
            fail j13757245211066428519: Missing agent dependencies: helper, ghost. Install with: atlas registry pull <name>
            fail j7010674837302333325: Missing agent dependencies: helper, ghost. Install with: atlas registry pull <name>
            nothing
        "#]],
    );
}

#[test]
fn a_retry_whose_agent_goes_while_it_waits_for_room_fails_when_there_is_some() {
    check(
        "agent helper; agent echo retries=1 requires=helper; agent other; node n1 1; submit j1 echo; schedule; fail j1;
        submit j2 other; schedule; after 2; follow; follow; retire helper; complete j2; follow; follow",
        expect![[r#"
            grant j1 to n1
            grant j2 to n1
            wake a retry
            nothing
            fail j13757245211066428519: Missing agent dependencies: helper. Install with: atlas registry pull <name>
            nothing
        "#]],
    );
}

#[test]
fn a_retry_runs_while_its_agents_are_there_and_a_first_try_was_checked_at_the_door() {
    check(
        "agent helper; agent echo retries=1 requires=helper; node n1 1; submit j1 echo; submit j2 echo; schedule; fail j1;
        after 2; follow; follow; retire helper; follow",
        expect![[r#"
            grant j1 to n1
            wake a retry
            grant j2 to n1
            nothing
        "#]],
    );
}

#[test]
fn versions_retired_long_ago_are_deleted_once_no_job_needs_them() {
    check(
        "agent old; agent echo; agent kept; retire old; level 5; after 10; node n1 1; submit j1 echo; retire echo; after 9;
        delete-retired 10; after 1; delete-retired 10; schedule; delete-retired 10; complete j1; delete-retired 10;
        delete-retired 10; retire old; after 10; delete-retired 10",
        expect![[r#"
            nothing
            nothing
            grant j1 to n1
            nothing
            delete echo 1.0.0
            nothing
            delete old 1.0.0
        "#]],
    );
}

#[test]
fn expired_join_tokens_are_forgotten() {
    check(
        "level 5; token 10; token 20; after 9; expire; after 1; expire; expire; after 10; expire",
        expect![[r#"
        nothing
        forget the token of 10 s
        nothing
        forget the token of 20 s
    "#]],
    );
}

fn incarnation(name: &str, epoch: &str) -> (NodeId, NodeEpoch) {
    (name.parse().expect("a node name"), NodeEpoch(number(epoch)))
}

#[test]
fn a_node_that_is_away_gets_no_lease_and_keeps_those_that_it_has() {
    check(
        "agent echo; node n1 4; node n2 4; hello n1 1; hello n2 1; submit j1 echo; follow; broke n1 1; broke n2 1;
        submit j2 echo; follow; after 1; tick; follow; after 1; tick; follow; node n2 4; hello n2 1; follow; hello n1 1;
        submit j3 echo; follow; complete j1; broke n1 1; after 2; tick; follow",
        expect![[r#"
            grant j1 to n1
            nothing
            nothing
            lose n2 epoch 1
            grant j2 to n2
            grant j3 to n1
            nothing
        "#]],
    );
}
