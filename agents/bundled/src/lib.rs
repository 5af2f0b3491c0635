//! The agents that ship with Atlas, embedded in the program.
//!
//! Their directories are `agents/<dir>` of the repository, and they are packed exactly as a directory on disk would be.
//! [`wordcount`] is written in Rust: its contract runs this program itself.

mod program;
mod wordcount;

use atlas_package::{PackError, PackFile, Package};
use rust_embed::{Embed, EmbeddedFile};

pub use program::run_if_asked;
pub use wordcount::{WordcountError, wordcount};

/// The directory of one bundled agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BundledAgent {
    /// Its name in the repository, which may differ from the agent's.
    pub dir: &'static str,
    /// Its files, without what a package leaves out.
    pub files: Vec<PackFile>,
}

macro_rules! embedded {
    ($($name:ident $dir:literal,)*) => {
        $(
            #[derive(Embed)]
            #[folder = $dir]
            struct $name;
        )*

        /// All bundled agents, in the order of their directories.
        pub fn bundled() -> Vec<BundledAgent> {
            vec![$(agent($dir, $name::iter().filter_map(|path| Some(($name::get(&path)?, path.into_owned()))))),*]
        }
    };
}

embedded! {
    BatchProcessor "../batch_processor",
    Decomposer "../decomposer",
    Echo "../echo",
    ExecEcho "../exec-echo",
    Extract "../extract",
    FlexibleInput "../flexible_input",
    Formatter "../formatter",
    MultiType "../multi_type",
    SlowStarter "../slow_starter",
    Summarizer "../summarizer",
    Translator "../translator",
    UserProfile "../user_profile",
    Wordcount "../wordcount",
}

/// All bundled agents as packages.
pub fn packages() -> impl Iterator<Item = Result<Package, PackError>> {
    bundled().into_iter().map(|agent| atlas_package::pack_files(agent.files))
}

fn agent(folder: &'static str, files: impl Iterator<Item = (EmbeddedFile, String)>) -> BundledAgent {
    let left_out = |path: &str| path.split('/').any(|part| part.starts_with('.') || part == "__pycache__");
    let files = files.filter(|(_, path)| !left_out(path)).map(|(file, path)| PackFile {
        path,
        // An embedded file has lost its mode; a script is what says by its first line how to run it.
        executable: file.data.starts_with(b"#!"),
        bytes: file.data.into_owned(),
    });
    BundledAgent { dir: folder.trim_start_matches("../"), files: files.collect() }
}

#[cfg(test)]
mod tests;
