//! The cost that Atlas for Python shows in traces: a fixed table of seven models, without prices for caches. Everything else uses
//! [`Prices`](crate::Prices) of the model or of the [price list](crate::PriceList).

use crate::{NanoDollars, Prices, Usage};

/// Models with their prices for input and output, in thousandths of a dollar per million tokens.
const TABLE: [(&str, u64, u64); 7] = [
    ("claude-3-haiku-20240307", 250, 1_250),
    ("claude-3-5-haiku-20241022", 800, 4_000),
    ("claude-3-5-sonnet-20241022", 3_000, 15_000),
    ("claude-sonnet-4-20250514", 3_000, 15_000),
    ("claude-opus-4-20250514", 15_000, 75_000),
    ("gpt-4o-mini", 150, 600),
    ("gpt-4o", 2_500, 10_000),
];

const NANODOLLARS_PER_THOUSANDTH: u64 = 1_000_000;

/// The cost of tokens by the table. A model that is not in it costs nothing.
///
/// ```
/// use atlas_model::{NanoDollars, compatible_cost};
///
/// assert_eq!(compatible_cost("gpt-4o-mini", 123, 4_567), NanoDollars(2_758_650));
/// assert_eq!(compatible_cost("another", 123, 4_567), NanoDollars(0));
/// ```
pub fn compatible_cost(model: &str, input_tokens: u64, output_tokens: u64) -> NanoDollars {
    let Some((_, input, output)) = TABLE.into_iter().find(|(name, ..)| *name == model) else {
        return NanoDollars(0);
    };
    let price = |thousandths: u64| NanoDollars(thousandths * NANODOLLARS_PER_THOUSANDTH);
    let prices = Prices { input: price(input), output: price(output), cache_read: None, cache_write: None };
    prices.cost(&Usage { input: input_tokens, output: output_tokens, ..Usage::default() })
}
