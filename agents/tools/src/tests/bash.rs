//! Tools in Bash.

use expect_test::expect;

use super::{check, check_agent};
use crate::Language::Bash;

#[test]
fn options_and_flags_are_parameters() {
    check(
        Bash,
        r#"#!/usr/bin/env bash
# @describe First line.
# Second line.
# @meta require-tools jq
# @env LLM_OUTPUT=/dev/stdout The output path
# @option --text! A text
# @option --long-name=3 <INT> A number
# @option --ratio <NUM>
# @option --many+ Several
# @option -c --choice[a|b|c] One of three
# @option --computed[`_choices`] One of some
# @flag --verbose* More
# @option --help Own help
# @arg rest* For people

_choices() { :; }
main() { :; }
"#,
        &expect![[r#"
            sample_tool: "First line.\nSecond line."
              text! {"type":"string","description":"A text"}
              long_name {"type":"integer","description":"A number"}
              ratio {"type":"number"}
              many! {"type":"array","description":"Several","items":{"type":"string"}}
              choice {"type":"string","description":"One of three","enum":["a","b","c"]}
              computed {"type":"string","description":"One of some"}
              verbose {"type":"boolean","description":"More"}
        "#]],
    );
}

#[test]
fn an_agent_has_a_tool_for_each_subcommand() {
    check_agent(
        Bash,
        "# @cmd\n_instructions() { :; }\n# @cmd Reads\n# @option --long-name! Name\nread-file() { :; }\nhelper() { :; }\n# @cmd Gets\ngetIt() { :; }\n",
        &expect![[r#"
            with instructions
            read_file = read-file: "Reads"
              long_name! {"type":"string","description":"Name"}
            getIt: "Gets"
        "#]],
    );
}

#[test]
fn refusals() {
    let cases = [
        (
            "main() { :; }\n",
            expect![[r#"
            missing-description: "sample_tool" has no description: write it after @describe at the top of the file, or after @cmd of a subcommand
        "#]],
        ),
        (
            "# @describe D.\n# @option !wrong\nmain() { :; }\n",
            expect![[r#"
            annotation: line 2, column 1: syntax error at line 2
        "#]],
        ),
        (
            "# @describe D.\n# @option --a\n# @option --a\nmain() { :; }\n",
            expect![[r#"
            annotation: line 3, column 1: @option(line 3) has '--a' already exists at line 2
        "#]],
        ),
        (
            "# @cmd One\na() { :; }\n# @cmd Two\nb() { :; }\n",
            expect![[r#"
            entry: a file in a folder of tools is one tool: only the file of an agent has subcommands
        "#]],
        ),
    ];
    for (source, expected) in cases {
        check(Bash, source, &expected);
    }
    check_agent(
        Bash,
        "# @cmd Inner\ngroup::inner() { :; }\n",
        &expect![[r#"
            annotation: line 2, column 1: group::inner(line 2) lack of parent command
        "#]],
    );
}
