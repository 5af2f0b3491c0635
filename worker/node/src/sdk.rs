//! What agents import, compiled in: the package `atlas` for Python, and `@atlas/agent` for Node.js.

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};

use rust_embed::{EmbeddedFile, RustEmbed};
use sha2::{Digest as _, Sha256};

#[derive(RustEmbed)]
#[folder = "../../agents/sdk/python"]
struct Python;

#[derive(RustEmbed)]
#[folder = "../../agents/sdk/typescript"]
struct NodeJs;

/// Where [`unpack`] puts the package for Node.js. No module of Python can have this name.
const NODEJS: &str = "@atlas/agent";

/// The program that runs an agent in Node.js, in the directory that [`unpack`] returns.
pub(crate) fn nodejs_host(sdk: &Path) -> PathBuf {
    sdk.join(NODEJS).join("host.mjs")
}

/// A file: where it is written, and what is in it.
type File = (String, EmbeddedFile);

/// The files of both packages, without what the folders have besides: the caches of an interpreter, and tests.
fn files() -> Vec<File> {
    let python = Python::iter().filter(|name| name.ends_with(".py"));
    let python = python.filter_map(|name| Some((name.to_string(), Python::get(&name)?)));
    let is_used = |name: &Cow<'static, str>| !name.contains('/') && !name.ends_with(".md");
    let nodejs = NodeJs::iter().filter(is_used);
    let nodejs = nodejs.filter_map(|name| Some((format!("{NODEJS}/{name}"), NodeJs::get(&name)?)));
    let mut files: Vec<File> = python.chain(nodejs).collect();
    files.sort_by(|a, b| a.0.cmp(&b.0));
    files
}

/// Writes the packages under `data_dir`, once per version, and returns their directory: that for `PYTHONPATH`.
pub(crate) fn unpack(data_dir: &Path) -> io::Result<PathBuf> {
    let files = files();
    let mut hasher = Sha256::new();
    for (name, file) in &files {
        hasher.update(name.as_bytes());
        hasher.update(file.metadata.sha256_hash());
    }
    let version: String = hasher.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    let directory = data_dir.join("sdk").join(version);
    if directory.is_dir() {
        return Ok(directory);
    }
    // Written under a temporary name and renamed, because another worker may do the same in this directory at the same
    // time.
    let temporary = data_dir.join("sdk").join(format!(".{}.tmp", std::process::id()));
    for (name, file) in files {
        let path = temporary.join(name);
        std::fs::create_dir_all(path.parent().unwrap_or(&temporary))?;
        std::fs::write(path, file.data)?;
    }
    match std::fs::rename(&temporary, &directory) {
        Err(_) if directory.is_dir() => std::fs::remove_dir_all(&temporary)?,
        other => other?,
    }
    Ok(directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_packages_are_written_once() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let sdk = unpack(dir.path()).expect("writable");
        for name in ["atlas/runtime/base.py", "atlas/_host.py", "atlas/mediation/analyzer.py", "@atlas/agent/index.mjs"]
        {
            assert!(sdk.join(name).is_file(), "{name}");
        }
        assert!(nodejs_host(&sdk).is_file());
        assert!(!sdk.join("@atlas/agent/test").exists());
        assert_eq!(unpack(dir.path()).expect("there already"), sdk);
    }
}
