//! The packaged tools and those of bundled agents, called as agents call them, also with hostile arguments. Python is needed; without
//! it the tests are skipped.

#![cfg(test)]

mod bench;
mod files;
mod oracle;
mod sql;
mod web;

use std::path::Path;

use serde_json::json;

use crate::bench::{Bench, is_here};

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
