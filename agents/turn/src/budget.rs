//! What calls cost, and whether the next one fits into what is left.

use atlas_model::{Part, Request, Usage};
use serde::{Deserialize, Serialize};

/// Prices of a model, in billionths of a dollar per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Prices {
    pub input: u64,
    pub output: u64,
    /// Of input tokens that come from the provider's cache.
    pub cache_read: u64,
    /// Of input tokens that are written to the provider's cache.
    pub cache_write: u64,
}

impl Prices {
    /// The price of a usage in billionths of a dollar, rounded up.
    pub fn cost(&self, usage: &Usage) -> u64 {
        let cached = usage.cache_read.saturating_add(usage.cache_write);
        let parts = [
            (usage.input.saturating_sub(cached), self.input),
            (usage.cache_read, self.cache_read),
            (usage.cache_write, self.cache_write),
            (usage.output, self.output),
        ];
        let product = |(tokens, price): (u64, u64)| u128::from(tokens) * u128::from(price);
        // Four products of 64-bit numbers can exceed 128 bits.
        let total = parts.into_iter().map(product).fold(0_u128, u128::saturating_add);
        u64::try_from(total.div_ceil(1_000_000)).unwrap_or(u64::MAX)
    }
}

/// The assumed limit of an answer under a budget, if the settings have none. The request then states it.
pub(crate) const OUTPUT_ASSUMED: u32 = 4_096;

/// The tokens that an image counts in an estimate.
const IMAGE_TOKENS: u64 = 1_600;

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
pub(crate) fn dollars(nanodollars: u64) -> String {
    let shown = nanodollars.div_ceil(100_000);
    format!("${}.{:04}", shown / 10_000, shown % 10_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_rounded_up_and_do_not_overflow() {
        let prices =
            Prices { input: 400_000_000, output: 1_600_000_000, cache_read: 40_000_000, cache_write: 500_000_000 };
        let usage = Usage { input: 1_204, output: 96, ..Usage::default() };
        assert_eq!(prices.cost(&usage), 481_600 + 153_600);
        let cached = Usage { input: 10, cache_read: 4, cache_write: 3, ..Usage::default() };
        assert_eq!(prices.cost(&cached), 3 * 400 + 4 * 40 + 3 * 500);
        let one = Prices { input: 1, ..Prices::default() };
        assert_eq!(one.cost(&Usage { input: 1, ..Usage::default() }), 1);
        let all = Prices { input: u64::MAX, output: u64::MAX, cache_read: u64::MAX, cache_write: u64::MAX };
        assert_eq!(all.cost(&Usage { input: u64::MAX, output: u64::MAX, ..Usage::default() }), u64::MAX);
        assert_eq!((dollars(635_200), dollars(1_000_000_000)), ("$0.0007".to_owned(), "$1.0000".to_owned()));
    }
}
