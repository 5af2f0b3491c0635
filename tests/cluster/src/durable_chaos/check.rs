//! What must hold of one family: a job, and those that went on with its record after it had failed.
//!
//! All of it is read from what the programs wrote themselves, outside of Atlas. A run *meets a kill in a step* if it has called the step and
//! never came back from the call. Then:
//!
//! * A step whose call has returned never takes effect again, and no run does it twice. So `pure` and `idempotent` steps take effect at most
//!   once more for each kill that they met, which is all that anybody can promise: between the effect and its record lies a moment.
//! * A step `once` takes effect exactly once. If it met a kill, people are asked or the program looks, and never otherwise; people here tell
//!   what the trace says.
//! * First effects are in the order of the program, and no run writes after a later one has begun.
//! * The key of a step is the same in all runs, and no other step has it.
//! * Runs end for a reason: a kill, or a wait.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::plan::{Language, STEPS, is_once, result};
use super::trace::{Line, Word};

/// What is known of a family.
#[derive(Debug, Clone)]
pub(super) struct Facts {
    pub(super) language: Language,
    pub(super) lines: Vec<Line>,
    /// The steps of which people were asked, one for each question.
    pub(super) asked: Vec<u64>,
    /// The output of its last job.
    pub(super) output: Value,
    /// The names of the steps in the journal of its last job that its own code made.
    pub(super) recorded: Vec<String>,
    /// The jobs that its programs spawned and that have run, each once.
    pub(super) children: BTreeSet<String>,
    /// How many runs faults may have ended: kills of its agent, of any worker, and of any leader.
    pub(super) kills: usize,
}

/// What does not hold.
pub(super) fn check(facts: &Facts) -> Vec<String> {
    let mut found = Vec::new();
    let total: u64 = (1..=STEPS).map(result).sum();
    let expected = json!({"total": total, "message": "hello", "child": {"grew": true}, "said": "yes"});
    if facts.output != expected {
        found.push(format!("its output is {}, not {expected}", facts.output));
    }
    found.extend(runs(facts));
    found.extend((1..=STEPS).flat_map(|step| of_step(facts, step)));
    found.extend(order(facts));
    found.extend(keys(facts));
    found.extend(record(facts));
    found.extend(children(facts));
    found
}

/// The runs in the order of their beginnings.
fn runs_of(lines: &[Line]) -> Vec<&str> {
    lines.iter().filter(|line| line.word == Word::Starts).map(|line| line.run.as_str()).collect()
}

fn runs(facts: &Facts) -> Vec<String> {
    let mut found = Vec::new();
    let mut earlier = BTreeSet::new();
    let mut current = "";
    for line in &facts.lines {
        if line.run != current {
            if line.word != Word::Starts || earlier.contains(line.run.as_str()) {
                found.push(format!("run {} does {:?} {} after run {current} has begun", line.run, line.word, line.of));
            }
            earlier.insert(current);
            current = &line.run;
        }
    }
    let last = |run: &str| facts.lines.iter().rfind(|line| line.run == run).map(|line| line.word);
    // A run that waits may have been parked, as may one whose step is in doubt.
    let cut = runs_of(&facts.lines).into_iter().filter(|run| !matches!(last(run), Some(Word::Ends | Word::Waits)));
    let (cut, explained) = (cut.count(), facts.kills + facts.asked.len());
    if cut > explained {
        found.push(format!("{cut} runs were cut off, and faults explain {explained}"));
    }
    found
}

/// How many runs have called a step and never came back.
fn interrupted(facts: &Facts, step: u64) -> usize {
    let has = |run: &str, word| facts.lines.iter().any(|line| line.run == run && line.is(word, step));
    runs_of(&facts.lines).into_iter().filter(|run| has(run, Word::Before) && !has(run, Word::After)).count()
}

fn of_step(facts: &Facts, step: u64) -> Vec<String> {
    let mut found = Vec::new();
    let effects: Vec<usize> =
        facts.lines.iter().enumerate().filter(|(_, line)| line.is(Word::Effect, step)).map(|(at, _)| at).collect();
    let mut by_run = BTreeMap::<&str, usize>::new();
    effects.iter().for_each(|at| *by_run.entry(&facts.lines[*at].run).or_default() += 1);
    if let Some((run, count)) = by_run.iter().find(|(_, count)| **count > 1) {
        found.push(format!("step {step} took effect {count} times in run {run}"));
    }
    let returned = facts.lines.iter().position(|line| line.is(Word::After, step));
    if effects.last().is_some_and(|last| returned.is_some_and(|returned| *last > returned)) {
        found.push(format!("step {step} took effect after it had returned"));
    }
    let (count, kills) = (effects.len(), interrupted(facts, step));
    if count == 0 || count > 1 + kills || (is_once(step) && count != 1) {
        found.push(format!("step {step} took effect {count} times, and met {kills} kills"));
    }
    let asked = facts.asked.iter().filter(|asked| **asked == step).count();
    let looked = facts.lines.iter().filter(|line| line.is(Word::Looked, step)).count();
    let is_looked_for = facts.language.reconciles(step);
    if asked > 0 && (!is_once(step) || is_looked_for || asked > kills) {
        found.push(format!("people were asked {asked} times about step {step}, which met {kills} kills"));
    }
    if looked > 0 && (!is_once(step) || !is_looked_for || looked > kills) {
        found.push(format!("the program looked {looked} times what came of step {step}, which met {kills} kills"));
    }
    found
}

fn order(facts: &Facts) -> Option<String> {
    let mut first = BTreeMap::new();
    for (at, line) in facts.lines.iter().enumerate().filter(|(_, line)| line.word == Word::Effect) {
        first.entry(line.step()).or_insert(at);
    }
    let mut steps: Vec<(usize, u64)> = first.into_iter().map(|(step, at)| (at, step)).collect();
    steps.sort_unstable();
    let places: Vec<u64> = steps.iter().map(|(_, step)| facts.language.place(*step)).collect();
    let in_order = places.is_sorted();
    (!in_order)
        .then(|| format!("first effects came in the order {:?}", steps.iter().map(|pair| pair.1).collect::<Vec<_>>()))
}

fn keys(facts: &Facts) -> Vec<String> {
    let mut of_keys = BTreeMap::<&str, BTreeSet<u64>>::new();
    let mut of_steps = BTreeMap::<u64, BTreeSet<&str>>::new();
    for line in facts.lines.iter().filter(|line| line.word == Word::Effect) {
        of_keys.entry(&line.key).or_default().insert(line.step());
        of_steps.entry(line.step()).or_default().insert(&line.key);
    }
    let shared = of_keys.into_iter().filter(|(_, steps)| steps.len() > 1);
    let changed = of_steps.into_iter().filter(|(_, keys)| keys.len() > 1);
    let shared = shared.map(|(key, steps)| format!("steps {steps:?} have the same key {key}"));
    shared.chain(changed.map(|(step, keys)| format!("step {step} has the keys {keys:?}"))).collect()
}

/// The journal has each step once, in the order of the program.
fn record(facts: &Facts) -> Option<String> {
    let numbers: Vec<u64> = facts
        .recorded
        .iter()
        .map(|name| name.strip_prefix('s').and_then(|text| text.parse().ok()).unwrap_or(0))
        .collect();
    let places: Vec<u64> = numbers.iter().map(|step| facts.language.place(*step)).collect();
    let different: BTreeSet<u64> = numbers.iter().copied().collect();
    let is_whole = numbers.len() as u64 == STEPS && different == (1..=STEPS).collect();
    (!is_whole || !places.is_sorted()).then(|| format!("its journal has the steps {:?}", facts.recorded))
}

/// A child is found again by later attempts of its job. A job that goes on after a failed one may need a new child, as that of the failed one
/// ends with it.
fn children(facts: &Facts) -> Option<String> {
    let did =
        |job: &str, word| facts.lines.iter().any(|line| line.job == job && line.word == word && line.of == "spawn");
    let jobs: BTreeSet<&str> = facts.lines.iter().map(|line| line.job.as_str()).collect();
    let failed = jobs.into_iter().filter(|job| did(job, Word::Waits) && !did(job, Word::Went)).count();
    let count = facts.children.len();
    (count == 0 || count > 1 + failed)
        .then(|| format!("{count} children ran, and {failed} jobs failed while theirs did"))
}

#[cfg(test)]
mod tests;
