//! The weight of a pattern: the maximum cost per byte of text.
//!
//! Matching takes time proportional to the text multiplied by the expanded pattern: `(a|b)*a(a|b){5000}` keeps five
//! thousand positions of the pattern active at every byte. The weight is the number of positions of the expanded
//! pattern; the
//! contents of classes do not matter.

/// Maximum length of a count between braces.
const COUNT_CHARS_MAX: usize = 64;

/// The number of positions of the expanded pattern; nested counts multiply.
pub(super) fn of(pattern: &str) -> u64 {
    let (mut group, mut around) = (Group::default(), Vec::new());
    let mut chars = pattern.chars().peekable();
    while let Some(found) = chars.next() {
        match found {
            '(' => around.push(std::mem::take(&mut group)),
            ')' => {
                // An unmatched parenthesis is refused elsewhere.
                let inner = std::mem::replace(&mut group, around.pop().unwrap_or_default());
                group.place(inner.places.max(1));
            }
            '[' => {
                class(&mut chars);
                group.place(1);
            }
            '\\' => {
                chars.next();
                group.place(1);
            }
            '{' => {
                // The search is bounded: in a pattern of many open braces, each would otherwise be searched to the end.
                let text: String = chars.clone().take(COUNT_CHARS_MAX).take_while(|&c| c != '}').collect();
                match most(&text) {
                    Some(times) => {
                        chars.nth(text.chars().count());
                        group.repeat(times);
                    }
                    // A brace without a count is a literal character.
                    None => group.place(1),
                }
            }
            '*' | '+' | '?' | '|' | '^' | '$' => {}
            _ => group.place(1),
        }
    }
    around.iter().fold(group.places, |sum, group| sum.saturating_add(group.places)).max(1)
}

#[derive(Default)]
struct Group {
    places: u64,
    /// The positions of the last element, which a following count repeats.
    last: u64,
}

impl Group {
    fn place(&mut self, places: u64) {
        self.places = self.places.saturating_add(places);
        self.last = places;
    }

    fn repeat(&mut self, times: u64) {
        let repeated = self.last.saturating_mul(times.max(1));
        self.places = (self.places - self.last.min(self.places)).saturating_add(repeated);
        self.last = repeated;
    }
}

/// Skips to the end of a class; a `]` directly after its start is a literal.
fn class(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    chars.next_if_eq(&'^');
    chars.next_if_eq(&']');
    while let Some(found) = chars.next() {
        match found {
            ']' => return,
            '\\' => {
                chars.next();
            }
            _ => {}
        }
    }
}

/// The maximum number of repetitions of `3`, `3,` or `3,7` between braces.
fn most(text: &str) -> Option<u64> {
    let (least, most) = text.split_once(',').unwrap_or((text, text));
    let number = |text: &str| match text {
        "" => Some(0),
        text if text.bytes().all(|byte| byte.is_ascii_digit()) => Some(text.parse().unwrap_or(u64::MAX)),
        _ => None,
    };
    (!text.is_empty()).then(|| Some(number(least)?.max(number(most)?))).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_counted_written_out() {
        for (pattern, places) in [
            ("", 1),
            (r"^\S+$", 1),
            ("^[a-z0-9_-]{3,16}$", 16),
            ("(a|b)*a(a|b){500}", 1_003),
            ("((a{10}){10}){10}", 1_000),
            ("[]a{5}]{4}", 4),
            (r"a{b}\{3}", 7),
            ("a{2,}b", 3),
            ("(a{99999999999999999999999}){9}", u64::MAX),
        ] {
            assert_eq!(of(pattern), places, "{pattern}");
        }
    }

    #[test]
    fn a_pattern_of_braces_is_read_once() {
        assert_eq!(of(&"{".repeat(250_000)), 250_000);
    }
}
