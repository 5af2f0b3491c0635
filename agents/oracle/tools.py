"""The tool of the agent: reading the history of a project. Nothing of it runs in a shell."""

import os
import shlex
import sys

# Packing adds this part of the tools for files.
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "functions", "tools"))

import _atlas

COMMANDS = ("blame", "branch", "diff", "grep", "log", "ls-files", "ls-tree", "rev-parse", "shortlog", "show", "status", "tag")
# Options that write files, run programs, or read outside the project.
REFUSED = (
    "--output", "--open-files-in-pager", "--ext-diff", "--textconv", "--no-index", "--exec", "--git-dir", "--work-tree", "--contents",
    "--ignore-revs-file", "--file", "--edit-description", "--upload-pack",
)
# What `branch` and `tag` show; everything else of them could change something.
LISTS = ("-a", "-r", "-v", "-vv", "-l", "--list", "--all", "--remotes", "--merged", "--no-merged", "--contains")


def run_read_only(command: str) -> str:
    """Runs a command of git that only reads, such as "git log -5 --oneline -- src", in the project.

    Args:
        command: The command, without redirections and pipes
    """
    try:
        words = shlex.split(command)
    except ValueError as error:
        _atlas.fail(f"the command cannot be read: {error}")
    if words[:1] == ["git"]:
        words = words[1:]
    if not words or words[0] not in COMMANDS:
        _atlas.fail("only commands of git that read are run: " + ", ".join(COMMANDS))
    name, options = words[0], words[1:]
    for option in options:
        short = option.startswith("-") and not option.startswith("--")
        if any(option == refused or option.startswith(f"{refused}=") for refused in REFUSED) or short and option[1:2] in ("O", "C", "c", "f"):
            _atlas.fail(f"the option {_atlas.shown(option)!r} is refused")
        if option.startswith(("/", "../", "~")) or "/../" in option:
            _atlas.fail("paths outside the project are refused")
        # An abbreviation of an option is that option.
        if option.startswith("--") and any(refused.startswith(option.split("=")[0]) for refused in REFUSED):
            _atlas.fail(f"the option {_atlas.shown(option)!r} is refused; write it in full if it is another one")
        if any(sign in option for sign in "\0\n") or option in ("|", ">", ">>", "<", ";", "&&", "||", "&"):
            _atlas.fail("redirections, pipes and further commands are refused")
    if name in ("branch", "tag") and any(option not in LISTS for option in options):
        _atlas.fail(f"git {name} only lists here: " + ", ".join(LISTS))
    harmless = ["--no-pager", "-c", "core.fsmonitor=false", "-c", "core.pager=cat", "-c", "diff.external=", "-c", "core.hooksPath=/dev/null"]
    extra = ["--no-ext-diff", "--no-textconv"] if name in ("diff", "log", "show") else ["--no-textconv"] if name == "blame" else []
    status, text = _atlas.run(["git", *harmless, name, *extra, *options], environment={**os.environ, "GIT_OPTIONAL_LOCKS": "0"})
    if status is None:
        return f"{text}\n[ended after {_atlas.SECONDS_MAX} s]"
    return text if status == 0 and text else f"{text}\n[exit status {status}]".lstrip("\n")
