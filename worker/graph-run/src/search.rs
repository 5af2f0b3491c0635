//! Searches of `rag` nodes: in files of the agent, by their words.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read as _;
use std::path::{Component, Path, PathBuf};

use atlas_graph::Rag;
use atlas_retrieval::{Cut, Index, chunks};
use serde_json::{Value, json};

/// Chunks of a result, if the node does not say.
const TOP_DEFAULT: u64 = 5;
const TOP_MAX: u64 = 100;

/// How documents are cut, if the node does not say, in characters.
const SIZE_DEFAULT: u64 = 1_000;
const SIZE_MAX: u64 = 100_000;
const OVERLAP_DEFAULT: u64 = 50;

/// Bounds of all documents of a node.
const FILES_MAX: usize = 10_000;
const FILE_BYTES_MAX: u64 = 4 << 20;
const BYTES_MAX: u64 = 64 << 20;

/// Searches the documents of a node in the folder of its agent. An error says why they cannot be searched.
pub(crate) fn search(folder: &Path, rag: &Rag, query: &str) -> Result<Value, String> {
    let folder = folder.canonicalize().map_err(|error| format!("the agent's folder cannot be read: {error}"))?;
    let mut files = BTreeSet::new();
    for document in &rag.documents {
        find(&folder, document, &mut files)?;
    }
    let size = |number: u64| usize::try_from(number.min(SIZE_MAX)).unwrap_or(usize::MAX);
    let cut = Cut {
        size: size(rag.chunk_size.filter(|size| *size > 0).unwrap_or(SIZE_DEFAULT)),
        overlap: size(rag.chunk_overlap.unwrap_or(OVERLAP_DEFAULT)),
    };
    let (mut all, mut left) = (Vec::new(), BYTES_MAX);
    for file in &files {
        let source = file.strip_prefix(&folder).unwrap_or(file).display().to_string();
        let text = read(file).map_err(|error| format!("the document \"{source}\" cannot be read: {error}"))?;
        let Some(text) = text else { continue };
        left = left
            .checked_sub(text.len() as u64)
            .ok_or_else(|| format!("the documents have more than {BYTES_MAX} bytes"))?;
        all.extend(chunks(&source, &text, cut));
    }
    let top = usize::try_from(rag.top_k.unwrap_or(TOP_DEFAULT).min(TOP_MAX)).unwrap_or(usize::MAX);
    let index = Index::new(all);
    let hits = index.search(query, top);
    let context: Vec<String> = hits.iter().map(|hit| format!("Source: {}\n{}", hit.source, hit.text)).collect();
    let mut sources: Vec<&str> = Vec::new();
    for hit in &hits {
        if !sources.contains(&hit.source.as_str()) {
            sources.push(&hit.source);
        }
    }
    Ok(json!({"context": context.join("\n\n"), "sources": sources}))
}

/// Adds the files that an entry names: a file, all files of a folder, or those that a pattern matches.
fn find(folder: &Path, document: &str, files: &mut BTreeSet<PathBuf>) -> Result<(), String> {
    let scheme = document.split_once(':').map(|(scheme, _)| scheme).filter(|scheme| !scheme.contains('/'));
    if let Some(scheme) = scheme {
        let what = if scheme.starts_with("http") { "documents are not fetched" } else { "there are no loaders" };
        return Err(format!("\"{document}\": {what} here; put the text into a file of the agent's folder"));
    }
    let stays = Path::new(document).components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    if !stays {
        return Err(format!("\"{document}\" leads out of the agent's folder"));
    }
    let pattern = folder.join(document);
    let pattern = pattern.to_str().ok_or_else(|| format!("\"{document}\" is no pattern"))?;
    // What the agent's own folder is called is no pattern.
    let pattern = match pattern.strip_prefix(folder.to_str().unwrap_or_default()) {
        Some(rest) => format!("{}{rest}", glob::Pattern::escape(folder.to_str().unwrap_or_default())),
        None => pattern.to_owned(),
    };
    let paths = glob::glob(&pattern).map_err(|error| format!("\"{document}\" is no pattern: {error}"))?;
    let mut any = false;
    for path in paths.filter_map(Result::ok) {
        any = true;
        add(folder, &path, document, files)?;
    }
    if any { Ok(()) } else { Err(format!("there is no document \"{document}\" in the agent's folder")) }
}

fn add(folder: &Path, path: &Path, document: &str, files: &mut BTreeSet<PathBuf>) -> Result<(), String> {
    let real = path.canonicalize().map_err(|error| format!("\"{document}\" cannot be read: {error}"))?;
    if !real.starts_with(folder) {
        return Err(format!("\"{document}\" leads out of the agent's folder"));
    }
    if real.is_dir() {
        let entries = fs::read_dir(&real).map_err(|error| format!("\"{document}\" cannot be read: {error}"))?;
        for entry in entries.filter_map(Result::ok) {
            // A link could lead to a folder above.
            if entry.file_type().is_ok_and(|kind| !kind.is_symlink()) {
                add(folder, &entry.path(), document, files)?;
            }
        }
        return Ok(());
    }
    files.insert(real);
    if files.len() > FILES_MAX {
        return Err(format!("there are more than {FILES_MAX} documents"));
    }
    Ok(())
}

/// The text of a file; none if it is no text.
fn read(file: &Path) -> std::io::Result<Option<String>> {
    let mut bytes = Vec::new();
    fs::File::open(file)?.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(std::io::Error::other(format!("it has more than {FILE_BYTES_MAX} bytes")));
    }
    Ok((!bytes.contains(&0)).then(|| String::from_utf8_lossy(&bytes).into_owned()))
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(documents: &[&str], query: &str, expected: &Expect) {
        let root = tempfile::tempdir().expect("a folder");
        let folder = root.path().join("a[1]");
        for (path, text) in [
            ("notes/tides.md", "The moon causes the tides."),
            ("notes/deep/sun.md", "The sun helps the moon."),
            ("notes/picture.png", "\0moon"),
            ("top.txt", "Nothing about it."),
        ] {
            let path = folder.join(path);
            fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
            fs::write(path, text).expect("a file");
        }
        fs::write(root.path().join("secret.txt"), "The moon is a secret.").expect("a file");
        std::os::unix::fs::symlink(root.path().join("secret.txt"), folder.join("link.txt")).expect("a link");
        let rag = Rag {
            documents: documents.iter().map(|document| (*document).to_owned()).collect(),
            query: None,
            top_k: Some(2),
            embedding_model: None,
            chunk_size: Some(30),
            chunk_overlap: Some(0),
            reranker_model: None,
            batch_size: None,
            timeout: None,
        };
        let shown = search(&folder, &rag, query).map_or_else(|why| why, |found| found.to_string());
        expected.assert_eq(&shown);
    }

    #[test]
    fn documents_are_searched_by_their_words() {
        let both = expect![[
            r#"{"context":"Source: notes/tides.md\nThe moon causes the tides.\n\nSource: notes/deep/sun.md\nThe sun helps the moon.","sources":["notes/tides.md","notes/deep/sun.md"]}"#
        ]];
        check(&["notes"], "moon tides", &both);
        check(&["notes/**/*.md", "top.txt"], "moon tides", &both);
        check(&["top.txt"], "moon", &expect![[r#"{"context":"","sources":[]}"#]]);
    }

    #[test]
    fn what_cannot_be_searched_is_named() {
        check(&["none.md"], "x", &expect![[r#"there is no document "none.md" in the agent's folder"#]]);
        check(&["../secret.txt"], "x", &expect![[r#""../secret.txt" leads out of the agent's folder"#]]);
        check(&["link.txt"], "x", &expect![[r#""link.txt" leads out of the agent's folder"#]]);
        check(&["/**/*.md"], "x", &expect![[r#""/**/*.md" leads out of the agent's folder"#]]);
        check(&["/etc/hostname"], "x", &expect![[r#""/etc/hostname" leads out of the agent's folder"#]]);
        check(
            &["https://example.com/x"],
            "x",
            &expect![[
                r#""https://example.com/x": documents are not fetched here; put the text into a file of the agent's folder"#
            ]],
        );
        check(
            &["pdf:x.pdf"],
            "x",
            &expect![[r#""pdf:x.pdf": there are no loaders here; put the text into a file of the agent's folder"#]],
        );
        check(&["a[z-a]"], "x", &expect![[r#"there is no document "a[z-a]" in the agent's folder"#]]);
    }
}
