"""Calls one function of a tool: run.py FILE FUNCTION PARAMETERS ARGUMENTS."""

import importlib.util
import json
import os
import sys


def main():
    path, function, _, arguments = sys.argv[1:]
    # The folder of a package stays as it is.
    sys.dont_write_bytecode = True
    sys.path.insert(0, os.path.dirname(path))
    spec = importlib.util.spec_from_file_location("tool", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["tool"] = module
    spec.loader.exec_module(module)
    value = getattr(module, function)(**json.loads(arguments))
    if hasattr(value, "__await__"):
        # Takes as long to import as Python takes to start.
        import asyncio

        value = asyncio.run(finish(value))
    if value is None:
        return
    text = str(value) if isinstance(value, (str, int, float)) else json.dumps(value, indent=2, ensure_ascii=False)
    # Names of files can have bytes that are no text.
    with open(os.environ["LLM_OUTPUT"], "a", encoding="utf-8", errors="backslashreplace") as output:
        output.write(text)


async def finish(value):
    return await value


main()
