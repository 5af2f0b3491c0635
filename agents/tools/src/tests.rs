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
