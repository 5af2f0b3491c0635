//! `atlasctl event`: events of the cluster.

use atlas_api::types::JobChange;
use clap::ValueEnum;
use serde_json::Value;

use crate::answers;
use crate::command::job::{Happening, event_line};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::filter::Filter;
use crate::output::Shown;
use crate::words;

/// Verbs of `atlasctl event`.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    /// Streams events until Ctrl-C.
    Tail(TailOptions),
}

/// The kind of object that an event concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    Job,
    Agent,
    Node,
    Object,
    Run,
    Cluster,
}

/// Options of `atlasctl event tail`.
#[derive(Debug, clap::Args)]
pub(crate) struct TailOptions {
    /// Only events that match this expression, such as 'new_status == "failed" && agent_name == "hello"'.
    #[arg(long, value_name = "CEL")]
    filter: Option<Filter>,
    /// Only those about jobs, agents, nodes, objects, runs of chains or the cluster's configuration; several with commas between.
    #[arg(long = "kind", value_name = "KIND", value_delimiter = ',')]
    kinds: Vec<Kind>,
    /// Only those about what has this name: the whole id of a job or of a run, the name of an agent, a node or an object.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Only those of jobs of this type, in the word of the lines or in that of the API.
    #[arg(long = "type", value_name = "TYPE", conflicts_with = "kinds")]
    happening: Option<Happening>,
    /// Starts after the event of this number; only new events are printed unless given.
    #[arg(long, value_name = "NUMBER", value_parser = words::parse_number)]
    after: Option<u64>,
    /// Exit after this many events.
    #[arg(long, value_name = "N", value_parser = words::parse_number)]
    limit: Option<u64>,
}

impl TailOptions {
    fn query(&self) -> Vec<(&'static str, String)> {
        let kinds = if self.happening.is_some() { &[Kind::Job][..] } else { &self.kinds };
        let words = kinds.iter().filter_map(Kind::to_possible_value).map(|kind| kind.get_name().to_owned());
        let kinds: Vec<String> = words.collect();
        let kinds = (!kinds.is_empty()).then(|| ("kind", kinds.join(",")));
        let name = self.name.clone().map(|name| ("name", name));
        let after = self.after.map(|after| ("after", after.to_string()));
        [kinds, name, after].into_iter().flatten().collect()
    }

    fn admits(&self, value: &Value) -> Result<bool, Failure> {
        let happening = value["change"].as_str().and_then(Happening::of);
        let of_type = self.happening.is_none() || self.happening == happening;
        Ok(of_type && self.filter.as_ref().map_or(Ok(true), |filter| filter.admits(value))?)
    }
}

pub(crate) async fn run(context: &Context, verb: &Verb) -> Result<Exit, Failure> {
    let Verb::Tail(options) = verb;
    let mut left = options.limit;
    let client = context.client()?;
    let query = options.query();
    let query: Vec<(&str, &str)> = query.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let tail = client.events(&["api", "cluster", "events"], &query, |frame| {
        let value: Value = serde_json::from_str(&frame.data).map_err(Failure::answer)?;
        if !options.admits(&value)? {
            return Ok(true);
        }
        let shown = shown(value)?;
        if shown.text.is_empty() && context.form.is_text() {
            return Ok(true);
        }
        context.show(&shown)?;
        left = left.map(|left| left.saturating_sub(1));
        Ok(left != Some(0))
    });
    tokio::select! {
        ended = tail => ended?,
        _ = tokio::signal::ctrl_c() => {}
    }
    Ok(Exit::Done)
}

/// An event as lines of text; each line begins with the name of the object.
fn shown(value: Value) -> Result<Shown, Failure> {
    let kind = value["kind"].as_str().unwrap_or_default();
    if kind == "job" && value["job"].is_object() {
        let event: JobChange = answers::read(&value)?;
        let id = &event.job.id;
        let text = event_line(&event).lines().map(|line| format!("{id}  {line}\n")).collect();
        let names = vec![format!("job/{id}")];
        return Ok(Shown { value, text, names });
    }
    let (name, change) = (value["name"].as_str().unwrap_or_default(), value["change"].as_str().unwrap_or_default());
    let version = value["agent"]["version"].as_str();
    let (subject, names) = match (kind, version) {
        ("agent", Some(version)) => (format!("agent/{name}@{version}"), vec![format!("agent/{name}@{version}")]),
        ("object", _) => {
            let subject = format!("{}/{name}", value["object"]["kind"].as_str().unwrap_or(kind));
            (subject.clone(), vec![subject])
        }
        ("node" | "job" | "run", _) => (format!("{kind}/{name}"), vec![format!("{kind}/{name}")]),
        _ => (kind.to_owned(), Vec::new()),
    };
    let time = words::time_of_day(value["timestamp"].as_f64().unwrap_or_default());
    let labels = value["node"]["labels"].as_object().into_iter().flatten();
    let labels: String = labels.map(|(key, value)| format!("  {key}={}", value.as_str().unwrap_or_default())).collect();
    let text = format!("{subject}  {time}  {change}{labels}\n");
    Ok(Shown { value, text, names })
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;

    #[test]
    fn events_of_every_kind_have_a_line() {
        let agent = json!({"version": "1.0.0"});
        let events = [
            json!({"kind": "node", "name": "w1", "timestamp": 10.0, "change": "cordoned", "node": {"labels": {"rack": "7", "zone": "b"}}}),
            json!({"kind": "agent", "name": "hello", "timestamp": 10.0, "change": "registered", "agent": agent}),
            json!({"kind": "object", "name": "ci", "timestamp": 10.0, "change": "created", "object": {"kind": "webhook"}}),
            json!({"kind": "cluster", "name": "", "timestamp": 10.0, "change": "configured", "config": {}}),
            json!({"kind": "weather", "name": "x", "timestamp": 10.0, "change": "new"}),
        ];
        let shown: Vec<Shown> = events.into_iter().map(|event| shown(event).expect("an event")).collect();
        expect![[r#"
            node/w1  00:00:10.000  cordoned  rack=7  zone=b
            agent/hello@1.0.0  00:00:10.000  registered
            webhook/ci  00:00:10.000  created
            cluster  00:00:10.000  configured
            weather  00:00:10.000  new
        "#]]
        .assert_eq(&shown.iter().map(|shown| shown.text.as_str()).collect::<String>());
        assert_eq!(shown[0].names, ["node/w1"]);
        assert!(shown[3].names.is_empty());
    }
}
