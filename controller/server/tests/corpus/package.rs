//! Packages: archives that no tool of ours would write.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{EntryType, Header};

use crate::write::{Cases, Kind};

const CONTRACT: &[u8] = b"agent: {name: packed, version: 1.2.3, provider: {type: exec, command: [cat]}}\n";

/// A package with this contract and nothing else.
pub(crate) fn of_contract(contract: &[u8]) -> Vec<u8> {
    Archive::default().file("agent.yaml", contract).gzip()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(bytes).expect("memory takes it");
    gzip.finish().expect("memory takes it")
}

/// Writes entries as they are told, without the care that the library takes of names.
#[derive(Default)]
struct Archive(Vec<u8>);

impl Archive {
    fn with_contract() -> Self {
        Self::default().file("agent.yaml", CONTRACT)
    }

    fn file(self, path: &str, bytes: &[u8]) -> Self {
        self.entry(path.as_bytes(), EntryType::Regular, "", bytes, bytes.len() as u64)
    }

    fn kind(self, path: &str, kind: EntryType, link: &str) -> Self {
        self.entry(path.as_bytes(), kind, link, b"", 0)
    }

    fn entry(mut self, path: &[u8], kind: EntryType, link: &str, bytes: &[u8], claimed: u64) -> Self {
        let mut header = Header::new_ustar();
        let old = header.as_old_mut();
        old.name[..path.len()].copy_from_slice(path);
        old.linkname[..link.len()].copy_from_slice(link.as_bytes());
        header.set_entry_type(kind);
        header.set_size(claimed);
        header.set_mode(0o4777);
        header.set_cksum();
        self.0.extend_from_slice(header.as_bytes());
        self.0.extend_from_slice(bytes);
        self.0.resize(self.0.len().next_multiple_of(512), 0);
        self
    }

    fn gzip(mut self) -> Vec<u8> {
        self.0.extend_from_slice(&[0; 1024]);
        gzip(&self.0)
    }
}

pub(crate) fn cases() -> Cases {
    let mut cases = Cases::of(Kind::Package);
    let base = Archive::with_contract;
    cases.accepted("plain", base().gzip());
    cases.accepted("folders", base().kind("./", EntryType::Directory, "").file("./a/b", b"1").gzip());
    cases.accepted("large-file", base().file("x", &noise(1 << 20)).gzip());
    for (what, path) in [
        ("parent", "../x"),
        ("parent-inside", "a/../../x"),
        ("absolute", "/tmp/x"),
        ("dot-inside", "a/./x"),
        ("empty-part", "a//x"),
        ("backslash", "a\\..\\x"),
        ("drive", "C:x"),
        ("newline", "a\nb"),
        ("escape", "a\u{1b}[2Jb"),
        ("contract-twice", "agent.yaml"),
        ("contract-in-capitals", "Agent.yaml"),
    ] {
        cases.refused(what, base().file(path, b"").gzip());
    }
    for (what, kind, link) in [
        ("symlink", EntryType::Symlink, "/etc/passwd"),
        ("symlink-inside", EntryType::Symlink, "agent.yaml"),
        ("symlink-up", EntryType::Symlink, "../../x"),
        ("hard-link", EntryType::Link, "agent.yaml"),
        ("character-device", EntryType::Char, ""),
        ("block-device", EntryType::Block, ""),
        ("pipe", EntryType::Fifo, ""),
        ("sparse-file", EntryType::GNUSparse, ""),
        ("volume", EntryType::new(b'V'), ""),
        ("unknown-kind", EntryType::new(b'Z'), ""),
    ] {
        cases.refused(what, base().kind("x", kind, link).gzip());
    }
    let through = base().kind("d", EntryType::Symlink, "/tmp").file("d/x", b"");
    cases.refused("through-a-link", through.gzip());
    cases.refused("no-contract", Archive::default().file("x", b"").gzip());
    cases.refused("contract-below", Archive::default().file("a/agent.yaml", CONTRACT).gzip());
    cases.refused("contract-is-a-folder", Archive::default().kind("agent.yaml/", EntryType::Directory, "").gzip());
    cases.refused("not-utf-8", base().entry(b"a\xff", EntryType::Regular, "", b"", 0).gzip());
    cases.refused("file-and-folder", base().file("a", b"").file("a/x", b"").gzip());
    cases.refused("same-but-for-case", base().file("Readme", b"1").file("README", b"2").gzip());
    cases.refused("too-deep", base().file(&format!("{}x", "d/".repeat(20)), b"").gzip());
    cases.refused("claims-more", base().entry(b"x", EntryType::Regular, "", b"1", 1 << 20).gzip());
    cases.refused("claims-everything", base().entry(b"x", EntryType::Regular, "", b"1", u64::MAX >> 2).gzip());
    cases.refused("too-many-files", (0..5_000).fold(base(), |archive, n| archive.file(&format!("f{n}"), b"")).gzip());
    cases.refused("bomb", base().file("x", &vec![0; 9 << 20]).gzip());
    cases.refused("larger-inside-than-allowed", base().file("x", &vec![1; 11 << 20]).gzip());
    cases.refused("bomb-of-contract", of_contract(&vec![b' '; 8 << 20]));
    cases.refused("gzip-in-gzip", gzip(&gzip(&base().0)));
    cases.refused("nothing", b"".as_slice());
    cases.refused("text", b"not a package".as_slice());
    cases.refused("tar-without-gzip", base().0);
    cases.refused("zip", b"PK\x03\x04\x14\x00\x00\x00\x08\x00".as_slice());
    cases.refused("noise", noise(10_000));
    cases.refused("noise-in-gzip", gzip(&noise(10_000)));
    cases.refused("zeros-in-gzip", gzip(&[0; 4_096]));
    cases.refused("head-only", b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03".as_slice());
    let mut trailing = base().gzip();
    trailing.extend_from_slice(&noise(100));
    cases.either("trailing-noise", trailing);
    cases.either("two-members", [base().gzip(), gzip(b"more")].concat());
    cases.broken("broken", &base().file("a/x.py", b"print(1)\n").gzip(), 35);
    cases
}

/// Bytes that do not compress.
fn noise(count: usize) -> Vec<u8> {
    let mut word = 0x2545_f491_4f6c_dd1d_u64;
    let mut bytes = Vec::with_capacity(count);
    for _ in 0..count {
        word ^= word << 13;
        word ^= word >> 7;
        word ^= word << 17;
        bytes.push(word.to_le_bytes()[0]);
    }
    bytes
}
