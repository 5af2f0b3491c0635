//! `atlasctl dev`: a controller and a worker in one process, or several of each, and the agents of a folder.
//!
//! `atlas_dev` starts the cluster; this command then uses its HTTP API like any client.

mod agents;
mod banner;
mod demo;
mod kill;
pub(crate) mod local;
mod models;
mod several;
mod start;

use std::path::{Path, PathBuf};

use atlas_api::types::Node;
use atlas_dev::{Cluster, DataError, DevSettings, PortError, Ports};
use atlas_env::{Env, Task};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::answers;
use crate::client::Client;
use crate::command::dev::agents::Watch;
use crate::command::dev::models::LocalModel;
use crate::command::import;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::pallas::Deployment;
use crate::program::{Checker, RunsOn};
use crate::runtime::block_on;
use crate::stillness::LOOK_INTERVAL;

/// Default log filter. openraft is off, because it logs a warning for each heartbeat to a stopped controller.
const LOG_DEFAULT: &str = "warn,openraft=off";

/// Where the options of controllers and workers are listed.
const SETTINGS: &str =
    "Most options of atlas-controller and atlas-worker are possible as well, such as the size of the queue.
They are listed by atlasctl docs controller-options and atlasctl docs worker-options.";

/// Verbs for a running development cluster.
#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Kills one of its processes with kill -9 and reports the consequences.
    Kill(kill::Options),
    /// Restarts a process that was killed or exited, with the same ports and data.
    Start(start::Options),
}

/// Options of `atlasctl dev`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, after_help = SETTINGS)]
pub(crate) struct Options {
    #[command(subcommand)]
    verb: Option<Verb>,
    /// Number of controllers, one process each if there are several; defaults to the number in the data folder.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=several::CONTROLLERS_MAX.into()))]
    controllers: Option<u16>,
    /// Number of workers, named w1, w2, … if there are several processes.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=32))]
    workers: u16,
    /// Run the bundled agents on this project's README to show what Atlas does, then keep running.
    #[arg(long)]
    demo: bool,
    /// With --demo: exit when the demo ends, with 0 if every step succeeded.
    #[arg(long, requires = "demo")]
    once: bool,
    /// Keep the data in a temporary folder that is deleted on exit.
    #[arg(long, conflicts_with = "data_dir")]
    ephemeral: bool,
    /// Folder of agents to register; changed agents are registered again.
    #[arg(long, value_name = "DIR", default_value = "./agents")]
    agents: PathBuf,
    /// Deployment file of Pallas whose agents to register, at their ports; no folder is watched then.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["agents", "demo"])]
    agents_yaml: Option<PathBuf>,
    /// HTTP port; workers use the next one. 0 selects free ports.
    #[arg(long, default_value_t = 7400)]
    port: u16,
    /// Data folder.
    #[arg(long, value_name = "DIR", default_value = "./.atlas")]
    data_dir: PathBuf,
    /// Name of this machine's node; defaults to the host name.
    #[arg(long, value_name = "NAME")]
    node: Option<String>,
    /// Log filter for stderr, such as info or warn,atlas_raft=debug.
    #[arg(long, env = "ATLAS_LOG", default_value = LOG_DEFAULT, value_name = "FILTER")]
    log: String,
    #[command(flatten)]
    settings: DevSettings,
}

pub(crate) fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    match &options.verb {
        Some(Verb::Kill(options)) => return block_on(kill::run(context, options)),
        Some(Verb::Start(options)) => return block_on(start::run(context, options)),
        None => {}
    }
    let env = Env::system();
    atlas_dev::start_log(&options.log).map_err(|error| Failure::usage(atlas_env::chain(&error)))?;
    let refused =
        |error| Failure::new("E0104", Exit::Short, format!("the async runtime could not be started: {error}"));
    let runtime = atlas_dev::runtime().map_err(refused)?;
    match several::wanted(options)? {
        Some(_) if options.agents_yaml.is_some() => {
            Err(Failure::usage("--agents-yaml needs one controller and one worker"))
        }
        Some(wanted) => runtime.block_on(several::serve(context, options, wanted, env)),
        None => runtime.block_on(serve(context, options, env)),
    }
}

async fn serve(context: &Context, options: &Options, env: Env) -> Result<Exit, Failure> {
    // The signal handlers are installed before the start, so that a signal during the start also shuts the cluster
    // down.
    let (mut interrupt, mut terminate) = (watch(SignalKind::interrupt())?, watch(SignalKind::terminate())?);
    let deployment = options.agents_yaml.as_deref().map(Deployment::open).transpose()?;
    let wanted = cluster_options(options, deployment.as_ref())?;
    let models = env.spawn("look for models", models::find());
    let cluster = Cluster::start(wanted, env.clone()).await.map_err(|error| refusal(&error))?;
    let client = Client::new(&format!("http://{}", cluster.http()))?;
    let ended = tokio::select! {
        ended = attend(context, options, deployment.as_ref(), &env, (&cluster, &client), models) => ended,
        () = asked_to_stop(&mut interrupt, &mut terminate) => {
            context.note("stopping");
            Ok(Exit::Done)
        }
    };
    // Orderly shutdown, also after a failure: the worker stops its agents, then the controller closes the log. A second
    // Ctrl-C skips it; that is safe, because acknowledged changes are on disk.
    tokio::select! {
        () = cluster.shutdown() => {}
        _ = interrupt.recv() => {}
    }
    ended
}

fn watch(kind: SignalKind) -> Result<Signal, Failure> {
    signal(kind).map_err(|error| Failure::new("E0109", Exit::Short, format!("signals could not be watched: {error}")))
}

/// Completes on Ctrl-C or SIGTERM.
async fn asked_to_stop(interrupt: &mut Signal, terminate: &mut Signal) {
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}

/// Sends the requests of this command to the cluster until it ends.
async fn attend(
    context: &Context,
    options: &Options,
    deployment: Option<&Deployment>,
    env: &Env,
    (cluster, client): (&Cluster, &Client),
    models: Task<Vec<LocalModel>>,
) -> Result<Exit, Failure> {
    let node = own_node(client, cluster).await?;
    let mut watch = Watch::new(&options.agents);
    if options.demo {
        agents::register_bundled(client).await?;
    }
    match deployment {
        Some(deployment) => {
            let checker = Checker::new(RunsOn::Here);
            import::register(context, Some(client), deployment, true, &checker).await?;
        }
        None => watch.look(context, client, env).await,
    }
    let registered = client.get(&["api", "agents"], &[("all", "false")]).await?;
    let known = registered.as_array().map_or(0, Vec::len);
    // Without an answer the runtime is being stopped.
    let models = models.join().await.unwrap_or_default();
    banner::print(context, options, cluster, &node, known, &models, env.clock.monotonic());
    if options.demo {
        let fell_short = demo::run(context, client, env).await;
        if options.once {
            return fell_short.map(|()| Exit::Done);
        }
        if let Err(failure) = fell_short {
            context.report(&failure);
        }
        context.note(&format!("\nAtlas keeps running at {}; press Ctrl-C to stop.", client.base()));
    }
    let mut failed = std::pin::pin!(cluster.failed());
    loop {
        tokio::select! {
            reason = &mut failed => {
                return Err(Failure::new("E0109", Exit::Short, format!("the cluster stopped: {reason}")));
            }
            () = env.clock.sleep(LOOK_INTERVAL) => if deployment.is_none() {
                watch.look(context, client, env).await;
            },
        }
    }
}

fn cluster_options(options: &Options, deployment: Option<&Deployment>) -> Result<atlas_dev::Options, Failure> {
    let ports = Ports::choose(options.port).map_err(|error| refusal_of_port(&error))?;
    let data = if options.ephemeral { None } else { Some(options.data_dir.clone()) };
    let (node, mut settings) = (options.node.clone(), options.settings.clone());
    if let Some(deployment) = deployment {
        settings.default_controller("mcp-agent-listen", &deployment.listeners("127.0.0.1"));
        if let Some(port) = deployment.registry_port {
            settings.default_controller("mcp-registry-listen", &format!("127.0.0.1:{port}"));
        }
        if let Some(namespace) = &deployment.namespace {
            settings.default_controller("mcp-registry-namespace", namespace);
        }
        if options.port != 0 {
            settings.default_controller("mcp-public-url", &format!("http://{}:{}", deployment.host, options.port));
        }
    }
    Ok(atlas_dev::Options { data, node, settings, waits_for_engine: false, ..atlas_dev::Options::new(ports) })
}

fn refusal(error: &atlas_dev::DevStartError) -> Failure {
    match error {
        atlas_dev::DevStartError::Data(error) => refusal_of_data(error),
        atlas_dev::DevStartError::Settings(error) => Failure::usage(atlas_env::chain(error)),
        error => Failure::new("E0109", Exit::Short, atlas_env::chain(error)),
    }
}

fn refusal_of_data(error: &DataError) -> Failure {
    let text = atlas_env::chain(error);
    match error {
        DataError::InUse { .. } => {
            Failure::new("E0108", Exit::Short, text).with_next("use another folder: --data-dir DIR   or: --ephemeral")
        }
        DataError::Folder { .. } => Failure::new("E0109", Exit::Short, text),
    }
}

fn refusal_of_port(error: &PortError) -> Failure {
    let message = format!("{}. Stop it, or use --port 0 for free ports.", atlas_env::chain(error));
    Failure::new("E0107", Exit::Short, message)
}

/// The node of this process, as the API reports it.
async fn own_node(client: &Client, cluster: &Cluster) -> Result<Node, Failure> {
    let nodes = client.get(&["api", "nodes"], &[]).await.map_err(|failure| match failure.exit {
        // This command shows no token.
        Exit::Denied => {
            let failure = Failure::usage(
                "a cluster for development does not work with authentication, because this command shows no token",
            );
            failure.with_next("start a controller and a worker instead: atlasctl docs access")
        }
        _ => failure,
    })?;
    let nodes: Vec<Node> = answers::read(&nodes)?;
    let own = nodes.into_iter().find(|node| node.id == cluster.node().as_str());
    own.ok_or_else(|| Failure::new("E0109", Exit::Short, "this process's node is not registered"))
}

/// The path as the user wrote it, such as `./agents`; only for display.
fn shown(path: &Path) -> String {
    path.display().to_string()
}
