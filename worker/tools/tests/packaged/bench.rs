//! A workspace with hostile files, and tool calls in it.

use std::ffi::OsStr;
use std::fs;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use atlas_tool_runner::{CallLimits, CallResult, Owner, Script, ScriptSurroundings, Tool};
use serde_json::Value;
use tempfile::TempDir;

pub(crate) fn is_here(program: &str) -> bool {
    let found = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    let found = found.is_ok_and(|status| status.success());
    if !found {
        atlas_notice::skip(format_args!("packaged tools need {program}, which is not here"));
    }
    found
}

/// A workspace beside a file that no tool may reach, with all packaged tools.
pub(crate) struct Bench {
    pub(crate) root: TempDir,
    variables: Vec<(String, String)>,
}

#[expect(clippy::needless_pass_by_value, reason = "tests write values in place")]
impl Bench {
    pub(crate) fn new() -> Self {
        let bench = Self { root: TempDir::new().expect("a folder"), variables: Vec::new() };
        for folder in ["work/src", "work/.git", "scratch", "functions/tools", "bin"] {
            fs::create_dir_all(bench.root.path().join(folder)).expect("a folder");
        }
        for name in atlas_toolbox::names() {
            for file in atlas_toolbox::files(name) {
                fs::write(bench.root.path().join("functions/tools").join(file.name), file.source).expect("a file");
            }
        }
        let part = atlas_toolbox::part("_graph").expect("a part");
        fs::write(bench.root.path().join("functions/tools").join(part.name), part.source).expect("a file");
        fs::write(bench.root.path().join("secret"), "top secret").expect("a file");
        bench.write("src/a.py", "one\ntwo\nthree\n");
        bench.write(".git/config", "one");
        bench.write("binary", "a\0b");
        bench.write("colors", "x\u{1b}[31mred\u{7}\n");
        bench.write("giant", &"y".repeat(3 << 20));
        bench.write("na\nme", "");
        fs::create_dir(bench.path("odd")).expect("a folder");
        fs::write(bench.path("odd").join(OsStr::from_bytes(b"\xff")), "").expect("a file");
        symlink("src", bench.path("inner")).expect("a link");
        symlink("..", bench.path("up")).expect("a link");
        symlink("../secret", bench.path("out")).expect("a link");
        symlink("loop", bench.path("loop")).expect("a link");
        nix::unistd::mkfifo(&bench.path("pipe"), nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
        bench
    }

    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.path().join("work").join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).expect("a file");
    }

    /// A program that tools find before others.
    pub(crate) fn program(&self, name: &str, text: &str) -> PathBuf {
        let path = self.root.path().join("bin").join(name);
        fs::write(&path, format!("#!/bin/sh\n{text}\n")).expect("a file");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a mode");
        path
    }

    pub(crate) fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).expect("a file")
    }

    pub(crate) fn tool(&self, name: &str) -> Tool {
        let file = atlas_toolbox::files(name).first().expect("a tool");
        let path = self.root.path().join("functions/tools").join(file.name);
        self.prepare(&path, Owner::Shared).remove(0)
    }

    /// A tool of a bundled agent.
    pub(crate) fn tool_of(&self, agent: &str, name: &str) -> Tool {
        let owner = Owner::Agent { name: agent.to_owned(), folder: self.root.path().to_owned() };
        let mut tools = self.prepare(&self.copy_tools_of(agent), owner);
        tools.retain(|tool| tool.declaration.name == name);
        tools.remove(0)
    }

    /// What a tool says about each of many arguments, all in one process; none for a call that succeeds.
    fn refusals(&self, tool: (&str, &str), arguments: &[Value]) -> Vec<Option<String>> {
        const CALLS: &str = "import contextlib, importlib, io, json, sys\nsys.path.insert(0, sys.argv[1])
run, refusals = getattr(importlib.import_module(sys.argv[2]), sys.argv[3]), []
for arguments in json.load(sys.stdin):
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            run(**arguments)
        refusals.append(None)
    except SystemExit:
        refusals.append(said.getvalue())
print(json.dumps(refusals))";
        let root = self.root.path().display().to_string();
        let said = self.python(CALLS, &[&root, tool.0, tool.1], &serde_json::json!(arguments).to_string());
        serde_json::from_str(&said).expect("JSON")
    }

    /// A tool refuses each argument with its words. The tool is that of a file, or a function of a bundled agent.
    #[track_caller]
    pub(crate) fn refuses(&self, tool: (&str, &str), table: &[(Value, &str)]) {
        let mut module = tool;
        if tool.1 != "run" {
            self.copy_tools_of(tool.0);
            module.0 = "tools";
        }
        let arguments: Vec<Value> = table.iter().map(|(argument, _)| argument.clone()).collect();
        for ((argument, words), refusal) in table.iter().zip(self.refusals(module, &arguments)) {
            assert!(refusal.as_ref().is_some_and(|said| said.contains(words)), "{tool:?} {argument}: {refusal:?}");
        }
    }

    /// What a program in Python prints, beside the parts of tools and with the variables.
    #[track_caller]
    pub(crate) fn python(&self, code: &str, arguments: &[&str], given: &str) -> String {
        let mut python = Command::new("python3");
        python.args(["-c", code]).args(arguments).current_dir(self.path("."));
        python.env("PYTHONPATH", self.root.path().join("functions/tools"));
        for (name, value) in &self.variables {
            python.env(format!("LLM_AGENT_VAR_{}", name.to_uppercase()), value);
        }
        let mut python = python.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("python runs");
        python.stdin.take().expect("a pipe").write_all(given.as_bytes()).expect("it reads");
        let output = python.wait_with_output().expect("it ends");
        assert!(output.status.success(), "{code} ends with an error");
        String::from_utf8(output.stdout).expect("text")
    }

    /// The scripts of a bundled agent.
    pub(crate) fn copy_scripts_of(&self, agent: &str) -> PathBuf {
        let folder = self.root.path().join("scripts");
        fs::create_dir_all(&folder).expect("a folder");
        for entry in fs::read_dir(source_of(agent).join("scripts")).expect("a folder").flatten() {
            fs::copy(entry.path(), folder.join(entry.file_name())).expect("a file");
        }
        folder
    }

    fn copy_tools_of(&self, agent: &str) -> PathBuf {
        let path = self.root.path().join("tools.py");
        fs::copy(source_of(agent).join("tools.py"), &path).expect("a file");
        path
    }

    fn prepare(&self, path: &Path, owner: Owner) -> Vec<Tool> {
        let mut programs = self.root.path().join("bin").into_os_string();
        programs.push(":");
        programs.push(std::env::var_os("PATH").unwrap_or_default());
        let surroundings = ScriptSurroundings {
            root: self.root.path().to_owned(),
            functions: self.root.path().join("functions"),
            workspace: self.root.path().join("work"),
            scratch: self.root.path().join("scratch"),
            inherited: vec![("PATH".into(), programs)],
            variables: self.variables.iter().cloned().collect(),
            auto_confirm: false,
        };
        let script = Script::read(path, owner).expect("declarations");
        script.prepare(&Arc::new(surroundings)).expect("a program")
    }

    pub(crate) fn call(&self, name: &str, arguments: &Value) -> CallResult {
        call(&self.tool(name), arguments)
    }

    /// The text of a call that succeeds.
    #[track_caller]
    pub(crate) fn said(&self, name: &str, arguments: Value) -> String {
        said(&self.tool(name), &arguments)
    }

    /// A call fails, and its error has these words.
    #[track_caller]
    pub(crate) fn fails(&self, name: &str, arguments: Value, words: &str) {
        fails(&self.tool(name), &arguments, words);
    }
}

fn source_of(agent: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../agents/bundled").join(agent)
}

fn call(tool: &Tool, arguments: &Value) -> CallResult {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(tool.call(arguments, &CallLimits::default()))
}

/// The text of a call that succeeds.
#[track_caller]
pub(crate) fn said(tool: &Tool, arguments: &Value) -> String {
    let called = call(tool, arguments);
    assert!(!called.failed, "{} {arguments}: {}", tool.declaration.name, called.value);
    called.value["output"].as_str().map_or_else(|| called.value.to_string(), str::to_owned)
}

#[track_caller]
pub(crate) fn fails(tool: &Tool, arguments: &Value, words: &str) {
    let (name, called) = (&tool.declaration.name, call(tool, arguments));
    let text = called.value.to_string();
    assert!(called.failed && text.contains(words) && !text.contains("Traceback"), "{name} {arguments}: {text}");
}
