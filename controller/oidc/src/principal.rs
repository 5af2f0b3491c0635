//! The name of who shows a token.

use std::fmt::Write as _;

/// The principal of a claim: `ISSUER:CLAIM`, where ISSUER is the name of the issuer here. Characters that the name of a principal cannot
/// have are written as in addresses (`%2F`), so that different claims are different principals.
pub fn principal_of(issuer: &str, claim: &str) -> String {
    let mut name = format!("{issuer}:");
    let mut before = ':';
    for char in claim.chars() {
        let plain = char.is_ascii_alphanumeric() || matches!(char, '-' | '_' | '.' | '@' | '+' | '=' | '|' | ':');
        // Two dots lead out of a folder.
        if plain && !(char == '.' && before == '.') {
            name.push(char);
        } else {
            for byte in char.encode_utf8(&mut [0; 4]).bytes() {
                // Writing into a text does not fail.
                let _ = write!(name, "%{byte:02X}");
            }
        }
        before = char;
    }
    name
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn names_have_no_characters_that_lead_elsewhere() {
        for (claim, name) in [
            ("ann@example.com", "corp:ann@example.com"),
            ("auth0|5f7c", "corp:auth0|5f7c"),
            ("repo:org/app:ref:refs/heads/main", "corp:repo:org%2Fapp:ref:refs%2Fheads%2Fmain"),
            ("../x", "corp:.%2E%2Fx"),
            ("é %", "corp:%C3%A9%20%25"),
        ] {
            assert_eq!(principal_of("corp", claim), name);
        }
    }

    proptest::proptest! {
        #[test]
        fn different_claims_are_different_principals(claims in proptest::collection::vec("[./%2EF:a]{0,6}", 2..40)) {
            let mut seen = BTreeMap::new();
            for claim in claims {
                let other = seen.insert(principal_of("corp", &claim), claim.clone());
                proptest::prop_assert!(other.is_none_or(|other| other == claim));
            }
        }
    }
}
