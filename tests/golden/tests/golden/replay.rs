//! An old log leads today's code to the same answers, the same chain and the same state, byte for byte.

use std::fmt::Write as _;

use atlas_format::{EntryEncoder, chain, decode_entry, digest_state, encode_outcomes};
use atlas_state::{Applied, State};
use atlas_types::*;

use crate::files::{Golden, check};
use crate::samples;

#[test]
fn a_log_leads_to_the_same_state() {
    check("logs", &[Golden { name: "life_of_three_jobs", bytes: log(), read: replay }]);
}

/// Entries, each after four bytes of length.
fn log() -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut state = State::new(samples::CLUSTER);
    for (n, commands) in (0..).zip(script()) {
        let mut encoder = EntryEncoder::new();
        for command in commands {
            let origin = Origin { request_id: None, ..samples::origin() };
            encoder.push(&Request { origin, command });
        }
        let head = Entry {
            cluster_id: samples::CLUSTER,
            level: Level(1),
            min_reader_level: Level(1),
            parent: Parent { seq: state.seq(), chain: state.chain() },
            at: Timestamp(1_767_225_600_000_000 + n * 1_000_000),
            clock: ClusterTime(n.unsigned_abs() * 1_000_000),
            requests: Vec::new(),
        };
        let entry = encoder.finish(&head);
        step(&mut state, &entry);
        bytes.extend(u32::try_from(entry.len()).expect("a short entry").to_le_bytes());
        bytes.extend(entry);
    }
    bytes
}

/// What a cluster is asked to do, entry by entry.
fn script() -> Vec<Vec<Command>> {
    let mut samples = samples::commands();
    let mut take = |name| {
        let at = samples.iter().position(|(known, _)| *known == name).expect("a sample");
        samples.swap_remove(at).1
    };
    let Command::RegisterAgent(mut register) = take("register_agent") else { unreachable!("a sample of that name") };
    register.spec = samples::light_spec().into();
    let Command::SubmitJob(submit) = take("submit_job") else { unreachable!("a sample of that name") };
    let submit = |id| Command::SubmitJob(SubmitJob { id: JobId(id), ..submit.clone() });
    let allocation = Allocation { cores: 1, memory_bytes: 1 << 30, ..Allocation::default() };
    let grant = |id| {
        let (node, allocation) = (samples::node(), allocation.clone());
        Command::GrantLease(GrantLease { job: JobId(id), node, epoch: NodeEpoch(1), allocation })
    };
    let Command::CompleteJob(complete) = take("complete_job") else { unreachable!("a sample of that name") };
    let Command::FailJob(fail) = take("fail_job") else { unreachable!("a sample of that name") };
    vec![
        vec![Command::RegisterAgent(register), take("register_node")],
        vec![submit(1), submit(2), grant(1), grant(2)],
        vec![submit(2), submit(3), Command::CompleteJob(CompleteJob { job: JobId(1), ..complete }), grant(3)],
        vec![
            Command::FailJob(FailJob { job: JobId(2), token: FencingToken(1), ..fail.clone() }),
            Command::FailJob(FailJob { job: JobId(2), token: FencingToken(2), ..fail }),
            take("submit_job_refused"),
        ],
        vec![Command::WakeJob(WakeJob { job: JobId(2).derive(1) })],
        vec![
            Command::CancelJob(CancelJob { job: JobId(3), running: true }),
            Command::LoseNode(LoseNode { node: samples::node(), epoch: NodeEpoch(1) }),
        ],
        vec![take("retire_agent"), take("sink_ack"), take("configure_cluster")],
    ]
}

fn step(state: &mut State, entry: &[u8]) -> Vec<Result<Outcome, Rejection>> {
    let read = decode_entry(entry).expect("an entry");
    let Applied::Done { outcomes, .. } = state.apply_entry(&read).expect("an entry that fits") else {
        panic!("a stale entry");
    };
    state.set_chain(chain(&state.chain(), entry, &encode_outcomes(&outcomes)));
    state.check_invariants().expect("a sound state");
    outcomes
}

/// The answers, the chain after each entry, and the digest of the state that comes out.
fn replay(mut log: &[u8]) -> String {
    let mut state = State::new(samples::CLUSTER);
    let mut text = String::new();
    while let Some((len, rest)) = log.split_first_chunk() {
        let (entry, rest) = rest.split_at(u32::from_le_bytes(*len) as usize);
        for outcome in step(&mut state, entry) {
            writeln!(text, "{outcome:?}").expect("a string takes everything");
        }
        writeln!(text, "chain {}", Digest(state.chain()).hex()).expect("a string takes everything");
        log = rest;
    }
    writeln!(text, "state {}", Digest(digest_state(&state.to_image())).hex()).expect("a string takes everything");
    text
}
