//! Settings that judge answers: by why the model stopped, and by what it said.

use atlas_model::{Answer, NanoDollars, Part, Prices, Stop, Usage};
use expect_test::expect;
use serde_json::{Map, Value, json};

use super::check::*;
use crate::record::{AnswerOutcome, LEVEL, START};
use crate::replay::{Ending, Replay, Step, replay};
use crate::{Effect, Event, Failure, Format, Limits, Settings, Turn};

fn judged(tools: &[&str]) -> Settings {
    Settings { judged: true, mark_errors: true, ..with_tools(tools) }
}

fn schema() -> Settings {
    let format = Format::Schema { name: "output".into(), schema: json!({"properties": {"bad": false}}), repairs: 2 };
    Settings { format, ..judged(&["a"]) }
}

fn stopped(parts: Vec<Part>, stop: Stop) -> Event {
    let usage = Usage { input: 10, output: 2, ..Usage::default() };
    Event::Answered(Box::new(Answer { parts, stop, usage, model: "m-1".to_owned(), id: None, raw: Map::new() }))
}

fn thinks(thought: &str) -> Part {
    Part::Reasoning { text: thought.to_owned(), opaque: Value::Null }
}

#[test]
fn a_refusal_fails_the_turn_and_is_not_repeated() {
    for settings in [judged(&[]), schema()] {
        check(
            settings,
            vec![start(json!({})), stopped(vec![text("I cannot help with that.")], Stop::Refused), says("{}")],
            &expect![[r#"
                call
                  user: {}
                fail: the model "m-1" refused to answer, or the filter of its provider did: I cannot help with that.; it is not asked again: change the input or the system text, or choose another model
            "#]],
        );
    }
    check(
        judged(&["a"]),
        vec![start(json!({})), stopped(vec![tool("1", "a", json!({}))], Stop::Other("SAFETY".to_owned()))],
        &expect![[r#"
            call
              user: {}
            fail: the model "m-1" refused to answer, or the filter of its provider did: SAFETY; it is not asked again: change the input or the system text, or choose another model
        "#]],
    );
}

#[test]
fn a_cut_answer_that_must_be_whole_fails_the_turn() {
    let cut = |parts| vec![start(json!({})), stopped(parts, Stop::Length), says("{}")];
    let fails = expect![[r#"
        call
          user: {}
        fail: the answer of the model "m-1" was cut at its limit of tokens (max_tokens is 4096): raise provider.max_tokens in the contract, or output_tokens_max and context_window of the model if they are lower
    "#]];
    check(schema(), cut(vec![text("{\"a\": [1, 2")]), &fails);
    check(judged(&["a"]), cut(vec![text("{\"a\": [1, 2")]), &fails);
    check(judged(&["a"]), cut(vec![tool("1", "a", json!("{\"x\": "))]), &fails);
    // All tokens went into thoughts.
    check(judged(&["a"]), cut(vec![thinks("Let me see")]), &fails);
    check(judged(&["a"]), cut(vec![]), &fails);
}

#[test]
fn a_cut_text_is_delivered_with_a_warning() {
    let warns = expect![[r#"
        call
          user: {}
        warn: Cut(CutAnswer { model: "m-1", max_tokens: Some(4096) })
        finish (Answer): {"result":"Once upon a"}
    "#]];
    for format in [Format::Text, Format::Json] {
        let settings = Settings { format, ..judged(&[]) };
        check(settings, vec![start(json!({})), stopped(vec![text("Once upon a")], Stop::Length)], &warns);
    }
    // It ended with its last token.
    check(
        schema(),
        vec![start(json!({})), stopped(vec![text("{\"a\": 1}")], Stop::Length)],
        &expect![[r#"
            call
              user: {}
            warn: Cut(CutAnswer { model: "m-1", max_tokens: Some(4096) })
            finish (Answer): {"a":1}
        "#]],
    );
}

#[test]
fn an_empty_answer_is_asked_for_again() {
    check(
        judged(&["a"]),
        vec![
            start(json!({})),
            stopped(vec![thinks("Hm.")], Stop::End),
            stopped(vec![text("<think>Hm.</think>\n")], Stop::Tools),
            stopped(vec![tool("1", "a", json!({}))], Stop::Tools),
            returned(&[("1", json!(1))]),
            stopped(vec![], Stop::Other("MALFORMED_FUNCTION_CALL".to_owned())),
            says("{\"a\": 1}"),
        ],
        &expect![[r#"
            call
              user: {}
            call
              user: Your last answer was empty. Answer now, with the result or with a call of a tool.
            call
              user: Your last answer was empty. Answer now, with the result or with a call of a tool.
            tools: 1 a{}
            call
              assistant: 1 a{}
              user: 1 = 1
            call
              user: Your last answer was not used, because it ended with MALFORMED_FUNCTION_CALL. Answer now, with the result or with a call of a tool.
            finish (Answer): {"a":1}
        "#]],
    );
}

#[test]
fn empty_answers_end_with_an_error() {
    let empty = || stopped(vec![text(" \n")], Stop::End);
    let (last, ended) = (stopped(vec![], Stop::Other("ERROR".to_owned())), says("{}"));
    let settings = Settings { format: Format::Text, ..judged(&[]) };
    check(
        settings.clone(),
        vec![start(json!({})), empty(), empty(), last, ended],
        &expect![[r#"
            call
              user: {}
            call
              user: Your last answer was empty. Answer now, with the result or with a call of a tool.
            call
              user: Your last answer was empty. Answer now, with the result or with a call of a tool.
            fail: the model "m-1" gave 3 answers in a row without text and without a call that can be made (it stopped with "ERROR"): choose another model, or change the system text or the tools
        "#]],
    );
    let limits = Limits { requests: 1, ..Limits::default() };
    check(
        Settings { limits, ..settings },
        vec![start(json!({})), empty()],
        &expect![[r#"
            call
              user: {}
            fail: the model "m-1" gave 1 answer in a row without text and without a call that can be made: choose another model, or change the system text or the tools
        "#]],
    );
}

/// A helper delivers the texts of all its answers.
#[test]
fn a_helper_that_spoke_before_may_end_with_nothing() {
    let settings = Settings { format: Format::Text, all_texts: true, ..judged(&["a"]) };
    check(
        settings,
        vec![
            start(json!({})),
            answer(vec![text("I look."), tool("1", "a", json!({}))]),
            returned(&[("1", json!(1))]),
            answer(vec![]),
        ],
        &expect![[r#"
            call
              user: {}
            tools: 1 a{}
            call
              assistant: I look. | 1 a{}
              user: 1 = 1
            finish (Answer): {"result":"I look."}
        "#]],
    );
}

/// What a provider says of itself is bounded before a model or a person reads it.
#[test]
fn words_of_a_provider_are_bounded() {
    let mut turn = Turn::new(judged(&[]));
    turn.step(start(json!({})), &Typed);
    for time in 1.. {
        let Event::Answered(mut answer) = stopped(vec![], Stop::Other(format!("error\n{}", "x".repeat(100_000))))
        else {
            unreachable!("an answer")
        };
        answer.model = "m".repeat(100_000);
        let effects = turn.step(Event::Answered(answer), &Typed);
        let asked: usize = turn.request().messages.iter().map(|message| json!(message).to_string().len()).sum();
        assert!(asked < 2_000, "{asked}");
        if let [Effect::Fail(failure)] = &effects[..] {
            let text = failure.to_string();
            assert!(time > 1 && text.len() < 1_000 && text.contains("error xxx"), "{text}");
            return;
        }
    }
}

#[test]
fn thoughts_before_json_are_no_error() {
    for settings in [judged(&[]), schema()] {
        check(
            settings,
            vec![start(json!({})), says("<think>\nI need {\"bad\": 1}.\n</think>\n\n```json\n{\"a\": 1}\n```")],
            &expect![[r#"
                call
                  user: {}
                finish (Answer): {"a":1}
            "#]],
        );
    }
}

#[test]
fn arguments_in_a_text_are_read() {
    check(
        judged(&["a"]),
        vec![
            start(json!({})),
            calls(&[
                ("1", "a", json!("{\"x\": 1}")),
                ("2", "a", json!("\"{\\\"x\\\": 2}\"")),
                ("3", "a", json!("")),
                ("4", "a", json!(" null")),
                ("5", "a", Value::Null),
                ("6", "a", json!("{\"bad\": 1}")),
                ("7", "a", json!("{\"x\": ")),
                ("8", "a", json!("[1]")),
                ("9", "a", json!([{"x": 1}])),
            ]),
        ],
        &expect![[r#"
            call
              user: {}
            tools: 1 a{"x":1}, 2 a{"x":2}, 3 a{}, 4 a{}, 5 a{}
        "#]],
    );
}

fn priced(budget: u64) -> Settings {
    let (input, output) = (NanoDollars(1_000_000_000), NanoDollars(2_000_000_000));
    let prices = Prices { input, output, cache_read: None, cache_write: None };
    let limits = Limits { budget: Some(NanoDollars(budget)), requests: 100, ..Limits::default() };
    let sampling = crate::Sampling { max_tokens: Some(100), ..crate::Sampling::default() };
    Settings { prices: Some(prices), limits, sampling, ..judged(&["a"]) }
}

/// A server that counts nothing spends the budget all the same.
#[test]
fn a_budget_binds_without_usage() {
    let mut turn = Turn::new(priced(1_000_000));
    let mut effects = turn.step(start(json!({"text": "x".repeat(300)})), &Typed);
    for round in 0..20 {
        match effects.pop().expect("an effect") {
            Effect::Call { .. } => {
                let parts = vec![tool("1", "a", json!({"round": round, "text": "y".repeat(150)}))];
                let answer = Answer {
                    parts,
                    stop: Stop::Tools,
                    usage: Usage::default(),
                    model: "m-1".to_owned(),
                    id: None,
                    raw: Map::new(),
                };
                let used = turn.used(&answer);
                assert!(used.estimated && used.usage.input > 100 && used.usage.output > 50, "{used:?}");
                turn.step(Event::Answered(Box::new(answer)), &Typed);
                effects = turn.step(returned(&[("1", json!(round))]), &Typed);
            }
            Effect::Fail(Failure::Budget { budget, spent, .. }) => {
                assert!(round > 1 && spent <= budget && spent.0 * 2 > budget.0, "{round}: {spent:?}");
                assert!(turn.totals().estimated);
                return;
            }
            other => panic!("{other:?}"),
        }
    }
    panic!("the budget never bound");
}

#[test]
fn reported_usage_is_no_estimate() {
    let mut turn = Turn::new(priced(1_000_000_000));
    turn.step(start(json!({})), &Typed);
    turn.step(says("{}"), &Typed);
    assert_eq!((turn.totals().usage.input, turn.totals().estimated), (10, false));
}

/// What was recorded before answers were judged goes on as it was, and what is recorded now is replayed as it is now.
#[test]
fn a_replay_judges_as_the_record_says() {
    let replayed = |settings: &Settings, answer: Event| {
        let fixed = json!({"level": LEVEL, "source": "mock", "settings": settings});
        let mut turn = Turn::new(settings.clone());
        let effects = turn.step(start(json!({"q": 1})), &Typed);
        let Some(Effect::Call { key }) = effects.last() else { panic!("{effects:?}") };
        let Event::Answered(answer) = answer else { panic!("no answer") };
        let answered = AnswerOutcome { place: 0, answer: *answer };
        let steps = [Step::new("start", START, &fixed), Step::new("model", *key, &answered)];
        replay(&steps, &json!({"q": 1}), Vec::new(), Vec::new(), |_| Typed, |_, _| Value::Null).expect("a replay")
    };
    let old = Settings { judged: false, ..judged(&[]) };
    let old_record = json!(old);
    assert!(old_record.get("judged").is_none(), "{old_record}");
    let output = json!({"result": ""});
    for stop in [Stop::Refused, Stop::Length, Stop::End] {
        let Replay::Same(Ending::Finished { output: again, .. }) = replayed(&old, stopped(vec![], stop)) else {
            panic!("another end")
        };
        assert_eq!(again, output);
    }
    let now = judged(&[]);
    assert!(matches!(replayed(&now, stopped(vec![], Stop::Refused)), Replay::Same(Ending::Failed(_))));
    assert!(matches!(replayed(&now, stopped(vec![], Stop::End)), Replay::Same(Ending::Open { .. })));
}
