"""Plays the person of a client scenario of the conformance suite: adds the server of the scenario to a cluster, logs in as the server
asks for it, and calls its tools through agents.

Usage: person.py URL, with ATLASCTL and ATLAS_SERVER in the environment, and what the suite puts there.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
import uuid

SCENARIO = os.environ["MCP_CONFORMANCE_SCENARIO"]
CONTEXT = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
ATLASCTL = [os.environ["ATLASCTL"], "--server", os.environ["ATLAS_SERVER"]]
# The suite knows the client by this address.
METADATA = "https://conformance-test.local/client-metadata.json"
# After this many logins the server is not content with any.
LOGINS_MAX = 3
# The scopes that an error names, as it quotes them.
SCOPE = re.compile(r" --scope (?:'([^']*)'|([A-Za-z0-9._:/-]+))")
HINT = re.compile(r"atlasctl mcp login \S+?((?: --scope (?:'[^']*'|[A-Za-z0-9._:/-]+))*)(?=[),\s\"]|$)")


def atlasctl(*arguments):
    """Runs a command; returns whether it succeeded, and what it said."""
    print("$ atlasctl", *arguments, file=sys.stderr)
    run = subprocess.run([*ATLASCTL, *arguments], capture_output=True, text=True, check=False)
    print(run.stdout + run.stderr, file=sys.stderr)
    return run.returncode == 0, run.stdout, run.stderr


def browse(url):
    """Opens a page as a browser does; the login page of the suite sends it back at once."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        opener.open(url, timeout=20).read()
    except urllib.error.HTTPError as error:
        print(f"the browser shows {error.code}: {error.read()[:200]!r}", file=sys.stderr)


def log_in(server, options):
    """Logs in; returns whether it succeeded."""
    arguments = ["mcp", "login", server, "--no-browser", "--timeout", "15s", *options]
    print("$ atlasctl", *arguments, file=sys.stderr)
    with subprocess.Popen([*ATLASCTL, *arguments], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as login:
        for line in login.stderr:
            print(line, end="", file=sys.stderr)
            if line.startswith("log in at: "):
                browse(line.removeprefix("log in at: ").strip())
        return login.wait() == 0


def scopes(said):
    """The options of `mcp login` that an error names."""
    hint = HINT.search(said)
    found = SCOPE.findall(hint[1]) if hint else []
    return [word for quoted, plain in found for word in ("--scope", quoted or plain)]


def client_options(server):
    """How the client is known to the issuer, where the scenario says so."""
    if SCENARIO == "auth/basic-cimd":
        return ["--client-id", METADATA]
    if "client_id" not in CONTEXT:
        return []
    options = ["--client-id", CONTEXT["client_id"]]
    if "client_secret" in CONTEXT:
        with tempfile.NamedTemporaryFile("w") as file:
            file.write(CONTEXT["client_secret"])
            file.flush()
            atlasctl("secret", "set", server, "--file", file.name)
        options += ["--client-secret", f"secret://{server}"]
    return options


class Person:
    def __init__(self, server):
        self.server, self.logins = server, 0

    def do(self, *arguments):
        """Runs a command, and logs in when the server asks for it."""
        while True:
            is_done, out, said = atlasctl(*arguments)
            if is_done or "atlasctl mcp login" not in said or self.logins == LOGINS_MAX:
                return is_done, out
            self.logins += 1
            if not log_in(self.server, client_options(self.server) + scopes(said)):
                return False, ""


def calls(tools):
    """The calls that a scenario asks for."""
    names = [tool["name"] for tool in tools]
    if "toolCalls" in CONTEXT:
        return [(call["name"], call["arguments"]) for call in CONTEXT["toolCalls"]]
    if SCENARIO == "json-schema-ref-no-deref":
        return []
    if SCENARIO == "json-schema-2020-12-preservation":
        focal = next(tool for tool in tools if tool["name"] == "json_schema_2020_12_tool")
        return [("json_schema_echo", {"schema": focal["inputSchema"]})]
    arguments = {"a": 2, "b": 3} if SCENARIO in ("initialize", "tools_call") else {}
    return [(name, arguments) for name in names]


def add(server, url):
    """Adds the server. Its connections end soon after the last call, because the suite waits for their end."""
    definition = {"kind": "mcp-server", "metadata": {"name": server}, "spec": {"transport": "http", "url": url, "idle_timeout_seconds": 1}}
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(definition, file)
        file.flush()
        return atlasctl("apply", "-f", file.name)[0]


def main(url):
    server = "s" + uuid.uuid4().hex[:12]
    person = Person(server)
    if not add(server, url):
        return 1
    is_done, out = person.do("mcp", "test", server, "-o", "json")
    if not is_done:
        return 1
    ended = 0
    for number, (tool, arguments) in enumerate(calls(json.loads(out)["tools"])):
        agent = f"{server}-{number}"
        provider = {"type": "mcp", "server": server, "tool": tool}
        with tempfile.TemporaryDirectory() as folder:
            contract = json.dumps({"agent": {"name": agent, "version": "1.0.0", "provider": provider}})
            pathlib.Path(folder, "agent.yaml").write_text(contract)
            if not atlasctl("deploy", folder)[0]:
                return 1
        is_done, _ = person.do("run", agent, "-i", json.dumps(arguments))
        ended = ended if is_done else 1
    return ended


sys.exit(main(sys.argv[1]))
