//! The rule of an answer's length: `len(input) >= 3`.

/// A rule that compares the length of a text, in characters, with a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LengthRule {
    comparison: Comparison,
    than: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Above,
    AtLeast,
    Below,
    AtMost,
    Equal,
}

/// Why a text is not a rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{text}\" is not a rule: write \"len(input)\", one of >, >=, <, <= and ==, and a number from 0")]
pub struct LengthRuleError {
    /// The beginning of the text.
    pub text: String,
}

/// Characters of a refused text in the error.
const SHOWN_MAX: usize = 100;

impl LengthRule {
    /// Parses a rule. Spaces around its three parts do not count.
    ///
    /// ```
    /// let rule = atlas_graph::LengthRule::parse("len(input) >= 3").expect("a rule");
    /// assert!(rule.holds("日本語") && !rule.holds("no"));
    /// ```
    pub fn parse(text: &str) -> Result<Self, LengthRuleError> {
        Self::read(text).ok_or_else(|| LengthRuleError { text: text.chars().take(SHOWN_MAX).collect() })
    }

    fn read(text: &str) -> Option<Self> {
        // A longer comparison before the one that it begins with.
        const COMPARISONS: [(&str, Comparison); 5] = [
            (">=", Comparison::AtLeast),
            ("<=", Comparison::AtMost),
            ("==", Comparison::Equal),
            (">", Comparison::Above),
            ("<", Comparison::Below),
        ];
        let rest = text.trim().strip_prefix("len(input)")?.trim_start();
        let (comparison, number) =
            COMPARISONS.iter().find_map(|(sign, comparison)| Some((*comparison, rest.strip_prefix(sign)?)))?;
        let number = number.trim();
        let digits = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| number.parse().ok()).flatten().map(|than| Self { comparison, than })
    }

    /// Whether a text obeys the rule.
    pub fn holds(self, text: &str) -> bool {
        let length = u64::try_from(text.chars().count()).unwrap_or(u64::MAX);
        match self.comparison {
            Comparison::Above => length > self.than,
            Comparison::AtLeast => length >= self.than,
            Comparison::Below => length < self.than,
            Comparison::AtMost => length <= self.than,
            Comparison::Equal => length == self.than,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(rule: &str, text: &str, expected: Option<bool>) {
        assert_eq!(LengthRule::parse(rule).ok().map(|rule| rule.holds(text)), expected, "{rule}");
    }

    #[test]
    fn lengths_are_compared_in_characters() {
        check("len(input) > 2", "abc", Some(true));
        check("len(input)>3", "abc", Some(false));
        check("  len(input)   >=   3  ", "abc", Some(true));
        check("len(input) < 3", "abc", Some(false));
        check("len(input) <= 3", "abc", Some(true));
        check("len(input) == 2", "é日", Some(true));
        check("len(input) == 0", "", Some(true));
    }

    #[test]
    fn everything_else_is_refused() {
        for rule in [
            "",
            "len(input)",
            "len(input) >",
            "len(input) => 3",
            "len(input) = 3",
            "len(input) === 3",
            "len(input) != 3",
            "len(input) > -1",
            "len(input) > +1",
            "len(input) > 1.5",
            "len(input) > 1 and len(input) < 3",
            "len(input) > 18446744073709551616",
            "len(output) > 1",
            "len(input ) > 1",
            "matches(input, 'a')",
            "3 < len(input)",
        ] {
            check(rule, "abc", None);
        }
        let error = LengthRule::parse(&"x".repeat(1000)).expect_err("no rule").to_string();
        assert!(error.len() < 300, "{error}");
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(rule in "(len\\(input\\))?[ ><=]{0,3}\\PC{0,20}", text in "\\PC{0,20}") {
            if let Ok(rule) = LengthRule::parse(&rule) {
                rule.holds(&text);
            }
        }
    }
}
