//! Words of a filter that the parser of the language does not take: they are written as names of the same length, so that places stay.

/// What `has` is called while it is parsed: the language's own takes only members of members.
pub(crate) const PRESENT: &str = "_as";

/// Names that the language keeps for itself.
const RESERVED: [&str; 17] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "namespace",
    "package",
    "return",
    "var",
    "void",
    "while",
];

/// The filter in words that the parser takes.
pub(super) fn readable(source: &str) -> String {
    let mut text = String::with_capacity(source.len());
    let mut rest = source;
    while !rest.is_empty() {
        let (word, after) = piece(rest);
        if is_replaced(word, &text, after) {
            text.push('_');
            text.push_str(word.get(1..).unwrap_or_default());
        } else {
            text.push_str(word);
        }
        rest = after;
    }
    text
}

/// The filter without what does not make it deep, so that long lists of texts are allowed: commas, and the inside of plain texts. Others are
/// left as they are, as the parser may take another part of them for the text. Each byte has its place still.
pub(super) fn outline(source: &str) -> String {
    let mut text = String::with_capacity(source.len());
    let mut rest = source;
    while !rest.is_empty() {
        let (word, after) = piece(rest);
        if word == "," || is_plain_text(word) {
            text.extend(word.chars().map(|char| if char.is_ascii() { ' ' } else { char }));
        } else {
            text.push_str(word);
        }
        rest = after;
    }
    text
}

/// The first piece of a text, and the rest: a text in quotes with what makes it raw or bytes, a comment, a word, or a character.
fn piece(rest: &str) -> (&str, &str) {
    let taken = match rest.chars().next() {
        Some('\'' | '"') => literal(rest, false),
        Some('/') if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
        Some(letter) if letter.is_ascii_alphabetic() || letter == '_' => {
            let no_letter = |letter: char| !letter.is_ascii_alphanumeric() && letter != '_';
            let (word, after) = rest.split_at(rest.find(no_letter).unwrap_or(rest.len()));
            let is_text = is_prefix(word) && after.starts_with(['\'', '"']);
            word.len() + if is_text { literal(after, word.contains(['r', 'R'])) } else { 0 }
        }
        other => other.map_or(0, char::len_utf8),
    };
    rest.split_at(taken)
}

/// Whether a piece is a text in one pair of quotes, on one line and without a backslash.
fn is_plain_text(piece: &str) -> bool {
    let inside = |quote: char| piece.strip_prefix(quote)?.strip_suffix(quote);
    let inside = inside('\'').or_else(|| inside('"'));
    inside.is_some_and(|inside| !inside.contains(['\\', '\n', '\r', piece.chars().next().unwrap_or_default()]))
}

/// A name as it was written.
pub(super) fn written(name: &str) -> String {
    let replaced = |word: &&&str| name.starts_with('_') && name.get(1..) == word.get(1..);
    RESERVED.iter().find(replaced).map_or_else(|| name.to_owned(), |word| (*word).to_owned())
}

/// Whether a word is one that the parser does not take here: members of members may have any name.
fn is_replaced(word: &str, before: &str, after: &str) -> bool {
    let is_member = before.trim_end().ends_with('.');
    let is_call = word == "has" && after.trim_start().starts_with('(');
    !is_member && (is_call || RESERVED.contains(&word))
}

/// Whether a word makes the text behind it bytes, or one in which a backslash is itself.
fn is_prefix(word: &str) -> bool {
    matches!(word.to_ascii_lowercase().as_str(), "r" | "b" | "br" | "rb")
}

/// How long the text is that begins with a quote.
fn literal(text: &str, is_raw: bool) -> usize {
    let quote = text.get(..1).unwrap_or_default();
    let triple = quote.repeat(3);
    let quote = if text.starts_with(&triple) { triple.as_str() } else { quote };
    let mut at = quote.len();
    while let Some(next) = text.get(at..).and_then(|rest| rest.chars().next()) {
        if text.get(at..).is_some_and(|rest| rest.starts_with(quote)) {
            return at + quote.len();
        }
        at += next.len_utf8();
        if next == '\\' && !is_raw {
            at += text.get(at..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8);
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::{outline, readable, written};

    #[test]
    fn the_outline_is_what_can_be_deep() {
        for (source, expected) in [
            ("id in ['a-1', \"b-(2\"] && c", "id in [             ] && c"),
            (r#"'a\'-(' + r'-\' + '''-''' + 'é-' + '-"#, r#"'a\'-(' + r'-\' + '''-''' +  é   + '-"#),
            ("'-\n-' + \"'-'\"", "'-\n-' +      "),
        ] {
            assert_eq!(outline(source), expected);
        }
    }

    #[test]
    fn only_names_are_replaced() {
        for (source, expected) in [
            ("namespace == 'has(a)' && has(zone)", "_amespace == 'has(a)' && _as(zone)"),
            ("has (a.namespace) && a . package == has", "_as (a.namespace) && a . package == has"),
            (
                r#"r'\' + namespace + "a\"namespace" + '''it's if''' + if"#,
                r#"r'\' + _amespace + "a\"namespace" + '''it's if''' + _f"#,
            ),
            ("a // has(b)\n&& has(b)", "a // has(b)\n&& _as(b)"),
            ("namespaces + _namespace + ö namespace", "namespaces + _namespace + ö _amespace"),
            ("'open namespace", "'open namespace"),
            ("'open \\", "'open \\"),
        ] {
            assert_eq!(readable(source), expected);
        }
        assert_eq!(["_amespace", "_f", "a", "_", "_as"].map(written).join(" "), "namespace if a _ _as");
    }
}
