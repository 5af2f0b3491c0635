//! What runs with branches do.

use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;
use crate::definition::Chain;

/// A plan whose agents take and return anything.
fn plan(steps: &Value) -> Plan {
    let chain = Chain::read(&json!({"name": "c", "steps": steps})).expect("a chain");
    let flows = chain.flows().expect("flows").unwrap_or_default();
    let planned = chain.steps.into_iter().zip(flows).map(|(step, flow)| PlannedStep {
        agent: step.agent,
        version: "1.0.0".to_owned(),
        digest: String::new(),
        name: step.name,
        input_map: step.input_map,
        input_schema: json!({}),
        output_schema: json!({}),
        flow: Some(flow),
    });
    Plan { chain: chain.name, orchestrator: chain.orchestrator, steps: planned.collect() }
}

fn shown(wave: &Wave) -> String {
    let mut words = Vec::new();
    for (input, pause) in &wave.start {
        let pause = if *pause > 0.0 { format!(" in {pause} s") } else { String::new() };
        words.push(format!("start {} {}{pause}", input.index, Value::Object(input.input.clone())));
    }
    words.extend(wave.left.iter().map(|(index, error)| match error {
        None => format!("leave {index}"),
        Some(error) => format!("leave {index}: {error}"),
    }));
    words.extend(wave.end.as_ref().map(|end| format!("{end:?}")));
    words.join(", ")
}

/// Runs the chain: a step whose agent is `fail` fails, any other returns its input and its name.
#[expect(clippy::needless_pass_by_value, reason = "tests write values in place")]
fn check(steps: Value, trigger: Value, expected: Expect) {
    let plan = plan(&steps);
    let mut facts = vec![Fact::Waiting; plan.steps.len()];
    let mut lines = String::new();
    loop {
        let wave = wave(&plan, &trigger, &facts);
        lines += &format!("{}\n", shown(&wave));
        for (index, error) in &wave.left {
            facts[*index] = Fact::Left(error.clone());
        }
        if wave.end.is_some() {
            break;
        }
        assert!(!wave.start.is_empty(), "the run stands still");
        for (input, _) in wave.start {
            facts[input.index] = ended(&plan.steps[input.index], &facts[input.index], input.input);
        }
    }
    expected.assert_eq(&lines);
}

fn ended(step: &PlannedStep, before: &Fact, mut input: Map<String, Value>) -> Fact {
    let tries = if let Fact::Failed { tries, .. } = before { tries + 1 } else { 1 };
    let fails = step.agent == "fail" || (step.agent == "flaky" && tries < 3);
    if fails {
        return Fact::Failed { error: "boom".to_owned(), tries, again: true };
    }
    input.insert("by".to_owned(), json!(step.name));
    Fact::Done(Value::Object(input))
}

#[test]
fn branches_run_together_and_join() {
    check(
        json!([
            {"agent": "a", "name": "first"},
            {"agent": "b", "name": "left", "atlas": {"after": ["first"]}},
            {"agent": "c", "name": "right", "atlas": {"after": ["first"]}},
            {"agent": "d", "name": "end", "atlas": {"after": ["left", "right"]}, "input_map": {"x": "$.steps.left.output.by"}},
        ]),
        json!({"n": 1}),
        expect![[r#"
            start 0 {"n":1}
            start 1 {"n":1,"by":"first"}, start 2 {"n":1,"by":"first"}
            start 3 {"left":{"n":1,"by":"left"},"right":{"n":1,"by":"right"}}
            Complete
        "#]],
    );
}

#[test]
fn conditions_choose() {
    let chain = |otherwise: &str| {
        json!([
            {"agent": "a", "name": "first"},
            {"agent": "b", "name": "many", "atlas": {"if": "output.n > 1", "otherwise": otherwise}},
            {"agent": "c", "name": "after"},
            {"agent": "d", "name": "last", "atlas": {"after": ["first", "after"], "if": "steps.many.status == 'skipped'"}},
        ])
    };
    check(
        chain("pass"),
        json!({"n": 1}),
        expect![[r#"
        start 0 {"n":1}
        start 2 {"n":1,"by":"first"}, leave 1
        start 3 {"first":{"n":1,"by":"first"},"after":{"n":1,"by":"after"}}
        Complete
    "#]],
    );
    check(
        chain("end"),
        json!({"n": 1}),
        expect![[r#"
        start 0 {"n":1}
        start 3 {"first":{"n":1,"by":"first"}}, leave 1, leave 2
        Complete
    "#]],
    );
    check(
        chain("end"),
        json!({"n": 2}),
        expect![[r#"
        start 0 {"n":2}
        start 1 {"n":2,"by":"first"}
        start 2 {"n":2,"by":"many"}
        leave 3, Complete
    "#]],
    );
    check(
        json!([{"agent": "a", "atlas": {"if": "input.x == 1"}}]),
        json!({}),
        expect![[r#"
        Fail { index: 0, error: "Condition failed at step 0 (a): line 1, column 6: no such member: x" }
    "#]],
    );
}

#[test]
fn failures_are_tried_again_or_passed() {
    check(
        json!([
            {"agent": "flaky", "atlas": {"retry": {"max_retries": 2, "backoff_base": "0.5"}}},
            {"agent": "fail", "atlas": {"on_failure": "pass", "retry": {"max_retries": 1}}},
            {"agent": "fail", "atlas": {"on_failure": "end"}},
            {"agent": "a"},
        ]),
        json!({}),
        expect![[r#"
            start 0 {}
            start 0 {} in 0.5 s
            start 0 {} in 1 s
            start 1 {"by":"step_0"}
            start 1 {"by":"step_0"} in 1 s
            start 2 {"by":"step_0"}
            leave 3, Complete
        "#]],
    );
    check(
        json!([{"agent": "a"}, {"agent": "fail", "atlas": {"retry": {}}}, {"agent": "a"}]),
        json!({}),
        expect![[r#"
            start 0 {}
            start 1 {"by":"step_0"}
            Step(1)
        "#]],
    );
}

#[test]
fn sources_are_what_may_come_before() {
    let plan = plan(&json!([
        {"agent": "a"},
        {"agent": "b", "atlas": {"if": "true"}},
        {"agent": "c", "atlas": {"on_failure": "pass"}},
        {"agent": "d"},
        {"agent": "e", "atlas": {"after": ["step_1", "step_3"]}},
    ]));
    let found: Vec<_> = (0..5).map(|index| sources(&plan, index)).collect();
    expect!["[[Trigger], [Step(0)], [Step(1), Step(0)], [Step(2), Step(1), Step(0)], [Join([1, 3])]]"]
        .assert_eq(&format!("{found:?}"));
}

#[test]
fn wrong_extensions_are_refused() {
    let mut lines = String::new();
    for extension in [
        json!({"if": "output.n >"}),
        json!({"if": 1}),
        json!({"if": "other"}),
        json!({"after": ["second"]}),
        json!({"after": "first"}),
        json!({"after": ["first", "first"]}),
        json!({"otherwise": "fail"}),
        json!({"on_failure": "continue"}),
        json!({"retry": {"max_retries": 11}}),
        json!({"retry": {"backoff_base": 1e-9}}),
        json!({"retry": 3}),
        json!({"timeout": -1}),
        json!({"timeout": 1e300}),
        json!({"timeout": "soon"}),
        json!({"timeout": "NaN"}),
        json!({"parallel": true}),
    ] {
        let steps = json!([{"agent": "a", "name": "first"}, {"agent": "b", "name": "second", "atlas": extension}]);
        let error = Chain::read(&json!({"name": "c", "steps": steps})).expect_err("a wrong extension");
        lines += &format!("{error}\n");
    }
    let twice = json!({"name": "c", "steps": [{"agent": "a", "name": "x"}, {"agent": "a", "name": "x", "atlas": {}}]});
    lines += &format!("{}\n", Chain::read(&twice).expect_err("a name twice"));
    expect![[r#"
        step 1: 'atlas.if' is refused: line 1, column 11: it ends too early
        step 1: 'atlas.if' must be a text
        step 1: 'atlas.if' is refused: line 1, column 1: no such variable: other; there are input, output, steps
        step 1: 'atlas.after' names no step before this one: second
        step 1: 'atlas.after' must be a list of names
        step 1: 'atlas.after' names first twice
        step 1: 'atlas.otherwise' must be pass or end
        step 1: 'atlas.on_failure' must be fail, pass or end
        step 1: 'atlas.retry.max_retries' must be between 0 and 10
        step 1: 'atlas.retry.backoff_base' is 1e-9; it must be from 0.001 to 604800 seconds
        step 1: 'atlas.retry' must be an object
        step 1: 'atlas.timeout' is -1; it must be from 0.001 to 604800 seconds
        step 1: 'atlas.timeout' is 1e+300; it must be from 0.001 to 604800 seconds
        step 1: 'atlas.timeout' is "soon"; it must be from 0.001 to 604800 seconds
        step 1: 'atlas.timeout' is "NaN"; it must be from 0.001 to 604800 seconds
        step 1: 'atlas.parallel' is not known
        two steps have the name 'x'
    "#]]
    .assert_eq(&lines);
}

prop_compose! {
    fn a_step(index: usize)(
        agent in prop::sample::select(vec!["a", "fail", "flaky"]),
        after in prop::collection::btree_set(0..index.max(1), 0..3),
        condition in prop::option::of(prop::sample::select(vec!["true", "false", "'by' in output", "output.by == 'x'"])),
        otherwise in prop::sample::select(vec!["pass", "end"]),
        on_failure in prop::sample::select(vec!["pass", "end", "fail"]),
        retries in 0..3_u32,
    ) -> Value {
        let after: Vec<String> = after.into_iter().filter(|before| *before < index).map(|before| format!("step_{before}")).collect();
        let mut extension = json!({"after": after, "otherwise": otherwise, "on_failure": on_failure, "retry": {"max_retries": retries}});
        if let Some(condition) = condition {
            extension["if"] = json!(condition);
        }
        json!({"agent": agent, "atlas": extension})
    }
}

proptest! {
    /// Whatever the chain and in whatever order its steps end: each runs at most once more than it has retries, only after the steps
    /// before, never together with itself, and the run ends. At the end no step can still begin.
    #[test]
    fn every_run_ends(
        steps in (1..9_usize).prop_flat_map(|total| (0..total).map(a_step).collect::<Vec<_>>()),
        order in prop::collection::vec(any::<prop::sample::Index>(), 64),
    ) {
        let plan = plan(&json!(steps));
        let trigger = json!({});
        let mut facts = vec![Fact::Waiting; plan.steps.len()];
        let mut tries = vec![0; plan.steps.len()];
        let mut running: Vec<(usize, Map<String, Value>, Fact)> = Vec::new();
        let mut order = order.into_iter();
        loop {
            let wave = wave(&plan, &trigger, &facts);
            for (index, error) in &wave.left {
                prop_assert_eq!(&facts[*index], &Fact::Waiting);
                facts[*index] = Fact::Left(error.clone());
            }
            if let Some(end) = wave.end {
                let waits = facts.iter().filter(|fact| matches!(fact, Fact::Waiting | Fact::Running)).count();
                prop_assert!(end != End::Complete || waits == 0);
                break;
            }
            for (input, _) in wave.start {
                let index = input.index;
                let flow = plan.flow(index);
                for before in &flow.after {
                    prop_assert!(!matches!(facts[*before], Fact::Waiting | Fact::Running), "{index} begins before {before} has ended");
                }
                tries[index] += 1;
                prop_assert!(tries[index] <= flow.max_retries + 1);
                running.push((index, input.input, std::mem::replace(&mut facts[index], Fact::Running)));
            }
            prop_assert!(!running.is_empty(), "the run stands still: {facts:?}");
            prop_assert!(running.len() <= AT_ONCE_MAX);
            let next = order.next().map_or(0, |index| index.index(running.len()));
            let (index, input, before) = running.swap_remove(next);
            facts[index] = ended(&plan.steps[index], &before, input);
        }
    }
}
