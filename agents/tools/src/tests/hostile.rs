//! Sources that were made to break a parser.

use proptest::prelude::*;

use crate::limits::{PARAMETERS_MAX, SOURCE_BYTES_MAX, TOOLS_MAX};
use crate::{Language, Scope, declare};

const LANGUAGES: [Language; 3] = [Language::Python, Language::TypeScript, Language::Bash];

/// The word of the error; "ok" if there is none.
fn fault(language: Language, source: &str) -> &'static str {
    declare(language, Scope::Agent, source).map_or_else(|error| error.fault.word(), |_| "ok")
}

#[test]
fn too_much_is_refused() {
    let large = "#".repeat(SOURCE_BYTES_MAX + 1);
    assert!(LANGUAGES.iter().all(|language| fault(*language, &large) == "limit"));

    let many: String = (0..=TOOLS_MAX).map(|index| format!("def f{index}():\n  'D.'\n")).collect();
    assert_eq!(fault(Language::Python, &many), "limit");
    let many: String = (0..=PARAMETERS_MAX).map(|index| format!("p{index}, ")).collect();
    assert_eq!(fault(Language::Python, &format!("def f({many}):\n  'D.'\n")), "limit");
    assert_eq!(fault(Language::TypeScript, &format!("/** D. */\nexport function f({many}) {{}}\n")), "limit");
}

#[test]
fn deep_sources_end() {
    let deep = |open: &str, close: &str, times: usize| format!("{}int{}", open.repeat(times), close.repeat(times));
    let python = |annotation: &str| fault(Language::Python, &format!("def f(a: {annotation}):\n  'D.'\n"));
    assert_eq!(python(&deep("List[", "]", 8)), "ok");
    assert_eq!(python(&deep("List[", "]", 4_000)), "limit");
    assert_eq!(python(&deep("(", ")", 4_000)), "ok");
    assert_eq!(python(&vec!["int"; 4_000].join(" | ")), "ok");
    assert_eq!(python(&format!("Literal[{}]", vec!["1"; 4_000].join(","))), "limit");

    let typescript = |annotation: &str| {
        fault(Language::TypeScript, &format!("/** D. */\nexport function f(a: {annotation}) {{}}\n"))
    };
    assert_eq!(typescript(&deep("Array<", ">", 8)), "ok");
    assert_eq!(typescript(&deep("(", ")", 2_000)), "limit");
    assert_eq!(typescript(&vec!["\"a\""; 2_000].join(" | ")), "limit");
    assert_eq!(typescript(&vec!["A"; 2_000].join(" | ")), "ok");

    // A slash could begin a regular expression, which could end at the end of the line.
    assert_eq!(fault(Language::TypeScript, &"/** ".repeat(SOURCE_BYTES_MAX / 4)), "limit");

    // Never closed.
    for open in ["(", "[", "{", "def f(", "'''", "`${", "<", "# @option --a["] {
        let source = open.repeat(4_000);
        LANGUAGES.iter().for_each(|language| {
            fault(*language, &source);
        });
    }
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(
        text in "(def f\\(|export function f\\(|# @option |# @flag |# @cmd |# @arg |# @env |# @meta )?[-+a-zé:\\[\\]()|`?=*!~<>,'\" \\n{}/@#]{0,60}",
    ) {
        for language in LANGUAGES {
            fault(language, &text);
            fault(language, &format!("# @describe D\n{text}\nmain() {{ :; }}\n"));
        }
    }

    #[test]
    fn a_place_is_inside_the_source(text in "[a-zé(:\\[\\]) \\n='\"]{0,80}") {
        for language in [Language::Python, Language::TypeScript] {
            if let Err(error) = declare(language, Scope::Agent, &text) {
                let place = error.place.expect("a place");
                let line = text.split('\n').nth(place.line - 1).expect("the line exists");
                prop_assert!(place.column <= line.chars().count() + 1, "{place:?} in {text:?}");
            }
        }
    }
}
