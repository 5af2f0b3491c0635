//! The agents that ship with Atlas, embedded in the program.
//!
//! Their directories are `agents/bundled/<dir>` in the repository; they are packed exactly like a directory on disk.
//! [`wordcount`] and [`search_docs`] are written in Rust: their contracts run this program itself.

mod program;
mod search_docs;
mod wordcount;

use atlas_package::{PackError, PackFile, Package};
use rust_embed::{Embed, EmbeddedFile};

pub use program::run_if_asked;
pub use search_docs::{SearchError, search_docs};
pub use wordcount::{WordcountError, wordcount};

/// The directory of one bundled agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BundledAgent {
    /// The name of the directory: that of the agent.
    pub dir: &'static str,
    /// The files, without those that a package excludes.
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
    AskBase "ask-base",
    AskDocs "ask-docs",
    Assistant "assistant",
    BatchProcessor "batch-processor",
    Brief "brief",
    CodeReviewer "code-reviewer",
    Coder "coder",
    Decomposer "decomposer",
    DeepResearch "deep-research",
    Demo "demo",
    DurableOrder "durable-order",
    Echo "echo",
    ExecEcho "exec-echo",
    Explore "explore",
    Extract "extract",
    FileReviewer "file-reviewer",
    FlexibleInput "flexible-input",
    Formatter "formatter",
    Judge "judge",
    LlmSummarizer "llm-summarizer",
    MultiType "multi-type",
    OpenaiReviewer "openai-reviewer",
    Oracle "oracle",
    PriorityRouter "priority-router",
    ReportWriter "report-writer",
    SearchDocs "search-docs",
    Sisyphus "sisyphus",
    SlowStarter "slow-starter",
    Sql "sql",
    Summarize "summarize",
    Summarizer "summarizer",
    Tally "tally",
    Translator "translator",
    Triage "triage",
    UserProfile "user-profile",
    Wordcount "wordcount",
}

#[derive(Embed)]
#[folder = "skills"]
struct Skills;

/// The files of the bundled skills; the first part of a path is the directory of a skill.
pub fn skills() -> Vec<PackFile> {
    files(Skills::iter().filter_map(|path| Some((Skills::get(&path)?, path.into_owned()))))
}

#[derive(Embed)]
#[folder = "chains"]
struct Chains;

/// The definitions of chains of the bundled agents, by file name.
pub fn chains() -> Vec<(String, Vec<u8>)> {
    Chains::iter().filter_map(|name| Some((name.to_string(), Chains::get(&name)?.data.into_owned()))).collect()
}

/// The bundled agents without which the agent of a directory cannot work: those that its helpers or its jobs are.
pub fn helpers(dir: &str) -> &'static [&'static str] {
    match dir {
        "ask-docs" => &["search-docs"],
        "code-reviewer" => &["file-reviewer"],
        "decomposer" => &["echo"],
        "sisyphus" => &["coder", "explore", "oracle"],
        _ => &[],
    }
}

/// All bundled agents as packages.
pub fn packages() -> impl Iterator<Item = Result<Package, PackError>> {
    bundled().into_iter().map(|agent| atlas_package::pack_files(agent.files))
}

fn agent(dir: &'static str, files: impl Iterator<Item = (EmbeddedFile, String)>) -> BundledAgent {
    BundledAgent { dir, files: self::files(files) }
}

fn files(files: impl Iterator<Item = (EmbeddedFile, String)>) -> Vec<PackFile> {
    let left_out = |path: &str| path.split('/').any(|part| part.starts_with('.') || part == "__pycache__");
    let files = files.filter(|(_, path)| !left_out(path)).map(|(file, path)| PackFile {
        path,
        // Embedded files have no mode; a file with a `#!` line is a script and thus executable.
        executable: file.data.starts_with(b"#!"),
        bytes: file.data.into_owned(),
    });
    files.collect()
}

#[cfg(test)]
mod tests;
