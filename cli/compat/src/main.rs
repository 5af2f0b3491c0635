//! `atlas`, the command line of Atlas for Python: its verbs, options, output and exit codes (compatibility §17.1).
//!
//! Agents run on the usual controller and worker, started inside this process for one command. Verbs for features that
//! Atlas does not have yet are missing. Scripts parse the output, so the texts are the same as in Atlas for Python.

mod answer;
mod embedded;
mod file;
mod folder;
mod inspect;
mod job;
mod list;
mod mcp;
mod orchestrator;
mod pool;
mod registry;
mod render;
mod run;
mod run_chain;
mod security;
mod serve;
mod server;
mod skill;
mod trigger;
mod validate;

use std::io::Write;
use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use answer::{Refusal, print};

/// Runs and inspects agents, as the command line of Atlas for Python does.
#[derive(Debug, Parser)]
#[command(name = "atlas", version, disable_help_subcommand = true)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Runs one agent on one input, without a server.
    Run(run::Options),
    /// Runs the agents of a chain one after the other, without a server.
    RunChain(run_chain::Options),
    /// Lists the agents of a folder.
    List(list::Options),
    /// Lists the agents of the folder given as argument.
    Discover(list::Discover),
    /// Shows an agent's contract.
    Inspect(inspect::Options),
    /// Checks a contract.
    Validate(validate::Options),
    /// Serves HTTP and, if asked for, MCP.
    Serve(Box<serve::Options>),
    /// Serves tools over MCP.
    Mcp(mcp::Options),
    /// Jobs.
    #[command(subcommand)]
    Pool(pool::Verb),
    /// Orchestrators.
    #[command(subcommand)]
    Orchestrator(orchestrator::Verb),
    /// Rules that start jobs.
    #[command(subcommand)]
    Trigger(trigger::Verb),
    /// Skills.
    #[command(subcommand)]
    Skill(skill::Verb),
    /// Packages of agents in shared folders.
    #[command(subcommand)]
    Registry(registry::Verb),
    /// Security policies.
    #[command(subcommand)]
    Security(security::Verb),
}

/// Runs one command line: 0 done, 1 refused with a text on stderr, 2 wrong use.
fn main() -> ExitCode {
    atlas_dev::run_if_asked();
    if let Some(code) = atlas_bundled::run_if_asked() {
        return code;
    }
    atlas_env::no_huge_pages();
    atlas_env::know_start_memory(atlas_env::Heap {
        keep_nothing: atlas_heap::keep_nothing,
        give_back: atlas_heap::give_back,
    });
    if let Err(error) = atlas_env::no_core_dumps() {
        #[expect(clippy::print_stderr, reason = "nothing else is set up to print an error")]
        {
            eprintln!("error: {}", atlas_env::chain(&error));
        }
        return ExitCode::from(2);
    }
    let line = atlas_env::empty_is_unset(Arguments::command());
    let arguments = match line.try_get_matches().and_then(|matches| Arguments::from_arg_matches(&matches)) {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and version also arrive here as errors. A failure to print them does not change the exit code.
            let _ = error.print();
            return if error.use_stderr() { ExitCode::from(2) } else { ExitCode::SUCCESS };
        }
    };
    let answer = match arguments.verb {
        Verb::Run(options) => run::run(&options),
        Verb::RunChain(options) => run_chain::run(&options),
        Verb::List(options) => list::run(&options),
        Verb::Discover(options) => list::discover(&options),
        Verb::Inspect(options) => inspect::run(&options),
        Verb::Validate(options) => validate::run(&options),
        Verb::Serve(options) => serve::run(&options),
        Verb::Mcp(options) => mcp::run(&options),
        Verb::Pool(verb) => pool::run(&verb),
        Verb::Orchestrator(verb) => orchestrator::run(&verb),
        Verb::Trigger(verb) => trigger::run(&verb),
        Verb::Skill(verb) => skill::run(&verb),
        Verb::Registry(verb) => registry::run(&verb),
        Verb::Security(verb) => security::run(&verb),
    };
    match answer.and_then(|text| print(&text)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Refusal(text)) => {
            // The exit code must be right even if the terminal was closed.
            let _ = writeln!(std::io::stderr(), "{text}");
            ExitCode::from(1)
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn an_input_is_required() {
        let error = Arguments::try_parse_from(["atlas", "run", "echo"]).expect_err("no input");
        assert!(error.use_stderr());
        Arguments::try_parse_from(["atlas", "run", "echo", "{}"]).expect("an input as argument");
    }
}
