//! One long answer at several widths, with and without colours.

use expect_test::expect_file;

use super::*;

const ANSWER: &str = include_str!("answer.md");

#[test]
fn an_answer_at_60_columns() {
    expect_file!["plain-60.txt"].assert_eq(&printed(Style::plain(60), ANSWER));
    expect_file!["colored-60.txt"].assert_eq(&named(&printed(dark(60), ANSWER)));
}

#[test]
fn an_answer_at_80_columns() {
    expect_file!["plain-80.txt"].assert_eq(&printed(Style::plain(80), ANSWER));
    expect_file!["colored-80.txt"].assert_eq(&named(&printed(dark(80), ANSWER)));
}

#[test]
fn an_answer_at_120_columns() {
    expect_file!["plain-120.txt"].assert_eq(&printed(Style::plain(120), ANSWER));
    expect_file!["colored-120.txt"].assert_eq(&named(&printed(dark(120), ANSWER)));
}

#[test]
fn code_has_the_colours_of_its_language() {
    let text = "```rust\nfn main() { /* a\n   b */ let x = \"y\"; }\n```\n\n```unknown\nlet x\n```\n";
    for (depth, file) in [
        (ColorDepth::Ansi16, "code-16.txt"),
        (ColorDepth::Ansi256, "code-256.txt"),
        (ColorDepth::True, "code-true.txt"),
    ] {
        let shown = printed(Style::colored(80, depth, Theme::Dark), text);
        expect_file![file].assert_eq(&shown.replace('\u{1b}', "ESC"));
        assert_eq!(stripped(&shown), text);
    }
}
