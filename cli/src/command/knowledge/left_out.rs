//! What the import of a folder leaves out, and what it does not take from a file: files that are no entries, and front matter that does not count.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use atlas_knowledge::document::Document;
use atlas_knowledge::{Entry, Name};
use serde_json::{Value, json};

use crate::context::Context;
use crate::words;

/// How many files are named of each sort.
const NAMED: usize = 10;

/// Most files that are looked at.
const FILES_MAX: usize = 100_000;

/// Most bytes of a file that are read for its front matter.
const FRONT_BYTES_MAX: u64 = 1 << 20;

/// Files with what is said of them, each by its path in the folder.
#[derive(Debug, Default)]
pub(super) struct LeftOut {
    /// Files that are no entries.
    pub(super) skipped: Vec<(PathBuf, String)>,
    /// Entries whose front matter does not count, or counts in part.
    ignored: Vec<(PathBuf, String)>,
}

impl LeftOut {
    /// For programs: paths and reasons.
    pub(super) fn value(&self) -> Value {
        let all = self.skipped.iter().chain(&self.ignored);
        all.map(|(path, reason)| json!({"path": path.display().to_string(), "reason": reason})).collect()
    }
}

/// Looks at the files of a folder beside its entries. What cannot be read is left out here too, because the import has said so.
pub(super) fn find(folder: &Path, entries: &[Entry]) -> LeftOut {
    let mut left_out = LeftOut::default();
    let entries = entries.iter().map(|entry| (entry.domain.as_str(), entry.id.as_str())).collect();
    for (path, is_folder) in children(folder) {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if name.starts_with('.') {
            continue;
        }
        if !is_folder {
            left_out.skipped.push((name.into(), "it is not in the folder of a domain".to_owned()));
            continue;
        }
        for (path, is_folder) in children(&path) {
            if left_out.skipped.len() + left_out.ignored.len() < FILES_MAX {
                look(&path, (&name, is_folder), &entries, &mut left_out);
            }
        }
    }
    left_out
}

/// Looks at what the folder of a domain has. `entries` are domains and ids.
fn look(path: &Path, (domain, is_folder): (&str, bool), entries: &BTreeSet<(&str, &str)>, left_out: &mut LeftOut) {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let shown = Path::new(domain).join(&name);
    let Some(id) = name.strip_suffix(".md").filter(|_| !is_folder) else {
        let why =
            if is_folder { "folders in the folder of a domain are not read" } else { "its name does not end with .md" };
        if !name.starts_with('.') {
            left_out.skipped.push((shown, why.to_owned()));
        }
        return;
    };
    if !entries.contains(&(domain, id)) {
        let is_named = Name::new(domain).is_ok() && Name::new(id).is_ok();
        let why =
            if is_named { "it is a link, too long or not UTF-8" } else { "its name, or that of its folder, is no id" };
        return left_out.skipped.push((shown, why.to_owned()));
    }
    let mut text = String::new();
    let read = fs::File::open(path).and_then(|file| file.take(FRONT_BYTES_MAX).read_to_string(&mut text));
    if read.is_ok()
        && let Some(why) = ignored(&text, domain, id)
    {
        left_out.ignored.push((shown, why));
    }
}

/// What does not count of the front matter of a file; none if all does.
fn ignored(text: &str, domain: &str, id: &str) -> Option<String> {
    let Document { front_matter, .. } = Document::read(text);
    if text.starts_with("---") && front_matter.is_empty() {
        return Some("the YAML in front of it cannot be read, so it is a part of the content".to_owned());
    }
    let other = |(name, own): (&str, &str)| {
        let given = front_matter.get(name)?.as_str()?;
        (given != own).then(|| format!("{name} is {own}, as the path says, not {given}"))
    };
    let others: Vec<String> = [("id", id), ("domain", domain)].into_iter().filter_map(other).collect();
    (!others.is_empty()).then(|| others.join(", "))
}

/// What a folder has, by name, and whether each is a folder; links are not.
fn children(folder: &Path) -> Vec<(PathBuf, bool)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().take(FILES_MAX);
    let mut found: Vec<(PathBuf, bool)> =
        entries.map(|entry| (entry.path(), entry.file_type().is_ok_and(|kind| kind.is_dir()))).collect();
    found.sort();
    found
}

/// Names the first files of each sort.
pub(super) fn tell(context: &Context, left_out: &LeftOut) {
    for (done, files) in [("skipped", &left_out.skipped), ("not all of", &left_out.ignored)] {
        for (path, why) in files.iter().take(NAMED) {
            context.note(&format!("{done} {}: {why}", path.display()));
        }
        if files.len() > NAMED {
            context.note(&format!("{done} {} more", words::count((files.len() - NAMED) as u64, "file")));
        }
    }
}

#[cfg(test)]
mod tests {
    use atlas_knowledge::Folder;

    use super::*;

    #[test]
    fn what_is_no_entry_is_named_with_the_reason() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, bytes: &[u8]| {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            fs::write(path, bytes).expect("written");
        };
        write("top.md", b"Text.");
        write(".git/config", b"x");
        write("ops/fine.md", b"---\nid: fine\ndomain: ops\n---\nText.\n");
        write("ops/plain.md", b"Text.");
        write("ops/other.md", b"---\nid: x\ndomain: elsewhere\n---\nText.\n");
        write("ops/broken.md", b"---\nid: [\n---\nText.\n");
        write("ops/binary.md", b"\xff\xfe");
        write("ops/note.txt", b"Text.");
        write("ops/deep/a.md", b"Text.");
        write("ops/no id.md", b"Text.");
        let entries = Folder::new(folder.path()).entries().expect("entries");
        let left_out = find(folder.path(), &entries);
        let told = |files: &[(PathBuf, String)]| {
            files.iter().map(|(path, why)| format!("{}: {why}\n", path.display())).collect::<String>()
        };
        expect_test::expect![[r"
            ops/binary.md: it is a link, too long or not UTF-8
            ops/deep: folders in the folder of a domain are not read
            ops/no id.md: its name, or that of its folder, is no id
            ops/note.txt: its name does not end with .md
            top.md: it is not in the folder of a domain
        "]]
        .assert_eq(&told(&left_out.skipped));
        expect_test::expect![[r"
            ops/broken.md: the YAML in front of it cannot be read, so it is a part of the content
            ops/other.md: id is other, as the path says, not x, domain is ops, as the path says, not elsewhere
        "]]
        .assert_eq(&told(&left_out.ignored));
    }
}
