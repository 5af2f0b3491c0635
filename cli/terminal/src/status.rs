//! The lines between answers: tool calls, their results, and what a turn took.

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use crate::look::{Ink, Look, paint};
use crate::{ColorDepth, Style, visible};

/// Lines of a result that are shown.
const RESULT_LINES_MAX: usize = 3;

/// What a turn took.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct TurnFigures {
    /// Tokens that the model read.
    pub tokens_input: u64,
    /// Tokens that the model wrote.
    pub tokens_output: u64,
    /// US dollars; none if nobody knows the price.
    pub cost_usd: Option<f64>,
    /// Milliseconds from the question to the end of the answer.
    pub duration_ms: u64,
}

/// One line about a tool call, with its line end. `arguments` is JSON; what does not fit is cut, with the count of characters left out.
pub fn tool_call(style: &Style, name: &str, arguments: &str) -> String {
    let mut line = Line::begin(style, "→", "->");
    line.add(name, Look { bold: true, ..Look::default() });
    let arguments = compact(arguments);
    if !arguments.is_empty() {
        line.add(" ", Look::default());
        line.add_most(&one_line(&arguments), Look::DIM);
    }
    line.end()
}

/// The result of a tool call: at most three lines, each cut to the width, and how many more there are.
pub fn tool_result(style: &Style, name: &str, ok: bool, text: &str) -> String {
    let mut line = Line::begin(style, "←", "<-");
    line.add(name, Look { bold: true, ..Look::default() });
    if !ok {
        line.add(" failed", Look::of(Ink::Wrong));
    }
    let text = text.trim_end();
    let mut lines = text.lines();
    if let Some(first) = lines.next() {
        line.add(": ", Look::default());
        line.add_cut(&one_line(first), Look::DIM);
    }
    let mut shown = line.end();
    for text in lines.by_ref().take(RESULT_LINES_MAX - 1) {
        let mut line = Line::indented(style);
        line.add_cut(&one_line(text), Look::DIM);
        shown.push_str(&line.end());
    }
    let more = lines.count();
    if more > 0 {
        let mut line = Line::indented(style);
        line.add(&format!("… {} more {}", grouped(more as u64), if more == 1 { "line" } else { "lines" }), Look::DIM);
        shown.push_str(&line.end());
    }
    shown
}

/// One line about a turn, with its line end: tokens, cost and duration.
pub fn turn_footer(style: &Style, figures: &TurnFigures) -> String {
    let tokens = |count: u64| format!("{} {}", grouped(count), if count == 1 { "token" } else { "tokens" });
    let mut parts =
        vec![format!("{} in", tokens(figures.tokens_input)), format!("{} out", grouped(figures.tokens_output))];
    parts.extend(figures.cost_usd.map(dollars));
    parts.push(duration(figures.duration_ms));
    let mut line = Line::empty(style);
    line.add_cut(&parts.join(" · "), Look::DIM);
    line.end()
}

/// A line that is not longer than the terminal is wide.
struct Line<'a> {
    style: &'a Style,
    text: String,
    left: usize,
}

impl<'a> Line<'a> {
    fn empty(style: &'a Style) -> Self {
        Self { style, text: String::new(), left: style.width.max(20) }
    }

    fn begin(style: &'a Style, mark: &str, plain_mark: &str) -> Self {
        let mut line = Self::empty(style);
        let mark = if style.colors == ColorDepth::None { plain_mark } else { mark };
        line.add(mark, Look::of(Ink::Link));
        line.add(" ", Look::default());
        line
    }

    fn indented(style: &'a Style) -> Self {
        let mut line = Self::empty(style);
        line.add("  ", Look::default());
        line
    }

    fn add(&mut self, text: &str, look: Look) {
        let text = one_line(text);
        let (text, _) = cut(&text, self.left);
        self.left -= text.width();
        paint(&mut self.text, self.style, &[], [(text, look)].into_iter());
    }

    /// Adds as much of the text as fits, with a sign that there is more.
    fn add_cut(&mut self, text: &str, look: Look) {
        if text.width() <= self.left {
            self.add(text, look);
            return;
        }
        let (fitting, _) = cut(text, self.left.saturating_sub(1));
        self.add(&format!("{fitting}…"), look);
    }

    /// Adds as much of the text as fits, and how many characters are left out.
    fn add_most(&mut self, text: &str, look: Look) {
        if text.width() <= self.left {
            self.add(text, look);
            return;
        }
        let longest = format!("… {} more characters", grouped(text.chars().count() as u64)).width();
        let (fitting, rest) = cut(text, self.left.saturating_sub(longest));
        let count = rest.chars().count() as u64;
        self.add(fitting, look);
        self.add(&format!("… {} more characters", grouped(count)), look);
    }

    fn end(mut self) -> String {
        self.text.push('\n');
        self.text
    }
}

/// The part of a text that fits into `width` columns, and the rest.
fn cut(text: &str, width: usize) -> (&str, &str) {
    let mut used = 0;
    for (at, cluster) in text.grapheme_indices(true) {
        used += cluster.width();
        if used > width {
            return text.split_at(at);
        }
    }
    (text, "")
}

/// The text without line ends and tabs, and with what controls a terminal made visible.
fn one_line(text: &str) -> String {
    // A text is cut to a line later, and no line has more letters that count.
    const LETTERS_MAX: usize = 1 << 20;
    let text: String = text.chars().take(LETTERS_MAX).collect();
    visible(&text).replace(['\n', '\t'], " ")
}

/// JSON without the blanks between its parts; anything else as it is.
fn compact(json: &str) -> String {
    let json = json.trim();
    if !json.starts_with(['{', '[']) {
        return json.to_owned();
    }
    let (mut is_text, mut is_escaped) = (false, false);
    let is_kept = |letter: &char| {
        let is_kept = is_text || !letter.is_ascii_whitespace();
        if *letter == '"' && !is_escaped {
            is_text = !is_text;
        }
        is_escaped = *letter == '\\' && !is_escaped;
        is_kept
    };
    json.chars().filter(is_kept).collect()
}

/// A count with commas: 1,234.
fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Four decimals, or as many as show that it is not nothing.
fn dollars(usd: f64) -> String {
    if usd > 0.0 && usd < 0.00005 { format!("${usd:.7}") } else { format!("${usd:.4}") }
}

fn duration(milliseconds: u64) -> String {
    match milliseconds {
        0..1_000 => format!("{milliseconds} ms"),
        1_000..60_000 => format!("{}.{} s", milliseconds / 1_000, milliseconds % 1_000 / 100),
        _ => format!("{} min {} s", milliseconds / 60_000, milliseconds % 60_000 / 1_000),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(actual: &str, expected: &Expect) {
        expected.assert_eq(actual);
    }

    #[test]
    fn a_call_is_one_line() {
        let style = Style::plain(60);
        check(
            &tool_call(&style, "read_file", "{\n  \"path\": \"a b.rs\",\n  \"from\": 1\n}"),
            &expect![[r#"
            -> read_file {"path":"a b.rs","from":1}
        "#]],
        );
        check(
            &tool_call(&style, "write", &format!("{{\"text\":\"{}\"}}", "long ".repeat(500))),
            &expect![[r#"
                -> write {"text":"long long long long… 2,483 more characters
            "#]],
        );
        check(
            &tool_call(&style, "now", ""),
            &expect![[r#"
            -> now
        "#]],
        );
        check(
            &tool_call(&style, "shell", "{\"command\":\"日本語日本語日本語日本語日本語日本語日本語\"}"),
            &expect![[r#"
                -> shell {"command":"日本語日本語日本語… 14 more characters
            "#]],
        );
    }

    #[test]
    fn a_result_is_three_lines() {
        let style = Style::plain(40);
        check(
            &tool_result(&style, "ls", true, "a\nb\nc\nd\ne\n"),
            &expect![[r#"
            <- ls: a
              b
              c
              … 2 more lines
        "#]],
        );
        check(
            &tool_result(&style, "ls", false, &"no such file ".repeat(9)),
            &expect![[r#"
            <- ls failed: no such file no such file…
        "#]],
        );
        check(
            &tool_result(&style, "ls", true, ""),
            &expect![[r#"
            <- ls
        "#]],
        );
    }

    #[test]
    fn hostile_names_and_results_stay_on_their_line() {
        let style = Style::colored(40, ColorDepth::Ansi16, crate::Theme::Dark);
        let shown = tool_result(&style, "a\u{1b}[2J\nb", true, "x\u{9b}2J\ry\u{202e}");
        check(
            &shown.replace('\u{1b}', "ESC"),
            &expect![[r#"
            ESC[94m←ESC[0m ESC[1ma^[[2J bESC[0m: ESC[2mx\u{9b}2J^My\u{202e}ESC[0m
        "#]],
        );
        assert!(tool_call(&style, &"n".repeat(500), "{}").lines().count() == 1);
    }

    #[test]
    fn a_footer_has_what_is_known() {
        let style = Style::plain(80);
        let figures =
            TurnFigures { tokens_input: 12_345, tokens_output: 678, cost_usd: Some(0.0421), duration_ms: 3_250 };
        check(
            &turn_footer(&style, &figures),
            &expect![[r#"
            12,345 tokens in · 678 out · $0.0421 · 3.2 s
        "#]],
        );
        let figures = TurnFigures { tokens_input: 1, tokens_output: 0, cost_usd: None, duration_ms: 125_000 };
        check(
            &turn_footer(&style, &figures),
            &expect![[r#"
            1 token in · 0 out · 2 min 5 s
        "#]],
        );
    }
}
