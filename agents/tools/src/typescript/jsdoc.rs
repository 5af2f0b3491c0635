//! JSDoc comments.

/// What a comment says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Comment<'c> {
    /// The text before the first tag.
    pub(super) description: String,
    /// Names and texts of the tags `@param`.
    pub(super) parameters: Vec<(&'c str, String)>,
}

/// Parses a comment. One that does not begin with `/**` says nothing.
pub(super) fn parse(comment: &str) -> Comment<'_> {
    let Some(inner) = comment.strip_prefix("/**").map(|rest| rest.strip_suffix("*/").unwrap_or(rest)) else {
        return Comment::default();
    };
    let lines = || inner.lines().map(line);
    let description: Vec<&str> = lines().take_while(|line| !line.starts_with('@')).collect();
    let parameters = lines().filter_map(|line| parameter(line.strip_prefix("@param")?)).collect();
    Comment { description: description.join("\n").trim().to_owned(), parameters }
}

/// A line without its star and without spaces around its text.
fn line(line: &str) -> &str {
    let line = line.trim();
    line.strip_prefix('*').unwrap_or(line).trim_start()
}

/// `{type} name - text`; the type does not count, and the dash can be missing.
fn parameter(tag: &str) -> Option<(&str, String)> {
    let tag = tag.trim();
    let tag = match tag.strip_prefix('{').and_then(|rest| rest.split_once('}')) {
        Some((_, rest)) => rest.trim_start(),
        None => tag,
    };
    let (name, text) = tag.split_once(char::is_whitespace).unwrap_or((tag, ""));
    let name = name.strip_suffix('?').unwrap_or(name);
    let text = text.trim();
    let text = text.strip_prefix('-').map_or(text, str::trim_start);
    (!name.is_empty()).then(|| (name, text.to_owned()))
}
