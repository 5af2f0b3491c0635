//! Alert rules and dashboards use names and labels that a scrape has, Prometheus accepts the rules, and each alert has its section in
//! the runbook.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::metrics::tests::with_series;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The files with an extension in a folder of `deploy`, with their contents.
fn files(folder: &str, extension: &str) -> Vec<(PathBuf, String)> {
    let entries = fs::read_dir(root().join("deploy").join(folder)).expect("the folder");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let mut paths: Vec<_> = paths.filter(|path| path.extension().is_some_and(|found| found == extension)).collect();
    paths.sort();
    assert!(!paths.is_empty(), "{folder} has no files");
    paths.into_iter().map(|path| (path.clone(), fs::read_to_string(path).expect("text"))).collect()
}

/// The names of series and of labels in a scrape.
fn known() -> (BTreeSet<String>, BTreeSet<String>) {
    let scrape = with_series().render();
    let lines = scrape.lines().filter(|line| !line.starts_with('#'));
    let (mut names, mut labels) = (BTreeSet::new(), BTreeSet::new());
    for line in lines {
        names.insert(line.split(['{', ' ']).next().unwrap_or_default().to_owned());
        let inside = line.split_once('{').and_then(|(_, rest)| rest.split_once('}')).map_or("", |(inside, _)| inside);
        labels.extend(inside.split(',').filter_map(|pair| pair.split_once("=\"")).map(|(label, _)| label.to_owned()));
    }
    // Prometheus adds these.
    labels.extend(["instance", "job"].map(str::to_owned));
    (names, labels)
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').filter(|word| !word.is_empty())
}

/// What follows each `marker` up to `end`.
fn between<'t>(text: &'t str, marker: &str, end: char) -> impl Iterator<Item = &'t str> {
    text.split(marker).skip(1).filter_map(move |rest| rest.split(end).next())
}

fn check_names(path: &Path, text: &str) {
    let (names, labels) = known();
    // Names of labels begin with the same word as names of series.
    let series = words(text).filter(|word| word.starts_with("atlas_") || word.starts_with("http_server"));
    let unknown: Vec<_> = series.filter(|word| !names.contains(*word) && !labels.contains(*word)).collect();
    assert!(unknown.is_empty(), "{}: no scrape has {unknown:?}", path.display());
    let grouped = between(text, " by (", ')').flat_map(words);
    let shown = between(text, "{{ $labels.", ' ').chain(between(text, "legendFormat\": \"{{", '}'));
    let unknown: Vec<_> = grouped.chain(shown).filter(|label| !labels.contains(*label)).collect();
    assert!(unknown.is_empty(), "{}: no series has the labels {unknown:?}", path.display());
}

#[test]
fn alert_rules_name_series_that_exist() {
    files("prometheus", "yaml").iter().for_each(|(path, text)| check_names(path, text));
}

#[test]
fn dashboards_name_series_that_exist() {
    for (path, text) in files("grafana", "json") {
        check_names(&path, &text);
        let count = |part: &str| text.matches(part).count();
        assert!(count("\"expr\"") >= count("\"gridPos\"") && count("\"gridPos\"") > 5, "{}", path.display());
        assert_eq!(count("{"), count("}"), "{}", path.display());
    }
}

#[test]
fn each_alert_has_its_section_in_the_runbook() {
    let runbook = fs::read_to_string(root().join("docs/operating/runbook.md")).expect("the runbook");
    let sections: BTreeSet<&str> = between(&runbook, "\n## ", '\n').collect();
    let mut alerts = BTreeSet::new();
    for (path, text) in files("prometheus", "yaml") {
        for rule in text.split("- alert: ").skip(1) {
            let name = rule.lines().next().unwrap_or_default().to_owned();
            let link = format!("/docs/operating/runbook.md#{}\n", name.to_lowercase());
            assert!(rule.contains(&link), "{}: {name} has no link to its section", path.display());
            assert!(sections.contains(name.as_str()), "the runbook has no section {name}");
            alerts.insert(name);
        }
    }
    let without: Vec<_> = sections.iter().filter(|section| !alerts.contains(**section)).collect();
    assert!(without.is_empty(), "sections without an alert: {without:?}");
}

#[test]
fn alert_rules_are_accepted_by_promtool() {
    for (path, _) in files("prometheus", "yaml") {
        let Ok(output) = Command::new("promtool").args(["check", "rules"]).arg(&path).output() else {
            atlas_notice::skip("the alert rules are not checked: promtool is not installed");
            return;
        };
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}
