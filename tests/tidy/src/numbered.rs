//! The page of numbered tests: no number is missing, and the tests that it names exist.

use std::collections::BTreeSet;
use std::path::Path;

use crate::tree;

const PAGE: &str = "docs/internals/loki.md";

#[test]
fn numbered_tests_exist() {
    let text = tree::read(Path::new(PAGE));
    let mut findings = Vec::new();
    let mut numbers = BTreeSet::new();
    for (number, tests) in rows(&text) {
        if !numbers.insert(number.to_owned()) {
            findings.push(format!("{number} is there twice"));
        }
        if tests.is_empty() {
            findings.push(format!("{number} has no test"));
        }
        for (path, name) in tests {
            let exists =
                tree::root().join(path).is_file() && tree::read(Path::new(path)).contains(&format!("fn {name}("));
            if !exists {
                findings.push(format!("{number}: {path} has no test {name}"));
            }
        }
    }
    let expected = (1..=43).map(|number| format!("T{number}")).chain((1..=21).map(|number| format!("V{number}")));
    let missing = expected.filter(|number| !numbers.contains(number));
    findings.extend(missing.map(|number| format!("{number} is missing")));
    tree::report(&format!("{PAGE} is wrong"), &findings);
}

/// The numbers of the rows of tables, each with its tests: pairs of a file and a function.
fn rows(text: &str) -> Vec<(&str, Vec<(&str, &str)>)> {
    let row = |line| {
        let mut cells = str::split(line, '|').map(str::trim).skip(1);
        let (number, _, tests) = (cells.next()?, cells.next()?, cells.next()?);
        let is_number = number.len() > 1 && number[1..].bytes().all(|byte| byte.is_ascii_digit());
        let quoted: Vec<&str> = tests.split('`').skip(1).step_by(2).collect();
        let tests = quoted.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
        (is_number && number.starts_with(|first: char| first.is_ascii_uppercase())).then_some((number, tests))
    };
    text.lines().filter_map(row).collect()
}

#[test]
fn the_helper_finds_what_it_should() {
    let text = "| number | what | tests |\n|---|---|---|\n| T1 | `x` y | `a.rs` `one`<br>`b.rs` `two` | same |\n| T2 | z | none |\n";
    assert_eq!(rows(text), [("T1", vec![("a.rs", "one"), ("b.rs", "two")]), ("T2", vec![])]);
}
