//! An invalid state is refused at load, because a snapshot may come from a peer.

use std::sync::Arc;

use atlas_types::{EndedImage, EventSeq, FencingToken, Job, JobId, JobStatus, StateImage};
use expect_test::{Expect, expect};

use super::script::Run;
use crate::{ImageError, State, Violation};

/// Breaks the image of a small busy state and says how loading it is refused.
fn refused(break_it: impl FnOnce(&mut StateImage), expected: &Expect) {
    let mut run = Run::new();
    run.prepare("agent a; node n1; job j1 key=k; job j2; job j3; grant j1 n1; grant j2 n1; complete j2; ack m1");
    let mut image = run.state.to_image();
    break_it(&mut image);
    let error = State::from_image(image).expect_err("it is broken");
    let source = std::error::Error::source(&error).map_or(String::new(), |source| format!("\n{source}"));
    expected.assert_eq(&format!("{error}{source}"));
}

#[test]
fn things_that_are_there_twice() {
    refused(|image| image.jobs.push(Arc::clone(&image.jobs[0])), &expect!["the image contains a job twice"]);
    refused(|image| image.nodes.push(image.nodes[0].clone()), &expect!["the image contains a node twice"]);
    refused(
        |image| image.agents.push(Arc::clone(&image.agents[0])),
        &expect!["the image contains an agent version twice"],
    );
    refused(|image| image.requests.push(image.requests[0].clone()), &expect!["the image contains a request twice"]);
    refused(|image| image.sinks.push(image.sinks[0]), &expect!["the image contains a member twice"]);
    refused(|image| image.ended.push(image.ended[0]), &expect!["the image contains an ending twice"]);
}

#[test]
fn a_lease_on_a_node_that_is_not_there() {
    refused(|image| image.nodes.clear(), &expect!["the image has a lease on a node that it does not have"]);
}

#[test]
fn a_broken_invariant() {
    refused(
        |image| image.grant_seq.0 = 0,
        &expect![[r#"
        the image is not a state that commands lead to
        LEASE-2 is broken: token 1 was never given out; the last is 0"#]],
    );
    refused(
        |image| image.ended.clear(),
        &expect![[r#"
            the image is not a state that commands lead to
            COUNT-1 is broken: 2 active, 0 of the cluster and 0 ended jobs are not 3"#]],
    );
    let ending = EndedImage { event: EventSeq(1), job: JobId(3) };
    refused(
        |image| image.ended.push(ending),
        &expect![[r#"
            the image is not a state that commands lead to
            COUNT-1 is broken: 2 active, 0 of the cluster and 2 ended jobs are not 3"#]],
    );
}

#[test]
fn many_jobs() {
    let mut run = Run::new();
    run.prepare("agent a; node n1; job j1 key=k; job j2; job j3; grant j1 n1; grant j2 n1; complete j2; ack m1");
    let mut image = run.state.to_image();
    let waiting = image.jobs.iter().find(|job| job.status == JobStatus::Pending).cloned().expect("a waiting job");
    for number in 1..=20_000_u64 {
        image.queue_seq += 1;
        // Ids are in another order than places.
        let id = JobId(number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1 << 40);
        image.jobs.push(Arc::new(Job { id, queue_seq: image.queue_seq, ..(*waiting).clone() }));
    }
    image.jobs.sort_unstable_by_key(|job| job.id);
    let state = State::from_image(image.clone()).expect("a state");
    assert_eq!(state.check_invariants(), Ok(()));
    assert_eq!(state.to_image(), image);

    let broken = StateImage { grant_seq: FencingToken(0), ..image.clone() };
    assert!(matches!(State::from_image(broken), Err(ImageError::Violation(Violation { name: "LEASE-2", .. }))));
    image.jobs.push(Arc::clone(&image.jobs[0]));
    assert_eq!(State::from_image(image).err(), Some(ImageError::Twice { what: "a job" }));
}
