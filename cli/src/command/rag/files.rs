//! Finding and reading the files that become documents.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::path::{Component, Path, PathBuf};

use crate::failure::Failure;

/// Most bytes of a document.
const TEXT_BYTES_MAX: u64 = 4 << 20;

/// Most bytes of a file: one of HTML has more than its text.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// Most files of one command.
const FILES_MAX: usize = 100_000;

/// Files that are documents.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) files: BTreeSet<PathBuf>,
    pub(super) skipped: Vec<Skipped>,
}

/// A file that is no document.
#[derive(Debug)]
pub(super) struct Skipped {
    pub(super) path: PathBuf,
    pub(super) why: String,
}

/// The files that names mean: a file, all files of a folder, or those that a pattern matches. Hidden files of folders are left out.
pub(super) fn find(names: &[&String]) -> Result<Found, Failure> {
    let mut found = Found::default();
    for name in names {
        let path = Path::new(name.as_str());
        if path.is_dir() {
            walk(path, &mut found)?;
        } else if path.exists() {
            found.files.insert(path.to_owned());
        } else if name.contains(['*', '?', '[']) {
            let before = found.files.len();
            let paths =
                glob::glob(name).map_err(|error| Failure::usage(format!("\"{name}\" is no pattern: {error}")))?;
            let fixed = fixed_part(name);
            let is_meant = |path: &PathBuf| path.is_file() && !is_hidden(path) && !is_behind_link(path, &fixed);
            for path in paths.flatten().filter(is_meant) {
                found.files.insert(path);
                check_count(&found)?;
            }
            if found.files.len() == before {
                return Err(Failure::usage(format!("no file matches \"{name}\"")));
            }
        } else {
            return Err(Failure::usage(format!("there is no file \"{name}\"")));
        }
    }
    Ok(found)
}

fn walk(folder: &Path, found: &mut Found) -> Result<(), Failure> {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) => {
                found.skipped.push(Skipped { path: folder, why: error.to_string() });
                continue;
            }
        };
        for entry in entries.flatten() {
            let path = entry.path();
            if is_hidden(&path) {
                continue;
            }
            // A link to a folder may lead back.
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(path),
                Ok(_) if path.is_file() => drop(found.files.insert(path)),
                _ => found.skipped.push(Skipped { path, why: "it is no file".to_owned() }),
            }
            check_count(found)?;
        }
    }
    Ok(())
}

fn check_count(found: &Found) -> Result<(), Failure> {
    if found.files.len() <= FILES_MAX {
        return Ok(());
    }
    Err(Failure::usage(format!("there are more than {FILES_MAX} files; add them in parts")))
}

/// The folder of a pattern in front of its first part that is no name.
fn fixed_part(pattern: &str) -> PathBuf {
    let is_name = |part: &Component<'_>| !part.as_os_str().to_string_lossy().contains(['*', '?', '[']);
    let parts = Path::new(pattern).components().filter(|part| *part != Component::CurDir);
    parts.take_while(is_name).collect()
}

/// Whether a link to a folder leads to a file below a folder: it may lead back.
fn is_behind_link(path: &Path, folder: &Path) -> bool {
    let mut below = path.ancestors().skip(1).take_while(|above| above.starts_with(folder) && *above != folder);
    below.any(Path::is_symlink)
}

fn is_hidden(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
}

/// The text of a file; the error says why it is no document.
pub(super) fn read(path: &Path) -> Result<String, String> {
    let file = fs::File::open(path).map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(format!("it has more than {FILE_BYTES_MAX} bytes"));
    }
    if bytes.contains(&0) {
        return Err("it is binary".to_owned());
    }
    let text = String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())?;
    let text = text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text);
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default().to_lowercase();
    let text = if matches!(ending.as_str(), "html" | "htm" | "xhtml") { atlas_pages::markdown(&text) } else { text };
    if text.trim().is_empty() {
        return Err("it is empty".to_owned());
    }
    if text.len() as u64 > TEXT_BYTES_MAX {
        return Err(format!("its text has {} bytes, more than {TEXT_BYTES_MAX}; split it", text.len()));
    }
    Ok(text)
}

/// The source of a file: its path without what leads elsewhere.
pub(super) fn source_of(path: &Path) -> String {
    let named = path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name.to_string_lossy().into_owned()),
        _ => None,
    });
    named.collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_leads_nowhere() {
        for (path, source) in [
            ("./docs/a.md", "docs/a.md"),
            ("../../docs/a.md", "docs/a.md"),
            ("/srv/docs/../a.md", "srv/docs/a.md"),
            ("a.md", "a.md"),
        ] {
            assert_eq!(source_of(Path::new(path)), source);
        }
    }

    #[test]
    fn folders_are_walked_and_bad_files_cost_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, bytes: &[u8]| {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            fs::write(path, bytes).expect("written");
        };
        write("a.md", b"# A");
        write("deep/b.html", b"<h1>B</h1><script>x</script><p>Text.</p>");
        write("deep/.git/config", b"secret");
        write("bom.txt", b"\xef\xbb\xbfText");
        write("image.png", b"\x89PNG\0");
        write("latin.txt", b"caf\xe9");
        write("empty.txt", b" \n");
        #[cfg(unix)]
        std::os::unix::fs::symlink(folder.path(), folder.path().join("deep/loop")).expect("linked");
        let name = folder.path().display().to_string();
        let Found { files, skipped } = find(&[&name]).expect("found");
        let read: Vec<String> = files
            .iter()
            .map(|path| {
                let name = path.strip_prefix(folder.path()).expect("below").display();
                let text = read(path).unwrap_or_else(|why| format!("! {why}"));
                format!("{name}: {text:?}\n")
            })
            .collect();
        expect_test::expect![[r##"
            a.md: "# A"
            bom.txt: "Text"
            deep/b.html: "# B\n\nText.\n"
            empty.txt: "! it is empty"
            image.png: "! it is binary"
            latin.txt: "! it is not UTF-8"
        "##]]
        .assert_eq(&read.concat());
        assert_eq!(skipped.len(), usize::from(cfg!(unix)), "{skipped:?}");
        let pattern = format!("{name}/**/*.md");
        assert_eq!(find(&[&pattern]).expect("found").files.len(), 1);
        assert!(find(&[&format!("{name}/*.rs")]).is_err() && find(&[&format!("{name}/none")]).is_err());
    }
}
