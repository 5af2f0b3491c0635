use std::fs;
use std::io::Write;
use std::path::Path;

use expect_test::expect;
use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{Builder, EntryType, Header};

use super::*;

const CONTRACT: &[u8] = b"agent: {name: p, version: 1.2.3, description: desc, capabilities: [x, y]}\n";

fn file(path: &str, bytes: &[u8]) -> PackFile {
    PackFile { path: path.to_owned(), bytes: bytes.to_owned(), executable: false }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::new(6));
    gzip.write_all(bytes).expect("memory takes it");
    gzip.finish().expect("memory takes it")
}

/// Writes tar entries without the library's checks of names.
#[derive(Default)]
struct Archive {
    bytes: Vec<u8>,
}

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
        {
            let old = header.as_old_mut();
            old.name[..path.len()].copy_from_slice(path);
            old.linkname[..link.len()].copy_from_slice(link.as_bytes());
        }
        header.set_entry_type(kind);
        header.set_size(claimed);
        header.set_mode(0o4777);
        header.set_mtime(0);
        header.set_cksum();
        self.bytes.extend_from_slice(header.as_bytes());
        self.bytes.extend_from_slice(bytes);
        self.bytes.resize(self.bytes.len().next_multiple_of(512), 0);
        self
    }

    fn gzip(mut self) -> Vec<u8> {
        self.bytes.extend_from_slice(&[0; 1024]);
        gzip(&self.bytes)
    }
}

/// The result of unpacking an archive. Also checks that a refused archive leaves no files, and that an accepted one
/// writes only inside its directory.
fn outcome(archive: &[u8], limits: &Limits) -> String {
    let dir = tempfile::tempdir().expect("a directory for the test");
    let dest = dir.path().join("inner/agent");
    let result = unpack(archive, &dest, limits);
    let entries = |path: &Path| fs::read_dir(path).map(|entries| entries.count()).unwrap_or(0);
    assert!(entries(dir.path()) <= 1, "something was written outside");
    match result {
        Ok(contract) => {
            assert_eq!(entries(&dir.path().join("inner")), 1, "a partial directory was left");
            format!("{} {}: {}", contract.name, contract.version, listing(&dest).join(" "))
        }
        Err(error) => {
            assert_eq!(entries(&dir.path().join("inner")), 0, "something was left");
            format!("error: {error}")
        }
    }
}

fn listing(dir: &Path) -> Vec<String> {
    let packed = pack(dir).expect("what was unpacked packs again");
    inspect(&packed.bytes, &Limits::default()).expect("and is sound").files.into_iter().map(|file| file.path).collect()
}

#[test]
fn a_directory_becomes_the_same_archive_each_time() {
    let dir = tempfile::tempdir().expect("a directory for the test");
    for (path, text) in [
        ("agent.yaml", CONTRACT),
        ("agent.py", b"# code\n"),
        ("a/b/c.txt", b"deep"),
        ("a.txt", b"after the directory a"),
        (".git/config", b"hidden"),
        ("a/__pycache__/x.pyc", b"cache"),
        (".env", b"SECRET=1"),
    ] {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().expect("it has one")).expect("it can be made");
        fs::write(path, text).expect("it can be written");
    }
    let package = pack(dir.path()).expect("it packs");
    assert_eq!(package.files, 4);
    assert_eq!(package.contract.name.as_str(), "p");
    assert_eq!(package.digest, digest_of(&package.bytes));
    assert_eq!(pack(dir.path()).expect("it packs again"), package);
    let files = inspect(&package.bytes, &Limits::default()).expect("it is sound").files;
    let paths: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(paths, ["a/b/c.txt", "a.txt", "agent.py", "agent.yaml"]);
    assert_eq!(contract_of(&package.bytes).expect("it has one"), package.contract);
    // The bytes are a stable format: workers and registries identify a package by their digest.
    expect!["sha256:ab17a7590e6c6ccecceaaea169c08a8b7c2ace6a95b1c325d3fd6346d60760a9"]
        .assert_eq(&package.digest.to_string());
}

#[test]
fn what_cannot_be_packed_says_why() {
    let error = |files: Vec<PackFile>| pack_files(files).map(|_| ()).expect_err("it does not pack").to_string();
    expect!["it contains no agent.yaml"].assert_eq(&error(vec![file("x", b"")]));
    expect!["the contract is not valid"].assert_eq(&error(vec![file("agent.yaml", b"agent: {}")]));
    let huge = vec![0; (10 << 20) + 1];
    expect!["the files have more than 10485760 bytes"]
        .assert_eq(&error(vec![file("agent.yaml", CONTRACT), file("x", &huge)]));
    expect![[r#""../x" is not a valid file name in a package"#]]
        .assert_eq(&error(vec![file("agent.yaml", CONTRACT), file("../x", b"")]));
    let many = (0..5_000).map(|n| file(&format!("f{n}"), b"")).collect();
    expect!["there are more than 4096 files"].assert_eq(&error(many));
}

#[test]
fn a_package_unpacks_whole_with_two_modes() {
    let mut run = file("bin/run.sh", b"#!/bin/sh\n");
    run.executable = true;
    let package = pack_files(vec![run, file("agent.yaml", CONTRACT)]).expect("it packs");
    let dir = tempfile::tempdir().expect("a directory for the test");
    let dest = dir.path().join("agent");
    unpack(&package.bytes, &dest, &Limits::default()).expect("it unpacks");
    assert_eq!(fs::read(dest.join("bin/run.sh")).expect("it is there"), b"#!/bin/sh\n");
    #[cfg(unix)]
    for (path, mode) in [("bin/run.sh", 0o755), ("agent.yaml", 0o644)] {
        use std::os::unix::fs::PermissionsExt;
        let found = fs::metadata(dest.join(path)).expect("it is there").permissions().mode();
        assert_eq!(found & 0o7777, mode, "{path}");
    }
    assert_eq!(pack(&dest).expect("it packs again").digest, package.digest);
    let again = unpack(&package.bytes, &dest, &Limits::default());
    assert!(matches!(again, Err(UnpackError::Exists { .. })));
}

#[test]
fn archives_of_other_tools_are_read() {
    let plain = Archive::with_contract().kind("./", EntryType::Directory, "").kind("a/", EntryType::Directory, "");
    expect!["p 1.2.3: a/x agent.yaml"].assert_eq(&outcome(&plain.file("./a/x", b"1").gzip(), &Limits::default()));
    // Long names and extended headers of GNU tar and Python.
    let mut builder = Builder::new(Vec::new());
    let long = format!("{}/x.txt", "d".repeat(150));
    for (path, bytes) in [("agent.yaml", CONTRACT), (long.as_str(), b"long")] {
        let mut header = Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o600);
        builder.append_data(&mut header, path, bytes).expect("memory takes it");
    }
    let archive = gzip(&builder.into_inner().expect("memory takes it"));
    assert_eq!(outcome(&archive, &Limits::default()), format!("p 1.2.3: agent.yaml {long}"));
}

#[test]
fn hostile_archives_are_refused_and_leave_nothing() {
    let base = Archive::with_contract;
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("no gzip", base().bytes),
        ("nothing", vec![]),
        ("noise", gzip(&[7; 4_096])),
        ("empty tar", gzip(&[0; 1_024])),
        ("cut short", {
            let mut bytes = base().file("x", &[1; 9_000]).gzip();
            bytes.truncate(60);
            bytes
        }),
        ("no contract", Archive::default().file("x", b"").gzip()),
        ("contract below the root", Archive::default().file("a/agent.yaml", CONTRACT).gzip()),
        ("contract that is none", Archive::default().file("agent.yaml", b"[]").gzip()),
        (
            "schema that is none",
            Archive::default().file("agent.yaml", b"{name: a, version: 1.0.0, input: {schema: {type: x}}}").gzip(),
        ),
        ("parent", base().file("../x", b"").gzip()),
        ("parent inside", base().file("a/../../x", b"").gzip()),
        ("absolute", base().file("/tmp/x", b"").gzip()),
        ("dot inside", base().file("a/./x", b"").gzip()),
        ("empty part", base().file("a//x", b"").gzip()),
        ("backslash", base().file("a\\..\\x", b"").gzip()),
        ("drive", base().file("C:x", b"").gzip()),
        ("control character", base().file("a\nb", b"").gzip()),
        ("not UTF-8", base().entry(b"a\xff", EntryType::Regular, "", b"", 0).gzip()),
        ("symlink", base().kind("x", EntryType::Symlink, "/etc/passwd").gzip()),
        (
            "symlink to a directory, then through it",
            base().kind("d", EntryType::Symlink, "/tmp").file("d/x", b"").gzip(),
        ),
        ("hard link", base().kind("x", EntryType::Link, "agent.yaml").gzip()),
        ("character device", base().kind("x", EntryType::Char, "").gzip()),
        ("block device", base().kind("x", EntryType::Block, "").gzip()),
        ("pipe", base().kind("x", EntryType::Fifo, "").gzip()),
        ("sparse file", base().kind("x", EntryType::GNUSparse, "").gzip()),
        ("unknown kind", base().kind("x", EntryType::new(b'Z'), "").gzip()),
        ("twice", base().file("x", b"1").file("x", b"2").gzip()),
        ("second contract", base().file("agent.yaml", CONTRACT).gzip()),
        ("twice without case", base().file("Readme", b"1").file("README", b"2").gzip()),
        ("file, then a directory of it", base().file("a", b"").file("a/x", b"").gzip()),
        ("directory, then a file of it", base().file("a/x", b"").file("a", b"").gzip()),
        (
            "directory entry twice",
            base().kind("a/", EntryType::Directory, "").kind("A/", EntryType::Directory, "").gzip(),
        ),
        ("too deep", base().file(&"d/".repeat(20), b"").gzip()),
        ("name too deep", base().file(&format!("{}x", "d/".repeat(20)), b"").gzip()),
        ("claims more than it has", base().entry(b"x", EntryType::Regular, "", b"1", 1 << 20).gzip()),
        ("claims more than anything has", base().entry(b"x", EntryType::Regular, "", b"1", u64::MAX >> 2).gzip()),
        ("too large inside", base().file("x", &vec![1; 11 << 20]).gzip()),
        ("bomb", base().file("x", &vec![0; 9 << 20]).gzip()),
        ("too many entries", (0..5_000).fold(base(), |archive, n| archive.file(&format!("f{n}"), b"")).gzip()),
    ];
    let lines: Vec<String> = cases
        .into_iter()
        .map(|(name, archive)| {
            let line = outcome(&archive, &Limits::default());
            assert!(line.starts_with("error: "), "{name}: {line}");
            format!("{name}: {line}\n")
        })
        .collect();
    expect![[r#"
        no gzip: error: Failed to extract archive
        nothing: error: Failed to extract archive
        noise: error: Failed to extract archive
        empty tar: error: the package has no agent.yaml at its root
        cut short: error: Failed to extract archive
        no contract: error: the package has no agent.yaml at its root
        contract below the root: error: the package has no agent.yaml at its root
        contract that is none: error: the contract of the package is not valid
        schema that is none: error: the contract of the package is not valid
        parent: error: "../x" is not a plain relative path
        parent inside: error: "a/../../x" is not a plain relative path
        absolute: error: "/tmp/x" is not a plain relative path
        dot inside: error: "a/./x" is not a plain relative path
        empty part: error: "a//x" is not a plain relative path
        backslash: error: "a\\..\\x" is not a plain relative path
        drive: error: "C:x" is not a plain relative path
        control character: error: "a\nb" is not a plain relative path
        not UTF-8: error: "a�" is not a plain relative path
        symlink: error: "x" is a link, not a file or directory
        symlink to a directory, then through it: error: "d" is a link, not a file or directory
        hard link: error: "x" is a link, not a file or directory
        character device: error: "x" is a device, not a file or directory
        block device: error: "x" is a device, not a file or directory
        pipe: error: "x" is a pipe, not a file or directory
        sparse file: error: Failed to extract archive
        unknown kind: error: "x" is a special entry, not a file or directory
        twice: error: "x" occurs twice
        second contract: error: "agent.yaml" occurs twice
        twice without case: error: "README" occurs twice
        file, then a directory of it: error: "a/x" occurs twice
        directory, then a file of it: error: "a" occurs twice
        directory entry twice: error: "A/" occurs twice
        too deep: error: "d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/" is not a plain relative path
        name too deep: error: "d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/x" is not a plain relative path
        claims more than it has: error: the content is more than 100 times as large as the archive
        claims more than anything has: error: the archive has more than 10485760 bytes of content
        too large inside: error: the archive has more than 10485760 bytes of content
        bomb: error: the content is more than 100 times as large as the archive
        too many entries: error: the archive has more than 4096 entries
    "#]]
    .assert_eq(&lines.concat());
}

#[test]
fn any_broken_byte_is_an_error_or_harmless() {
    let package = pack_files(vec![file("agent.yaml", CONTRACT), file("a/x", &[7; 700])]).expect("it packs");
    for at in 0..package.bytes.len() {
        for flip in [0x01, 0x80, 0xff] {
            let mut bytes = package.bytes.clone();
            bytes[at] ^= flip;
            let _ = inspect(&bytes, &Limits::default());
        }
        let _ = inspect(&package.bytes[..at], &Limits::default());
    }
    // The same damage inside the compressed data, so that gzip's checksum does not hide it from the tar reader.
    let tar = Archive::with_contract().file("a/x", &[7; 700]).bytes;
    for at in 0..tar.len() {
        let mut bytes = tar.clone();
        bytes[at] = bytes[at].wrapping_add(1);
        let _ = inspect(&gzip(&bytes), &Limits::default());
    }
}

#[test]
fn agents_are_found_in_order_and_wrong_ones_skipped() {
    let dir = tempfile::tempdir().expect("a directory for the test");
    for (path, text) in [
        ("b/agent.yaml", "{name: b, version: 1.0.0}"),
        ("a/deep/er/agent.yaml", "{name: a, version: 1.0.0}"),
        ("a/agent.yaml", "{name: a, version: 1.0.0}"),
        ("c/agent.yaml", "agent: {}"),
        ("d/agent.yaml", "{name: d, version: 1.0.0, output: {schema: {type: x}}}"),
        (".hidden/agent.yaml", "{name: h, version: 1.0.0}"),
        ("e/agent.yml", "{name: e, version: 1.0.0}"),
    ] {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().expect("it has one")).expect("it can be made");
        fs::write(path, text).expect("it can be written");
    }
    // Following a link to a parent directory would never end.
    #[cfg(unix)]
    std::os::unix::fs::symlink(dir.path(), dir.path().join("a/loop")).expect("it can be made");
    let discovery = discover(&[dir.path().join("missing"), dir.path().to_owned(), dir.path().to_owned()]);
    let relative = |path: &Path| path.strip_prefix(dir.path()).expect("it is below").display().to_string();
    let found: Vec<String> = discovery.found.iter().map(|found| relative(&found.dir)).collect();
    assert_eq!(found, ["a", "a/deep/er", "b"]);
    let skipped: Vec<String> = discovery
        .skipped
        .iter()
        .map(|skipped| format!("{}\n", skipped.to_string().replace(&dir.path().display().to_string(), "DIR")))
        .collect();
    expect![[r#"
        skipped "DIR/c/agent.yaml": Contract validation failed: 'name' is a required property; 'version' is a required property
        skipped "DIR/d/agent.yaml": Contract validation failed: "x" is not valid under any of the schemas listed in the 'anyOf' keyword
    "#]].assert_eq(&skipped.concat());
}
