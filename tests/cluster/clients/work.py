"""Submits jobs and follows two until a file is there; tells what it saw as JSON."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import Any

from atlas_client import AsyncClient, Client

SUBMITTERS = 4


class Work:
    def __init__(self, servers: str, gate: str) -> None:
        self.servers = servers
        self.gate = gate
        self.number = 0
        self.jobs: dict[int, str] = {}
        self.streams: list[list[tuple[str, str]]] = []

    async def submit(self, atlas: AsyncClient) -> None:
        while not os.path.exists(self.gate):
            number, self.number = self.number, self.number + 1
            job = await atlas.submit("echo", {"number": number})
            output = await atlas.wait(job)
            assert output["input"] == {"number": number}, output
            self.jobs[number] = job
            if len(self.jobs) % 10 == 0:
                tell({"jobs": len(self.jobs)})

    async def follow(self, atlas: AsyncClient) -> None:
        seen = self.stream()
        job = await atlas.submit("gated", {"gate": self.gate})
        async for event in atlas.stream(job):
            see(seen, event)
        assert await atlas.wait(job) == {"passed": True}

    def follow_blocking(self) -> None:
        seen = self.stream()
        with Client(self.servers, deadline=120) as atlas:
            job = atlas.submit("gated", {"gate": self.gate})
            for event in atlas.stream(job):
                see(seen, event)
            assert atlas.wait(job) == {"passed": True}

    def stream(self) -> list[tuple[str, str]]:
        self.streams.append([])
        return self.streams[-1]

    async def run(self) -> None:
        async with AsyncClient(self.servers, deadline=120) as atlas:
            follow = [self.follow(atlas), asyncio.to_thread(self.follow_blocking)]
            await asyncio.gather(*follow, *(self.submit(atlas) for _ in range(SUBMITTERS)))
        tell({"done": {"jobs": self.jobs, "streams": self.streams}})


def see(seen: list[tuple[str, str]], event: Any) -> None:
    seen.append((event.id, event.data["new_status"]))
    if event.data["new_status"] == "running":
        tell({"follows": event.id})


def tell(what: Any) -> None:
    # In one write: two threads tell something.
    os.write(2, json.dumps(what).encode() + b"\n")


asyncio.run(Work(sys.argv[1], sys.argv[2]).run())
