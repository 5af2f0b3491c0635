//! Prices of tokens, and what a call costs by them.

use serde::{Deserialize, Serialize};

use crate::{NanoDollars, Usage};

/// Tokens for which a price is given.
const TOKENS_PER_PRICE: u128 = 1_000_000;

/// Prices in dollars per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prices {
    /// Of tokens that the model reads.
    pub input: NanoDollars,
    /// Of tokens that it writes, reasoning included.
    pub output: NanoDollars,
    /// Of tokens that come from the provider's cache. None: as `input`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<NanoDollars>,
    /// Of tokens that are written to the provider's cache. None: as `input`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<NanoDollars>,
}

impl Prices {
    /// What a call costs.
    ///
    /// The exact products are added first, and the sum is rounded up to a whole nano-dollar: the sum over calls is never less than
    /// the exact price. A usage that counts more cached tokens than input tokens is charged for the cached tokens. The result
    /// stops at the largest amount.
    pub fn cost(&self, usage: &Usage) -> NanoDollars {
        let cached = usage.cache_read.saturating_add(usage.cache_write);
        let fresh = usage.input.saturating_sub(cached);
        let parts = [
            (fresh, self.input),
            (usage.cache_read, self.cache_read.unwrap_or(self.input)),
            (usage.cache_write, self.cache_write.unwrap_or(self.input)),
            (usage.output, self.output),
        ];
        let sum = parts.into_iter().fold(0_u128, |sum, (tokens, price)| {
            sum.saturating_add(u128::from(tokens).saturating_mul(u128::from(price.0)))
        });
        NanoDollars(u64::try_from(sum.div_ceil(TOKENS_PER_PRICE)).unwrap_or(u64::MAX))
    }

    /// The most that a call can cost which reads at most `input` and writes at most `output` tokens, however it is cached.
    pub fn cost_max(&self, input: u64, output: u64) -> NanoDollars {
        let dearest = [Some(self.input), self.cache_read, self.cache_write].into_iter().flatten().max();
        let prices = Self { input: dearest.unwrap_or(self.input), cache_read: None, cache_write: None, ..*self };
        prices.cost(&Usage { input, output, ..Usage::default() })
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use proptest::prelude::*;

    use super::*;

    fn prices(text: &str) -> Prices {
        serde_json::from_str(text).expect("prices")
    }

    fn usage([input, output, cache_read, cache_write]: [u64; 4]) -> Usage {
        Usage { input, output, cache_read, cache_write, reasoning: 0 }
    }

    #[test]
    fn calls() {
        let plain = prices(r#"{"input":"0.40","output":"1.60"}"#);
        let cached = prices(r#"{"input":3,"output":15,"cache_read":"0.30","cache_write":"3.75"}"#);
        let fine = prices(r#"{"input":"0.0001","output":"0.000000001"}"#);
        let line = |name: &str, prices: &Prices, tokens: [u64; 4]| {
            format!("{name} {tokens:?} {}\n", prices.cost(&usage(tokens)))
        };
        let lines = [
            line("plain", &plain, [1_204, 96, 0, 0]),
            line("plain", &plain, [1_000_000, 1_000_000, 400_000, 100_000]),
            line("cached", &cached, [1_000, 100, 800, 150]),
            line("cached, more than the input", &cached, [10, 0, 800, 0]),
            line("rounded up", &fine, [1, 1, 0, 0]),
            line("rounded up once", &fine, [10, 10, 0, 0]),
            line("nothing", &cached, [0; 4]),
            line("the largest", &cached, [u64::MAX; 4]),
        ];
        expect![[r#"
            plain [1204, 96, 0, 0] 0.0006352
            plain [1000000, 1000000, 400000, 100000] 2.00
            cached [1000, 100, 800, 150] 0.0024525
            cached, more than the input [10, 0, 800, 0] 0.00024
            rounded up [1, 1, 0, 0] 0.000000001
            rounded up once [10, 10, 0, 0] 0.000000002
            nothing [0, 0, 0, 0] 0.00
            the largest [18446744073709551615, 18446744073709551615, 18446744073709551615, 18446744073709551615] 18446744073.709551615
        "#]]
        .assert_eq(&lines.concat());
    }

    fn any_prices() -> impl Strategy<Value = Prices> {
        let price = || (0_u64..=100_000_000_000).prop_map(NanoDollars);
        (price(), price(), prop::option::of(price()), prop::option::of(price()))
            .prop_map(|(input, output, cache_read, cache_write)| Prices { input, output, cache_read, cache_write })
    }

    fn any_usage(most: u64) -> impl Strategy<Value = Usage> {
        (0..=most, 0..=most, 0..=most, 0..=most).prop_map(|(fresh, output, read, write)| Usage {
            input: fresh + read + write,
            output,
            cache_read: read,
            cache_write: write,
            reasoning: 0,
        })
    }

    proptest! {
        #[test]
        fn a_sum_of_calls_is_at_least_the_price_of_all_and_hardly_more(
            prices in any_prices(), calls in prop::collection::vec(any_usage(1_000_000), 0..20),
        ) {
            let (mut sum, mut all) = (NanoDollars(0), Usage::default());
            for call in &calls {
                sum += prices.cost(call);
                all += *call;
            }
            let together = prices.cost(&all);
            prop_assert!(sum >= together);
            prop_assert!(sum.0 - together.0 <= calls.len() as u64);
        }

        #[test]
        fn more_tokens_never_cost_less(prices in any_prices(), a in any_usage(1 << 40), b in any_usage(1 << 40)) {
            let mut both = a;
            both += b;
            prop_assert!(prices.cost(&both) >= prices.cost(&a));
        }

        #[test]
        fn no_call_costs_more_than_its_bound(prices in any_prices(), call in any_usage(1 << 40)) {
            prop_assert!(prices.cost(&call) <= prices.cost_max(call.input, call.output));
        }

        #[test]
        fn any_usage_has_a_cost(prices in any_prices(), input: u64, output: u64, cache_read: u64, cache_write: u64) {
            prices.cost(&Usage { input, output, cache_read, cache_write, reasoning: 0 });
        }

        #[test]
        fn written_prices_are_read_again(prices in any_prices()) {
            let text = serde_json::to_string(&prices).expect("text");
            prop_assert_eq!(serde_json::from_str::<Prices>(&text).expect("prices"), prices);
        }
    }
}
