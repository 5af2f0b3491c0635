//! The files: made by [`write_all`], read back by [`read_all`]. Their names tell their content and the expected result:
//! `yaml/refused-012-tab-indent`.

use std::fs;
use std::path::Path;

use crate::{framing, json, package, schema, yaml};

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The contract of a package.
    Yaml,
    /// The input schema of a contract, JSON.
    Schema,
    Package,
    /// The body of a submission.
    Json,
    /// All bytes of a connection.
    Http,
}

/// The expected result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expect {
    /// It is carried out.
    Accepted,
    /// It is refused with a code.
    Refused,
    /// One or the other: it was broken at random.
    Either,
}

const KINDS: [(Kind, &str); 5] = [
    (Kind::Yaml, "yaml"),
    (Kind::Schema, "schema"),
    (Kind::Package, "package"),
    (Kind::Json, "json"),
    (Kind::Http, "http"),
];
const EXPECTATIONS: [(Expect, &str); 3] =
    [(Expect::Accepted, "accepted"), (Expect::Refused, "refused"), (Expect::Either, "either")];

/// One file.
pub(crate) struct Case {
    pub(crate) kind: Kind,
    pub(crate) expect: Expect,
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
}

/// Cases of one kind, as they are thought up.
pub(crate) struct Cases {
    kind: Kind,
    all: Vec<Case>,
}

impl Cases {
    pub(crate) fn of(kind: Kind) -> Self {
        Self { kind, all: Vec::new() }
    }

    pub(crate) fn accepted(&mut self, what: &str, bytes: impl Into<Vec<u8>>) {
        self.add(Expect::Accepted, what, bytes.into());
    }

    pub(crate) fn refused(&mut self, what: &str, bytes: impl Into<Vec<u8>>) {
        self.add(Expect::Refused, what, bytes.into());
    }

    pub(crate) fn either(&mut self, what: &str, bytes: impl Into<Vec<u8>>) {
        self.add(Expect::Either, what, bytes.into());
    }

    fn add(&mut self, expect: Expect, what: &str, bytes: Vec<u8>) {
        let name = format!("{:03}-{what}", self.all.len());
        self.all.push(Case { kind: self.kind, expect, name, bytes });
    }

    /// `count` copies of a text, each broken in one place: cut short, a bit turned, a byte doubled, a part moved.
    pub(crate) fn broken(&mut self, what: &str, bytes: &[u8], count: usize) {
        let mut draw = Draw(0x9e37_79b9_7f4a_7c15 ^ bytes.len() as u64);
        for _ in 0..count {
            let mut broken = bytes.to_vec();
            let at = draw.below(broken.len());
            match draw.below(5) {
                0 => broken.truncate(at),
                1 => broken[at] ^= 1 << draw.below(8),
                2 => broken.insert(at, broken[at]),
                3 => broken[at] = u8::try_from(draw.below(256)).unwrap_or_default(),
                _ => broken.rotate_left(at),
            }
            self.either(what, broken);
        }
    }
}

/// Numbers that look drawn and are the same each time.
struct Draw(u64);

impl Draw {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap_or_default() % bound.max(1)
    }
}

/// Writes all files and tells how many there are.
pub(crate) fn write_all(folder: &Path) -> usize {
    let all = [yaml::cases(), schema::cases(), package::cases(), json::cases(), framing::cases()];
    let cases: Vec<Case> = all.into_iter().flat_map(|cases| cases.all).collect();
    for case in &cases {
        let word = |known: &'static [(Expect, &str)]| known.iter().find(|(expect, _)| *expect == case.expect);
        let (Some((_, kind)), Some((_, expect))) =
            (KINDS.iter().find(|(kind, _)| *kind == case.kind), word(&EXPECTATIONS))
        else {
            unreachable!("every kind has its word");
        };
        let folder = folder.join(kind);
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(folder.join(format!("{expect}-{}", case.name)), &case.bytes).expect("writable");
    }
    cases.len()
}

/// Reads them back, in the order of their names.
pub(crate) fn read_all(folder: &Path) -> Vec<Case> {
    let mut cases = Vec::new();
    for (kind, word) in KINDS {
        for entry in fs::read_dir(folder.join(word)).expect("readable") {
            let entry = entry.expect("readable");
            let name = entry.file_name().into_string().expect("ASCII");
            let expect = EXPECTATIONS.iter().find(|(_, word)| name.starts_with(word)).expect("a known word").0;
            let bytes = fs::read(entry.path()).expect("readable");
            cases.push(Case { kind, expect, name: format!("{word}/{name}"), bytes });
        }
    }
    cases.sort_by(|a, b| a.name.cmp(&b.name));
    cases
}
