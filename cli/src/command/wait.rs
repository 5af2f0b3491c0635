//! `atlasctl wait`: waits until an object meets a condition.

use std::time::Duration;

use atlas_api::types::{Agent, Job, Member, Node};
use atlas_env::Env;
use serde_json::Value;

use crate::answers;
use crate::client::Client;
use crate::command::agent::named;
use crate::command::chain_run;
use crate::command::generic::{Kind, Target, one};
use crate::command::node::state;
use crate::context::Context;
use crate::display::JobDisplay as _;
use crate::ending;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Shown;
use crate::words;

/// The pause between two checks; it starts short, because most waits are short.
const LOOK_FIRST: Duration = Duration::from_millis(50);
const LOOK_MAX: Duration = Duration::from_secs(1);

/// Options of `atlasctl wait`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Kind: job, agent, node, controller or a kind of object, such as webhook; or KIND/NAME.
    #[arg(value_name = "KIND")]
    target: Target,
    /// Name; for agents NAME or NAME@VERSION.
    name: Option<String>,
    /// Condition. Job: ended, running, completed, failed or cancelled; agent: registered, deprecated or retired; node:
    /// ready, down, cordoned, drained or gone; controller: reachable, leading or gone. Defaults to the first.
    #[arg(long = "for", value_name = "CONDITION")]
    condition: Option<String>,
    /// Maximum time to wait; defaults to no limit.
    #[arg(long, value_name = "DURATION", value_parser = words::parse_duration)]
    timeout: Option<Duration>,
}

/// A condition on an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Condition {
    Ended,
    Running,
    Completed,
    Failed,
    Cancelled,
    Registered,
    Deprecated,
    Retired,
    Ready,
    Down,
    Cordoned,
    Drained,
    Reachable,
    Leading,
    Gone,
}

use Condition::{
    Cancelled, Completed, Cordoned, Deprecated, Down, Drained, Ended, Failed, Gone, Leading, Reachable, Ready,
    Registered, Retired, Running,
};

impl Condition {
    /// The conditions of a kind; the first is the default.
    fn of(kind: Kind) -> &'static [(&'static str, Self)] {
        match kind {
            Kind::Job => &[
                ("ended", Ended),
                ("running", Running),
                ("completed", Completed),
                ("failed", Failed),
                ("cancelled", Cancelled),
            ],
            Kind::Agent => &[("registered", Registered), ("deprecated", Deprecated), ("retired", Retired)],
            Kind::Node => {
                &[("ready", Ready), ("down", Down), ("cordoned", Cordoned), ("drained", Drained), ("gone", Gone)]
            }
            Kind::Controller => &[("reachable", Reachable), ("leading", Leading), ("gone", Gone)],
            Kind::Object(_) => &[("gone", Gone)],
        }
    }

    fn parse(kind: Kind, text: Option<&str>) -> Result<(&'static str, Self), Failure> {
        let known = Self::of(kind);
        // As in filters and lists.
        let text = text.map(|text| text.strip_prefix("status=").unwrap_or(text));
        let found = known.iter().find(|(word, _)| text.is_none_or(|text| text == *word));
        found.copied().ok_or_else(|| {
            let text = text.unwrap_or_default();
            let meant = words::meant(text, known.iter().map(|(word, _)| *word));
            Failure::usage(format!("\"{text}\" is not a condition; {meant}"))
        })
    }
}

/// The result of one check.
struct Look {
    /// The condition holds.
    met: bool,
    /// The condition can never hold any more; the command ends with this exit code.
    never: Option<Exit>,
    /// The current state of the object.
    told: String,
    value: Value,
}

impl Look {
    fn new(met: bool, told: impl Into<String>, value: Value) -> Self {
        Self { met, never: None, told: told.into(), value }
    }
}

pub(crate) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    let kind = options.target.kind;
    let name = one(&options.target, options.name.as_deref(), "wait")?;
    let (word, condition) = Condition::parse(kind, options.condition.as_deref())?;
    let client = context.client()?;
    let clock = Env::system().clock;
    let since = clock.monotonic();
    let mut pause = LOOK_FIRST;
    let ended = loop {
        let look = match look(&client, kind, name, condition).await {
            Ok(look) => look,
            Err(failure) => break Err(failure),
        };
        let waited = clock.monotonic().saturating_sub(since);
        let left = options.timeout.map_or(Duration::MAX, |timeout| timeout.saturating_sub(waited));
        if look.met || look.never.is_some() || left.is_zero() {
            break Ok(look);
        }
        if context.has_status_line() {
            context.status_line(&format!("{name}  {}  {}", words::age(waited.as_secs_f64()), look.told));
        }
        clock.sleep(pause.min(left)).await;
        pause = (pause * 2).min(LOOK_MAX);
    };
    if context.has_status_line() {
        context.status_line("");
    }
    let Look { met, never, told, value } = ended?;
    let full = format!("{kind}/{name}");
    if met {
        context.show(&Shown { value, text: format!("{full}  {word}\n"), names: vec![full] })?;
        return Ok(Exit::Done);
    }
    let (exit, when) = match never {
        Some(exit) => (exit, format!("will never be {word}")),
        None => (Exit::WaitTimedOut, format!("is not {word} within the timeout")),
    };
    let failure = Failure::new("E0126", exit, format!("{full} {when}: it is {told}"));
    Err(failure.with_next(format!("show it: atlasctl describe {}", words::shell(&full))))
}

async fn look(client: &Client, kind: Kind, name: &str, condition: Condition) -> Result<Look, Failure> {
    match kind {
        Kind::Job if chain_run::is_one(name) => Ok(job(chain_run::get(client, name).await?, condition)?),
        Kind::Job => job(family(client, name, condition).await?, condition),
        Kind::Agent => agent(client, name, condition).await,
        Kind::Node => match there(client.get(&["api", "nodes", name], &[]).await)? {
            Some(value) => Ok(node(value, condition)?),
            None => Ok(Look::new(condition == Gone, "not registered", Value::Null)),
        },
        Kind::Object(kind) => match there(client.get(&["api", "objects", kind, name], &[]).await)? {
            Some(value) => Ok(Look::new(false, "present", value)),
            None => Ok(Look::new(condition == Gone, "gone", Value::Null)),
        },
        Kind::Controller => controller(&client.get(&["api", "cluster", "members"], &[]).await?, name, condition),
    }
}

/// A job, or the last one that it was retried as, unless its own failure is waited for.
async fn family(client: &Client, id: &str, condition: Condition) -> Result<Value, Failure> {
    let mut value = client.get(&["api", "jobs", id], &[("view", "full")]).await?;
    while let Some(retry) = value["retried_by"].as_str().filter(|retry| !retry.is_empty() && condition != Failed) {
        value = client.get(&["api", "jobs", retry], &[("view", "full")]).await?;
    }
    Ok(value)
}

/// Turns a "not found" failure into none, because the absence of an object is a valid result here.
fn there(answer: Result<Value, Failure>) -> Result<Option<Value>, Failure> {
    match answer {
        Ok(value) => Ok(Some(value)),
        Err(failure) if failure.exit == Exit::NotFound => Ok(None),
        Err(failure) => Err(failure),
    }
}

fn job(value: Value, condition: Condition) -> Result<Look, Failure> {
    let job: Job = answers::read(&value)?;
    let word = |wanted: &str| job.status == wanted;
    let met = match condition {
        Running => word("running"),
        Completed => word("completed"),
        Failed => word("failed"),
        Cancelled => word("cancelled"),
        _ => job.is_terminal(),
    };
    let exit = match ending::exit(&job) {
        Exit::Done => Exit::Short,
        other => other,
    };
    Ok(Look { never: job.is_terminal().then_some(exit), ..Look::new(met, job.standing(), value) })
}

async fn agent(client: &Client, name: &str, condition: Condition) -> Result<Look, Failure> {
    let answer = match (named(name), condition) {
        ((name, requirement), Registered) => {
            let query: Vec<(&str, &str)> = requirement.iter().map(|text| ("version", *text)).collect();
            client.get(&["api", "agents", name], &query).await
        }
        ((name, Some(version)), _) => client.get(&["api", "agents", name, "versions", version], &[]).await,
        ((name, None), _) => {
            let failure = Failure::usage(format!("which version of \"{name}\"?"));
            return Err(failure.with_next(format!("write: {name}@VERSION")));
        }
    };
    let Some(value) = there(answer)? else { return Ok(Look::new(false, "not registered", Value::Null)) };
    let agent: Agent = answers::read(&value)?;
    let deprecated = agent.deprecated.is_some();
    let met = match condition {
        Deprecated => deprecated,
        Retired => agent.retired,
        _ => !agent.retired,
    };
    let told = match (agent.retired, deprecated) {
        (true, _) => "retired",
        (false, true) => "deprecated",
        (false, false) => "registered",
    };
    Ok(Look::new(met, told, value))
}

fn node(value: Value, condition: Condition) -> Result<Look, Failure> {
    let node: Node = answers::read(&value)?;
    let met = match condition {
        Down => node.health == "down",
        Cordoned => node.cordoned,
        Drained => (node.draining || node.cordoned) && node.running == 0,
        Gone => false,
        _ => node.health == "ready",
    };
    let told = format!("{}, {} running", state(&node), node.running);
    Ok(Look::new(met, told, value))
}

fn controller(members: &Value, name: &str, condition: Condition) -> Result<Look, Failure> {
    for value in members.as_array().into_iter().flatten() {
        let member: Member = answers::read(value)?;
        if member.name != name && member.id.to_string() != name {
            continue;
        }
        let met = match condition {
            Leading => member.role == "leader",
            Gone => false,
            _ => member.reachable,
        };
        let told = if member.reachable { member.role } else { "unreachable".to_owned() };
        return Ok(Look::new(met, told, value.clone()));
    }
    Ok(Look::new(condition == Gone, "not a member", Value::Null))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(look: Result<Look, Failure>) -> String {
        let look = look.expect("read");
        let word = if look.met { "met" } else { "not met" };
        let never = if look.never.is_some() { ", never" } else { "" };
        format!("{word}{never}: {}", look.told)
    }

    #[test]
    fn conditions_are_those_of_a_kind() {
        let parse = |kind, text| Condition::parse(kind, text).map(|(word, _)| word).map_err(|failure| failure.message);
        assert_eq!(parse(Kind::Job, None), Ok("ended"));
        assert_eq!(parse(Kind::Node, Some("drained")), Ok("drained"));
        let wrong = parse(Kind::Controller, Some("drained"));
        assert_eq!(wrong, Err("\"drained\" is not a condition; one of reachable, leading, gone".to_owned()));
    }

    #[test]
    fn a_job_that_ended_otherwise_is_not_waited_for() {
        let look = |status: &str, condition| told(job(json!({"status": status, "reason": "queued"}), condition));
        assert_eq!(look("pending", Ended), "not met: pending: queued");
        assert_eq!(look("failed", Ended), "met, never: failed");
        assert_eq!(look("failed", Completed), "not met, never: failed");
        assert_eq!(look("running", Running), "met: running: queued");
    }

    #[test]
    fn nodes_and_controllers() {
        let laptop = json!({"id": "laptop", "health": "ready", "draining": true, "running": 1});
        assert_eq!(told(node(laptop.clone(), Ready)), "met: ready, draining, 1 running");
        assert_eq!(told(node(laptop, Drained)), "not met: ready, draining, 1 running");
        let members = json!([{"id": 1, "name": "c1", "role": "leader", "reachable": true}]);
        assert_eq!(told(controller(&members, "1", Leading)), "met: leader");
        assert_eq!(told(controller(&members, "c2", Gone)), "met: not a member");
        assert_eq!(told(controller(&members, "c2", Reachable)), "not met: not a member");
    }
}
