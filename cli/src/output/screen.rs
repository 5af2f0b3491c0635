//! What the terminal on which results are printed can show: colours, and a width. Set once; without it, text is plain and of any width.

use std::io::IsTerminal as _;
use std::sync::OnceLock;

/// When colours are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub(crate) enum ColourWhen {
    /// On a terminal, unless NO_COLOR is set.
    #[default]
    Auto,
    /// Also in files and pipes.
    Always,
    /// Never.
    Never,
}

impl ColourWhen {
    /// Whether a stream that is a terminal or none has colours.
    pub(crate) fn applies(self, is_terminal: bool) -> bool {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Auto => is_terminal && set("NO_COLOR").is_none() && set("TERM").is_none_or(|term| term != "dumb"),
        }
    }
}

/// What stdout can show.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Screen {
    /// Whether states have colours.
    pub(crate) colour: bool,
    /// The number of columns; none if lines may have any length, as in a pipe.
    pub(crate) width: Option<usize>,
}

static SCREEN: OnceLock<Screen> = OnceLock::new();

impl Screen {
    /// Looks at stdout, before anything is printed.
    pub(crate) fn look(colour: ColourWhen) {
        let is_terminal = std::io::stdout().is_terminal();
        let width = terminal_size::terminal_size_of(std::io::stdout()).map(|(width, _)| usize::from(width.0));
        let screen = Self { colour: colour.applies(is_terminal), width: width.filter(|_| is_terminal) };
        // A second command in this process prints on the same terminal.
        let _ = SCREEN.set(screen);
    }

    /// The screen of this process.
    pub(crate) fn get() -> Self {
        SCREEN.get().copied().unwrap_or_default()
    }
}

/// A colour of a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Paint {
    Good,
    Bad,
    Warning,
    Faint,
}

/// Marks in text where a colour begins and ends. They are no characters of any language, and become escape sequences when the text is
/// printed, after all others were made visible.
const MARKS: [(char, &str); 5] = [
    ('\u{f8e0}', "\u{1b}[32m"),
    ('\u{f8e1}', "\u{1b}[31m"),
    ('\u{f8e2}', "\u{1b}[33m"),
    ('\u{f8e3}', "\u{1b}[2m"),
    (END, "\u{1b}[0m"),
];
const END: char = '\u{f8e4}';

impl Paint {
    /// The colour of a state, by its first word: `failed: budget`.
    pub(crate) fn of_state(state: &str) -> Option<Self> {
        let word = state.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
        Some(match word {
            "completed" | "ready" | "ok" | "closed" | "reachable" | "approved" | "leader" | "succeeded" | "passed" => {
                Self::Good
            }
            "failed" | "down" | "unreachable" | "open" | "error" | "denied" | "rejected" | "lost" | "wrong" => {
                Self::Bad
            }
            "warn" | "warning" | "draining" | "cordoned" | "paused" | "retired" | "deprecated" | "half_open"
            | "in_doubt" => Self::Warning,
            "cancelled" | "skipped" | "expired" | "ended" | "disabled" => Self::Faint,
            _ => return None,
        })
    }

    /// The text between the marks of the colour.
    pub(crate) fn mark(self, text: &str) -> String {
        let (mark, _) = MARKS[self as usize];
        format!("{mark}{text}{END}")
    }
}

/// A state with its colour, where colours are shown.
pub(crate) fn state(text: &str) -> String {
    match Paint::of_state(text).filter(|_| Screen::get().colour) {
        Some(paint) => paint.mark(text),
        None => text.to_owned(),
    }
}

/// The text with its marks as escape sequences.
pub(crate) fn painted(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match MARKS.iter().find(|(mark, _)| *mark == c) {
            Some((_, sequence)) => out.push_str(sequence),
            None => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_has_the_colour_of_its_first_word() {
        for (state, paint) in [
            ("completed", Some(Paint::Good)),
            ("failed: budget", Some(Paint::Bad)),
            ("ready, cordoned", Some(Paint::Good)),
            ("running", None),
            ("", None),
        ] {
            assert_eq!(Paint::of_state(state), paint, "{state}");
        }
        assert_eq!(painted(&Paint::Bad.mark("failed")), "\u{1b}[31mfailed\u{1b}[0m");
        assert_eq!(painted(&Paint::Faint.mark("x")), "\u{1b}[2mx\u{1b}[0m");
    }

    #[test]
    fn colours_are_used_as_told() {
        assert!(ColourWhen::Always.applies(false) && !ColourWhen::Never.applies(true));
        assert!(!ColourWhen::Auto.applies(false));
    }
}
