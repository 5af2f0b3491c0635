//! The search over the tools of a server: BM25 over name, description and the name of the server.

use std::collections::BTreeMap;

use crate::RemoteTool;

/// The usual constants of BM25, in thousandths: how much repeated words count, and how much long descriptions are discounted.
const REPEAT: u64 = 1_200;
const LENGTH: u64 = 750;

/// The best tools for a query, at most `most`, the best first; equally good ones in the server's order. A query of which no word
/// matches finds nothing.
pub fn search<'a>(server: &str, tools: &'a [RemoteTool], query: &str, most: usize) -> Vec<&'a RemoteTool> {
    let documents: Vec<BTreeMap<String, u64>> = tools.iter().map(|tool| counted(server, tool)).collect();
    let words: Vec<String> = words(query).collect();
    let total: u64 = documents.iter().flat_map(BTreeMap::values).sum();
    let mean = (total / documents.len().max(1) as u64).max(1);
    let mut scored: Vec<(u64, usize)> = Vec::new();
    for (place, document) in documents.iter().enumerate() {
        let length: u64 = document.values().sum();
        let score: u64 = words
            .iter()
            .map(|word| {
                let times = document.get(word).copied().unwrap_or(0);
                if times == 0 {
                    return 0;
                }
                let having = documents.iter().filter(|document| document.contains_key(word)).count() as u64;
                rarity(documents.len() as u64, having) * weight(times, length, mean)
            })
            .sum();
        if score > 0 {
            scored.push((score, place));
        }
    }
    scored.sort_by_key(|&(score, place)| (std::cmp::Reverse(score), place));
    scored.into_iter().take(most).map(|(_, place)| &tools[place]).collect()
}

/// How much a word tells that `having` of `all` documents contain, in thousandths: the logarithm of 1 + (all − having + ½) / (having + ½).
fn rarity(all: u64, having: u64) -> u64 {
    let ratio = (2 * (all - having) + 1) as f64 / (2 * having + 1) as f64;
    ((1.0 + ratio).ln() * 1_000.0) as u64
}

/// How much a word counts that a document of this length contains so many times, in thousandths.
fn weight(times: u64, length: u64, mean: u64) -> u64 {
    let discount = 1_000 - LENGTH + LENGTH * length / mean;
    times * (REPEAT + 1_000) * 1_000 / (times * 1_000 + REPEAT * discount / 1_000).max(1)
}

/// The words of a tool with how often each is there. Words of the name count twice.
fn counted(server: &str, tool: &RemoteTool) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for word in words(&tool.name).chain(words(&tool.name)).chain(words(&tool.description)).chain(words(server)) {
        *counts.entry(word).or_insert(0) += 1;
    }
    counts
}

/// The words of a text in lower case: runs of letters and digits, `camelCase` as two.
fn words(text: &str) -> impl Iterator<Item = String> {
    let mut found = vec![String::new()];
    let mut after_small = false;
    for character in text.chars() {
        let begins = !character.is_alphanumeric() || (after_small && character.is_uppercase());
        if begins {
            found.push(String::new());
        }
        if character.is_alphanumeric()
            && let Some(word) = found.last_mut()
        {
            word.extend(character.to_lowercase());
        }
        after_small = character.is_lowercase();
    }
    found.into_iter().filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tools() -> Vec<RemoteTool> {
        [
            ("list_issues", "Lists the issues of a repository."),
            ("createIssue", "Opens a new issue in a repository."),
            ("get_weather", "Tells the weather of a city."),
            ("noop", ""),
        ]
        .map(|(name, description)| RemoteTool {
            name: name.to_owned(),
            description: description.to_owned(),
            input_schema: json!({}),
        })
        .into()
    }

    fn found(query: &str, most: usize) -> Vec<String> {
        search("github", &tools(), query, most).iter().map(|tool| tool.name.clone()).collect()
    }

    #[test]
    fn the_best_tool_is_first() {
        assert_eq!(found("create an issue", 8), ["createIssue"]);
        assert_eq!(found("weather", 8), ["get_weather"]);
        assert_eq!(found("repository issues", 1), ["list_issues"]);
        assert_eq!(found("github", 8).len(), 4);
        assert!(found("", 8).is_empty() && found("unknown", 8).is_empty());
        assert!(search("s", &[], "x", 8).is_empty());
    }

    #[test]
    fn words_are_split_in_names() {
        let split = |text: &str| words(text).collect::<Vec<_>>();
        assert_eq!(split("createIssue2_of-Repo"), ["create", "issue2", "of", "repo"]);
        assert_eq!(split("HTTP get"), ["http", "get"]);
    }
}
