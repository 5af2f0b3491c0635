//! One behaviour each.

use expect_test::expect;

use super::*;

#[test]
fn marks_that_have_no_partner_are_text() {
    check_colored(
        80,
        "call f(*args, **kwargs) and 2 ** 3 or a_b_c * d\n",
        &expect![[r#"
            call f(*args, **kwargs) and 2 ** 3 or a_b_c * d
        "#]],
    );
    check_colored(
        80,
        "**a *b** c* ***d*** **e*f*g** *h**i*\n",
        &expect![[r#"
        <i>a</><i> b</><i> c</> <b i>d</> <b>e</><b i>f</><b>g</> <i>h**i</>
    "#]],
    );
    check_colored(
        80,
        "`a ``b`` c [d] [e](f [g]: h ~i~ ~~j\n",
        &expect![[r#"
        `a <code>b</> c [d] [e](f [g]: h ~i~ ~~j
    "#]],
    );
}

#[test]
fn text_in_chinese_and_japanese_is_emphasised_without_blanks() {
    check_colored(
        80,
        "这是**“重要”**的。これは**強調（注）**です。**太字**と*斜体*も\n",
        &expect![[r#"
        这是<b>“重</><b>要”</>的。これは<b>強</><b>調</><b>（注）</>です。<b>太</><b>字</>と<i>斜</><i>体</>も
    "#]],
    );
}

#[test]
fn links_show_where_they_lead() {
    check_colored(
        80,
        "[a **b**](https://x.y/z_(w)_v \"T u\") [https://x.y](https://x.y) ![i](p.png) [](q)\n",
        &expect![[r#"
            <u link>a</><u link> </><b u link>b</> <dim>(https://x.y/z_(w)_v</><dim> "T</><dim> u")</> <u link>https://x.y</> <u link>i</> <dim>(p.png)</> <dim>(q)</>
        "#]],
    );
    let style = Style { hyperlinks: true, ..dark(80) };
    let shown = printed(style, "[a b](https://x.y) [c](javascript:x) [d](https://x\u{7}y)\n");
    expect![[r#"
        ESC]8;;https://x.yESC\<u link>a</>ESC]8;;ESC\ESC]8;;https://x.yESC\<u link> b</>ESC]8;;ESC\ ESC]8;;https://x.yESC\<dim>(https://x.y)</>ESC]8;;ESC\ <u link>c</> <dim>(javascript:x)</> <u link>d</> <dim>(https://x^Gy)</>
    "#]].assert_eq(&named(&shown));
}

#[test]
fn code_spans_are_as_they_are_written() {
    check_colored(
        80,
        "`` a`b `` ` c ` `*d*` `e  f`\n",
        &expect![[r#"
        <code>a`b</> <code>c</> <code>*d*</> <code>e</><code>  f</>
    "#]],
    );
    check_plain(
        80,
        "`` a`b `` **c**\n",
        &expect![[r#"
        `` a`b `` **c**
    "#]],
    );
}

#[test]
fn formulas_are_as_they_are_written() {
    check_colored(
        80,
        "$x_1*y*z$ \\(a_{1}\\) \\[b*c*d\\] $$e_f_g$$ it costs $5 *or* $6, \\$7, \\*h\\*\n",
        &expect![[r#"
            $x_1*y*z$ \(a_{1}\) \[b*c*d\] $$e_f_g$$ it costs $5 <i>or</> $6, $7, *h*
        "#]],
    );
    check_colored(
        80,
        "\\[\n  a_1 *b*\n\\]\nc\n$$\nd\n\n*e*\n",
        &expect![[r#"
        \[
          a_1 *b*
        \]
        c
        $$
        d

        <i>e</>
    "#]],
    );
}

#[test]
fn lists_keep_their_levels() {
    check_colored(
        80,
        "- a\n  - b\n    - c\n- d\n\n1. e\n   f\n  - g\n10) h\n* \n+ i\n    - j\n\nk\n",
        &expect![[r#"
            • a
              • b
                • c
            • d

            1. e
               f
               • g
            10) h
            • 
            • i
              • j

            k
        "#]],
    );
    check_plain(
        30,
        "- a long item that is wrapped twice at this width\n    1. and one of a list within it\n",
        &expect![[r#"
            - a long item that is wrapped
              twice at this width
              1. and one of a list within
                 it
        "#]],
    );
}

#[test]
fn a_year_begins_no_list_within_a_paragraph() {
    check_colored(
        80,
        "It was in\n1986. Then\n1. first\n",
        &expect![[r#"
        It was in
        1986. Then
        1. first
    "#]],
    );
}

#[test]
fn quotes_have_a_bar() {
    check_colored(
        80,
        "> a\nb\n>\n> - c\n> > d\n\ne\n",
        &expect![[r#"
        <dim>│ </>a
        <dim>│ </>b
        <dim>│ </>
        <dim>│ </>• c
        <dim>│ </><dim>│ </>d

        e
    "#]],
    );
    check_plain(
        30,
        "> a quote that is wrapped at this width\n",
        &expect![[r#"
        > a quote that is wrapped at
        > this width
    "#]],
    );
}

#[test]
fn headings_and_rules_are_seen() {
    check_colored(
        80,
        "# A *b*\n## C\n### D #\n#e\n####### f\nG\n===\nH\n---\n\n---\n* * *\n",
        &expect![[r#"
        <b head>#</> <b u head>A</><b u head> </><b i u head>b</>
        <b head>##</><b head> C</>
        <b dim head>###</> <b head>D</><b head> #</>
        #e
        ####### f
        G
        <dim>===</>
        H
        <dim>---</>

        <dim>────────────────────────────────────────────────────────────────────────────────</>
        <dim>────────────────────────────────────────────────────────────────────────────────</>
    "#]],
    );
}

#[test]
fn code_keeps_its_lines() {
    check_colored(
        30,
        "```\na line that is longer than thirty columns\n\n\n\tx\n```\n~~~~ py\n```\n~~~\n~~~~\n    indented *code*\n",
        &expect![[r#"
            <dim>```</>
            a line that is longer than thirty columns


                x
            <dim>```</>
            <dim>~~~~ py</>
            ```
            ~~~
            <dim>~~~~</>
                indented *code*
        "#]],
    );
    check_colored(
        30,
        "- a\n\n  ```\n  b\n    c\n  ```\n> ```\n> d\ne\n",
        &expect![[r#"
        • a

          <dim>```</>
          b
            c
          <dim>```</>
        <dim>│ </><dim>```</>
        <dim>│ </>d
        e
    "#]],
    );
}

#[test]
fn tables_are_aligned() {
    check_colored(
        60,
        "So:\n| a | b |\n|--:|:-:|\n| 1 | long |\n| `x|y` | z | w |\n| 1\nb\n",
        &expect![[r#"
        So:
         <b>a</> <dim>│</>     <b>b</>
        <dim>───┼───────────</>
         1 <dim>│</>    long
        `x <dim>│</> y` | z | w
         1 <dim>│</>
        b
    "#]],
    );
    check_plain(
        60,
        "| a | b |\n|---|---|\n| 日本 | 🇫🇷 |\n| x |\n",
        &expect![[r#"
        | a    | b  |
        |------|----|
        | 日本 | 🇫🇷 |
        | x    |    |
    "#]],
    );
    check_colored(
        30,
        "| a | b |\n|---|---|\n| one two three four | five six seven<br>eight |\n",
        &expect![[r#"
        <b>a</>              <dim>│</> <b>b</>
        <dim>───────────────┼──────────────</>
        one two three  <dim>│</> five six
        four           <dim>│</> seven
                       <dim>│</> eight
    "#]],
    );
    check_colored(
        20,
        "|a|b|c|d|e|f|g|\n|-|-|-|-|-|-|-|\n|one two|three four|x|y|z|v|w|\n",
        &expect![[r#"
        |a|b|c|d|e|f|g|
        |-|-|-|-|-|-|-|
        |one two|three
        four|x|y|z|v|w|
    "#]],
    );
    check_colored(
        60,
        "| no table\n| here\n\n| a | b\n",
        &expect![[r#"
        | no table
        | here

        | a | b
    "#]],
    );
    check_plain(
        60,
        "- x\n  | a |\n  |---|\n  | b |\n\n  y\n",
        &expect![[r#"
        - x
          | a |
          |---|
          | b |

          y
    "#]],
    );
}

#[test]
fn rows_after_many_are_printed_as_they_come() {
    let mut printer = Printer::new(Style::plain(60));
    let mut shown = printer.push("| a |\n|---|\n");
    let row = "| b |\n";
    (0..150).for_each(|_| shown.push_str(&printer.push(row)));
    assert_eq!(shown, "", "a table is kept until its columns are known");
    (0..50).for_each(|_| shown.push_str(&printer.push(row)));
    assert_eq!(shown.lines().count(), 202);
    assert_eq!(printer.push("| cc |\n"), "| c |\n| c |\n");
    assert_eq!(printer.finish(), "");
}

#[test]
fn words_are_printed_when_they_end() {
    let mut printer = Printer::new(dark(80));
    let pieces = ["Hel", "lo wor", "ld, **bo", "ld** and", " `co", "de` *", "not\n", "next"];
    let shown: Vec<_> = pieces.iter().map(|piece| named(&printer.push(piece))).collect();
    expect![[r#"
        [
            "",
            "Hello",
            " world,",
            " <b>bold</>",
            " and",
            " <code>code</>",
            "",
            "",
        ]
        " *not\nnext\n""#]]
    .assert_eq(&format!("{shown:#?}\n{:?}", printer.finish()));
}

#[test]
fn controls_are_made_visible() {
    let hostile = "a\u{1b}[2J\u{1b}]0;t\u{7}b\u{9b}1m\u{8}\u{7f}\rc\u{202e}d\u{200b}e\r\n`\u{1b}c`\n\n```\u{1b}x\n\u{1b}[31mcode\r\n```\n\
                   | \u{1b}a |\n|---|\n| \u{0}b |\n\n# \u{1b}\n[l\u{1b}](https://\u{1b}x)\n- \u{2066}x\n";
    check_colored(
        80,
        hostile,
        &expect![[r#"
        a^[[2J^[]0;t^Gb\u{9b}1m^H^?^Mc\u{202e}d\u{200b}e
        <code>^[c</>

        <dim>```^[x</>
        ^[[31mcode
        <dim>```</>
        <b>^[a</>
        <dim>───</>
        ^@b

        <b head>#</> <b u head>^[</>
        <u link>l^[</> <dim>(https://^[x)</>
        • \u{2066}x
    "#]],
    );
    for depth in [ColorDepth::None, ColorDepth::True] {
        let style = Style { hyperlinks: true, ..Style::colored(80, depth, Theme::Dark) };
        stripped(&printed(style, hostile));
    }
}

#[test]
fn wide_letters_take_two_columns() {
    check_plain(
        20,
        "これは日本語のように単語間に空白がない文です。終わり\n",
        &expect![[r#"
        これは日本語のように
        単語間に空白がない文
        です。終わり
    "#]],
    );
    check_plain(
        20,
        "模板、屬性與 Bases 結合後，這個 vault 不只是記事本\n",
        &expect![[r#"
        模板、屬性與 Bases
        結合後，這個 vault
        不只是記事本
    "#]],
    );
    check_plain(
        20,
        "👩‍👩‍👧‍👦👍🏽 🇫🇷🇩🇪 e\u{301}e\u{301} ☂️ zeichenketten-und-mehr-als-zwanzig\n",
        &expect![[r#"
        👩‍👩‍👧‍👦👍🏽 🇫🇷🇩🇪 éé ☂️
        zeichenketten-und-me
        hr-als-zwanzig
    "#]],
    );
}

#[test]
fn raw_text_is_passed_on() {
    let mut printer = Printer::new(Style::raw());
    let text = "**a**\u{1b}[1m\r\n| b";
    assert_eq!(
        (printer.push(text), printer.reset(), printer.finish()),
        (text.to_owned(), String::new(), String::new())
    );
}

#[test]
fn an_answer_that_begins_again_is_marked() {
    let mut printer = Printer::new(Style::plain(40));
    let shown =
        [printer.reset(), printer.push("One **two"), printer.reset(), printer.push("Three\n"), printer.finish()]
            .concat();
    expect![[r#"
        One **two
        --- the model started again ---
        Three
    "#]]
    .assert_eq(&shown);
}

/// What users of other programs reported about theirs.
#[test]
fn cases_that_others_reported() {
    // A link in a table is long, and the table is narrow.
    let url = format!("https://example.com/{}", "long/".repeat(20));
    check_colored(
        60,
        &format!("| a | b |\n|---|---|\n| [foo]({url}) | c |\n"),
        &expect![[r#"
        <b>a</>                                                        <dim>│</> <b>b</>
        <dim>─────────────────────────────────────────────────────────┼──</>
        <u link>foo</>                                                      <dim>│</> c
        <dim>(https://example.com/long/long/long/long/long/long/long/</> <dim>│</>
        <dim>long/long/long/long/long/long/long/long/long/long/long/l</> <dim>│</>
        <dim>ong/long/)</>                                               <dim>│</>
    "#]],
    );
    // Flags and emoji beside text in cells, and columns that are moved to the right.
    check_plain(
        60,
        "|Date|Flag|Person|\n|-|-:|-|\n|04|🇳🇱 / 🇩🇪|🥇 Bob|\n|05|🇳🇱|字段名|\n",
        &expect![[r#"
        | Date |    Flag | Person |
        |------|---------|--------|
        | 04   | 🇳🇱 / 🇩🇪 | 🥇 Bob |
        | 05   |      🇳🇱 | 字段名 |
    "#]],
    );
    // Code within a list, and the list goes on.
    check_colored(
        60,
        "1. a\n```sh\nls\n```\n2. b\n",
        &expect![[r#"
        1. a
        <dim>```sh</>
        ls
        <dim>```</>
        2. b
    "#]],
    );
    // Labels in lists, as most models write them; two blanks or a backslash end a line.
    check_colored(
        60,
        "*   **Name:** x  \n    y\\\n    z\n* **_Both_**: `w`\n",
        &expect![[r#"
        • <b>Name:</> x
          y
          z
        • <b i>Both</>: <code>w</>
    "#]],
    );
    // Text that looks like a prompt, a comparison or a path.
    check_colored(
        60,
        "$ ls -l\n# root\n#!/bin/sh\n~/a~b\na < b > c\n\\d+\\w*\n<<<<<<< HEAD\n",
        &expect![[r#"
        $ ls -l
        <b head>#</> <b u head>root</>
        #!/bin/sh
        ~/a~b
        a < b > c
        \d+\w*
        <<<<<<< HEAD
    "#]],
    );
}
