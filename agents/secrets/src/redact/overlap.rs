//! How far the end of one text is the start of another, in linear time.

/// The longest proper start of `pattern` with which `text` ends, in bytes.
pub(super) fn ends_with_start_of(text: &str, pattern: &str) -> usize {
    let tail = &text.as_bytes()[text.len().saturating_sub(pattern.len().saturating_sub(1))..];
    matched(pattern.as_bytes(), tail.iter().copied())
}

/// The longest proper end of `pattern` with which `text` starts, in bytes.
pub(super) fn starts_with_end_of(text: &str, pattern: &str) -> usize {
    let head = &text.as_bytes()[..text.len().min(pattern.len().saturating_sub(1))];
    // The same question for both texts read backwards.
    let backwards: Vec<u8> = pattern.bytes().rev().collect();
    matched(&backwards, head.iter().rev().copied())
}

/// The longest start of `pattern` with which `text` ends, by the algorithm of Knuth, Morris and Pratt. `text` is shorter than `pattern`.
fn matched(pattern: &[u8], text: impl Iterator<Item = u8>) -> usize {
    let mut borders = vec![0; pattern.len()];
    for at in 1..pattern.len() {
        let mut border = borders[at - 1];
        while border > 0 && pattern[at] != pattern[border] {
            border = borders[border - 1];
        }
        borders[at] = border + usize::from(pattern[at] == pattern[border]);
    }
    let mut length = 0;
    for byte in text {
        while length > 0 && pattern[length] != byte {
            length = borders[length - 1];
        }
        length += usize::from(pattern.first().is_some_and(|_| pattern[length] == byte));
    }
    length
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn overlaps_are_found() {
        assert_eq!(ends_with_start_of("xxab", "abc"), 2);
        assert_eq!(ends_with_start_of("xxabc", "abc"), 0);
        assert_eq!(ends_with_start_of("aaa", "aab"), 2);
        assert_eq!(ends_with_start_of("", "abc"), 0);
        assert_eq!(ends_with_start_of("a", ""), 0);
        assert_eq!(starts_with_end_of("bcxx", "abc"), 2);
        assert_eq!(starts_with_end_of("abc", "abc"), 0);
        assert_eq!(starts_with_end_of("caa", "baca"), 2);
    }

    proptest! {
        #[test]
        fn overlaps_are_the_longest(text in "[ab]{0,12}", pattern in "[ab]{0,8}") {
            let lengths = || (0..pattern.len()).rev();
            let start = lengths().find(|&length| text.ends_with(&pattern[..length])).unwrap_or(0);
            let end = lengths().find(|&length| text.starts_with(&pattern[pattern.len() - length..])).unwrap_or(0);
            prop_assert_eq!(ends_with_start_of(&text, &pattern), start);
            prop_assert_eq!(starts_with_end_of(&text, &pattern), end);
        }
    }
}
