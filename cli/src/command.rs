//! One file per command.

pub(crate) mod agent;
pub(crate) mod apply;
pub(crate) mod audit;
pub(crate) mod auth;
pub(crate) mod chain;
pub(crate) mod cluster;
pub(crate) mod complete;
pub(crate) mod completion;
pub(crate) mod config;
pub(crate) mod context;
pub(crate) mod conversation;
pub(crate) mod deploy;
pub(crate) mod dev;
pub(crate) mod dev_member;
pub(crate) mod diff;
pub(crate) mod docs;
pub(crate) mod doctor;
pub(crate) mod edit;
pub(crate) mod event;
pub(crate) mod execution;
pub(crate) mod explain_error;
pub(crate) mod generic;
pub(crate) mod graph;
pub(crate) mod import;
pub(crate) mod init;
pub(crate) mod job;
pub(crate) mod label;
pub(crate) mod login;
pub(crate) mod logs;
pub(crate) mod mcp;
pub(crate) mod model;
pub(crate) mod node;
pub(crate) mod object;
pub(crate) mod operator;
pub(crate) mod orchestrator;
pub(crate) mod peer;
pub(crate) mod policy;
pub(crate) mod question;
pub(crate) mod run;
pub(crate) mod secret;
pub(crate) mod skill;
pub(crate) mod test;
pub(crate) mod top;
pub(crate) mod trace;
pub(crate) mod trigger;
pub(crate) mod version;
pub(crate) mod wait;

use crate::arguments::Command;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::quorum;

/// Runs a command to its end.
pub(crate) fn run(context: &Context, command: Command) -> Result<Exit, Failure> {
    if !prints_list(&command) {
        // Refuse the output format before the command changes anything.
        context.form.fits_one()?;
    }
    match command {
        // These commands create their own runtime or need none.
        Command::Dev(options) => dev::run(context, &options),
        Command::DevMember(options) => dev_member::run(context, options),
        Command::Import(verb) => block_on(import::run(context, &verb)),
        Command::Init(options) => init::run(context, &options),
        Command::Deploy(options) => beside_a_trial(deploy::run(context, &options)),
        Command::Test(options) => beside_a_trial(test::run(context, &options)),
        Command::Graph(verb) => block_on(graph::run(context, &verb)),
        Command::ExplainError(options) => explain_error::run(context, &options),
        Command::Run(options) => block_on(run::run(context, &options)),
        Command::Logs(options) => block_on(logs::run(context, &options)),
        Command::Explain(options) => block_on(job::explain(context, &options)),
        Command::Top(options) => block_on(top::run(context, &options)),
        Command::Doctor(options) => block_on(doctor::run(context, &options)),
        Command::Job(verb) => block_on(job::run(context, &verb)),
        Command::Agent(verb) => block_on(agent::run(context, &verb)),
        Command::Node(verb) => block_on(node::run(context, &verb)),
        Command::Model(verb) => block_on(model::run(context, &verb)),
        Command::Secret(verb) => block_on(secret::run(context, &verb)),
        Command::Conversation(verb) => block_on(conversation::run(context, &verb)),
        Command::Question(verb) => block_on(question::run(context, &verb)),
        Command::Skill(verb) => block_on(skill::run(context, &verb)),
        Command::Chain(verb) => block_on(chain::run(context, &verb)),
        Command::Trigger(verb) => block_on(trigger::run(context, &verb)),
        Command::Orchestrator(verb) => block_on(orchestrator::run(context, &verb)),
        Command::Policy(verb) => block_on(policy::run(context, &verb)),
        Command::Auth(verb) => block_on(auth::run(context, &verb)),
        Command::Login(options) => block_on(login::run(context, &options)),
        Command::Logout => login::logout(context),
        Command::Audit(verb) => block_on(audit::run(context, &verb)),
        Command::Trace(verb) => block_on(trace::run(context, &verb)),
        Command::Mcp(verb) => block_on(mcp::run(context, &verb)),
        Command::Peer(verb) => block_on(peer::run(context, &verb)),
        Command::Cluster(verb) => block_on(cluster::run(context, &verb)),
        Command::Event(verb) => block_on(event::run(context, &verb)),
        Command::Operator(verb) => block_on(operator::run(context, &verb)),
        Command::Get(options) => block_on(generic::get(context, &options)),
        Command::Describe(options) => block_on(generic::describe(context, &options)),
        Command::Apply(options) => beside_a_trial(apply::run(context, &options)),
        Command::Diff(options) => block_on(diff::run(context, &options)),
        Command::Delete(options) => block_on(generic::delete(context, &options)),
        Command::Edit(options) => block_on(edit::run(context, &options)),
        Command::Label(options) => block_on(label::run(context, &options)),
        Command::Wait(options) => block_on(wait::run(context, &options)),
        Command::Context(verb) => context::run(context, &verb),
        Command::Config(verb) => config::run(context, &verb),
        Command::Complete(options) => complete::run(context, &options),
        Command::Completion(options) => completion::run(context, &options),
        Command::Docs(options) => docs::run(context, &options),
        Command::Version => block_on(version::run(context)),
    }
}

/// Adds to the error of a command what only the state of the cluster tells.
pub(crate) fn explain(context: &Context, failure: Failure) -> Failure {
    let failure = dev::local::explain(context, failure);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    // Without a runtime, the error stays as it is.
    match runtime {
        Ok(runtime) => runtime.block_on(quorum::explain(context, failure)),
        Err(_) => failure,
    }
}

/// Whether the result is a list; lists have more output formats than single objects.
fn prints_list(command: &Command) -> bool {
    match command {
        Command::Job(verb) => matches!(verb, job::Verb::List(_)),
        Command::Agent(verb) => {
            matches!(verb, agent::Verb::List(_) | agent::Verb::Search(_) | agent::Verb::Versions(_))
        }
        Command::Node(verb) => matches!(verb, node::Verb::List(_) | node::Verb::Gpus(_)),
        Command::Model(verb) => matches!(verb, model::Verb::List(_) | model::Verb::Prices(_)),
        Command::Secret(verb) => matches!(verb, secret::Verb::List(_) | secret::Verb::WhoCanRead(_)),
        Command::Conversation(verb) => matches!(verb, conversation::Verb::List(_)),
        Command::Question(verb) => matches!(verb, question::Verb::List(_)),
        Command::Mcp(verb) => matches!(verb, mcp::Verb::List(_)),
        Command::Peer(verb) => matches!(verb, peer::Verb::List(_)),
        Command::Skill(verb) => matches!(verb, skill::Verb::List(_)),
        Command::Chain(verb) => matches!(verb, chain::Verb::List(_)),
        Command::Trigger(verb) => matches!(verb, trigger::Verb::List(_)),
        Command::Policy(verb) => matches!(verb, policy::Verb::List(_)),
        Command::Auth(verb) => auth::prints_list(verb),
        Command::Cluster(verb) => matches!(verb, cluster::Verb::Members(_)),
        Command::Get(_) => true,
        _ => false,
    }
}

/// Runs a client command on a single-threaded runtime.
fn block_on<F: Future<Output = Result<Exit, Failure>>>(command: F) -> Result<Exit, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| no_runtime(&error))?.block_on(command)
}

/// Runs a command that may start a temporary cluster in this process; Ctrl-C ends both.
fn beside_a_trial<F: Future<Output = Result<Exit, Failure>>>(command: F) -> Result<Exit, Failure> {
    atlas_dev::runtime().map_err(|error| no_runtime(&error))?.block_on(command)
}

fn no_runtime(error: &std::io::Error) -> Failure {
    Failure::new("E0104", Exit::Short, format!("the async runtime could not be started: {error}"))
}
