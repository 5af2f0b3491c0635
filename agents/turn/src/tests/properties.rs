//! What holds for any model, any tools and any driver.

use std::collections::BTreeSet;

use atlas_model::Part;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::check::*;
use crate::{AtLimit, Effect, Event, Format, Limits, Settings, Turn};

fn arguments() -> impl Strategy<Value = Value> {
    prop_oneof![Just(json!({})), Just(json!({"bad": 1})), Just(json!("{")), Just(json!(null)), Just(json!({"x": [1]}))]
}

fn part() -> impl Strategy<Value = Part> {
    let name = prop_oneof![3 => Just("a"), 1 => Just("b"), 1 => Just("unknown")];
    prop_oneof![
        "[ {}a\\[]{0,4}".prop_map(|said| text(&said)),
        ("[xy]?", name, arguments()).prop_map(|(id, name, arguments)| tool(&id, name, arguments)),
    ]
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        8 => prop::collection::vec(part(), 0..4).prop_map(answer),
        6 => prop::collection::vec(("[xy]?(-2)?", 0..3_u8), 0..4).prop_map(|values| {
            let values: Vec<(&str, Value)> = values.iter().map(|(id, value)| (id.as_str(), json!(value))).collect();
            returned(&values)
        }),
        1 => Just(refused("no")),
    ]
}

fn settings() -> impl Strategy<Value = Settings> {
    let format = prop_oneof![
        Just(Format::Json),
        Just(Format::Text),
        (0..3_u32).prop_map(|repairs| Format::Schema { name: "o".into(), schema: json!({}), repairs }),
    ];
    (format, 0..6_u32, 0..3_u32, 1..4_usize, any::<bool>(), any::<bool>()).prop_map(
        |(format, requests, repeats, calls, mark_errors, partial)| {
            let at_limit = if partial { AtLimit::Partial } else { AtLimit::Error };
            let limits = Limits { requests, repeats, calls, at_limit, ..Limits::default() };
            Settings { format, limits, mark_errors, ..with_tools(&["a", "b"]) }
        },
    )
}

/// Runs a turn to its end: events that do not fit are left out, so that the turn gets far.
fn run(settings: Settings, events: &[Event]) -> (Turn, Vec<Effect>, Vec<Event>) {
    let mut turn = Turn::new(settings);
    let mut taken = vec![start(json!({"q": 1}))];
    let mut effects = turn.step(taken[0].clone(), &Typed);
    for event in events {
        let fits = match effects.last() {
            Some(Effect::Call { .. }) => !matches!(event, Event::Returned(_)),
            Some(Effect::Tools { .. }) => matches!(event, Event::Returned(_)),
            _ => false,
        };
        if fits {
            effects.extend(turn.step(event.clone(), &Typed));
            taken.push(event.clone());
        }
    }
    (turn, effects, taken)
}

proptest! {
    #[test]
    fn requests_are_bounded_and_nothing_follows_the_end(settings in settings(), events in prop::collection::vec(event(), 0..40)) {
        let most = settings.limits.requests;
        let (turn, effects, _) = run(settings, &events);
        let requests = effects.iter().filter(|effect| matches!(effect, Effect::Call { .. })).count();
        prop_assert!(requests <= most as usize && turn.totals().requests as usize == requests);
        let ends = |effect: &Effect| matches!(effect, Effect::Finish { .. } | Effect::Fail(_));
        let end = effects.iter().position(ends);
        prop_assert!(end.is_none_or(|end| end + 1 == effects.len()));
    }

    #[test]
    fn every_call_has_exactly_one_result(settings in settings(), events in prop::collection::vec(event(), 0..40)) {
        let (turn, _, _) = run(settings, &events);
        let messages = turn.messages();
        for (index, message) in messages.iter().enumerate() {
            let asked: Vec<&str> = message.parts.iter().filter_map(|part| match part {
                Part::ToolCall(call) => Some(call.id.as_str()),
                _ => None,
            }).collect();
            let unique: BTreeSet<&str> = asked.iter().copied().collect();
            prop_assert_eq!(unique.len(), asked.len());
            let Some(next) = messages.get(index + 1).filter(|_| !asked.is_empty()) else { continue };
            let answered: Vec<&str> = next.parts.iter().filter_map(|part| match part {
                Part::ToolResult(result) => Some(result.call.as_str()),
                _ => None,
            }).collect();
            prop_assert_eq!(answered, asked);
        }
    }

    #[test]
    fn the_same_events_have_the_same_effects(settings in settings(), events in prop::collection::vec(event(), 0..40)) {
        let (turn, effects, taken) = run(settings.clone(), &events);
        let mut again = Turn::new(settings);
        let repeated: Vec<Effect> = taken.into_iter().flat_map(|event| again.step(event, &Typed)).collect();
        prop_assert_eq!(effects, repeated);
        prop_assert_eq!(turn.request(), again.request());
    }

    #[test]
    fn no_order_of_events_breaks_the_turn(settings in settings(), events in prop::collection::vec(event(), 0..20)) {
        let mut turn = Turn::new(settings);
        for event in events {
            turn.step(event, &Typed);
        }
        prop_assert!(turn.totals().requests == 0);
    }

    #[test]
    fn settings_survive_being_recorded(settings in settings()) {
        let recorded = serde_json::to_vec(&settings).expect("JSON");
        let read: Settings = serde_json::from_slice(&recorded).expect("settings");
        prop_assert_eq!(&read, &settings);
        let key = |settings: Settings| {
            let mut turn = Turn::new(Settings { limits: Limits { requests: 1, ..settings.limits.clone() }, ..settings });
            turn.step(start(json!({})), &Typed)
        };
        prop_assert_eq!(key(read), key(settings));
    }
}

#[test]
fn keys_depend_on_all_that_is_asked() {
    let key = |settings: &Settings, events: &[Event]| {
        let mut turn = Turn::new(settings.clone());
        let effects: Vec<Effect> = events.iter().flat_map(|event| turn.step(event.clone(), &Typed)).collect();
        match effects.last() {
            Some(Effect::Call { key } | Effect::Tools { key, .. }) => *key,
            other => panic!("no call but {other:?}"),
        }
    };
    let plain = with_tools(&["a"]);
    let warm = Settings { system: "warm".into(), ..plain.clone() };
    let call = |x: u8| calls(&[("1", "a", json!({"x": x}))]);
    let keys = [
        key(&plain, &[start(json!({"q": 1}))]),
        key(&plain, &[start(json!({"q": 2}))]),
        key(&warm, &[start(json!({"q": 1}))]),
        key(&plain, &[start(json!({"q": 1})), call(1)]),
        key(&plain, &[start(json!({"q": 1})), call(2)]),
        key(&plain, &[start(json!({"q": 1})), call(1), returned(&[("1", json!(1))])]),
        key(&plain, &[start(json!({"q": 1})), call(1), returned(&[("1", json!(2))])]),
    ];
    let unique: BTreeSet<[u8; 16]> = keys.iter().map(|key| key.0).collect();
    assert_eq!(unique.len(), keys.len());
}
