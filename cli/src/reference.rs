//! The reference page of the command line, generated from the definitions that parse it.

use std::fmt::Write;

use clap::{Command, CommandFactory};
use expect_test::expect_file;

use crate::arguments::Arguments;
use crate::exit;

#[test]
fn generated_reference_of_the_command_line_is_fresh() {
    let mut page = String::from(
        "# Command line\n\nGenerated from the program by `cargo xtask fix`; `atlasctl COMMAND --help` says the same.\n",
    );
    let mut root = Arguments::command();
    root.build();
    describe(&root, "atlasctl", &mut page);
    write!(page, "\n## Exit codes\n\n```text\n{}\n```\n", exit::TABLE.trim_start_matches("Exit codes:\n"))
        .expect("text grows");
    expect_file!["../../docs/reference/cli.md"].assert_eq(&page);
}

fn describe(command: &Command, path: &str, page: &mut String) {
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    write!(page, "\n## {path}\n\n{about}\n").expect("text grows");
    let ours = |argument: &&clap::Arg| {
        !argument.is_hide_set() && argument.get_id() != "help" && (path == "atlasctl" || !argument.is_global_set())
    };
    let rows: Vec<String> = command.get_arguments().filter(ours).map(row).collect();
    if !rows.is_empty() {
        write!(page, "\n| argument | meaning |\n|---|---|\n{}", rows.concat()).expect("text grows");
    }
    for child in command.get_subcommands().filter(|child| !child.is_hide_set()) {
        describe(child, &format!("{path} {}", child.get_name()), page);
    }
}

#[test]
fn no_verb_contradicts_itself() {
    Arguments::command().debug_assert();
}

#[test]
fn the_help_of_a_verb_ends_with_the_global_options() {
    let mut root = Arguments::command();
    root.build();
    let mut left = vec![root];
    while let Some(mut command) = left.pop() {
        let help = command.render_help().to_string();
        let is_head = |line: &&str| !line.starts_with(' ') && line.ends_with(':') && *line != "Exit codes:";
        assert_eq!(help.lines().rfind(is_head), Some("Global options:"), "{help}");
        left.extend(command.get_subcommands().cloned());
    }
}

fn row(argument: &clap::Arg) -> String {
    let meaning = argument.get_help().map(ToString::to_string).unwrap_or_default();
    let short = argument.get_short().map(|short| format!("-{short}, ")).unwrap_or_default();
    let form = argument.to_string().replace('|', "\\|");
    let values = argument.get_possible_values();
    let values = values.iter().filter(|value| !value.is_hide_set()).map(|value| format!("`{}`", value.get_name()));
    let values = Some(values.collect::<Vec<_>>().join(", ")).filter(|values| !values.is_empty());
    let default: Vec<_> = argument.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
    let default = Some(default.join(" ")).filter(|default| !default.is_empty() && default != "false");
    let environment = argument.get_env().map(|name| format!("environment `{}`", name.to_string_lossy()));
    let notes = [
        values.map(|values| format!("one of {values}")),
        default.map(|default| format!("default `{default}`")),
        environment,
    ];
    let notes = notes.into_iter().flatten().collect::<Vec<_>>().join("; ");
    let notes = if notes.is_empty() { notes } else { format!(" ({notes})") };
    format!("| `{short}{form}` | {meaning}{notes} |\n")
}
