//! The reference page of the instruments, generated from their declarations.

use std::fmt::Write;

use expect_test::expect_file;

use crate::metrics::{table, tests::with_series};

const INTRODUCTION: &str = "\
# Metrics

Generated from the program's declarations by `cargo xtask fix`. `GET /metrics` of a controller gives them in the OpenMetrics text
form, with the names of the second column; the suffixes of histograms are `_bucket`, `_sum` and `_count`.

| instrument | name in /metrics | kind | unit | attributes | meaning |
|---|---|---|---|---|---|
";

#[test]
fn generated_metrics_reference_is_fresh() {
    let scrape = with_series().render();
    let mut page = INTRODUCTION.to_owned();
    for declaration in table() {
        let name = declaration.scrape_name();
        writeln!(
            page,
            "| `{}` | `{name}` | {} | `{}` | {} | {} |",
            declaration.name,
            declaration.kind.as_str(),
            declaration.unit,
            attributes(&scrape, &name),
            declaration.sentence
        )
        .expect("text grows");
    }
    expect_file!["../../../docs/reference/metrics.md"].assert_eq(&page);
}

/// The names of an instrument's attributes, from one of its series.
fn attributes(scrape: &str, name: &str) -> String {
    let series = scrape.lines().find_map(|line| {
        let rest = line.strip_prefix(name)?;
        rest.trim_start_matches("_count").strip_prefix('{')?.split_once('}')
    });
    let names = series.into_iter().flat_map(|(inner, _)| inner.split(',')).filter_map(|pair| pair.split_once('='));
    let names: Vec<String> =
        names.filter(|(name, _)| !["le", ""].contains(name)).map(|(name, _)| format!("`{name}`")).collect();
    names.join(", ")
}
