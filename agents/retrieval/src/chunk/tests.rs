use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;

fn check(source: &str, text: &str, size: usize, overlap: usize, expected: &Expect) {
    let all = chunks(source, text, ChunkSize { size, overlap });
    let shown: String = all.iter().map(|chunk| format!("{:?}\n", chunk.text)).collect();
    expected.assert_eq(&shown);
}

#[test]
fn text_is_cut_at_blank_lines_lines_words_and_characters() {
    check(
        "d",
        "One two.\n\nThree four five.\nSix",
        20,
        0,
        &expect![[r#"
        "One two."
        "Three four five.\nSix"
    "#]],
    );
    check(
        "d",
        "aaaa bbbb cccc dddd",
        10,
        0,
        &expect![[r#"
        "aaaa bbbb"
        "cccc dddd"
    "#]],
    );
    check(
        "d",
        "éééééé",
        5,
        0,
        &expect![[r#"
        "éé"
        "éé"
        "éé"
    "#]],
    );
    check(
        "d",
        "é",
        1,
        0,
        &expect![[r#"
        "é"
    "#]],
    );
    check("d", " \n ", 5, 0, &expect![""]);
    check("d", "", 5, 0, &expect![""]);
}

#[test]
fn chunks_overlap_by_whole_parts() {
    check(
        "d",
        "aaaa bbbb cccc dddd eeee",
        10,
        5,
        &expect![[r#"
        "aaaa bbbb"
        "bbbb cccc"
        "cccc dddd"
        "dddd eeee"
    "#]],
    );
    check(
        "d",
        "abcdefghij",
        4,
        1,
        &expect![[r#"
        "abcd"
        "defg"
        "ghij"
    "#]],
    );
}

#[test]
fn documents_are_cut_by_their_kind() {
    let text = "# Tides\n\nThe moon.\n## Sun\n\nIt helps a little.\n## Wind\nNo.";
    check(
        "tides.md",
        text,
        30,
        0,
        &expect![[r###"
        "# Tides\n\nThe moon."
        "## Sun\n\nIt helps a little."
        "## Wind\nNo."
    "###]],
    );
    check(
        "tides.txt",
        text,
        30,
        0,
        &expect![[r##"
        "# Tides\n\nThe moon.\n## Sun"
        "It helps a little.\n## Wind\nNo."
    "##]],
    );
    let program = "use a;\nfn one() {\n    1\n}\n\nfn two() {\n    2\n}\n";
    check(
        "lib.rs",
        program,
        26,
        0,
        &expect![[r#"
        "use a;\nfn one() {\n    1\n}"
        "fn two() {\n    2\n}"
    "#]],
    );
    let page = "<html><body><p>One paragraph.</p><p>Another one.</p></body>";
    check(
        "page.html",
        page,
        30,
        0,
        &expect![[r#"
        "<html>"
        "<body><p>One paragraph.</p>"
        "<p>Another one.</p></body>"
    "#]],
    );
    check(
        "a.py",
        "import a\nclass A:\n    def b(self):\n        pass\n\ndef c():\n    pass",
        30,
        0,
        &expect![[r#"
        "import a"
        "class A:"
        "def b(self):\n        pass"
        "def c():\n    pass"
    "#]],
    );
}

#[test]
fn a_long_line_takes_no_square_of_time() {
    let text = "x".repeat(1 << 20);
    let all = chunks("d.md", &text, ChunkSize { size: 1000, overlap: 500 });
    assert_eq!(all.len(), 2097);
    let spaced = "y ".repeat(1 << 18);
    assert!(chunks("d.rs", &spaced, ChunkSize { size: 100, overlap: 50 }).len() > 5_000);
}

fn visible(text: &str) -> String {
    text.chars().filter(|character| !character.is_whitespace()).collect()
}

fn sources() -> impl Strategy<Value = String> {
    const ENDINGS: &[&str] = &[
        "", ".c", ".go", ".java", ".ts", ".php", ".proto", ".py", ".rst", ".rb", ".rs", ".scala", ".swift", ".md",
        ".tex", ".html", ".sol",
    ];
    proptest::sample::select(ENDINGS).prop_map(|ending| format!("file{ending}"))
}

/// Texts in which separators are frequent.
fn texts() -> impl Strategy<Value = String> {
    const PARTS: &[&str] = &[
        "\nfn ", "\n## ", "\nclass ", "\n\n", "\n", " ", "<p", "$$", "\ndef ", "é", "漢字", "😀", "word", "\r\n",
        "\u{85}", "\u{301}", "\n===", "x",
    ];
    let frequent = proptest::collection::vec(proptest::sample::select(PARTS), 0..60).prop_map(|parts| parts.concat());
    prop_oneof![frequent, any::<String>()]
}

proptest! {
    #[test]
    fn all_that_is_visible_is_in_a_chunk_once(source in sources(), text in texts(), size in 1_usize..40) {
        let all = chunks(&source, &text, ChunkSize { size, overlap: 0 });
        let shown: String = all.iter().map(|chunk| visible(&chunk.text)).collect();
        prop_assert_eq!(shown, visible(&text));
    }

    #[test]
    fn chunks_are_bounded_parts_of_the_text(source in sources(), text in texts(), size in 1_usize..40, overlap in 0_usize..60) {
        let all = chunks(&source, &text, ChunkSize { size, overlap });
        for chunk in &all {
            prop_assert!(chunk.text.len() <= size.max(4), "{} of {size}", chunk.text.len());
            prop_assert!(text.contains(&chunk.text));
            prop_assert!(!chunk.text.trim().is_empty());
        }
        let total: usize = all.iter().map(|chunk| visible(&chunk.text).len()).sum();
        prop_assert!(total >= visible(&text).len());
        prop_assert!(all.len() <= text.chars().count());
    }
}
