//! `atlasctl trigger create`.

use serde_json::{Map, Value, json};

use super::{Next, Trigger, found, path};
use crate::api;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input;
use crate::names;
use crate::output::Shown;
use crate::words;

/// How many next times are shown.
const SHOWN: &str = "3";

/// Options of `atlasctl trigger create`.
#[derive(Debug, clap::Args)]
#[group(skip)]
#[command(group = clap::ArgGroup::new("when").required(true).args(["cron", "every", "at", "webhook"]))]
#[command(group = clap::ArgGroup::new("what").required(true).args(["agent", "chain"]))]
pub(crate) struct Options {
    /// The trigger's name, unique in its namespace. A webhook has it in its address.
    #[arg(value_name = "NAME", value_parser = names::trigger)]
    name: String,
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
    /// The input of each job as JSON, @FILE, or - for stdin.
    #[arg(long, value_name = "JSON")]
    input: Option<String>,
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
    #[arg(long, value_name = "DURATION", value_parser = words::parse_duration)]
    jitter: Option<std::time::Duration>,
    /// The secret that signs calls: secret://NAME.
    #[arg(long, value_name = "REFERENCE", requires = "webhook")]
    hmac: Option<String>,
    /// Ask for a signed time stamp that is at most this old, and accept each call once.
    #[arg(long, value_name = "DURATION", requires = "hmac", value_parser = words::parse_duration)]
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
    let body = options.body(context)?;
    let client = context.client()?;
    let made = match options.replace {
        true => client.post(&["api", "triggers"], &[], &body).await,
        false => client.post_new(&["api", "triggers"], &[], &body).await,
    };
    made.map_err(|failure| match failure.code.as_deref() {
        Some("E1116") => Failure { message: format!("the trigger \"{}\" exists already", options.name), ..failure }
            .with_next("replace it: add --replace"),
        _ => failure,
    })?;
    let value = found(context, &options.name).await?;
    let trigger: Trigger = api::read(&value)?;
    let next = client.get(&[&path(&options.name)[..], &["next"]].concat(), &[("count", SHOWN)]).await?;
    let text = told(&trigger, &api::read(&next)?, &client.base());
    context.show(&Shown { value, text, names: vec![format!("trigger/{}", options.name)] })?;
    Ok(Exit::Done)
}

fn told(trigger: &Trigger, next: &Next, server: &str) -> String {
    let name = &trigger.id;
    if trigger.trigger_type == "webhook" {
        let server = server.split(',').next().unwrap_or_default();
        let signed = trigger.hmac.is_some() || !trigger.webhook_secret.is_empty();
        let signature = if signed { "   X-Atlas-Signature: sha256=…" } else { "   calls need no signature" };
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
    fn body(&self, context: &Context) -> Result<Value, Failure> {
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
        given("input_data", self.input.as_deref().map(|text| input::whole(text, "--input")).transpose()?);
        given("priority", self.priority.map(Value::from));
        given("time_zone", self.tz.as_ref().map(|zone| json!(zone)));
        given("overlap", self.overlap.as_ref().map(|overlap| json!(overlap)));
        given("catch_up", self.catch_up.map(Value::from));
        given("jitter_seconds", self.jitter.map(|jitter| json!(jitter.as_secs())));
        given("hmac", self.hmac.as_ref().map(|hmac| json!(hmac)));
        given("replay_window_seconds", self.replay_window.map(|window| json!(window.as_secs())));
        let map: Map<String, Value> = self.maps.iter().map(|(member, path)| (member.clone(), json!(path))).collect();
        given("map", (!map.is_empty()).then_some(Value::Object(map)));
        Ok(Value::Object(members))
    }
}
