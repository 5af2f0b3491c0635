//! Tools for files.

use std::fs;

use serde_json::{Value, json};

use crate::bench::{Bench, fails, is_here};

/// Paths that no tool for files may take, and a word of the refusal.
const HOSTILE: [(&str, &str); 12] = [
    ("", "is not a path"),
    ("a\0b", "is not a path"),
    ("a\nb", "is not a path"),
    ("a\u{1b}[2Jb", "is not a path"),
    ("..", "outside the workspace"),
    ("../secret", "outside the workspace"),
    ("src/../../secret", "outside the workspace"),
    ("/etc/passwd", "outside the workspace"),
    ("~/x", "outside the workspace"),
    ("up/secret", "outside the workspace"),
    ("inner/../../secret", "outside the workspace"),
    ("up/up/up/etc/passwd", "outside the workspace"),
];

#[test]
fn tools_for_files_stay_in_the_workspace() {
    if !is_here("python3") {
        return;
    }
    let bench = Bench::new();
    let tools = [
        ("fs_cat", ""),
        ("fs_read", ""),
        ("fs_ls", ""),
        ("fs_grep", "pattern"),
        ("fs_glob", "pattern"),
        ("fs_mkdir", ""),
        ("fs_write", "contents"),
        ("fs_patch", "contents"),
        ("fs_rm", ""),
    ];
    std::thread::scope(|scope| {
        // Prepared one after the other: they share the programs that call them.
        for (tool, other) in tools.map(|(name, other)| (bench.tool(name), other)) {
            scope.spawn(move || {
                let arguments = |path: &str| match other {
                    "" => json!({ "path": path }),
                    other => json!({"path": path, other: "+x"}),
                };
                for (path, words) in HOSTILE {
                    fails(&tool, &arguments(path), words);
                }
                fails(&tool, &arguments(&"x/".repeat(3000)), "4096 characters");
                if tool.declaration.name != "fs_rm" {
                    fails(&tool, &arguments("out"), "outside the workspace");
                }
            });
        }
    });
    assert_eq!(fs::read_to_string(bench.root.path().join("secret")).expect("it is there"), "top secret");
    assert!(!bench.path("pipe").is_file());
}

#[test]
fn files_are_read_within_bounds() {
    if !is_here("python3") {
        return;
    }
    let bench = Bench::new();
    assert_eq!(bench.said("fs_cat", json!({"path": "inner/a.py"})), "one\ntwo\nthree\n");
    bench.fails("fs_cat", json!({"path": "giant"}), "read a part of it with fs_read");
    bench.fails("fs_cat", json!({"path": "binary"}), "is a binary file");
    bench.fails("fs_cat", json!({"path": "pipe"}), "not a regular file");
    bench.fails("fs_cat", json!({"path": "loop"}), "Too many levels of symbolic links");
    bench.fails("fs_cat", json!({"path": "src"}), "list it with fs_ls");
    let read = |arguments: Value| bench.said("fs_read", arguments);
    assert_eq!(
        read(json!({"path": "src/a.py", "offset": 2, "limit": 1})),
        "     2\ttwo\n(more lines follow: go on with offset 3)"
    );
    assert_eq!(read(json!({"path": "src/a.py", "offset": 9})), "(the file has 3 lines)");
    assert_eq!(read(json!({"path": "src"})), "a.py");
    assert_eq!(read(json!({"path": "colors"})), "     1\tx\\x1b[31mred\\x07");
    let giant = read(json!({"path": "giant"}));
    assert!(giant.len() < 3000 && giant.contains("y…\n(the file is large, 3145728 bytes"), "{giant}");
    bench.fails("fs_read", json!({"path": "binary"}), "is a binary file");
    let listed = bench.said("fs_ls", json!({"path": "."}));
    assert!(listed.contains("na\\x0ame\nout@\npipe\nsrc/\nup@"), "{listed}");
    assert_eq!(bench.said("fs_glob", json!({"pattern": "**/*.{py,rs}"})), "src/a.py");
    bench.fails("fs_glob", json!({"pattern": "[z-a]"}), "is not a pattern");
    assert_eq!(
        bench.said("fs_grep", json!({"pattern": "^t(w|h)", "include": "*.py"})),
        "src/a.py:2:two\nsrc/a.py:3:three"
    );
    assert_eq!(bench.said("fs_grep", json!({"pattern": "secret"})), "(no line matches)");
    bench.fails("fs_grep", json!({"pattern": "("}), "the expression cannot be used");
    bench.fails("fs_grep", json!({"pattern": "a\nb"}), "must be one line");
    let hits = bench.said("fs_grep", json!({"pattern": "y{3}", "path": "giant"}));
    assert!(hits.len() < 400, "{hits}");
}

#[test]
fn files_are_changed_as_a_whole_or_not() {
    if !is_here("python3") {
        return;
    }
    let bench = Bench::new();
    assert_eq!(
        bench.said("fs_write", json!({"path": "new/b.txt", "contents": "a\nb\n"})),
        "wrote new/b.txt: a new file with 2 lines"
    );
    let diff = bench.said("fs_write", json!({"path": "new/b.txt", "contents": "a\nc\n"}));
    assert!(diff.ends_with("-b\n+c"), "{diff}");
    bench.fails("fs_write", json!({"path": "src", "contents": ""}), "is a folder");
    bench.fails("fs_write", json!({"path": "pipe", "contents": ""}), "not a regular file");
    bench.fails("fs_write", json!({"path": "binary/x", "contents": ""}), "could not write");
    let patch = |contents: &str| json!({"path": "src/a.py", "contents": contents});
    assert_eq!(
        bench.said("fs_patch", patch("--- a/a.py\n+++ b/a.py\n@@ -7,2 +7,2 @@\n one\n-two\n+2\n")),
        "changed src/a.py: 1 hunk"
    );
    assert_eq!(bench.text("src/a.py"), "one\n2\nthree\n");
    bench.fails("fs_patch", patch("@@\n one\n+x\n@@\n-gone\n"), "hunk 2 does not match");
    bench.fails("fs_patch", patch(""), "has no hunk");
    bench.fails("fs_patch", patch("*x"), "begins with '*'");
    bench.write("twice", "a\nb\na\nb\n");
    let twice = |contents: &str| json!({"path": "twice", "contents": contents});
    bench.fails("fs_patch", twice("@@\n-a\n+c\n"), "matches several places");
    bench.said("fs_patch", twice("@@ -3 +3 @@\n-a\n+c\n"));
    assert_eq!(
        (bench.text("twice"), bench.text("src/a.py")),
        ("a\nb\nc\nb\n".to_owned(), "one\n2\nthree\n".to_owned())
    );
    // Of a link, only the link goes.
    for path in ["out", "up", "inner", "new", "loop"] {
        bench.said("fs_rm", json!({"path": path}));
        assert!(bench.path(path).symlink_metadata().is_err(), "{path}");
    }
    assert_eq!(bench.text("src/a.py"), "one\n2\nthree\n");
    for path in [".", "src/..", "src/../."] {
        bench.fails("fs_rm", json!({"path": path}), "the workspace itself");
    }
    bench.fails("fs_rm", json!({"path": "none"}), "could not remove");
    assert_eq!(bench.said("fs_mkdir", json!({"path": "m/n"})), "made m/n/");
    bench.fails("fs_mkdir", json!({"path": "src/a.py/n"}), "could not make");
    let left: Vec<_> =
        fs::read_dir(bench.path("src")).expect("a folder").flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(left, ["a.py"], "no file is left beside");
}

#[test]
fn a_project_is_where_the_worker_opens_it() {
    if !is_here("python3") {
        return;
    }
    let inside = Bench::new().with("project_dir", "src");
    assert_eq!(inside.said("fs_ls", json!({"path": "."})), "a.py");
    inside.fails("fs_cat", json!({"path": "../giant"}), "outside the workspace");
    let outside = Bench::new().with("project_dir", "..");
    outside.fails("fs_ls", json!({"path": "."}), "the worker does not open the folder");
    outside.fails("execute_command", json!({"command": "ls"}), "the worker does not open the folder");
}
