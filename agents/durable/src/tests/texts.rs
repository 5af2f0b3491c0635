//! Identities, records and what people read.

use std::time::Duration;

use serde_json::json;

use super::PATIENCE;
use crate::*;

fn asked(kind: CallKind, name: &str, alone: bool) -> CallRequest {
    let key = Key([name.len() as u8; 16]);
    CallRequest { key, kind, name: name.to_owned(), given: "{\"n\":1}".to_owned(), at: "agent.py:31".to_owned(), alone }
}

fn recorded(kind: CallKind, key: u8, name: &str) -> PastCall {
    PastCall { key: Key([key; 16]), kind, name: name.to_owned() }
}

#[test]
fn equal_calls_are_numbered_and_arguments_have_one_digest() {
    let mut numbers = Numbers::default();
    let digest = digest(&json!({"b": [1, {"d": 2, "c": "ü"}], "a": null}));
    assert_eq!(digest, crate::digest(&serde_json::from_str(r#"{"a":null,"b":[1,{"c":"ü","d":2}]}"#).expect("JSON")));
    let first = numbers.next(CallKind::Step, "a:b", &digest);
    assert_eq!(first, format!("step:a:b:{digest}:1"));
    assert_eq!(numbers.next(CallKind::Step, "a:b", &digest), format!("step:a:b:{digest}:2"));
    assert_eq!(check_identity(Some(&first), CallKind::Step, "a:b"), Ok(()));
    for wrong in ["step:a:b", "step:a:b:zz:1", "step:a:b:ff:x", "sleep:a:b:ff:1", "step:c:ff:1", ""] {
        let refused = check_identity(Some(wrong), CallKind::Step, "a:b");
        assert_eq!(refused, Err(BadIdentity::Form(wrong.to_owned())));
    }
    assert!(check_identity(None, CallKind::Step, "").is_err() && check_identity(None, CallKind::Sleep, "").is_ok());
    assert!(check_identity(None, CallKind::Step, &"x".repeat(201)).is_err());
    assert!(check_identity(None, CallKind::Step, "a\nb").is_err());
}

#[test]
fn a_record_has_a_value_or_an_error_and_null_is_one() {
    let raw = |text: &str| serde_json::value::RawValue::from_string(text.to_owned()).expect("JSON");
    for (outcome, end) in [
        (CallOutcome::Value(raw("[1.50]")), r#","value":[1.50]}"#),
        (CallOutcome::null(), r#","value":null}"#),
        (CallOutcome::error("ValueError", "no"), r#","error":{"type":"ValueError","text":"no"}}"#),
    ] {
        let record = CallRecord { alone: true, ..CallRecord::new("step:a::1".to_owned(), "a".to_owned(), 5, outcome) };
        let text = serde_json::to_string(&record).expect("JSON");
        assert_eq!(text, format!(r#"{{"call":"step:a::1","name":"a","at_us":5,"alone":true{end}"#));
        let read = CallRecord::read(text.as_bytes()).expect("a call").expect("readable");
        assert_eq!(serde_json::to_string(&read).expect("JSON"), text);
    }
    assert!(
        CallRecord::read(b"null").is_none() && CallRecord::read(br#"{"call":1}"#).is_some_and(|read| read.is_err())
    );
}

#[test]
fn a_program_that_differs_is_told_both_sides() {
    let record = vec![recorded(CallKind::Step, 7, "reserve"), recorded(CallKind::Ask, 4, "sure")];
    let differs = |asked: CallRequest| {
        let mut replay = CallReplay::new(record.clone(), Duration::ZERO, PATIENCE * 2);
        match replay.ask(1, asked, Duration::ZERO).as_slice() {
            [CallEffect::Differs(difference)] => difference.to_string(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(
        differs(asked(CallKind::Step, "charge", true)),
        "the program asks for the step 'charge' with {\"n\":1} (agent.py:31), and its record has the step 'reserve' there"
    );
    assert_eq!(
        differs(CallRequest { key: Key([9; 16]), ..asked(CallKind::Step, "reserve", true) }),
        "the program asks for the step 'reserve' with {\"n\":1} (agent.py:31), and its record has the step 'reserve' with other arguments"
    );
    assert_eq!(
        differs(asked(CallKind::Ask, "sure", true)),
        "the program asks for the question 'sure' with {\"n\":1} (agent.py:31), and its record has the step 'reserve' before that"
    );
}

#[test]
fn a_call_that_is_held_waits_for_the_record_or_for_the_end_of_patience() {
    let record = || vec![recorded(CallKind::Step, 7, "reserve")];
    let second = Duration::from_secs(1);
    let late = second + PATIENCE;
    let mut replay = CallReplay::new(record(), Duration::ZERO, PATIENCE * 2);
    assert_eq!(
        (replay.ask(1, asked(CallKind::Step, "charge", false), second), replay.deadline()),
        (vec![], Some(late))
    );
    assert_eq!(replay.tick(PATIENCE), None);
    assert!(replay.tick(late).is_some());
    let release = CallEffect::Release { call: 2, record: 0 };
    let claims = asked(CallKind::Step, "reserve", true);
    assert_eq!(replay.ask(2, claims.clone(), late), [release, CallEffect::Begin(1)]);
    assert_eq!((replay.deadline(), replay.tick(Duration::MAX)), (None, None));
    assert_eq!(replay.ask(3, claims, late), [CallEffect::Repeated(3)]);
    let mut replay = CallReplay::new(record(), Duration::ZERO, PATIENCE * 2);
    assert_eq!(replay.claimed(5, second), []);
    assert_eq!(replay.ask(1, asked(CallKind::Step, "charge", true), second), [CallEffect::Begin(1)]);
    for (limit, deadline) in
        [(0, 120), (60, 30), (1_000, 120)].map(|(a, b)| (Duration::from_secs(a), Duration::from_secs(b)))
    {
        let mut replay = CallReplay::new(record(), Duration::ZERO, limit);
        replay.ask(1, asked(CallKind::Step, "charge", false), Duration::ZERO);
        assert_eq!(replay.deadline(), Some(deadline));
    }
}

#[test]
fn a_change_counts_for_jobs_that_have_not_passed_it() {
    let version = asked(CallKind::Version, "new", true);
    let step = asked(CallKind::Step, "reserve", true);
    let mut replay = CallReplay::new(vec![recorded(CallKind::Step, 7, "reserve")], Duration::ZERO, PATIENCE * 2);
    assert_eq!(replay.ask(1, version.clone(), Duration::ZERO), [CallEffect::Old(1)]);
    assert_eq!(replay.ask(2, step.clone(), Duration::ZERO), [CallEffect::Release { call: 2, record: 0 }]);
    // A record of it does not keep code from going on that no longer asks, and code may ask later.
    let record = vec![recorded(CallKind::Version, 3, "new"), recorded(CallKind::Step, 7, "reserve")];
    let mut replay = CallReplay::new(record, Duration::ZERO, PATIENCE * 2);
    assert_eq!(replay.ask(1, step, Duration::ZERO), [CallEffect::Release { call: 1, record: 1 }]);
    assert_eq!(replay.unclaimed().count(), 0);
    assert_eq!(replay.ask(2, version, Duration::ZERO), [CallEffect::Release { call: 2, record: 0 }]);
    assert_eq!(replay.ask(3, asked(CallKind::Step, "next step", true), Duration::ZERO), [CallEffect::Begin(3)]);
}
