//! Searches in a text. Tests count the bytes that they look at: the time in which a text is read grows with its length, and no faster, also for
//! a text that somebody has made to be slow.

/// The place of a text in another one.
pub(crate) fn find(text: &str, wanted: &str) -> Option<usize> {
    let place = text.find(wanted);
    looked(place.map_or(text.len(), |place| place + wanted.len()));
    place
}

/// Counts bytes that were looked at without [`find`].
#[cfg(not(test))]
pub(crate) fn looked(_bytes: usize) {}

#[cfg(test)]
pub(crate) use counted::{looked, steps};

#[cfg(test)]
mod counted {
    use std::cell::Cell;

    thread_local! {
        static LOOKED: Cell<usize> = const { Cell::new(0) };
    }

    pub(crate) fn looked(bytes: usize) {
        LOOKED.with(|looked| looked.set(looked.get() + bytes));
    }

    /// How many bytes some work looks at.
    pub(crate) fn steps(work: impl FnOnce()) -> usize {
        LOOKED.with(|looked| looked.set(0));
        work();
        LOOKED.with(Cell::get)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use url::Url;

    use super::steps;
    use crate::{Page, Sitemap, markdown};

    /// Bytes of the shorter one of two texts.
    const BYTES: usize = 20_000;

    /// Most looks at one byte.
    const LOOKS_MAX: usize = 24;

    /// Reads a text in all ways, and fails if one of twice the length takes much more than twice the steps.
    fn check(head: &str, piece: &str) {
        let from = Url::parse("https://example.org/a").expect("an address");
        type Reader<'a> = (&'a str, &'a dyn Fn(&str));
        let readers: [Reader<'_>; 3] = [
            ("markdown", &|text| drop(markdown(text))),
            ("page", &|text| drop(Page::read(text, &from))),
            ("sitemap", &|text| drop(Sitemap::read(text, &from))),
        ];
        let of_length = |bytes: usize| format!("{head}{}", piece.repeat(bytes / piece.len()));
        let (short, long) = (of_length(BYTES), of_length(2 * BYTES));
        for (name, read) in readers {
            let (once, twice) = (steps(|| read(&short)), steps(|| read(&long)));
            assert!(twice <= 2 * once + once / 5 + 1_000, "{name} of {head:?} {piece:?}: {once} steps, then {twice}");
            assert!(once <= LOOKS_MAX * BYTES, "{name} of {head:?} {piece:?}: {once} steps");
        }
    }

    #[test]
    fn reading_takes_steps_that_grow_with_the_text() {
        for (head, piece) in [
            ("<script>", "</"),
            ("<script>", "</scrip>"),
            ("<script>", "</script "),
            ("<script>", "<script>"),
            ("", "<script>"),
            ("", "<script/>"),
            ("", "<svg><title>"),
            ("", "</title"),
            ("", "<a \">\""),
            ("", "<a x=\">\""),
            ("", "<a x='>'"),
            ("", "<a x=\">'"),
            ("", "<a x=\">"),
            ("", "<a x=\""),
            ("", "<a x='\"'"),
            ("", "<a href='x' href='y'>"),
            ("<a", " x"),
            ("<a", " ="),
            ("<a", " x='"),
            ("<a x=", "y"),
            ("<base href=", "y"),
            ("<base href=https://example.org/", "<a href=y>"),
            ("<a href='x'", "/"),
            ("<", "a"),
            ("<h", "1"),
            ("", "<"),
            ("", "<<"),
            ("", "</"),
            ("", "<!"),
            ("", "<?"),
            ("", "<!--"),
            ("", "<!-->"),
            ("", "<!-- --"),
            ("", "-->"),
            ("", "<![CDATA["),
            ("", "<![CDATA[]]"),
            ("", "<loc>"),
            ("<urlset>", "<loc><![CDATA["),
            ("<urlset>", "<loc> <![CDATA[x]]"),
            ("<urlset>", "<loc>https://example.org/a</loc>"),
            ("<sitemapindex>", "<sitemap><loc>"),
            ("<loc>", " "),
            ("<title>", "&"),
            ("<title>", "x "),
            ("", "<title>&amp;</title>"),
            ("", "&"),
            ("", "&#"),
            ("", "&#x110000;"),
            ("", "&aaaaaaaaaaaa"),
            ("", "&amp;"),
            ("<pre>", "\n"),
            ("<pre>", "&<"),
            ("", " \n"),
            ("", "<br> "),
            ("", "<li><h1>"),
            ("", "<meta name=robots content=',,,,'>"),
            ("<meta name=robots content='", ","),
            ("http", "http\n"),
            ("", "é<é"),
        ] {
            check(head, piece);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn no_repetition_is_slow(
            head in "(<a |<script>|<title>|<loc>|<base href=|<!--|x|\"|'){0,2}",
            piece in "(<|>|/|!|-|a|=|\"|'|&|;|#| |\\[CDATA\\[|\\]\\]>|script|loc|</|<!--|-->|é){1,6}",
        ) {
            check(&head, &piece);
        }
    }
}
