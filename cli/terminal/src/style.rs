//! How text is shown: the width, the colours, and what the terminal understands.

/// How many colours a terminal shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum ColorDepth {
    /// None: no escape sequence is sent at all, and the marks of Markdown stay in the text.
    #[default]
    None,
    /// The 16 colours that the user's terminal defines.
    Ansi16,
    /// The palette of 256 colours.
    Ansi256,
    /// 24 bits a colour.
    True,
}

/// The background that colours are chosen for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Theme {
    /// Light text on a dark background.
    #[default]
    Dark,
    /// Dark text on a light background.
    Light,
    /// Unknown: bold, italic and dim text, but no colours of ours.
    None,
}

/// How a [`Printer`](crate::Printer) and the status lines show text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Columns of the terminal. Less than 20 counts as 20.
    pub width: usize,
    /// How many colours the terminal shows.
    pub colors: ColorDepth,
    /// The background that colours are chosen for.
    pub theme: Theme,
    /// Whether code in fences gets colours by its language.
    pub highlight: bool,
    /// Whether the terminal opens links (OSC 8).
    pub hyperlinks: bool,
    /// Whether the text is passed on byte for byte, for files and pipes. Nothing else of the style counts then.
    pub raw: bool,
}

impl Style {
    /// The text as it is, for files and pipes: not wrapped, not coloured, and with the control characters that the model sent.
    pub fn raw() -> Self {
        Self { raw: true, ..Self::plain(80) }
    }

    /// Readable text without any escape sequence, wrapped at `width` columns.
    pub fn plain(width: usize) -> Self {
        Self { width, colors: ColorDepth::None, theme: Theme::None, highlight: false, hyperlinks: false, raw: false }
    }

    /// Text with colours and highlighted code, wrapped at `width` columns.
    pub fn colored(width: usize, colors: ColorDepth, theme: Theme) -> Self {
        Self { width, colors, theme, highlight: true, hyperlinks: false, raw: false }
    }
}
