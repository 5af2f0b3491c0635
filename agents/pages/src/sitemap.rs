//! Sitemaps: the pages of a website as it lists them, or further sitemaps.

use url::Url;

use crate::page::{joined, normal};
use crate::tags::Tokens;

/// Most addresses of one sitemap, as the protocol has it, with those that do not count; further ones are left out.
pub const ENTRIES_MAX: usize = 50_000;

/// What a sitemap lists.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sitemap {
    pub pages: Vec<Url>,
    /// Further sitemaps.
    pub sitemaps: Vec<Url>,
    /// Whether it lists more than is read.
    pub has_more: bool,
}

impl Sitemap {
    /// Reads a sitemap: XML, or a text with an address on each line. None if it lists nothing. Addresses of other hosts than its own are
    /// left out, since a website speaks for itself alone, and so are those that are too long for a page. It takes time that grows with the
    /// length of the text, whatever it contains.
    pub fn read(text: &str, from: &Url) -> Option<Self> {
        let text = text.trim_start_matches('\u{feff}').trim_start();
        let mut found = Self::default();
        let own = |address: &str| joined(from, address).and_then(normal).filter(|url| url.host() == from.host());
        if !text.starts_with('<') {
            let mut lines = text.lines().map(str::trim).filter(|line| line.starts_with("http"));
            found.pages = lines.by_ref().take(ENTRIES_MAX).filter_map(own).collect();
            found.has_more = lines.next().is_some();
            return Some(found).filter(|found| !found.pages.is_empty());
        }
        let (mut is_sitemap, mut entries) = (false, 0);
        for tag in Tokens::of(text).tags().filter(|tag| !tag.is_end) {
            match tag.name.as_str() {
                "sitemap" => is_sitemap = true,
                "url" => is_sitemap = false,
                "loc" => {
                    entries += 1;
                    if entries > ENTRIES_MAX {
                        found.has_more = true;
                        break;
                    }
                    let list = if is_sitemap { &mut found.sitemaps } else { &mut found.pages };
                    list.extend(own(&tag.content()));
                }
                _ => {}
            }
        }
        Some(found).filter(|found| !found.pages.is_empty() || !found.sitemaps.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(text: &str, expected: &Expect) {
        let read = Sitemap::read(text, &Url::parse("https://example.org/sitemap.xml").expect("an address"));
        let shown = read.map_or_else(
            || "nothing".to_owned(),
            |Sitemap { pages, sitemaps, .. }| {
                let words = |urls: &[Url]| urls.iter().map(Url::as_str).collect::<Vec<_>>().join(" ");
                format!("pages {} sitemaps {}", words(&pages), words(&sitemaps))
            },
        );
        expected.assert_eq(&shown);
    }

    #[test]
    fn pages_and_further_sitemaps_are_read() {
        check(
            "<?xml version='1.0'?><urlset xmlns='x'><url><loc> https://example.org/a?b&amp;c </loc><image:image><image:loc>https://example.org/i.png</image:loc></image:image></url><url><loc><![CDATA[https://example.org/d]]></loc></url></urlset>",
            &expect!["pages https://example.org/a?b&c https://example.org/d sitemaps "],
        );
        check(
            "<sitemapindex><sitemap><loc>https://example.org/1.xml</loc></sitemap></sitemapindex>",
            &expect!["pages  sitemaps https://example.org/1.xml"],
        );
        check(
            "https://example.org/a\nnothing\nhttps://example.org/b\n",
            &expect!["pages https://example.org/a https://example.org/b sitemaps "],
        );
    }

    #[test]
    fn other_hosts_and_other_files_are_left_out() {
        check(
            "<urlset><url><loc>https://other.org/a</loc></url><url><loc>file:///etc/passwd</loc></url></urlset>",
            &expect!["nothing"],
        );
        check("<html><body>404</body></html>", &expect!["nothing"]);
        check("", &expect!["nothing"]);
        check("<urlset><url><loc>https://example.org/a", &expect!["pages https://example.org/a sitemaps "]);
    }

    #[test]
    fn a_long_one_has_a_bound() {
        let text = "<loc>/a</loc>".repeat(ENTRIES_MAX + 5);
        let read = Sitemap::read(&text, &Url::parse("http://h/").expect("an address")).expect("a sitemap");
        assert_eq!((read.pages.len(), read.has_more), (ENTRIES_MAX, true));
        let text = "http://h/a\n".repeat(ENTRIES_MAX + 1);
        let read = Sitemap::read(&text, &Url::parse("http://h/").expect("an address")).expect("a sitemap");
        assert_eq!((read.pages.len(), read.has_more), (ENTRIES_MAX, true));
        // What is too long for a page is no reason to look at more.
        let text = format!("<loc>/{}</loc>", "a".repeat(2_000)).repeat(100) + "<loc>/b</loc>";
        let read = Sitemap::read(&text, &Url::parse("http://h/").expect("an address")).expect("a sitemap");
        assert_eq!((read.pages.len(), read.has_more), (1, false));
    }
}
