//! Removal of secrets from texts, by value.
//!
//! A value is found as it is and in the forms in which programs commonly print it ([`forms`]). Each occurrence becomes
//! `[redacted:NAME]`. Values of less than [`VALUE_CHARS_MIN`] characters are not searched: they would be found everywhere.

mod forms;
mod overlap;
mod pieces;

use std::borrow::Cow;
use std::sync::Arc;

use aho_corasick::{AhoCorasick, MatchKind};
use atlas_types::SecretText;
use serde_json::Value;
use zeroize::Zeroizing;

pub use pieces::Pieces;

/// The shortest value that is searched, in characters.
pub const VALUE_CHARS_MIN: usize = 4;

/// Replaces the values of one attempt's secrets. Cheap to clone; it has no `Debug`, because it contains the values.
#[derive(Clone, Default)]
pub struct Redactor(Option<Arc<Patterns>>);

struct Patterns {
    automaton: AhoCorasick,
    /// The texts that are searched, with the names of their secrets.
    all: Vec<(Zeroizing<String>, Arc<str>)>,
}

impl Redactor {
    /// A redactor for these secrets. Where two have one value, the first name is shown.
    pub fn new<'s>(secrets: impl IntoIterator<Item = (&'s str, &'s SecretText)>) -> Self {
        let mut all: Vec<(Zeroizing<String>, Arc<str>)> = Vec::new();
        for (name, value) in secrets {
            if value.expose().chars().count() < VALUE_CHARS_MIN {
                continue;
            }
            let label: Arc<str> = format!("[redacted:{name}]").into();
            all.extend(forms::of(value.expose()).into_iter().map(|form| (form, label.clone())));
        }
        // The sort is stable, so the first name of equal texts stays.
        all.sort_by(|(a, _), (b, _)| a.as_str().cmp(b.as_str()));
        all.dedup_by(|(a, _), (b, _)| a.as_str() == b.as_str());
        let texts = all.iter().map(|(text, _)| text.as_bytes());
        let automaton = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(texts);
        // Building fails only for more patterns than fit into 32 bits, and the secrets of a lease are far fewer.
        let patterns = automaton.ok().filter(|_| !all.is_empty());
        Self(patterns.map(|automaton| Arc::new(Patterns { automaton, all })))
    }

    /// True if there is nothing to search.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// A whole text without values.
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let Some(patterns) = &self.0 else { return Cow::Borrowed(text) };
        patterns.replaced(text)
    }

    /// A text whose beginning and end may be cut off: what remains there of a value is removed as well.
    pub fn fragment<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let Some(patterns) = &self.0 else { return Cow::Borrowed(text) };
        let whole = patterns.replaced(text);
        let (start, start_label) = patterns.rest_at_start(&whole);
        let (end, end_label) = patterns.begun_at_end(&whole[start..]);
        if start == 0 && end == 0 {
            return whole;
        }
        let middle = &whole[start..whole.len() - end];
        Cow::Owned(format!("{start_label}{middle}{end_label}"))
    }

    /// Removes values from the texts, member names and numbers of a JSON value. A number that is a value becomes text. True if
    /// something changed.
    pub fn json(&self, value: &mut Value) -> bool {
        if self.is_empty() {
            return false;
        }
        match value {
            Value::Null | Value::Bool(_) => false,
            Value::Number(number) => match self.text(&number.to_string()) {
                Cow::Borrowed(_) => false,
                Cow::Owned(text) => {
                    *value = Value::String(text);
                    true
                }
            },
            Value::String(text) => match self.text(text) {
                Cow::Borrowed(_) => false,
                Cow::Owned(redacted) => {
                    *text = redacted;
                    true
                }
            },
            Value::Array(items) => items.iter_mut().fold(false, |changed, item| self.json(item) | changed),
            Value::Object(members) => {
                let mut changed = members.values_mut().fold(false, |changed, member| self.json(member) | changed);
                if members.keys().any(|key| matches!(self.text(key), Cow::Owned(_))) {
                    let renamed = |(key, member): (String, Value)| (self.text(&key).into_owned(), member);
                    *members = std::mem::take(members).into_iter().map(renamed).collect();
                    changed = true;
                }
                changed
            }
        }
    }

    /// For a text that arrives in pieces.
    pub fn pieces(&self) -> Pieces {
        Pieces::new(self.clone())
    }
}

impl Patterns {
    fn replaced<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut matches = self.automaton.find_iter(text).peekable();
        if matches.peek().is_none() {
            return Cow::Borrowed(text);
        }
        let (mut out, mut from) = (String::with_capacity(text.len()), 0);
        for found in matches {
            out.push_str(&text[from..found.start()]);
            out.push_str(&self.all[found.pattern().as_usize()].1);
            from = found.end();
        }
        out.push_str(&text[from..]);
        Cow::Owned(out)
    }

    /// How many bytes at the start of a text are the end of a value.
    fn rest_at_start(&self, text: &str) -> (usize, &str) {
        let rests = self.all.iter().map(|(pattern, label)| (overlap::starts_with_end_of(text, pattern), label));
        longest(rests)
    }

    /// How many bytes at the end of a text are the start of a value.
    fn begun_at_end(&self, text: &str) -> (usize, &str) {
        let begun = self.all.iter().map(|(pattern, label)| (overlap::ends_with_start_of(text, pattern), label));
        longest(begun)
    }
}

/// The longest overlap that is long enough to tell something.
fn longest<'p>(overlaps: impl Iterator<Item = (usize, &'p Arc<str>)>) -> (usize, &'p str) {
    let told = overlaps.filter(|(bytes, _)| *bytes >= VALUE_CHARS_MIN);
    told.max_by_key(|(bytes, _)| *bytes).map_or((0, ""), |(bytes, label)| (bytes, label))
}

#[cfg(test)]
mod tests;
