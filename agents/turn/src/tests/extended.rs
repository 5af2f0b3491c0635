//! What contracts can ask for beyond Atlas for Python.

use atlas_model::{Image, NanoDollars, Prices, Usage};
use expect_test::expect;
use serde_json::json;

use super::check::*;
use crate::{AtLimit, Event, Format, Limits, Sampling, Settings, Turn};

fn schema(repairs: u32) -> Settings {
    let format = Format::Schema { name: "output".into(), schema: json!({"properties": {"bad": false}}), repairs };
    Settings { format, mark_errors: true, ..with_tools(&["a"]) }
}

#[test]
fn an_answer_that_does_not_match_is_repaired() {
    check(
        schema(2),
        vec![start(json!({})), says("Sure: {}"), says("{\"bad\": 1}"), says("```json\n{\"good\": 1}\n```")],
        &expect![[r#"
            call
              user: {}
            call
              assistant: Sure: {}
              user: Your answer does not match the required JSON schema: at /: the answer is not JSON (expected value at line 1 column 1). Answer again with the JSON value only.
            call
              assistant: {"bad": 1}
              user: Your answer does not match the required JSON schema: at /bad: not allowed. Answer again with the JSON value only.
            finish (Answer): {"good":1}
        "#]],
    );
}

#[test]
fn repairs_are_bounded() {
    check(
        schema(1),
        vec![start(json!({})), says(" "), says("{\"bad\": 2}")],
        &expect![[r#"
            call
              user: {}
            call
              user: Your answer does not match the required JSON schema: at /: the answer is not JSON (EOF while parsing a value at line 1 column 0). Answer again with the JSON value only.
            finish (Answer): {"bad":2}
        "#]],
    );
    let settings = schema(9);
    let limits = Limits { requests: 1, ..settings.limits };
    check(
        Settings { limits, ..settings },
        vec![start(json!({})), says("{\"bad\": 1}")],
        &expect![[r#"
            call
              user: {}
            finish (Answer): {"bad":1}
        "#]],
    );
}

#[test]
fn the_provider_is_asked_for_the_schema_if_it_can() {
    for json_schema in [true, false] {
        let mut turn = Turn::new(Settings { json_schema, ..schema(1) });
        turn.step(start(json!({})), &Typed);
        assert_eq!(turn.request().output.is_some(), json_schema);
    }
}

#[test]
fn refusals_go_back_to_the_model_with_their_places() {
    let settings = schema(1);
    let limits = Limits { parallel: 4, ..settings.limits };
    check(
        Settings { limits, ..settings },
        vec![
            start(json!({})),
            calls(&[("c1", "a", json!({"bad": 1})), ("c2", "b", json!({})), ("c3", "a", json!({"x": 1}))]),
            returned(&[("c3", json!("ok"))]),
            says("{}"),
        ],
        &expect![[r#"
            call
              user: {}
            tools (4 at once): c3 a{"x":1}
            call
              assistant: c1 a{"bad":1} | c2 b{} | c3 a{"x":1}
              user: c1! = {"error": "ValidationError: the arguments do not match the tool's schema: at /bad: not allowed"} | c2! = {"error": "UnknownTool: there is no tool \"b\"; the tools are: a"} | c3 = "ok"
            finish (Answer): {}
        "#]],
    );
}

#[test]
fn a_model_that_repeats_itself_is_stopped() {
    let limits = Limits { repeats: 3, requests: 15, at_limit: AtLimit::Partial, ..Limits::default() };
    let round = |id: &str| {
        let arguments = json!({"q": "same"});
        let call = answer(vec![text("I will look."), tool(id, "a", arguments)]);
        [call, returned(&[(id, json!([]))])]
    };
    let events = [vec![start(json!({}))], round("1").into(), round("2").into(), round("3").into()].concat();
    check(
        Settings { limits, ..with_tools(&["a"]) },
        events,
        &expect![[r#"
            call
              user: {}
            tools: 1 a{"q":"same"}
            call
              assistant: I will look. | 1 a{"q":"same"}
              user: 1 = []
            tools: 2 a{"q":"same"}
            call
              assistant: I will look. | 2 a{"q":"same"}
              user: 2 = []
            tools: 3 a{"q":"same"}
            warn: Halted(Halt { tools: ["a"], repeats: 3, threshold: 3, request: 3, arguments: "{\"q\":\"same\"}", result: "[]" })
            finish (Repeats): {"result":"I will look.\n\n[The agent was stopped: it called the tool \"a\" 3 times in a row with the same arguments, and each time got the same result. Probably the data or the service behind it has a problem. This answer is incomplete.]"}
        "#]],
    );
}

#[test]
fn past_the_limit_there_is_a_partial_answer() {
    let limits = Limits { requests: 1, at_limit: AtLimit::Partial, ..Limits::default() };
    check(
        Settings { limits, ..with_tools(&["a"]) },
        vec![start(json!({})), calls(&[("1", "a", json!({}))]), returned(&[("1", json!(1))])],
        &expect![[r#"
            call
              user: {}
            tools: 1 a{}
            finish (Limit): {"result":"[The agent was stopped after 1 request. This answer is incomplete.]"}
        "#]],
    );
}

#[test]
fn a_call_that_could_exceed_the_budget_is_not_made() {
    let (input, output) = (NanoDollars(1_000_000_000), NanoDollars(2_000_000_000));
    let prices = Prices { input, output, cache_read: None, cache_write: None };
    let limits = Limits { budget: Some(NanoDollars(1_000_000)), ..Limits::default() };
    let sampling = Sampling { max_tokens: Some(490), ..Sampling::default() };
    let settings = Settings { prices: Some(prices), limits, sampling, ..with_tools(&["a"]) };
    check(
        settings.clone(),
        vec![start(json!({})), calls(&[("1", "a", json!({}))]), returned(&[("1", json!("x"))])],
        &expect![[r#"
            call
              user: {}
            tools: 1 a{}
            fail: budget used up: the next call may cost $0.0010, $0.0010 is left of $0.0010; raise it with --budget
        "#]],
    );
    let unbounded = Sampling { max_tokens: None, ..Sampling::default() };
    let limits = Limits { budget: Some(NanoDollars(10_000_000)), ..Limits::default() };
    let mut turn = Turn::new(Settings { sampling: unbounded, limits, ..settings });
    turn.step(start(json!({})), &Typed);
    assert_eq!(turn.request().max_tokens, Some(4_096));
    turn.step(says("{}"), &Typed);
    assert_eq!((turn.totals().cost, turn.totals().usage.input), (NanoDollars(14_000), 10));
}

#[test]
fn a_budget_needs_the_prices_of_all_models() {
    let (input, output) = (NanoDollars(1_000_000_000), NanoDollars(2_000_000_000));
    let prices = Prices { input, output, cache_read: None, cache_write: None };
    let limits = Limits { budget: Some(NanoDollars(50_000_000)), ..Limits::default() };
    let settings =
        |prices, fallback_prices| Settings { prices, fallback_prices, limits: limits.clone(), ..with_tools(&[]) };
    let unknown = expect![[r#"
        fail: the price of the model "m", or of one of its fallbacks, is not known, so the budget of $0.0500 cannot be kept: give its object prices (atlasctl model add NAME … --price-in USD --price-out USD --replace), or run without --budget
    "#]];
    check(settings(None, Vec::new()), vec![start(json!({}))], &unknown);
    check(settings(Some(prices), vec![None]), vec![start(json!({}))], &unknown);
    // The dearest one decides.
    let dear = Prices { output: NanoDollars(20_000_000_000), ..prices };
    check(
        settings(Some(prices), vec![Some(dear)]),
        vec![start(json!({}))],
        &expect![[r#"
            fail: budget used up: the next call may cost $0.0819, $0.0500 is left of $0.0500; raise it with --budget
        "#]],
    );
    let mut turn = Turn::new(settings(Some(prices), vec![Some(prices), Some(dear)]));
    turn.answered_by(2);
    turn.step(Event::Started { input: json!({}), images: Vec::new(), said: Vec::new() }, &Typed);
    assert_eq!(turn.cost(2, &Usage { output: 5, ..Usage::default() }), NanoDollars(100_000));
    assert_eq!(turn.cost(3, &Usage { output: 5, ..Usage::default() }), NanoDollars(0));
}

#[test]
fn images_need_a_model_that_sees() {
    let image = || Image { mime: "image/png".into(), data: "AA==".into() };
    let started = || Event::Started { input: json!({"q": 1}), images: vec![image()], said: Vec::new() };
    check(
        with_tools(&[]),
        vec![started()],
        &expect![[r#"
            fail: the model "m" does not accept images
        "#]],
    );
    check(
        Settings { vision: true, ..with_tools(&[]) },
        vec![started()],
        &expect![[r#"
            call
              user: {"q": 1} | <image/png>
        "#]],
    );
}
