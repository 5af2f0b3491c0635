//! The embedded list of prices by model and day, and lists of the same form that replace it.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use crate::{Day, Prices};

/// Most bytes of a list.
pub const PRICE_LIST_BYTES_MAX: usize = 1024 * 1024;

/// The format of lists that this program reads.
const VERSION: u32 = 1;

/// The list that this program was built with.
static EMBEDDED: LazyLock<PriceList> = LazyLock::new(|| {
    // A test reads the file, so it can only be empty here if that test was skipped.
    PriceList::read(include_bytes!("../data/prices.json")).unwrap_or_default()
});

/// Prices of known models, each from a day on.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PriceList {
    version: u32,
    /// The code of the currency.
    currency: String,
    /// Tokens for which the prices are.
    tokens: u64,
    rows: Vec<PriceRow>,
}

/// The prices of some models from a day on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PriceRow {
    /// Who offers them, as in [`Provider`](crate::Provider).
    pub provider: String,
    /// The ids that the provider knows them by.
    pub models: Vec<String>,
    /// The first day of these prices.
    pub from: Day,
    /// The prices of a request of usual length. Surcharges for very long requests are not listed.
    #[serde(flatten)]
    pub prices: Prices,
}

/// Why bytes are no list of prices.
#[derive(Debug, thiserror::Error)]
pub enum PriceListError {
    /// It is too large.
    #[error("the price list is larger than {PRICE_LIST_BYTES_MAX} bytes")]
    TooLarge,
    /// It is not JSON of this form.
    #[error("the price list cannot be read")]
    Malformed(#[source] serde_json::Error),
    /// It is of another version, currency or number of tokens.
    #[error("the price list is not of version {VERSION}, in USD for 1000000 tokens")]
    Unsupported,
}

impl PriceList {
    /// The list that this program was built with.
    pub fn embedded() -> &'static Self {
        &EMBEDDED
    }

    /// Reads a list of the same form as the embedded one.
    pub fn read(json: &[u8]) -> Result<Self, PriceListError> {
        if json.len() > PRICE_LIST_BYTES_MAX {
            return Err(PriceListError::TooLarge);
        }
        let list: Self = serde_json::from_slice(json).map_err(PriceListError::Malformed)?;
        let is_supported = list.version == VERSION && list.currency == "USD" && list.tokens == 1_000_000;
        if is_supported { Ok(list) } else { Err(PriceListError::Unsupported) }
    }

    /// All rows in the order of the file.
    pub fn rows(&self) -> &[PriceRow] {
        &self.rows
    }

    /// The row of a model, by the id that its provider knows it by, on a day: the latest that had begun, or the first one for a day
    /// before all of them. Ids are compared as a whole; a model that is not listed has no price.
    pub fn row(&self, model: &str, day: Day) -> Option<&PriceRow> {
        let of_model = || self.rows.iter().filter(|row| row.models.iter().any(|id| id == model));
        let begun = of_model().filter(|row| row.from <= day).max_by_key(|row| row.from);
        begun.or_else(|| of_model().min_by_key(|row| row.from))
    }

    /// The prices of a model on a day.
    pub fn prices(&self, model: &str, day: Day) -> Option<Prices> {
        self.row(model, day).map(|row| row.prices)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::{NanoDollars, Provider};

    fn day(text: &str) -> Day {
        text.parse().expect("a day")
    }

    #[test]
    fn the_embedded_list_is_read() {
        let list = PriceList::read(include_bytes!("../data/prices.json")).expect("a list");
        assert_eq!(&list, PriceList::embedded());
        let providers = Provider::ALL.map(Provider::as_str);
        let mut seen = BTreeSet::new();
        for row in list.rows() {
            assert!(providers.contains(&row.provider.as_str()), "{}", row.provider);
            assert!(!row.models.is_empty());
            let prices = &row.prices;
            assert!(prices.cache_read.is_none_or(|price| price < prices.input), "{:?}", row.models);
            assert!(prices.cache_write.is_none_or(|price| price > prices.input), "{:?}", row.models);
            for model in &row.models {
                assert!(seen.insert((model.clone(), row.from)), "{model} has two rows from {}", row.from);
            }
        }
    }

    #[test]
    fn the_day_decides() {
        let list = PriceList::embedded();
        let input = |model: &str, on: &str| list.prices(model, day(on)).map(|prices| prices.input);
        let dollars = |amount: u64| Some(NanoDollars(amount * 1_000_000_000));
        assert_eq!(input("o3", "2025-06-09"), dollars(10));
        assert_eq!(input("o3", "2025-06-10"), dollars(2));
        assert_eq!(input("o3", "9999-12-31"), dollars(2));
        assert_eq!(input("o3", "2001-01-01"), dollars(10));
        assert_eq!(input("o3-unheard-of", "2025-06-10"), None);
        assert_eq!(input("O3", "2025-06-10"), None);
        assert_eq!(input("", "2025-06-10"), None);
    }

    #[test]
    fn other_lists_are_refused() {
        let list = |version: u32, currency: &str, tokens: u64| {
            format!(r#"{{"version":{version},"currency":"{currency}","tokens":{tokens},"rows":[]}}"#)
        };
        assert!(PriceList::read(list(1, "USD", 1_000_000).as_bytes()).is_ok());
        for wrong in [list(2, "USD", 1_000_000), list(1, "EUR", 1_000_000), list(1, "USD", 1_000)] {
            assert!(matches!(PriceList::read(wrong.as_bytes()), Err(PriceListError::Unsupported)), "{wrong}");
        }
        assert!(matches!(PriceList::read(b"{"), Err(PriceListError::Malformed(_))));
        let large = vec![b' '; PRICE_LIST_BYTES_MAX + 1];
        assert!(matches!(PriceList::read(&large), Err(PriceListError::TooLarge)));
    }
}
