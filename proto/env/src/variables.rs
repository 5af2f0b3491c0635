//! Environment variables of options: one rule for all programs.

use std::ffi::{OsStr, OsString};

use clap::Command;
use clap::builder::Resettable;

/// A command line for which an empty environment variable counts as unset. Templates of containers and services set variables to nothing.
pub fn empty_is_unset(command: Command) -> Command {
    unset(command, &|name| std::env::var_os(name))
}

fn unset(command: Command, variable: &dyn Fn(&OsStr) -> Option<OsString>) -> Command {
    let is_empty = |name: &OsStr| variable(name).is_some_and(|value| value.is_empty());
    command
        .mut_args(|arg| {
            let ignored = arg.get_env().is_some_and(is_empty);
            if ignored { arg.env(Resettable::<clap::builder::OsStr>::Reset) } else { arg }
        })
        .mut_subcommands(|command| unset(command, variable))
}

#[cfg(test)]
mod tests {
    use clap::Arg;

    use super::*;

    #[test]
    fn only_empty_variables_are_ignored_in_every_verb() {
        let arg = |name: &'static str| Arg::new(name).long(name).env(name);
        let command =
            Command::new("x").arg(arg("a")).arg(arg("b")).subcommand(Command::new("y").arg(arg("a")).arg(arg("c")));
        let value = |name: &OsStr| (name != "c").then(|| if name == "a" { "".into() } else { " ".into() });
        let left = unset(command, &value);
        let of = |command: &Command| {
            let names = command.get_arguments().filter_map(|arg| arg.get_env()?.to_str().map(str::to_owned));
            names.collect::<Vec<_>>()
        };
        assert_eq!(of(&left), ["b"]);
        assert_eq!(of(left.find_subcommand("y").expect("a verb")), ["c"]);
    }
}
