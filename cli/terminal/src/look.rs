//! How a piece of text looks, and the sequences of a terminal for it.

use crate::{ColorDepth, Style, Theme};

/// The look of a letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Look {
    pub(crate) bold: bool,
    pub(crate) dim: bool,
    pub(crate) italic: bool,
    pub(crate) underline: bool,
    pub(crate) strike: bool,
    pub(crate) ink: Ink,
    /// The number of the link that the letter belongs to, from 1; 0 is none.
    pub(crate) link: u16,
}

/// What colour a letter has, by what it is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Ink {
    #[default]
    Usual,
    Heading,
    Code,
    Link,
    Wrong,
    /// A colour of a theme for code.
    Rgb(u8, u8, u8),
    /// A colour of the terminal's own palette.
    Palette(u8),
}

impl Look {
    pub(crate) const DIM: Self =
        Self { bold: false, dim: true, italic: false, underline: false, strike: false, ink: Ink::Usual, link: 0 };

    pub(crate) fn of(ink: Ink) -> Self {
        Self { ink, ..Self::default() }
    }

    /// The sequence that begins this look; empty if it looks as usual.
    fn begin(self, style: &Style) -> String {
        if style.colors == ColorDepth::None {
            return String::new();
        }
        let mut codes = Vec::new();
        let flags = [(self.bold, "1"), (self.dim, "2"), (self.italic, "3"), (self.underline, "4"), (self.strike, "9")];
        codes.extend(flags.iter().filter(|(is_set, _)| *is_set).map(|(_, code)| (*code).to_owned()));
        codes.extend(self.ink.code(style));
        if codes.is_empty() { String::new() } else { format!("\u{1b}[{}m", codes.join(";")) }
    }
}

impl Ink {
    fn code(self, style: &Style) -> Option<String> {
        let by_theme = |dark: u8, light: u8| match style.theme {
            Theme::Dark => Some(dark.to_string()),
            Theme::Light => Some(light.to_string()),
            Theme::None => None,
        };
        match self {
            Self::Usual => None,
            Self::Heading => by_theme(96, 34),
            Self::Code => by_theme(93, 35),
            Self::Link => by_theme(94, 34),
            Self::Wrong => by_theme(91, 31),
            Self::Palette(number) => Some(palette(number)),
            Self::Rgb(red, green, blue) => Some(match style.colors {
                ColorDepth::True => format!("38;2;{red};{green};{blue}"),
                _ => format!("38;5;{}", nearest(red, green, blue)),
            }),
        }
    }
}

/// One of the 16 colours that a terminal defines.
fn palette(number: u8) -> String {
    match number {
        0..=7 => (30 + number).to_string(),
        8..=15 => (82 + number).to_string(),
        _ => format!("38;5;{number}"),
    }
}

/// The colour of the palette of 256 that is nearest: of its cube or of its greys.
fn nearest(red: u8, green: u8, blue: u8) -> u8 {
    const LEVELS: [u8; 6] = [0, 95, 135, 175, 215, 255];
    let level =
        |value: u8| (0..6u8).min_by_key(|index| LEVELS[usize::from(*index)].abs_diff(value)).unwrap_or_default();
    let far =
        |a: [u8; 3]| -> u32 { a.iter().zip([red, green, blue]).map(|(a, b)| u32::from(a.abs_diff(b)).pow(2)).sum() };
    let (r, g, b) = (level(red), level(green), level(blue));
    let cube = [r, g, b].map(|index| LEVELS[usize::from(index)]);
    let mean = ((u16::from(red) + u16::from(green) + u16::from(blue)) / 3) as u8;
    let step = (mean.saturating_sub(3) / 10).min(23);
    let grey = 8 + step * 10;
    if far([grey; 3]) < far(cube) { 232 + step } else { 16 + 36 * r + 6 * g + b }
}

/// Appends text in pieces of one look. Each piece is closed, so that whatever is written next looks as usual.
pub(crate) fn paint<'a>(
    out: &mut String,
    style: &Style,
    links: &[String],
    pieces: impl Iterator<Item = (&'a str, Look)>,
) {
    for (text, look) in pieces {
        let url = if style.hyperlinks && style.colors != ColorDepth::None {
            usize::from(look.link).checked_sub(1).and_then(|index| links.get(index))
        } else {
            None
        };
        let begin = look.begin(style);
        if let Some(url) = url {
            out.push_str(&format!("\u{1b}]8;;{url}\u{1b}\\"));
        }
        out.push_str(&begin);
        out.push_str(text);
        if !begin.is_empty() {
            out.push_str("\u{1b}[0m");
        }
        if url.is_some() {
            out.push_str("\u{1b}]8;;\u{1b}\\");
        }
    }
}

/// Whether a terminal may be sent the address: one for the web or for mail, of printable ASCII.
pub(crate) fn is_safe_url(url: &str) -> bool {
    const URL_BYTES_MAX: usize = 2_000;
    ["https://", "http://", "mailto:"].iter().any(|scheme| url.starts_with(scheme))
        && url.len() <= URL_BYTES_MAX
        && url.bytes().all(|byte| byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_come_near_in_small_palettes() {
        assert_eq!(nearest(255, 0, 0), 196);
        assert_eq!(nearest(0, 0, 0), 16);
        assert_eq!(nearest(255, 255, 255), 231);
        assert_eq!(nearest(118, 118, 118), 243);
    }

    #[test]
    fn only_addresses_of_web_and_mail_are_linked() {
        assert!(is_safe_url("https://example.com/a?b=c"));
        for url in ["javascript:alert(1)", "file:///etc/passwd", "https://a\u{1b}\\b", "https://a b", "ssh://x"] {
            assert!(!is_safe_url(url), "{url}");
        }
    }
}
