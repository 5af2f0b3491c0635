use super::*;

struct Fixture {
    dir: tempfile::TempDir,
    registry: FolderRegistry,
}

fn fixture() -> Fixture {
    let dir = tempfile::tempdir().expect("a folder");
    let registry = FolderRegistry::new(dir.path().join("registry"));
    Fixture { dir, registry }
}

fn manifest(name: &str, version: &str, description: &str) -> Manifest {
    Manifest {
        name: AgentName::new(name).expect("a name"),
        version: version.to_owned(),
        description: description.to_owned(),
        capabilities: vec!["Text".to_owned()],
        sha256: "00".to_owned(),
        published_at: "t".to_owned(),
        size_bytes: 3,
    }
}

impl Fixture {
    fn publish(&self, name: &str, version: &str) {
        let done = self.registry.publish(&manifest(name, version, name), format!("{name}@{version}").as_bytes());
        done.expect("published");
    }

    #[track_caller]
    fn check_search(&self, text: &str, limit: usize, expected: &[&str]) {
        let found = self.registry.search(text, limit).expect("searched");
        assert_eq!(found.iter().map(ToString::to_string).collect::<Vec<_>>(), expected, "{text}");
    }
}

#[test]
fn versions_are_published_found_and_downloaded() {
    let fixture = fixture();
    fixture.check_search("", 20, &[]);
    for version in ["1.10.0", "1.9.0", "1.2.0"] {
        fixture.publish("echo", version);
    }
    fixture.publish("zeta", "1.0.0");
    // In the order of texts, not of versions.
    fixture.check_search("ECHO", 20, &["echo@1.10.0", "echo@1.2.0", "echo@1.9.0"]);
    fixture.check_search("text", 2, &["echo@1.10.0", "echo@1.2.0"]);
    fixture.check_search("nothing", 20, &[]);
    fixture.check_search("", 0, &[]);
    assert_eq!(fixture.registry.versions("echo").expect("read"), ["1.10.0", "1.2.0", "1.9.0"]);
    assert_eq!(fixture.registry.archive("echo", "1.9.0").expect("read").as_deref(), Some(&b"echo@1.9.0"[..]));
    assert_eq!(fixture.registry.archive("echo", "2.0.0").expect("read"), None);
    assert_eq!(fixture.registry.versions("none").expect("read"), Vec::<String>::new());
}

#[test]
fn a_published_version_does_not_change() {
    let fixture = fixture();
    fixture.publish("echo", "1.0.0");
    fixture.publish("echo", "1.0.0");
    let changed = fixture.registry.publish(&manifest("echo", "1.0.0", "other"), b"other");
    assert!(matches!(changed, Err(RegistryError::Exists(_))), "{changed:?}");
    assert_eq!(fixture.registry.archive("echo", "1.0.0").expect("read").as_deref(), Some(&b"echo@1.0.0"[..]));
    let left = fs::read_dir(fixture.dir.path().join("registry/echo")).expect("a folder").count();
    assert_eq!(left, 1, "no partial folder remains");
}

#[test]
fn names_do_not_lead_elsewhere() {
    let fixture = fixture();
    fixture.publish("echo", "1.0.0");
    for name in ["a/b", ".", ".hidden", "a\\b", "a..b"] {
        let published = fixture.registry.publish(&manifest(name, "1.0.0", ""), b"x");
        assert!(matches!(published, Err(RegistryError::Name(_))), "{name}");
    }
    let published = fixture.registry.publish(&manifest("a", "../1.0.0", ""), b"x");
    assert!(matches!(published, Err(RegistryError::Name(_))));
    for (name, version) in [("../registry/echo", "1.0.0"), ("echo", "../echo/1.0.0"), ("", ""), ("..", "1.0.0")] {
        assert_eq!(fixture.registry.archive(name, version).expect("read"), None, "{name} {version}");
        assert_eq!(fixture.registry.manifest(name, version).expect("read"), None, "{name} {version}");
    }
    assert_eq!(fixture.registry.versions("../registry/echo").expect("read"), Vec::<String>::new());
}

#[test]
fn what_is_no_version_is_left_out() {
    let fixture = fixture();
    fixture.publish("echo", "1.0.0");
    let root = fixture.dir.path().join("registry");
    let folder = |path: &str| {
        fs::create_dir_all(root.join(path)).expect("a folder");
        root.join(path)
    };
    fs::write(folder("echo/2.0.0").join("manifest.json"), "{").expect("written");
    fs::copy(root.join("echo/1.0.0/manifest.json"), folder("echo/3.0.0").join("manifest.json")).expect("copied");
    fs::copy(root.join("echo/1.0.0/manifest.json"), folder("other/1.0.0").join("manifest.json")).expect("copied");
    folder("echo/4.0.0");
    folder("echo/text");
    fs::write(root.join("file"), "").expect("written");
    std::os::unix::fs::symlink(root.join("echo"), root.join("link")).expect("a link");
    std::os::unix::fs::symlink(root.join("file"), folder("linked/1.0.0").join("package.tar.gz")).expect("a link");
    fixture.check_search("", 20, &["echo@1.0.0"]);
    assert_eq!(fixture.registry.archive("linked", "1.0.0").expect("read"), None);
    let large = File::create(folder("large/1.0.0").join("package.tar.gz")).expect("created");
    large.set_len((10 << 20) + 1).expect("grown");
    assert_eq!(fixture.registry.archive("large", "1.0.0").expect("read"), None);
}

#[test]
fn a_failed_publication_leaves_nothing() {
    let fixture = fixture();
    fs::create_dir_all(fixture.dir.path().join("registry")).expect("a folder");
    fs::write(fixture.dir.path().join("registry/echo"), "a file where the agent's folder must be").expect("written");
    let published = fixture.registry.publish(&manifest("echo", "1.0.0", ""), b"x");
    assert!(matches!(published, Err(RegistryError::Write { .. })));
    fixture.check_search("", 20, &[]);
}
