//! The tags of a page or of another file with markup, without what is hidden between them.

use crate::html::{HIDDEN, behind_end, end_of_tag, name_of, unescaped};

/// One tag.
#[derive(Debug, Clone)]
pub(crate) struct Tag<'a> {
    /// Its name in lower case.
    pub(crate) name: String,
    pub(crate) is_end: bool,
    /// The whole tag.
    text: &'a str,
    /// What comes after it.
    pub(crate) behind: &'a str,
}

/// The tags of a text, in their order.
pub(crate) struct Tags<'a>(&'a str);

impl<'a> Tags<'a> {
    pub(crate) fn of(text: &'a str) -> Self {
        Self(text)
    }
}

impl<'a> Iterator for Tags<'a> {
    type Item = Tag<'a>;

    fn next(&mut self) -> Option<Tag<'a>> {
        loop {
            let rest = &self.0[self.0.find('<')?..];
            if let Some(comment) = rest.strip_prefix("<!--") {
                self.0 = comment.find("-->").map_or("", |end| &comment[end + 3..]);
                continue;
            }
            if !rest[1..].starts_with(|c: char| c.is_ascii_alphabetic() || c == '/') {
                self.0 = &rest[1..];
                continue;
            }
            let (text, behind) = rest.split_at(end_of_tag(rest)?);
            let (name, is_end) = name_of(text);
            let is_hidden = !is_end && HIDDEN.contains(&name.as_str()) && !text.ends_with("/>");
            self.0 = if is_hidden { behind_end(behind, &name) } else { behind };
            return Some(Tag { name, is_end, text, behind });
        }
    }
}

impl Tag<'_> {
    /// The value of an attribute; the first one of the name counts.
    pub(crate) fn attribute(&self, wanted: &str) -> Option<String> {
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

    /// The text from the tag to the next one.
    pub(crate) fn content(&self) -> String {
        let text = self.behind.trim_start();
        if let Some(plain) = text.strip_prefix("<![CDATA[") {
            return plain.find("]]>").map_or("", |end| &plain[..end]).trim().to_owned();
        }
        unescaped(&text[..text.find('<').unwrap_or(text.len())]).trim().to_owned()
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
        ] {
            let tag = Tags::of(tag).next().expect("a tag");
            assert_eq!(tag.attribute("href").as_deref(), expected, "{}", tag.text);
        }
    }

    #[test]
    fn what_is_hidden_has_no_tags() {
        let names = |text| Tags::of(text).map(|tag| tag.name).collect::<Vec<_>>().join(" ");
        assert_eq!(names("<!-- <a> --><script>'<b>'</script><i>x</i> 1 < 2"), "script i i");
    }

    proptest! {
        #[test]
        fn any_text_has_tags(text in "[<>/a-z=&;#\"'! é-]{0,80}") {
            for tag in Tags::of(&text) {
                tag.attribute("a");
                tag.content();
            }
        }
    }
}
