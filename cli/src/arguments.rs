//! The command line as data.

use std::any::TypeId;
use std::ffi::OsString;
use std::time::Duration;

use clap::builder::{OsStr, Resettable};
use clap::{Arg, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::command::{
    agent, apply, ask, audit, auth, chain, chat, cluster, complete, completion, config, context, conversation, deploy,
    dev, dev_member, diff, docs, doctor, edit, event, explain_error, generic, graph, import, init, job, knowledge,
    label, login, logs, mcp, memory, model, node, operator, orchestrator, peer, policy, question, rag, run, secret,
    skill, step, test, top, trace, trigger, types, wait,
};
use crate::exit;
use crate::globals::Globals;

/// Runs AI agents as typed functions on a cluster.
#[derive(Debug, Parser)]
#[command(name = "atlasctl", version, disable_help_subcommand = true, after_help = exit::TABLE, max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) globals: Globals,
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Arguments {
    /// Reads the arguments of this process.
    pub(crate) fn read() -> Result<Self, clap::Error> {
        Self::read_from(std::env::args_os())
    }

    pub(crate) fn read_from(
        arguments: impl IntoIterator<Item = impl Into<OsString> + Clone>,
    ) -> Result<Self, clap::Error> {
        let mut command = atlas_env::empty_is_unset(with_signs(Self::command()));
        let arguments = with_help(&command, arguments.into_iter().map(Into::into).collect());
        let matches = command.try_get_matches_from_mut(arguments.iter());
        let mut matches = matches.map_err(|error| {
            // Help, which is an error as well, names the variables.
            if error.use_stderr() { as_typed(&arguments).unwrap_or(error) } else { error }
        })?;
        Self::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
    }
}

/// The error about what was typed alone. With variables such as `ATLAS_SERVER` set, clap's usage line would name their options too.
/// None if there is no error without the variables.
fn as_typed(arguments: &[OsString]) -> Option<clap::Error> {
    without_environment(with_signs(Arguments::command())).try_get_matches_from(arguments).err()
}

fn without_environment(command: clap::Command) -> clap::Command {
    let reset = |arg: Arg| if arg.get_env().is_some() { arg.env(Resettable::<OsStr>::Reset) } else { arg };
    command.mut_args(reset).mut_subcommands(without_environment)
}

/// Reads `help` instead of a verb as `--help`: `atlasctl help job list` and `atlasctl job help list`.
fn with_help(root: &clap::Command, mut arguments: Vec<OsString>) -> Vec<OsString> {
    let (mut command, mut at) = (root, 1);
    while let Some(word) = arguments.get(at).filter(|_| command.has_subcommands()) {
        if word == "help" {
            arguments.remove(at);
            arguments.push("--help".into());
            break;
        }
        let Some(found) = command.find_subcommand(word) else { break };
        (command, at) = (found, at + 1);
    }
    arguments
}

/// Lets options for numbers and durations take values such as `-5s`, so that the error is about the value: without this, clap
/// looks for an option `-5`.
fn with_signs(command: clap::Command) -> clap::Command {
    let types = [TypeId::of::<Duration>(), TypeId::of::<u16>(), TypeId::of::<u32>(), TypeId::of::<u64>()];
    let sign = |arg: Arg| {
        let signed = !arg.is_positional() && types.iter().any(|kind| arg.get_value_parser().type_id() == *kind);
        if signed { arg.allow_hyphen_values(true) } else { arg }
    };
    command.mut_args(sign).mut_subcommands(with_signs)
}

/// Nouns, and the verbs of every day.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Starts a controller and a worker in one process, for development on this machine.
    Dev(dev::Options),
    /// Creates a folder with a working agent: contract, program and one test.
    Init(init::Options),
    /// Checks, tests, packs and registers the agents in one or more folders.
    Deploy(deploy::Options),
    /// Runs the tests of agents, without a cluster.
    Test(test::Options),
    /// Writes the types of what an agent takes and gives, for a program.
    Types(types::Options),
    /// Runs an agent on one input and prints its output.
    Run(run::Options),
    /// Talks with an agent or a model: messages in turn, and the cluster keeps the conversation.
    Chat(Box<chat::Options>),
    /// Asks an agent or a model one thing and prints the answer.
    Ask(Box<ask::Options>),
    /// Prints the logs of a job, or of the latest jobs of an agent or node.
    Logs(logs::Options),
    /// Explains why a job is waiting; same as job explain.
    Explain(job::ExplainOptions),
    /// Shows queue and nodes; on a terminal, refreshes until q or Ctrl-C.
    Top(top::Options),
    /// Checks the cluster for problems.
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
    /// Models: language models that agents use.
    #[command(subcommand)]
    Model(model::Verb),
    /// Secrets: values that agents and models need and that nobody may read.
    #[command(subcommand)]
    Secret(secret::Verb),
    /// Conversations with agents.
    #[command(subcommand)]
    Conversation(conversation::Verb),
    /// The text that agents share.
    #[command(subcommand)]
    Memory(memory::Verb),
    /// Knowledge: entries that agents find and read.
    #[command(subcommand)]
    Knowledge(knowledge::Verb),
    /// Document bases: documents that people and agents search.
    #[command(subcommand)]
    Rag(rag::Verb),
    /// Takes over agents from other systems.
    #[command(subcommand)]
    Import(import::Verb),
    /// Graph agents: nodes that run in super-steps over a shared state.
    #[command(subcommand)]
    Graph(graph::Verb),
    /// Skills: functions that agents call.
    #[command(subcommand)]
    Skill(skill::Verb),
    /// Chains: agents that work one after the other, each on the output of the one before.
    #[command(subcommand)]
    Chain(chain::Verb),
    /// Triggers: rules that start jobs at times, or when their address is called.
    #[command(subcommand)]
    Trigger(trigger::Verb),
    /// Questions: what jobs ask people.
    #[command(subcommand)]
    Question(question::Verb),
    /// Orchestrators: programs that decide on jobs before they run.
    #[command(subcommand)]
    Orchestrator(orchestrator::Verb),
    /// Policies: what agents may have, and rules on deploying and submitting.
    #[command(subcommand)]
    Policy(policy::Verb),
    /// Access: tokens of people and programs, and what they may do.
    #[command(subcommand)]
    Auth(auth::Verb),
    /// Logs in at an issuer that the cluster trusts; the context keeps the token and renews it.
    Login(login::Options),
    /// Removes the login from the context.
    Logout,
    /// Audit: who did what, and who was denied it.
    #[command(subcommand)]
    Audit(audit::Verb),
    /// Traces: what jobs did, and when.
    #[command(subcommand)]
    Trace(trace::Verb),
    /// MCP, the Model Context Protocol: servers that agents use, and connections of other programs.
    #[command(subcommand)]
    Mcp(mcp::Verb),
    /// Peers: other clusters whose tools and agents are used here.
    #[command(subcommand)]
    Peer(peer::Verb),
    /// The controllers of the cluster.
    #[command(subcommand)]
    Cluster(cluster::Verb),
    /// Events of the cluster.
    #[command(subcommand)]
    Event(event::Verb),
    /// Backups, and the files of a stopped controller.
    #[command(subcommand)]
    Operator(operator::Verb),
    /// Lists the objects of a kind, or shows some of them.
    Get(generic::GetOptions),
    /// Shows one object of a kind.
    Describe(generic::Options),
    /// Applies folders of agents and documents to the cluster.
    Apply(apply::Options),
    /// Shows how the cluster differs from folders of agents and documents; exits 1 if it does.
    Diff(diff::Options),
    /// Removes objects of a kind: cancels a job, retires an agent version, removes a node or controller.
    Delete(generic::DeleteOptions),
    /// Opens one object in your editor and applies the changes.
    Edit(edit::Options),
    /// Adds and removes labels of a node or of an object of a kind.
    Label(label::Options),
    /// Waits until an object meets a condition.
    Wait(wait::Options),
    /// Clusters by name, in the configuration file.
    #[command(subcommand)]
    Context(context::Verb),
    /// Settings of this program, in the configuration file.
    #[command(subcommand)]
    Config(config::Verb),
    /// Makes a call of a durable program, in its script: a command that runs once, a wait, a question, a job.
    Step(Box<step::Options>),
    /// Prints a completion script for a shell.
    Completion(completion::Options),
    /// The names that may stand at a place in a line, for the scripts that complete.
    #[command(name = "__complete", hide = true)]
    Complete(complete::Options),
    /// Prints a chapter of the documentation, without a network.
    Docs(docs::Options),
    /// Prints the cause of an error code and what to try, without a network.
    ExplainError(explain_error::Options),
    /// Prints the versions of this program and of the cluster.
    Version,
    /// One controller or worker of a development cluster of several.
    #[command(hide = true)]
    DevMember(dev_member::Options),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_is_a_verb_as_well() {
        let told = |line: &str| Arguments::read_from(line.split(' ')).expect_err("help is an error").to_string();
        for (line, same) in [
            ("atlasctl help", "atlasctl --help"),
            ("atlasctl help job list", "atlasctl job list --help"),
            ("atlasctl job help", "atlasctl job --help"),
            ("atlasctl job help list", "atlasctl job list --help"),
        ] {
            assert_eq!(told(line), told(same), "{line}");
        }
        assert!(told("atlasctl help jbo").contains("unrecognized subcommand 'jbo'"), "{}", told("atlasctl help jbo"));
        // The name of an agent.
        assert!(Arguments::read_from(["atlasctl", "run", "help"]).is_ok());
    }

    #[test]
    fn an_error_is_about_what_was_typed() {
        let told = as_typed(&["atlasctl", "run", "--bogus"].map(OsString::from)).expect("wrong").to_string();
        assert!(told.contains("Usage: atlasctl run") && !told.contains("--server"), "{told}");
        let all = without_environment(Arguments::command());
        assert!(all.get_arguments().all(|arg| arg.get_env().is_none()));
    }

    #[test]
    fn the_help_of_dev_fits_on_a_page() {
        let help = Arguments::read_from(["atlasctl", "dev", "--help"]).expect_err("help").to_string();
        assert!(help.lines().count() < 140 && help.contains("atlasctl docs controller-options"), "{help}");
    }

    #[test]
    fn a_negative_value_is_refused_as_such() {
        for line in [
            "run x --timeout -5s",
            "run x --execution-timeout -5",
            "job wait x --timeout=-5s",
            "job list --since -5m",
            "job logs x --since -5m",
            "event tail --limit -1",
            "event tail --after -1",
            "node drain x --deadline -1h",
            "cluster join-token --expires -1m",
            "operator raft log --from -1",
        ] {
            let told = Arguments::read_from(["atlasctl"].into_iter().chain(line.split(' ')));
            let told = told.expect_err(line).to_string();
            assert!(told.contains("must not be negative"), "{line}: {told}");
        }
        for line in ["job list --limit -1", "logs x --jobs -1", "dev --port -1", "dev --workers -1"] {
            let told = Arguments::read_from(["atlasctl"].into_iter().chain(line.split(' ')));
            let told = told.expect_err(line).to_string();
            assert!(told.contains("-1 is not in "), "{line}: {told}");
        }
    }
}
