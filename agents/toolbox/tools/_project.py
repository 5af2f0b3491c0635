"""What a project is: its kind, and the commands that build, test and check it."""

import json
import os
import sys

import _atlas

CACHE = ".loki-project.json"
SHOWN = 8000

# The files that mark a kind of project, its name, and its commands: build, test, check. The first match counts.
KINDS = [
    (["Cargo.toml"], "rust", "cargo build", "cargo test", "cargo check"),
    (["go.mod"], "go", "go build ./...", "go test ./...", "go vet ./..."),
    (["deno.json", "deno.jsonc"], "deno", "deno task build", "deno test", "deno lint"),
    (["package.json"], "nodejs", "{pm} run build", "{pm} test", "{pm} run lint"),
    (["pyproject.toml", "setup.py", "setup.cfg"], "python", "", "{run}pytest", "{run}ruff check ."),
    (["pom.xml"], "java", "mvn compile", "mvn test", "mvn verify"),
    (["build.gradle", "build.gradle.kts"], "java", "{gradle} build", "{gradle} test", "{gradle} check"),
    ([".sln", ".csproj"], "dotnet", "dotnet build", "dotnet test", "dotnet build -warnaserror"),
    (["CMakeLists.txt"], "cmake", "cmake --build build", "ctest --test-dir build", "cmake --build build"),
    (["Gemfile"], "ruby", "", "{ruby}", "bundle exec rubocop"),
    (["mix.exs"], "elixir", "mix compile", "mix test", "mix credo"),
    (["composer.json"], "php", "", "vendor/bin/phpunit", "vendor/bin/phpstan analyse"),
    (["Package.swift"], "swift", "swift build", "swift test", "swift build"),
    (["build.zig"], "zig", "zig build", "zig build test", "zig build"),
    (["justfile"], "just", "just build", "just test", "just lint"),
    (["Makefile"], "make", "make build", "make test", "make lint"),
]


def project():
    """The commands of the project: those that it names itself, or else the usual ones of its kind."""
    root = _atlas.root()
    path = os.path.join(root, CACHE)
    if os.path.isfile(path):
        try:
            with open(path, encoding="utf-8") as file:
                named = json.loads(file.read(1 << 16))
            return {name: str(named.get(name) or "") for name in ("type", "build", "test", "check")}
        except (OSError, ValueError, AttributeError) as error:
            print(f"{CACHE} is not readable: {error}", file=sys.stderr)
    names = set(os.listdir(root))
    has = lambda *wanted: any(name in names for name in wanted)
    pm = "bun" if has("bun.lockb", "bun.lock") else "pnpm" if has("pnpm-lock.yaml") else "yarn" if has("yarn.lock") else "npm"
    run = "poetry run " if has("poetry.lock") else "uv run " if has("uv.lock") else ""
    words = {"pm": pm, "run": run, "gradle": "./gradlew" if has("gradlew") else "gradle", "ruby": "rspec" if has("spec", ".rspec") else "rake test"}
    for marks, kind, build, test, check in KINDS:
        if any(name == mark or mark.startswith(".") and name.endswith(mark) for mark in marks for name in names):
            commands = {"build": build, "test": test, "check": check}
            commands = {name: command.format(**words) for name, command in commands.items()}
            if kind in ("just", "make"):
                commands = {name: command for name, command in commands.items() if has_target(root, kind, command.split()[1])}
            return {"type": kind, "build": "", "test": "", "check": "", **commands}
    return {"type": "unknown", "build": "", "test": "", "check": ""}


def has_target(root, kind, target):
    """Whether a justfile or a Makefile has a target."""
    with open(os.path.join(root, "justfile" if kind == "just" else "Makefile"), encoding="utf-8", errors="replace") as file:
        return any(line.startswith((f"{target}:", f"{target} ")) and ":" in line for line in file.read(1 << 20).splitlines())


def run(command, seconds):
    """Runs a command in the project: whether it succeeded, and a text with the command, its exit status and its output."""
    status, output = _atlas.run(["bash", "-c", command], seconds=seconds)
    if len(output) > SHOWN:
        output = f"[{len(output) - SHOWN} characters are left out]\n{output[-SHOWN:]}"
    ended = f"not ended after {seconds} s" if status is None else f"exit status {status}"
    return status == 0, f"$ {command}\n[{ended}]\n{output.strip()}".strip()
