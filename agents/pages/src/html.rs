//! HTML as Markdown, as far as a search needs it: headings, paragraphs, lists and plain text. What is not shown to a reader is left out.

/// Elements whose content nobody reads.
pub(crate) const HIDDEN: [&str; 6] = ["script", "style", "title", "template", "noscript", "svg"];

/// Elements that begin a paragraph.
const BLOCKS: [&str; 22] = [
    "p",
    "div",
    "section",
    "article",
    "main",
    "header",
    "footer",
    "nav",
    "aside",
    "ul",
    "ol",
    "table",
    "tr",
    "pre",
    "blockquote",
    "form",
    "figure",
    "dl",
    "dt",
    "dd",
    "hr",
    "body",
];

/// Characters by their names.
const NAMED: [(&str, &str); 12] = [
    ("amp", "&"),
    ("lt", "<"),
    ("gt", ">"),
    ("quot", "\""),
    ("apos", "'"),
    ("nbsp", " "),
    ("ndash", "–"),
    ("mdash", "—"),
    ("hellip", "…"),
    ("copy", "©"),
    ("shy", ""),
    ("euro", "€"),
];

/// What a page says, as Markdown.
pub fn markdown(html: &str) -> String {
    let mut out = Out::default();
    let mut rest = html;
    while let Some(place) = rest.find('<') {
        out.text(&rest[..place]);
        rest = &rest[place..];
        if let Some(comment) = rest.strip_prefix("<!--") {
            rest = comment.find("-->").map_or("", |end| &comment[end + 3..]);
            continue;
        }
        let is_tag = rest[1..].starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '/' | '!' | '?'));
        if !is_tag {
            out.text("<");
            rest = &rest[1..];
            continue;
        }
        let Some(end) = end_of_tag(rest) else { break };
        let (tag, behind) = rest.split_at(end);
        rest = behind;
        let (name, is_end) = name_of(tag);
        if HIDDEN.contains(&name.as_str()) && !is_end && !tag.ends_with("/>") {
            rest = behind_end(rest, &name);
            continue;
        }
        out.tag(&name, is_end);
    }
    if !rest.starts_with('<') {
        out.text(rest);
    }
    out.finish()
}

/// The place behind a tag: a `>` within quotation marks does not end it.
pub(crate) fn end_of_tag(text: &str) -> Option<usize> {
    let mut quote = None;
    for (place, byte) in text.bytes().enumerate() {
        match (quote, byte) {
            (None, b'>') => return Some(place + 1),
            (None, b'"' | b'\'') => quote = Some(byte),
            (Some(open), byte) if open == byte => quote = None,
            _ => {}
        }
    }
    // Quotation marks that nothing closes are no reason to lose the page.
    text.find('>').map(|place| place + 1)
}

pub(crate) fn name_of(tag: &str) -> (String, bool) {
    let inner = tag.trim_start_matches('<');
    let (inner, is_end) = inner.strip_prefix('/').map_or((inner, false), |inner| (inner, true));
    (inner.chars().take_while(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase(), is_end)
}

/// What is behind the end of an element.
pub(crate) fn behind_end<'a>(text: &'a str, name: &str) -> &'a str {
    let mut rest = text;
    while let Some(place) = rest.find("</") {
        rest = &rest[place..];
        let end = end_of_tag(rest).unwrap_or(rest.len());
        if name_of(&rest[..end]).0 == name {
            return &rest[end..];
        }
        rest = &rest[2..];
    }
    ""
}

#[derive(Default)]
struct Out {
    text: String,
    /// Line ends that come before the next text.
    ends: usize,
    /// Whether a space comes before the next text.
    space: bool,
    /// What begins the next text: the mark of a heading or of an item.
    mark: String,
    preformatted: bool,
}

impl Out {
    fn text(&mut self, text: &str) {
        let text = unescaped(text);
        if self.preformatted {
            if !text.is_empty() {
                self.begin();
                self.text += &text;
            }
            return;
        }
        for (place, word) in text.split(|c: char| c.is_ascii_whitespace()).enumerate() {
            self.space |= place > 0;
            if !word.is_empty() {
                self.begin();
                self.text += word;
            }
        }
    }

    /// Writes what comes before a text.
    fn begin(&mut self) {
        if !self.text.is_empty() {
            let space = if self.space && self.ends == 0 { " " } else { "" };
            self.text += &"\n".repeat(self.ends);
            self.text += space;
        }
        self.text += &std::mem::take(&mut self.mark);
        (self.ends, self.space) = (0, false);
    }

    fn tag(&mut self, name: &str, is_end: bool) {
        let heading = name
            .strip_prefix('h')
            .and_then(|level| level.parse::<usize>().ok())
            .filter(|level| (1..=6).contains(level));
        if let Some(level) = heading {
            self.ends = 2;
            self.mark = if is_end { String::new() } else { "#".repeat(level) + " " };
        } else if name == "li" {
            self.ends = self.ends.max(1);
            self.mark = if is_end { String::new() } else { "- ".to_owned() };
        } else if name == "br" {
            self.ends = self.ends.max(1);
        } else if matches!(name, "td" | "th") {
            self.space = true;
        } else if BLOCKS.contains(&name) {
            self.ends = if name == "tr" { self.ends.max(1) } else { 2 };
            if name == "pre" {
                self.preformatted = !is_end;
            }
        }
    }

    fn finish(self) -> String {
        let text = self.text.trim_end();
        if text.is_empty() { String::new() } else { format!("{text}\n") }
    }
}

/// A text without references to characters.
pub(crate) fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(place) = rest.find('&') {
        out += &rest[..place];
        rest = &rest[place..];
        let end = rest.bytes().take(12).position(|byte| byte == b';');
        match end.and_then(|end| Some((end, character(&rest[1..end])?))) {
            Some((end, character)) => {
                out += &character;
                rest = &rest[end + 1..];
            }
            None => {
                out.push('&');
                rest = &rest[1..];
            }
        }
    }
    out + rest
}

fn character(name: &str) -> Option<String> {
    let Some(number) = name.strip_prefix('#') else {
        return NAMED.iter().find(|(known, _)| *known == name).map(|(_, text)| (*text).to_owned());
    };
    let number = match number.strip_prefix(['x', 'X']) {
        Some(digits) => u32::from_str_radix(digits, 16).ok()?,
        None => number.parse().ok()?,
    };
    char::from_u32(number).filter(|character| !character.is_control()).map(String::from)
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    use super::*;

    fn check(html: &str, expected: &Expect) {
        expected.assert_eq(&markdown(html));
    }

    #[test]
    fn a_page_becomes_markdown() {
        check(
            "<!DOCTYPE html><html><head><title>T</title></head><body class='a>b'><h2>Leave</h2>\n<p>Thirty <b>days</b>,\n see \
             <a href=\"x\">here</a>.</p><ul><li>one<li>two</ul><pre>a\n  b</pre><table><tr><td>x</td><td>y</td></tr></table></body></html>",
            &expect![[r#"
                ## Leave

                Thirty days, see here.

                - one
                - two

                a
                  b

                x y
            "#]],
        );
        check("a &lt;b&gt; &amp; &#233;&#x21; &unknown; &", &expect!["a <b> & é! &unknown; &\n"]);
        check("1 < 2 <!-- <p>no</p> --> and <script>if (a < b) {}</script>more", &expect!["1 < 2 and more\n"]);
    }

    #[test]
    fn what_is_no_page_is_read_as_far_as_it_goes() {
        check("", &expect![""]);
        check("<script>never closed", &expect![""]);
        // The end of a head may be left out.
        check("<head><title>T</title><body>text", &expect!["text\n"]);
        check("text <p", &expect!["text\n"]);
        check("<p title=\"open>text</p>", &expect!["text\n"]);
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "[<>/a-z&;#\"'! é-]{0,80}") {
            markdown(&text);
        }
    }
}
