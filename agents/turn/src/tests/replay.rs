//! Replays of recorded turns: identical to the end, or different at a step.

use atlas_model::{Message, Usage};
use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::check::*;
use crate::record::{
    AGAIN, AnswerOutcome, ChildEnd, HelpOutcome, LEVEL, OwnStep, QuestionEnd, RUN, RoundStep, START, Spawn,
    StopOutcome, UnusableAnswer, round_step, server_counts, server_intent,
};
use crate::replay::{Ending, Replay, Step, replay};
use crate::{Effect, Event, Permits, Settings, ToolAction, ToolReturn, ToolRule, Turn};

fn fixed(settings: &Settings) -> Value {
    json!({"level": LEVEL, "source": "mock", "settings": settings, "tools": {"echo": "agent", "words": "skill", "a": "platform", "ask": "user", "team": "helper", "lab_x": {"server": {"server": "lab", "tool": "x"}}}})
}

fn own(call: &atlas_model::ToolCall) -> Option<OwnStep> {
    match call.name.as_str() {
        RUN | "echo" | "words" => Some(OwnStep::Job),
        "ask" => Some(OwnStep::Answer),
        "team" => Some(OwnStep::Helper),
        "lab_x" => Some(OwnStep::Server),
        _ => None,
    }
}

fn ran(agent: &str, end: Result<Value, String>) -> Value {
    json!({"agent": agent, "data": end.ok()})
}

/// Records a turn as the driver does. Before the call with number `.0` it goes on with the settings `.1`.
fn record(settings: &Settings, again: Option<(usize, &Settings)>, answers: &[Event]) -> (Vec<Step>, Value) {
    let mut steps = vec![Step::new("start", START, &fixed(settings))];
    let mut turn = Turn::new(settings.clone());
    let mut effects = turn.step(start(json!({"q": 1})), &Typed);
    let (mut answers, mut called, mut permits) = (answers.iter(), 0, Permits::default());
    loop {
        let event = match effects.pop().expect("an effect") {
            Effect::Call { key } => {
                if let Some((_, settings)) = again.filter(|(at, _)| *at == called && steps.len() > 1) {
                    steps.push(Step::new("start", AGAIN, &fixed(settings)));
                    called += 1;
                    effects = turn.refix(settings.clone());
                    continue;
                }
                called += 1;
                let Some(Event::Answered(answer)) = answers.next().cloned() else { return (steps, Value::Null) };
                let recorded = AnswerOutcome { place: 0, answer: (*answer).clone() };
                steps.push(Step::new("model", key, &recorded));
                Event::Answered(answer)
            }
            Effect::Tools { key, calls, .. } => {
                let mut returned: Vec<ToolReturn> = Vec::new();
                let guarded = |permits: &Permits, call: &atlas_model::ToolCall| match permits.must_ask(settings, call) {
                    true => Some(OwnStep::Guard),
                    false => own(call),
                };
                while let Some(step) = round_step(key, &calls, returned.len(), |call| guarded(&permits, call)) {
                    match step {
                        RoundStep::Together { key, calls } => {
                            let one = |call: &atlas_model::ToolCall| ToolReturn {
                                call: call.id.clone(),
                                outcome: crate::Outcome::Value(json!({"of": call.name})),
                            };
                            let outcomes: Vec<ToolReturn> = calls.iter().map(one).collect();
                            steps.push(Step::new("tools", key, &outcomes));
                            returned.extend(outcomes);
                        }
                        RoundStep::Servers { key, calls } => {
                            let one = |call: &atlas_model::ToolCall| ToolReturn {
                                call: call.id.clone(),
                                outcome: crate::Outcome::Value(json!({"from": call.name})),
                            };
                            let outcomes: Vec<ToolReturn> = calls.iter().map(one).collect();
                            steps.push(Step::new("intent", server_intent(key), &json!({"attempt": 1})));
                            steps.push(Step::new("tools", key, &json!({"mcp": [], "returned": outcomes})));
                            steps.push(Step::new("effect", server_counts(key), &json!({"mcp": []})));
                            returned.extend(outcomes);
                        }
                        RoundStep::Spawn(call) => {
                            let spawn = Spawn::of(call, call.name == "words");
                            let end = ChildEnd::Completed(json!({"heard": 1}));
                            steps.push(Step::new("child", spawn.key(), &end));
                            returned.push(ToolReturn { call: call.id.clone(), outcome: spawn.outcome(end, ran) });
                        }
                        RoundStep::Ask(call) => {
                            let end = QuestionEnd::Ended(json!({"answer": "blue"}));
                            steps.push(Step::new("question", QuestionEnd::key(steps.len() as u64, call), &end));
                            returned.push(ToolReturn { call: call.id.clone(), outcome: end.outcome() });
                        }
                        RoundStep::Guard(call) => {
                            let asked = QuestionEnd::key(steps.len() as u64, &Permits::question(call));
                            let end = QuestionEnd::Ended(json!({"answer": "allow for this job"}));
                            steps.push(Step::new("question", asked, &end));
                            let refused = permits.answered(call, &end);
                            returned.extend(refused.map(|outcome| ToolReturn { call: call.id.clone(), outcome }));
                        }
                        RoundStep::Help(call) => {
                            let helped = HelpOutcome { result: json!({"status": "ok"}), working: true };
                            steps.push(Step::new("effect", HelpOutcome::key(steps.len() as u64, call), &helped));
                            turn.set_helpers(true);
                            let outcome = crate::Outcome::Value(helped.result);
                            returned.push(ToolReturn { call: call.id.clone(), outcome });
                        }
                    }
                }
                Event::Returned(returned)
            }
            // It is reminded once.
            Effect::Stop { key } => {
                let reminded = steps.iter().any(|step| step.outcome.get("reminder").is_some());
                let reminder = (!reminded).then(|| "collect them".to_owned());
                steps.push(Step::new("effect", key, &StopOutcome { reminder: reminder.clone() }));
                Event::Stopping(reminder)
            }
            Effect::Finish { output, .. } => return (steps, output),
            other => panic!("{other:?}"),
        };
        effects = turn.step(event, &Typed);
    }
}

fn answers() -> Vec<Event> {
    vec![
        calls(&[
            ("1", "a", json!({})),
            ("2", "echo", json!({"x": 1})),
            ("3", "a", json!({})),
            ("4", "words", json!({"x": 1})),
            ("5", "ask", json!({"question": "?"})),
        ]),
        says("{\"done\": true}"),
    ]
}

fn settings() -> Settings {
    with_tools(&["a", "echo", "words", "ask"])
}

fn replayed(steps: &[Step]) -> Replay {
    replay(steps, &json!({"q": 1}), Vec::new(), Vec::new(), |_| Typed, ran).expect("a replay")
}

fn check_difference(steps: &[Step], expected: &Expect) {
    let Replay::Differs(found) = replayed(steps) else { panic!("identical") };
    let short = |side: &crate::replay::Side| side.to_string().chars().take(14).collect::<String>();
    expected.assert_eq(&format!("step {}: {} | {}", found.step, short(&found.recorded), short(&found.asked)));
}

#[test]
fn a_recorded_turn_is_identical_to_its_replay() {
    let (steps, output) = record(&settings(), None, &answers());
    let kinds: Vec<&str> = steps.iter().map(|step| step.kind.as_str()).collect();
    assert_eq!(kinds, ["start", "model", "tools", "child", "tools", "child", "question", "model"]);
    let Replay::Same(Ending::Finished { output: again, .. }) = replayed(&steps) else { panic!("not identical") };
    assert_eq!(again.to_string(), output.to_string());
}

#[test]
fn an_agent_with_working_helpers_stops_when_it_may() {
    let answers = [calls(&[("1", "team", json!({}))]), says("{\"one\": 1}"), says("{\"two\": 2}")];
    let (steps, output) = record(&with_tools(&["team"]), None, &answers);
    let kinds: Vec<&str> = steps.iter().map(|step| step.kind.as_str()).collect();
    assert_eq!(kinds, ["start", "model", "effect", "model", "effect", "model", "effect"]);
    assert_eq!(output, json!({"two": 2}));
    assert!(matches!(replayed(&steps), Replay::Same(Ending::Finished { .. })));
    for count in 1..steps.len() {
        assert!(matches!(replayed(&steps[..count]), Replay::Same(Ending::Open { .. })), "{count}");
    }
}

#[test]
fn calls_that_people_allow_are_replayed() {
    let rule = |tool: &str, action| ToolRule { tool: tool.to_owned(), action };
    let permissions = vec![rule("a", ToolAction::Ask), rule("echo", ToolAction::Deny)];
    let settings = Settings { permissions, ..settings() };
    let (steps, _) = record(&settings, None, &answers());
    let kinds: Vec<&str> = steps.iter().map(|step| step.kind.as_str()).collect();
    // The first call asks, the third is allowed as well, and that of `echo` is not made.
    assert_eq!(kinds, ["start", "model", "question", "tools", "child", "question", "model"]);
    assert!(matches!(replayed(&steps), Replay::Same(Ending::Finished { .. })));
}

/// Whatever is missing at the end, the replay asks for exactly that.
#[test]
fn a_record_that_was_cut_is_identical_so_far() {
    let (steps, _) = record(&settings(), None, &answers());
    for (count, step) in steps.iter().enumerate().skip(1) {
        let Replay::Same(Ending::Open { asked }) = replayed(&steps[..count]) else { panic!("not open after {count}") };
        assert_eq!(asked.to_string(), format!("{} {}", step.kind, step.key));
    }
}

#[test]
fn a_fork_goes_on_with_other_settings() {
    let other = Settings { model: "large".to_owned(), system: "Be brief.".to_owned(), ..settings() };
    let (plain, _) = record(&settings(), None, &answers());
    let (forked, _) = record(&settings(), Some((1, &other)), &answers());
    assert_eq!((&forked[..7], &*forked[7].kind), (&plain[..7], "start"));
    assert_ne!(forked[8].key, plain[7].key);
    assert!(matches!(replayed(&forked), Replay::Same(Ending::Finished { .. })));
}

#[test]
fn the_first_difference_is_told_with_both_sides() {
    let (steps, _) = record(&settings(), None, &answers());
    let changed = |at: usize, change: &dyn Fn(&mut Step)| {
        let mut steps = steps.clone();
        change(&mut steps[at]);
        steps
    };
    // Another prompt: the first model call differs.
    let prompt = changed(0, &|step| step.outcome["settings"]["system"] = json!("Be long."));
    check_difference(&prompt, &expect!["step 1: model 7dec4bcd | model 33a80128"]);
    // Another answer: the tool calls that follow from it differ.
    let answer = changed(1, &|step| step.outcome["parts"] = json!([{"type": "text", "text": "{}"}]));
    check_difference(&answer, &expect!["step 2: tools a022268f | the output {}"]);
    let result = changed(2, &|step| step.outcome[0]["outcome"] = json!({"value": 2}));
    check_difference(&result, &expect!["step 7: model bc8f0151 | model 8e6c69cb"]);
    let child = changed(3, &|step| step.kind = "sleep".to_owned());
    check_difference(&child, &expect!["step 3: sleep f81260c8 | child f81260c8"]);
}

#[test]
fn what_is_no_record_of_the_loop_is_refused() {
    let (steps, _) = record(&settings(), None, &answers());
    let refused = |steps: &[Step]| {
        replay(steps, &json!({"q": 1}), Vec::new(), Vec::new(), |_| Typed, ran).expect_err("refused").to_string()
    };
    let with = |at: usize, change: &dyn Fn(&mut Step)| {
        let mut steps = steps.clone();
        change(&mut steps[at]);
        refused(&steps)
    };
    assert_eq!(refused(&[]), "the job has recorded no steps");
    assert_eq!(
        with(0, &|step| step.outcome["level"] = json!(2)),
        "the job was recorded by level 2 of the agent loop, and this program has level 1"
    );
    assert!(
        with(0, &|step| step.key = "00".repeat(16)).starts_with("the job is not that of an agent with a model: step 0")
    );
    assert!(with(0, &|step| step.outcome = json!([])).starts_with("the outcome of step 0 cannot be read"));
    assert!(with(1, &|step| step.outcome = json!(null)).starts_with("the outcome of step 1 cannot be read"));
    assert_eq!(
        with(2, &|step| step.outcome = json!([])),
        "the outcome of step 2 cannot be read: it has 0 results, and the round has 1 calls"
    );
}

#[test]
fn other_settings_are_for_the_next_request_only() {
    let mut turn = Turn::new(settings());
    let effects = turn.refix(settings());
    assert!(matches!(&effects[..], [Effect::Fail(failure)] if failure.to_string().contains("other settings")));
    assert!(turn.step(start(json!({})), &Typed).is_empty());
}

/// The intent before calls of MCP servers and the counts after them may be there or not: the definition of a server can change.
#[test]
fn calls_of_servers_are_replayed() {
    let answers =
        [calls(&[("1", "lab_x", json!({"x": 1})), ("2", "lab_x", json!({"x": 2}))]), says("{\"done\": true}")];
    let (steps, _) = record(&with_tools(&["a", "lab_x"]), None, &answers);
    let kinds: Vec<&str> = steps.iter().map(|step| step.kind.as_str()).collect();
    assert_eq!(kinds, ["start", "model", "intent", "tools", "effect", "model"]);
    let same = |steps: &[Step]| matches!(replayed(steps), Replay::Same(Ending::Finished { .. }));
    assert!(same(&steps));
    let less: Vec<Step> = steps.iter().filter(|step| !["intent", "effect"].contains(&&*step.kind)).cloned().collect();
    assert!(same(&less));
    let mut changed = steps;
    changed[3].outcome["returned"][0]["outcome"] = json!({"value": 2});
    check_difference(&changed, &expect!["step 5: model 87c6150a | model 0bc70d97"]);
}

#[test]
fn a_call_whose_answer_was_not_recorded_has_failed() {
    let mut turn = Turn::new(Settings::default());
    let effects = turn.step(start(json!({"q": 1})), &Typed);
    let Some(Effect::Call { key }) = effects.last().cloned() else { panic!("no call: {effects:?}") };
    let unusable = UnusableAnswer { unusable: "lost".to_owned(), model: "m".to_owned(), usage: Usage::default() };
    let steps = [Step::new("start", START, &fixed(&Settings::default())), Step::new("model", key, &unusable)];
    let replayed = replay(&steps, &json!({"q": 1}), Vec::new(), Vec::new(), |_| Typed, ran).expect("a replay");
    let Replay::Same(Ending::Failed(failure)) = replayed else { panic!("another end: {replayed:?}") };
    assert_eq!(failure.to_string(), "lost");
}

#[test]
fn a_recorded_prompt_is_the_last_message() {
    let settings = Settings::default();
    let mut turn = Turn::new(settings.clone());
    let said = vec![Message::user("searched")];
    let effects = turn.step(Event::Started { input: json!({}), images: Vec::new(), said }, &Typed);
    let Some(Effect::Call { key }) = effects.last().cloned() else { panic!("no call: {effects:?}") };
    let Event::Answered(answer) = says("done") else { panic!("no answer") };
    let mut first = fixed(&settings);
    first["prompt"] = "searched".into();
    let steps =
        [Step::new("start", START, &first), Step::new("model", key, &AnswerOutcome { place: 0, answer: *answer })];
    for said in [vec![], vec![Message::user("asked")]] {
        let input = json!({"message": "asked"});
        let replayed = replay(&steps, &input, Vec::new(), said, |_| Typed, ran).expect("a replay");
        assert!(matches!(replayed, Replay::Same(_)), "{replayed:?}");
    }
}
