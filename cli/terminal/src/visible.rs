//! Characters that control a terminal, or that nobody sees, in a form that can be read.

/// The text with such characters replaced: `^[` for an escape, `\u{202e}` for a character that turns the direction of text around. Line
/// ends and tabs stay.
pub fn visible(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_control() || matches!(letter, '\n' | '\t')).collect()
}
