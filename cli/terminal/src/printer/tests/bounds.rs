//! Texts that nobody wrote for people: the work for them is linear, and what is kept is bounded.

use super::*;

const PIECE: usize = 16;

/// What is printed, and how many letters were kept at most without anything being printed.
fn printed_and_kept(style: Style, text: &str) -> (String, usize) {
    let mut printer = Printer::new(style);
    let (mut shown, mut longest, mut silent) = (String::new(), 0, 0);
    let mut letters = text.chars().peekable();
    while letters.peek().is_some() {
        let piece: String = letters.by_ref().take(PIECE).collect();
        let printed = printer.push(&piece);
        silent = if printed.is_empty() { silent + PIECE } else { 0 };
        longest = longest.max(silent);
        shown.push_str(&printed);
    }
    shown.push_str(&printer.finish());
    (shown, longest)
}

fn hostile() -> Vec<(&'static str, String)> {
    vec![
        ("a line without a blank", "x".repeat(1 << 20)),
        ("wide letters without a blank", "語".repeat(1 << 18)),
        ("open emphasis", "*a **b ".repeat(10_000)),
        ("open and closed marks that do not fit", "*a_ _b* ".repeat(10_000)),
        ("asterisks", "*".repeat(100_000)),
        ("open brackets", "[".repeat(100_000)),
        ("closed brackets", "[]".repeat(50_000)),
        ("open addresses", "[a](".repeat(25_000)),
        ("open code", "` `` ``` ".repeat(10_000)),
        ("open formulas", "\\( \\[ $a $$ ".repeat(10_000)),
        ("nested quotes", format!("{}x\n", "> ".repeat(100)).repeat(200)),
        ("nested lists", format!("{}x\n", "- ".repeat(100)).repeat(200)),
        ("blanks", " ".repeat(200_000)),
        ("empty lines", "\n".repeat(200_000)),
        ("marks on one letter", format!("e{}", "\u{301}".repeat(100_000))),
        ("a long line of code", format!("```rust\n{}\n```\n", "let x = 1; ".repeat(20_000))),
        ("a long row", format!("| {} |\n|---|\n", "a ".repeat(50_000))),
        ("a table of many columns", format!("{}\n{}\n", "|a".repeat(5_000), "|-".repeat(5_000))),
        ("rows", format!("| a |\n|---|\n{}", "| b |\n".repeat(20_000))),
        ("rules", "-".repeat(100_000)),
        ("digits", "1".repeat(100_000)),
        ("line ends of old Macs", "a\r".repeat(50_000)),
    ]
}

#[test]
fn no_text_is_lost_or_kept_for_long() {
    for (what, text) in hostile() {
        let (shown, kept) = printed_and_kept(dark(80), &text);
        let letters = |text: &str| text.chars().filter(|letter| letter.is_alphanumeric()).count();
        // A carriage return is shown as `^M`.
        let returns = text.matches('\r').count();
        assert_eq!(letters(&stripped(&shown)), letters(&text) + returns, "{what}");
        let has_words = !what.contains("empty") && what != "blanks";
        assert!(!has_words || kept <= 70_000, "{what}: {kept} letters were kept");
    }
}

/// A text of so many parts.
type TextOf = fn(usize) -> String;

/// Steps that grow with the square of a text would show in the time: four times the text, sixteen times the time. A factor of six leaves room
/// for a busy machine, and five tries for a very busy one.
#[test]
#[expect(clippy::disallowed_methods, reason = "the test measures the time; the crate reads no clock")]
fn the_work_is_linear() {
    let texts: [(&str, TextOf); 6] = [
        ("open emphasis", |count| "*a **b ".repeat(count)),
        ("marks that do not fit", |count| "*a_ _b* ".repeat(count)),
        ("open brackets", |count| "[a ".repeat(count)),
        ("open addresses", |count| "[a](b".repeat(count)),
        ("open code", |count| "` `` ``` ".repeat(count)),
        ("words", |count| "word ".repeat(count)),
    ];
    for (what, text) in texts {
        let work = |count: usize| {
            let text = text(count);
            let mut printer = Printer::new(dark(80));
            let clock = std::time::Instant::now();
            std::hint::black_box(printer.push(&text));
            clock.elapsed().as_secs_f64()
        };
        work(1_000);
        let is_linear = (0..5).any(|_| work(16_000) < 6.0 * work(4_000));
        assert!(is_linear, "{what}");
    }
}
