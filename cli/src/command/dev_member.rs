//! `atlasctl dev-member`: one controller or one worker of a development cluster of several processes.
//!
//! Hidden: `atlasctl dev --controllers N` starts it. It prints a line to stdout when it is ready, and shuts down when its stdin closes.

use std::net::SocketAddr;
use std::path::PathBuf;

use atlas_dev::{ControllerOptions, DevSettings, Member};
use atlas_env::Env;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;

/// Options of `atlasctl dev-member`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    #[command(subcommand)]
    part: Part,
    /// What to log to stderr.
    #[arg(long, global = true, default_value = "warn")]
    log: String,
    #[command(flatten)]
    settings: DevSettings,
}

#[derive(Debug, clap::Subcommand)]
enum Part {
    /// A controller.
    Controller {
        #[arg(long)]
        name: String,
        #[arg(long)]
        data_dir: PathBuf,
        #[arg(long)]
        http: SocketAddr,
        #[arg(long)]
        workers: SocketAddr,
        #[arg(long)]
        peers: SocketAddr,
        #[arg(long, value_delimiter = ',')]
        join: Vec<String>,
        /// Passed in the environment, because every user can read the arguments of a process.
        #[arg(long, env = "ATLAS_JOIN_TOKEN", hide_env_values = true)]
        token: Option<String>,
    },
    /// A worker.
    Worker {
        #[arg(long)]
        node: String,
        #[arg(long)]
        data_dir: PathBuf,
        #[arg(long, value_delimiter = ',')]
        controllers: Vec<String>,
    },
}

pub(crate) fn run(context: &Context, options: Options) -> Result<Exit, Failure> {
    let env = Env::system();
    atlas_dev::start_log(&options.log).map_err(|error| Failure::usage(atlas_env::chain(&error)))?;
    let refused =
        |error| Failure::new("E0104", Exit::Short, format!("the async runtime could not be started: {error}"));
    atlas_dev::runtime().map_err(refused)?.block_on(serve(context, options.part, &options.settings, env))
}

async fn serve(context: &Context, part: Part, settings: &DevSettings, env: Env) -> Result<Exit, Failure> {
    let (name, member) = match part {
        Part::Controller { name, data_dir, http, workers, peers, join, token } => {
            let options = ControllerOptions { name: name.clone(), data_dir, http, workers, peers, join, token };
            (name, Member::controller(options, settings, env.clone()).await)
        }
        Part::Worker { node, data_dir, controllers } => {
            let member = Member::worker(&node, data_dir, controllers, settings, env.clone()).await;
            (node, member)
        }
    };
    let failure = |text: String| Failure::new("E0109", Exit::Short, format!("{name}: {text}"));
    let member = member.map_err(|error| failure(atlas_env::chain(&error)))?;
    context.print(&format!("{name} is ready\n"))?;
    let ended = tokio::select! {
        reason = member.failed() => Err(failure(reason.to_string())),
        () = atlas_dev::left_alone(&env) => Ok(Exit::Done),
    };
    member.shutdown().await;
    ended
}
