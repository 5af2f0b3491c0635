//! What a person sees of a turn: the answer as it forms, the tools that are called, and a line about tokens and costs.

use std::io::{IsTerminal as _, Write as _};

use atlas_api::types::Job;
use atlas_chat::TranscriptEntry;
use atlas_terminal::{ColorDepth, Printer, Style, Theme, TurnFigures, tool_call, tool_result, turn_footer, visible};

use crate::context::Context;
use crate::display::JobDisplay as _;
use crate::output::screen::Screen;

/// Columns of a terminal that does not tell.
const WIDTH_DEFAULT: usize = 80;

/// Prints a turn on stdout.
pub(crate) struct View<'a> {
    context: &'a Context,
    style: Style,
    /// Prints answers as they form; none if only the finished answer is printed.
    printer: Option<Printer>,
    /// Whether the cursor is behind an unfinished answer.
    is_open: bool,
    /// Whether a status line is shown.
    has_status: bool,
}

impl<'a> View<'a> {
    /// A view on stdout. Answers are shown as they form on a terminal only, and only with `stream`: what a file or program gets is the answer
    /// that was recorded.
    pub(crate) fn new(context: &'a Context, stream: bool) -> Self {
        let is_terminal = std::io::stdout().is_terminal();
        let style = if is_terminal { style() } else { Style::raw() };
        let printer = (stream && is_terminal).then(|| Printer::new(style));
        Self { context, style, printer, is_open: false, has_status: false }
    }

    /// Whether answers are shown as they form.
    pub(crate) fn is_live(&self) -> bool {
        self.printer.is_some()
    }

    /// The next piece of the answer.
    pub(super) fn text(&mut self, piece: &str) {
        self.clear_status();
        let Some(printer) = &mut self.printer else { return };
        let text = printer.push(piece);
        self.is_open = true;
        write(&text);
    }

    /// The answer begins again.
    pub(super) fn restart(&mut self) {
        self.clear_status();
        if let Some(printer) = &mut self.printer {
            write(&printer.reset());
        }
    }

    /// Ends the answer that forms.
    pub(super) fn end_answer(&mut self) {
        self.clear_status();
        if let Some(printer) = self.printer.as_mut().filter(|_| std::mem::take(&mut self.is_open)) {
            write(&printer.finish());
        }
    }

    /// An answer as a whole.
    pub(crate) fn whole(&mut self, text: &str) {
        self.end_answer();
        let mut printer = Printer::new(self.style);
        let mut shown = printer.push(text);
        shown += &printer.finish();
        if !shown.is_empty() && !shown.ends_with('\n') {
            shown.push('\n');
        }
        write(&shown);
    }

    /// Tool calls and their results, folded to a few lines.
    pub(super) fn tools(&mut self, entries: &[TranscriptEntry]) {
        for entry in entries {
            match entry {
                TranscriptEntry::Assistant { calls, .. } => {
                    for call in calls {
                        self.aside(&tool_call(&self.style, &call.name, &call.arguments.to_string()));
                    }
                }
                TranscriptEntry::Result { name, text, failed, .. } => {
                    self.aside(&tool_result(&self.style, name, !failed, text));
                }
                TranscriptEntry::Note(note) => self.aside(&format!("{}\n", visible(note))),
                TranscriptEntry::System(_) | TranscriptEntry::User { .. } => {}
            }
        }
    }

    /// The line after a turn.
    pub(super) fn footer(&mut self, job: &Job) {
        self.end_answer();
        let is_priced = job.model().is_some() && !job.cost().is_empty();
        let figures = TurnFigures {
            tokens_input: job.tokens_input,
            tokens_output: job.tokens_output,
            cost_usd: is_priced.then_some(job.cost_usd),
            duration_ms: job.total_ms().max(0.0) as u64,
        };
        self.aside(&turn_footer(&self.style, &figures));
    }

    /// What happens meanwhile, in a line that the next output replaces.
    pub(super) fn status(&mut self, text: &str) {
        if self.is_live() && !self.is_open && self.context.has_status_line() {
            self.context.status_line(text);
            self.has_status = true;
        }
    }

    /// A note for the person, on stderr.
    pub(crate) fn note(&mut self, text: &str) {
        self.end_answer();
        self.context.note(text);
    }

    pub(crate) fn clear_status(&mut self) {
        if std::mem::take(&mut self.has_status) {
            self.context.status_line("");
        }
    }

    /// Lines beside the answer: on the terminal with it, and on none otherwise.
    fn aside(&mut self, text: &str) {
        if self.is_live() {
            self.end_answer();
            write(text);
        }
    }
}

/// How answers look on the terminal of stdout.
pub(crate) fn style() -> Style {
    let screen = Screen::get();
    let width = screen.width.unwrap_or(WIDTH_DEFAULT);
    if !screen.colour {
        return Style::plain(width);
    }
    let set = |name: &str| std::env::var(name).unwrap_or_default();
    let colors = match (set("COLORTERM").as_str(), set("TERM")) {
        ("truecolor" | "24bit", _) => ColorDepth::True,
        (_, term) if term.contains("256color") => ColorDepth::Ansi256,
        _ => ColorDepth::Ansi16,
    };
    Style::colored(width, colors, theme(&set("COLORFGBG")))
}

/// The background by what some terminals say in `COLORFGBG`: the last number is its colour. Without it, most are dark.
fn theme(text: &str) -> Theme {
    match text.rsplit(';').next().and_then(|number| number.parse::<u8>().ok()) {
        Some(7 | 9..=15) => Theme::Light,
        _ => Theme::Dark,
    }
}

/// Writes to stdout at once. The conversation goes on if nobody reads it any more.
fn write(text: &str) {
    let mut stdout = std::io::stdout().lock();
    let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_background_is_the_last_number() {
        assert_eq!(theme("15;0"), Theme::Dark);
        assert_eq!(theme("0;default;15"), Theme::Light);
        assert_eq!(theme(""), Theme::Dark);
    }
}
