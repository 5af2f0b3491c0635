//! `atlasctl run NAME` where no agent has the name, and a stored chain has.

use serde_json::json;

use super::Options;
use crate::client::Client;
use crate::command::chain::{KIND, Start, start};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::{self, Source};

/// The code of "no such agent".
const UNKNOWN_AGENT: &str = "E1101";

/// Runs the stored chain of the name. `missing` is the failure of the submission, which stands if there is no such chain.
pub(super) async fn run(
    context: &Context,
    client: &Client,
    options: &Options,
    missing: Failure,
) -> Result<Exit, Failure> {
    let name = options.agent.as_deref().unwrap_or_default();
    if missing.code.as_deref() != Some(UNKNOWN_AGENT) || client.get(&["api", "objects", KIND, name], &[]).await.is_err()
    {
        return Err(missing);
    }
    if let Some(option) = only_for_jobs(options) {
        return Err(Failure::usage(format!("{option} is not possible for \"{name}\", which is a chain")));
    }
    let input = match input::source(&options.words, options.input.as_deref())? {
        Source::Whole(value) => value,
        // A chain has no contract: the values are texts.
        Source::Pairs(pairs) => input::object(pairs, &json!({}))?,
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

/// The first option that was given and that executions of chains do not have.
fn only_for_jobs(options: &Options) -> Option<&'static str> {
    let given = [
        (options.at.is_some(), "--at"),
        (options.requirement.is_some(), "--version"),
        (options.execution_timeout.is_some(), "--execution-timeout"),
        (options.budget.is_some(), "--budget"),
        (!options.labels.is_empty(), "--label"),
    ];
    given.into_iter().find(|(is_given, _)| *is_given).map(|(_, option)| option)
}
