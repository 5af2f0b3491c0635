//! Scripts of calls and their results.

mod hostile;
mod script;

use std::fmt::Write;

use expect_test::Expect;
use serde_json::{Value, json};

use crate::{AgentId, Agents, Answer, Call, HelperOutcome, Settings, Tree};

/// `boss` and `lead` start helpers, `kid` does not; others do not exist.
pub(super) struct Known;

impl Agents for Known {
    fn settings(&self, name: &str) -> Result<Settings, String> {
        match name {
            "kid" => Ok(Settings { escalation_timeout_ms: 5_000, ..Settings::default() }),
            "boss" | "lead" => Ok(Settings { spawns: true, ..Settings::default() }),
            _ => Err(format!("there is no agent \"{name}\"")),
        }
    }
}

/// Plays a script, one step a line, and compares the results. Ids are shown as `@1`, `@2`, in the order in which they appear.
///
/// `WHO tool {arguments}` calls a tool; `end WHO text` and `fail WHO text` end an agent; `time N` sets the time in milliseconds;
/// `wait WHO` asks again for what an agent waits for; `stop WHO` asks whether it may stop.
#[track_caller]
pub(super) fn check(settings: Settings, script: &str, expected: &Expect) {
    let mut tree = Tree::new(1, "boss", settings);
    let (mut ids, mut out, mut now_ms) = (Vec::<String>::new(), String::new(), 0);
    let mut waiting = std::collections::BTreeMap::new();
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let line = ids
            .iter()
            .enumerate()
            .rev()
            .fold(line.to_owned(), |line, (n, id)| line.replace(&format!("@{}", n + 1), id));
        let mut parts = line.splitn(3, ' ');
        let [verb, who, rest] = [(); 3].map(|()| parts.next().unwrap_or_default());
        let agent = AgentId(who.to_owned());
        let answer = match verb {
            "end" => {
                tree.finished(&agent, HelperOutcome::Completed(rest.to_owned()));
                None
            }
            "fail" => {
                tree.finished(&agent, HelperOutcome::Failed(rest.to_owned()));
                None
            }
            "time" => {
                now_ms = who.parse().expect("a number");
                None
            }
            "stop" => {
                let _ = writeln!(out, "{:?}", tree.stopping(&agent));
                None
            }
            "wait" => {
                let of = waiting.remove(who).expect("it waits");
                Some((agent.clone(), tree.resume(&agent, of, now_ms, &Known)))
            }
            caller => {
                let caller = AgentId(caller.to_owned());
                let arguments: Value =
                    if rest.is_empty() { json!({}) } else { serde_json::from_str(rest).expect("JSON") };
                let name = if who.starts_with("user") { who.to_owned() } else { format!("agent__{who}") };
                let call = Call { caller: &caller, name: &name, arguments: &arguments, now_ms };
                Some((caller.clone(), tree.call(call, &Known).expect("a tool of ours")))
            }
        };
        match answer {
            Some((_, Answer::Now(value))) => drop(writeln!(out, "{value}")),
            Some((caller, Answer::Wait(of))) => {
                let _ = writeln!(out, "waits");
                waiting.insert(caller.0, of);
            }
            Some((_, Answer::Summarize(summary))) => {
                let _ = writeln!(out, "summarize {:?}", summary.output);
            }
            Some((_, Answer::Ask(question))) => {
                let _ = writeln!(out, "ask {:?} {:?} {:?}", question.kind, question.text, question.options);
            }
            None => {}
        }
        for effect in tree.take_effects() {
            let _ = writeln!(out, "  {effect:?}");
        }
        ids_of(&out, &mut ids);
    }
    let shown = ids.iter().enumerate().fold(out, |text, (n, id)| text.replace(id, &format!("@{}", n + 1)));
    expected.assert_eq(&shown);
}

/// Adds the ids of a text that are not known yet.
fn ids_of(text: &str, ids: &mut Vec<String>) {
    for word in text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')) {
        let digits = word.rsplit('_').next().unwrap_or_default();
        let is_id =
            digits.len() == 8 && (word.starts_with("agent_") || word.starts_with("esc_")) && !word.contains("__");
        if is_id && digits.chars().all(|c| c.is_ascii_hexdigit()) && !ids.contains(&word.to_owned()) {
            ids.push(word.to_owned());
        }
    }
}

pub(super) fn boss() -> Settings {
    Settings { spawns: true, ..Settings::default() }
}
