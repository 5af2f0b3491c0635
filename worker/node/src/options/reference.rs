//! The reference page of the worker's options, generated from the table that parses them.

use std::fmt::Write;

use clap::{Arg, CommandFactory};
use expect_test::expect_file;

use super::Configuration;

const INTRODUCTION: &str = "\
# Options of the worker

Generated from the program by `cargo xtask fix`. Flags take precedence over the environment, the environment over the file (`--config FILE`,
TOML), the file over the default. Times are written `30s`, sizes `8MiB`. `--print-config` shows the result, `--check-config` only checks it.

| file | flag | environment | meaning |
|---|---|---|---|
";

#[test]
fn generated_reference_of_worker_options_is_fresh() {
    let mut page = INTRODUCTION.to_owned();
    for argument in Configuration::command().get_arguments() {
        page.push_str(&row(argument));
    }
    expect_file!["../../../../docs/reference/worker-options.md"].assert_eq(&page);
}

fn row(argument: &Arg) -> String {
    let key = argument.get_id().as_str();
    // Options for a single start are not allowed in the file.
    let of_one_start = ["config", "print_config", "check_config", "join_only"].contains(&key);
    let key = if of_one_start { String::new() } else { format!("`{}`", key.replace('_', "-")) };
    let flag = argument.get_long().unwrap_or_default();
    let value = argument.get_value_names().and_then(|names| names.first());
    let value =
        value.filter(|_| argument.get_action().takes_values()).map(|name| format!(" {name}")).unwrap_or_default();
    let variable = argument.get_env().map(|name| format!("`{}`", name.to_string_lossy())).unwrap_or_default();
    let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
    let mut row = String::new();
    writeln!(row, "| {key} | `--{flag}{value}` | {variable} | {help} |").expect("text grows");
    row.replace("on|off", "on\\|off")
}
