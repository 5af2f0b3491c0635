//! `atlasctl dev start`: requests the restart of one process; the running `atlasctl dev` starts it.

use std::path::Path;
use std::time::Duration;

use atlas_api::types::ClusterView;
use atlas_dev::{Process, request};
use atlas_env::Env;
use serde_json::json;

use crate::answers;
use crate::command::dev::kill::{Quorum, had, leader, running};
use crate::command::dev::local;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::names;
use crate::output::Shown;

/// Longest wait until the process runs.
const THERE_WITHIN: Duration = Duration::from_secs(30);

/// Options of `atlasctl dev start`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// A controller or a worker: c1, w2, … or controller/c1, worker/w2, node/w2 as -o name prints them.
    #[arg(value_name = "NAME", value_parser = names::process)]
    name: String,
    #[command(flatten)]
    folder: local::Folder,
}

pub(crate) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    let (env, client, name) = (Env::system(), local::client(context, &options.folder).await?, options.name.as_str());
    let (root, processes) = match running(&client).await {
        Ok(found) => found,
        Err(failure) => match local::without_controllers(context, &options.folder) {
            Some(root) => return first(context, &env, &root, name).await,
            None => return Err(failure),
        },
    };
    if processes.iter().any(|process| process.name == name) {
        return Err(Failure::new("E0114", Exit::Conflict, format!("{name} is running")));
    }
    let cluster: ClusterView = answers::read(&client.get(&["api", "cluster"], &[]).await?)?;
    let is_controller = cluster.members.iter().any(|member| member.name == name);
    if !is_controller && !had(&root, name) {
        let text = format!("this cluster has no process \"{name}\"");
        return Err(Failure::new("E0114", Exit::NotFound, text));
    }
    request::ask(&root, name).map_err(|error| not_started(name, &error.to_string()))?;
    let processes = there(&env, &root, name).await?;
    if !is_controller {
        let shown = Shown {
            value: json!({"started": name}),
            text: format!("{name} started\n"),
            names: vec![format!("node/{name}")],
        };
        context.show(&shown)?;
        return Ok(Exit::Done);
    }
    let quorum = Quorum::of(&cluster, &processes);
    let addresses: Vec<&str> = cluster.members.iter().map(|member| member.http.as_str()).collect();
    let found = if quorum.holds() { leader(&env, &addresses, "").await? } else { None };
    let leads = found.map(|(leader, _)| leader);
    let count = format!("{} of {} controllers run", quorum.voters - quorum.down.len(), quorum.voters);
    let text = match &leads {
        Some(leader) => format!("{name} started · leader {leader} · {count}\n"),
        None => format!("{name} started · no leader yet: {count}\n"),
    };
    let value = json!({"started": name, "leader": leads, "voters": quorum.voters, "down": quorum.down});
    context.show(&Shown { value, text, names: vec![format!("controller/{name}")] })?;
    Ok(if leads.is_some() { Exit::Done } else { Exit::Short })
}

/// Starts a controller or a worker of a cluster none of whose controllers runs: nobody answers what it consists of but its data folder.
async fn first(context: &Context, env: &Env, root: &Path, name: &str) -> Result<Exit, Failure> {
    let unreadable = |error: std::io::Error| not_started(name, &error.to_string());
    let controllers = atlas_dev::addresses::load(root).map_err(unreadable)?;
    if controllers.iter().all(|controller| controller.name != name) {
        let names: Vec<&str> = controllers.iter().map(|controller| controller.name.as_str()).collect();
        let text = format!("no controller of this cluster runs, and {name} is none of them");
        let next = format!("start one first: {}", names.join(" "));
        return Err(Failure::new("E0114", Exit::Conflict, text).with_next(next));
    }
    request::ask(root, name).map_err(unreadable)?;
    there(env, root, name).await?;
    let addresses: Vec<String> = controllers.iter().map(|controller| controller.http.to_string()).collect();
    let addresses: Vec<&str> = addresses.iter().map(String::as_str).collect();
    let leads = match controllers.len() {
        1 => leader(env, &addresses, "").await?.map(|(leader, _)| leader),
        _ => None,
    };
    let count =
        format!("1 of {} controllers {}", controllers.len(), if controllers.len() == 1 { "runs" } else { "run" });
    let text = match &leads {
        Some(leader) => format!("{name} started · leader {leader} · {count}\n"),
        None => format!("{name} started · no leader yet: {count}\n"),
    };
    let down: Vec<&str> =
        controllers.iter().map(|controller| controller.name.as_str()).filter(|other| *other != name).collect();
    let value = json!({"started": name, "leader": leads, "voters": controllers.len(), "down": down});
    context.show(&Shown { value, text, names: vec![format!("controller/{name}")] })?;
    Ok(if leads.is_some() { Exit::Done } else { Exit::Short })
}

/// Waits until the requested process runs; returns all processes.
async fn there(env: &Env, root: &Path, name: &str) -> Result<Vec<Process>, Failure> {
    let deadline = env.clock.monotonic() + THERE_WITHIN;
    loop {
        let processes = atlas_dev::processes(root).map_err(|error| not_started(name, &error.to_string()))?;
        if processes.iter().any(|process| process.name == name) {
            return Ok(processes);
        }
        if env.clock.monotonic() > deadline {
            return Err(not_started(name, &format!("not done within {} s", THERE_WITHIN.as_secs())));
        }
        env.clock.sleep(Duration::from_millis(20)).await;
    }
}

fn not_started(name: &str, why: &str) -> Failure {
    Failure::new("E0114", Exit::Short, format!("{name} was not started: {why}"))
        .with_next("see the terminal of atlasctl dev")
}
