//! `atlasctl graph watch`: a run as it goes.

use std::collections::BTreeMap;

use atlas_api::types::{Job, Line};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::answers;
use crate::command::job::logs;
use crate::context::Context;
use crate::ending;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::names;
use crate::output::{Shown, Table};
use crate::words;

/// Options of `atlasctl graph watch`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Job id, or a unique prefix of it, also as printed by -o name.
    #[arg(value_name = "ID", value_parser = names::job)]
    id: String,
}

pub(super) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    let client = context.client()?;
    // Resolve the full id first: a prefix could become ambiguous when another job is submitted.
    let job: Job = answers::read(&client.get(&["api", "jobs", &options.id], &[("view", "full")]).await?)?;
    let id = job.id.as_str();
    let mut nodes = Nodes::default();
    logs::follow(&client, id, |line, value| {
        let text = nodes.hear(line).unwrap_or_else(|| logs::line(line));
        context.show(&Shown { value, text, names: Vec::new() })
    })
    .await?;
    if !nodes.0.is_empty() {
        context.show(&Shown { value: nodes.value(), text: nodes.table(), names: Vec::new() })?;
    }
    let job: Job = answers::read(&client.get(&["api", "jobs", id], &[("view", "full")]).await?)?;
    context.next(&format!("next: atlasctl graph history {id}"));
    Ok(ending::exit(&job))
}

/// The line about an event of a run, without what came before. None for lines that are no events.
pub(crate) fn event_line(line: &Line) -> Option<String> {
    Nodes::default().hear(line)
}

/// An event of a run, as its worker reports it.
#[derive(Debug, Deserialize)]
struct Event {
    event: String,
    #[serde(default)]
    node: String,
    #[serde(default)]
    step: u64,
    item: Option<u64>,
    #[serde(default)]
    tokens_input: u64,
    #[serde(default)]
    tokens_output: u64,
    #[serde(default)]
    cost_usd: f64,
    #[serde(default)]
    error: String,
    #[serde(default)]
    question: String,
    #[serde(default)]
    values: Map<String, Value>,
    #[serde(default)]
    next: Vec<String>,
}

/// What a node has done so far.
#[derive(Debug, Default)]
struct Node {
    ended: u64,
    failed: u64,
    /// When its open pieces of work began, by their items.
    began: BTreeMap<Option<u64>, f64>,
    seconds: f64,
    tokens: u64,
    usd: f64,
}

/// All nodes that have run, by their ids.
#[derive(Debug, Default)]
pub(crate) struct Nodes(BTreeMap<String, Node>);

impl Nodes {
    /// A line about an event of the run. None for lines that are no events.
    pub(crate) fn hear(&mut self, line: &Line) -> Option<String> {
        let event: Event = serde_json::from_str(&line.text).ok().filter(|_| line.kind == "progress")?;
        let time = words::time_of_day(line.at);
        let item = event.item.map(|item| format!("[{item}]")).unwrap_or_default();
        let name = format!("{}{item}", event.node);
        let told = |what: &str, about: &str, rest: &str| {
            let text = format!("{time}  {what:<8}  {about}  {rest}");
            Some(format!("{}\n", text.trim_end()))
        };
        match event.event.as_str() {
            "node_started" => {
                self.0.entry(event.node).or_default().began.insert(event.item, line.at);
                told("started", &name, "")
            }
            "node_finished" | "node_failed" => {
                let node = self.0.entry(event.node.clone()).or_default();
                // Its start may be before the first line that was heard.
                let took = node.began.remove(&event.item).map(|began| (line.at - began).max(0.0));
                let tokens = event.tokens_input + event.tokens_output;
                node.seconds += took.unwrap_or_default();
                node.tokens += tokens;
                node.usd += event.cost_usd;
                if event.event == "node_failed" {
                    node.failed += 1;
                    return told("failed", &name, &event.error);
                }
                node.ended += 1;
                let mut rest: Vec<String> = took.map(|took| words::milliseconds(took * 1e3)).into_iter().collect();
                if tokens > 0 {
                    rest.push(words::count(tokens, "token"));
                    rest.push(words::dollars(event.cost_usd));
                }
                told("finished", &name, &rest.join(", "))
            }
            "question_opened" => told("asks", &name, &event.question),
            "state_merged" => {
                let value = |(key, value): (&String, &Value)| format!("{key} = {}", value.as_str().unwrap_or_default());
                let values: Vec<String> = event.values.iter().map(value).collect();
                let next =
                    if event.next.is_empty() { String::new() } else { format!("  -> {}", event.next.join(", ")) };
                told("merged", &format!("step {}", event.step), &format!("{}{next}", values.join(", ")))
            }
            _ => None,
        }
    }

    fn value(&self) -> Value {
        let node = |(id, node): (&String, &Node)| {
            json!({
                "node": id, "ended": node.ended, "failed": node.failed, "seconds": node.seconds, "tokens": node.tokens,
                "cost_usd": node.usd,
            })
        };
        self.0.iter().map(node).collect()
    }

    /// What each node took.
    fn table(&self) -> String {
        let mut table = Table::new(&["NODE", "ENDED", "FAILED", "TIME", "TOKENS", "COST"]);
        let some = |count: u64| if count == 0 { String::new() } else { count.to_string() };
        for (id, node) in &self.0 {
            let cost = if node.usd == 0.0 { String::new() } else { words::dollars(node.usd) };
            let time = words::milliseconds(node.seconds * 1e3);
            table.row([id.clone(), node.ended.to_string(), some(node.failed), time, some(node.tokens), cost]);
        }
        format!("\n{}", table.text())
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn a_run_is_told_line_by_line() {
        let mut nodes = Nodes::default();
        let events = [
            r#"{"event": "node_started", "node": "plan", "step": 0}"#,
            r#"{"event": "node_finished", "node": "plan", "step": 0, "tokens_input": 100, "tokens_output": 20, "cost_usd": 0.0012}"#,
            r#"{"event": "state_merged", "step": 0, "keys": ["a"], "values": {"a": "\"x\"", "b": "1"}, "next": ["each", "ask"]}"#,
            r#"{"event": "node_started", "node": "each", "step": 1, "item": 0}"#,
            r#"{"event": "node_started", "node": "each", "step": 1, "item": 1}"#,
            r#"{"event": "node_failed", "node": "each", "step": 1, "item": 1, "error": "exit 3"}"#,
            r#"{"event": "node_finished", "node": "each", "step": 1, "item": 0}"#,
            r#"{"event": "question_opened", "node": "ask", "question": "go on?"}"#,
            r#"{"event": "other"}"#,
            "no event",
        ];
        let line = |(place, text): (usize, &&str)| {
            let at = 60.0 + place as f64;
            let text = (*text).to_owned();
            Line { at, kind: "progress".to_owned(), level: "info".to_owned(), text, ..Line::default() }
        };
        let told: Vec<_> = events.iter().enumerate().map(|found| nodes.hear(&line(found))).collect();
        assert_eq!(told.iter().filter(|line| line.is_none()).count(), 2);
        let told: String = told.into_iter().flatten().collect();
        expect![[r#"
            00:01:00.000  started   plan
            00:01:01.000  finished  plan  1.0 s, 120 tokens, $0.0012
            00:01:02.000  merged    step 0  a = "x", b = 1  -> each, ask
            00:01:03.000  started   each[0]
            00:01:04.000  started   each[1]
            00:01:05.000  failed    each[1]  exit 3
            00:01:06.000  finished  each[0]  3.0 s
            00:01:07.000  asks      ask  go on?

            NODE  ENDED  FAILED  TIME   TOKENS  COST
            each  1      1       4.0 s  -       -
            plan  1      -       1.0 s  120     $0.0012
        "#]]
        .assert_eq(&format!("{told}{}", nodes.table()));
        assert_eq!(
            event_line(&line((1, &events[1]))).as_deref(),
            Some("00:01:01.000  finished  plan  120 tokens, $0.0012\n")
        );
        // A line of the log is no event of the run.
        let said = Line { kind: "log".to_owned(), ..line((0, &events[0])) };
        assert_eq!(nodes.hear(&said), None);
    }
}
