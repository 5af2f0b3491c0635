//! What holds for any text.

use proptest::prelude::*;
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use unicode_width::UnicodeWidthStr;

use super::*;

/// Parts of Markdown, so that texts have what answers have.
fn markdown() -> impl Strategy<Value = String> {
    let parts = prop::sample::select(vec![
        "a",
        "b ",
        " c",
        "word ",
        "\n",
        "\n\n",
        "*",
        "**",
        "_",
        "~~",
        "`",
        "``",
        "```\n",
        "```rust\n",
        "[",
        "](x)",
        "]",
        "(",
        ")",
        "!",
        "# ",
        "- ",
        "  - ",
        "1. ",
        "> ",
        "| ",
        " | ",
        "|---|\n",
        "|",
        "---\n",
        "===\n",
        "$",
        "$$",
        "\\(",
        "\\)",
        "\\",
        "<b>",
        "日本",
        "，",
        "🇫🇷",
        "e\u{301}",
        "\u{200d}",
        "\u{1b}",
        "\r",
        "\r\n",
        "\t",
        "    ",
        "fn x() {}\n",
        "https://x.y/z_w",
        "\"t\"",
        "5",
        ".",
        "&amp;",
    ]);
    prop::collection::vec(parts, 0..60).prop_map(|parts| parts.concat())
}

fn styles() -> impl Strategy<Value = Style> {
    let depths = prop::sample::select(vec![ColorDepth::None, ColorDepth::Ansi16, ColorDepth::True]);
    (depths, 1..130_usize, any::<bool>(), any::<bool>()).prop_map(|(colors, width, highlight, hyperlinks)| Style {
        highlight,
        hyperlinks,
        ..Style::colored(width, colors, Theme::Dark)
    })
}

fn in_pieces(style: Style, text: &str, cuts: &[usize]) -> String {
    let mut printer = Printer::new(style);
    let mut shown = String::new();
    let mut letters = text.chars().peekable();
    let mut cuts = cuts.iter().copied().cycle();
    while letters.peek().is_some() {
        let piece: String = letters.by_ref().take(cuts.next().unwrap_or(1)).collect();
        shown.push_str(&printer.push(&piece));
    }
    shown.push_str(&printer.finish());
    shown
}

fn letters(text: &str) -> String {
    text.chars().filter(|letter| letter.is_alphanumeric()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn pieces_do_not_matter(text in markdown(), style in styles(), cuts in prop::collection::vec(1..9_usize, 1..5)) {
        let at_once = in_pieces(style, &text, &[usize::MAX]);
        prop_assert_eq!(&in_pieces(style, &text, &cuts), &at_once);
        prop_assert_eq!(&in_pieces(style, &text, &[1]), &at_once);
    }

    #[test]
    fn all_words_are_shown_in_any_style(text in markdown(), style in styles()) {
        // These are shown with letters.
        let text = text.replace(['\r', '\u{200d}'], "");
        prop_assert_eq!(letters(&stripped(&in_pieces(style, &text, &[3]))), letters(&text));
    }

    #[test]
    fn any_characters_are_safe(text in "\\PC{0,40}|[\\u{0}-\\u{9f}\\u{2000}-\\u{206f}|*`\\[\\](){}\n]{0,60}", style in styles()) {
        stripped(&in_pieces(style, &text, &[2]));
    }

    #[test]
    fn prose_fits_the_width(words in prop::collection::vec("[a-z]{1,30}|[日本語、。]{1,12}|🇫🇷👍🏽|\\*\\*[a-z]{1,5}\\*\\*", 1..40), width in 20..100_usize) {
        let text = words.join(" ");
        for style in [Style::plain(width), dark(width)] {
            for line in stripped(&in_pieces(style, &text, &[5])).lines() {
                prop_assert!(line.width() <= width, "{:?} has {} columns", line, line.width());
            }
        }
    }

    #[test]
    fn tables_fit_the_width(cells in prop::collection::vec(prop::collection::vec("[a-z ]{0,30}|[日本語]{0,9}", 3), 1..6), width in 40..120_usize) {
        let row = |cells: &Vec<String>| format!("| {} |\n", cells.join(" | "));
        let text = format!("| a | b | c |\n|---|:-:|--:|\n{}", cells.iter().map(row).collect::<String>());
        for style in [Style::plain(width), dark(width)] {
            let shown = stripped(&in_pieces(style, &text, &[7]));
            for line in shown.lines() {
                prop_assert!(line.width() <= width, "{:?} has {} columns", line, line.width());
            }
        }
    }

    /// What is strong and weak is what the parser of others says, in texts of letters, blanks and marks.
    #[test]
    fn emphasis_is_that_of_commonmark(text in "[ab]([ab ,.*_]{0,12}[ab])?") {
        let shown = printed(dark(1_000), &text);
        prop_assert_eq!(ours(&shown), theirs(&text), "{:?}", text);
    }
}

/// The letters with their looks, as the terminal gets them.
fn ours(shown: &str) -> Vec<(char, bool, bool)> {
    let mut letters = Vec::new();
    let (mut strong, mut weak) = (false, false);
    let mut rest = shown.trim_end();
    while let Some(letter) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("\u{1b}[") {
            let (codes, after) = after.split_once('m').expect("a sequence");
            (strong, weak) = (codes.split(';').any(|code| code == "1"), codes.split(';').any(|code| code == "3"));
            rest = after;
            continue;
        }
        if !letter.is_whitespace() {
            letters.push((letter, strong, weak));
        }
        rest = &rest[letter.len_utf8()..];
    }
    letters
}

fn theirs(text: &str) -> Vec<(char, bool, bool)> {
    let (mut strong, mut weak) = (0, 0);
    let mut letters = Vec::new();
    for event in Parser::new_ext(text, Options::empty()) {
        match event {
            Event::Start(Tag::Strong) => strong += 1,
            Event::End(TagEnd::Strong) => strong -= 1,
            Event::Start(Tag::Emphasis) => weak += 1,
            Event::End(TagEnd::Emphasis) => weak -= 1,
            Event::Text(text) => {
                letters.extend(
                    text.chars().filter(|letter| !letter.is_whitespace()).map(|letter| (letter, strong > 0, weak > 0)),
                );
            }
            _ => {}
        }
    }
    letters
}
