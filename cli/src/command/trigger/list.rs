//! `atlasctl trigger list`.

use serde_json::Value;

use super::Trigger;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Column, List, ListOptions, column, members, wide};

/// Options of `atlasctl trigger list`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Only triggers of this type: cron, interval, one_shot or webhook.
    #[arg(long = "type", value_name = "TYPE")]
    trigger_type: Option<String>,
    #[command(flatten)]
    list: ListOptions,
}

const COLUMNS: [Column<Trigger>; 9] = [
    column("NAME", "id", |trigger, _| trigger.id.clone()),
    column("RULE", "cron_expr", |trigger, _| trigger.rule()),
    column("TARGET", "agent_name", |trigger, _| trigger.target().to_owned()),
    column("STATE", "enabled", |trigger, _| state(trigger).to_owned()),
    column("FIRES", "fire_count", |trigger, _| trigger.fire_count.to_string()),
    column("LAST", "last_fired", |trigger, look| look.when(trigger.last_fired)),
    wide("MISSED", "missed", |trigger, _| trigger.missed.to_string()),
    wide("JOB", "last_job_id", |trigger, _| trigger.last_job_id.clone()),
    wide("ERROR", "error", |trigger, _| trigger.error.clone()),
];

/// The state of a trigger in one word.
pub(super) fn state(trigger: &Trigger) -> &'static str {
    match (trigger.enabled, trigger.error.is_empty()) {
        (true, true) => "active",
        (true, false) => "failing",
        (false, _) if trigger.trigger_type == "one_shot" && trigger.last_fired > 0.0 => "done",
        (false, _) => "paused",
    }
}

pub(super) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    let mut query = vec![("view", "full"), ("limit", "-1")];
    query.extend(options.trigger_type.as_deref().map(|kind| ("type", kind)));
    let triggers = context.client()?.get(&["api", "triggers"], &query).await?;
    let name = |trigger: &Trigger| format!("trigger/{}", trigger.id);
    let triggers = if triggers.is_array() { triggers } else { Value::Array(Vec::new()) };
    let list = List { columns: &COLUMNS, members: members::TRIGGER, name };
    if context.list(triggers, &options.list, &list)? == 0 {
        context.note("no triggers: atlasctl trigger create NAME --cron '0 2 * * *' --agent AGENT");
    }
    Ok(Exit::Done)
}
