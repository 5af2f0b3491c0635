//! Properties of the whole format: round trips, equal bytes for equal values, and hostile bytes.

mod draw;

use std::sync::Arc;

use atlas_types::{
    AgentVersion, Entry, Event, Job, Journal, Level, Object, Payload, Request, Run, RunSpec, RunStep, StateImage, Step,
};
use expect_test::{Expect, expect};
use proptest::prelude::*;
use prost::Message as _;

use crate::*;
pub(crate) use draw::{Draw, Sample};

proptest! {
    #[test]
    fn entries_read_back_as_written(seed in any::<u64>()) {
        let entry = Draw::new(seed).value::<Entry>();
        let bytes = encode_entry(&entry);
        let read = decode_entry(&bytes).expect("own bytes");
        prop_assert_eq!(&read, &entry);
        prop_assert_eq!(encode_entry(&read), bytes);
    }

    #[test]
    fn outcomes_read_back_as_written(seed in any::<u64>()) {
        let outcomes = Draw::new(seed).outcomes();
        let bytes = encode_outcomes(&outcomes);
        prop_assert_eq!(decode_outcomes(&bytes), Ok(outcomes));
    }

    #[test]
    fn jobs_read_back_as_written(seed in any::<u64>()) {
        let job = Draw::new(seed).value::<Job>();
        prop_assert_eq!(decode_job(&encode_job(&job)), Ok(job));
    }

    #[test]
    fn events_read_back_without_contracts(seed in any::<u64>()) {
        for event in Draw::new(seed).events() {
            let read = encode_event(&event).map(|bytes| decode_event(&bytes));
            let expected = match event {
                Event::Job { .. } => None,
                Event::Agent { agent } => Some(Event::Agent { agent: shortened(&agent) }),
                Event::AgentDeleted { agent } => Some(Event::AgentDeleted { agent: shortened(&agent) }),
                Event::StepsRecorded { job, from, steps } => {
                    let empty = |step: &Arc<Step>| Arc::new(Step { outcome: Payload::inline(b""), ..(**step).clone() });
                    Some(Event::StepsRecorded { job, from, steps: steps.iter().map(empty).collect() })
                }
                Event::StepsFolded { job, upto, .. } => {
                    Some(Event::StepsFolded { job, upto, artifact: Payload::inline(b"") })
                }
                Event::ObjectPut { object } => Some(Event::ObjectPut { object: without_status(&object) }),
                Event::ObjectDeleted { object } => Some(Event::ObjectDeleted { object: without_status(&object) }),
                Event::Run { change, run } => Some(Event::Run { change, run: without_payloads(&run) }),
                other => Some(other),
            };
            prop_assert_eq!(read, expected.map(Ok));
        }
    }

    #[test]
    fn snapshots_read_back_as_written(seed in any::<u64>()) {
        let image = Draw::new(seed).value::<StateImage>();
        let bytes = snapshot(&image);
        let read = decode_snapshot(bytes.as_slice()).expect("own bytes");
        prop_assert_eq!(&read, &image);
        prop_assert_eq!(&bytes[bytes.len() - 32..], digest_state(&read));
    }

    #[test]
    fn a_planner_knows_the_size(seed in any::<u64>()) {
        let entry = Draw::new(seed).value::<Entry>();
        let mut encoder = EntryEncoder::new();
        for request in &entry.requests {
            let before = encoder.len();
            prop_assert!(encoder.try_push(request));
            prop_assert_eq!(encoder.len() - before, request_len(request));
        }
        let (requests, bytes) = (encoder.requests(), encoder.len());
        encoder.push(&Draw::new(seed).value::<Request>());
        encoder.truncate(requests, bytes);
        prop_assert_eq!(encoder.finish(&entry), encode_entry(&entry));
    }

    #[test]
    fn random_bytes_do_no_harm(bytes in proptest::collection::vec(any::<u8>(), 0..512)) {
        let _ = decode_entry(&bytes);
        let _ = decode_requests(&bytes, 8);
        let _ = decode_outcomes(&bytes);
        let _ = decode_job(&bytes);
        let _ = decode_event(&bytes);
        let _ = decode_snapshot(bytes.as_slice());
        let _ = decode_steps(&bytes);
    }

    #[test]
    fn folded_steps_read_back_as_written(seed in any::<u64>()) {
        let steps = Draw::new(seed).value::<Journal>().steps;
        prop_assert_eq!(decode_steps(&encode_steps(&steps)).expect("steps"), steps);
    }

    /// An entry has no checksum of its own (the log has): what still reads must at least be the same bytes again.
    #[test]
    fn changed_entries_are_refused_or_read_whole(seed in any::<u64>(), at in any::<prop::sample::Index>(), bit in 0..8_u8) {
        let mut bytes = encode_entry(&Draw::new(seed).value::<Entry>());
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        if let Ok(entry) = decode_entry(&bytes) {
            prop_assert_eq!(encode_entry(&entry).len(), bytes.len());
        }
    }

    #[test]
    fn changed_snapshots_are_refused(seed in any::<u64>(), at in any::<prop::sample::Index>(), bit in 0..8_u8) {
        let mut bytes = snapshot(&Draw::new(seed).value::<StateImage>());
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        prop_assert!(decode_snapshot(bytes.as_slice()).is_err());
    }
}

fn snapshot(image: &StateImage) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_snapshot(image, &mut bytes).expect("a vector takes everything");
    bytes
}

fn small_entry() -> Entry {
    let mut draw = Draw::new(1);
    let mut entry = draw.value::<Entry>();
    entry.requests.truncate(1);
    entry
}

/// An entry after `change`, and what is said against it.
fn check(change: impl FnOnce(&mut proto::Entry), refused: &Expect) {
    let mut message = proto::Entry::decode(encode_entry(&small_entry()).as_slice()).expect("own bytes");
    change(&mut message);
    let error = decode_entry(&message.encode_to_vec()).expect_err("a changed entry");
    refused.assert_eq(&error.to_string());
}

#[test]
fn a_refusal_names_the_field() {
    check(|entry| entry.header = None, &expect![[r#"field "entry.header" is missing"#]]);
    check(
        |entry| header(entry).cluster_id.truncate(15),
        &expect![[r#"field "header.cluster_id" has 15 bytes instead of 16"#]],
    );
    check(
        |entry| header(entry).parent_chain.push(0),
        &expect![[r#"field "header.parent_chain" has 33 bytes instead of 32"#]],
    );
    check(|entry| entry.requests[0].origin = None, &expect![[r#"field "request.origin" is missing"#]]);
    check(|entry| origin(entry).door = 0, &expect![[r#"field "origin.door" has the unknown value 0"#]]);
    check(|entry| origin(entry).door = 99, &expect![[r#"field "origin.door" has the unknown value 99"#]]);
    check(|entry| origin(entry).namespace = "../x".to_owned(), &expect![[r#"field "origin.namespace" is not a name"#]]);
    check(
        |entry| entry.requests[0].command = None,
        &expect!["request 0 has a command that this program does not know"],
    );
    check(
        |entry| header(entry).min_reader_level = Level::CURRENT.0 + 1,
        &expect!["this data needs level 7 or above, this program has 6"],
    );
}

fn header(entry: &mut proto::Entry) -> &mut proto::EntryHeader {
    entry.header.as_mut().expect("a header")
}

fn origin(entry: &mut proto::Entry) -> &mut proto::Origin {
    entry.requests[0].origin.as_mut().expect("an origin")
}

/// A command of a later version is an unknown field of the request: the replica must stop, not skip it.
#[test]
fn a_command_of_a_later_version_stops_the_reader() {
    let entry = small_entry();
    let origin = proto::Origin::from(&entry.requests[0].origin).encode_to_vec();
    let mut request = vec![0x0a, u8::try_from(origin.len()).expect("a short origin")];
    request.extend(origin);
    request.extend([0xc2, 0x3e, 0x00]); // field 1000, an empty message
    let mut bytes = vec![0x0a, u8::try_from(request.len()).expect("a short request")];
    bytes.extend(request);
    bytes.extend(EntryEncoder::new().finish(&entry));
    assert_eq!(decode_entry(&bytes), Err(FormatError::UnknownCommand { index: 0 }));
}

#[test]
fn a_field_of_a_later_version_stops_the_reader() {
    let mut bytes = encode_entry(&small_entry());
    let understood = bytes.len();
    bytes.extend([0xc0, 0x3e, 0x01]); // field 1000, the number 1
    assert_eq!(decode_entry(&bytes), Err(FormatError::UnknownField { found: bytes.len(), understood }));
}

#[test]
fn an_entry_keeps_to_its_bounds() {
    let mut encoder = EntryEncoder::new();
    let request = Draw::new(3).value::<Request>();
    while encoder.try_push(&request) {}
    assert!(encoder.requests() == ENTRY_REQUESTS_MAX || encoder.len() + request_len(&request) > ENTRY_BYTES_MAX - 128);
    assert!(encoder.finish(&small_entry()).len() <= ENTRY_BYTES_MAX);
    let huge = vec![0; 2 * ENTRY_BYTES_MAX + 1];
    assert!(matches!(decode_entry(&huge), Err(FormatError::TooLarge { .. })));
}

#[test]
fn a_snapshot_cut_anywhere_is_refused() {
    let image = Draw::new(5).value::<StateImage>();
    let bytes = snapshot(&image);
    for len in 0..bytes.len() {
        assert!(decode_snapshot(&bytes[..len]).is_err(), "{len} of {} bytes", bytes.len());
    }
    let trailing = [bytes.as_slice(), &[0]].concat();
    assert!(matches!(decode_snapshot(trailing.as_slice()), Err(SnapshotError::Trailing)));
}

#[test]
fn many_jobs_are_decoded_in_their_order() {
    let mut draw = Draw::new(11);
    let mut image = draw.value::<StateImage>();
    let few: Vec<Arc<Job>> = (0..7).map(|_| Arc::new(draw.value::<Job>())).collect();
    image.jobs = few.iter().cycle().take(5_000).cloned().collect();
    let mut bytes = snapshot(&image);
    assert_eq!(decode_snapshot(bytes.as_slice()).expect("own bytes"), image);

    // Two damaged jobs, of which the first is reported, although the checksum is wrong as well.
    let before = 1 + (image.agents.len() + image.nodes.len()) as u64;
    let mut at = 8;
    for record in 0..before + 4_000 {
        let len = bytes[at..at + 4].iter().rev().fold(0, |len, byte| len << 8 | usize::from(*byte));
        if record == before + 1_000 || record == before + 3_999 {
            bytes[at + 4 + len - 1] ^= 0xff;
            bytes[at + 5] ^= 0x01;
        }
        at += 4 + len;
    }
    match decode_snapshot(bytes.as_slice()) {
        Err(SnapshotError::Record { record, .. }) => assert_eq!(record, before + 1_000),
        other => panic!("{:?}", other.map(|image| image.jobs.len())),
    }
}

#[test]
fn a_huge_length_takes_no_memory() {
    let mut bytes = b"ATLSNAP1".to_vec();
    bytes.extend(u32::MAX.to_le_bytes());
    assert!(matches!(decode_snapshot(bytes.as_slice()), Err(SnapshotError::RecordTooLarge { .. })));
}

#[test]
fn jobs_share_their_spec_again() {
    let mut draw = Draw::new(9);
    let mut image = draw.value::<StateImage>();
    let mut job = draw.value::<Job>();
    job.spec = Some(Arc::new(draw.value::<RunSpec>()));
    image.jobs = vec![Arc::new(job.clone()), Arc::new(job)];
    let read = decode_snapshot(snapshot(&image).as_slice()).expect("own bytes");
    let spec = |n: usize| read.jobs[n].spec.as_ref().expect("a spec");
    assert!(Arc::ptr_eq(spec(0), spec(1)));
}

/// As history keeps it.
fn without_payloads(run: &Run) -> Arc<Run> {
    let empty = || Payload::inline(b"");
    let step =
        |step: &Arc<RunStep>| Arc::new(RunStep { output: step.output.as_ref().map(|_| empty()), ..(**step).clone() });
    let steps = run.steps.iter().map(step).collect();
    let plan = run.plan.as_ref().map(|_| empty());
    Arc::new(Run { definition: empty(), input: empty(), plan, steps, ..run.clone() })
}

fn without_status(object: &Object) -> Arc<Object> {
    Arc::new(Object { status: Arc::default(), ..object.clone() })
}

/// An agent version as an event keeps it.
fn shortened(agent: &AgentVersion) -> Arc<AgentVersion> {
    Arc::new(AgentVersion { contract: Payload::inline(b""), ..agent.clone() })
}
