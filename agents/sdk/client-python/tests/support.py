"""Runs a test with both clients."""

from __future__ import annotations

import asyncio
import os
import unittest
from collections.abc import Callable
from typing import Any
from unittest import mock

from atlas_client import AsyncClient, Client, Policy

#: Repeats without pauses that a test would feel.
QUICK = Policy(rounds=4, pause=0.001, pause_max=0.01)


class Both:
    """A client of one of the two kinds, used without async."""

    def __init__(self, is_async: bool, servers: Any, **options: Any) -> None:
        options.setdefault("policy", QUICK)
        self.loop = asyncio.new_event_loop() if is_async else None
        self.client: Any = AsyncClient(servers, **options) if is_async else Client(servers, **options)
        self.core = self.client._core if is_async else self.client._client._core

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return lambda *arguments, **named: self._result(getattr(self.client, name)(*arguments, **named))

    def api(self, name: str, *arguments: Any, **named: Any) -> Any:
        return self._result(getattr(self.client.api, name)(*arguments, **named))

    def _result(self, result: Any) -> Any:
        if self.loop is None:
            return list(result) if hasattr(result, "__next__") else result
        return self.loop.run_until_complete(gathered(result) if hasattr(result, "__anext__") else result)

    def __enter__(self) -> Both:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        if self.loop is not None:
            self.loop.close()


async def gathered(items: Any) -> list[Any]:
    return [item async for item in items]


class Case(unittest.TestCase):
    """A test without what the machine says of clusters."""

    def setUp(self) -> None:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("ATLAS_")}
        environment = mock.patch.dict(os.environ, {**kept, "ATLAS_CONFIG": "/nonexistent/config.toml"}, clear=True)
        environment.start()
        self.addCleanup(environment.stop)

    def both(self, test: Callable[[Callable[..., Both]], None]) -> None:
        for is_async in (False, True):
            with self.subTest(is_async=is_async):
                test(lambda servers, is_async=is_async, **options: Both(is_async, servers, **options))
