//! The line editor of a terminal.

use std::borrow::Cow;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use reedline::{
    ColumnarMenu, Completer, CompletionResult, EditCommand, Emacs, FileBackedHistory, KeyCode, KeyModifiers,
    MenuBuilder as _, Prompt, PromptEditMode, PromptHistorySearch, PromptHistorySearchStatus, Reedline, ReedlineEvent,
    ReedlineMenu, Signal, Span, Suggestion, ValidationResult, Validator, default_emacs_keybindings,
};

use crate::commands::{is_closed, starts_block};
use crate::completion::{Names, candidates};

/// Most lines of the history.
const HISTORY_MAX: usize = 1_000;
/// The name of the menu of completions.
const MENU: &str = "completions";

/// Why a terminal cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("the history cannot be opened: {0}")]
pub struct EditorError(String);

/// What was typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EditedLine {
    Text(String),
    /// The line was given up with Ctrl+C.
    Interrupted,
    /// Ctrl+D in an empty line.
    Ended,
}

/// Reads lines from the terminal of this process. Reading blocks the thread.
pub struct LineEditor(Reedline);

impl LineEditor {
    /// An editor with a history in a file, and completion by what `names` has when it is asked.
    pub fn new(history: Option<&Path>, names: Arc<Mutex<Names>>) -> Result<Self, EditorError> {
        let mut keys = default_emacs_keybindings();
        keys.add_binding(
            KeyModifiers::NONE,
            KeyCode::Tab,
            ReedlineEvent::UntilFound(vec![ReedlineEvent::Menu(MENU.to_owned()), ReedlineEvent::MenuNext]),
        );
        let newline = || ReedlineEvent::Edit(vec![EditCommand::InsertNewline]);
        keys.add_binding(KeyModifiers::ALT, KeyCode::Enter, newline());
        keys.add_binding(KeyModifiers::SHIFT, KeyCode::Enter, newline());
        keys.add_binding(KeyModifiers::CONTROL, KeyCode::Char('j'), newline());
        let menu = ColumnarMenu::default().with_name(MENU);
        let mut editor = Reedline::create()
            .with_edit_mode(Box::new(Emacs::new(keys)))
            .with_completer(Box::new(Completions(names)))
            .with_menu(ReedlineMenu::EngineCompleter(Box::new(menu)))
            .with_validator(Box::new(Blocks))
            .with_quick_completions(true)
            .with_partial_completions(true)
            .use_bracketed_paste(true);
        if let Some(path) = history {
            let file = FileBackedHistory::with_file(HISTORY_MAX, path.to_owned());
            editor = editor.with_history(Box::new(file.map_err(|error| EditorError(error.to_string()))?));
        }
        Ok(Self(editor))
    }

    /// An editor for one answer, without history and completion.
    pub fn plain() -> Self {
        Self(Reedline::create().use_bracketed_paste(true))
    }

    /// Reads a line, or several.
    pub fn read(&mut self, prompt: &str) -> io::Result<EditedLine> {
        match self.0.read_line(&Line(prompt))? {
            Signal::Success(text) => Ok(EditedLine::Text(text)),
            Signal::CtrlC => Ok(EditedLine::Interrupted),
            _ => Ok(EditedLine::Ended),
        }
    }
}

/// The prompt.
struct Line<'a>(&'a str);

impl Prompt for Line<'_> {
    fn render_prompt_left(&self) -> Cow<'_, str> {
        Cow::Borrowed(self.0)
    }

    fn render_prompt_right(&self) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn render_prompt_indicator(&self, _: PromptEditMode) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn render_prompt_multiline_indicator(&self) -> Cow<'_, str> {
        Cow::Borrowed("  ")
    }

    fn render_prompt_history_search_indicator(&self, search: PromptHistorySearch) -> Cow<'_, str> {
        let found = match search.status {
            PromptHistorySearchStatus::Passing => "search",
            PromptHistorySearchStatus::Failing => "not found",
        };
        Cow::Owned(format!("({found}: {}) ", search.term))
    }
}

/// A message between `:::` is complete with its end.
struct Blocks;

impl Validator for Blocks {
    fn validate(&self, line: &str) -> ValidationResult {
        if starts_block(line) && !is_closed(line) { ValidationResult::Incomplete } else { ValidationResult::Complete }
    }
}

struct Completions(Arc<Mutex<Names>>);

impl Completer for Completions {
    fn complete(&mut self, line: &str, position: usize) -> CompletionResult {
        let Some(before) = line.get(..position) else { return CompletionResult::fresh(Vec::new()) };
        let names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = candidates(before, &names).into_iter();
        let suggestion = found.map(|found| Suggestion {
            append_whitespace: !found.text.ends_with('/'),
            description: Some(found.hint).filter(|hint| !hint.is_empty()),
            span: Span::new(found.start, position),
            value: found.text,
            ..Suggestion::default()
        });
        CompletionResult::fresh(suggestion.collect::<Vec<Suggestion>>())
    }
}
