//! Reads the files of a directory that is packed.

use std::collections::BTreeSet;
use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};

use crate::pack::{PackError, PackFile};
use crate::{Limits, npm};

/// Hidden files of tools for developers, which no agent needs, by the beginning of their names.
const TOOLS: [&str; 14] = [
    ".git",
    ".DS_Store",
    ".venv",
    ".mypy_cache",
    ".pytest_cache",
    ".ruff_cache",
    ".coverage",
    ".tox",
    ".idea",
    ".vscode",
    ".editorconfig",
    ".ipynb_checkpoints",
    ".python-version",
    "._",
];

/// The most paths that are listed as left out.
const LEFT_OUT_MAX: usize = 100;

/// What a directory holds.
#[derive(Default)]
pub(crate) struct Collected {
    pub(crate) files: Vec<PackFile>,
    /// Paths of what a package cannot hold.
    pub(crate) left_out: Vec<String>,
}

/// Counts files and bytes while they are collected, so that a large tree is refused before all of it is read.
pub(crate) struct Room {
    limits: Limits,
    bytes: u64,
}

impl Room {
    pub(crate) fn new(limits: Limits) -> Self {
        Self { limits, bytes: 0 }
    }

    pub(crate) fn take(&mut self, files: usize, bytes: u64) -> Result<(), PackError> {
        self.bytes = self.bytes.saturating_add(bytes);
        if files >= self.limits.entries_max {
            return Err(PackError::TooManyFiles { max: self.limits.entries_max });
        }
        if self.bytes > self.limits.content_bytes_max {
            return Err(PackError::TooLarge { max: self.limits.content_bytes_max });
        }
        Ok(())
    }
}

/// Reads all files of a directory.
pub(crate) fn collect(dir: &Path) -> Result<Collected, PackError> {
    let root = dir.canonicalize().map_err(failed(dir))?;
    let mut walk = Walk {
        above: vec![root.clone()],
        root,
        parts: Vec::new(),
        development: BTreeSet::new(),
        found: Collected::default(),
        room: Room::new(Limits::default()),
    };
    walk.directory(dir)?;
    walk.found.left_out.sort();
    Ok(walk.found)
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> PackError {
    let path = path.to_owned();
    move |source| PackError::Read { path, source }
}

struct Walk {
    /// The directory, without links in its path.
    root: PathBuf,
    /// It and those between it and the one that is read, without links in their paths.
    above: Vec<PathBuf>,
    /// The path in the package.
    parts: Vec<String>,
    /// Paths in the package of what npm has installed for development alone.
    development: BTreeSet<String>,
    found: Collected,
    room: Room,
}

impl Walk {
    fn directory(&mut self, dir: &Path) -> Result<(), PackError> {
        if self.parts.len() > self.room.limits.depth_max {
            return Err(PackError::Name { path: self.parts.join("/") });
        }
        let is_npm = self.parts.last().is_some_and(|name| name == npm::FOLDER);
        if is_npm {
            let below = self.parts.join("/");
            self.development.extend(npm::development(dir).iter().map(|name| format!("{below}/{name}")));
        }
        for entry in fs::read_dir(dir).map_err(failed(dir))? {
            let entry = entry.map_err(failed(dir))?;
            let path = entry.path();
            let Ok(name) = entry.file_name().into_string() else {
                return Err(PackError::Name { path: path.display().to_string() });
            };
            let is_tools = TOOLS.iter().any(|tool| name.starts_with(tool));
            let is_hidden = name.starts_with('.');
            if is_tools || name == "__pycache__" || (is_npm && is_hidden) {
                continue;
            }
            self.parts.push(name);
            if self.development.contains(&self.parts.join("/")) {
                // Not listed: npm left it out as well, if it were told to install what is deployed.
            } else if is_hidden {
                self.leave_out();
            } else {
                self.entry(&path, entry.metadata().map_err(failed(&path))?)?;
            }
            self.parts.pop();
        }
        Ok(())
    }

    /// `metadata` is that of the link, where `path` is one.
    fn entry(&mut self, path: &Path, mut metadata: Metadata) -> Result<(), PackError> {
        let mut place = None;
        if metadata.is_symlink() {
            place = Some(self.followed(path)?);
            metadata = fs::metadata(path).map_err(failed(path))?;
        }
        if metadata.is_dir() {
            let place = match place {
                Some(place) => place,
                None => path.canonicalize().map_err(failed(path))?,
            };
            self.above.push(place);
            self.directory(path)?;
            self.above.pop();
        } else if metadata.is_file() {
            self.room.take(self.found.files.len(), metadata.len())?;
            let bytes = fs::read(path).map_err(failed(path))?;
            let executable = is_executable(&metadata);
            self.found.files.push(PackFile { path: self.parts.join("/"), bytes, executable });
        } else {
            self.leave_out();
        }
        Ok(())
    }

    /// Where a link leads, inside the directory.
    fn followed(&self, link: &Path) -> Result<PathBuf, PackError> {
        let refused = |why| {
            let target = fs::read_link(link).unwrap_or_default();
            PackError::Link { path: self.parts.join("/"), target, why }
        };
        let place = link.canonicalize().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => refused("which does not exist; remove it"),
            _ => refused("which cannot be followed; remove it"),
        })?;
        if !place.starts_with(&self.root) {
            return Err(refused("which is outside of the packed folder; copy what it leads to into the folder"));
        }
        if self.above.contains(&place) {
            return Err(refused("a folder that contains it; remove it"));
        }
        Ok(place)
    }

    fn leave_out(&mut self) {
        if self.found.left_out.len() < LEFT_OUT_MAX {
            self.found.left_out.push(self.parts.join("/"));
        }
    }
}

#[cfg(unix)]
fn is_executable(metadata: &Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;
    metadata.permissions().mode() & 0o111 != 0
}

#[cfg(not(unix))]
fn is_executable(_: &Metadata) -> bool {
    false
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::symlink;

    use expect_test::expect;

    use super::*;

    /// A folder with a file, a hidden one and a folder, beside a file outside.
    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        let agent = folder.path().join("agent");
        fs::create_dir_all(agent.join("lib/deep")).expect("it can be made");
        for (path, text) in [("helper.py", "1"), ("lib/deep/x.py", "2"), (".hidden.py", "3"), ("../outside.py", "4")] {
            fs::write(agent.join(path), text).expect("it can be written");
        }
        folder
    }

    #[test]
    fn links_inside_the_folder_are_followed() {
        let folder = folder();
        let agent = folder.path().join("agent");
        symlink("helper.py", agent.join("same.py")).expect("it can be made");
        symlink("lib/deep", agent.join("short")).expect("it can be made");
        symlink(agent.join("lib/deep/x.py"), agent.join("lib/absolute.py")).expect("it can be made");
        symlink(".hidden.py", agent.join("shown.py")).expect("it can be made");
        // The folder itself may be one.
        symlink(&agent, folder.path().join("link")).expect("it can be made");
        let found = collect(&folder.path().join("link")).expect("it is collected");
        let mut files: Vec<_> =
            found.files.iter().map(|file| format!("{} {}", file.path, String::from_utf8_lossy(&file.bytes))).collect();
        files.sort();
        let expected =
            ["helper.py 1", "lib/absolute.py 2", "lib/deep/x.py 2", "same.py 1", "short/x.py 2", "shown.py 3"];
        assert_eq!(files, expected);
        assert_eq!(found.left_out, [".hidden.py"]);
    }

    #[test]
    fn links_that_leave_the_folder_or_have_no_end_are_refused() {
        let refused = |link: &str, target: &str| {
            let folder = folder();
            symlink(target, folder.path().join("agent").join(link)).expect("it can be made");
            let error = collect(&folder.path().join("agent")).map(|_| ()).expect_err(target);
            format!("{error}\n")
        };
        let told = [
            refused("a.py", "../outside.py"),
            refused("lib/b.py", "/etc/passwd"),
            refused("c", ".."),
            refused("d.py", "nowhere.py"),
            refused("e", "."),
            refused("lib/f", "../lib"),
            refused("g", "g"),
        ];
        expect![[r#"
            "a.py" is a link to "../outside.py", which is outside of the packed folder; copy what it leads to into the folder
            "lib/b.py" is a link to "/etc/passwd", which is outside of the packed folder; copy what it leads to into the folder
            "c" is a link to "..", which is outside of the packed folder; copy what it leads to into the folder
            "d.py" is a link to "nowhere.py", which does not exist; remove it
            "e" is a link to ".", a folder that contains it; remove it
            "lib/f" is a link to "../lib", a folder that contains it; remove it
            "g" is a link to "g", which cannot be followed; remove it
        "#]].assert_eq(&told.concat());
        // Nobody looks at hidden ones.
        let folder = folder();
        symlink("/etc/passwd", folder.path().join("agent/.link")).expect("it can be made");
        assert!(collect(&folder.path().join("agent")).is_ok());
    }

    #[test]
    fn what_is_left_out_is_listed_without_files_of_tools() {
        let folder = folder();
        let agent = folder.path().join("agent");
        for name in [".git", ".gitignore", "__pycache__", ".venv", "lib/.env"] {
            fs::write(agent.join(name), "").expect("it can be written");
        }
        socket_at(&agent.join("socket"));
        let found = collect(&agent).expect("it is collected");
        assert_eq!(found.left_out, [".hidden.py", "lib/.env", "socket"]);
    }

    fn socket_at(path: &Path) {
        std::os::unix::net::UnixListener::bind(path).expect("it can be made");
    }

    #[test]
    fn packages_for_development_alone_are_left_out() {
        let dir = tempfile::tempdir().expect("a folder");
        let notes = r#"{"lockfileVersion": 3, "packages": {
            "node_modules/typescript": {"dev": true}, "node_modules/@types/node": {"dev": true},
            "node_modules/left": {}, "node_modules/left/node_modules/pad": {}, "src/typescript": {"dev": true}}}"#;
        for (path, text) in [
            ("agent.mjs", ""),
            ("node_modules/.package-lock.json", notes),
            ("node_modules/.bin/tsc", ""),
            ("node_modules/typescript/lib/tsc.js", ""),
            ("node_modules/@types/node/index.d.ts", ""),
            ("node_modules/@types/own/index.d.ts", ""),
            ("node_modules/left/index.js", ""),
            ("node_modules/left/node_modules/pad/index.js", ""),
            ("typescript/own.js", ""),
        ] {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().expect("below the folder")).expect("created");
            fs::write(path, text).expect("written");
        }
        let found = collect(dir.path()).expect("it can be read");
        let mut paths: Vec<_> = found.files.iter().map(|file| file.path.as_str()).collect();
        paths.sort_unstable();
        expect![[r#"
            [
                "agent.mjs",
                "node_modules/@types/own/index.d.ts",
                "node_modules/left/index.js",
                "node_modules/left/node_modules/pad/index.js",
                "typescript/own.js",
            ]
        "#]]
        .assert_debug_eq(&paths);
        assert_eq!(found.left_out, [""; 0]);
        // Notes that cannot be read leave nothing out.
        fs::write(dir.path().join("node_modules/.package-lock.json"), "{").expect("written");
        assert!(collect(dir.path()).expect("it can be read").files.iter().any(|file| file.path.ends_with("tsc.js")));
    }
}
