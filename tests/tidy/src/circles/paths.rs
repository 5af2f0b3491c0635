//! The paths in a source: a small reader of tokens, which knows comments, literals and trees of `use`.

/// A path as it is written.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Written<'a> {
    pub(super) parts: Vec<&'a str>,
    /// The name under which a `use` makes it known.
    pub(super) alias: Option<&'a str>,
    /// Whether it is in a `use` that others may use: `pub use`, `pub(crate) use`.
    pub(super) is_exported: bool,
}

impl<'a> Written<'a> {
    /// The name by which it is known after its `use`.
    pub(super) fn name(&self) -> Option<&'a str> {
        self.alias.or_else(|| self.parts.last().copied())
    }
}

/// All paths of a source that have more than one part, in their order.
pub(super) fn written(text: &str) -> Vec<Written<'_>> {
    let tokens = tokens(text);
    let mut found = Vec::new();
    let (mut at, mut is_exported) = (0, false);
    while let Some(token) = tokens.get(at).copied() {
        let before = at.checked_sub(1).and_then(|before| tokens.get(before)).copied();
        if token == "use" {
            is_exported = matches!(before, Some("pub" | ")"));
        } else if token == ";" {
            is_exported = false;
        }
        if is_name(token) && before != Some("::") && tokens.get(at + 1) == Some(&"::") {
            let mut paths = Vec::new();
            at = read(&tokens, at, &[], &mut paths);
            found.extend(paths.into_iter().map(|path| Written { is_exported, ..path }));
        } else {
            at += 1;
        }
    }
    found
}

/// Reads one path, or a tree of them, and returns where the next token is.
fn read<'a>(tokens: &[&'a str], mut at: usize, prefix: &[&'a str], found: &mut Vec<Written<'a>>) -> usize {
    let mut parts = prefix.to_vec();
    while let Some(name) = tokens.get(at).filter(|token| is_name(token) || **token == "*") {
        parts.push(name);
        at += 1;
        if tokens.get(at) != Some(&"::") {
            break;
        }
        at += 1;
        if tokens.get(at) == Some(&"{") {
            at += 1;
            while tokens.get(at).is_some_and(|token| *token != "}") {
                let is_path = tokens.get(at).is_some_and(|token| is_name(token) || *token == "*");
                at = if is_path { read(tokens, at, &parts, found) } else { at + 1 };
            }
            return at + 1;
        }
    }
    let alias = tokens.get(at + 1).copied().filter(|_| tokens.get(at) == Some(&"as"));
    found.push(Written { parts, alias, is_exported: false });
    if alias.is_some() { at + 2 } else { at }
}

/// The names of the items that a source declares.
pub(super) fn declared(text: &str) -> Vec<&str> {
    const WORDS: [&str; 8] = ["fn", "struct", "enum", "union", "trait", "type", "const", "static"];
    let tokens = tokens(text);
    let pairs = tokens.iter().zip(tokens.iter().skip(1));
    pairs.filter(|(word, name)| WORDS.contains(*word) && is_name(name)).map(|(_, name)| *name).collect()
}

fn is_name(token: &str) -> bool {
    token.starts_with(|first: char| first.is_alphabetic() || first == '_')
}

/// The names and signs of a source, without comments and literals.
fn tokens(text: &str) -> Vec<&str> {
    let (mut found, mut rest) = (Vec::new(), text);
    while let Some(first) = rest.chars().next() {
        let (length, is_token) = if let Some(length) = ignored(rest) {
            (length, false)
        } else if is_name(rest) {
            (rest.find(|next: char| !next.is_alphanumeric() && next != '_').unwrap_or(rest.len()), true)
        } else if rest.starts_with("::") {
            (2, true)
        } else {
            (first.len_utf8(), !first.is_whitespace())
        };
        let (token, after) = rest.split_at(length.min(rest.len()));
        if is_token {
            found.push(token);
        }
        rest = after;
    }
    found
}

/// The length of the comment or literal with which a text begins.
fn ignored(text: &str) -> Option<usize> {
    let until = |from: usize, end: &str| {
        let inside = text.get(from..)?;
        Some(inside.find(end).map_or(text.len(), |at| from + at + end.len()))
    };
    if text.starts_with("//") {
        return until(0, "\n");
    }
    if text.starts_with("/*") {
        return until(2, "*/");
    }
    let unmarked = text.strip_prefix('b').unwrap_or(text);
    let mark = text.len() - unmarked.len();
    if let Some(raw) = unmarked.strip_prefix('r') {
        let signs = raw.len() - raw.trim_start_matches('#').len();
        if raw.get(signs..).is_some_and(|after| after.starts_with('"')) {
            return until(mark + 1 + signs + 1, &format!("\"{}", "#".repeat(signs)));
        }
    }
    if unmarked.starts_with('"') {
        return Some(mark + quoted(unmarked, '"')?);
    }
    // A lifetime is no literal.
    let is_character = unmarked.starts_with("'\\") || unmarked.chars().nth(2) == Some('\'');
    if unmarked.starts_with('\'') && is_character {
        return Some(mark + quoted(unmarked, '\'')?);
    }
    None
}

/// The length of a literal in marks, in which a backslash hides what follows it.
fn quoted(text: &str, mark: char) -> Option<usize> {
    let mut signs = text.char_indices().skip(1);
    while let Some((at, sign)) = signs.next() {
        if sign == '\\' {
            signs.next();
        } else if sign == mark {
            return Some(at + sign.len_utf8());
        }
    }
    Some(text.len())
}

#[test]
fn paths_are_read_from_uses_and_from_code() {
    let text = r##"
        //! crate::comment::X
        use crate::one::{self, Two, three::{Four as Five}};
        pub(crate) use super::six::*;
        fn seven<'a>(eight: &'a str) -> crate::nine::Ten { let _ = ("crate::a::B", r#"crate::c"::D"#, '"', '\''); eleven::twelve() }
    "##;
    let found: Vec<String> = written(text)
        .iter()
        .map(|path| {
            format!(
                "{} {}{}",
                path.parts.join("::"),
                path.name().unwrap_or("-"),
                if path.is_exported { " exported" } else { "" }
            )
        })
        .collect();
    let expected = [
        "crate::one::self self",
        "crate::one::Two Two",
        "crate::one::three::Four Five",
        "super::six::* * exported",
        "crate::nine::Ten Ten",
        "eleven::twelve twelve",
    ];
    assert_eq!(found, expected);
}
