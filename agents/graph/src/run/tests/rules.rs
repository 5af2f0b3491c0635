//! The rules of super-steps, one test a rule.

use serde_json::{Value, json};

use super::*;

#[test]
fn nodes_follow_each_other_and_see_the_prompt() {
    let document = nodes(json!({"a": script("b"), "b": end("{{x}} {{initial_prompt}}")}), json!({}));
    check(document, json!({"a": {"x": 1}}), &["a>b", "b."], "1 go");
}

/// T1: paths of different length reach a join in different super-steps.
#[test]
fn a_join_is_no_barrier() {
    let document = nodes(
        json!({
            "a": fan(&["b", "c"]), "b": script("j"), "c": script("d"), "d": script("j"), "j": script("k"), "k": script("l"),
            "l": script("end"), "end": end("ok"),
        }),
        json!({}),
    );
    let steps = ["a>b,c", "b>j c>d", "d>j j>k", "j>k k>l", "k>l l>end", "end. l>end"];
    check(document, json!({}), &steps, "ok");
}

/// T2 and T3: reducers apply to single writes, and an unchanged value is no write.
#[test]
fn reducers_fold_single_writes() {
    let mut document =
        nodes(json!({"a": script("e"), "e": end("{{log}} {{n}} {{l}}")}), json!({"log": "one", "n": 3, "l": [0]}));
    document["reducers"] = json!({"log": "concat", "n": "sum", "l": "append"});
    let printed = json!({"a": {"log": "two", "n": 5, "l": [1, 2]}});
    check(document.clone(), printed, &["a>e", "e."], "one\ntwo 8 [0,[1,2]]");
    check(document.clone(), json!({"a": {"n": 3}}), &["a>e", "e."], "one 3 [0]");
    check(document, json!({"a": {"n": "x"}}), &["a>e"], "! reducer");
}

/// T4: the first end node ends the run, and its output does not have the writes of its siblings.
#[test]
fn an_end_ends_the_run() {
    let document = nodes(
        json!({"a": fan(&["w", "e"]), "w": script("later"), "later": script("e"), "e": end("[{{k}}]")}),
        json!({}),
    );
    let played = fixed(document.clone(), json!({"w": {"k": 1}}));
    assert_eq!(played.state["k"], json!(1));
    check(document, json!({"w": {"k": 1}}), &["a>w,e", "e. w>later"], "[]");
}

/// T5, T19 and T7: what a script can say about the next node.
#[test]
fn a_script_chooses_one_next_node() {
    let document = nodes(json!({"a": script("e"), "e": end("ok {{_next}}")}), json!({}));
    check(document.clone(), json!({"a": {"_next": ["x"]}}), &["a>e", "e."], "ok ");
    assert_eq!(fixed(document.clone(), json!({"a": {"_next": 1}})).notes, [Note::NextIgnored { node: "a".to_owned() }]);
    check(document.clone(), json!({"a": {"_next": "ghost", "x": 1}}), &["a>ghost"], "! unknown-node");
    assert_eq!(fixed(document.clone(), json!({"a": {"_next": "ghost", "x": 1}})).state["x"], json!(1));
    let mut looping = document;
    looping["settings"] = json!({"max_loop_iterations": 3});
    check(looping, json!({"a": {"_next": "a"}}), &["a>a", "a>a", "a>a"], "! visit-cap");
}

/// T6: a value with a placeholder in it stays as it is, and so does what only looks like one.
#[test]
fn an_output_is_rendered_once() {
    let document =
        nodes(json!({"a": end("{{a}} | {{b}} | {{ b }} | {{b-c}} | {{missing}}")}), json!({"a": "{{b}}", "b": "S"}));
    check(document, json!({}), &["a."], "{{b}} | S | {{ b }} | {{b-c}} | ");
}

/// T8: a fallback that is longer than its sibling's path. The join runs twice, at first without the fallback's data.
#[test]
fn a_fallback_is_a_route() {
    let mut bad = script("j");
    bad["fallback"] = json!("f");
    let document = nodes(
        json!({"a": fan(&["b", "c"]), "b": bad, "c": script("j"), "f": script("j"), "j": script("e"), "e": end("{{x}}")}),
        json!({"x": ""}),
    );
    check(document, json!({"b": "!broken", "f": {"x": 1}}), &["a>b,c", "b>f c>j", "f>j j>e", "e. j>e"], "1");
}

/// T9 to T14: maps.
#[test]
fn a_map_collects_in_the_order_of_its_items() {
    let map = |branch: Value, items: Value| {
        let map = json!({"type": "map", "over": "{{l}}", "as": "i", "branch": "b", "collect_into": "out", "next": "e"});
        nodes(json!({"a": map, "b": branch, "e": end("{{out}}")}), json!({"l": items, "output": "stale"}))
    };
    let branch = json!({"type": "script", "script": "s.sh"});
    let ok = ["a>e", "e."];
    check(map(branch.clone(), json!([1, 2])), json!({"b": {}}), &["a:map-missing-key"], "! map-missing-key");
    check(map(branch.clone(), json!([])), json!({}), &ok, "[]");
    check(map(branch.clone(), json!("[1]")), json!({}), &["a:map-over"], "! map-over");
    let results = json!({"a.0": {"output": "x", "z": 1}, "a.1": {"output": "y", "_next": "ghost"}});
    let played = fixed(map(branch.clone(), json!([1, 2])), results);
    assert_eq!((played.output.as_deref(), played.state.get("z")), (Some(r#"["x","y"]"#), None));
    let failed = json!({"a.0": {"output": "x"}, "a.1": "!first", "a.2": "!second"});
    let played = fixed(map(branch.clone(), json!([1, 2, 3])), failed.clone());
    let text = "graph \"g\": at node \"a\": item 1: first".to_owned();
    assert_eq!(played.error, Some((FaultKind::ScriptExit, text)));
    for (rule, expected) in [("null", r#"["x",null,null]"#), ("skip", r#"["x"]"#)] {
        let mut document = map(branch.clone(), json!([1, 2, 3]));
        document["nodes"]["a"]["on_item_error"] = json!(rule);
        check(document, failed.clone(), &ok, expected);
    }
    let llm = json!({"type": "llm", "prompt": "about {{i}}"});
    check(map(llm, json!([1, 2])), json!({"a.0": "p", "a.1": "q"}), &ok, r#"["p","q"]"#);
    let fallback =
        json!({"type": "llm", "prompt": "{{nope}}", "fallback": "e", "state_updates": {"output": "{{output}}"}});
    let text = r#"["LLM node failed: prompt: not found: nope"]"#;
    check(map(fallback.clone(), json!([1])), json!({}), &ok, text);
    let mut strict = map(fallback, json!([1]));
    strict["nodes"]["a"]["on_item_error"] = json!("fail");
    check(strict, json!({}), &["a:template"], "! template");
}

/// T15 and T16: names of results are no state, and two writes of one key conflict.
#[test]
fn parallel_nodes_write_different_keys() {
    let llm = |key: &str| json!({"type": "llm", "prompt": "p", "next": "e", "state_updates": {key: "{{output}}"}});
    let document = |b: &str, c: &str| {
        nodes(json!({"a": fan(&["b", "c"]), "b": llm(b), "c": llm(c), "e": end("{{x}}{{y}}{{output}}")}), json!({}))
    };
    check(document("x", "y"), json!({"b": "1", "c": "2"}), &["a>b,c", "b>e c>e", "e."], "12");
    check(document("x", "x"), json!({"b": "1", "c": "1"}), &["a>b,c", "b>e c>e"], "! write-conflict");
    let played = fixed(document("x", "x"), json!({"b": "1", "c": "1"}));
    let text = "graph \"g\": 2 branches wrote 'x' in one super-step, and the key has no reducer; declare one or rename the key";
    assert_eq!(played.error.map(|(_, text)| text).as_deref(), Some(text));
    let scripts = nodes(json!({"a": fan(&["b", "c"]), "b": script("e"), "c": script("e"), "e": end("")}), json!({}));
    let played = fixed(scripts, json!({"b": {"x": "same"}, "c": {"x": "same"}}));
    assert_eq!(played.error, Some((FaultKind::WriteConflict, text.to_owned())));
    assert_eq!(played.state.get("x"), None);
}

/// T17 and T18: nodes that do not continue.
#[test]
fn a_node_without_next_fails_after_its_work() {
    let a = json!({"type": "script", "script": "s.sh", "fallback": "e"});
    check(nodes(json!({"a": a, "e": end("")}), json!({})), json!({}), &["a:no-next"], "! no-next");
    check(nodes(json!({"a": fan(&[]), "e": end("")}), json!({})), json!({}), &["a>"], "! empty-frontier");
}

/// T21: updates are text, and each sees those before it.
#[test]
fn updates_are_written_in_order_as_text() {
    let mut a = script("e");
    a["state_updates"] =
        json!({"l": "{{l}}", "n": "{{z}}", "t": "{{t}}", "i": "{{l[0]}}", "m": "{{q}}", "twice": "{{t}}{{i}}"});
    let document = nodes(json!({"a": a, "e": end("")}), json!({"l": [1, 2], "z": null, "t": true}));
    let state = fixed(document, json!({})).state;
    // After the first update `l` is a text, which has no elements.
    let expected = json!({"initial_prompt": "go", "l": "[1,2]", "z": null, "t": "true", "n": "null", "i": "", "m": "", "twice": "true"});
    assert_eq!(Value::Object(state), expected);
}

/// T22: all branches end before a failure counts, unless the graph asks for less.
#[test]
fn siblings_of_a_failed_node_end_first() {
    let mut document =
        nodes(json!({"a": fan(&["b", "c"]), "b": script("e"), "c": script("e"), "e": end("")}), json!({"x": 0}));
    let results = json!({"b": "!bad", "c": {"x": 1}});
    let played = fixed(document.clone(), results.clone());
    assert_eq!((&played.steps[1][..], &played.state["x"]), ("b:script-exit c>e", &json!(0)));
    assert_eq!(played.error.map(|(_, text)| text).as_deref(), Some("graph \"g\": at node \"b\": bad"));
    document["settings"] = json!({"fail_fast": true});
    assert_eq!(fixed(document, results).steps[1], "b:script-exit");
}

/// T24: two ends in one super-step.
#[test]
fn several_ends_are_a_failure() {
    let document = nodes(json!({"a": fan(&["e", "f"]), "e": end(""), "f": end("")}), json!({}));
    check(document, json!({}), &["a>e,f", "e. f."], "! several-ends");
}

/// T27 and T28: a model that fails.
#[test]
fn a_failed_model_node_writes_its_error_and_falls_back() {
    let mut a =
        json!({"type": "llm", "prompt": "p", "next": "e", "state_updates": {"r": "{{output}}"}, "fallback": "f"});
    let document = |a: &Value| nodes(json!({"a": a, "e": end(""), "f": end("{{r}}")}), json!({}));
    check(document(&a), json!({"a": "!boom"}), &["a>f", "f."], "LLM node failed: boom");
    a["fallback"] = Value::Null;
    let played = fixed(document(&a), json!({"a": "!boom"}));
    let text = "graph \"g\": at node \"a\": boom (a fallback would let the run continue)".to_owned();
    assert_eq!(played.error, Some((FaultKind::Llm, text)));
}

#[test]
fn a_value_of_a_schema_is_merged() {
    let mut a = json!({"type": "llm", "prompt": "p", "next": "e", "output_schema": {"properties": {"x": {}}}});
    let document = |a: &Value| nodes(json!({"a": a, "e": end("{{x}}{{y}}")}), json!({}));
    check(document(&a), json!({"a": {"x": 1, "y": 2}}), &["a>e", "e."], "12");
    a["output_schema"]["additionalProperties"] = json!(false);
    check(document(&a), json!({"a": {"x": 1, "y": 2}}), &["a>e", "e."], "1");
    check(document(&a), json!({"a": [1]}), &["a>e", "e."], "");
}

#[test]
fn an_answer_chooses_the_route() {
    let a = json!({
        "type": "approval", "question": "{{initial_prompt}}?", "options": ["yes"], "routes": {"yes": "e"}, "on_other": "f",
        "state_updates": {"c": "{{choice}}"}, "timeout": 5, "on_timeout": "g",
    });
    let document = nodes(json!({"a": a, "e": end("yes"), "f": end("{{c}}"), "g": end("late")}), json!({}));
    check(document.clone(), json!({"a": "yes"}), &["a>e", "e."], "yes");
    check(document.clone(), json!({"a": "Yes"}), &["a>f", "f."], "Yes");
    check(document, json!({"a": "!nobody"}), &["a>g", "g."], "late");
}

/// T37: characters are counted, and the question is asked again.
#[test]
fn an_answer_that_breaks_the_rule_is_asked_for_again() {
    let a = json!({
        "type": "input", "question": "q", "default": "{{initial_prompt}}", "validation": "len(input) >= 3", "next": "e",
        "state_updates": {"t": "{{input}}"},
    });
    let document = nodes(json!({"a": a, "e": end("{{t}}")}), json!({}));
    check(document.clone(), json!({"a": "éé", "a#1": "ééé"}), &["a>e", "e."], "ééé");
    check(document.clone(), json!({"a": "éé", "a#1": ""}), &["a:input-validation"], "! input-validation");
    let played = fixed(document, json!({"a": "éé", "a#1": ""}));
    assert_eq!(played.notes, [Note::AskedAgain { node: "a".to_owned() }]);
}

#[test]
fn no_more_work_runs_at_once_than_allowed() {
    let map = |limit: usize| json!({"type": "map", "over": "{{l}}", "as": "i", "branch": "b", "collect_into": "o", "next": "e", "max_concurrency": limit});
    let items: Vec<usize> = (0..20).collect();
    let b = json!({"type": "script", "script": "s.sh"});
    let document = |limit| nodes(json!({"a": map(limit), "b": b, "e": end("")}), json!({"l": items}));
    assert_eq!(fixed(document(3), json!({"b": {"output": 1}})).parallel, 3);
    let mut wide = nodes(
        json!({"a": fan(&["b", "c", "d"]), "b": script("e"), "c": script("e"), "d": script("e"), "e": end("")}),
        json!({}),
    );
    wide["settings"] = json!({"max_concurrency": 2});
    assert_eq!(fixed(wide, json!({})).parallel, 2);
}

/// T23: an abort waits for scripts and cancels everything else; the time limit waits for nothing.
#[test]
fn a_run_is_aborted_between_super_steps() {
    let llm = json!({"type": "llm", "prompt": "p", "next": "e"});
    let document = nodes(json!({"a": fan(&["b", "c"]), "b": script("e"), "c": llm, "e": end("")}), json!({"x": 0}));
    let begun = || {
        let mut run = Run::new(graph(&document), Begin::default());
        let effects = run.step(Event::Begin);
        let [Effect::Run(work)] = &effects[..] else { panic!("{effects:?}") };
        let effects = run.step(Event::Finished { work: work.id.clone(), result: Ok(json!({})) });
        let work = effects.into_iter().filter_map(|effect| match effect {
            Effect::Run(work) => Some(work.id),
            _ => None,
        });
        (run, work.collect::<Vec<_>>())
    };
    let (mut run, work) = begun();
    assert_eq!(run.step(Event::Abort), [Effect::Cancel(work[1].clone())]);
    let last = run.step(Event::Finished { work: work[0].clone(), result: Ok(json!({"x": 1})) });
    let [Effect::Stepped(step), Effect::Ended(Err(error))] = &last[..] else { panic!("{last:?}") };
    assert_eq!((line(&step.branches).as_str(), error.kind), ("b>e", FaultKind::Aborted));
    assert_eq!(run.checkpoint().state["x"], json!(0));
    let (mut run, work) = begun();
    let last = run.step(Event::TimedOut);
    assert_eq!(last[..2], [Effect::Cancel(work[0].clone()), Effect::Cancel(work[1].clone())]);
    assert!(matches!(&last[2], Effect::Ended(Err(error)) if error.kind == FaultKind::TimedOut), "{last:?}");
    assert_eq!(run.step(Event::Finished { work: work[0].clone(), result: Ok(json!({})) }), []);
}

#[test]
fn results_that_were_not_asked_for_are_ignored() {
    let document = nodes(json!({"a": script("e"), "e": end("")}), json!({}));
    let mut run = Run::new(graph(&document), Begin::default());
    let work = |node: &str, item| crate::run::WorkId { step: 0, node: node.to_owned(), item, asked: 0 };
    let stray = |run: &mut Run, work| run.step(Event::Finished { work, result: Ok(json!({})) });
    assert_eq!(stray(&mut run, work("a", None)), []);
    run.step(Event::Begin);
    assert_eq!(stray(&mut run, work("e", None)), []);
    assert_eq!(stray(&mut run, work("a", Some(1))), []);
    assert_eq!(stray(&mut run, work("a", None)).len(), 3);
}
