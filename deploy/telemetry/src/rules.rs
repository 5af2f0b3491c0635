//! The alert rules name instruments that exist, and Prometheus accepts them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

fn file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../prometheus/agents.rules.yaml")
}

#[test]
fn alert_rules_name_instruments_that_exist() {
    let text = std::fs::read_to_string(file()).expect("the rules");
    let known: BTreeSet<String> = crate::table().iter().map(crate::Declaration::scrape_name).collect();
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let named = text.split(|letter| !is_part(letter)).filter(|word| word.starts_with("atlas_"));
    let unknown: Vec<&str> =
        named.filter(|name| !known.contains(*name) && !known.contains(name.trim_end_matches("_bucket"))).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}

#[test]
fn alert_rules_are_accepted_by_promtool() {
    let Ok(output) = Command::new("promtool").args(["check", "rules"]).arg(file()).output() else {
        atlas_notice::skip("the alert rules are not checked: promtool is not installed");
        return;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
