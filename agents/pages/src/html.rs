//! HTML as Markdown, as far as a search needs it: headings, paragraphs, lists and plain text. What is not shown to a reader is left out.

use crate::entities::unescaped;
use crate::scan::looked;
use crate::tags::{Token, Tokens};

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

/// What a page says, as Markdown. It takes time that grows with the length of the page, whatever it contains.
pub fn markdown(html: &str) -> String {
    let mut out = Out::default();
    for token in Tokens::of(html) {
        match token {
            Token::Text(text) => out.text(text),
            Token::Tag(tag) => out.tag(&tag.name, tag.is_end),
        }
    }
    out.finish()
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
        looked(text.len());
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
        // Quotation marks count only where a value begins.
        check(
            "<p title=it's>one</p><p \">two</p>'<p title = '>'>three",
            &expect![[r#"
            one

            two

            '

            three
        "#]],
        );
        check("<script>a</scrip></script>b<style>x</STYLE >c", &expect!["bc\n"]);
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "[<>/a-z&;#\"'! é-]{0,80}") {
            markdown(&text);
        }
    }
}
