//! Receipts of jobs ([ADR 56](../../../docs/adr/0056-receipts.md)): their entries, their chain, and its verification.
//!
//! An entry is one line of JSON. It has a number, the hash of the entry before, what it is about, and as its last member the
//! SHA-256 of its own bytes without that member. So the last hash, the *head*, stands for the whole receipt.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::chain::{GENESIS, HASH_BEGINS, HASH_ENDS, LINE_BYTES_MAX, hash, own_hash};

/// The kind of the first entry, and of the last one.
const FIRST: &str = "job";
const LAST: &str = "end";
/// Most entries of a receipt.
pub const ENTRIES_MAX: u64 = 16_384;

/// A receipt that is being written, or that is complete after its entry `end`.
#[derive(Debug, Clone, Default)]
pub struct Receipt {
    lines: Vec<String>,
    head: String,
}

impl Receipt {
    /// Appends an entry.
    pub fn add(&mut self, kind: &str, about: Map<String, Value>) {
        let mut entry = Map::new();
        entry.insert("entry".to_owned(), (self.lines.len() + 1).into());
        let previous = if self.lines.is_empty() { GENESIS } else { &self.head };
        entry.insert("previous".to_owned(), previous.into());
        entry.insert("kind".to_owned(), kind.into());
        entry.extend(about);
        let mut line = Value::Object(entry).to_string();
        self.head = hash(line.as_bytes());
        line.pop();
        line.push_str(HASH_BEGINS);
        line.push_str(&self.head);
        line.push_str(HASH_ENDS);
        self.lines.push(line);
    }

    /// Its entries, each without a line break.
    pub fn lines(&self) -> &[String] {
        &self.lines
    }

    /// The hash of its last entry.
    pub fn head(&self) -> &str {
        &self.head
    }
}

/// What is wrong with an entry of a receipt.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    #[error("it is no entry of a receipt")]
    NotAnEntry,
    #[error("its hash does not match its contents: it was changed")]
    Changed,
    #[error("its number is {found}: entries are missing, or out of order")]
    Number { found: u64 },
    #[error("it does not continue the entry before it")]
    Previous,
    #[error("the first entry of a receipt is about the job, and its last one about the end")]
    Order,
    #[error("the receipt has more entries than {ENTRIES_MAX}")]
    TooLong,
    #[error("the entry about the end is missing: the receipt was cut off")]
    Incomplete,
}

/// Verifies the entries of a receipt in their order.
#[derive(Debug, Clone, Default)]
pub struct ReceiptVerifier {
    count: u64,
    head: String,
    job: String,
    ended: bool,
}

/// What all entries have.
#[derive(Deserialize)]
struct Entry {
    entry: u64,
    previous: String,
    kind: String,
    #[serde(default)]
    job: String,
}

impl ReceiptVerifier {
    /// Whether a line looks like an entry of a receipt, and not like a record of the audit.
    pub fn is_entry(line: &str) -> bool {
        line.starts_with("{\"entry\":")
    }

    /// Checks the next entry.
    pub fn line(&mut self, line: &str) -> Result<(), Damage> {
        if self.ended {
            return Err(Damage::Order);
        }
        if self.count >= ENTRIES_MAX {
            return Err(Damage::TooLong);
        }
        let (Entry { entry, previous, kind, job }, hash) = read(line)?;
        if entry != self.count + 1 {
            return Err(Damage::Number { found: entry });
        }
        if previous != if entry == 1 { GENESIS } else { &self.head } {
            return Err(Damage::Previous);
        }
        if (entry == 1) != (kind == FIRST) {
            return Err(Damage::Order);
        }
        if entry == 1 {
            self.job = job;
        }
        (self.count, self.head, self.ended) = (entry, hash, kind == LAST);
        Ok(())
    }

    /// An error if entries are missing at the end.
    pub fn finish(&self) -> Result<(), Damage> {
        if self.ended { Ok(()) } else { Err(Damage::Incomplete) }
    }

    /// How many entries were verified.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The job that it is about.
    pub fn job(&self) -> &str {
        &self.job
    }

    /// The hash of the last entry.
    pub fn head(&self) -> &str {
        &self.head
    }
}

/// An entry whose hash is right, and that hash.
fn read(line: &str) -> Result<(Entry, String), Damage> {
    if line.len() > LINE_BYTES_MAX {
        return Err(Damage::NotAnEntry);
    }
    let told = own_hash(line).ok_or(Damage::NotAnEntry)?;
    let body = format!("{}}}", &line[..line.len() - HASH_BEGINS.len() - told.len() - HASH_ENDS.len()]);
    if hash(body.as_bytes()) != told {
        return Err(Damage::Changed);
    }
    let entry = serde_json::from_str(&body).map_err(|_| Damage::NotAnEntry)?;
    Ok((entry, told.to_owned()))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn receipt() -> Vec<String> {
        let mut receipt = Receipt::default();
        for (kind, about) in [
            ("job", json!({"job": "job-1", "namespace": "default"})),
            ("attempt", json!({"attempt": 1, "node": "w1"})),
            ("end", json!({"status": "completed"})),
        ] {
            receipt.add(kind, about.as_object().cloned().expect("an object"));
        }
        receipt.lines().to_vec()
    }

    /// The number of the entry that is wrong, and what is wrong with it.
    fn verified(lines: &[String]) -> Result<(), (u64, Damage)> {
        let mut verifier = ReceiptVerifier::default();
        for (number, line) in (1..).zip(lines) {
            verifier.line(line).map_err(|damage| (number, damage))?;
        }
        verifier.finish().map_err(|damage| (verifier.count() + 1, damage))
    }

    #[test]
    fn an_entry_is_json_with_its_hash_at_the_end() {
        expect![[r#"{"entry":1,"previous":"0000000000000000000000000000000000000000000000000000000000000000","kind":"job","job":"job-1","namespace":"default","hash":"32d12c64f68852529ff347db26aea10e5dd060cb1956af70fa3ace9adaaf545a"}"#]]
        .assert_eq(&receipt()[0]);
        assert_eq!(verified(&receipt()), Ok(()));
    }

    #[test]
    fn missing_swapped_and_added_entries_are_found() {
        let all = receipt();
        assert_eq!(verified(&all[..2]), Err((3, Damage::Incomplete)));
        assert_eq!(verified(&[]), Err((1, Damage::Incomplete)));
        assert_eq!(verified(&all[1..]), Err((1, Damage::Number { found: 2 })));
        assert_eq!(verified(&[all[0].clone(), all[2].clone()]), Err((2, Damage::Number { found: 3 })));
        assert_eq!(verified(&[&all[..], &all[2..]].concat()), Err((4, Damage::Order)));
        // Somebody writes an entry anew, with a hash that is right.
        let mut forged = Receipt::default();
        forged.add("job", json!({"job": "job-2"}).as_object().cloned().expect("an object"));
        assert_eq!(verified(&[&forged.lines()[..1], &all[1..]].concat()), Err((2, Damage::Previous)));
        let mut other = Receipt::default();
        other.add("end", Map::new());
        assert_eq!(verified(other.lines()), Err((1, Damage::Order)));
    }

    #[test]
    fn hostile_lines_are_no_entries() {
        for line in ["", "{}", "null", "é", &"x".repeat(LINE_BYTES_MAX + 1), &format!("{{\"hash\":\"{GENESIS}\"}}")] {
            let wrong = verified(&[line.to_owned()]);
            assert!(matches!(wrong, Err((1, Damage::NotAnEntry | Damage::Changed))), "{line:.40} {wrong:?}");
        }
        let mut long = ReceiptVerifier { count: ENTRIES_MAX, ..ReceiptVerifier::default() };
        assert_eq!(long.line("{}"), Err(Damage::TooLong));
    }

    proptest! {
        #[test]
        fn a_changed_byte_names_its_entry(entry in 0usize..3, at: prop::sample::Index, with in 32u8..127) {
            let mut all = receipt();
            let mut bytes = all[entry].clone().into_bytes();
            let at = at.index(bytes.len());
            prop_assume!(bytes[at] != with);
            bytes[at] = with;
            all[entry] = String::from_utf8(bytes).expect("ASCII");
            let found = verified(&all).expect_err("it is damaged").0;
            prop_assert_eq!(found, entry as u64 + 1);
        }
    }
}
