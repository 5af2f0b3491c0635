//! The first lines of `atlasctl dev`: addresses, folders, node and agents.

use std::path::{Path, PathBuf};
use std::time::Duration;

use atlas_api::types::Node;
use atlas_dev::{Cluster, ControllerAddresses, PASSED};

use crate::command::dev::models::LocalModel;
use crate::command::dev::{Options, shown};
use crate::command::node::describe;
use crate::context::Context;
use crate::globals::SERVER_DEFAULT;
use crate::words;

/// Prints the addresses and folders; `took` is the time since the start of the process.
pub(super) fn print(
    context: &Context,
    options: &Options,
    cluster: &Cluster,
    node: &Node,
    agents: usize,
    models: &[LocalModel],
    took: Duration,
) {
    let http = format!("http://{}", cluster.http());
    let models: String = models.iter().map(|found| format!("\n  Model       {}", found.line())).collect();
    let data = data(options, cluster.data_dir());
    let known = if agents == 0 { "none yet".to_owned() } else { agents.to_string() };
    let api = format!("{http}/api");
    let first = if agents == 0 { "init hello" } else { "agent list" };
    let server = if http == SERVER_DEFAULT { String::new() } else { format!("export ATLAS_SERVER={http}; ") };
    context.note(&format!(
        "Atlas {} · DEVELOPMENT MODE — no authentication, loopback only\n\n\
         \x20 API         {api:<35} workers {}\n\
         \x20 Metrics     {http}/metrics\n\n\
         \x20 Data        {data}\n\
         \x20 Node        {}\n\
         \x20 Agents      {known}; {}\n\
         \x20 Agent env   {}{models}\n\n\
         Ready in {:.1} s.  Next, in another terminal:  {server}atlasctl {first}",
        env!("CARGO_PKG_VERSION"),
        cluster.workers(),
        describe(node),
        origin(options),
        environment(options),
        took.as_secs_f64(),
    ));
}

/// The names of the environment variables that agents get, with a mark at those that are not set here.
fn environment(options: &Options) -> String {
    let chosen = options.settings.worker("dev", vec![String::from("127.0.0.1:1")], PathBuf::new());
    let chosen = chosen.map(|worker| worker.agent_environment).unwrap_or_default();
    let chosen = chosen.iter().map(|name| match std::env::var_os(name) {
        Some(_) => format!(" {name}"),
        None => format!(" {name} (not set)"),
    });
    let chosen: String = chosen.collect();
    format!("{}{chosen}; more with --agent-env NAME", PASSED.join(" "))
}

/// The same for a cluster of several processes; it names the leader instead of one node.
#[expect(clippy::too_many_arguments, reason = "everything that the first lines say")]
pub(super) fn print_several(
    context: &Context,
    options: &Options,
    controllers: &[ControllerAddresses],
    cluster: &atlas_api::types::ClusterView,
    workers: usize,
    agents: usize,
    took: Duration,
    folder: &Path,
) {
    let Some(first) = controllers.first() else { return };
    let http = format!("http://{}", first.http);
    let api = format!("{http}/api");
    let known = if agents == 0 { "none yet".to_owned() } else { agents.to_string() };
    let servers: Vec<String> = controllers.iter().map(|controller| format!("http://{}", controller.http)).collect();
    context.note(&format!(
        "Atlas {} · DEVELOPMENT MODE — no authentication, loopback only\n\n\
         \x20 API         {api:<35} workers {}\n\
         \x20 Metrics     {http}/metrics\n\n\
         \x20 Data        {}\n\
         \x20 Cluster     {} (leader {}, term {}) · {}\n\
         \x20 Agents      {known}; watching {}\n\
         \x20 Agent env   {}\n\n\
         Ready in {:.1} s.  Next, in another terminal:  export ATLAS_SERVER={}",
        env!("CARGO_PKG_VERSION"),
        first.workers,
        data(options, folder),
        words::count(controllers.len() as u64, "controller"),
        cluster.leader.as_deref().unwrap_or("none"),
        cluster.term,
        words::count(workers as u64, "worker"),
        watched(options),
        environment(options),
        took.as_secs_f64(),
        servers.join(","),
    ));
}

/// Where the agents come from.
fn origin(options: &Options) -> String {
    match &options.agents_yaml {
        Some(file) => format!("from {}", shown(file)),
        None => format!("watching {}", watched(options)),
    }
}

/// The folder of agents; a missing one is watched until somebody makes it.
fn watched(options: &Options) -> String {
    let folder = shown(&options.agents);
    if options.agents.exists() { folder } else { format!("{folder}, which does not exist yet") }
}

fn data(options: &Options, folder: &Path) -> String {
    if options.ephemeral {
        format!("{}  (deleted on exit)", folder.display())
    } else {
        format!("{}  (kept between runs; use --ephemeral for a temporary folder)", shown(&options.data_dir))
    }
}
