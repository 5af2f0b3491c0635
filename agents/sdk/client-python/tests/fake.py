"""A server that says what a test wants, byte by byte."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any


@dataclass
class Request:
    method: str
    target: str
    headers: dict[str, str]
    body: bytes

    @property
    def path(self) -> str:
        return self.target.split("?")[0]

    @property
    def json(self) -> Any:
        return json.loads(self.body)


#: What an answer can be: bytes, or pieces of them; the connection closes after an answer that begins with `CLOSE`.
Reply = "bytes | Iterable[bytes]"
CLOSE = b""


class Server:
    """Answers each request with what a function returns for it and its number, from 0 on."""

    def __init__(self, answer: Callable[[Request, int], Any]) -> None:
        self.answer = answer
        self.requests: list[Request] = []
        self.lock = threading.Lock()
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self.socket.getsockname()[1]}"
        self.open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()
        with self.lock:
            for connection in self.open:
                connection.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            with self.lock:
                self.open.append(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            with connection, connection.makefile("rb") as lines:
                while (request := read(lines)) is not None:
                    with self.lock:
                        number = len(self.requests)
                        self.requests.append(request)
                    reply = self.answer(request, number)
                    pieces = [reply] if isinstance(reply, bytes) else reply
                    for piece in pieces:
                        if piece == CLOSE:
                            return
                        connection.sendall(piece)
        except (OSError, ValueError):
            return


def read(lines: Any) -> Request | None:
    first = lines.readline().decode("latin-1").split()
    if len(first) != 3:
        return None
    headers = {}
    while (line := lines.readline().decode("latin-1").strip()) != "":
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    body = lines.read(int(headers.get("content-length", "0")))
    return Request(first[0], first[1], headers, body)


def answer(value: Any, status: int = 200, **headers: str) -> bytes:
    """A whole answer."""
    body = value if isinstance(value, bytes) else json.dumps(value).encode()
    lines = [f"HTTP/1.1 {status} Said", f"Content-Length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {text}" for name, text in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def problem(code: str, status: int, **members: Any) -> bytes:
    """A refusal."""
    return answer({"code": code, "status": status, "detail": f"told by {code}", **members}, status)


def chunk(text: str | bytes) -> bytes:
    data = text if isinstance(text, bytes) else text.encode()
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
END = b"0\r\n\r\n"


def change(id_: str, status: str) -> bytes:
    """One frame of the stream of a job."""
    return chunk(f"event: job\nid: {id_}\ndata: {json.dumps({'new_status': status, 'of_tomorrow': 1})}\n\n")


def job(status: str, **members: Any) -> bytes:
    return answer({"id": "job-1", "status": status, "output_data": None, **members})
