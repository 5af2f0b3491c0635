//! `atlasctl completion`.

use clap_complete::Shell;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;

/// Options of `atlasctl completion`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Shell to complete in.
    shell: Shell,
}

pub(crate) fn run(context: &Context, options: &Options, commands: clap::Command) -> Result<Exit, Failure> {
    context.print(&script(options.shell, commands))?;
    context.next(match options.shell {
        Shell::Bash => "next: source <(atlasctl completion bash)",
        Shell::Zsh => "next: atlasctl completion zsh > \"${fpath[1]}/_atlasctl\"",
        Shell::Fish => "next: atlasctl completion fish > ~/.config/fish/completions/atlasctl.fish",
        _ => "next: load this in your shell",
    });
    Ok(Exit::Done)
}

/// The script that clap generates for the commands, followed by our script, which completes names from the cluster.
fn script(shell: Shell, mut commands: clap::Command) -> String {
    let mut generated = Vec::new();
    clap_complete::generate(shell, &mut commands, "atlasctl", &mut generated);
    let commands = String::from_utf8_lossy(&generated).into_owned();
    match shell {
        Shell::Bash => commands + BASH,
        // Zsh loads the file as the function `_atlasctl`, so the generated function gets another name.
        Shell::Zsh => format!("{}{ZSH}{ZSH_LAST}", commands_of_zsh(&commands)),
        Shell::Fish => commands + FISH,
        _ => commands,
    }
}

/// Renames the generated function, and removes the lines that call it.
fn commands_of_zsh(script: &str) -> String {
    let script = script.rsplit_once("\nif [ \"$funcstack[1]\"").map_or(script, |(before, _)| before);
    script.replace("\n_atlasctl() {", "\n_atlasctl_command_line() {")
}

/// Bash splits words at `:` and `@` and replaces only the last part, so this script splits the line itself.
const BASH: &str = r#"
_atlasctl_names() {
    _atlasctl "$@"
    local line="${COMP_LINE:0:COMP_POINT}" words last name
    read -ra words <<< "$line"
    [[ $line == *[[:space:]] ]] && words+=("")
    last="${words[${#words[@]}-1]}"
    [[ ${#words[@]} -lt 2 || $last == -* ]] && return 0
    local names=() kept="${last%"${last##*[$COMP_WORDBREAKS]}"}"
    while IFS= read -r name; do
        names+=("${name#"$kept"}")
    done < <("${words[0]}" __complete -- "${words[@]:1}" 2> /dev/null)
    [[ ${#names[@]} -eq 0 ]] || COMPREPLY=("${names[@]}")
    return 0
}
complete -F _atlasctl_names -o bashdefault -o default atlasctl
"#;

const ZSH: &str = r#"
_atlasctl() {
    local -a names
    if [[ $PREFIX != -* ]]; then
        names=(${(f)"$("${(Q)words[1]}" __complete -- "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2> /dev/null)"})
    fi
    if (( $#names )); then
        compadd -- $names
    else
        _atlasctl_command_line "$@"
    fi
}
"#;

const ZSH_LAST: &str = r#"
if [ "$funcstack[1]" = "_atlasctl" ]; then
    _atlasctl "$@"
else
    compdef _atlasctl atlasctl
fi
"#;

const FISH: &str = r#"
function __atlasctl_names
    set -l words (commandline -opc)
    command $words[1] __complete -- $words[2..-1] (commandline -ct) 2> /dev/null
end
complete -c atlasctl -n 'not string match -q -- "-*" (commandline -ct)' -a '(__atlasctl_names)'
"#;

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::arguments::Arguments;

    fn script(shell: Shell) -> String {
        super::script(shell, Arguments::command())
    }

    #[test]
    fn every_shell_gets_a_script_with_every_verb() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let script = script(shell);
            for verb in ["deploy", "explain-error", "cordon", "versions"] {
                assert!(script.contains(verb), "{shell}: {verb}");
            }
        }
    }
    #[test]
    fn scripts_ask_for_names() {
        let zsh = script(Shell::Zsh);
        assert!(zsh.starts_with("#compdef atlasctl\n"));
        for (defined, times) in
            [("\n_atlasctl() {", 1), ("\n_atlasctl_command_line() {", 1), ("compdef _atlasctl atlasctl", 1)]
        {
            assert_eq!(zsh.matches(defined).count(), times, "{defined}");
        }
        assert!(zsh.contains("__complete -- \"${(@Q)words[2,CURRENT-1]}\" \"${(Q)PREFIX}\""));
        let fish = script(Shell::Fish);
        assert!(fish.contains("__complete -- $words[2..-1] (commandline -ct)"));
        assert!(fish.ends_with("-a '(__atlasctl_names)'\n"));
        assert!(script(Shell::Bash).ends_with("complete -F _atlasctl_names -o bashdefault -o default atlasctl\n"));
    }
}
