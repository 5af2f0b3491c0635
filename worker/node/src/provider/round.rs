//! Rounds of journaled work: model calls, calls of MCP servers, and tool calls at the same time. Agents that are a model in a loop, graphs
//! and programs make them alike: what is recorded is used, and what is done is recorded first ([`once`], [`at_most_once`]).

pub(super) mod caller;
pub(super) mod model;
pub(super) mod servers;

use std::time::Duration;

use atlas_env::Clock;
use atlas_turn::ToolReturn;
use atlas_types::{Micros, StepUsage};
use futures::future::BoxFuture;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use serde::Serialize;

use crate::journal::{JournalError, Made, made};
#[cfg(doc)]
use crate::journal::{at_most_once, once};

/// Makes tool calls at the same time, at most `parallel` of them. Their results are in the order of the calls.
pub(super) async fn together<E: From<JournalError>>(
    calls: Vec<BoxFuture<'_, Result<ToolReturn, E>>>,
    parallel: usize,
    clock: &dyn Clock,
) -> Result<Made, E> {
    let began = clock.monotonic();
    let returned: Vec<ToolReturn> = stream::iter(calls).buffered(parallel.max(1)).try_collect().await?;
    Ok(made_since(began, &returned, clock)?)
}

/// What took from a time of the monotonic clock until now.
fn made_since(began: Duration, outcome: &impl Serialize, clock: &dyn Clock) -> Result<Made, JournalError> {
    let duration = Micros::from(clock.monotonic().saturating_sub(began));
    let made = made(outcome)?;
    Ok(Made { usage: StepUsage { duration, ..made.usage }, ..made })
}
