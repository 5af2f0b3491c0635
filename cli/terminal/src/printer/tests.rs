//! Answers as they look on a terminal of some width.

mod blocks;
mod bounds;
mod goldens;
mod properties;

use expect_test::Expect;

use super::*;
use crate::{ColorDepth, Theme};

/// An answer, printed in pieces of one character.
fn printed(style: Style, text: &str) -> String {
    let mut printer = Printer::new(style);
    let mut shown: String = text.chars().map(|letter| printer.push(letter.encode_utf8(&mut [0; 4]))).collect();
    shown.push_str(&printer.finish());
    shown
}

fn dark(width: usize) -> Style {
    Style { highlight: false, ..Style::colored(width, ColorDepth::Ansi16, Theme::Dark) }
}

/// Compares what is printed, with looks as short names: `<b>`, `<dim>` and others, and `</>` for their end.
fn check_colored(width: usize, text: &str, expected: &Expect) {
    expected.assert_eq(&named(&printed(dark(width), text)));
}

fn check_plain(width: usize, text: &str, expected: &Expect) {
    expected.assert_eq(&printed(Style::plain(width), text));
}

fn named(shown: &str) -> String {
    let mut named = String::new();
    let mut rest = shown;
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        named.push_str(before);
        let (codes, after) = after.split_once('m').expect("a sequence of looks");
        let names: Vec<_> = codes.split(';').map(name).collect();
        named.push_str(&format!("<{}>", names.join(" ")));
        rest = after;
    }
    named.push_str(rest);
    named.replace('\u{1b}', "ESC")
}

fn name(code: &str) -> &str {
    match code {
        "0" => "/",
        "1" => "b",
        "2" => "dim",
        "3" => "i",
        "4" => "u",
        "9" => "s",
        "93" => "code",
        "94" => "link",
        "96" => "head",
        other => other,
    }
}

/// The text without its looks and links. Fails at any other sequence.
fn stripped(shown: &str) -> String {
    let mut text = String::new();
    let mut rest = shown;
    while let Some((before, after)) = rest.split_once('\u{1b}') {
        text.push_str(before);
        rest = if let Some(after) = after.strip_prefix('[') {
            let (codes, after) = after.split_once('m').expect("a sequence of looks");
            assert!(codes.bytes().all(|byte| byte.is_ascii_digit() || byte == b';'), "{codes:?}");
            after
        } else {
            let after = after.strip_prefix("]8;;").expect("a link");
            let (url, after) = after.split_once("\u{1b}\\").expect("the end of an address");
            assert!(url.bytes().all(|byte| byte.is_ascii_graphic()), "{url:?}");
            after
        };
    }
    text.push_str(rest);
    assert!(text.chars().all(|letter| letter == '\n' || !letter.is_control()), "{text:?}");
    text
}
