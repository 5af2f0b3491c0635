//! `atlas trigger create|list|get|delete|enable|disable`: triggers of a cluster, where Atlas for Python opens its database file.

use std::path::PathBuf;

use atlas_cli::{Client, Exit, Failure};
use serde::Deserialize;
use serde_json::{Value, json};

use super::answer::{Answer, Refusal};
use super::render;
use super::run::input_of;

/// The subcommand.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Verb {
    /// Makes a trigger.
    Create(Create),
    /// Lists triggers, newest first.
    List(List),
    /// Shows a trigger.
    Get(One),
    /// Deletes a trigger.
    Delete(One),
    /// Lets a trigger fire.
    Enable(One),
    /// Stops a trigger from firing.
    Disable(One),
}

/// The cluster.
#[derive(Debug, clap::Args)]
struct Place {
    /// Address of a controller.
    #[arg(long, env = "ATLAS_SERVER", default_value = "http://127.0.0.1:7400", value_name = "URL")]
    server: String,
    /// Accepted for compatibility; triggers are those of the cluster.
    #[arg(long, value_name = "FILE")]
    db: Option<PathBuf>,
}

/// Options of `atlas trigger create`.
#[derive(Debug, clap::Args)]
pub(super) struct Create {
    /// `cron`, `interval`, `one_shot` or `webhook`.
    #[arg(short = 't', long = "type", value_name = "TYPE")]
    trigger_type: String,
    /// Name of the agent.
    #[arg(short, long)]
    agent: String,
    /// A name for people.
    #[arg(short, long, default_value = "")]
    name: String,
    /// Cron expression of five fields.
    #[arg(long, default_value = "", value_name = "EXPRESSION")]
    cron: String,
    /// Seconds between two firings.
    #[arg(long, default_value_t = 0.0, value_name = "SECONDS", allow_negative_numbers = true)]
    interval: f64,
    /// Time of the only firing, in Unix seconds.
    #[arg(long, default_value_t = 0.0, value_name = "SECONDS", allow_negative_numbers = true)]
    fire_at: f64,
    /// Secret that signs the calls of a webhook.
    #[arg(long, default_value = "")]
    secret: String,
    /// Input of each job as JSON.
    #[arg(short, long, default_value = "{}", value_name = "JSON", allow_hyphen_values = true)]
    input: String,
    /// Priority of each job; higher runs first.
    #[arg(short, long, default_value_t = 0, allow_negative_numbers = true)]
    priority: i64,
    #[command(flatten)]
    place: Place,
}

/// Options of `atlas trigger list`.
#[derive(Debug, clap::Args)]
pub(super) struct List {
    /// Only triggers of this type.
    #[arg(long = "type", value_name = "TYPE")]
    trigger_type: Option<String>,
    /// Only enabled triggers.
    #[arg(long, conflicts_with = "disabled")]
    enabled: bool,
    /// Only disabled triggers.
    #[arg(long)]
    disabled: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: Place,
}

/// One trigger.
#[derive(Debug, clap::Args)]
pub(super) struct One {
    /// Id of the trigger.
    id: String,
    #[command(flatten)]
    place: Place,
}

/// The members of a trigger that a list shows.
#[derive(Debug, Deserialize)]
struct Trigger {
    id: String,
    name: String,
    trigger_type: String,
    enabled: bool,
    agent_name: String,
    chain_name: String,
    fire_count: u64,
}

impl Trigger {
    fn target(&self) -> &str {
        if self.agent_name.is_empty() { &self.chain_name } else { &self.agent_name }
    }
}

pub(super) fn run(verb: &Verb) -> Answer {
    match verb {
        Verb::Create(options) => create(options),
        Verb::List(options) => list(options),
        Verb::Get(options) => {
            let found = ask(&options.place, async |client| client.get(&path(&options.id), &[]).await);
            found.map(|trigger| render::json(&trigger)).map_err(|failure| told(&failure, &options.id))
        }
        Verb::Delete(options) => {
            let deleted = ask(&options.place, async |client| client.delete(&path(&options.id)).await);
            deleted.map(|_| format!("Deleted trigger {}\n", options.id)).map_err(|failure| told(&failure, &options.id))
        }
        Verb::Enable(options) => enable(options, true),
        Verb::Disable(options) => enable(options, false),
    }
}

fn create(options: &Create) -> Answer {
    let input = input_of(&options.input)?;
    let body = json!({
        "trigger_type": options.trigger_type, "agent_name": options.agent, "name": options.name,
        "cron_expr": options.cron, "interval_seconds": options.interval, "fire_at": options.fire_at,
        "webhook_secret": options.secret, "input_data": input, "priority": options.priority,
    });
    let made = ask(&options.place, async |client| client.post(&["api", "triggers"], &[], &body).await);
    let made = made.map_err(|failure| match failure.exit {
        Exit::Invalid => Refusal::new(format!("Invalid trigger: {}", failure.message)),
        _ => told(&failure, ""),
    })?;
    let trigger: Trigger = read(made)?;
    Ok(format!("Created trigger {} ({} → {})\n", trigger.id, trigger.trigger_type, trigger.target()))
}

fn list(options: &List) -> Answer {
    let mut query = Vec::new();
    query.extend(options.trigger_type.as_deref().map(|kind| ("type", kind)));
    if options.enabled || options.disabled {
        query.push(("enabled", if options.enabled { "true" } else { "false" }));
    }
    let found = ask(&options.place, async |client| client.get(&["api", "triggers"], &query).await);
    let found = found.map_err(|failure| told(&failure, ""))?;
    if options.json {
        return Ok(render::json(&found));
    }
    let triggers: Vec<Trigger> = read(found)?;
    if triggers.is_empty() {
        return Ok("No triggers found.\n".to_owned());
    }
    let mut text = row(["ID", "Name", "Type", "Target", "Enabled", "Fires"]) + &"-".repeat(80) + "\n";
    for trigger in &triggers {
        let (enabled, fires) = (if trigger.enabled { "yes" } else { "no" }, trigger.fire_count.to_string());
        text += &row([&trigger.id, &trigger.name, &trigger.trigger_type, trigger.target(), enabled, &fires]);
    }
    Ok(text)
}

/// The columns have 20, 15, 10, 15, 8 and 6 characters.
fn row([id, name, kind, target, enabled, fires]: [&str; 6]) -> String {
    format!("{id:<20} {name:<15} {kind:<10} {target:<15} {enabled:<8} {fires:<6}\n")
}

fn enable(options: &One, enabled: bool) -> Answer {
    let body = json!({ "enabled": enabled });
    let changed = ask(&options.place, async |client| client.put(&path(&options.id), &[], &body).await);
    let word = if enabled { "enabled" } else { "disabled" };
    changed.map(|_| format!("Trigger {} {word}\n", options.id)).map_err(|failure| told(&failure, &options.id))
}

fn path(id: &str) -> [&str; 3] {
    ["api", "triggers", id]
}

fn ask(place: &Place, question: impl AsyncFnOnce(&Client) -> Result<Value, Failure>) -> Result<Value, Failure> {
    let client = Client::new(&place.server)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime =
        runtime.map_err(|error| Failure::usage(format!("the async runtime could not be started: {error}")))?;
    runtime.block_on(question(&client))
}

fn read<T: serde::de::DeserializeOwned>(value: Value) -> Result<T, Refusal> {
    serde_json::from_value(value).map_err(|error| told(&Failure::answer(error), ""))
}

fn told(failure: &Failure, id: &str) -> Refusal {
    match failure.exit {
        Exit::NotFound if !id.is_empty() => Refusal::new(format!("Trigger not found: {id}")),
        _ => Refusal::new(format!("Error: {}", failure.message)),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn a_list_has_columns() {
        let text = row(["ID", "Name", "Type", "Target", "Enabled", "Fires"]);
        expect![[r#"
            "ID                   Name            Type       Target          Enabled  Fires \n"
        "#]]
        .assert_debug_eq(&text);
        assert!(
            row(["trigger-0123456789abcdef", "", "cron", "echo", "yes", "0"]).starts_with("trigger-0123456789abcdef ")
        );
    }
}
