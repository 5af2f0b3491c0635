//! Skills: deploying, listing and removing them.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use expect_test::expect_file;

use crate::laptop::Laptop;

#[test]
fn skills_are_deployed_listed_and_removed() {
    let laptop = Laptop::with(&[]);
    let write = |path: &str, text: &str| {
        let path = laptop.folder().join("skills").join(path);
        fs::create_dir_all(path.parent().expect("it has one")).expect("a folder");
        fs::write(path, text).expect("writable");
    };
    write(
        "words/skill.yaml",
        "skill:\n  name: words\n  version: 1.0.0\n  description: Counts words.\n  input: { schema: { type: object, required: [text] } }\n",
    );
    write("words/skill.py", "async def execute(data):\n    return {'words': len(data['text'].split())}\n");
    write("upper/skill.yaml", "skill: { name: upper, version: 2.0.0, provider: { type: exec, command: [./upper] } }\n");
    write("upper/upper", "#!/bin/sh\ntr a-z A-Z\n");
    let program = laptop.folder().join("skills/upper/upper");
    fs::set_permissions(program, fs::Permissions::from_mode(0o755)).expect("a program");
    fs::create_dir(laptop.folder().join("none")).expect("a folder");
    let mut session = laptop.session("Skills are deployed, listed and removed");
    session.run("atlasctl skill list");
    session.run("atlasctl skill deploy none");
    session.run("atlasctl skill deploy skills --dry-run");
    session.run("atlasctl skill deploy skills");
    session.run("atlasctl skill deploy skills/words -o name");
    session.run("atlasctl skill list");
    session.run("atlasctl skill show words | grep -v -e uid -e created -e updated -e revision");
    session.run("atlasctl skill test words text='a b c'");
    session.run("atlasctl skill test words");
    session.run("atlasctl skill test upper '{}' | sed 's/JOB-[0-9A-F]*/JOB/'");
    session.run("atlasctl skill test nothing");
    session.run("atlasctl skill remove skill/words");
    session.run("atlasctl skill remove words");
    session.run("atlasctl skill list -o name");
    expect_file!["../transcripts/skills.txt"].assert_eq(&session.page());
}
