//! What a page says besides its text: its title, its links, and what it asks of programs that read it.

use url::Url;

use crate::tags::Tokens;

/// Most links of a page, each counted as often as it is there; further ones are left out.
pub const LINKS_MAX: usize = 10_000;

/// Most bytes of an address, as [`normal`] writes it. The name of a document cannot be longer either.
pub const ADDRESS_BYTES_MAX: usize = 1_024;

/// Most characters of a title.
const TITLE_CHARS_MAX: usize = 200;

/// What a page says besides its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Empty if it has none.
    pub title: String,
    /// The pages that it links, each once, as [`normal`] writes them.
    pub links: Vec<Url>,
    /// Whether it has more links than are read.
    pub has_more_links: bool,
    /// Whether it may be a document.
    pub is_indexed: bool,
    /// Whether its links may be followed.
    pub is_followed: bool,
}

impl Page {
    /// Reads a page that came from an address. It takes time that grows with the length of the page, whatever it contains.
    pub fn read(html: &str, from: &Url) -> Self {
        let mut page = Self {
            title: String::new(),
            links: Vec::new(),
            has_more_links: false,
            is_indexed: true,
            is_followed: true,
        };
        let (mut base, mut seen, mut links) = (from.clone(), std::collections::BTreeSet::new(), 0);
        for tag in Tokens::of(html).tags().filter(|tag| !tag.is_end) {
            match tag.name.as_str() {
                "title" if page.title.is_empty() => {
                    let content = tag.content();
                    let words: Vec<&str> = content.split_whitespace().take(TITLE_CHARS_MAX).collect();
                    page.title = words.join(" ").chars().take(TITLE_CHARS_MAX).collect();
                }
                // A long one would be copied for each link.
                "base" => {
                    if let Some(to) = tag.attribute("href").and_then(|to| joined(from, &to)).and_then(normal) {
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
                "a" | "area" => {
                    let Some(to) = tag.attribute("href") else { continue };
                    links += 1;
                    if links > LINKS_MAX {
                        page.has_more_links = true;
                        continue;
                    }
                    let to = joined(&base, &to).and_then(normal);
                    page.links.extend(to.filter(|to| seen.insert(to.clone())));
                }
                _ => {}
            }
        }
        page
    }
}

/// The address that a text means on a page. Texts that are much longer than any address are none.
pub(crate) fn joined(base: &Url, text: &str) -> Option<Url> {
    let text = text.trim();
    // Without its fragment, an address may be short enough.
    let text = text.split_once('#').filter(|_| text.len() > ADDRESS_BYTES_MAX).map_or(text, |(text, _)| text);
    if text.len() <= ADDRESS_BYTES_MAX { base.join(text).ok() } else { None }
}

/// The address by which a page is known: without a fragment. None for what is no page of a server, for one with a user or a password, and
/// for one of more than [`ADDRESS_BYTES_MAX`] bytes.
pub fn normal(mut url: Url) -> Option<Url> {
    let is_page = matches!(url.scheme(), "http" | "https") && url.has_host();
    if !is_page || !url.username().is_empty() || url.password().is_some() {
        return None;
    }
    url.set_fragment(None);
    Some(url).filter(|url| url.as_str().len() <= ADDRESS_BYTES_MAX)
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
        assert_eq!((page.links.len(), page.has_more_links), (LINKS_MAX, true));
        let page = Page::read(&"<a href=x>".repeat(LINKS_MAX + 1), &Url::parse("http://h/").expect("an address"));
        assert_eq!((page.links.len(), page.has_more_links), (1, true));
    }

    #[test]
    fn addresses_have_a_bound() {
        let from = Url::parse("http://h/").expect("an address");
        let links = |html: &str| Page::read(html, &from).links.len();
        let path = |bytes: usize| "a".repeat(bytes - "http://h/".len());
        assert_eq!(links(&format!("<a href='{}'>", path(ADDRESS_BYTES_MAX))), 1);
        assert_eq!(links(&format!("<a href='{}'>", path(ADDRESS_BYTES_MAX + 1))), 0);
        // Three bytes for each one when it is written down.
        assert_eq!(links(&format!("<a href='/{}x'>", "\u{1}".repeat(ADDRESS_BYTES_MAX / 2))), 0);
        assert_eq!(links(&format!("<a href='/{}'>", "a".repeat(1 << 20))), 0);
        assert_eq!(links(&format!("<a href='/x#{}'>", "a".repeat(1 << 20))), 1);
        // A base that is too long does not count.
        assert_eq!(links(&format!("<base href='/{}/'><a href=x>", "a".repeat(1 << 20))), 1);
        let page = format!("<base href='/{}/'>", path(1_000)) + &"<a href=x>".repeat(100_000);
        let kept: usize = Page::read(&page, &from).links.iter().map(|link| link.as_str().len()).sum();
        assert!(kept <= LINKS_MAX * ADDRESS_BYTES_MAX, "{kept} bytes");
    }

    #[test]
    fn a_title_of_many_words_has_a_bound() {
        let page =
            Page::read(&format!("<title>{}</title>", "x ".repeat(1 << 20)), &Url::parse("http://h/").expect("one"));
        assert_eq!(page.title.chars().count(), TITLE_CHARS_MAX);
    }
}
