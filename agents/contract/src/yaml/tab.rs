//! Tabs that PyYAML refuses.
//!
//! PyYAML does not accept tabs as white space between values: outside quoted text, block text and comments, a tab
//! starts an invalid value. Our parser accepts most of these tabs.

use std::ops::Range;

/// The first tab of `source` that PyYAML refuses. `texts` are the byte ranges of the quoted and block texts, in order.
pub(super) fn stray(source: &str, texts: &[Range<usize>]) -> Option<usize> {
    let bytes = source.as_bytes();
    let mut texts = texts.iter().peekable();
    let mut at = source.find('\t')?;
    // The scan starts at the line of the first tab; earlier lines have no tabs.
    at = source[..at].rfind(['\n', '\r']).map_or(0, |end| end + 1);
    let mut after_space = true;
    while let Some(byte) = bytes.get(at) {
        while texts.next_if(|text| text.end <= at).is_some() {}
        if let Some(text) = texts.next_if(|text| text.start <= at) {
            (at, after_space) = (text.end, false);
            continue;
        }
        match byte {
            b'\t' => return Some(at),
            b'#' if after_space => at += source[at..].find(['\n', '\r'])?,
            byte => {
                after_space = matches!(byte, b' ' | b'\n' | b'\r');
                at += 1;
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_comments_may_have_tabs() {
        for (source, texts, found) in [
            ("a: b", vec![], None),
            ("a:\tb", vec![], Some(2)),
            ("a: b # c\td\n# \t\nc: d\t", vec![], Some(19)),
            ("a: b#\t", vec![], Some(5)),
            ("[\"x\ty\", 'z']\t", vec![1..6, 8..11], Some(12)),
            ("a: 'x\n\ty # '\nb: \"\t\" # \t", vec![3..12, 16..19], None),
        ] {
            assert_eq!(stray(source, &texts), found, "{source:?}");
        }
    }
}
