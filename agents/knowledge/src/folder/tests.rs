use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::{ProtectedDomains, list};

struct Fixture {
    dir: tempfile::TempDir,
    folder: Folder,
}

fn fixture() -> Fixture {
    let dir = tempfile::tempdir().expect("a folder");
    let folder = Folder::new(dir.path().join("knowledge"));
    Fixture { dir, folder }
}

fn draft(id: &str, domain: &str, content: &str) -> Draft {
    Draft { id: id.to_owned(), domain: domain.to_owned(), ..Draft::new(content) }
}

fn acl(read: &[&str], write: &[&str]) -> Acl {
    let texts = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    let protected = ProtectedDomains(BTreeSet::from(["law".to_owned()]));
    Acl { read_domains: texts(read), write_domains: texts(write), protected }
}

impl Fixture {
    fn put(&self, id: &str, domain: &str, content: &str) {
        self.folder.put(&Entry::new(draft(id, domain, content), "t", 0).expect("an entry")).expect("stored");
    }

    /// The stored entries.
    #[track_caller]
    fn check(&self, expected: &str) {
        let entries = self.folder.entries().expect("entries");
        let shown = entries.iter().map(|entry| format!("{}/{}={}", entry.domain, entry.id, entry.content));
        assert_eq!(shown.collect::<Vec<_>>().join(" "), expected);
    }
}

#[test]
fn an_entry_is_a_file_in_the_folder_of_its_domain() {
    let fixture = fixture();
    fixture.check("");
    fixture.put("b", "law", "two");
    fixture.put("a", "law", "one");
    fixture.put("a-b", "ai", "three");
    fixture.put("a", "ai", "four");
    // Sorted by the names of the files, in which the ending follows the name.
    fixture.check("ai/a-b=three ai/a=four law/b=two");
    assert!(fixture.dir.path().join("knowledge/ai/a-b.md").is_file());
}

#[test]
fn entries_are_found_changed_and_removed_by_name() {
    let fixture = fixture();
    fixture.put("a", "ai", "one");
    let found = fixture.folder.get("a").expect("read").expect("found");
    assert_eq!((found.domain.as_str(), found.content.as_str(), found.created_at.as_str()), ("ai", "one", "t"));
    assert_eq!(fixture.folder.get("b").expect("read"), None);
    assert!(!fixture.folder.remove("b").expect("nothing removed"));
    assert!(fixture.folder.remove("a").expect("removed"));
    fixture.check("");
}

#[test]
fn nothing_outside_is_reached() {
    let fixture = fixture();
    fixture.put("a", "ai", "one");
    let secret = fixture.dir.path().join("secret.md");
    fs::write(&secret, "secret").expect("written");
    let root = fixture.dir.path().join("knowledge");
    std::os::unix::fs::symlink(&secret, root.join("ai/link.md")).expect("a link");
    std::os::unix::fs::symlink(fixture.dir.path(), root.join("outside")).expect("a link");
    fs::write(root.join("ai/.a.md.1.partial"), "left by a crash").expect("written");
    fs::write(root.join("ai/bytes.md"), [0xff]).expect("written");
    fs::write(root.join("ai/long.md"), "x".repeat(FILE_BYTES_MAX + 1)).expect("written");
    fs::write(root.join("loose.md"), "no domain").expect("written");
    fixture.check("ai/a=one");
    for id in ["../secret", "../../secret", "link", "secret", "/etc/passwd", "", "bytes", "long"] {
        assert_eq!(fixture.folder.get(id).expect("read"), None, "{id}");
    }
    let everything = Acl::everything();
    let access = KnowledgeAccess { folder: &fixture.folder, acl: &everything };
    assert_eq!(access.search("", Some("../.."), &[], 10).expect("searched"), []);
    assert_eq!(list(fixture.folder.entries().expect("entries"), Some(".."), &everything, 10, 0), []);
    for (id, domain) in [("../x", "ai"), ("x", "../x"), ("x", "")] {
        let stored = access.store(draft(id, domain, "c"), "t", 0);
        assert!(matches!(stored, Err(FolderError::Entry(_))), "{id} {domain}");
    }
    assert_eq!(fs::read_to_string(&secret).expect("untouched"), "secret");
}

#[test]
fn an_agent_reads_what_its_list_allows() {
    let fixture = fixture();
    fixture.put("a", "ai", "text");
    fixture.put("l", "law", "text");
    let acl = acl(&["law"], &["*"]);
    let access = KnowledgeAccess { folder: &fixture.folder, acl: &acl };
    let found = access.search("text", None, &[], 1).expect("searched");
    assert_eq!(found.iter().map(|entry| entry.id.as_str()).collect::<Vec<_>>(), ["l"]);
    assert_eq!(access.get("a").expect("read"), None);
    assert!(access.get("l").expect("read").is_some());
}

#[test]
fn an_agent_writes_what_its_list_allows() {
    let fixture = fixture();
    fixture.put("l", "law", "text");
    let acl = acl(&["*"], &["*"]);
    let access = KnowledgeAccess { folder: &fixture.folder, acl: &acl };
    let denied = "Agent not allowed to write to knowledge domain 'law'";
    let error = |result: Result<(), FolderError>| result.map_err(|error| error.to_string());
    assert_eq!(error(access.store(draft("", "law", "c"), "t", 1).map(drop)), Err(denied.to_owned()));
    assert_eq!(error(access.update("l", EntryChange::default(), "t").map(drop)), Err(denied.to_owned()));
    // Otherwise an entry of a protected domain could be replaced from another one.
    assert_eq!(error(access.store(draft("l", "ai", "c"), "t", 1).map(drop)), Err(denied.to_owned()));
    fixture.check("law/l=text");
    let stored = access.store(draft("", "ai", "new"), "t", 1).expect("stored");
    let change = EntryChange { content: Some("newer".to_owned()), ..EntryChange::default() };
    let updated = access.update(stored.id.as_str(), change, "u").expect("updated").expect("found");
    assert_eq!(
        (updated.content.as_str(), updated.created_at.as_str(), updated.updated_at.as_str()),
        ("newer", "t", "u")
    );
    assert_eq!(access.update("none", EntryChange::default(), "u").expect("not found"), None);
    fixture.check("ai/ai-0000000000000001=newer law/l=text");
}

#[test]
fn a_failed_write_leaves_nothing() {
    let fixture = fixture();
    fs::create_dir_all(fixture.dir.path().join("knowledge")).expect("a folder");
    fs::write(fixture.dir.path().join("knowledge/ai"), "a file where the domain's folder must be").expect("written");
    let entry = Entry::new(draft("a", "ai", "c"), "t", 0).expect("an entry");
    assert!(matches!(fixture.folder.put(&entry), Err(FolderError::Write { .. })));
    fixture.check("");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// A folder holds what a map of names to entries holds.
    #[test]
    fn a_folder_is_a_map(steps in proptest::collection::vec(("[abc]", "(ai|law)", proptest::option::of("[xyz]{1,3}")), 0..12)) {
        let fixture = fixture();
        let mut model = std::collections::BTreeMap::new();
        for (id, domain, content) in steps {
            match content {
                Some(content) => {
                    fixture.put(&id, &domain, &content);
                    model.insert(id, (domain, content));
                }
                None => prop_assert_eq!(fixture.folder.remove(&id).expect("removed"), model.remove(&id).is_some()),
            }
            let entries = fixture.folder.entries().expect("entries");
            let found: std::collections::BTreeMap<_, _> =
                entries.into_iter().map(|entry| (entry.id.to_string(), (entry.domain.to_string(), entry.content))).collect();
            prop_assert_eq!(&found, &model);
        }
    }
}
