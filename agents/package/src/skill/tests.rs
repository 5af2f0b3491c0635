use std::fs;

use atlas_contract::Skill;
use expect_test::expect;

use super::{SkillRuntime, discover_skills, pack_skill, skill_of};

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a directory for the test");
    for (path, text) in files {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().expect("it has one")).expect("it can be made");
        fs::write(path, text).expect("it can be written");
    }
    dir
}

#[test]
fn a_directory_becomes_the_package_of_a_skill() {
    let dir = folder(&[("skill.yaml", "skill: {name: s, version: 1.2.3}"), ("skill.py", ""), (".env", "K=1")]);
    let package = pack_skill(dir.path()).expect("it packs");
    assert_eq!((package.skill.name.as_str(), package.files), ("s", 2));
    assert_eq!(pack_skill(dir.path()).expect("again"), package);
    assert_eq!(skill_of(&package.bytes).expect("it has one"), (package.skill, SkillRuntime::Python));
    assert_eq!(package.digest, crate::digest_of(&package.bytes));
}

#[test]
fn the_provider_says_what_runs_it() {
    let exec = "name: s\nversion: 1.0.0\nprovider: {type: exec, command: [./run, -x]}";
    let package = pack_skill(folder(&[("skill.yaml", exec), ("run", "")]).path()).expect("it packs");
    let command = vec!["./run".to_owned(), "-x".to_owned()];
    assert_eq!(package.runtime, SkillRuntime::Exec { command });
}

#[test]
fn refusals_say_why() {
    let mut out = String::new();
    let head = "version: 1.0.0\nname: ";
    for (text, code) in [
        ("s", false),
        ("atlas.exec.run", true),
        ("s\nprovider: exec", true),
        ("s\nprovider: {type: exec, command: []}", true),
        ("s\nprovider: {type: exec, command: [1]}", true),
        ("s\nprovider: {type: llm}", true),
        ("s\ninput: {schema: {type: 5}}", true),
        ("''", true),
    ] {
        let dir = folder(&[("skill.yaml", &format!("{head}{text}")), (if code { "skill.py" } else { "a" }, "")]);
        out += &format!("{}\n", pack_skill(dir.path()).expect_err("a refusal"));
    }
    out += &format!("{}\n", pack_skill(folder(&[("a", "")]).path()).expect_err("no file"));
    out += &format!("{}\n", skill_of(b"no archive").expect_err("no archive"));
    expect![[r#"
        Skill 's' has no implementation (missing skill.py)
        the name "atlas.exec.run" is not free: names of the platform's tools begin with atlas.
        the provider is not understood; it is `{type: python}` or `{type: exec, command: [PROGRAM, ARGUMENT]}` with 1 to 64 words
        the provider is not understood; it is `{type: python}` or `{type: exec, command: [PROGRAM, ARGUMENT]}` with 1 to 64 words
        the provider is not understood; it is `{type: python}` or `{type: exec, command: [PROGRAM, ARGUMENT]}` with 1 to 64 words
        the provider is not understood; it is `{type: python}` or `{type: exec, command: [PROGRAM, ARGUMENT]}` with 1 to 64 words
        the schema of the input is not valid: at /type: 5 is not valid under any of the schemas listed in the 'anyOf' keyword
        Skill validation failed: '' should be non-empty
        it has no skill.yaml at its root
        Failed to extract archive
    "#]].assert_eq(&out);
}

#[test]
fn skills_are_found_at_any_depth() {
    let good = "name: s\nversion: 1.0.0";
    let dir = folder(&[("b/c/skill.yaml", good), ("a/skill.yaml", "name: s"), (".hidden/skill.yaml", good)]);
    let found = discover_skills(dir.path());
    let names: Vec<_> = found.iter().map(|found| found.skill.as_ref().ok().map(|skill: &Skill| &*skill.name)).collect();
    assert_eq!(names, [None, Some("s")]);
}
