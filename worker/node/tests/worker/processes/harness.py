"""Starts the host of Python agents as a worker does, once for each list of uses, and prints what it answers as JSON.

    python harness.py SDK AGENT_FOLDER METHOD USE…
"""

import json
import os
import subprocess
import sys
import threading

PATIENCE = 120.0
CONTRACT = {"name": "processes", "version": "1.0.0"}


def frame(value):
    body = json.dumps(value).encode()
    return len(body).to_bytes(4, "big") + body


def read(fd, count):
    got = b""
    while len(got) < count:
        piece = os.read(fd, count - len(got))
        if not piece:
            raise EOFError
        got += piece
    return got


def answer(fd, kinds, said):
    """The next frame of one of the kinds; those before it go to `said`."""
    while True:
        value = json.loads(read(fd, int.from_bytes(read(fd, 4), "big")))
        if value["type"] in kinds:
            return value
        said.append(f"{value['type']} {value.get('level', '')}: {value.get('text', '')}")


def main():
    sdk, folder, method, *uses = sys.argv[1:]
    reads, to_host = os.pipe()
    from_host, writes = os.pipe()
    environment = {**os.environ, "PYTHONPATH": sdk, "PROTOCOL_FDS": f"{reads} {writes}", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-P", "-m", "atlas._host", str(reads), str(writes)]
    host = subprocess.Popen(
        command, cwd=folder, env=environment, pass_fds=(reads, writes), stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    )
    for fd in (reads, writes):
        os.close(fd)
    printed = {}
    readers = [
        threading.Thread(target=lambda name=name, pipe=pipe: printed.update({name: pipe.read().decode()}), daemon=True)
        for name, pipe in (("stdout", host.stdout), ("stderr", host.stderr))
    ]
    for reader in readers:
        reader.start()
    # A use that hangs ends the host, and shows as one without an answer.
    limit = threading.Timer(PATIENCE, lambda: os.killpg(host.pid, 9))
    limit.start()
    said, answers = [], {}
    try:
        os.write(to_host, frame({"type": "start", "contract": CONTRACT, "directory": folder}))
        started = answer(from_host, ("ready", "failed"), said)
        assert started["type"] == "ready", started
        for number, use in enumerate(uses, 1):
            run = {"type": "run", "number": number, "input": {"use": use, "method": method}, "context": {"job_id": "job-1"}}
            os.write(to_host, frame(run))
            end = answer(from_host, ("result", "error"), said)
            assert end["number"] == number, end
            answers[use] = end["output"]["value"] if end["type"] == "result" else f"error: {end['error']}"
        os.write(to_host, frame({"type": "shutdown"}))
        assert answer(from_host, ("stopped",), said)
    except (EOFError, BrokenPipeError):
        answers.setdefault(uses[min(len(answers), len(uses) - 1)], "no answer")
    code = host.wait()
    limit.cancel()
    for reader in readers:
        reader.join()
    print(json.dumps({"answers": answers, "frames": said, "code": code, **printed}))


main()
