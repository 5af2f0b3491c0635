use std::fs;

use expect_test::{Expect, expect};

use crate::Search;

fn check(documents: &[&str], query: &str, expected: &Expect) {
    let root = tempfile::tempdir().expect("a folder");
    let folder = root.path().join("a[1]");
    for (path, text) in [
        ("notes/tides.md", "The moon causes the tides."),
        ("notes/deep/sun.md", "The sun helps the moon."),
        ("notes/picture.png", "\0moon"),
        ("top.txt", "Nothing about it."),
    ] {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        fs::write(path, text).expect("a file");
    }
    fs::write(root.path().join("secret.txt"), "The moon is a secret.").expect("a file");
    std::os::unix::fs::symlink(root.path().join("secret.txt"), folder.join("link.txt")).expect("a link");
    let documents: Vec<String> = documents.iter().map(|document| (*document).to_owned()).collect();
    let search = Search { documents: &documents, top: Some(2), chunk_size: Some(30), chunk_overlap: Some(0) };
    let shown = search.run(&folder, query).map_or_else(
        |why| why.to_string(),
        |found| format!("{} | {}", found.context.replace('\n', "/"), found.sources.join(", ")),
    );
    expected.assert_eq(&shown);
}

#[test]
fn documents_are_searched_by_their_words() {
    let both = expect![[
        r#"Source: notes/tides.md/The moon causes the tides.//Source: notes/deep/sun.md/The sun helps the moon. | notes/tides.md, notes/deep/sun.md"#
    ]];
    check(&["notes"], "moon tides", &both);
    check(&["notes/**/*.md", "top.txt"], "moon tides", &both);
    check(&["top.txt"], "moon", &expect![[" | "]]);
}

#[test]
fn what_cannot_be_searched_is_named() {
    check(&["none.md"], "x", &expect![[r#"there is no document "none.md" in the agent's folder"#]]);
    check(&["../secret.txt"], "x", &expect![[r#""../secret.txt" leads out of the agent's folder"#]]);
    check(&["link.txt"], "x", &expect![[r#""link.txt" leads out of the agent's folder"#]]);
    check(&["/**/*.md"], "x", &expect![[r#""/**/*.md" leads out of the agent's folder"#]]);
    check(&["/etc/hostname"], "x", &expect![[r#""/etc/hostname" leads out of the agent's folder"#]]);
    check(
        &["https://example.com/x"],
        "x",
        &expect![[
            r#""https://example.com/x": documents are not fetched here; put the text into a file of the agent's folder"#
        ]],
    );
    check(
        &["pdf:x.pdf"],
        "x",
        &expect![[r#""pdf:x.pdf": there are no loaders here; put the text into a file of the agent's folder"#]],
    );
    check(&["a[z-a]"], "x", &expect![[r#"there is no document "a[z-a]" in the agent's folder"#]]);
}
