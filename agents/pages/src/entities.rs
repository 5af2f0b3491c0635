//! References to characters, such as `&amp;`.

use crate::scan::looked;

/// Most bytes of a reference.
const REFERENCE_BYTES_MAX: usize = 12;

/// Characters by their names.
const NAMED: [(&str, &str); 12] = [
    ("amp", "&"),
    ("lt", "<"),
    ("gt", ">"),
    ("quot", "\""),
    ("apos", "'"),
    ("nbsp", " "),
    ("ndash", "–"),
    ("mdash", "—"),
    ("hellip", "…"),
    ("copy", "©"),
    ("shy", ""),
    ("euro", "€"),
];

/// A text without references to characters.
pub(crate) fn unescaped(text: &str) -> String {
    looked(text.len());
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(place) = rest.find('&') {
        out += &rest[..place];
        rest = &rest[place..];
        let end = rest.bytes().take(REFERENCE_BYTES_MAX).position(|byte| byte == b';');
        looked(end.unwrap_or(REFERENCE_BYTES_MAX).min(rest.len()));
        match end.and_then(|end| Some((end, character(&rest[1..end])?))) {
            Some((end, character)) => {
                out += &character;
                rest = &rest[end + 1..];
            }
            None => {
                out.push('&');
                rest = &rest[1..];
            }
        }
    }
    out + rest
}

fn character(name: &str) -> Option<String> {
    let Some(number) = name.strip_prefix('#') else {
        return NAMED.iter().find(|(known, _)| *known == name).map(|(_, text)| (*text).to_owned());
    };
    let number = match number.strip_prefix(['x', 'X']) {
        Some(digits) => u32::from_str_radix(digits, 16).ok()?,
        None => number.parse().ok()?,
    };
    char::from_u32(number).filter(|character| !character.is_control()).map(String::from)
}
