//! Whether the next call fits into what is left of a budget.

use atlas_model::{Answer, ModelTask, NanoDollars, Part, Prices, Request, Usage};

use crate::Settings;

/// The assumed limit of an answer under a budget, if the settings have none. The request then states it.
pub(crate) const OUTPUT_ASSUMED: u32 = 4_096;

/// The tokens that an image counts in an estimate.
const IMAGE_TOKENS: u64 = 1_600;

/// What a request may cost at most, whichever model of the settings answers; none if the price of one of them is unknown. A request that
/// does not limit its answer gets a limit, because it is sent under a budget.
pub fn cost_max(settings: &Settings, request: &mut Request) -> Option<NanoDollars> {
    let output = u64::from(*request.max_tokens.get_or_insert(OUTPUT_ASSUMED));
    let input = estimate(request);
    let costs = prices(settings).map(|prices| prices.map(|prices| prices.cost_max(input, output)));
    costs.collect::<Option<Vec<_>>>()?.into_iter().max()
}

/// The prices of all models that may answer.
fn prices(settings: &Settings) -> impl Iterator<Item = Option<Prices>> {
    std::iter::once(settings.prices).chain(settings.fallback_prices.iter().copied())
}

/// What an answer of the model at a place among those of the settings costs; nothing if that has no price.
pub fn cost(settings: &Settings, place: usize, usage: &Usage) -> NanoDollars {
    prices(settings).nth(place).flatten().map_or(NanoDollars(0), |prices| prices.cost(usage))
}

/// What an answer used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CountedUsage {
    pub usage: Usage,
    /// Whether a part of it is an estimate.
    pub estimated: bool,
}

/// What an answer to a request used: what it reports, or under a budget an estimate of what it does not report. Without that a model whose
/// server counts nothing would spend nothing.
pub fn used(settings: &Settings, request: impl FnOnce() -> Request, answer: &Answer) -> CountedUsage {
    let mut usage = answer.usage;
    let costs = |prices: Prices| prices.input != NanoDollars(0) || prices.output != NanoDollars(0);
    let counts = settings.judged && settings.limits.budget.is_some() && prices(settings).flatten().any(costs);
    if !counts || usage.input > 0 && usage.output > 0 {
        return CountedUsage { usage, estimated: false };
    }
    let request = request();
    if usage.input == 0 {
        usage.input = estimate(&request);
    }
    // Vectors and scores are no tokens.
    if usage.output == 0 && request.task == ModelTask::Chat {
        usage.output = answer.parts.iter().map(tokens).sum();
    }
    CountedUsage { usage, estimated: usage != answer.usage }
}

/// An estimate of a request's tokens from its size: three bytes a token, more than most texts have.
pub(crate) fn estimate(request: &Request) -> u64 {
    let parts = request.messages.iter().flat_map(|message| &message.parts);
    let tools =
        request.tools.iter().map(|tool| tool.name.len() + tool.description.len() + tool.input_schema.to_string().len());
    let text = request.system.len() + tools.sum::<usize>();
    (text as u64).div_ceil(3) + parts.map(tokens).sum::<u64>()
}

fn tokens(part: &Part) -> u64 {
    let bytes = match part {
        Part::Text { text } => text.len(),
        Part::Image(_) => return IMAGE_TOKENS,
        Part::ToolCall(call) => call.name.len() + call.arguments.to_string().len(),
        Part::ToolResult(result) => result.content.len(),
        Part::Reasoning { text, opaque } => text.len() + opaque.to_string().len(),
    };
    (bytes as u64).div_ceil(3)
}

/// An amount for people: `$0.0060`.
pub(crate) fn dollars(amount: NanoDollars) -> String {
    format!("${}", amount.rounded(4))
}
