//! `atlasctl trigger create`.

use atlas_api::types::{Agent, NextFirings};
use serde_json::{Map, Value, json};

use super::{Trigger, found, path};
use crate::answers;
use crate::client::Client;
use crate::command::chain::input_schema;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::{self, Source};
use crate::names;
use crate::output::Shown;
use crate::words;

/// How many next times are shown.
const SHOWN: &str = "3";

/// An expression of which parts never match is refused.
const STRICT: &[(&str, &str)] = &[("strict", "true")];

/// Options of `atlasctl trigger create`.
#[derive(Debug, clap::Args)]
#[group(skip)]
#[command(group = clap::ArgGroup::new("when").required(true).args(["cron", "every", "at", "webhook"]))]
#[command(group = clap::ArgGroup::new("what").required(true).args(["agent", "chain"]))]
pub(crate) struct Options {
    /// The trigger's name, unique in its namespace. A webhook has it in its address.
    #[arg(value_name = "NAME", value_parser = names::trigger)]
    name: String,
    /// The input of each job: one JSON object, or key=value arguments as in atlasctl run.
    #[arg(value_name = "JSON|KEY=VALUE")]
    words: Vec<String>,
    /// Fire at times: minute, hour, day, month and weekday.
    #[arg(long, value_name = "EXPRESSION")]
    cron: Option<String>,
    /// Fire again and again: 30s, 5m, 2h.
    #[arg(long, value_name = "DURATION", value_parser = words::parse_duration)]
    every: Option<std::time::Duration>,
    /// Fire once: +5m, @1795348867 or 2026-11-22T12:01:07Z.
    #[arg(long, value_name = "TIME")]
    at: Option<String>,
    /// Fire when its address is called.
    #[arg(long)]
    webhook: bool,
    /// The agent to run.
    #[arg(long, value_name = "AGENT", value_parser = names::agent)]
    agent: Option<String>,
    /// The chain to run.
    #[arg(long, value_name = "CHAIN")]
    chain: Option<String>,
    /// The input of each job as JSON, @FILE, or - for stdin; also key=value, repeatable.
    #[arg(short, long, value_name = "JSON|@FILE|-|KEY=VALUE", allow_hyphen_values = true)]
    input: Vec<String>,
    /// The priority of each job; higher runs first.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    priority: Option<i64>,
    /// The time zone of --cron, such as Europe/Rome; UTC without it.
    #[arg(long, value_name = "ZONE", requires = "cron")]
    tz: Option<String>,
    /// What a firing does while the last job has not ended: allow, skip, queue or cancel.
    #[arg(long, value_parser = ["allow", "skip", "queue", "cancel"])]
    overlap: Option<String>,
    /// How many of the times that the cluster missed are made up for; 1 by default.
    #[arg(long, value_name = "N")]
    catch_up: Option<u32>,
    /// Delay each firing by up to this long.
    #[arg(long, value_name = "DURATION", value_parser = words::parse_seconds)]
    jitter: Option<std::time::Duration>,
    /// The secret that signs calls: secret://NAME.
    #[arg(long, value_name = "REFERENCE", requires = "webhook")]
    hmac: Option<String>,
    /// How the sender signs its calls: atlas, github, stripe, slack, shopify or standard.
    #[arg(long, requires = "hmac", value_parser = ["atlas", "github", "stripe", "slack", "shopify", "standard"])]
    scheme: Option<String>,
    /// Ask for a signed time stamp that is at most this old, and accept each call once.
    #[arg(long, value_name = "DURATION", requires = "hmac", value_parser = words::parse_seconds)]
    replay_window: Option<std::time::Duration>,
    /// A member of the input, and where in a call its value is; repeatable.
    #[arg(long = "map", value_name = "MEMBER=body.PATH", requires = "webhook", value_parser = words::parse_label)]
    maps: Vec<(String, String)>,
    /// Create it paused.
    #[arg(long)]
    paused: bool,
    /// Replace a trigger of the same name.
    #[arg(long)]
    replace: bool,
}

pub(super) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    let client = context.client()?;
    let body = options.body(context, options.input_data(&client).await?)?;
    let made = match options.replace {
        true => client.post(&["api", "triggers"], STRICT, &body).await,
        false => client.post_new(&["api", "triggers"], STRICT, &body).await,
    };
    made.map_err(|failure| match failure.code.as_deref() {
        Some("E1116") => Failure { message: format!("the trigger \"{}\" exists already", options.name), ..failure }
            .with_next("replace it: add --replace"),
        _ => failure,
    })?;
    let value = found(context, &options.name).await?;
    let trigger: Trigger = answers::read(&value)?;
    let next = client.get(&[&path(&options.name)[..], &["next"]].concat(), &[("count", SHOWN)]).await?;
    let text = told(&trigger, &answers::read(&next)?, &client.base());
    context.show(&Shown { value, text, names: vec![format!("trigger/{}", options.name)] })?;
    Ok(Exit::Done)
}

fn told(trigger: &Trigger, next: &NextFirings, server: &str) -> String {
    let name = &trigger.id;
    if trigger.trigger_type == "webhook" {
        let server = server.split(',').next().unwrap_or_default();
        let signed = trigger.hmac.is_some() || !trigger.webhook_secret.is_empty();
        let signature = match (signed, trigger.scheme.as_str()) {
            (false, _) => "   calls need no signature".to_owned(),
            (true, "" | "atlas") => "   X-Atlas-Signature: sha256=…".to_owned(),
            (true, scheme) => format!("   signed by {scheme}"),
        };
        return format!(
            "trigger {name}   POST {server}/api/hooks/{name}{signature}\ntest it: atlasctl trigger test {name} --body '{{…}}'\n"
        );
    }
    let mut text = format!(
        "trigger {name}   {}   overlap: {}   catch-up: {}\n",
        trigger.rule(),
        trigger.overlap,
        trigger.catch_up
    );
    text += &match next.local.as_slice() {
        [] => "  no next time\n".to_owned(),
        times => format!("  next  {}\n", times.join(" · ")),
    };
    text
}

impl Options {
    /// The input of each job; none if none was given. Values of key=value get the types of the agent's contract, for a chain
    /// those of its first agent.
    async fn input_data(&self, client: &Client) -> Result<Option<Value>, Failure> {
        let pairs = match self.given_input()? {
            None => return Ok(None),
            Some(Source::Whole(value)) => return Ok(Some(value)),
            Some(Source::Pairs(pairs)) => pairs,
        };
        let schema = match &self.agent {
            Some(agent) => {
                let agent: Agent = answers::read(&client.get(&["api", "agents", agent], &[]).await?)?;
                agent.input_schema
            }
            None => input_schema(client, &json!(self.chain)).await,
        };
        input::object(pairs, &schema).map(Some)
    }

    fn given_input(&self) -> Result<Option<Source>, Failure> {
        let is_pair = |text: &&String| input::is_pair(text);
        match (self.words.as_slice(), self.input.as_slice()) {
            ([], []) => Ok(None),
            (words, []) => input::source(words, None).map(Some),
            ([], pairs) if pairs.iter().filter(is_pair).count() == pairs.len() => input::source(pairs, None).map(Some),
            ([], [whole]) => input::source(&[], Some(whole)).map(Some),
            ([], _) => Err(Failure::usage("--input is given several times, and not always as key=value")),
            (words, [whole, ..]) => input::source(words, Some(whole)).map(Some),
        }
    }

    fn body(&self, context: &Context, input: Option<Value>) -> Result<Value, Failure> {
        let mut members = Map::new();
        let mut set = |member: &str, value: Value| drop(members.insert(member.to_owned(), value));
        set("id", json!(self.name));
        set("name", json!(self.name));
        set("enabled", json!(!self.paused));
        let kind = match (&self.cron, &self.every, &self.at) {
            (Some(expression), ..) => {
                set("cron_expr", json!(expression));
                "cron"
            }
            (_, Some(every), _) => {
                set("interval_seconds", json!(every.as_secs_f64()));
                "interval"
            }
            (_, _, Some(at)) => {
                let at = words::parse_moment(at, context.look.now).map_err(Failure::usage)?;
                set("fire_at", json!(at));
                "one_shot"
            }
            _ => "webhook",
        };
        set("trigger_type", json!(kind));
        let mut given = |member: &str, value: Option<Value>| {
            if let Some(value) = value {
                members.insert(member.to_owned(), value);
            }
        };
        given("agent_name", self.agent.as_ref().map(|agent| json!(agent)));
        given("chain_name", self.chain.as_ref().map(|chain| json!(chain)));
        given("input_data", input);
        given("priority", self.priority.map(Value::from));
        given("time_zone", self.tz.as_ref().map(|zone| json!(zone)));
        given("overlap", self.overlap.as_ref().map(|overlap| json!(overlap)));
        given("catch_up", self.catch_up.map(Value::from));
        given("jitter_seconds", self.jitter.map(|jitter| json!(jitter.as_secs())));
        given("hmac", self.hmac.as_ref().map(|hmac| json!(hmac)));
        given("scheme", self.scheme.as_ref().map(|scheme| json!(scheme)));
        given("replay_window_seconds", self.replay_window.map(|window| json!(window.as_secs())));
        let map: Map<String, Value> = self.maps.iter().map(|(member, path)| (member.clone(), json!(path))).collect();
        given("map", (!map.is_empty()).then_some(Value::Object(map)));
        Ok(Value::Object(members))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(line: &str) -> String {
        #[derive(clap::Parser)]
        struct Line {
            #[command(flatten)]
            options: Options,
        }
        let words = ["create", "t", "--every", "5m", "--agent", "a"].into_iter().chain(line.split(' '));
        let line = <Line as clap::Parser>::try_parse_from(words.filter(|word| !word.is_empty())).expect("options");
        match line.options.given_input() {
            Ok(source) => format!("{source:?}"),
            Err(failure) => failure.message,
        }
    }

    #[test]
    fn an_input_is_given_as_for_a_run() {
        let pairs = r#"Some(Pairs([("a", "1"), ("b", "x=y")]))"#;
        assert_eq!(input(""), "None");
        assert_eq!(input("a=1 b=x=y"), pairs);
        assert_eq!(input("--input a=1 --input b=x=y"), pairs);
        assert_eq!(input(r#"--input {"a":1}"#), r#"Some(Whole(Object {"a": Number(1)}))"#);
        assert_eq!(input(r#"{"a":1}"#), r#"Some(Whole(Object {"a": Number(1)}))"#);
        assert_eq!(input("--input a=1 --input {}"), "--input is given several times, and not always as key=value");
        assert!(input("a=1 --input {}").contains("twice"));
        assert!(input("--input @/no/such=file").starts_with("could not read"));
    }
}
