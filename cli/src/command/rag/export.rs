//! `atlasctl rag export`: the documents of a base as files below one folder, or as JSON lines.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use atlas_api::types::BaseDocument;
use serde_json::json;

use super::pages;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::names;
use crate::output::Shown;
use crate::words;

/// Options of `atlasctl rag export`.
#[derive(Debug, clap::Args)]
pub(crate) struct Export {
    /// The base's name.
    #[arg(value_name = "NAME", value_parser = names::base)]
    name: String,
    /// The folder; it is made if there is none.
    #[arg(value_name = "DIR", required_unless_present = "jsonl", conflicts_with = "jsonl")]
    folder: Option<PathBuf>,
    /// Print JSON lines with `source`, `text` and `metadata` instead.
    #[arg(long)]
    jsonl: bool,
    /// Only documents whose sources begin with it.
    #[arg(long, value_name = "SOURCE")]
    source: Option<String>,
}

pub(super) async fn run(context: &Context, options: &Export) -> Result<Exit, Failure> {
    let source = options.source.as_deref().unwrap_or_default();
    let Some(folder) = &options.folder else {
        return pages(context, &options.name, source, true, |page| {
            for BaseDocument { source, text, metadata, .. } in page {
                let Some(text) = text else { continue };
                context.print(&format!("{}\n", json!({"source": source, "text": text, "metadata": metadata})))?;
            }
            Ok(())
        })
        .await;
    };
    let (mut written, mut refused) = (BTreeSet::new(), Vec::new());
    let exit = pages(context, &options.name, source, true, |page| {
        for BaseDocument { source, text, .. } in page {
            let Some(text) = text else { continue };
            match write(folder, &source, &text, &mut written) {
                Ok(()) => {}
                Err(why) => {
                    context.note(&format!("{}could not write \"{source}\": {why}", words::WARNING));
                    refused.push(source);
                }
            }
        }
        Ok(())
    })
    .await?;
    let value = json!({"written": written.len(), "folder": folder.display().to_string(), "refused": refused});
    let text = format!("wrote {} to {}\n", words::count(written.len() as u64, "document"), folder.display());
    context.show(&Shown { value, text, names: Vec::new() })?;
    Ok(if refused.is_empty() { exit } else { Exit::Short })
}

fn write(folder: &Path, source: &str, text: &str, written: &mut BTreeSet<PathBuf>) -> Result<(), String> {
    let name = file_name(source);
    let path = folder.join(&name);
    if !written.insert(name.clone()) {
        return Err("another document has the same file name".to_owned());
    }
    let done = check_links(folder, &name).and_then(|()| {
        let failed = |error: std::io::Error| error.to_string();
        fs::create_dir_all(path.parent().unwrap_or(folder)).map_err(failed)?;
        fs::write(&path, text).map_err(failed)
    });
    if done.is_err() {
        written.remove(&name);
    }
    done
}

/// Refuses a file below the folder that a link leads out of it.
fn check_links(folder: &Path, name: &Path) -> Result<(), String> {
    let mut path = folder.to_owned();
    for part in name {
        path.push(part);
        if path.is_symlink() {
            return Err(format!("{} is a link", path.display()));
        }
    }
    Ok(())
}

/// The file of a source below the folder. Parts that mean something to a file system are written in other words.
fn file_name(source: &str) -> PathBuf {
    let part = |part: &str| match part {
        "." => "%2E".to_owned(),
        ".." => "%2E%2E".to_owned(),
        other => other.chars().map(safe).collect::<String>().chars().take(200).collect(),
    };
    let path: PathBuf = source.split('/').filter(|part| !part.is_empty()).map(part).collect();
    if path.as_os_str().is_empty() { PathBuf::from("document") } else { path }
}

fn safe(character: char) -> String {
    match character {
        ':' | '\\' | '*' | '?' | '"' | '<' | '>' | '|' | '%' => format!("%{:02X}", u32::from(character)),
        other if other.is_control() => "%00".to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_source_leaves_the_folder() {
        for (source, name) in [
            ("docs/a.md", "docs/a.md"),
            ("../../etc/passwd", "%2E%2E/%2E%2E/etc/passwd"),
            ("/etc/passwd", "etc/passwd"),
            ("C:\\a", "C%3A%5Ca"),
            ("https://a.example/b?c", "https%3A/a.example/b%3Fc"),
            ("///", "document"),
            ("a/./b", "a/%2E/b"),
        ] {
            assert_eq!(file_name(source), PathBuf::from(name), "{source}");
        }
        assert_eq!(file_name(&"a".repeat(1_000)).as_os_str().len(), 200);
    }

    #[test]
    fn files_are_written_once_and_not_through_links() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut written = BTreeSet::new();
        write(folder.path(), "a/b.md", "text", &mut written).expect("written");
        assert!(write(folder.path(), "/a//b.md", "other", &mut written).is_err());
        assert_eq!(fs::read_to_string(folder.path().join("a/b.md")).expect("read"), "text");
        assert!(write(folder.path(), "a/b.md/c", "a file is no folder", &mut written).is_err());
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink("/", folder.path().join("out")).expect("linked");
            let refused = write(folder.path(), "out/tmp/x", "text", &mut written);
            assert!(refused.is_err_and(|why| why.ends_with("is a link")));
        }
    }
}
