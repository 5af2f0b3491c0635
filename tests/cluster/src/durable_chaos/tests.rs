//! A short run.

use super::*;

#[test]
fn steps_of_three_languages_outlive_agents_workers_and_leaders() {
    let mut languages = Vec::new();
    for language in Language::ALL {
        match language.missing() {
            None => languages.push(language),
            Some(why) => atlas_notice::skip(why),
        }
    }
    let folder = std::env::temp_dir().join(format!("atlas-durable-{}", std::process::id()));
    let options = Options { seed: 40, languages, families: 2, folder };
    let report = run(&options).expect("the harness works");
    assert!(report.is_good(), "kept in {}: {report}", options.folder.display());
    assert_eq!(report.seen("faults missed"), 0, "{report}");
}
