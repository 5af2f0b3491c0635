//! The exact rules of the loop guard: what a round is, what resets the count, and how the turn ends.

use serde_json::{Value, json};

use super::check::*;
use crate::{AtLimit, Effect, End, Event, Limits, Outcome, Settings, ToolReturn, Turn};

/// One round: its calls as tool, arguments and result. A result that is an error has the text as its kind.
type Calls<'a> = &'a [(&'a str, Value, Result<Value, &'a str>)];

/// Plays rounds until the turn ends. The number of requests that were made, and how it ended if it did.
fn play(threshold: u32, rounds: &[Calls<'_>]) -> (u32, Option<(End, Value)>) {
    let limits = Limits { repeats: threshold, requests: 100, at_limit: AtLimit::Partial, ..Limits::default() };
    let mut turn = Turn::new(Settings { limits, ..with_tools(&["a", "b"]) });
    turn.step(start(json!({})), &Typed);
    for round in rounds {
        let id = |place: usize| format!("c{place}");
        let asked =
            round.iter().enumerate().map(|(place, (name, arguments, _))| tool(&id(place), name, arguments.clone()));
        turn.step(answer(asked.collect()), &Typed);
        let one = |(place, (_, _, result)): (usize, &(&str, Value, Result<Value, &str>))| ToolReturn {
            call: id(place),
            outcome: match result {
                Ok(value) => Outcome::Value(value.clone()),
                Err(text) => Outcome::error("ToolError", *text),
            },
        };
        let effects = turn.step(Event::Returned(round.iter().enumerate().map(one).collect()), &Typed);
        if let Some(Effect::Finish { output, end }) = effects.last() {
            let warned = matches!(&effects[..], [Effect::Warn(_), Effect::Finish { .. }]);
            assert_eq!(warned, *end == End::Repeats, "{effects:?}");
            return (turn.totals().requests, Some((*end, output.clone())));
        }
    }
    (turn.totals().requests, None)
}

fn halts(threshold: u32, rounds: &[Calls<'_>]) -> bool {
    play(threshold, rounds).1.is_some_and(|(end, _)| end == End::Repeats)
}

#[test]
fn the_third_equal_round_ends_the_turn_without_another_request() {
    let round: Calls<'_> = &[("a", json!({"q": 1}), Ok(json!([])))];
    let (requests, end) = play(3, &[round; 5]);
    let (end, output) = end.expect("halted");
    assert_eq!((requests, end), (3, End::Repeats));
    let text = output["result"].as_str().expect("a text");
    assert!(
        text.contains("the tool \"a\" 3 times in a row") && text.contains("the data or the service behind it"),
        "{text}"
    );
}

#[test]
fn a_different_round_counts_as_the_first_of_its_kind() {
    let (a, b): (Calls<'_>, Calls<'_>) = (&[("a", json!({}), Ok(json!(1)))], &[("a", json!({}), Ok(json!(2)))]);
    assert!(!halts(3, &[a, a, b, a, a, b, b]));
    assert!(halts(3, &[a, a, b, b, b]));
    assert!(halts(1, &[a]) && halts(2, &[a, a]) && !halts(2, &[a, b, a, b]));
}

#[test]
fn members_and_parallel_calls_may_come_in_any_order() {
    let one: Calls<'_> = &[("a", json!({"x": 1, "y": {"p": 1, "q": 2}}), Ok(json!(1))), ("b", json!({}), Ok(json!(2)))];
    let two: Calls<'_> = &[("b", json!({}), Ok(json!(2))), ("a", json!({"y": {"q": 2, "p": 1}, "x": 1}), Ok(json!(1)))];
    assert!(halts(3, &[one, two, one]));
}

#[test]
fn arguments_results_errors_and_the_number_of_calls_make_a_difference() {
    let base: Calls<'_> = &[("a", json!({"x": 1}), Ok(json!("r")))];
    let others: [Calls<'_>; 5] = [
        &[("b", json!({"x": 1}), Ok(json!("r")))],
        &[("a", json!({"x": 2}), Ok(json!("r")))],
        &[("a", json!({"x": 1}), Ok(json!("s")))],
        &[("a", json!({"x": 1}), Err("r"))],
        &[("a", json!({"x": 1}), Ok(json!("r"))), ("a", json!({"x": 1}), Ok(json!("r")))],
    ];
    for other in others {
        assert!(!halts(3, &[base, base, other]), "{other:?}");
    }
}

/// Also of results of which the model gets only the beginning.
#[test]
fn whole_results_are_compared() {
    let long = |end: &str| json!("x".repeat(70 << 10) + end);
    let (a, b): (&[_], &[_]) = (&[("a", json!({}), Ok(long("1")))], &[("a", json!({}), Ok(long("2")))]);
    assert!(halts(2, &[a, a]) && !halts(2, &[a, b]));
}

#[test]
fn zero_disables_it_and_the_cap_of_requests_remains() {
    let round: Calls<'_> = &[("a", json!({}), Ok(json!(1)))];
    let (requests, end) = play(0, &[round; 120]);
    let (end, output) = end.expect("the cap");
    let text = "[The agent was stopped after 100 requests. This answer is incomplete.]";
    assert_eq!((requests, end, output), (100, End::Limit, json!({"result": text})));
}
