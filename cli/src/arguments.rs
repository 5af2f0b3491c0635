//! The command line as data.

use clap::{Parser, Subcommand};

use crate::command::{
    agent, apply, cluster, complete, completion, config, context, deploy, dev, dev_member, diff, docs, doctor, edit,
    event, explain_error, generic, init, job, logs, node, operator, run, test, top, wait,
};
use crate::context::TimeForm;
use crate::exit;
use crate::output::Form;

/// Where a cluster is expected when nobody says.
pub(crate) const SERVER_DEFAULT: &str = "http://127.0.0.1:7400";

/// Runs AI agents as typed functions on a cluster.
#[derive(Debug, Parser)]
#[command(name = "atlasctl", version, disable_help_subcommand = true, after_help = exit::TABLE, max_term_width = 100)]
pub(crate) struct Arguments {
    /// Address of a controller, or of several with commas between them: when one cannot answer the next one is asked. By
    /// default that of the current context, else http://127.0.0.1:7400.
    #[arg(long, global = true, env = "ATLAS_SERVER", hide_env_values = true, value_name = "URL")]
    pub(crate) server: Option<String>,
    /// The cluster of this name in the configuration file; see atlasctl context.
    #[arg(long, global = true, env = "ATLAS_CONTEXT", hide_env_values = true, value_name = "NAME")]
    pub(crate) context: Option<String>,
    /// How results are printed; JSON and YAML have the API's shape and are stable, tables are not. One of table, wide, json,
    /// jsonl, yaml, name, csv, template=TEXT and jsonpath=PATH.
    #[arg(short, long, global = true, default_value = "table", value_name = "FORM")]
    pub(crate) output: Form,
    /// How times are printed.
    #[arg(long, global = true, value_enum, default_value_t = TimeForm::Relative, value_name = "FORM")]
    pub(crate) time: TimeForm,
    /// No colour, also on a terminal; so does a NO_COLOR in the environment.
    #[arg(long, global = true)]
    pub(crate) no_color: bool,
    /// Nothing beside results and errors.
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    /// Says how far the controller was that answered.
    #[arg(short, long, global = true)]
    pub(crate) verbose: bool,
    /// Prints each request with its trace id.
    #[arg(long, global = true)]
    pub(crate) trace: bool,
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
    /// Prints what a job logged, or the latest jobs of an agent or on a node.
    Logs(logs::Options),
    /// Says why a job waits; the same as job explain.
    Explain(job::ExplainOptions),
    /// Shows queue and nodes, again and again on a terminal until q or Ctrl-C is pressed.
    Top(top::Options),
    /// Looks for what is wrong with the cluster.
    Doctor(doctor::Options),
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
    /// What happens in the cluster.
    #[command(subcommand)]
    Event(event::Verb),
    /// Backups, and the files of a stopped controller.
    #[command(subcommand)]
    Operator(operator::Verb),
    /// Lists the objects of a kind, or shows one.
    Get(generic::GetOptions),
    /// Shows one object of a kind.
    Describe(generic::Options),
    /// Makes the cluster be what folders of agents and documents say.
    Apply(apply::Options),
    /// Says in what the cluster differs from folders of agents and documents; exits 1 if it does.
    Diff(diff::Options),
    /// Removes one object of a kind: cancels a job, retires an agent version, forgets a node or controller.
    Delete(generic::DeleteOptions),
    /// Opens one object of a kind in your editor, and applies what you change.
    Edit(edit::Options),
    /// Waits until one object of a kind is as it must be.
    Wait(wait::Options),
    /// Clusters by name, in the configuration file.
    #[command(subcommand)]
    Context(context::Verb),
    /// Habits of this program, in the configuration file.
    #[command(subcommand)]
    Config(config::Verb),
    /// Prints a script that completes commands in a shell.
    Completion(completion::Options),
    /// The names that may stand at a place in a line, for the scripts that complete.
    #[command(name = "__complete", hide = true)]
    Complete(complete::Options),
    /// Prints a chapter of the documentation, without a network.
    Docs(docs::Options),
    /// Prints what an error code means and what to try, without a network.
    ExplainError(explain_error::Options),
    /// Prints the versions of this program and of the cluster.
    Version,
    /// One controller or worker of a development cluster of several.
    #[command(hide = true)]
    DevMember(dev_member::Options),
}
