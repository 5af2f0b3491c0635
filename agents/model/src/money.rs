//! Amounts of money. Nothing here uses floating-point numbers: replicas and invoices must agree to the last digit.

use std::fmt;
use std::ops::AddAssign;
use std::str::FromStr;

use serde::de::{Deserializer, Unexpected, Visitor};
use serde::{Deserialize, Serialize, Serializer};

/// Billionths in a dollar.
pub const NANODOLLARS_PER_DOLLAR: u64 = 1_000_000_000;

/// The most dollars that a text can have: more is a typing error.
const DOLLARS_MAX: u64 = 1_000_000_000;

/// An amount in billionths of a US dollar. Sums stop at the largest amount instead of overflowing.
///
/// ```
/// use atlas_model::NanoDollars;
///
/// let amount: NanoDollars = "0.40".parse().unwrap();
/// assert_eq!(amount, NanoDollars(400_000_000));
/// assert_eq!(amount.to_string(), "0.40");
/// assert_eq!(NanoDollars(2_758_650).to_string(), "0.00275865");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Hash)]
pub struct NanoDollars(pub u64);

/// Why a text is no amount.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AmountError {
    /// It has other characters than digits and one point, or it begins or ends with the point.
    #[error("an amount is a decimal number such as 0.40")]
    Malformed,
    /// It has more than nine digits after the point.
    #[error("an amount has at most 9 digits after the point")]
    TooFine,
    /// It is more than a billion dollars.
    #[error("an amount is at most {DOLLARS_MAX} dollars")]
    TooLarge,
}

impl NanoDollars {
    /// Dollars with 1 to 9 digits after the point, rounded half up, for people. An amount that has only zeros there has two digits more
    /// than it has zeros: what costs something is not shown as nothing.
    ///
    /// ```
    /// use atlas_model::NanoDollars;
    ///
    /// assert_eq!(NanoDollars(635_200).rounded(4), "0.0006");
    /// assert_eq!(NanoDollars(42_400).rounded(4), "0.000042");
    /// assert_eq!(NanoDollars(0).rounded(4), "0.0000");
    /// ```
    pub fn rounded(self, digits: u32) -> String {
        let digits = digits.clamp(1, 9);
        // The place of its first digit after the point.
        let first = self.0.checked_ilog10().map_or(0, |power| 9_u32.saturating_sub(power));
        let digits = if first > digits { (first + 1).min(9) } else { digits };
        let unit = 10_u64.pow(9 - digits);
        let units = self.0 / unit + u64::from(self.0 % unit >= unit.div_ceil(2) && unit > 1);
        let per_dollar = 10_u64.pow(digits);
        format!("{}.{:0width$}", units / per_dollar, units % per_dollar, width = digits as usize)
    }
}

impl AddAssign for NanoDollars {
    fn add_assign(&mut self, other: Self) {
        self.0 = self.0.saturating_add(other.0);
    }
}

impl FromStr for NanoDollars {
    type Err = AmountError;

    /// Reads dollars, such as `3`, `0.40` or `0.000000001`.
    fn from_str(text: &str) -> Result<Self, AmountError> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
        let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        if !is_digits(whole) || !is_digits(fraction) {
            return Err(AmountError::Malformed);
        }
        if fraction.len() > 9 {
            return Err(AmountError::TooFine);
        }
        // Only the length can make it fail.
        let dollars: u64 = whole.parse().map_err(|_| AmountError::TooLarge)?;
        let nanos: u64 = format!("{fraction:0<9}").parse().map_err(|_| AmountError::Malformed)?;
        if dollars > DOLLARS_MAX || (dollars == DOLLARS_MAX && nanos > 0) {
            return Err(AmountError::TooLarge);
        }
        Ok(Self(dollars * NANODOLLARS_PER_DOLLAR + nanos))
    }
}

/// Dollars with at least two digits after the point, and as many more as the amount needs.
impl fmt::Display for NanoDollars {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = format!("{:09}", self.0 % NANODOLLARS_PER_DOLLAR);
        let kept = nanos.trim_end_matches('0').len().max(2);
        write!(f, "{}.{}", self.0 / NANODOLLARS_PER_DOLLAR, &nanos[..kept])
    }
}

/// Written as the text that [`FromStr`] reads.
impl Serialize for NanoDollars {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Read from text or from whole dollars. A fraction that is a JSON number is refused: it has no exact value.
impl<'de> Deserialize<'de> for NanoDollars {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AmountVisitor)
    }
}

struct AmountVisitor;

impl Visitor<'_> for AmountVisitor {
    type Value = NanoDollars;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("dollars as a decimal text such as \"0.40\", or as an integer")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<NanoDollars, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_u64<E: serde::de::Error>(self, dollars: u64) -> Result<NanoDollars, E> {
        dollars.to_string().parse().map_err(E::custom)
    }

    fn visit_i64<E: serde::de::Error>(self, dollars: i64) -> Result<NanoDollars, E> {
        let dollars = u64::try_from(dollars).map_err(|_| E::invalid_value(Unexpected::Signed(dollars), &self))?;
        self.visit_u64(dollars)
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn texts() {
        let texts = [
            "0",
            "3",
            "0.40",
            "00.4",
            "0.000000001",
            "1000000000",
            "1000000000.000000001",
            "1000000001",
            "99999999999999999999999",
            "0.0000000001",
            "",
            ".",
            ".5",
            "5.",
            "-1",
            "+1",
            "1e3",
            "1,5",
            " 1",
            "1.2.3",
            "٣",
        ];
        let line = |text: &str| match text.parse::<NanoDollars>() {
            Ok(amount) => format!("{text:?} → {} ({amount})\n", amount.0),
            Err(error) => format!("{text:?} ! {error}\n"),
        };
        expect![[r#"
            "0" → 0 (0.00)
            "3" → 3000000000 (3.00)
            "0.40" → 400000000 (0.40)
            "00.4" → 400000000 (0.40)
            "0.000000001" → 1 (0.000000001)
            "1000000000" → 1000000000000000000 (1000000000.00)
            "1000000000.000000001" ! an amount is at most 1000000000 dollars
            "1000000001" ! an amount is at most 1000000000 dollars
            "99999999999999999999999" ! an amount is at most 1000000000 dollars
            "0.0000000001" ! an amount has at most 9 digits after the point
            "" ! an amount is a decimal number such as 0.40
            "." ! an amount is a decimal number such as 0.40
            ".5" ! an amount is a decimal number such as 0.40
            "5." ! an amount is a decimal number such as 0.40
            "-1" ! an amount is a decimal number such as 0.40
            "+1" ! an amount is a decimal number such as 0.40
            "1e3" ! an amount is a decimal number such as 0.40
            "1,5" ! an amount is a decimal number such as 0.40
            " 1" ! an amount is a decimal number such as 0.40
            "1.2.3" ! an amount is a decimal number such as 0.40
            "٣" ! an amount is a decimal number such as 0.40
        "#]]
        .assert_eq(&texts.into_iter().map(line).collect::<String>());
    }

    #[test]
    fn json() {
        let read = |text: &str| serde_json::from_str::<NanoDollars>(text).map_err(|error| error.to_string());
        assert_eq!(read("\"0.15\""), Ok(NanoDollars(150_000_000)));
        assert_eq!(read("3"), Ok(NanoDollars(3_000_000_000)));
        assert_eq!(serde_json::to_string(&NanoDollars(150_000_000)).expect("text"), "\"0.15\"");
        for wrong in ["0.15", "-3", "null", "[]", "\"x\"", "18446744073709551615"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn shown_amounts_are_rounded() {
        let shown = |nanos: u64, digits: u32| NanoDollars(nanos).rounded(digits);
        assert_eq!(
            [shown(49_999, 4), shown(50_000, 4), shown(149_999, 4), shown(999_950_000, 4), shown(u64::MAX, 9)],
            ["0.000050", "0.000050", "0.0001", "1.0000", "18446744073.709551615"]
        );
        assert_eq!((shown(15, 0), shown(15, 12)), ("0.000000015".to_owned(), "0.000000015".to_owned()));
        assert_eq!(
            [1, 15, 1_249, 42_000].map(|nanos| shown(nanos, 4)),
            ["0.000000001", "0.000000015", "0.0000012", "0.000042"]
        );
        assert_eq!((shown(0, 4), shown(99_999, 4)), ("0.0000".to_owned(), "0.000100".to_owned()));
    }

    proptest! {
        #[test]
        fn printed_amounts_are_read_again(nanos in 0..=DOLLARS_MAX * NANODOLLARS_PER_DOLLAR) {
            prop_assert_eq!(NanoDollars(nanos).to_string().parse(), Ok(NanoDollars(nanos)));
        }

        #[test]
        fn any_text_is_answered(text in ".{0,40}") {
            let _answer = text.parse::<NanoDollars>();
        }

        #[test]
        fn sums_stop_at_the_largest_amount(a: u64, b: u64) {
            let mut sum = NanoDollars(a);
            sum += NanoDollars(b);
            prop_assert_eq!(sum.0, a.saturating_add(b));
        }
    }
}
