"""The tools of the agent. Each function is one tool; its signature and its docstring are what the model is told."""

import re

START = re.compile(r'^diff --git "?a/(.*?)"? "?b/(.*?)"?$')


def split_diff(diff: str) -> list[dict]:
    """Splits a unified diff into its files.

    Args:
        diff: The diff, as `git diff` prints it.
    """
    files: list[dict] = []
    for line in diff.splitlines():
        start = START.match(line)
        if start:
            files.append({"path": start.group(2), "binary": False, "added": 0, "removed": 0, "diff": ""})
        if not files:
            continue  # What precedes the first file is the message of a commit.
        file = files[-1]
        file["diff"] += line + "\n"
        if line.startswith("Binary files ") or line.startswith("GIT binary patch"):
            file["binary"] = True
        elif line.startswith("+") and not line.startswith("+++ "):
            file["added"] += 1
        elif line.startswith("-") and not line.startswith("--- "):
            file["removed"] += 1
    return files
