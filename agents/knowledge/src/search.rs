//! Which entries a search and a list give (compatibility §23.2).

use crate::{Acl, Entry, Name};

/// Most results of a search that names no limit.
pub const SEARCH_LIMIT: usize = 10;

/// Most entries of a list that names no limit.
pub const LIST_LIMIT: usize = 50;

/// What is searched for.
#[derive(Debug, Clone, Copy)]
pub struct Query<'q> {
    /// Compared without case; empty for everything.
    pub text: &'q str,
    /// Only entries of this domain; none or empty for all.
    pub domain: Option<&'q str>,
    /// Only entries with one of these tags, compared exactly; empty for all.
    pub tags: &'q [String],
    /// Who searches.
    pub acl: &'q Acl,
}

/// The entries that match, in their order. An entry that may not be read does not count for the limit.
pub fn search<E: AsRef<Entry>>(entries: impl IntoIterator<Item = E>, query: &Query<'_>, limit: usize) -> Vec<E> {
    let text = query.text.to_lowercase();
    entries.into_iter().filter(|entry| matches(entry.as_ref(), query, &text)).take(limit).collect()
}

/// A part of the entries, in their order.
pub fn list<E: AsRef<Entry>>(
    entries: impl IntoIterator<Item = E>,
    domain: Option<&str>,
    acl: &Acl,
    limit: usize,
    offset: usize,
) -> Vec<E> {
    let selected = |entry: &E| is_in(&entry.as_ref().domain, domain) && acl.reads(entry.as_ref().domain.as_str());
    entries.into_iter().filter(selected).skip(offset).take(limit).collect()
}

fn matches(entry: &Entry, query: &Query<'_>, text: &str) -> bool {
    let tagged = query.tags.is_empty() || entry.tags.iter().any(|tag| query.tags.contains(tag));
    tagged
        && is_in(&entry.domain, query.domain)
        && query.acl.reads(entry.domain.as_str())
        && (text.is_empty() || format!("{} {}", entry.content, entry.tags.join(" ")).to_lowercase().contains(text))
}

fn is_in(domain: &Name, wanted: Option<&str>) -> bool {
    wanted.is_none_or(|wanted| wanted.is_empty() || wanted == domain.as_str())
}

impl AsRef<Entry> for Entry {
    fn as_ref(&self) -> &Entry {
        self
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Draft;

    fn entry(id: &str, domain: &str, content: &str, tags: &[&str]) -> Entry {
        let tags = tags.iter().map(|tag| (*tag).to_owned()).collect();
        let draft = Draft { id: id.to_owned(), domain: domain.to_owned(), tags, ..Draft::new(content) };
        Entry::new(draft, "", 0).expect("an entry")
    }

    fn entries() -> Vec<Entry> {
        vec![
            entry("a1", "ai", "Pools run jobs", &["pool"]),
            entry("a2", "ai", "entropy of text", &[]),
            entry("p1", "physics", "Entropy rises", &["heat", "Law"]),
            entry("p2", "physics", "ÉNERGIE", &["Law"]),
        ]
    }

    fn ids(found: &[Entry]) -> String {
        found.iter().map(|entry| entry.id.as_str()).collect::<Vec<_>>().join(" ")
    }

    #[track_caller]
    fn check(text: &str, domain: Option<&str>, tags: &[&str], expected: &str) {
        let tags: Vec<String> = tags.iter().map(|tag| (*tag).to_owned()).collect();
        let query = Query { text, domain, tags: &tags, acl: &Acl::everything() };
        assert_eq!(ids(&search(entries(), &query, SEARCH_LIMIT)), expected);
    }

    #[test]
    fn content_and_tags_are_searched_without_case() {
        check("ENTROPY", None, &[], "a2 p1");
        check("law", None, &[], "p1 p2");
        check("rises heat l", None, &[], "p1");
        check("énergie", None, &[], "p2");
        check("", None, &[], "a1 a2 p1 p2");
        check("nothing", None, &[], "");
    }

    #[test]
    fn domains_and_tags_are_compared_exactly() {
        check("entropy", Some("ai"), &[], "a2");
        check("entropy", Some(""), &[], "a2 p1");
        check("", Some("AI"), &[], "");
        check("", Some("../ai"), &[], "");
        check("", None, &["Law", "pool"], "a1 p1 p2");
        check("", None, &["law"], "");
    }

    #[test]
    fn what_may_not_be_read_does_not_count_for_the_limit() {
        let acl = Acl { read_domains: vec!["physics".to_owned()], ..Acl::everything() };
        let query = Query { text: "", domain: None, tags: &[], acl: &acl };
        assert_eq!(ids(&search(entries(), &query, 1)), "p1");
        assert_eq!(ids(&list(entries(), None, &acl, 1, 1)), "p2");
    }

    #[test]
    fn lists_have_pages() {
        let acl = Acl::everything();
        assert_eq!(ids(&list(entries(), None, &acl, 2, 1)), "a2 p1");
        assert_eq!(ids(&list(entries(), Some("physics"), &acl, LIST_LIMIT, 1)), "p2");
        assert_eq!(ids(&list(entries(), None, &acl, usize::MAX, usize::MAX)), "");
        assert_eq!(ids(&list(entries(), None, &acl, 0, 0)), "");
    }

    proptest! {
        #[test]
        fn every_result_matches_and_pages_cover_the_list(text in "[a-z ]{0,2}", limit in 1usize..4) {
            let acl = Acl::everything();
            let query = Query { text: &text, domain: None, tags: &[], acl: &acl };
            for found in search(entries(), &query, limit) {
                let searched = format!("{} {}", found.content, found.tags.join(" ")).to_lowercase();
                prop_assert!(searched.contains(&text));
            }
            let pages = (0..4).step_by(limit).flat_map(|offset| list(entries(), None, &acl, limit, offset));
            prop_assert_eq!(pages.collect::<Vec<_>>(), entries());
        }
    }
}
