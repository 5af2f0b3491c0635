//! `atlasctl trigger`: rules that start jobs at times, or when their address is called; one file per larger verb.

mod backfill;
mod create;
mod list;
mod show;

use atlas_api::types::{Firing, NextFirings};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::answers;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input;
use crate::names;
use crate::output::{Shown, Table};
use crate::words;

/// Verbs of `atlasctl trigger`.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    /// Creates a trigger.
    Create(Box<create::Options>),
    /// Lists triggers, newest first.
    List(list::Options),
    /// Shows one trigger with its next times and its last firings.
    Show(Name),
    /// Shows what a call of a trigger would start, and starts nothing.
    Test(TestOptions),
    /// Stops a trigger from firing until it is resumed.
    Pause(Name),
    /// Lets a trigger fire again.
    Resume(Name),
    /// Fires a trigger now, also a paused one.
    Fire(Name),
    /// Shows the next times at which a trigger fires.
    Next(NextOptions),
    /// Shows the latest calls of a webhook, also those that were refused.
    ///
    /// Each controller remembers the last 100 calls of a trigger that reached it since it started; --server asks another one.
    Deliveries(DeliveriesOptions),
    /// Fires a trigger for times that have passed, each once.
    Backfill(backfill::Options),
    /// Deletes a trigger.
    Delete(Name),
}

/// One trigger.
#[derive(Debug, clap::Args)]
pub(crate) struct Name {
    /// The trigger's name.
    #[arg(value_name = "NAME", value_parser = names::trigger)]
    name: String,
}

/// Options of `atlasctl trigger test`.
#[derive(Debug, clap::Args)]
pub(crate) struct TestOptions {
    #[command(flatten)]
    trigger: Name,
    /// The body of the call as JSON, @FILE, or - for stdin.
    #[arg(long, value_name = "JSON")]
    body: Option<String>,
}

/// Options of `atlasctl trigger next`.
#[derive(Debug, clap::Args)]
pub(crate) struct NextOptions {
    #[command(flatten)]
    trigger: Name,
    /// How many times to show, at most 100.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    count: u32,
}

/// Options of `atlasctl trigger deliveries`.
#[derive(Debug, clap::Args)]
pub(crate) struct DeliveriesOptions {
    #[command(flatten)]
    trigger: Name,
    /// How many calls to show, at most 100.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100))]
    limit: u32,
}

/// A trigger as the API shows it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Trigger {
    id: String,
    trigger_type: String,
    enabled: bool,
    agent_name: String,
    chain_name: String,
    cron_expr: String,
    interval_seconds: f64,
    last_fired: f64,
    next_fire: f64,
    fire_count: u64,
    last_job_id: String,
    webhook_secret: String,
    time_zone: String,
    overlap: String,
    catch_up: u32,
    jitter_seconds: u32,
    hmac: Option<String>,
    scheme: String,
    replay_window_seconds: u32,
    missed: u64,
    error: String,
    warnings: Vec<String>,
    firings: Vec<Firing>,
}

impl Trigger {
    fn target(&self) -> &str {
        if self.agent_name.is_empty() { &self.chain_name } else { &self.agent_name }
    }

    /// When it fires, in words.
    fn rule(&self) -> String {
        match self.trigger_type.as_str() {
            "cron" => format!("cron \"{}\" {}", self.cron_expr, self.time_zone),
            "interval" => format!("every {} s", self.interval_seconds),
            "one_shot" => "once".to_owned(),
            _ => "webhook".to_owned(),
        }
    }
}

pub(crate) async fn run(context: &Context, verb: &Verb) -> Result<Exit, Failure> {
    match verb {
        Verb::Create(options) => create::run(context, options).await,
        Verb::List(options) => list::run(context, options).await,
        Verb::Show(options) => show::run(context, &options.name).await,
        Verb::Test(options) => test(context, options).await,
        Verb::Pause(options) => enable(context, &options.name, false).await,
        Verb::Resume(options) => enable(context, &options.name, true).await,
        Verb::Fire(options) => fire(context, &options.name).await,
        Verb::Next(options) => next(context, options).await,
        Verb::Deliveries(options) => deliveries(context, options).await,
        Verb::Backfill(options) => backfill::run(context, options).await,
        Verb::Delete(options) => delete(context, &options.name).await,
    }
}

fn path(name: &str) -> [&str; 3] {
    ["api", "triggers", name]
}

async fn found(context: &Context, name: &str) -> Result<Value, Failure> {
    context.client()?.get(&path(name), &[("view", "full")]).await.map_err(|failure| missing(failure, name))
}

/// A failure that names the trigger: the text of the API does not.
fn missing(failure: Failure, name: &str) -> Failure {
    match failure.exit {
        Exit::NotFound if failure.code.as_deref() == Some("E1115") && failure.message.starts_with("Trigger") => {
            Failure { message: format!("no such trigger: \"{name}\""), ..failure }
                .with_next("list them: atlasctl trigger list")
        }
        _ => failure,
    }
}

async fn test(context: &Context, options: &TestOptions) -> Result<Exit, Failure> {
    let name = &options.trigger.name;
    let body = options.body.as_deref().map(|body| input::whole(body, "--body")).transpose()?;
    let client = context.client()?;
    let value = client.post(&[&path(name)[..], &["test"]].concat(), &[], &json!({ "body": body })).await;
    let value = value.map_err(|failure| missing(failure, name))?;
    let version = value["agent_version"].as_str().map_or(String::new(), |version| format!(" {version}"));
    let agent = value["agent_name"].as_str().unwrap_or_default();
    let mut text = format!("would run {agent}{version} with {}\n", value["input_data"]);
    if let Some(error) = value["error"].as_str().filter(|error| !error.is_empty()) {
        text += &format!("the job would fail: {error}\n");
    }
    if value["signed"] == true {
        let header = value["signature"].as_str().unwrap_or("X-Atlas-Signature");
        text += &format!("a call needs a signature: {header}\n");
    }
    if value["enabled"] == false {
        text += &format!("the trigger is paused; resume it: atlasctl trigger resume {name}\n");
    }
    let accepted = value["accepted"] == true;
    context.show(&Shown { value, text, names: vec![format!("trigger/{name}")] })?;
    Ok(if accepted { Exit::Done } else { Exit::Invalid })
}

async fn enable(context: &Context, name: &str, enabled: bool) -> Result<Exit, Failure> {
    let value = context.client()?.put(&path(name), &[], &json!({ "enabled": enabled })).await;
    let value = value.map_err(|failure| missing(failure, name))?;
    let word = if enabled { "resumed" } else { "paused" };
    let mut text = format!("trigger {name}   {word}\n");
    let next = value["next_fire"].as_f64().unwrap_or_default();
    if enabled && next > 0.0 && next <= context.look.now && value["trigger_type"] != "one_shot" {
        text += "times passed meanwhile: its rule catch-up says how many of them fire now\n";
    }
    context.show(&Shown { value, text, names: vec![format!("trigger/{name}")] })?;
    Ok(Exit::Done)
}

async fn fire(context: &Context, name: &str) -> Result<Exit, Failure> {
    let value = context.client()?.post(&[&path(name)[..], &["fire"]].concat(), &[], &json!({})).await;
    let value = value.map_err(|failure| missing(failure, name))?;
    let job = value["job_id"].as_str().unwrap_or_default().to_owned();
    let text = format!("{job}\nfollow it: atlasctl job show {job}\n");
    context.show(&Shown { value, text, names: vec![format!("job/{job}")] })?;
    Ok(Exit::Done)
}

async fn next(context: &Context, options: &NextOptions) -> Result<Exit, Failure> {
    let name = &options.trigger.name;
    let count = options.count.to_string();
    let value = context.client()?.get(&[&path(name)[..], &["next"]].concat(), &[("count", &count)]).await;
    let value = value.map_err(|failure| missing(failure, name))?;
    let NextFirings { local, .. } = answers::read(&value)?;
    let mut text: String = local.iter().map(|time| format!("{time}\n")).collect();
    if local.is_empty() {
        text = format!("trigger {name} has no next time: it is called, paused or done\n");
    }
    context.show(&Shown { value, text, names: vec![format!("trigger/{name}")] })?;
    Ok(Exit::Done)
}

async fn deliveries(context: &Context, options: &DeliveriesOptions) -> Result<Exit, Failure> {
    let name = &options.trigger.name;
    let limit = options.limit.to_string();
    let value = context.client()?.get(&[&path(name)[..], &["deliveries"]].concat(), &[("limit", &limit)]).await;
    let value = value.map_err(|failure| missing(failure, name))?["deliveries"].clone();
    let mut table = Table::new(&["AGE", "OUTCOME", "DELIVERY", "FROM", "JOB OR ERROR"]);
    let text = |call: &Value, member: &str| call[member].as_str().unwrap_or_default().to_owned();
    for call in value.as_array().into_iter().flatten() {
        let age = words::milliseconds((context.look.now - call["at"].as_f64().unwrap_or_default()).max(0.0) * 1000.0);
        let what = match call["code"].as_str() {
            Some(code) if !code.is_empty() => format!("{code} {}", text(call, "error")),
            _ => text(call, "job_id"),
        };
        let from = format!("{} {}", text(call, "from"), text(call, "program")).trim().to_owned();
        table.row([age, text(call, "outcome"), text(call, "delivery"), from, what]);
    }
    context.show(&Shown { value, text: table.text(), names: vec![format!("trigger/{name}")] })?;
    Ok(Exit::Done)
}

async fn delete(context: &Context, name: &str) -> Result<Exit, Failure> {
    let value = context.client()?.delete(&path(name)).await.map_err(|failure| missing(failure, name))?;
    let name = format!("trigger/{name}");
    context.show(&Shown { value, text: format!("{name}  deleted\n"), names: vec![name] })?;
    Ok(Exit::Done)
}
