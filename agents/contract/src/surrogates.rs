//! Halves of surrogate pairs in JSON texts.
//!
//! A program that cuts a text within a character leaves `"\ud83d"`: valid JSON, but no Unicode. Many readers refuse it, so a text that is
//! passed on as it is gets U+FFFD in its place, once, where it comes in.

/// A text with U+FFFD instead of each half.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MendedText {
    /// The text.
    pub text: Vec<u8>,
    /// How many halves there were.
    pub halves: usize,
}

/// The escape of U+FFFD, as long as that of a half.
const REPLACEMENT: &[u8; 6] = br"\ufffd";

/// Replaces each half of a surrogate pair; none if the text has none. Backslashes outside of strings are left alone: there they are no JSON.
pub fn mended(text: &[u8]) -> Option<MendedText> {
    let mut mended: Option<MendedText> = None;
    let mut at = 0;
    while let Some(found) = text[at..].iter().position(|&byte| byte == b'\\') {
        let start = at + found;
        let Some(unit) = unit(text, start) else {
            // An escape of two characters.
            at = (start + 2).min(text.len());
            continue;
        };
        at = start + REPLACEMENT.len();
        match unit {
            0xd800..=0xdbff if matches!(self::unit(text, at), Some(0xdc00..=0xdfff)) => at += REPLACEMENT.len(),
            0xd800..=0xdfff => {
                let mended = mended.get_or_insert_with(|| MendedText { text: text.to_vec(), halves: 0 });
                mended.text[start..at].copy_from_slice(REPLACEMENT);
                mended.halves += 1;
            }
            _ => {}
        }
    }
    mended
}

/// The number in `\uXXXX`, if that is what begins here.
fn unit(text: &[u8], start: usize) -> Option<u16> {
    let escape = text.get(start..start + REPLACEMENT.len())?;
    let digits = escape.strip_prefix(br"\u").filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))?;
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_replaced_and_pairs_stay() {
        let of = |text: &str| mended(text.as_bytes()).map(|mended| (String::from_utf8(mended.text), mended.halves));
        for sound in
            ["", "{}", r#""\ud83d\ude00""#, r#""\\ud83d""#, r#""\u0041\n""#, r#""\"#, r#""\u12"#, r#""\ud83"#, "\"é\""]
        {
            assert_eq!(of(sound), None, "{sound}");
        }
        for (text, expected, halves) in [
            (r#""\ud83d""#, r#""\ufffd""#, 1),
            (r#""\UD83d \uDE00""#, r#""\UD83d \ufffd""#, 1),
            (r#"{"\uDc00":"\ud83d\ud83d\ude00\ud800\u0041"}"#, r#"{"\ufffd":"\ufffd\ud83d\ude00\ufffd\u0041"}"#, 3),
            (r#""\\\ud83d""#, r#""\\\ufffd""#, 1),
            (r#""\ud83d\n""#, r#""\ufffd\n""#, 1),
        ] {
            assert_eq!(of(text), Some((Ok(expected.to_owned()), halves)), "{text}");
        }
    }
}
