//! Colours for code, by the grammars of TextMate. They are unpacked when the first block of code needs them. The engine for their
//! expressions is in Rust, and some grammars need one in C: among others, there are no colours for PowerShell.
//!
//! Unpacking takes about 12 ms. The first line of a language takes longer than all others, because its expressions are compiled then: 5 ms for
//! JSON, 100 ms for Rust and Python, 500 ms for TypeScript. The grammars add 1 MiB to a program.

use std::ops::Range;
use std::sync::OnceLock;

use syntect::highlighting::{
    Color, FontStyle, HighlightIterator, HighlightState, Highlighter as Themed, Theme as Colors,
};
use syntect::parsing::{ParseState, ScopeStack, SyntaxReference, SyntaxSet};
use two_face::theme::{EmbeddedLazyThemeSet, EmbeddedThemeName};

use crate::look::{Ink, Look};
use crate::{ColorDepth, Style, Theme};

/// A longer line is not coloured: the grammars look at each letter many times, and a line that nobody wrote takes milliseconds.
const LINE_BYTES_MAX: usize = 400;
/// Code behind this much of a block is not coloured.
const BLOCK_BYTES_MAX: usize = 64 << 10;

/// Names that people give languages, and those of the grammars.
const ALIASES: [(&str, &str); 21] = [
    ("bash", "bash"),
    ("console", "bash"),
    ("csharp", "cs"),
    ("docker", "dockerfile"),
    ("golang", "go"),
    ("jsonc", "json"),
    ("json5", "json"),
    ("jsonl", "json"),
    ("jsx", "js"),
    ("kotlin", "kt"),
    ("make", "makefile"),
    ("node", "js"),
    ("objective-c", "m"),
    ("protobuf", "proto"),
    ("python3", "py"),
    ("shell", "bash"),
    ("shell-session", "bash"),
    ("terraform", "tf"),
    ("typescript", "ts"),
    ("yml", "yaml"),
    ("zsh", "bash"),
];

fn grammars() -> &'static SyntaxSet {
    static GRAMMARS: OnceLock<SyntaxSet> = OnceLock::new();
    GRAMMARS.get_or_init(two_face::syntax::extra_newlines)
}

fn colors(style: &Style) -> &'static Colors {
    static THEMES: OnceLock<EmbeddedLazyThemeSet> = OnceLock::new();
    let name = match (style.colors, style.theme) {
        (ColorDepth::None | ColorDepth::Ansi16, _) => EmbeddedThemeName::Ansi,
        (_, Theme::Light) => EmbeddedThemeName::MonokaiExtendedLight,
        _ => EmbeddedThemeName::MonokaiExtended,
    };
    THEMES.get_or_init(two_face::theme::extra).get(name)
}

/// The licences of the grammars and themes in the program, as Markdown. Who passes the program on has to pass on these texts.
pub fn grammar_licenses() -> String {
    two_face::acknowledgement::listing().to_md()
}

/// The state between two lines of a block.
#[derive(Debug)]
pub(crate) struct Highlighter {
    themed: ThemedColors,
    parser: ParseState,
    state: HighlightState,
    bytes: usize,
}

/// The colours of a theme, prepared.
struct ThemedColors(Themed<'static>);

impl std::fmt::Debug for ThemedColors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ThemedColors")
    }
}

impl Highlighter {
    /// For a block in this language; none if there are no colours, or no grammar.
    pub(crate) fn new(language: &str, style: &Style) -> Option<Self> {
        let shows = style.highlight && style.colors != ColorDepth::None && style.theme != Theme::None;
        if !shows || language.is_empty() {
            return None;
        }
        let grammar = grammar(language)?;
        let themed = Themed::new(colors(style));
        let state = HighlightState::new(&themed, ScopeStack::new());
        Some(Self { themed: ThemedColors(themed), parser: ParseState::new(grammar), state, bytes: 0 })
    }

    /// The pieces of a line, without its line end, and their looks; none if the line is not coloured.
    pub(crate) fn line<'a>(&mut self, line: &'a str) -> Option<Vec<(Look, &'a str)>> {
        self.bytes += line.len() + 1;
        if line.len() > LINE_BYTES_MAX || self.bytes > BLOCK_BYTES_MAX {
            return None;
        }
        let whole = format!("{line}\n");
        let changes = self.parser.parse_line(&whole, grammars()).ok()?;
        let usual = self.themed.0.get_default().foreground;
        let mut parts: Vec<(Look, Range<usize>)> = Vec::new();
        for (style, text) in HighlightIterator::new(&mut self.state, &changes, &whole, &self.themed.0) {
            let start = parts.last().map_or(0, |(_, part)| part.end);
            let end = (start + text.len()).min(line.len());
            let look = look(style.foreground, style.font_style, usual);
            match parts.last_mut() {
                Some((last, part)) if *last == look => part.end = end,
                _ => parts.push((look, start..end)),
            }
        }
        Some(parts.into_iter().filter_map(|(look, part)| Some((look, line.get(part)?))).collect())
    }
}

fn grammar(language: &str) -> Option<&'static SyntaxReference> {
    let language = language.to_ascii_lowercase();
    let name = ALIASES.iter().find(|(alias, _)| *alias == language).map_or(language.as_str(), |(_, name)| name);
    grammars().find_syntax_by_token(name).filter(|grammar| grammar.name != "Plain Text")
}

/// Themes for 16 colours put the number of the colour where others have red; `a` is then 0, or 1 for the usual colour. The usual colour of
/// other themes is that of the terminal: its background is not that of the theme.
fn look(color: Color, font: FontStyle, usual: Color) -> Look {
    let ink = match color.a {
        0 => Ink::Palette(color.r),
        1 => Ink::Usual,
        _ if color == usual => Ink::Usual,
        _ => Ink::Rgb(color.r, color.g, color.b),
    };
    Look {
        ink,
        bold: font.contains(FontStyle::BOLD),
        italic: font.contains(FontStyle::ITALIC),
        underline: font.contains(FontStyle::UNDERLINE),
        ..Look::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn highlighter(language: &str) -> Option<Highlighter> {
        Highlighter::new(language, &Style::colored(80, ColorDepth::True, Theme::Dark))
    }

    #[test]
    fn languages_have_the_names_that_people_give_them() {
        let known = [
            "bash",
            "c",
            "C++",
            "c#",
            "console",
            "cpp",
            "css",
            "diff",
            "dockerfile",
            "go",
            "golang",
            "graphql",
            "html",
            "ini",
            "java",
            "JavaScript",
            "js",
            "json",
            "jsonc",
            "jsx",
            "kotlin",
            "latex",
            "lua",
            "make",
            "markdown",
            "nginx",
            "perl",
            "php",
            "proto",
            "py",
            "python",
            "R",
            "rb",
            "rs",
            "ruby",
            "rust",
            "scala",
            "sh",
            "shell",
            "sql",
            "swift",
            "terraform",
            "toml",
            "ts",
            "tsx",
            "typescript",
            "xml",
            "yaml",
            "yml",
            "zig",
            "zsh",
        ];
        let unknown: Vec<_> = known.into_iter().filter(|language| highlighter(language).is_none()).collect();
        assert_eq!(unknown, [""; 0]);
        assert!(["", "text", "plaintext", "txt", "no such"].iter().all(|language| highlighter(language).is_none()));
    }

    #[test]
    fn long_lines_and_long_blocks_have_no_colours() {
        let mut highlighter = highlighter("rust").expect("a grammar");
        assert!(highlighter.line("fn a() {}").is_some());
        assert!(highlighter.line(&"x".repeat(LINE_BYTES_MAX + 1)).is_none());
        assert!(highlighter.line("fn a() {}").is_some());
        highlighter.bytes = BLOCK_BYTES_MAX;
        assert!(highlighter.line("fn a() {}").is_none());
    }

    #[test]
    fn the_licences_of_grammars_are_there() {
        assert!(grammar_licenses().contains("Permission is hereby granted"));
    }
}
