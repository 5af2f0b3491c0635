//! A right run, and what is found in wrong ones.

use super::*;
use crate::durable_chaos::trace::parse;

/// What a run writes from step `first` on, where steps before are recorded.
fn run(name: &str, first: u64, last: u64) -> Vec<String> {
    let mut lines = vec![format!("{name} j1 starts 0 -")];
    for step in 1..=last {
        let did: &[&str] = if step < first { &["before", "after"] } else { &["before", "enter", "effect", "after"] };
        for word in did {
            let key = if *word == "effect" { format!("key{step}") } else { "-".to_owned() };
            lines.push(format!("{name} j1 {word} {step} {key}"));
        }
    }
    lines
}

fn facts(lines: &[String]) -> Facts {
    Facts {
        language: Language::Python,
        lines: parse(&lines.join("\n")),
        asked: Vec::new(),
        output: json!({"total": 1470, "message": "hello", "child": {"grew": true}, "said": "yes"}),
        recorded: (1..=STEPS).map(|step| format!("s{step}")).collect(),
        children: BTreeSet::from(["c1".to_owned()]),
        kills: 1,
    }
}

/// A run that is killed after the effect of a step, and another one that does it again.
fn killed_in(step: u64) -> Vec<String> {
    let mut lines = run("a", 1, step);
    lines.pop();
    [lines, run("b", step, STEPS), vec!["b j1 ends 0 -".to_owned()]].concat()
}

fn found(facts: &Facts, text: &str) {
    let found = check(facts);
    assert!(found.iter().any(|line| line.contains(text)), "{found:?}");
}

#[test]
fn steps_that_met_a_kill_may_run_again() {
    assert_eq!(check(&facts(&killed_in(5))), [] as [String; 0]);
}

#[test]
fn a_step_that_must_not_run_twice_may_not() {
    found(&facts(&killed_in(7)), "step 7 took effect 2 times, and met 1 kills");
}

#[test]
fn a_step_that_returned_may_not_run_again() {
    let lines = [run("a", 1, 5), run("b", 5, STEPS), vec!["b j1 ends 0 -".to_owned()]].concat();
    found(&facts(&lines), "step 5 took effect after it had returned");
}

#[test]
fn runs_do_not_overlap_and_end_for_a_reason() {
    let right = killed_in(5);
    let late = [right.clone(), vec!["a j1 effect 6 key6".to_owned()]].concat();
    found(&facts(&late), "run a does Effect 6 after run b has begun");
    found(&Facts { kills: 0, ..facts(&right) }, "1 runs were cut off, and faults explain 0");
}

#[test]
fn people_are_asked_only_about_steps_that_met_a_kill() {
    let right = facts(&killed_in(5));
    found(&Facts { asked: vec![7], ..right.clone() }, "people were asked 1 times about step 7, which met 0 kills");
    found(&Facts { asked: vec![5], ..right }, "people were asked 1 times about step 5");
}

#[test]
fn order_keys_record_and_children_count() {
    let mut lines = killed_in(5);
    let effect = lines.iter().position(|line| line == "b j1 effect 9 key9").expect("an effect");
    "b j1 effect 9 key8".clone_into(&mut lines[effect]);
    found(&facts(&lines), "steps {8, 9} have the same key key8");
    let effect = lines.remove(effect);
    lines.insert(1, effect.replace("b j1", "a j1"));
    found(&facts(&lines), "first effects came in the order [9, 1");
    let right = facts(&killed_in(5));
    found(&Facts { recorded: vec!["s1".to_owned()], ..right.clone() }, "its journal has the steps");
    found(&Facts { children: ["c1", "c2"].map(str::to_owned).into(), ..right.clone() }, "2 children ran");
    found(&Facts { output: Value::Null, ..right }, "its output is null");
}
