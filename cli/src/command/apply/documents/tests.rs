//! Reading folders and files.

use super::*;

fn told(text: &str) -> String {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("x.yaml");
    fs::write(&path, text).expect("written");
    match read(&[path]) {
        Ok(wanted) => wanted.iter().map(|sourced| sourced.wanted.name()).collect::<Vec<_>>().join(" "),
        Err(failure) => failure.message.split_once(": ").expect("a cause").1.to_owned(),
    }
}

#[test]
fn objects_are_known_by_their_members() {
    assert_eq!(told("{name: a, version: 1.0.0, digest: x}"), "agent/a@1.0.0");
    assert_eq!(
        told("- {id: n, health: ready, cordoned: true}\n- {id: m, health: ready, cordoned: false}"),
        "node/n node/m"
    );
    assert!(told("{agent_name: x, input_data: {}}").contains("atlasctl run"));
    assert_eq!(
        told("{id: n, health: ready, cordoned: true, operator_labels: {rack: 7}}"),
        "/operator_labels/rack must be text: write '7'"
    );
    assert!(told("agent: {name: x}").contains("apply its folder"));
    assert!(told("5").contains("neither"));
    assert!(told("[").contains("line"), "{}", told("["));
}

fn write(folder: &Path, name: &str, text: &str) {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().expect("a folder")).expect("made");
    fs::write(path, text).expect("written");
}

fn node(name: &str) -> String {
    format!("{{id: {name}, health: ready, cordoned: false}}\n")
}

#[test]
fn a_folder_is_every_agent_and_document_in_it() {
    let dir = tempfile::tempdir().expect("a folder");
    let folder = dir.path();
    write(folder, "b.yml", &format!("{}---\n- {}- {}---\n", node("b1"), node("b2"), node("b3")));
    write(folder, "a.json", r#"{"id": "a", "health": "ready", "cordoned": false}"#);
    write(folder, "deep/er/c.yaml", &node("c"));
    write(folder, "hello/agent.yaml", "agent: {name: hello, version: 1.0.0}");
    write(folder, "hello/tests/t.yaml", "no: document");
    write(folder, "notes.txt", "no document");
    write(folder, ".hidden/x.yaml", "[");
    std::os::unix::fs::symlink(folder.join("b.yml"), folder.join("link.yaml")).expect("linked");
    std::os::unix::fs::symlink(folder, folder.join("deep/loop")).expect("linked");
    let wanted = read(&[folder.to_owned()]).map_err(|failure| failure.to_string()).expect("readable");
    let names: Vec<_> = wanted.iter().map(|sourced| sourced.wanted.name()).collect();
    assert_eq!(names, ["agent/hello@1.0.0", "node/a", "node/b1", "node/b2", "node/b3", "node/c"]);
    assert!(wanted[4].place.ends_with("/b.yml\", document 2, item 2"), "{}", wanted[4].place);
}

#[test]
fn every_mistake_is_told_with_file_and_document() {
    let dir = tempfile::tempdir().expect("a folder");
    let folder = dir.path();
    write(folder, "a.yaml", &format!("{}---\n{{agent_name: x, input_data: {{}}}}\n---\n[\n", node("n")));
    write(folder, "b.yaml", &node("n"));
    write(folder, "c.yaml", "# nothing\n");
    write(folder, "d/agent.yaml", "agent: {name: d}");
    let Err(failure) = read(&[folder.to_owned(), folder.join("absent.yaml")]) else { panic!("there are mistakes") };
    assert_eq!(failure.message, "nothing was changed: 6 documents cannot be applied");
    let told = failure.to_string().replace(&folder.display().to_string(), "");
    let expected = [
        r#"at "/d/agent.yaml""#,
        r#""version" is required"#,
        r#"at "/a.yaml", document 2"#,
        r#"at "/a.yaml", document 3"#,
        "line 5, ",
        r#"at "/b.yaml""#,
        r#"node/n is also in "/a.yaml", document 1"#,
        r#"at "/c.yaml""#,
        "it contains no document",
        r#"at "/absent.yaml""#,
    ];
    for line in expected {
        assert!(told.contains(line), "{line}: {told}");
    }
}

#[test]
fn what_is_read_has_bounds() {
    let dir = tempfile::tempdir().expect("a folder");
    let told = |path: &Path| match read(&[path.to_owned()]) {
        Ok(_) => String::new(),
        Err(failure) => failure.message,
    };
    let deep = "d/".repeat(DEPTH_MAX + 1);
    write(dir.path(), &format!("deep/{deep}x.yaml"), &node("n"));
    assert!(told(&dir.path().join("deep")).contains("nested more than 16"));
    for number in 0..=FILES_MAX {
        write(dir.path(), &format!("many/{number}.yaml"), "[]");
    }
    assert!(told(&dir.path().join("many")).contains("more than 1000 files"));
    let item = |document: usize, item: usize| format!("- {}", node(&format!("n{document}-{item}")));
    let document = |number| (0..100).map(|index| item(number, index)).collect::<String>();
    let objects = (0..=OBJECTS_MAX / 100).map(document).collect::<Vec<_>>().join("---\n");
    write(dir.path(), "objects.yaml", &objects);
    let message = told(&dir.path().join("objects.yaml"));
    assert!(message.contains("document 101, item 1 ") && message.contains("more than 10000 objects"), "{message}");
    assert!(told(&dir.path().join("nothing")).contains("could not read"));
    fs::create_dir(dir.path().join("empty")).expect("made");
    assert!(told(&dir.path().join("empty")).contains("neither an agent nor a document"));
}
