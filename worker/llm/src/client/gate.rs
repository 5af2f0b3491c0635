//! Limits that a target shares with other callers: each try waits until it may begin.

use std::time::Duration;

use atlas_env::Clock;
use atlas_model::{Answer, CallError, Message, ModelTask, Part, Request, Role, estimate};
use futures::future::BoxFuture;

use super::Target;

/// The assumed limit of an answer, if neither request nor model has one.
const OUTPUT_ASSUMED: u64 = 4_096;
/// The tokens that an image counts.
const IMAGE_TOKENS: u64 = 1_600;

/// Lets tries of a target begin.
pub trait Gate: Send + Sync {
    /// Waits until a try may begin that uses these tokens at most. Dropping the future takes the question back.
    fn enter(&self, tokens: u64) -> BoxFuture<'_, Result<Box<dyn Pass>, CallError>>;
}

/// A try under way. Dropped without its end, it counts as what it might have used.
pub trait Pass: Send {
    /// The try has ended and used these tokens.
    fn end(self: Box<Self>, tokens: u64);
}

/// Waits until a try may begin, and returns how long it took. None if nothing limits the target.
pub(super) async fn enter(
    target: &Target,
    request: &Request,
    clock: &dyn Clock,
) -> Result<Option<(Box<dyn Pass>, Duration)>, CallError> {
    let Some(gate) = &target.gate else { return Ok(None) };
    let output = request.max_tokens.or(target.output_tokens_max).map_or(OUTPUT_ASSUMED, u64::from);
    let began = clock.monotonic();
    let pass = gate.enter(input(request).saturating_add(output)).await?;
    Ok(Some((pass, clock.monotonic().saturating_sub(began))))
}

/// The tokens of an answered request: those that the answer reports, or an estimate.
pub(super) fn used(request: &Request, answer: &Answer) -> u64 {
    let usage = answer.usage;
    let read = if usage.input > 0 { usage.input } else { input(request) };
    let message = || Message { role: Role::Assistant, parts: answer.parts.clone() };
    let text = || input(&Request { messages: vec![message()].into(), ..Request::default() });
    // Vectors and scores are no tokens.
    let is_counted = usage.output > 0 || request.task != ModelTask::Chat;
    read.saturating_add(if is_counted { usage.output } else { text() })
}

/// The tokens of a request. A third more than the usual estimate, because some texts have more tokens.
fn input(request: &Request) -> u64 {
    let parts = request.messages.iter().flat_map(|message| &message.parts);
    let images = parts.filter(|part| matches!(part, Part::Image(_))).count() as u64;
    (estimate::request(request) * 4).div_ceil(3) + images * IMAGE_TOKENS
}
