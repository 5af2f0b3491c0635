//! The packaged tools, called as agents call them, also with hostile arguments. Python is needed; without it the tests are skipped.

#![cfg(test)]

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use atlas_tool_runner::{Called, Limits, Owner, Script, Surroundings, Tool};
use serde_json::{Value, json};
use tempfile::TempDir;

fn is_here(program: &str) -> bool {
    let found = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    let found = found.is_ok_and(|status| status.success());
    if !found {
        atlas_notice::skip(format_args!("packaged tools need {program}, which is not here"));
    }
    found
}

/// A workspace beside a file that no tool may reach, with all packaged tools.
struct Bench {
    root: TempDir,
    variables: Vec<(String, String)>,
}

#[expect(clippy::needless_pass_by_value, reason = "tests write values in place")]
impl Bench {
    fn new() -> Self {
        let bench = Self { root: TempDir::new().expect("a folder"), variables: Vec::new() };
        for folder in ["work/src", "work/.git", "scratch", "functions/tools"] {
            fs::create_dir_all(bench.root.path().join(folder)).expect("a folder");
        }
        for name in atlas_toolbox::names() {
            for file in atlas_toolbox::files(name) {
                fs::write(bench.root.path().join("functions/tools").join(file.name), file.source).expect("a file");
            }
        }
        fs::write(bench.root.path().join("secret"), "top secret").expect("a file");
        bench.write("src/a.py", "one\ntwo\nthree\n");
        bench.write(".git/config", "one");
        bench.write("binary", "a\0b");
        bench.write("colors", "x\u{1b}[31mred\u{7}\n");
        bench.write("giant", &"y".repeat(3 << 20));
        bench.write("na\nme", "");
        symlink("src", bench.path("inner")).expect("a link");
        symlink("..", bench.path("up")).expect("a link");
        symlink("../secret", bench.path("out")).expect("a link");
        symlink("loop", bench.path("loop")).expect("a link");
        nix::unistd::mkfifo(&bench.path("pipe"), nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
        bench
    }

    fn with(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join("work").join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).expect("a file");
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).expect("a file")
    }

    fn tool(&self, name: &str) -> Tool {
        let file = atlas_toolbox::files(name).first().expect("a tool");
        let functions = self.root.path().join("functions");
        let script = Script::read(&functions.join("tools").join(file.name), Owner::Shared).expect("declarations");
        let surroundings = Surroundings {
            root: self.root.path().to_owned(),
            functions,
            workspace: self.root.path().join("work"),
            scratch: self.root.path().join("scratch"),
            inherited: std::env::vars_os().filter(|(name, _)| name == "PATH").collect(),
            variables: self.variables.iter().cloned().collect(),
            auto_confirm: false,
        };
        script.prepare(&Arc::new(surroundings)).expect("a program").remove(0)
    }

    fn call(&self, name: &str, arguments: &Value) -> Called {
        call(&self.tool(name), arguments)
    }

    /// The text of a call that succeeds.
    #[track_caller]
    fn said(&self, name: &str, arguments: Value) -> String {
        let called = self.call(name, &arguments);
        assert!(!called.failed, "{name} {arguments}: {}", called.value);
        called.value["output"].as_str().map_or_else(|| called.value.to_string(), str::to_owned)
    }

    /// A call fails, and its error has these words.
    #[track_caller]
    fn fails(&self, name: &str, arguments: Value, words: &str) {
        fails(&self.tool(name), &arguments, words);
    }
}

fn call(tool: &Tool, arguments: &Value) -> Called {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(tool.call(arguments, &Limits::default()))
}

#[track_caller]
fn fails(tool: &Tool, arguments: &Value, words: &str) {
    let (name, called) = (&tool.declaration.name, call(tool, arguments));
    let text = called.value.to_string();
    assert!(called.failed && text.contains(words) && !text.contains("Traceback"), "{name} {arguments}: {text}");
}

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

#[test]
fn programs_end_and_their_output_is_bounded() {
    if !is_here("python3") {
        return;
    }
    let bench = Bench::new();
    let command = |command: &str| bench.said("execute_command", json!({ "command": command }));
    assert_eq!(command("echo $((1 + 1)); pwd | grep -c work"), "2\n1\n");
    assert_eq!(command("echo no >&2; exit 3"), "no\n\n[exit status 3]");
    assert_eq!(command("cat"), "[exit status 0]");
    assert_eq!(command("printf '\\033[1mx\\007'"), "\\x1b[1mx\\x07");
    let flood = command("yes | head -c 3000000");
    assert!(flood.len() < 120_000 && flood.contains("bytes are left out]"), "{}", flood.len());
    // What goes on behind it does not hold the call.
    assert_eq!(command("sleep 600 & echo started"), "started\n");
    bench.fails("execute_command", json!({"command": " "}), "there is no command");
    assert_eq!(bench.said("execute_py_code", json!({"code": "print('é' * 3)"})), "ééé\n");
    assert!(bench.said("execute_py_code", json!({"code": "1 / 0"})).contains("ZeroDivisionError"));
    assert!(bench.said("get_current_time", json!({})).contains('T'));
}

#[test]
fn statements_of_sql_are_checked() {
    if !is_here("python3") {
        return;
    }
    let bench = Bench::new().with("dsn", "sqlite:data.db");
    let make = "import sqlite3; d = sqlite3.connect('data.db'); d.execute('create table t (a, b)'); d.execute('insert into t values (1, null), (2, ?)', ['x,\\n;']); d.commit()";
    bench.said("execute_py_code", json!({ "code": make }));
    let sql = |code: &str| bench.said("execute_sql_code", json!({ "code": code }));
    assert_eq!(sql("select * from t -- all"), "a,b\n1,\n2,\"x,\n;\"\n");
    assert_eq!(sql("update t set a = 5"), "done: 2 rows changed");
    assert!(
        sql("with recursive c(x) as (select 1 union all select x + 1 from c limit 5000) select x from c")
            .contains("more than 1000 rows")
    );
    for (code, words) in [
        ("", "there is no statement"),
        ("-- nothing", "there is no statement"),
        ("\\! id", "are not SQL"),
        ("attach '/tmp/x' as y", "not authorized"),
        ("select load_extension('x')", "not authorized"),
        ("select 1; drop table t", "one statement"),
        ("selec", "syntax error"),
    ] {
        bench.fails("execute_sql_code", json!({ "code": code }), words);
    }
    Bench::new().fails("execute_sql_code", json!({"code": "select 1"}), "set the variable dsn");
    Bench::new().with("dsn", "odd:x").fails("execute_sql_code", json!({"code": "select 1"}), "cannot be used here");
    Bench::new().with("dsn", "sqlite:none").fails("execute_sql_code", json!({"code": "select 1"}), "does not exist");
}

/// A server that answers each request by its first line, until the program ends.
#[expect(clippy::disallowed_methods, reason = "the server of a test has a thread of its own")]
fn server(answer: fn(&str) -> String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut bytes = vec![0; 16 << 10];
            let count = stream.read(&mut bytes).unwrap_or(0);
            let request = String::from_utf8_lossy(&bytes[..count]).into_owned();
            let _ = stream.write_all(answer(&request).as_bytes());
        }
    });
    format!("http://{address}")
}

fn ok(kind: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

#[test]
fn pages_are_read_as_text() {
    if !is_here("python3") {
        return;
    }
    let url = server(|request| match request.split(' ').nth(1).unwrap_or_default() {
        "/page" => ok(
            "text/html; charset=utf-8",
            "<html><head><title>T</title><style>x{}</style></head><body><h1>Héad</h1><p>a&amp;b <a href='https://x.org/y'>link</a></p><script>alert(1)</script><ul><li>one<li>two</ul>\u{1b}[0m</body></html>",
        ),
        "/broken" => ok("text/html", &"<div><script><p>".repeat(2000)),
        "/odd" => ok("text/plain; charset=none-such", "plain\n"),
        "/binary" => ok("image/png", "a\0b"),
        "/giant" => ok("text/plain", &"z".repeat(5 << 20)),
        "/cut" => "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort".to_owned(),
        "/away" => "HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n".to_owned(),
        "/round" => "HTTP/1.1 302 Found\r\nLocation: /round\r\nContent-Length: 0\r\n\r\n".to_owned(),
        _ => "HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\n\r\nwhat?".to_owned(),
    });
    let bench = Bench::new().with("allow_private_addresses", "true");
    let read = |path: &str| json!({ "url": format!("{url}{path}") });
    let page = bench.said("fetch_url_via_curl", read("/page"));
    assert!(
        page.contains("# Héad") && page.contains("a&b link (https://x.org/y)") && page.contains("- one\n"),
        "{page}"
    );
    assert!(!page.contains("alert") && !page.contains("x{}") && page.contains("\\x1b[0m"), "{page}");
    assert_eq!(bench.said("fetch_url_via_curl", read("/broken")), "(the page has no text)");
    assert_eq!(bench.said("fetch_url_via_curl", read("/odd")), "plain\n");
    bench.fails("fetch_url_via_curl", read("/binary"), "is no text");
    bench.fails("fetch_url_via_curl", read("/giant"), "more than 4194304 bytes");
    bench.fails("fetch_url_via_curl", read("/cut"), "could not read");
    bench.fails("fetch_url_via_curl", read("/away"), "is not allowed");
    bench.fails("fetch_url_via_curl", read("/round"), "302");
    bench.fails("fetch_url_via_curl", read("/none"), "answered 404");
    for url in
        ["file:///etc/passwd", "ftp://x/y", "http://", "http://[", "nonsense", "http://a\nb/", "http://exa mple/"]
    {
        let called = bench.call("fetch_url_via_curl", &json!({ "url": url }));
        assert!(called.failed && !called.value.to_string().contains("Traceback"), "{url}: {}", called.value);
    }
    let guarded = Bench::new();
    guarded.fails("fetch_url_via_curl", read("/page"), "is a private address");
    guarded.fails("fetch_url_via_curl", json!({"url": "http://169.254.169.254/latest"}), "is a private address");
}

#[test]
fn searches_ask_their_servers() {
    if !is_here("python3") {
        return;
    }
    let url = server(|request| {
        let (line, body) = (request.lines().next().unwrap_or_default(), request.to_ascii_lowercase());
        match line.split([' ', '?']).nth(1).unwrap_or_default() {
            "/arxiv" if line.contains("all%3Aq+%26&max_results=2") => ok(
                "application/atom+xml",
                "<feed xmlns='http://www.w3.org/2005/Atom'><entry><id>http://arxiv.org/abs/1</id><title>A\n title</title><published>2020-01-02T00:00:00Z</published><summary> S </summary><author><name>N</name></author></entry></feed>",
            ),
            "/bomb" => ok("application/xml", "<!DOCTYPE x [<!ENTITY a 'b'>]><x>&a;</x>"),
            "/wiki" => ok(
                "application/json",
                r#"{"query":{"pages":{"2":{"title":"B","index":2,"extract":"later"},"1":{"title":"A","index":1,"fullurl":"https://w/A","extract":"first"}}}}"#,
            ),
            "/tavily" if body.contains("authorization: bearer k1") => ok(
                "application/json",
                r#"{"answer":"It is.","results":[{"title":"T","url":"https://t","content":"C"},5]}"#,
            ),
            "/perplexity" if body.contains("authorization: bearer k2") => {
                ok("application/json", r#"{"choices":[{"message":{"content":"Yes"}}],"citations":["https://p"]}"#)
            }
            "/searx" => ok("application/json", r#"{"results":[{"title":"X","url":"https://x","content":"found"}]}"#),
            "/list" => ok("application/json", "[1]"),
            _ => ok("text/html", "<html>"),
        }
    });
    let of = |name: &str, path: &str| Bench::new().with(name, &format!("{url}{path}"));
    let query = || json!({"query": "q &"});
    let arxiv = of("arxiv_url", "/arxiv").with("arxiv_max_results", "2").said("search_arxiv", query());
    assert_eq!(arxiv, "# A title\nN; 2020-01-02\nhttp://arxiv.org/abs/1\nS");
    of("arxiv_url", "/bomb").fails("search_arxiv", query(), "a document type");
    of("arxiv_url", "/none").fails("search_arxiv", query(), "is not XML");
    assert_eq!(
        of("wikipedia_url", "/wiki").said("search_wikipedia", query()),
        "# A\nhttps://w/A\nfirst\n\n# B\n\nlater"
    );
    of("wikipedia_url", "/none").fails("search_wikipedia", query(), "unknown form");
    of("wikipedia_url", "/list").fails("search_wikipedia", query(), "unknown form");
    let tavily = of("tavily_url", "/tavily");
    tavily.fails("web_search_tavily", query(), "no key is configured");
    let tavily = tavily.with("tavily_api_key", "k1");
    assert_eq!(tavily.said("web_search_tavily", query()), "It is.\n\n# T\nhttps://t\nC");
    assert_eq!(tavily.said("web_search_loki", query()), "It is.\n\n# T\nhttps://t\nC");
    let perplexity = of("perplexity_url", "/perplexity").with("perplexity_api_key", "k2");
    assert_eq!(perplexity.said("web_search_perplexity", query()), "Yes\n[1] https://p");
    of("perplexity_url", "/list").with("perplexity_api_key", "k2").fails(
        "web_search_perplexity",
        query(),
        "unknown form",
    );
    assert_eq!(of("search_url", "/searx").said("web_search_loki", query()), "# X\nhttps://x\nfound");
    of("search_url", "/none").fails("web_search_loki", query(), "not JSON");
    Bench::new().fails("web_search_loki", query(), "no search is configured");
}

#[test]
fn the_demonstrations_show_their_arguments() {
    let arguments =
        json!({"boolean": true, "string": "s", "string_enum": "foo", "integer": 1, "number": 1.5, "array": ["a", "b"]});
    for (tool, program) in [("demo_py", "python3"), ("demo_sh", "bash"), ("demo_ts", "tsx")] {
        if is_here(program) {
            let said = Bench::new().said(tool, arguments.clone());
            assert!(said.contains("string: s\n") && said.contains("string_enum: foo\n"), "{tool}: {said}");
        }
    }
}

#[test]
fn tools_that_change_or_run_things_are_guarded() {
    let guarded = |name: &&str| {
        let file = atlas_toolbox::files(name).first().expect("a tool");
        let path = Path::new(file.name);
        let language = path.extension().and_then(|ending| atlas_tools::Language::of_ending(ending.to_str()?));
        let declared =
            atlas_tools::declare(language.expect("a language"), atlas_tools::Scope::File { stem: name }, file.source);
        let declared = declared.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(declared.tools[0].name, **name);
        !declared.guarded.is_empty()
    };
    let names: Vec<&str> = atlas_toolbox::names().filter(guarded).collect();
    assert_eq!(names, ["execute_command", "execute_py_code", "execute_sql_code", "fs_patch", "fs_write"]);
}
