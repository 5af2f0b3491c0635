//! Calls of real scripts. Python and Bash are needed; without one of them its tests are skipped.

#![cfg(test)]

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use atlas_tool_runner::{CallLimits, CallResult, Owner, Script, ScriptSurroundings};
use serde_json::{Value, json};
use tempfile::TempDir;

fn is_here(program: &str) -> bool {
    let found = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    let found = found.is_ok_and(|status| status.success());
    if !found {
        atlas_notice::skip(format_args!("tool calls need {program}, which is not here"));
    }
    found
}

fn surroundings(folder: &Path) -> ScriptSurroundings {
    ScriptSurroundings {
        root: folder.to_owned(),
        functions: folder.to_owned(),
        workspace: folder.to_owned(),
        scratch: folder.to_owned(),
        inherited: std::env::vars_os().filter(|(name, _)| name == "PATH").collect(),
        variables: [("my-var".to_owned(), "v".to_owned())].into(),
        auto_confirm: false,
    }
}

/// Calls the first tool of a file. None if its interpreter is missing.
fn call(program: &str, file: &str, source: &str, arguments: &Value, limits: &CallLimits) -> Option<CallResult> {
    is_here(program).then(|| {
        let folder = TempDir::new().expect("a folder");
        let path = folder.path().join(file);
        std::fs::write(&path, source).expect("a file");
        let script = Script::read(&path, Owner::Shared).expect("declarations");
        let tools = script.prepare(&Arc::new(surroundings(folder.path()))).expect("a program");
        assert_eq!(std::fs::read_to_string(&path).expect("the author's file"), source);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let called = runtime.block_on(tools[0].call(arguments, limits));
        let left = std::fs::read_dir(folder.path()).expect("the folder").flatten();
        let left = left.filter(|entry| entry.file_name().to_string_lossy().starts_with("result-"));
        assert_eq!(left.count(), 0);
        called
    })
}

#[track_caller]
fn check(program: &str, file: &str, source: &str, arguments: &Value, expected: &Value) {
    if let Some(called) = call(program, file, source, arguments, &CallLimits::default()) {
        assert_eq!(&called.value, expected, "{}", called.log);
    }
}

#[test]
fn results_of_python() {
    let check = |body: &str, expected: Value| {
        let source = format!("def run(a='x', n: int = 1):\n    \"\"\"D.\"\"\"\n    {body}\n");
        check("python3", "tool.py", &source, &json!({"a": "ü"}), &expected);
    };
    check("return {'a': a, 'n': n}", json!({"a": "ü", "n": 1}));
    check("return True", json!({"output": "True"}));
    check("return 1.5", json!(1.5));
    check("return None", json!("DONE"));
    check("print('log')", json!("DONE"));
    check("import os; return [os.environ.get('LLM_AGENT_VAR_MY_VAR'), os.environ.get('HOME')]", json!(["v", null]));
}

#[test]
fn an_asynchronous_function_is_awaited() {
    let source = "async def run():\n    '''D.'''\n    return 'done'\n";
    check("python3", "tool.py", source, &json!({}), &json!({"output": "done"}));
}

#[test]
fn a_value_of_bash_may_have_equals_signs() {
    let source = "# @describe D\n# @option --url! U\n# @option --many* M\nmain() { printf '%s' \"$argc_url ${argc_many[*]}\" >>\"$LLM_OUTPUT\"; }\n";
    let arguments = json!({"url": "http://x/?a=b&c=d=", "many": ["e=f", "-g=h"]});
    check("bash", "tool.sh", source, &arguments, &json!({"output": "http://x/?a=b&c=d= e=f -g=h"}));
}

#[test]
fn failures_are_values() {
    let source = "def run(how: str):\n    '''D.'''\n    import os, sys\n    if how == 'exit': print('why', file=sys.stderr); sys.exit(3)\n    os.kill(os.getpid(), 9)\n";
    let expected = json!({"tool_call_error": "Tool call 'tool' exited with code 3", "stderr": "why\n"});
    check("python3", "tool.py", source, &json!({"how": "exit"}), &expected);
    let expected = json!({"tool_call_error": "Tool call 'tool' was ended by signal 9"});
    check("python3", "tool.py", source, &json!({"how": "kill"}), &expected);
    let expected = json!({"tool_call_error": "The call 'tool' has invalid arguments: a=x"});
    check("python3", "tool.py", source, &json!("a=x"), &expected);
    let source = "#!/no/such/program\n# @describe D\nmain() { :; }\n";
    let called = call("bash", "tool.sh", source, &json!({}), &CallLimits::default());
    assert!(called.is_none_or(|called| called.failed && called.value["output"].is_string()));
}

#[test]
fn a_tool_that_hangs_ends_with_everything_it_started() {
    let limits = CallLimits { time: Duration::from_millis(300), ..CallLimits::default() };
    let source = "# @describe D\nmain() { sleep 600 & sleep 600; }\n";
    let Some(called) = call("bash", "tool.sh", source, &json!({}), &limits) else { return };
    assert_eq!(called.value, json!({"tool_call_error": "Tool call 'tool' took longer than 0.3 s and was ended"}));
}

#[test]
fn floods_are_cut() {
    let limits = CallLimits { result_bytes: 1000, stream_bytes: 100, ..CallLimits::default() };
    let source = "# @describe D\nmain() { for ((i = 0; i < 20000; i++)); do echo line $i; done; printf '%2000s' x >>\"$LLM_OUTPUT\"; }\n";
    let Some(called) = call("bash", "tool.sh", source, &json!({}), &limits) else { return };
    assert_eq!(called.value, json!({"tool_call_error": "Tool call 'tool': the result is larger than 1000 bytes"}));
    assert!(called.log.len() <= 200 && called.log.ends_with("line 19999\n"), "{}", called.log);
}

#[test]
fn guards_refuse_unless_they_are_off() {
    let source = "# @describe D\n# @option --path!\nmain() {\n  source \"$LLM_PROMPT_UTILS_FILE\"\n  guard_path \"$argc_path\" \"write $argc_path\"\n  echo passed >>\"$LLM_OUTPUT\"\n}\n";
    check("bash", "tool.sh", source, &json!({"path": "inside/x"}), &json!({"output": "passed\n"}));
    let Some(called) = call("bash", "tool.sh", source, &json!({"path": "/etc/x"}), &CallLimits::default()) else {
        return;
    };
    assert!(
        called.failed
            && called.value["stderr"].as_str().is_some_and(|text| text.contains("not confirmed: write /etc/x"))
    );
}
