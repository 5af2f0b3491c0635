//! Names of agents where fewer letters are allowed than an agent may have.

use std::borrow::Cow;

use atlas_service::digest_of;

/// The longest name of a tool that all providers of models take.
const TOOL_MAX: usize = 64;
/// Digits that tell changed names apart.
const DIGITS: usize = 8;

/// A name as that of a tool: 1 to 64 letters, digits, `_` and `-`. One that is none gets digits that follow from it, so it does not depend on
/// other agents.
pub(crate) fn of_tool(name: &str) -> Cow<'_, str> {
    let is_plain = (1..=TOOL_MAX).contains(&name.len()) && name.chars().all(is_tool_letter);
    if is_plain { Cow::Borrowed(name) } else { Cow::Owned(changed(name)) }
}

/// A name with other letters replaced and digits at its end.
pub(crate) fn changed(name: &str) -> String {
    let plain = name.chars().map(|letter| if is_tool_letter(letter) { letter } else { '_' });
    let plain: String = plain.take(TOOL_MAX - DIGITS - 1).collect();
    let digits: String =
        digest_of(name.as_bytes()).0.iter().take(DIGITS / 2).map(|byte| format!("{byte:02x}")).collect();
    format!("{plain}-{digits}")
}

fn is_tool_letter(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn legal_names_stay_and_others_are_told_apart() {
        for legal in ["a", "tech_research-2", &"x".repeat(64)] {
            assert_eq!(of_tool(legal), legal);
        }
        let (long, longer) = ("x".repeat(100), "x".repeat(101));
        let others = ["a b", "a_b ", "a.b", "gr\u{fc}\u{df}e", "gr\u{e4}\u{df}e", "\u{667a}\u{80fd}", &long, &longer];
        let mut names: Vec<String> = others.iter().map(|name| of_tool(name).into_owned()).collect();
        assert!(names.iter().all(|name| name.len() <= 64 && name.chars().all(is_tool_letter)), "{names:?}");
        assert!(names[0].starts_with("a_b-"), "{names:?}");
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), others.len());
    }
}
