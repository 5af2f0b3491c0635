//! What people type in a chat, and what it becomes: commands, files, settings, code and transcripts, and the line editor of a terminal.
//! It knows no cluster.

mod commands;
mod completion;
mod distance;
mod editor;
mod files;
mod settings;
mod transcript;

pub use commands::{Command, CommandRow, Input, Standing, command_rows, joined, parse, starts_block};
pub use completion::{Candidate, Names, candidates};
pub use editor::{EditedLine, EditorError, LineEditor};
pub use files::{Attachments, FileError, ImageFile, ItemsError, TextFile, read_items, split_items};
pub use settings::{ChatSettings, SETTINGS, SettingError};
pub use transcript::{ToolUse, TranscriptEntry, markdown, openai};
