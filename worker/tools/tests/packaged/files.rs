//! Tools for files.

use std::fs;

use serde_json::{Value, json};

use crate::bench::{Bench, is_here};

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
    for (name, other) in tools {
        let arguments = |path: &str| match other {
            "" => json!({ "path": path }),
            other => json!({"path": path, other: "+x"}),
        };
        let mut table = HOSTILE.map(|(path, words)| (arguments(path), words)).to_vec();
        table.push((arguments(&"x/".repeat(3000)), "4096 characters"));
        if name != "fs_rm" {
            table.push((arguments("out"), "outside the workspace"));
        }
        bench.refuses((name, "run"), &table);
        bench.fails(name, arguments("../secret"), "outside the workspace");
    }
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
    assert!(bench.said("fs_read", json!({"path": "."})).contains("loop@\nna\\x0ame\nodd/\nout@\n"));
    assert_eq!(bench.said("fs_ls", json!({"path": "odd"})), "\\xff");
    assert_eq!(bench.said("fs_read", json!({"path": "odd"})), "\\xff");
    assert_eq!(bench.said("fs_glob", json!({"pattern": "*", "path": "odd"})), "odd/\\xff");
    assert_eq!(bench.said("fs_cat", json!({"path": "colors"})), "x\\x1b[31mred\\x07\n");
    for (tool, path) in [("fs_glob", "none"), ("fs_glob", "src/a.py"), ("fs_grep", "none")] {
        bench.fails(tool, json!({"pattern": "x", "path": path}), "could not list");
    }
    bench.fails("fs_glob", json!({"pattern": "*a*a*a*a*a*a*a*a*a"}), "more than 8 stars");
    let listed = bench.said("fs_ls", json!({"path": "."}));
    assert!(listed.contains("na\\x0ame\nodd/\nout@\npipe\nsrc/\nup@"), "{listed}");
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
    bench.fails("fs_write", json!({"path": "loop", "contents": ""}), "Too many levels of symbolic links");
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

#[test]
fn a_patch_changes_what_it_names_alone() {
    if !is_here("python3") {
        return;
    }
    let bench = Bench::new();
    let patched = |before: &str, contents: &str| {
        bench.write("file", before);
        bench.said("fs_patch", json!({"path": "file", "contents": contents}));
        bench.text("file")
    };
    assert_eq!(patched("a \r\nb\r\nc\t\r\nd", "@@\n a\n-b\n+B\n+B2\n c\n"), "a \r\nB\r\nB2\r\nc\t\r\nd");
    assert_eq!(patched("a\r\nb\r\n", "@@\n b\n+c\n"), "a\r\nb\r\nc\r\n");
    assert_eq!(patched("a  \nb\n", "@@\n a\n-b\n+c\n"), "a  \nc\n");
    assert_eq!(patched("1\n2\n3\n", "@@ -2,0 +3 @@\n+x\n"), "1\n2\nx\n3\n");
    assert_eq!(patched("1\n2\n", "@@ -0,0 +1 @@\n+x\n@@ -2,0 +4 @@\n+y\n"), "x\n1\n2\ny\n");
    assert_eq!(patched("1\n2\n", "@@ -9,0 +9 @@\n+x\n"), "1\n2\nx\n");
    assert_eq!(patched("", "+x\n"), "x\n");
    bench.write("file", "1\n");
    bench.fails("fs_patch", json!({"path": "file", "contents": "+x\n"}), "add lines of context");
    fs::write(bench.path("latin"), b"caf\xe9\nb\n").expect("a file");
    bench.fails("fs_patch", json!({"path": "latin", "contents": "@@\n-b\n+c\n"}), "is not UTF-8; nothing was changed");
    assert_eq!(fs::read(bench.path("latin")).expect("a file"), b"caf\xe9\nb\n");
}

#[test]
fn searches_end() {
    if !is_here("python3") {
        return;
    }
    let bench = Bench::new();
    bench.write(&format!("{}b", "a".repeat(200)), "");
    bench.write("long", &format!("{}x\n", "a".repeat(3000)));
    let ends = "import _atlas, fs_glob, fs_grep\n_atlas.SEARCH_SECONDS = 0.2
print(fs_glob.run('*a*a*a*a*a*a*a*c'))
print(fs_grep.run(r'(.*)(.*)(.*)(.*)\\1\\2\\3\\4x', 'long'))
_atlas.ENTRIES_MAX = 3
print(fs_glob.run('none'))";
    let after = "(the search ended after 0.2 s)\n";
    let expected = format!(
        "(no file matches)\n{after}(no line matches)\n{after}(no file matches)\n(the search ended after 3 entries)\n"
    );
    assert_eq!(bench.python(ends, &[], ""), expected);
}
