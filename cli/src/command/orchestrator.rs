//! `atlasctl orchestrator`: which orchestrator decides on jobs before they run.

mod rules;

use std::time::Duration;

use serde_json::{Value, json};

use crate::client::Client;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::names;
use crate::output::{Shown, Table};
use crate::words;

/// Where the selection is in the API.
const OBJECT: [&str; 4] = ["api", "objects", "routing", "default"];

/// What happens to a job if the orchestrator fails.
const FALLBACKS: [&str; 3] = ["allow", "reject", "wait"];

/// Verbs of `atlasctl orchestrator`.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    /// Shows the selected orchestrator and its settings.
    Show,
    /// Lists the orchestrators that can be selected.
    List,
    /// Selects an orchestrator, for every job that has not started.
    Set(Set),
    /// Selects the default orchestrator, which allows every job.
    Reset,
    /// Shows how often the candidate would have decided otherwise.
    Compare,
    /// Selects the candidate.
    Swap,
    /// Selects the orchestrator that was selected before.
    Rollback,
}

/// Options of `atlasctl orchestrator set`.
#[derive(Debug, clap::Args)]
pub(crate) struct Set {
    /// The orchestrator: an agent of the type orchestrator, stored rules, a file of rules, or grpc://HOST:PORT.
    #[arg(value_name = "NAME|FILE|ADDRESS", value_parser = names::orchestrator)]
    name: String,
    /// How long it may take to decide on a job.
    #[arg(long, value_name = "DURATION", value_parser = words::parse_duration)]
    deadline: Option<Duration>,
    /// What happens to a job if the orchestrator fails or is late.
    #[arg(long, value_parser = FALLBACKS)]
    fallback: Option<String>,
    /// Make it the candidate: it is asked about the same jobs, without effect.
    #[arg(long, conflicts_with_all = ["deadline", "fallback"])]
    shadow: bool,
}

pub(crate) async fn run(context: &Context, verb: &Verb) -> Result<Exit, Failure> {
    let client = context.client()?;
    match verb {
        Verb::Show => {}
        Verb::List => return list(context, &client).await,
        Verb::Compare => return compare(context, &client).await,
        Verb::Swap => {
            let spec = Settings::read(&client).await?.spec;
            let candidate = spec["shadow"].as_str().ok_or_else(no_candidate)?;
            select(&client, Some(candidate)).await?;
            change(&client, |spec| spec["shadow"] = Value::Null).await?;
        }
        Verb::Set(options) => {
            let name = rules::stored(&client, &options.name).await?;
            if options.shadow {
                if !registered(&client).await?.iter().any(|orchestrator| orchestrator["name"] == *name) {
                    let failure = Failure::new("E1141", Exit::NotFound, format!("no such orchestrator: {name:?}"));
                    return Err(failure.with_next("list them: atlasctl orchestrator list"));
                }
                change(&client, |spec| spec["shadow"] = name.as_str().into()).await?;
            } else {
                configure(&client, options).await?;
                select(&client, Some(&name)).await?;
            }
        }
        Verb::Reset => select(&client, None).await?,
        Verb::Rollback => {
            let spec = Settings::read(&client).await?.spec;
            select(&client, spec["previous"].as_str()).await?;
        }
    }
    show(context, &client).await
}

/// The object that keeps the selection.
struct Settings {
    spec: Value,
    labels: Value,
    /// None before the first selection.
    revision: Option<u64>,
}

impl Settings {
    async fn read(client: &Client) -> Result<Self, Failure> {
        match client.get(&OBJECT, &[]).await {
            Ok(object) => Ok(Self {
                spec: object["spec"].clone(),
                labels: object["metadata"]["labels"].clone(),
                revision: object["metadata"]["revision"].as_u64(),
            }),
            Err(failure) if failure.exit == Exit::NotFound => {
                Ok(Self { spec: json!({}), labels: json!({}), revision: None })
            }
            Err(failure) => Err(failure),
        }
    }
}

fn no_candidate() -> Failure {
    Failure::usage("there is no candidate").with_next("name one: atlasctl orchestrator set NAME --shadow")
}

/// Changes the deadline and the fall-back, as far as they are given.
async fn configure(client: &Client, options: &Set) -> Result<(), Failure> {
    if options.deadline.is_none() && options.fallback.is_none() {
        return Ok(());
    }
    change(client, |spec| {
        if let Some(deadline) = options.deadline {
            spec["deadline_ms"] = u64::try_from(deadline.as_millis()).unwrap_or(u64::MAX).into();
        }
        if let Some(fallback) = &options.fallback {
            spec["fallback"] = fallback.as_str().into();
        }
    })
    .await
}

/// Changes the settings of the selection, unless somebody else did meanwhile.
async fn change(client: &Client, change: impl FnOnce(&mut Value)) -> Result<(), Failure> {
    let Settings { mut spec, labels, revision } = Settings::read(client).await?;
    change(&mut spec);
    let body = json!({"labels": labels, "spec": spec});
    match revision {
        Some(revision) => client.put_revision(&OBJECT, &[], &body, revision).await,
        None => client.put_new(&OBJECT, &[], &body).await,
    }
    .map(drop)
}

async fn select(client: &Client, name: Option<&str>) -> Result<(), Failure> {
    client.post(&["api", "orchestrator"], &[], &json!({"name": name})).await.map(drop)
}

async fn show(context: &Context, client: &Client) -> Result<Exit, Failure> {
    let selected = client.get(&["api", "orchestrator"], &[]).await?;
    let spec = Settings::read(client).await?.spec;
    let name = selected["name"].as_str().unwrap_or_default().to_owned();
    let deadline = Duration::from_millis(spec["deadline_ms"].as_u64().unwrap_or(10_000));
    let fallback = spec["fallback"].as_str().unwrap_or("allow");
    let previous = spec["previous"].as_str().unwrap_or("DefaultOrchestrator");
    let mut text = format!(
        "orchestrator  {name}\ndeadline      {:.1} s, then {fallback}\nprevious      {previous}\n",
        deadline.as_secs_f64()
    );
    if let Some(candidate) = spec["shadow"].as_str() {
        text.push_str(&format!("candidate     {candidate}\n"));
    }
    let value = json!({"name": name, "type": selected["type"], "settings": spec});
    context.show(&Shown { value, text, names: vec![format!("orchestrator/{name}")] })?;
    Ok(Exit::Done)
}

/// What the candidate would have decided, compared with what was decided.
async fn compare(context: &Context, client: &Client) -> Result<Exit, Failure> {
    if Settings::read(client).await?.spec["shadow"].as_str().is_none() {
        return Err(no_candidate());
    }
    let object = client.get(&OBJECT, &[]).await?;
    let shadow = object["status"]["shadow"].clone();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (asked, agreed) = (shadow["asked"].as_u64().unwrap_or(0), shadow["agreed"].as_u64().unwrap_or(0));
    let faults = shadow["faults"].as_u64().unwrap_or(0);
    let mut shown = format!(
        "candidate  {}\njobs       {asked}\nagreed     {agreed}\notherwise  {}\nfaults     {faults}\n",
        text(&object["spec"]["shadow"]),
        asked.saturating_sub(agreed).saturating_sub(faults),
    );
    let samples = shadow["samples"].as_array().cloned().unwrap_or_default();
    if !samples.is_empty() {
        let mut table = Table::new(&["JOB", "AGENT", "DECIDED", "CANDIDATE"]);
        for sample in &samples {
            table.row(["job", "agent", "decided", "candidate"].map(|member| text(&sample[member])));
        }
        shown += &format!("\n{}", table.text());
    }
    let names = samples.iter().map(|sample| format!("job/{}", text(&sample["job"]))).collect();
    context.show(&Shown { value: shadow, text: shown, names })?;
    Ok(Exit::Done)
}

/// What can be selected: agents, and objects of the kind `orchestrator`, which come before agents of the same name.
async fn registered(client: &Client) -> Result<Vec<Value>, Failure> {
    let agents = client.get(&["api", "agents"], &[("view", "full")]).await?;
    let stored = rules::all(client).await?;
    let agents =
        agents.as_array().cloned().unwrap_or_default().into_iter().filter(|agent| {
            agent["kind"] == "orchestrator" && stored.iter().all(|stored| stored["name"] != agent["name"])
        });
    Ok(agents.chain(stored.iter().cloned()).collect())
}

async fn list(context: &Context, client: &Client) -> Result<Exit, Failure> {
    let selected = client.get(&["api", "orchestrator"], &[]).await?;
    let found = registered(client).await?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut table = Table::new(&["ORCHESTRATOR", "VERSION", "SELECTED", "DESCRIPTION"]);
    let default = selected["type"] == "default";
    let mark = |is: bool| if is { "yes" } else { "" }.to_owned();
    table.row(["DefaultOrchestrator".to_owned(), String::new(), mark(default), "Allows every job.".to_owned()]);
    for agent in &found {
        let is = !default && agent["name"] == selected["name"];
        table.row([text(&agent["name"]), text(&agent["version"]), mark(is), text(&agent["description"])]);
    }
    let names = found.iter().map(|agent| format!("orchestrator/{}", text(&agent["name"]))).collect();
    context.show(&Shown { value: found.into(), text: table.text(), names })?;
    Ok(Exit::Done)
}
