//! Random graphs: the engine gives what a plain recursive interpreter gives, whatever the order in which work ends and wherever the run
//! is continued from a checkpoint.

use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;
use crate::run::Checkpoint;
use crate::{Kind, Node};

const IDS: [&str; 7] = ["a", "b", "c", "d", "e", "f", "m"];

/// What a script of the tests prints, or that it fails: a function of its node and of the state.
fn printed(node: &str, state: &Map<String, Value>) -> Result<Map<String, Value>, Fault> {
    let number = |key: &str| state.get(key).and_then(Value::as_i64).unwrap_or_default();
    let own = i64::try_from(node.bytes().map(usize::from).sum::<usize>()).expect("a small number");
    let seed = own + number("n") + 3 * number("k") + 7 * number("item");
    if seed % 11 == 0 {
        return Err(Fault::new(FaultKind::ScriptExit, "exit status 1"));
    }
    let mut printed = Map::from_iter([("n".to_owned(), json!(seed % 5)), ("output".to_owned(), json!(seed))]);
    if seed % 3 == 0 {
        printed.insert("k".to_owned(), json!(seed % 4));
    }
    if seed % 4 == 0 {
        let place = usize::try_from(seed).unwrap_or_default();
        printed.insert("_next".to_owned(), json!(IDS.iter().chain(&["end"]).nth(place % 8)));
    }
    Ok(printed)
}

fn documents() -> impl Strategy<Value = Value> {
    let targets = prop::collection::vec(prop::sample::select(vec!["a", "b", "c", "d", "e", "f", "m", "end"]), 1..4);
    let fallback = prop::option::of(prop::sample::select(vec!["b", "end"]));
    let reducer = prop::option::of(prop::sample::select(vec!["sum", "max", "append", "overwrite"]));
    let nodes = prop::collection::vec((targets, fallback), IDS.len());
    (nodes, prop::collection::vec(reducer, 3), 1..4_u64, 1..4_u64).prop_map(|(all, reducers, limit, visits)| {
        let mut nodes = Map::new();
        for (id, (next, fallback)) in IDS.iter().zip(all) {
            let node = match *id {
                "m" => json!({
                    "type": "map", "over": "{{list}}", "as": "item", "branch": "branch", "collect_into": "o", "next": next,
                    "max_concurrency": limit,
                }),
                _ => json!({"type": "script", "script": "s.sh", "next": next, "fallback": fallback}),
            };
            nodes.insert((*id).to_owned(), node);
        }
        nodes.insert("branch".to_owned(), json!({"type": "script", "script": "s.sh"}));
        nodes.insert("end".to_owned(), json!({"type": "end", "output": "{{n}} {{k}} {{o}}", "state_updates": {"done": "{{n}}"}}));
        let reducers: Map<String, Value> = ["n", "k", "output"]
            .iter()
            .zip(reducers)
            .filter_map(|(key, reducer)| Some(((*key).to_owned(), json!(reducer?))))
            .collect();
        json!({
            "name": "g", "start": "a", "reducers": reducers, "nodes": nodes, "initial_state": {"list": [1, 2, 3, 4], "output": 0},
            "settings": {"max_loop_iterations": visits, "max_concurrency": limit},
        })
    })
}

/// How a run ends: the output or the kind of its failure, and the last state.
type Ending = (Result<String, FaultKind>, Map<String, Value>);

/// Runs one super-step after the other, each node after the other.
fn interpret(graph: &Graph, state: Map<String, Value>, frontier: &BTreeSet<String>, mut visits: Counts) -> Ending {
    for id in frontier {
        *visits.entry(id.clone()).or_default() += 1;
        if visits[id] > graph.settings.max_loop_iterations {
            return (Err(FaultKind::VisitCap), state);
        }
    }
    let mut ends = 0;
    let (mut output, mut next) = (None, BTreeSet::new());
    let (mut writes, mut last) = (Vec::new(), Vec::new());
    let mut failure = None;
    for id in frontier {
        let node = graph.node(id).expect("a node");
        match run_node(node, &state) {
            Ok((own, Some(targets))) => {
                writes.push(own);
                next.extend(targets);
            }
            Ok((own, None)) => {
                ends += 1;
                let text = |key: &str| state.get(key).map(Value::to_string).unwrap_or_default();
                output = Some(format!("{} {} {}", text("n"), text("k"), text("o")));
                last.push(own);
            }
            Err(kind) => failure = failure.or(Some(kind)),
        }
    }
    if let Some(kind) = failure.or((ends > 1).then_some(FaultKind::SeveralEnds)) {
        return (Err(kind), state);
    }
    let mut merged = state.clone();
    for group in [writes, last] {
        let keys: BTreeSet<&String> = group.iter().flat_map(Map::keys).collect();
        for key in keys {
            let values: Vec<&Value> =
                group.iter().filter_map(|own| own.get(key)).filter(|value| state.get(key) != Some(value)).collect();
            for value in &values {
                let value = match graph.reducers.get(key) {
                    Some(reducer) => match reducer.fold(merged.get(key), value) {
                        Ok(value) => value,
                        Err(_) => return (Err(FaultKind::Reducer), state),
                    },
                    None if values.len() > 1 => return (Err(FaultKind::WriteConflict), state),
                    None => (*value).clone(),
                };
                merged.insert(key.clone(), value);
            }
        }
    }
    match output {
        Some(output) => (Ok(output), merged),
        None => interpret(graph, merged, &next, visits),
    }
}

/// What a node writes, and where it goes on; an end does not.
type Ran = Result<(Map<String, Value>, Option<Vec<String>>), FaultKind>;

fn run_node(node: &Node, state: &Map<String, Value>) -> Ran {
    let next = || Some(node.next_targets().to_vec());
    match &node.kind {
        Kind::End { .. } => {
            let n = state.get("n").map(Value::to_string).unwrap_or_default();
            Ok((Map::from_iter([("done".to_owned(), json!(n))]), None))
        }
        Kind::Map(_) => {
            let mut results = Vec::new();
            for item in state["list"].as_array().expect("a list") {
                let mut own = state.clone();
                own.insert("item".to_owned(), item.clone());
                results.push(printed("branch", &own).map_err(|fault| fault.kind)?["output"].clone());
            }
            Ok((Map::from_iter([("o".to_owned(), Value::Array(results))]), next()))
        }
        _ => match printed(&node.id, state) {
            Ok(mut own) => match own.shift_remove("_next") {
                Some(Value::String(target)) => Ok((own, Some(vec![target]))),
                _ => Ok((own, next())),
            },
            Err(fault) => match node.fallback() {
                Some(target) => Ok((Map::new(), Some(vec![target.to_owned()]))),
                None => Err(fault.kind),
            },
        },
    }
}

fn answer(work: &Work) -> Result<Value, Fault> {
    let Task::Script { state } = &work.task else { panic!("{work:?}") };
    printed(&work.node, state).map(Value::Object)
}

fn ending(played: Played) -> Ending {
    (played.output.ok_or_else(|| played.error.expect("an error").0), played.state)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_engine_agrees_with_the_interpreter(document in documents(), picks in prop::collection::vec(0..8_usize, 40)) {
        let graph = graph(&document);
        let mut state = graph.initial_state.clone();
        state.insert("initial_prompt".to_owned(), json!(""));
        let expected = interpret(&graph, state, &BTreeSet::from(["a".to_owned()]), Counts::new());
        let mut order = picks.iter().cycle();
        let run = Run::new(Arc::clone(&graph), Begin::default());
        let played = play(run, &answer, &mut |_| order.next().copied().unwrap_or_default());
        prop_assert_eq!(&ending(played.clone()), &expected);
        let mut again = picks.iter().rev().cycle();
        let run = Run::new(graph, Begin::default());
        prop_assert_eq!(play(run, &answer, &mut |_| again.next().copied().unwrap_or_default()).steps, played.steps);
    }

    #[test]
    fn a_run_continues_from_each_checkpoint(document in documents()) {
        let graph = graph(&document);
        let whole = play(Run::new(Arc::clone(&graph), Begin::default()), &answer, &mut |_| 0);
        for checkpoint in checkpoints(&graph) {
            let written = serde_json::to_string(&checkpoint).expect("JSON");
            let checkpoint: Checkpoint = serde_json::from_str(&written).expect("a checkpoint");
            let run = Run::continued(Arc::clone(&graph), Begin::default(), checkpoint);
            let rest = play(run, &answer, &mut |_| 0);
            prop_assert_eq!(&rest.state, &whole.state);
            prop_assert_eq!((&rest.output, &rest.error), (&whole.output, &whole.error));
            prop_assert!(whole.steps.ends_with(&rest.steps));
        }
    }
}

/// The checkpoints of a run before each of its super-steps.
fn checkpoints(graph: &Arc<Graph>) -> Vec<Checkpoint> {
    let mut run = Run::new(Arc::clone(graph), Begin::default());
    let mut found = vec![run.checkpoint().clone()];
    let mut open = Vec::new();
    let mut effects = run.step(Event::Begin);
    loop {
        let mut merged = false;
        let mut ended = false;
        for effect in effects {
            match effect {
                Effect::Run(work) => open.push(work),
                Effect::Stepped(record) => merged |= record.changed.is_some(),
                Effect::Ended(_) => ended = true,
                Effect::Cancel(_) | Effect::Note(_) => {}
            }
        }
        if ended {
            return found;
        }
        if merged {
            found.push(run.checkpoint().clone());
        }
        let work = open.remove(0);
        effects = run.step(Event::Finished { result: answer(&work), work: work.id });
    }
}
