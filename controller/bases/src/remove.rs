//! Removing documents: they are in no answer from then on, and leave their segments when these are written anew.

use atlas_api::types::BaseRebuild;
use atlas_desk::{Caller, Consistency, Error};
use atlas_types::Expect;

use crate::Bases;
use crate::readers::Readable;
use crate::write::{TRIES, key, unknown};

impl Bases {
    /// Removes documents as [`Self::remove`] does, and writes the base anew, so that no segment has what was removed now or before.
    pub async fn erase(&self, caller: &Caller, name: &str, source: &str) -> Result<u64, Error> {
        let removed = self.remove(caller, name, source).await?;
        // Somebody may have removed them without erasing them.
        self.rebuild(caller, name, &BaseRebuild::default()).await?;
        Ok(removed)
    }

    /// Removes the document of a source; without such a document, all whose sources fit it as a pattern, in which `*` is any text. The answer is
    /// how many were removed. What the caller may not read is not there for it.
    pub async fn remove(&self, caller: &Caller, name: &str, source: &str) -> Result<u64, Error> {
        if source.is_empty() {
            return Err(Error::Malformed("name a source, or a pattern such as docs/*".to_owned()));
        }
        let Ok(key) = key(caller, name) else { return Err(unknown(name)) };
        let _turn = self.turns.take(&key).await;
        for _ in 0..TRIES {
            let (object, mut spec) = self.find(caller, name, Consistency::Linearizable).await?;
            let contents = self.contents(&spec).await?;
            contents.check(name)?;
            let readable = Readable::new(&spec.readers, caller);
            let exact = contents.readable(&spec, &readable).any(|row| &*row.source == source);
            let is_meant = |found: &str| if exact { found == source } else { fits(source, found) };
            let found = contents.readable(&spec, &readable).filter(|row| is_meant(&row.source));
            let removed: Vec<String> = found.map(|row| row.id.to_string()).collect();
            if removed.is_empty() {
                return Ok(0);
            }
            let count = removed.len() as u64;
            spec.removed.extend(removed);
            self.compact(&mut spec, &contents).await?;
            let expect = Expect::Revision(object.revision);
            match self.put(caller, (&object.key, (*object.labels).clone()), &spec, expect).await {
                Ok(()) => return Ok(count),
                Err(Error::ObjectChanged { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Err(Error::Overloaded)
    }
}

/// Whether a text fits a pattern in which `*` is any text.
pub(crate) fn fits(pattern: &str, text: &str) -> bool {
    let Some((before, after)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut rest) = text.strip_prefix(before) else { return false };
    let mut parts: Vec<&str> = after.split('*').collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        let Some((_, behind)) = rest.split_once(part) else { return false };
        rest = behind;
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn a_star_is_any_text() {
        for (pattern, text, expected) in [
            ("a", "a", true),
            ("a", "ab", false),
            ("*", "", true),
            ("docs/*", "docs/a/b.md", true),
            ("docs/*.md", "docs/a.txt", false),
            ("*a*b*", "xaxbx", true),
            ("a*a", "a", false),
            ("**", "x", true),
            ("*.md", "é.md", true),
        ] {
            assert_eq!(fits(pattern, text), expected, "{pattern} {text}");
        }
        // A pattern of many stars takes no longer than the text is long.
        assert!(!fits(&"*a".repeat(500), &"b".repeat(1_024)));
    }
}
