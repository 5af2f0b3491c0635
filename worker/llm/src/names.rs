//! Names of tools as providers accept them: `[a-zA-Z0-9_-]{1,64}`, unique in a request.

use std::collections::BTreeSet;

/// Maximum length of a name.
pub const LENGTH_MAX: usize = 64;

/// Whether every provider accepts the name.
pub fn is_legal(name: &str) -> bool {
    (1..=LENGTH_MAX).contains(&name.len()) && name.bytes().all(is_legal_byte)
}

/// Legal names for tools, in their order. A legal and unused name stays; in others each other character becomes `_`, and a name
/// that is taken gets a number. Legal names are served first, so that another tool cannot take a name away from its owner.
pub fn legal<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let names: Vec<&str> = names.into_iter().collect();
    let mut used = BTreeSet::new();
    let kept: Vec<bool> = names.iter().map(|name| is_legal(name) && used.insert((*name).to_owned())).collect();
    let mut made = Vec::with_capacity(names.len());
    for (name, kept) in names.iter().zip(kept) {
        made.push(if kept { (*name).to_owned() } else { free(name, &mut used) });
    }
    made
}

fn free(name: &str, used: &mut BTreeSet<String>) -> String {
    let base: String = name.chars().take(LENGTH_MAX).map(|c| if is_legal_char(c) { c } else { '_' }).collect();
    let base = if base.is_empty() { "tool".to_owned() } else { base };
    let mut candidate = base.clone();
    let mut number = 2_usize;
    while !used.insert(candidate.clone()) {
        let suffix = format!("_{number}");
        candidate = format!("{}{suffix}", &base[..base.len().min(LENGTH_MAX - suffix.len())]);
        number += 1;
    }
    candidate
}

fn is_legal_char(c: char) -> bool {
    c.is_ascii() && is_legal_byte(c as u8)
}

fn is_legal_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_become_legal_and_unique() {
        let long = "x".repeat(70);
        let made = legal(["a.b", "a_b", "a b", "", "é", &long, &long]);
        assert_eq!(made[..5], ["a_b_2", "a_b", "a_b_3", "tool", "_"]);
        assert_eq!(made[5], "x".repeat(64));
        assert_eq!(made[6], format!("{}_2", "x".repeat(62)));
    }

    proptest! {
        #[test]
        fn always_legal_and_unique(names in prop::collection::vec("[a-c._é]{0,4}", 0..40)) {
            let made = legal(names.iter().map(String::as_str));
            prop_assert_eq!(made.len(), names.len());
            prop_assert!(made.iter().all(|name| is_legal(name)));
            prop_assert_eq!(made.iter().collect::<BTreeSet<_>>().len(), made.len());
        }
    }
}
