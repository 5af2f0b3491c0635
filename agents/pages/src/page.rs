//! What a page says besides its text: its title, its links, and what it asks of programs that read it.

use url::Url;

use crate::tags::Tags;

/// Most links of a page; further ones are left out.
pub const LINKS_MAX: usize = 10_000;

/// Most characters of a title.
const TITLE_CHARS_MAX: usize = 200;

/// What a page says besides its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Empty if it has none.
    pub title: String,
    /// The pages that it links, each once, as [`normal`] writes them.
    pub links: Vec<Url>,
    /// Whether it may be a document.
    pub is_indexed: bool,
    /// Whether its links may be followed.
    pub is_followed: bool,
}

impl Page {
    /// Reads a page that came from an address.
    pub fn read(html: &str, from: &Url) -> Self {
        let mut page = Self { title: String::new(), links: Vec::new(), is_indexed: true, is_followed: true };
        let (mut base, mut seen) = (from.clone(), std::collections::BTreeSet::new());
        for tag in Tags::of(html).filter(|tag| !tag.is_end) {
            match tag.name.as_str() {
                "title" if page.title.is_empty() => {
                    let words: Vec<String> = tag.content().split_whitespace().map(str::to_owned).collect();
                    page.title = words.join(" ").chars().take(TITLE_CHARS_MAX).collect();
                }
                "base" => {
                    if let Some(to) = tag.attribute("href").and_then(|to| from.join(&to).ok()) {
                        base = to;
                    }
                }
                "meta" => {
                    let name = tag.attribute("name").unwrap_or_default().to_ascii_lowercase();
                    if matches!(name.as_str(), "robots" | "atlas") {
                        let asked = tag.attribute("content").unwrap_or_default().to_ascii_lowercase();
                        let asks =
                            |word: &str| asked.split(',').any(|one| matches!(one.trim(), "none") || one.trim() == word);
                        page.is_indexed &= !asks("noindex");
                        page.is_followed &= !asks("nofollow");
                    }
                }
                "a" | "area" if page.links.len() < LINKS_MAX => {
                    let to = tag.attribute("href").and_then(|to| base.join(to.trim()).ok()).and_then(normal);
                    page.links.extend(to.filter(|to| seen.insert(to.clone())));
                }
                _ => {}
            }
        }
        page
    }
}

/// The address by which a page is known: without a fragment. None for what is no page of a server, and for one with a user or a password.
pub fn normal(mut url: Url) -> Option<Url> {
    let is_page = matches!(url.scheme(), "http" | "https") && url.has_host();
    if !is_page || !url.username().is_empty() || url.password().is_some() {
        return None;
    }
    url.set_fragment(None);
    Some(url)
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(html: &str, expected: &Expect) {
        let page = Page::read(html, &Url::parse("https://example.org/docs/a.html?x#y").expect("an address"));
        let links: Vec<&str> = page.links.iter().map(Url::as_str).collect();
        expected
            .assert_eq(&format!("{:?} index {} follow {} {links:?}", page.title, page.is_indexed, page.is_followed));
    }

    #[test]
    fn links_are_whole_addresses_and_each_is_there_once() {
        check(
            "<title> A\n page </title><a href='b.html#1'>b</a><a href=b.html>b</a><a href=/c?d=1&amp;e=2>c</a><a href=//other.org>o</a>",
            &expect![[
                r#""A page" index true follow true ["https://example.org/docs/b.html", "https://example.org/c?d=1&e=2", "https://other.org/"]"#
            ]],
        );
        check("<base href='/x/'><a href=y>", &expect![[r#""" index true follow true ["https://example.org/x/y"]"#]]);
    }

    #[test]
    fn what_leads_to_no_page_is_no_link() {
        check(
            "<a href=mailto:a@b><a href=javascript:x()><a href=ftp://h/><a href=http://u:p@h/><a href=http://[><a href=data:,x><a>",
            &expect![[r#""" index true follow true []"#]],
        );
        check("<!-- <a href=x> --><script><a href=y></script>", &expect![[r#""" index true follow true []"#]]);
    }

    #[test]
    fn a_page_may_ask_to_be_left_out() {
        check("<meta name=ROBOTS content='NoIndex, x'>", &expect![[r#""" index false follow true []"#]]);
        check("<meta content=none name=robots>", &expect![[r#""" index false follow false []"#]]);
        check("<meta name=robots content=nofollow>", &expect![[r#""" index true follow false []"#]]);
    }

    #[test]
    fn a_page_of_links_alone_has_a_bound() {
        let html: String = (0..LINKS_MAX + 10).map(|number| format!("<a href={number}>")).collect();
        let page = Page::read(&html, &Url::parse("http://h/").expect("an address"));
        assert_eq!(page.links.len(), LINKS_MAX);
    }
}
