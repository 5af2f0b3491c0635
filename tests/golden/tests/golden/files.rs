//! The checked-in files: bytes as hex, with their meaning next to them.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::fs;
use std::path::PathBuf;

/// The version that today's code writes.
const VERSION: &str = "v1";

fn folder(area: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("data").join(VERSION).join(area)
}

fn update() -> bool {
    std::env::var_os("UPDATE_GOLDEN").is_some()
}

/// One thing that is written down.
pub(crate) struct Golden {
    /// Name of its files.
    pub name: &'static str,
    /// What today's code writes.
    pub bytes: Vec<u8>,
    /// What reads the bytes, and says what they mean.
    pub read: fn(&[u8]) -> String,
}

/// Checks every golden of an area, and that the area has no file that nobody checks.
pub(crate) fn check(area: &str, goldens: &[Golden]) {
    let folder = folder(area);
    if update() {
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("a folder");
        for golden in goldens {
            fs::write(folder.join(golden.name).with_extension("hex"), to_hex(&golden.bytes)).expect("a file");
            fs::write(folder.join(golden.name).with_extension("txt"), (golden.read)(&golden.bytes)).expect("a file");
        }
    }
    for golden in goldens {
        let bytes = from_hex(&read(area, &format!("{}.hex", golden.name)));
        let meaning = read(area, &format!("{}.txt", golden.name));
        assert_eq!((golden.read)(&bytes), meaning, "{area}/{}: old bytes read to something else", golden.name);
        assert_eq!(to_hex(&golden.bytes), to_hex(&bytes), "{area}/{}: other bytes are written now", golden.name);
    }
    for file in fs::read_dir(&folder).expect("a folder") {
        let path = file.expect("a file").path();
        let stem = path.file_stem().and_then(|stem| stem.to_str()).expect("a name").to_owned();
        assert!(goldens.iter().any(|golden| golden.name == stem), "nobody checks {}", path.display());
    }
}

/// The lines of a checked-in list; `now` is what an update writes.
pub(crate) fn list(name: &str, now: &BTreeSet<String>) -> BTreeSet<String> {
    if update() {
        let text: String = now.iter().map(|line| format!("{line}\n")).collect();
        fs::write(folder("").join(name), text).expect("a file");
    }
    read("", name).lines().map(str::to_owned).collect()
}

/// A value for people: `{:#?}` without fields that are empty, and with lists of numbers on one line. So a new field, which older bytes do
/// not have, changes no text.
pub(crate) fn text(value: impl Debug) -> String {
    let mut text = String::new();
    let mut among_numbers = false;
    for line in format!("{value:#?}").lines() {
        let word = line.trim_start();
        let number = word.strip_suffix(',').is_some_and(|digits| digits.parse::<i128>().is_ok());
        let closes = among_numbers && (word.starts_with(']') || word.starts_with(')'));
        match (number, closes) {
            (true, _) if among_numbers => text.push(' '),
            (true, _) => {}
            (false, true) => text.truncate(text.trim_end_matches(',').len()),
            (false, false) if text.is_empty() => {}
            (false, false) => text.push('\n'),
        }
        text.push_str(if number || closes { word } else { line });
        among_numbers = number;
    }
    text.lines().filter(|line| !is_empty_field(line)).map(|line| format!("{line}\n")).collect()
}

/// Whether a line is a field with nothing in it: none, false, zero, and no text, bytes or elements.
fn is_empty_field(line: &str) -> bool {
    let Some((field, value)) = line.trim_start().strip_suffix(',').and_then(|line| line.split_once(": ")) else {
        return false;
    };
    let is_name = field.bytes().all(|letter| letter.is_ascii_lowercase() || letter == b'_');
    let inner = value.strip_suffix(')').and_then(|value| value.split_once('(')).filter(|(kind, _)| *kind != "Some");
    let value = inner.map_or(value, |(_, inner)| inner);
    is_name && ["None", "false", "0", "[]", "{}", "\"\""].contains(&value)
}

#[test]
fn texts_leave_out_empty_fields() {
    let value = (atlas_types::Usage { warm: true, ..Default::default() }, atlas_types::ErasePayloads { job: None });
    let shown = "(\n    Usage {\n        warm: true,\n    },\n    ErasePayloads {\n    },\n)\n";
    assert_eq!(text(value), shown);
}

fn read(area: &str, name: &str) -> String {
    let path = folder(area).join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}; UPDATE_GOLDEN=1 writes it", path.display()))
}

fn to_hex(bytes: &[u8]) -> String {
    let line = |line: &[u8]| line.iter().map(|byte| format!("{byte:02x}")).collect::<String>() + "\n";
    bytes.chunks(32).map(line).collect()
}

fn from_hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let byte = |pair: &[u8]| {
        let pair = std::str::from_utf8(pair).expect("ASCII");
        u8::from_str_radix(pair, 16).expect("hex digits")
    };
    digits.chunks(2).map(byte).collect()
}
