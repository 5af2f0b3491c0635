//! The weight of a pattern: the maximum cost per byte of text.
//!
//! Patterns run in linear time, but linear in the text times the pattern written out: `(a|b)*a(a|b){5000}` keeps five
//! thousand positions of the pattern active at every byte. The weight is the number of positions of a match; the
//! contents of classes do not matter.

/// Longest text between braces that can be a count.
const COUNT_CHARS_MAX: usize = 64;

/// Places of the pattern written out; counts nest and multiply.
pub(super) fn of(pattern: &str) -> u64 {
    let (mut group, mut around) = (Group::default(), Vec::new());
    let mut chars = pattern.chars().peekable();
    while let Some(found) = chars.next() {
        match found {
            '(' => around.push(std::mem::take(&mut group)),
            ')' => {
                // One that closes nothing is refused elsewhere.
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
                // Not to the end of the pattern: one of braces alone would be read again for each.
                let text: String = chars.clone().take(COUNT_CHARS_MAX).take_while(|&c| c != '}').collect();
                match most(&text) {
                    Some(times) => {
                        chars.nth(text.chars().count());
                        group.repeat(times);
                    }
                    // A brace that counts nothing is a character.
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
    /// The last part of them: what a count behind it repeats.
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

/// Skips to the end of a class; a bracket right behind its beginning is one of its characters.
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

/// The most repetitions that `3`, `3,` or `3,7` between braces asks for.
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
