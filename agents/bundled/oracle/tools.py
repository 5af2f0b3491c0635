"""The tool of the agent: reading the history of a project. Nothing of it runs in a shell, or runs a program that the project names."""

import os
import re
import shlex
import sys

# Packing adds this part of the tools for files.
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "functions", "tools"))

import _atlas

# The options of each command: only those that neither write files, nor run programs, nor read files that they name. Any of them
# may have a value. Those of one letter follow as a pattern: in a row only where none of them takes a value.
DIFF = """patch no-patch raw numstat shortstat stat summary name-only name-status compact-summary check no-color word-diff unified
    minimal patience histogram diff-algorithm ignore-all-space ignore-space-change ignore-space-at-eol ignore-blank-lines
    ignore-cr-at-eol function-context find-renames find-copies no-renames diff-filter pickaxe-all pickaxe-regex full-index abbrev
    relative text exit-code quiet cc inter-hunk-context no-prefix"""
COMMITS = """oneline graph decorate no-decorate all branches tags remotes follow merges no-merges first-parent reverse since after
    until before author committer grep all-match invert-grep max-count skip pretty format abbrev-commit no-abbrev-commit date
    date-order author-date-order topo-order regexp-ignore-case extended-regexp fixed-strings perl-regexp left-right left-only
    right-only cherry cherry-pick cherry-mark ancestry-path full-history walk-reflogs show-pulls boundary no-walk source parents
    children not exclude glob min-parents max-parents no-notes"""
DIFF_SHORT = r"-[pusbwaRWrtz]|-U\d+|-[SGI].*|-[MCB][\d%/]*|-l\d+"
COMMITS_SHORT = rf"{DIFF_SHORT}|-\d+|-n\d*|-[mcgiEFPq]|-L.*"
LISTS = "all remotes merged no-merged contains list"
COMMANDS = {
    "blame": (
        "root show-name show-email show-number date porcelain line-porcelain incremental first-parent reverse since abbrev minimal ignore-rev",
        r"-[lstfnewbcpk]+|-L.*|-[MC]\d*",
    ),
    "branch": (LISTS, r"-[arl]|-vv?"),
    "diff": (f"{DIFF} cached staged merge-base", DIFF_SHORT),
    "grep": (
        """ignore-case word-regexp invert-match count files-with-matches name-only files-without-match line-number column only-matching
        extended-regexp basic-regexp perl-regexp fixed-strings cached untracked exclude-standard no-exclude-standard text max-depth
        max-count context after-context before-context show-function function-context heading break full-name all-match and or not
        quiet null recursive no-recursive threads""",
        r"-[iIwvEGPFnlLchHopWaqrz]+|-[ABCm]\d*|-\d+|-e.*",
    ),
    "log": (f"{DIFF} {COMMITS}", COMMITS_SHORT),
    "ls-files": (
        """cached deleted modified others ignored stage unmerged killed directory no-empty-directory eol full-name error-unmatch
        exclude exclude-standard deduplicate abbrev format""",
        r"-[cdmosktiuvz]+",
    ),
    "ls-tree": ("name-only name-status long full-name full-tree abbrev object-only format", r"-[rtdlz]+"),
    "rev-parse": (
        """short abbrev-ref verify symbolic symbolic-full-name show-toplevel show-prefix is-inside-work-tree is-bare-repository
        is-shallow-repository all branches tags remotes quiet""",
        r"-q",
    ),
    "shortlog": (f"{COMMITS} summary numbered email group", rf"{COMMITS_SHORT}|-[snec]+"),
    "show": (f"{DIFF} {COMMITS}", COMMITS_SHORT),
    "status": (
        """short branch porcelain long untracked-files ignored show-stash ahead-behind no-ahead-behind renames no-renames
        find-renames""",
        r"-[sbz]+|-u(no|normal|all)?",
    ),
    "tag": (LISTS, r"-l|-n\d*"),
}
# These convert files of the project by the filters of its configuration.
CONVERTING = ("blame", "diff", "ls-files", "status")
# Programs that a configuration can name, and submodules, whose configurations are others.
SETTINGS = {
    "core.fsmonitor": "false", "core.hooksPath": "/dev/null", "core.pager": "cat", "core.alternateRefsCommand": "false", "diff.external": "",
    "gpg.program": "false", "gpg.openpgp.program": "false", "gpg.ssh.program": "false", "gpg.x509.program": "false",
    "log.showSignature": "false", "log.diffMerges": "separate", "blame.ignoreRevsFile": "", "status.submoduleSummary": "false",
    "submodule.recurse": "false",
}
EXTRA = {name: ["--no-ext-diff", "--no-textconv", "--submodule=short"] for name in ("diff", "log", "show")}
EXTRA["diff"] = [*EXTRA["diff"], "--ignore-submodules=dirty"]
EXTRA["status"], EXTRA["blame"] = ["--ignore-submodules=dirty"], ["--no-textconv"]


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
        _check(name, option)
    status, said = _git("rev-parse", "--git-dir")
    if status != 0:
        _atlas.fail(f"the project has no history of git: {said.strip()}")
    if name in CONVERTING:
        status, found = _git("config", "--show-scope", "--name-only", "--get-regexp", r"^filter\..*\.(clean|process)$")
        if status not in (0, 1) or any(line.startswith(("local", "worktree")) for line in found.split("\n")):
            _atlas.fail(f"git {name} is refused: the configuration of the project has filters, which are programs")
    if name == "grep" and _leads_out():
        _atlas.fail("git grep is refused: a link stands where a folder of the project was")
    return _atlas.said(*_git(name, *EXTRA.get(name, []), *options))


def _check(name, option):
    """Refuses a word of a command, also one behind `--`: the option before it can take `--` for its value."""
    if any(sign in option for sign in "\0\n") or option in ("|", ">", ">>", "<", ";", "&&", "||", "&"):
        _atlas.fail("redirections, pipes and further commands are refused")
    if option == "--":
        return
    if option.startswith("-"):
        long, short = COMMANDS[name]
        known = option[2:].split("=")[0] in long.split() if option.startswith("--") else re.fullmatch(short, option)
        if not known:
            _atlas.fail(f"the option {_atlas.shown(option)!r} of git {name} is refused; write options in full, each for itself")
    elif name in ("branch", "tag"):
        _atlas.fail(f"git {name} only lists here")
    else:
        if option.startswith(("/", "~")) or ".." in option.split("/"):
            _atlas.fail("paths outside the project are refused")
        if os.path.lexists(os.path.join(_atlas.root(), option)):
            _atlas.inside(option)


def _leads_out():
    """Whether a tracked file is only there through a link in its path, which git grep alone follows."""
    _, gone = _git("-c", "core.quotePath=false", "diff-files", "--name-only", "--diff-filter=D")
    root = _atlas.root()
    return "bytes are left out]" in gone or any(line and os.path.lexists(os.path.join(root, line)) for line in gone.split("\n"))


def _git(*words):
    root = _atlas.root()
    # A repository above the project, or a work tree elsewhere, would show other files.
    ours = {
        "GIT_CEILING_DIRECTORIES": os.path.dirname(root), "GIT_WORK_TREE": root, "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0",
        # Missing objects are not fetched: the configuration of the project would say how.
        "GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": "none",
    }
    settings = [part for setting in SETTINGS.items() for part in ("-c", "=".join(setting))]
    others = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return _atlas.run(["git", "--no-pager", *settings, *words], environment={**others, **ours})
