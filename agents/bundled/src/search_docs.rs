//! The agent `search-docs`: finds sections of the documentation by their words.

use std::collections::BTreeSet;

use rust_embed::Embed;
use serde_json::{Value, json};

#[derive(Embed)]
#[folder = "../../docs/agents"]
struct Agents;

#[derive(Embed)]
#[folder = "../../docs/concepts"]
struct Concepts;

#[derive(Embed)]
#[folder = "../../docs/operating"]
struct Operating;

const START: &str = include_str!("../../../docs/start.md");

/// Sections in an answer, if the input says nothing.
const LIMIT_DEFAULT: usize = 4;
const LIMIT_MAX: usize = 10;
/// Characters of a section's text.
const TEXT_CHARS_MAX: usize = 2000;
/// How much more a word counts in a heading than in a text.
const IN_HEADING: f64 = 4.0;
/// Words that stand in every section.
const COMMON: [&str; 24] = [
    "a", "an", "and", "are", "can", "do", "does", "for", "from", "how", "i", "in", "is", "it", "my", "of", "on", "or",
    "that", "the", "to", "what", "where", "with",
];

/// Why a document cannot be answered.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// The document is not JSON.
    #[error("the input is not JSON")]
    Json(#[source] serde_json::Error),
    /// The document has no query; the contract's schema already refuses such an input.
    #[error("the input has no query")]
    NoQuery,
}

/// A part of a page from one heading to the next.
struct Section {
    /// The page as `concepts/secrets`.
    page: String,
    /// The heading, after that of the page.
    title: String,
    text: String,
    heading_words: Vec<String>,
    words: Vec<String>,
}

/// Answers one document `{"input": {"query", "limit"?}, "context"}` of the exec provider.
///
/// ```
/// let output = atlas_bundled::search_docs(br#"{"input": {"query": "rotate a secret", "limit": 1}}"#).expect("a document");
/// assert!(output["sections"][0]["page"].as_str().expect("a page").contains("secret"));
/// ```
pub fn search_docs(document: &[u8]) -> Result<Value, SearchError> {
    let document: Value = serde_json::from_slice(document).map_err(SearchError::Json)?;
    let query = document["input"]["query"].as_str().ok_or(SearchError::NoQuery)?;
    let limit = document["input"]["limit"].as_u64().and_then(|limit| usize::try_from(limit).ok());
    let sections = sections();
    let found = best(&sections, query, limit.unwrap_or(LIMIT_DEFAULT).min(LIMIT_MAX));
    let shown = |section: &Section| {
        let text: String = section.text.chars().take(TEXT_CHARS_MAX).collect();
        json!({"page": section.page, "title": section.title, "text": text})
    };
    Ok(json!({"sections": found.into_iter().map(shown).collect::<Vec<_>>()}))
}

/// The sections of all pages, in the order of their names.
fn sections() -> Vec<Section> {
    let mut pages = vec![("start".to_owned(), START.to_owned())];
    let mut add = |folder: &str, path: &str, bytes: &[u8]| {
        if let Some(name) = path.strip_suffix(".md") {
            let name = if name == "README" { folder.to_owned() } else { format!("{folder}/{name}") };
            pages.push((name, String::from_utf8_lossy(bytes).into_owned()));
        }
    };
    for path in Agents::iter() {
        Agents::get(&path).iter().for_each(|file| add("agents", &path, &file.data));
    }
    for path in Concepts::iter() {
        Concepts::get(&path).iter().for_each(|file| add("concepts", &path, &file.data));
    }
    for path in Operating::iter() {
        Operating::get(&path).iter().for_each(|file| add("operating", &path, &file.data));
    }
    pages.sort();
    pages.iter().flat_map(|(page, text)| split(page, text)).collect()
}

/// The sections of a page. Headings within blocks of code are none.
fn split(page: &str, text: &str) -> Vec<Section> {
    let mut sections: Vec<(String, String)> = Vec::new();
    let (mut is_code, mut page_title) = (false, String::new());
    for line in text.lines() {
        is_code ^= line.starts_with("```");
        let heading = line.trim_start_matches('#');
        let is_heading = !is_code && heading.len() < line.len() && heading.starts_with(' ');
        match (is_heading, sections.last_mut()) {
            (true, None) => {
                page_title = heading.trim().to_owned();
                sections.push((page_title.clone(), String::new()));
            }
            (true, Some(_)) => sections.push((format!("{page_title}: {}", heading.trim()), String::new())),
            (false, None) => {}
            (false, Some((_, text))) => {
                text.push_str(line);
                text.push('\n');
            }
        }
    }
    let section = |(title, text): (String, String)| Section {
        page: page.to_owned(),
        heading_words: words(&format!("{page} {title}")),
        words: words(&text),
        text: text.trim().to_owned(),
        title,
    };
    sections.into_iter().map(section).filter(|section| !section.text.is_empty()).collect()
}

/// The sections with the most and the rarest words of a query, the best first.
fn best<'s>(sections: &'s [Section], query: &str, limit: usize) -> Vec<&'s Section> {
    let asked: BTreeSet<String> = words(query).into_iter().filter(|word| !COMMON.contains(&word.as_str())).collect();
    let mut scored: Vec<(f64, &Section)> = sections.iter().map(|section| (0.0, section)).collect();
    for word in &asked {
        let score = |section: &Section| {
            let count = |words: &[String]| words.iter().filter(|known| known.as_str() == word).count() as f64;
            let (heading, text) = (count(&section.heading_words), count(&section.words));
            // The second occurrence says less than the first one, and a word in a long text less than in a short one.
            IN_HEADING * heading.min(1.0) + (1.0 + text).ln() / (4.0 + (section.words.len() as f64 / 50.0)).ln()
        };
        let scores: Vec<f64> = sections.iter().map(score).collect();
        let having = scores.iter().filter(|score| **score > 0.0).count() as f64;
        let rarity = (1.0 + sections.len() as f64 / (1.0 + having)).ln();
        scored.iter_mut().zip(scores).for_each(|((total, _), score)| *total += score * rarity);
    }
    // The sort is stable: equal sections stay in the order of the pages.
    scored.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    scored.into_iter().filter(|(score, _)| *score > 0.0).take(limit).map(|(_, section)| section).collect()
}

/// The words of a text in lower case, without the `s` of a plural.
fn words(text: &str) -> Vec<String> {
    let word = |word: &str| {
        let word = word.to_lowercase();
        match word.strip_suffix('s') {
            Some(singular) if singular.len() > 3 && !singular.ends_with('s') => singular.to_owned(),
            _ => word,
        }
    };
    text.split(|c: char| !c.is_alphanumeric()).filter(|text| !text.is_empty()).map(word).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(query: &str, page: &str) {
        let found = search_docs(json!({"input": {"query": query}}).to_string().as_bytes()).expect("a document");
        let pages: Vec<&str> =
            found["sections"].as_array().into_iter().flatten().filter_map(|section| section["page"].as_str()).collect();
        assert!(pages.contains(&page), "{query}: {pages:?}");
    }

    #[test]
    fn questions_find_their_pages() {
        check("How do I store the value of a secret?", "concepts/secrets");
        check("rotate the key that seals secrets", "operating/secret-keys");
        check("restore a backup", "operating/restore");
        check("write an agent in Python", "agents/python");
        check("webhooks", "concepts/webhooks");
    }

    #[test]
    fn pages_are_split_at_headings() {
        let text = "# Page\nFirst.\n## Two\n```sh\n# no heading\n```\n## Empty\n### Three\nLast.\n";
        let sections = split("p", text);
        let shown: Vec<_> = sections.iter().map(|section| (section.title.as_str(), section.text.as_str())).collect();
        let two = "```sh\n# no heading\n```";
        assert_eq!(shown, [("Page", "First."), ("Page: Two", two), ("Page: Three", "Last.")]);
    }

    #[test]
    fn answers_are_bounded_and_may_be_empty() {
        let found = |input: Value| search_docs(json!({ "input": input }).to_string().as_bytes()).expect("a document");
        assert_eq!(
            found(json!({"query": "the of"})),
            json!({"sections": []}),
            "words that stand everywhere find nothing"
        );
        assert_eq!(found(json!({"query": "agent", "limit": 99}))["sections"].as_array().map(Vec::len), Some(LIMIT_MAX));
        assert!(search_docs(b"{").is_err() && search_docs(b"{}").is_err());
    }
}
