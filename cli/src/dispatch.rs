//! From a command of the command line to the code that runs it.

use clap::CommandFactory;

use crate::arguments::{Arguments, Command};
use crate::command::{
    agent, apply, ask, audit, auth, chain, chat, cluster, complete, completion, config, context, conversation, deploy,
    dev, dev_member, diff, docs, doctor, edit, event, explain_error, generic, graph, import, init, job, knowledge,
    label, login, logs, mcp, memory, model, node, operator, orchestrator, peer, policy, question, rag, run, secret,
    skill, step, test, top, trace, trigger, types, version, wait,
};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::quorum;
use crate::runtime::{beside_a_trial, block_on};

/// The command line, for completion.
const LINE: complete::Line =
    complete::Line { root: Arguments::command, globals: |words| Some(Arguments::read_from(words).ok()?.globals) };

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
        Command::Types(options) => block_on(types::run(context, &options)),
        Command::Run(options) => block_on(run::run(context, &options)),
        Command::Chat(options) => block_on(chat::run(context, &options)),
        Command::Ask(options) => block_on(ask::run(context, &options)),
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
        Command::Memory(verb) => block_on(memory::run(context, &verb)),
        Command::Knowledge(verb) => block_on(knowledge::run(context, &verb)),
        Command::Rag(verb) => block_on(rag::run(context, &verb)),
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
        Command::Complete(options) => complete::run(context, &options, &LINE),
        Command::Completion(options) => completion::run(context, &options, Arguments::command()),
        Command::Docs(options) => docs::run(context, &options),
        Command::Step(options) => step::run(&options),
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
        Command::Memory(verb) => matches!(verb, memory::Verb::History(_)),
        Command::Knowledge(verb) => {
            matches!(verb, knowledge::Verb::List(_) | knowledge::Verb::Search(_) | knowledge::Verb::Domains(_))
        }
        Command::Rag(verb) => matches!(verb, rag::Verb::List(_)),
        Command::Question(verb) => matches!(verb, question::Verb::List(_)),
        Command::Mcp(verb) => matches!(verb, mcp::Verb::List(_)),
        Command::Peer(verb) => matches!(verb, peer::Verb::List(_)),
        Command::Skill(verb) => matches!(verb, skill::Verb::List(_)),
        Command::Chain(verb) => matches!(verb, chain::Verb::List(_) | chain::Verb::Runs(_)),
        Command::Trigger(verb) => matches!(verb, trigger::Verb::List(_)),
        Command::Policy(verb) => matches!(verb, policy::Verb::List(_)),
        Command::Auth(verb) => auth::prints_list(verb),
        Command::Cluster(verb) => matches!(verb, cluster::Verb::Members(_)),
        Command::Get(_) => true,
        _ => false,
    }
}
