//! `atlasctl completion`.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::arguments::Arguments;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;

/// For which shell.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// The shell that reads the script.
    shell: Shell,
}

pub(crate) fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut Arguments::command(), "atlasctl", &mut script);
    context.print(&String::from_utf8_lossy(&script))?;
    context.next(match options.shell {
        Shell::Bash => "next: source <(atlasctl completion bash)",
        Shell::Zsh => "next: atlasctl completion zsh > \"${fpath[1]}/_atlasctl\"",
        Shell::Fish => "next: atlasctl completion fish > ~/.config/fish/completions/atlasctl.fish",
        _ => "next: have the shell read this",
    });
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shell_gets_a_script_with_every_verb() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Arguments::command(), "atlasctl", &mut script);
            let script = String::from_utf8(script).expect("text");
            for verb in ["deploy", "explain-error", "cordon", "versions"] {
                assert!(script.contains(verb), "{shell}: {verb}");
            }
        }
    }
}
