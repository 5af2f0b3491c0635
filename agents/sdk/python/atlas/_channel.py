"""The descriptors between an agent's process and the worker: frames, and the log records that become frames.

Both belong to the agent's process alone. A process that it forks closes them; its log records go to the outputs that it inherits,
as they would in a script.
"""

import json
import os
import sys
import threading

_HEADER = 4
_READ_BYTES = 16 << 10

# Made once: `json.dumps` with options makes an encoder a call.
_encode = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode
_decode = json.JSONDecoder().decode


class OtherProcessError(RuntimeError):
    """A process that the agent started called what only the agent's own process can."""

    def __init__(self):
        super().__init__("the job's context belongs to the agent's own process; pass the value to that process, and let it call")


class Channel:
    """Frames in and out. Writes block, because frames are small and the worker always reads."""

    def __init__(self, read_fd, write_fd):
        for fd in (read_fd, write_fd):
            os.set_inheritable(fd, False)
        self.read_fd = read_fd
        self._write_fd = write_fd
        self._buffer = bytearray()
        self._pid = os.getpid()
        # Threads log while a job answers. Reentrant: a signal's handler may log as well.
        self._lock = threading.RLock()
        os.register_at_fork(after_in_child=self._close)

    def _close(self):
        for fd in (self.read_fd, self._write_fd):
            try:
                os.close(fd)
            except OSError:
                pass  # closed by the agent, or before an earlier fork
        self.read_fd = self._write_fd = -1

    @property
    def is_forked(self):
        """True in a process that the agent forked."""
        return os.getpid() != self._pid

    def check_own(self):
        """Raises in a process that the agent forked."""
        if self.is_forked:
            raise OtherProcessError()

    def receive(self):
        """The received frames; none at the end of the stream."""
        chunk = os.read(self.read_fd, _READ_BYTES)
        if not chunk:
            return None
        if not self._buffer and len(chunk) - _HEADER == int.from_bytes(chunk[:_HEADER], "big"):
            return [_decode(chunk[_HEADER:].decode())]  # one whole frame, as nearly always
        self._buffer += chunk
        frames = []
        while len(self._buffer) >= _HEADER:
            length = int.from_bytes(self._buffer[:_HEADER], "big")
            if len(self._buffer) < _HEADER + length:
                break
            frames.append(_decode(self._buffer[_HEADER : _HEADER + length].decode()))
            del self._buffer[: _HEADER + length]
        return frames

    def send(self, frame):
        """Writes one complete frame. Values that JSON does not have raise before a byte is written."""
        self.check_own()
        body = _encode(frame).encode()
        rest = len(body).to_bytes(_HEADER, "big") + body
        with self._lock:
            written = os.write(self._write_fd, rest)
            rest = memoryview(rest)
            while written < len(rest):
                written += os.write(self._write_fd, rest[written:])


def sound(value):
    """Text without lone surrogates, which many JSON readers refuse."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


def flush():
    """Writes what the agent printed and Python still holds."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            pass  # the agent closed it, or put something else in its place


def print_exception(error):
    """Prints a traceback to the agent's stderr."""
    import traceback

    try:
        traceback.print_exception(error, file=sys.stderr)
    except Exception:
        pass  # the same


def install_logging(channel):
    """Makes frames of the records that the root logger gets."""
    import logging

    # Copies, because a forked process may replace its outputs with a pipe.
    outputs = os.dup(1), os.dup(2)

    class Handler(logging.Handler):
        def emit(self, record):
            try:
                level, text = record.levelname.lower(), sound(self.format(record))
                if not channel.is_forked:
                    channel.send({"type": "log", "level": level, "text": text})
                    return
                # The worker takes stdout for information and stderr for errors.
                text = text if level == "info" else f"{record.levelname}: {text}"
                os.write(outputs[record.levelno >= logging.ERROR], f"{text}\n".encode())
            except Exception:
                self.handleError(record)

    root = logging.getLogger()
    root.addHandler(Handler())
    root.setLevel(logging.INFO)
