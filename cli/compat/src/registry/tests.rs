use std::fs;

use clap::Parser;
use expect_test::{Expect, expect};

use super::*;

#[derive(Debug, Parser)]
struct Line {
    #[command(subcommand)]
    verb: Verb,
}

struct Fixture {
    dir: tempfile::TempDir,
}

/// A folder with an agent.
fn fixture() -> Fixture {
    let fixture = Fixture { dir: tempfile::tempdir().expect("a folder") };
    fixture.agent("1.9.0");
    fixture
}

impl Fixture {
    fn agent(&self, version: &str) {
        let contract =
            format!("name: echo\nversion: {version}\ndescription: Says it again.\ncapabilities: [text, test]");
        self.write("source/agent.yaml", &contract);
        self.write("source/agent.py", &format!("# {version}"));
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.dir.path().join(path);
        fs::create_dir_all(path.parent().expect("it has one")).expect("a folder");
        fs::write(path, text).expect("written");
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.dir.path().join(path)).expect("a file")
    }

    /// The output of a command line, in which `DIR` is the folder.
    fn run(&self, line: &str) -> String {
        let dir = self.dir.path().display().to_string();
        let line = format!("registry {line} --config DIR/registries.yaml").replace("DIR", &dir);
        let text = match run(&Line::try_parse_from(line.split(' ')).expect("a command line").verb) {
            Ok(text) => text,
            Err(Refusal(text)) => format!("refused: {text}\n"),
        };
        text.replace(&dir, "DIR")
    }

    fn check(&self, lines: &[&str], expected: &Expect) {
        expected.assert_eq(&lines.iter().map(|line| self.run(line)).collect::<String>());
    }
}

#[test]
fn registries_are_added_listed_and_removed() {
    fixture().check(
        &[
            "list",
            "add local --file DIR/shelf",
            "add far --http https://h --token ${TOKEN}",
            "list",
            "add local --file DIR/other",
            "list",
            "add none",
            "remove far",
            "remove far",
            "list",
        ],
        &expect![[r#"
            No registries configured.
            Added registry 'local' -> DIR/registries.yaml
            Added registry 'far' -> DIR/registries.yaml
              local (file) -> DIR/shelf
              far (http) -> https://h
            Added registry 'local' -> DIR/registries.yaml
              local (file) -> DIR/other
              far (http) -> https://h
            refused: Must specify --file or --http
            Removed registry 'far'
            refused: Registry 'far' not found
              local (file) -> DIR/other
        "#]],
    );
}

#[test]
fn agents_are_published_found_and_installed() {
    let fixture = fixture();
    fixture.run("add local --file DIR/shelf");
    let published = fixture.run("publish DIR/source");
    assert!(published.starts_with("Published echo@1.9.0 (") && published.ends_with("...)\n"), "{published}");
    fixture.agent("1.10.0");
    fixture.run("publish DIR/source");
    fixture.check(
        &[
            "search AGAIN",
            "search nothing",
            "pull echo --install-dir DIR/agents",
            "pull echo -v ^2.0.0 --install-dir DIR/agents",
            "pull none --install-dir DIR/agents",
            "pull echo -v one --install-dir DIR/agents",
            "pull echo -r other --install-dir DIR/agents",
        ],
        &expect![[r#"
              echo@1.10.0 — Says it again. [text, test]
              echo@1.9.0 — Says it again. [text, test]
            No agents found.
            Installed echo@1.10.0 -> DIR/agents/echo
            refused: Agent 'echo' (version ^2.0.0) not found in any registry
            refused: Agent 'none' (version *) not found in any registry
            refused: Error: "one" is not a version requirement; use 1.2.3, ^1.2.3, ~1.2.3, >=1.2.3, >1.2.3 or *
            refused: Registry 'other' not found
        "#]],
    );
    assert_eq!(fixture.read("agents/echo/agent.py"), "# 1.10.0");
    let found: Value = serde_json::from_str(&fixture.run("search echo --json")).expect("JSON");
    assert_eq!((found[1]["version"].as_str(), found.as_array().map(Vec::len)), (Some("1.9.0"), Some(2)));
}

#[test]
fn an_installation_replaces_files_of_the_same_names() {
    let fixture = fixture();
    fixture.run("add local --file DIR/shelf");
    fixture.run("publish DIR/source");
    fixture.write("agents/echo/agent.py", "old");
    fixture.write("agents/echo/notes.txt", "mine");
    fixture.check(
        &["pull echo -v 1.9.0 --install-dir DIR/agents"],
        &expect![[r#"
        Installed echo@1.9.0 -> DIR/agents/echo
    "#]],
    );
    assert_eq!(fixture.read("agents/echo/agent.py"), "# 1.9.0");
    assert_eq!(fixture.read("agents/echo/notes.txt"), "mine");
    assert_eq!(fs::read_dir(fixture.dir.path().join("agents")).expect("a folder").count(), 1, "nothing else remains");
}

#[test]
fn a_published_version_does_not_change() {
    let fixture = fixture();
    fixture.run("add local --file DIR/shelf");
    fixture.run("publish DIR/source");
    let again = fixture.run("publish DIR/source");
    assert!(again.starts_with("Published"), "{again}");
    fixture.write("source/agent.py", "# changed");
    fixture.check(
        &["publish DIR/source"],
        &expect![[r#"
        refused: Error: echo@1.9.0 is published already, with other contents
    "#]],
    );
}

#[test]
fn a_changed_archive_is_not_installed() {
    let fixture = fixture();
    fixture.run("add local --file DIR/shelf");
    fixture.run("publish DIR/source");
    let manifest = fixture.read("shelf/echo/1.9.0/manifest.json");
    let digest = serde_json::from_str::<Value>(&manifest).expect("JSON")["sha256"].as_str().expect("text").to_owned();
    fixture.write("shelf/echo/1.9.0/manifest.json", &manifest.replace(&digest, &"0".repeat(64)));
    let pulled = fixture.run("pull echo --install-dir DIR/agents");
    assert!(pulled.starts_with("refused: Error: echo@1.9.0: the archive has the digest "), "{pulled}");
    assert!(!fixture.dir.path().join("agents").exists());
}

#[test]
fn links_do_not_lead_an_installation_elsewhere() {
    let fixture = fixture();
    fixture.write("source/data/file.txt", "new");
    fixture.run("add local --file DIR/shelf");
    fixture.run("publish DIR/source");
    fixture.write("outside/file.txt", "old");
    fixture.write("agents/echo/notes.txt", "mine");
    let link = fixture.dir.path().join("agents/echo/data");
    std::os::unix::fs::symlink(fixture.dir.path().join("outside"), link).expect("a link");
    fixture.check(
        &["pull echo --install-dir DIR/agents"],
        &expect![[r#"
        refused: Error: could not write to DIR/agents/echo: DIR/agents/echo/data is not a folder
    "#]],
    );
    assert_eq!(fixture.read("outside/file.txt"), "old");
}

#[test]
fn what_cannot_be_done_is_refused() {
    let fixture = fixture();
    fixture.write("empty/text", "");
    fixture.check(
        &[
            "publish DIR/source",
            "pull echo",
            "search echo",
            "add local --file DIR/shelf",
            "publish DIR/empty",
            "publish DIR/none",
            "add far --http https://h",
            "search echo -r far",
            "search echo",
            "publish DIR/source -r far",
        ],
        &expect![[r#"
            refused: Registry 'local' not found
            refused: No registries available
            refused: No registries available
            Added registry 'local' -> DIR/registries.yaml
            refused: Pack failed: it contains no agent.yaml
            refused: Pack failed: could not read "DIR/none": No such file or directory (os error 2)
            Added registry 'far' -> DIR/registries.yaml
            refused: Registry 'far' is reached over HTTP, which is not supported yet
            No agents found.
            refused: Registry 'far' is reached over HTTP, which is not supported yet
        "#]],
    );
}
