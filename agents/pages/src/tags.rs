//! A page or another text with markup as its tags and the text between them, without what no reader sees.

use crate::entities::unescaped;
use crate::scan::{find, looked};

/// Elements whose content nobody reads.
const HIDDEN: [&str; 6] = ["script", "style", "title", "template", "noscript", "svg"];

/// One tag.
#[derive(Debug, Clone)]
pub(crate) struct Tag<'a> {
    /// Its name in lower case; empty for a declaration.
    pub(crate) name: String,
    pub(crate) is_end: bool,
    /// The tag, from `<` to `>`.
    text: &'a str,
    /// What comes after it.
    behind: &'a str,
}

/// A part of a text with markup.
#[derive(Debug)]
pub(crate) enum Token<'a> {
    Text(&'a str),
    Tag(Tag<'a>),
}

/// The parts of a text, in their order. Each byte is looked at a few times at most, wherever tags and quotation marks are not closed.
pub(crate) struct Tokens<'a> {
    rest: &'a str,
    /// Whether quotation marks in tags are like other characters.
    ignores_quotes: bool,
}

impl<'a> Tokens<'a> {
    pub(crate) fn of(text: &'a str) -> Self {
        Self { rest: text, ignores_quotes: false }
    }

    /// The tags alone.
    pub(crate) fn tags(self) -> impl Iterator<Item = Tag<'a>> {
        self.filter_map(|token| match token {
            Token::Tag(tag) if !tag.name.is_empty() => Some(tag),
            _ => None,
        })
    }

    /// The place behind the tag at the beginning of the rest.
    fn end_of_tag(&mut self) -> Option<usize> {
        let is_declaration = self.rest[1..].starts_with(['!', '?']);
        if !self.ignores_quotes && !is_declaration {
            let end = end_of_quoted(self.rest);
            if end.is_some() {
                return end;
            }
            // Quotation marks that nothing closes are no reason to lose the page. From here on none counts, so that no other tag is
            // looked through up to the end of the text.
            self.ignores_quotes = true;
        }
        find(self.rest, ">").map(|place| place + 1)
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        while let Some(behind) = self.rest.strip_prefix("<!--") {
            self.rest = find(behind, "-->").map_or("", |end| &behind[end + 3..]);
        }
        let is_tag =
            |behind: &str| behind.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '/' | '!' | '?'));
        let text_end = match self.rest.strip_prefix('<') {
            None => find(self.rest, "<").unwrap_or(self.rest.len()),
            Some(behind) if is_tag(behind) => 0,
            Some(_) => 1,
        };
        if self.rest.is_empty() || text_end > 0 {
            let (text, rest) = self.rest.split_at(text_end);
            self.rest = rest;
            return Some(Token::Text(text)).filter(|_| text_end > 0);
        }
        let Some(end) = self.end_of_tag() else {
            self.rest = "";
            return None;
        };
        let (text, behind) = self.rest.split_at(end);
        let (name, is_end) = name_of(text);
        let is_hidden = !is_end && HIDDEN.contains(&name.as_str()) && !text.ends_with("/>");
        self.rest = if is_hidden { behind_end(behind, &name) } else { behind };
        Some(Token::Tag(Tag { name, is_end, text, behind }))
    }
}

/// The place behind a tag in which a `>` within a value in quotation marks does not end it. None if there is no end.
fn end_of_quoted(text: &str) -> Option<usize> {
    let (mut quote, mut before) = (None, b'<');
    let end = text.bytes().position(|byte| {
        match quote {
            Some(open) if byte == open => (quote, before) = (None, byte),
            Some(_) => {}
            None if byte == b'>' => return true,
            None if before == b'=' && matches!(byte, b'"' | b'\'') => quote = Some(byte),
            None if byte.is_ascii_whitespace() => {}
            None => before = byte,
        }
        false
    });
    looked(end.map_or(text.len(), |end| end + 1));
    end.map(|end| end + 1)
}

fn name_of(tag: &str) -> (String, bool) {
    let inner = tag.strip_prefix('<').unwrap_or(tag);
    let (inner, is_end) = inner.strip_prefix('/').map_or((inner, false), |inner| (inner, true));
    let name: String = inner.chars().take_while(char::is_ascii_alphanumeric).collect();
    looked(name.len());
    (name.to_ascii_lowercase(), is_end)
}

/// What is behind the end of an element; nothing if it does not end.
fn behind_end<'a>(text: &'a str, name: &str) -> &'a str {
    let mut rest = text;
    while let Some(place) = find(rest, "</") {
        rest = &rest[place + 2..];
        looked(name.len() + 1);
        let (own, behind) = rest.split_at_checked(name.len()).unwrap_or(("", ""));
        if own.eq_ignore_ascii_case(name) && !behind.starts_with(|c: char| c.is_ascii_alphanumeric()) {
            return find(behind, ">").map_or("", |end| &behind[end + 1..]);
        }
    }
    ""
}

impl Tag<'_> {
    /// The value of an attribute; the first one of the name counts.
    pub(crate) fn attribute(&self, wanted: &str) -> Option<String> {
        looked(self.text.len());
        let inner = self.text.trim_start_matches(['<', '/']).trim_end_matches('>');
        let mut rest = inner.trim_start_matches(|c: char| c.is_ascii_alphanumeric());
        loop {
            rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '/');
            let end = rest.find(|c: char| c.is_ascii_whitespace() || matches!(c, '=' | '/')).unwrap_or(rest.len());
            let (name, behind) = rest.split_at(end);
            let behind = behind.trim_start();
            let (value, behind) = match behind.strip_prefix('=') {
                Some(value) => value_of(value.trim_start()),
                None => ("", behind),
            };
            if !name.is_empty() && name.eq_ignore_ascii_case(wanted) {
                return Some(unescaped(value));
            }
            if behind.len() >= rest.len() || behind.is_empty() {
                return None;
            }
            rest = behind;
        }
    }

    /// The text from the tag to the next one. A section of CDATA is text as well, if it has no `<`.
    pub(crate) fn content(&self) -> String {
        let text = self.behind.trim_start();
        looked(self.behind.len() - text.len());
        let (text, is_plain) = text.strip_prefix("<![CDATA[").map_or((text, false), |plain| (plain, true));
        let text = &text[..find(text, "<").unwrap_or(text.len())];
        match is_plain {
            true => find(text, "]]>").map_or("", |end| &text[..end]).trim().to_owned(),
            false => unescaped(text).trim().to_owned(),
        }
    }
}

/// The value at the beginning of a text, and what comes after it.
fn value_of(text: &str) -> (&str, &str) {
    for quote in ['"', '\''] {
        if let Some(inner) = text.strip_prefix(quote) {
            return inner.split_once(quote).unwrap_or((inner, ""));
        }
    }
    text.split_at(text.find(|c: char| c.is_ascii_whitespace()).unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn attributes_are_read_as_browsers_do() {
        for (tag, expected) in [
            ("<a href=x>", Some("x")),
            ("<a HREF = 'a b'>", Some("a b")),
            ("<a class=\"x>y\" href=\"?a=1&amp;b=2\">", Some("?a=1&b=2")),
            ("<a data-href=no>", None),
            ("<a href>", Some("")),
            ("<a/href=x/>", Some("x/")),
            ("<a href='never closed>", Some("never closed")),
            ("<a = = href=x>", Some("x")),
            ("<a title=it's href=x>", Some("x")),
            ("<a href = \n\">\">", Some(">")),
        ] {
            let tag = Tokens::of(tag).tags().next().expect("a tag");
            assert_eq!(tag.attribute("href").as_deref(), expected, "{}", tag.text);
        }
    }

    #[test]
    fn what_is_hidden_has_no_tags() {
        let names = |text| Tokens::of(text).tags().map(|tag| tag.name).collect::<Vec<_>>().join(" ");
        assert_eq!(names("<!-- <a> --><script>'<b>'</script><i>x</i> 1 < 2"), "script i i");
    }

    proptest! {
        #[test]
        fn any_text_has_tags(text in "[<>/a-z=&;#\"'! é-]{0,80}") {
            for tag in Tokens::of(&text).tags() {
                tag.attribute("a");
                tag.content();
            }
        }
    }
}
