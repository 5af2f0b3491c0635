//! `atlasctl run NAME` where no agent has the name, and a stored chain has.

use super::Options;
use crate::client::Client;
use crate::command::chain::{KIND, Start, input_schema, start};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::{self, Source};

/// The code of "no such agent".
const UNKNOWN_AGENT: &str = "E1101";
/// The code of an idempotency key that was used for something else.
const REQUEST_CONFLICT: &str = "E3004";

/// Runs the stored chain of the name. `missing` is the failure of the submission, which stands if there is no such chain.
pub(super) async fn run(
    context: &Context,
    client: &Client,
    options: &Options,
    missing: Failure,
) -> Result<Exit, Failure> {
    let name = options.agent.as_deref().unwrap_or_default();
    let is_chain = match missing.code.as_deref() {
        Some(UNKNOWN_AGENT) => true,
        // The key may be that of an earlier run: the chain then says whether it was asked for the same. A chain that was called
        // like an agent is listed as one.
        Some(REQUEST_CONFLICT) => {
            let agent = client.get_if_known(&["api", "agents", name]).await?;
            agent.is_null() || agent["provider"] == "chain"
        }
        _ => false,
    };
    if !is_chain || client.get(&["api", "objects", KIND, name], &[]).await.is_err() {
        return Err(missing);
    }
    if let Some(option) = only_for_jobs(options) {
        return Err(Failure::usage(format!("{option} is not possible for \"{name}\", which is a chain")));
    }
    let input = match input::source(&options.words, options.input.as_deref())? {
        Source::Whole(value) => value,
        Source::Pairs(pairs) => input::object(pairs, &input_schema(client, &name.into()).await)?,
    };
    let wanted = Start {
        chain: name.into(),
        input,
        priority: options.priority,
        detach: options.detach,
        follow: options.follow,
        timeout: options.timeout,
        idempotency_key: options.idempotency_key.as_deref(),
    };
    start(context, client, &wanted).await
}

/// The first option that was given and that runs of chains do not have.
fn only_for_jobs(options: &Options) -> Option<&'static str> {
    let given = [
        (options.at.is_some(), "--at"),
        (options.requirement.is_some(), "--version"),
        (options.execution_timeout.is_some(), "--execution-timeout"),
        (options.budget.is_some(), "--budget"),
        (options.title.is_some(), "--title"),
        (!options.labels.is_empty(), "--label"),
    ];
    given.into_iter().find(|(is_given, _)| *is_given).map(|(_, option)| option)
}
