"""Reads the Python files that an agent imports, and runs none of them: `check.py FOLDER PACKAGES CLASS`.

Prints a JSON list of {"kind", "file", "line", "text"}; kind is "error", "missing" or "undeclared".
"""

import ast
import builtins
import importlib.util
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1])
PACKAGES = json.loads(sys.argv[2])
FILES_MAX = 500
found = []


def say(kind, file, line, text):
    found.append({"kind": kind, "file": file, "line": line, "text": text})


def name_of(path):
    return path.relative_to(ROOT).as_posix()


def parse(path):
    try:
        return ast.parse(path.read_bytes(), name_of(path))
    except SyntaxError as error:
        say("error", name_of(path), error.lineno, f"{type(error).__name__}: {error.msg}")
    except (ValueError, RecursionError, MemoryError, OSError) as error:
        say("error", name_of(path), None, f"{type(error).__name__}: {error}")
    return None


def imports(body):
    """Those that always run: not the ones in a branch, a function or a `try`, which may be optional."""
    for node in body:
        if isinstance(node, ast.With):
            yield from imports(node.body)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name, []
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.lineno, node.module, [alias.name for alias in node.names]


def beside(module, names):
    """The files of the package that an import loads."""
    parts = module.split(".")
    wanted = [parts[: count + 1] for count in range(len(parts))] + [parts + [name] for name in names]
    for path in wanted:
        base = ROOT.joinpath(*path)
        for file in (base.with_name(base.name + ".py"), base / "__init__.py"):
            if file.is_file():
                yield file


def is_here(top):
    return (ROOT / f"{top}.py").is_file() or (ROOT / top).is_dir()


def plain(name):
    return re.sub(r"[-_.]+", "_", name).lower()


DECLARED = {plain(match[0]) for text in PACKAGES if (match := re.match(r"\s*[A-Za-z0-9._-]+", text))}


def look_up(file, line, module):
    top = module.split(".")[0]
    if top == "atlas" or top in sys.stdlib_module_names or is_here(top) or plain(top) in DECLARED:
        return
    if PACKAGES:
        say("undeclared", file, line, top)
        return
    try:
        absent = importlib.util.find_spec(top) is None
    except (ImportError, ValueError):
        absent = False
    if absent:
        say("missing", file, line, top)


def is_agent(cls, classes, seen=()):
    for base in cls.bases:
        while isinstance(base, ast.Subscript):
            base = base.value
        name = base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", None)
        if name in classes and name not in seen:
            if is_agent(classes[name], classes, (*seen, name)):
                return True
        elif name is None or not hasattr(builtins, name):
            return True  # one that is imported or computed: what it is shows when it runs
    return False


def may_define_an_agent(tree):
    classes = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    if any(is_agent(cls, classes) for cls in classes.values()):
        return True
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            top = (node.module or "").split(".")[0]
            if node.level or (top != "atlas" and top not in sys.stdlib_module_names):
                return True
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            if any(isinstance(target, ast.Name) and target.id[:1].isupper() for target in node.targets):
                return True
    return False


def main():
    agent = ROOT / "agent.py"
    waiting, seen = [agent], {agent}
    while waiting and len(seen) <= FILES_MAX:
        path = waiting.pop(0)
        tree = parse(path)
        if tree is None:
            continue
        if path == agent and sys.argv[3] == "class" and not may_define_an_agent(tree):
            say("error", "agent.py", None, "it defines no agent class: a subclass of AgentBase")
        for line, module, names in imports(tree.body):
            look_up(name_of(path), line, module)
            for file in beside(module, names):
                if file not in seen:
                    seen.add(file)
                    waiting.append(file)
    print(json.dumps(found))


main()
