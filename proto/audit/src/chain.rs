//! The chain of records: writing the next line, and verifying lines.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::Record;

/// The hash before the first line of a controller.
pub const GENESIS: &str = "0000000000000000000000000000000000000000000000000000000000000000";
/// Most bytes of a line.
pub const LINE_BYTES_MAX: usize = 64 * 1024;
/// What the last member of a line begins and ends with.
pub(crate) const HASH_BEGINS: &str = ",\"hash\":\"";
pub(crate) const HASH_ENDS: &str = "\"}";

/// A line without its own hash. `deny_unknown_fields` does not go with a flattened member, and is not wanted: later releases add
/// members, and these are part of the hash.
#[derive(Deserialize)]
struct Body {
    number: u64,
    controller: String,
    previous: String,
    #[serde(flatten)]
    record: Record,
}

/// The same, to be written.
#[derive(Serialize)]
struct BodyToWrite<'a> {
    number: u64,
    controller: &'a str,
    previous: &'a str,
    #[serde(flatten)]
    record: &'a Record,
}

/// The end of a chain that is continued.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chain {
    controller: String,
    number: u64,
    hash: String,
}

impl Chain {
    /// A chain without lines. A controller has one chain, and its name is part of each line.
    pub fn new(controller: &str) -> Self {
        Self { controller: controller.to_owned(), number: 0, hash: GENESIS.to_owned() }
    }

    /// The chain that ends with what was verified; none if that belongs to another controller.
    pub fn after(controller: &str, verifier: &Verifier) -> Option<Self> {
        match &verifier.end {
            None => Some(Self::new(controller)),
            Some(end) if end.controller == controller => Some(end.clone()),
            Some(_) => None,
        }
    }

    /// The number of the last line; 0 if there is none.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The hash of the last line.
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// The next line, without a line break.
    pub fn next(&mut self, record: &Record) -> String {
        let mut line = Vec::new();
        self.write(record, &mut line);
        line.pop();
        // JSON is text.
        String::from_utf8(line).unwrap_or_default()
    }

    /// Appends the next line to other lines, with a line break.
    pub fn write(&mut self, record: &Record, lines: &mut Vec<u8>) {
        let begin = lines.len();
        let record = record.cut();
        let body = BodyToWrite {
            number: self.number + 1,
            controller: &self.controller,
            previous: &self.hash,
            record: &record,
        };
        // Texts and numbers only, so writing cannot fail.
        let _ = serde_json::to_writer(&mut *lines, &body);
        self.number = body.number;
        self.hash = hash(lines.get(begin..).unwrap_or_default());
        lines.pop();
        for part in [HASH_BEGINS, &self.hash, HASH_ENDS, "\n"] {
            lines.extend_from_slice(part.as_bytes());
        }
    }
}

/// What is wrong with a line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    #[error("it is not a record")]
    NotARecord,
    #[error("its hash does not match its contents: it was changed")]
    Changed,
    #[error("its number is {found} after {before}: records are missing, or out of order")]
    Number { before: u64, found: u64 },
    #[error("it does not continue the record before it")]
    Previous,
    #[error("it belongs to controller \"{0}\"")]
    Controller(String),
}

/// Verifies lines in their order. The first one may have any number, because old lines are removed after their time.
#[derive(Debug, Clone, Default)]
pub struct Verifier {
    first: Option<u64>,
    end: Option<Chain>,
}

impl Verifier {
    /// Checks the next line, and returns its record.
    pub fn line(&mut self, line: &str) -> Result<Record, Broken> {
        let Body { number, controller, previous, record } = read(line)?;
        if let Some(end) = &self.end {
            if controller != end.controller {
                return Err(Broken::Controller(controller));
            }
            if end.number.checked_add(1) != Some(number) {
                return Err(Broken::Number { before: end.number, found: number });
            }
            if previous != end.hash {
                return Err(Broken::Previous);
            }
        } else if number == 0 || (number == 1 && previous != GENESIS) {
            return Err(Broken::Previous);
        }
        self.first.get_or_insert(number);
        self.end = Some(Chain { controller, number, hash: own_hash(line).unwrap_or_default().to_owned() });
        Ok(record)
    }

    /// The numbers of the first and the last line that were verified.
    pub fn span(&self) -> Option<(u64, u64)> {
        Some((self.first?, self.end.as_ref()?.number))
    }

    /// The last line.
    pub fn end(&self) -> Option<&Chain> {
        self.end.as_ref()
    }
}

impl Chain {
    /// The controller that wrote it.
    pub fn controller(&self) -> &str {
        &self.controller
    }
}

/// Reads a line whose hash is right.
fn read(line: &str) -> Result<Body, Broken> {
    if line.len() > LINE_BYTES_MAX {
        return Err(Broken::NotARecord);
    }
    let told = own_hash(line).ok_or(Broken::NotARecord)?;
    let body = format!("{}}}", &line[..line.len() - HASH_BEGINS.len() - told.len() - HASH_ENDS.len()]);
    let read: Body = serde_json::from_str(&body).map_err(|_| Broken::NotARecord)?;
    if hash(body.as_bytes()) == told { Ok(read) } else { Err(Broken::Changed) }
}

/// The hash that a line gives for itself.
pub(crate) fn own_hash(line: &str) -> Option<&str> {
    let rest = line.strip_suffix(HASH_ENDS)?;
    let told = rest.get(rest.len().checked_sub(GENESIS.len())?..)?;
    let before = &rest[..rest.len() - told.len()];
    (before.ends_with(HASH_BEGINS) && told.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)))
        .then_some(told)
}

pub(crate) fn hash(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from_digit(u32::from(value), 16).unwrap_or_default();
    let mut text = String::with_capacity(GENESIS.len());
    text.extend(Sha256::digest(bytes).iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]));
    text
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use proptest::prelude::*;

    use super::*;
    use crate::{Decision, Filter};

    fn record(principal: &str, decision: Decision) -> Record {
        Record {
            at_ms: 1_764_100_000_000,
            principal: principal.to_owned(),
            on_behalf_of: String::new(),
            namespace: "default".to_owned(),
            door: "http".to_owned(),
            verb: "submitJob".to_owned(),
            object: "agent/mail".to_owned(),
            decision,
            code: if decision == Decision::Deny { "E2107".to_owned() } else { String::new() },
            request_id: String::new(),
            count: 0,
        }
    }

    fn lines(count: usize) -> Vec<String> {
        let mut chain = Chain::new("c1");
        (0..count).map(|at| chain.next(&record(&format!("p{at}"), Decision::Allow))).collect()
    }

    fn verified(lines: &[String]) -> Result<Option<(u64, u64)>, Broken> {
        let mut verifier = Verifier::default();
        for line in lines {
            verifier.line(line)?;
        }
        Ok(verifier.span())
    }

    #[test]
    fn a_line_is_json_with_its_hash_at_the_end() {
        let mut chain = Chain::new("c1");
        let lines = format!(
            "{}\n{}\n",
            chain.next(&record("ann", Decision::Deny)),
            chain.next(&record("bob", Decision::Allow))
        );
        expect![[r#"
            {"number":1,"controller":"c1","previous":"0000000000000000000000000000000000000000000000000000000000000000","at_ms":1764100000000,"principal":"ann","namespace":"default","door":"http","verb":"submitJob","object":"agent/mail","decision":"deny","code":"E2107","hash":"ebf9b7b320b81a0d72d9e14068bcd36c57f1615296e400a7434d8fe04e06ce38"}
            {"number":2,"controller":"c1","previous":"ebf9b7b320b81a0d72d9e14068bcd36c57f1615296e400a7434d8fe04e06ce38","at_ms":1764100000000,"principal":"bob","namespace":"default","door":"http","verb":"submitJob","object":"agent/mail","decision":"allow","hash":"2a34c69d14d6ec74bd6871b085b46ecb9bf5875bff7b2e519198a6bbfbe5c5ea"}
        "#]].assert_eq(&lines);
    }

    #[test]
    fn changes_gaps_and_foreign_lines_are_found() {
        let all = lines(5);
        assert_eq!(verified(&all), Ok(Some((1, 5))));
        assert_eq!(verified(&all[2..]), Ok(Some((3, 5))), "old lines may have been removed");
        assert_eq!(verified(&[]), Ok(None));
        let without = [&all[..2], &all[3..]].concat();
        assert_eq!(verified(&without), Err(Broken::Number { before: 2, found: 4 }));
        let mut swapped = all.clone();
        swapped.swap(1, 2);
        assert_eq!(verified(&swapped), Err(Broken::Number { before: 1, found: 3 }));
        let mut changed = all.clone();
        changed[3] = changed[3].replace("p3", "p4");
        assert_eq!(verified(&changed), Err(Broken::Changed));
        // Somebody writes the end again, with hashes that are right.
        let mut forged = Verifier::default();
        forged.line(&all[0]).expect("the first");
        let mut chain = Chain::after("c1", &forged).expect("its end");
        let second = chain.next(&record("mallory", Decision::Allow));
        assert_eq!(verified(&[&[all[0].clone(), second], &all[2..]].concat()), Err(Broken::Previous));
        let other = Chain::new("c2").next(&record("ann", Decision::Allow));
        assert_eq!(verified(&[all[0].clone(), other]), Err(Broken::Controller("c2".to_owned())));
        assert_eq!(Chain::after("c2", &forged), None);
    }

    #[test]
    fn hostile_lines_are_no_records() {
        let line = lines(1).remove(0);
        for text in [
            "",
            "{}",
            "\"}",
            "null",
            &line[..line.len() - 1],
            &line[1..],
            &line.to_uppercase(),
            &format!("{line} "),
            &format!("{{\"hash\":\"{GENESIS}\"}}"),
            &format!("{{,\"hash\":\"{GENESIS}\"}}"),
            &"x".repeat(LINE_BYTES_MAX + 1),
        ] {
            assert_eq!(verified(&[text.to_owned()]), Err(Broken::NotARecord), "{text:.80}");
        }
    }

    #[test]
    fn long_texts_are_cut_and_members_of_later_releases_are_kept() {
        let long = Record { object: "é".repeat(10_000), ..record(&"x".repeat(100_000), Decision::Allow) };
        let line = Chain::new("c1").next(&long);
        assert!(line.len() < LINE_BYTES_MAX);
        let record = Verifier::default().line(&line).expect("a record");
        assert_eq!((record.principal.len(), record.object.len()), (512, 512));

        let body = format!(
            r#"{{"number":1,"controller":"c1","previous":"{GENESIS}","at_ms":1,"principal":"a","decision":"allow","later":[1]}}"#
        );
        let line = format!("{},\"hash\":\"{}\"}}", &body[..body.len() - 1], hash(body.as_bytes()));
        assert_eq!(Verifier::default().line(&line).expect("a record").principal, "a");
    }

    #[test]
    fn a_filter_accepts_what_has_all_it_names() {
        let denied = record("ann", Decision::Deny);
        let filter = Filter {
            principal: Some("ann".into()),
            object: Some("agent/".into()),
            decision: Some(Decision::Deny),
            ..Filter::default()
        };
        assert!(filter.admits(&denied) && Filter::default().admits(&denied));
        assert!(!filter.admits(&record("ann", Decision::Allow)));
        assert!(!Filter { until_ms: Some(denied.at_ms), ..filter.clone() }.admits(&denied));
        assert!(Filter { since_ms: Some(denied.at_ms), ..filter }.admits(&denied));
    }

    proptest! {
        #[test]
        fn any_change_of_a_byte_is_found(at in 0usize..600, with in 32u8..127) {
            let mut all = lines(2);
            let at = at % all[0].len();
            let mut bytes = all[0].clone().into_bytes();
            prop_assume!(bytes[at] != with);
            bytes[at] = with;
            all[0] = String::from_utf8(bytes).expect("ASCII");
            prop_assert!(verified(&all).is_err());
        }

        /// Only whole lines at the beginning or the end can be missing without being found.
        #[test]
        fn any_dropped_swapped_or_repeated_line_is_found(count in 3usize..20, at: prop::sample::Index, with: prop::sample::Index) {
            let all = lines(count);
            let (at, with) = (at.index(count), with.index(count));
            let mut repeated = all.clone();
            repeated.insert(with, all[at].clone());
            prop_assert!(verified(&repeated).is_err());
            let mut swapped = all.clone();
            swapped.swap(at, with);
            prop_assert_eq!(verified(&swapped).is_err(), at != with);
            let mut dropped = all;
            dropped.remove(at);
            prop_assert_eq!(verified(&dropped).is_err(), at != 0 && at != count - 1);
        }

        /// Somebody changes a record and gives it the right hash.
        #[test]
        fn a_record_that_is_written_anew_is_found(count in 2usize..20, at: prop::sample::Index) {
            let mut all = lines(count);
            let at = at.index(count - 1);
            let mut chain = Chain::new("c1");
            for line in &all[..at] {
                let mut verifier = Verifier::default();
                verifier.line(line).expect("a record");
                chain = Chain::after("c1", &verifier).expect("the same controller");
            }
            all[at] = chain.next(&record("mallory", Decision::Allow));
            prop_assert_eq!(verified(&all), Err(Broken::Previous));
        }

        #[test]
        fn what_is_written_verifies(principal in ".{0,40}", object in ".{0,40}", count: u64) {
            let mut chain = Chain::new("c1");
            let record = Record { principal, object, count, ..record("", Decision::Dropped) };
            let line = chain.next(&record);
            prop_assert!(!line.contains('\n'));
            let mut verifier = Verifier::default();
            prop_assert_eq!(verifier.line(&line), Ok(record));
            prop_assert_eq!(Chain::after("c1", &verifier), Some(chain));
        }
    }
}
