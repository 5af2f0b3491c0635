//! The command line as data.

use clap::{Parser, Subcommand};

use crate::command::{
    agent, agent_exec, cluster, deploy, dev, dev_member, explain_error, init, job, node, operator, run, test,
};
use crate::exit;
use crate::output::Form;

/// Where a cluster is expected when nobody says.
pub(crate) const SERVER_DEFAULT: &str = "http://127.0.0.1:7400";

/// Runs AI agents as typed functions on a cluster.
#[derive(Debug, Parser)]
#[command(name = "atlasctl", version, disable_help_subcommand = true, after_help = exit::TABLE, max_term_width = 100)]
pub(crate) struct Arguments {
    /// Address of a controller, or of several with commas between them: when one cannot answer the next one is asked.
    #[arg(long, global = true, env = "ATLAS_SERVER", default_value = SERVER_DEFAULT, value_name = "URL")]
    pub(crate) server: String,
    /// How results are printed; JSON and YAML have the API's shape and are stable, tables are not.
    #[arg(short, long, global = true, value_enum, default_value_t = Form::Table, value_name = "FORM")]
    pub(crate) output: Form,
    /// No colour, also on a terminal; so does a NO_COLOR in the environment.
    #[arg(long, global = true)]
    pub(crate) no_color: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Nouns, and the verbs of every day.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Starts a controller and a worker in one process, for development on this machine.
    Dev(dev::Options),
    /// Makes a folder with an agent that works: contract, program and one test.
    Init(init::Options),
    /// Checks, tests, packs and registers the agents in some folders.
    Deploy(deploy::Options),
    /// Runs the tests that lie beside agents, without a cluster.
    Test(test::Options),
    /// Runs an agent on one input and prints its output.
    Run(run::Options),
    /// Jobs: requests to run one agent on one input.
    #[command(subcommand)]
    Job(job::Verb),
    /// Agents: registered programs under a contract.
    #[command(subcommand)]
    Agent(agent::Verb),
    /// Nodes: machines that run agents.
    #[command(subcommand)]
    Node(node::Verb),
    /// The controllers that are the cluster.
    #[command(subcommand)]
    Cluster(cluster::Verb),
    /// Backups, and the files of a stopped controller.
    #[command(subcommand)]
    Operator(operator::Verb),
    /// Prints what an error code means and what to try, without a network.
    ExplainError(explain_error::Options),
    /// Prints the versions of this program and of the cluster.
    Version,
    /// One controller or worker of a development cluster of several.
    #[command(hide = true)]
    DevMember(dev_member::Options),
    /// Runs a bundled agent that lives in this program; workers start it.
    #[command(hide = true)]
    AgentExec(agent_exec::Options),
}
