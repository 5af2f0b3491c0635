//! Tests of declarations.

mod bash;
mod hostile;
mod python;
mod typescript;

use expect_test::Expect;

use crate::{Language, Scope, declare};

/// The tools of a file named `sample_tool`, one a line, or the error.
fn shown(language: Language, scope: Scope<'_>, source: &str) -> String {
    let declared = match declare(language, scope, source) {
        Ok(declared) => declared,
        Err(error) => return format!("{}: {error}\n", error.fault.word()),
    };
    let mut out = String::new();
    if declared.instructions {
        out.push_str("with instructions\n");
    }
    if !declared.guarded.is_empty() {
        out.push_str(&format!("guarded: {}\n", declared.guarded.join(" ")));
    }
    for tool in &declared.tools {
        let function = if tool.function == tool.name { String::new() } else { format!(" = {}", tool.function) };
        out.push_str(&format!("{}{function}: {:?}\n", tool.name, tool.description));
        for (name, schema) in tool.schema()["properties"].as_object().into_iter().flatten() {
            let required = tool.parameters.iter().any(|parameter| parameter.name == *name && parameter.required);
            out.push_str(&format!("  {name}{} {schema}\n", if required { "!" } else { "" }));
        }
    }
    out
}

#[track_caller]
fn check(language: Language, source: &str, expected: &Expect) {
    expected.assert_eq(&shown(language, Scope::File { stem: "sample_tool" }, source));
}

#[track_caller]
fn check_agent(language: Language, source: &str, expected: &Expect) {
    expected.assert_eq(&shown(language, Scope::Agent, source));
}

#[test]
fn a_comment_guards_tools() {
    let python = "# @guard\ndef run():\n    'D.'\n";
    let typescript = "// @guard\n/** D. */\nexport function run() {}\n";
    for (language, source) in [(Language::Python, python), (Language::TypeScript, typescript)] {
        let expected = "guarded: sample_tool\nsample_tool = run: \"D.\"\n";
        assert_eq!(shown(language, Scope::File { stem: "sample_tool" }, source), expected);
    }
    let several = "def a():\n    'D.'\n\ndef b():\n    'D.'\n\n# @guard b\n# @guarded a\n";
    check_agent(
        Language::Python,
        several,
        &expect_test::expect![[r#"
        guarded: b
        a: "D."
        b: "D."
    "#]],
    );
    check_agent(
        Language::Python,
        "# @guard c\ndef a():\n    'D.'\n",
        &expect_test::expect![[r#"
        annotation: line 1, column 1: @guard names "c", which is no tool of the file
    "#]],
    );
    let bash = "# @meta guard two\n\n# @cmd One.\none() { :; }\n\n# @cmd Two.\n# @option --x! X\ntwo() { :; }\n";
    check_agent(
        Language::Bash,
        bash,
        &expect_test::expect![[r#"
        guarded: two
        one: "One."
        two: "Two."
          x! {"type":"string","description":"X"}
    "#]],
    );
}
