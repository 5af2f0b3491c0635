//! Runs the user's editor on a temporary file.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use atlas_env::Env;

use crate::failure::Failure;
use crate::input;
use crate::words::could_not;

/// The default editor.
const EDITOR: &str = "vi";

/// A text that is being edited. It is kept until it is removed, because it contains the user's work.
pub(crate) struct Draft(PathBuf);

impl Draft {
    /// Writes the text to a file whose name ends in `end`.
    pub(crate) fn new(end: &str, text: &str) -> Result<Self, Failure> {
        let number = Env::system().entropy.u64();
        let path = std::env::temp_dir().join(format!("atlasctl-edit-{number:016x}.{end}"));
        // Readable only by the owner, and never an existing file or link.
        let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        let written = made.and_then(|mut file| file.write_all(text.as_bytes()));
        written.map_err(|error: io::Error| could_not("write", &path, &error))?;
        Ok(Self(path))
    }

    /// Replaces the text.
    pub(crate) fn write(&self, text: &str) -> Result<(), Failure> {
        fs::write(&self.0, text).map_err(|error| could_not("write", &self.0, &error))
    }

    /// The path of the file.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Opens the editor, waits until it exits, and returns the edited text.
    pub(crate) fn edit(&self) -> Result<String, Failure> {
        let named = |name| std::env::var(name).ok().filter(|editor| !editor.trim().is_empty());
        let editor = named("VISUAL").or_else(|| named("EDITOR")).unwrap_or_else(|| EDITOR.to_owned());
        // Run by a shell, because the editor may have arguments: `code --wait`.
        let status = Command::new("sh").args(["-c", &format!("{editor} \"$1\""), "sh"]).arg(&self.0).status();
        let why = match status {
            Ok(status) if status.success() => return input::read_file(&self.0),
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        };
        self.remove();
        let failure = Failure::usage(format!("nothing was changed: the editor \"{editor}\" ended with {why}"));
        Err(failure.with_next("use another editor: export EDITOR=nano"))
    }

    /// Removes the file.
    pub(crate) fn remove(&self) {
        // A file that cannot be removed does no harm: it is in the temporary folder.
        let _ = fs::remove_file(&self.0);
    }
}
