//! The form of tokens: `atl_NAME_SECRET`. The name says which token it is, and the prefix lets scanners of repositories find it.

/// What every token begins with.
const PREFIX: &str = "atl_";
/// Hexadecimal digits of the secret part: 256 random bits.
pub const SECRET_DIGITS: usize = 64;
/// The name in the root token, which is in a file of the controllers and in no object.
pub const ROOT: &str = "root";

/// A token from 256 random bits.
pub fn token(name: &str, random: [u64; 4]) -> String {
    let [a, b, c, d] = random;
    format!("{PREFIX}{name}_{a:016x}{b:016x}{c:016x}{d:016x}")
}

/// The name and the secret part of a token; none if it does not have the form of one.
pub fn parts(token: &str) -> Option<(&str, &str)> {
    let (name, secret) = token.strip_prefix(PREFIX)?.split_once('_')?;
    let is_secret = secret.len() == SECRET_DIGITS && secret.bytes().all(|byte| byte.is_ascii_hexdigit());
    (is_secret && is_name(name)).then_some((name, secret))
}

/// Whether a token can have this name: letters, digits and hyphens.
pub fn is_name(name: &str) -> bool {
    (1..=63).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_has_a_name_and_a_secret() {
        let text = token("ci-2", [1, 2, 3, u64::MAX]);
        assert_eq!(text.len(), 4 + 4 + 1 + 64);
        let (name, secret) = parts(&text).expect("a token");
        assert_eq!((name, &secret[48..]), ("ci-2", "ffffffffffffffff"));
        let wrong = ["", "atl_", "atl_ci", "atl_ci_00", "ghp_ci_00", &text[..text.len() - 1], &format!("{text}0")];
        for wrong in wrong.into_iter().chain([token("", [0; 4]).as_str(), token("a b", [0; 4]).as_str()]) {
            assert_eq!(parts(wrong), None, "{wrong:?}");
        }
    }
}
