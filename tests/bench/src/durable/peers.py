"""Workflows of steps that do nothing, in Restate and in DBOS.

Usage: peers.py restate PORT                            serves a handler that a Restate server calls; its answer is how long each step took, in µs
       peers.py dbos URL STEPS AT_ONCE SECONDS          runs workflows on a database and prints `{"took": […], "steps_a_second": N}`

Exits with 69 if the package is not installed.
"""

import asyncio
import json
import sys
import time

MISSING = 69


async def nothing():
    return None


async def timed(count, step):
    """How long each of `count` steps took, in µs."""
    took = []
    for _ in range(count):
        begun = time.perf_counter()
        await step()
        took.append(round((time.perf_counter() - begun) * 1e6))
    return took


async def in_flight(at_once, seconds, run):
    """Runs `run` that often at the same time, again and again, for so many seconds: how many of them ended in a second. The first second is not counted."""
    begun, ended = time.perf_counter() + 1, 0

    async def one():
        nonlocal ended
        while (now := time.perf_counter()) < begun + seconds:
            await run()
            ended += now >= begun

    await asyncio.gather(*(one() for _ in range(at_once)))
    return ended / (time.perf_counter() - begun)


def restate(port):
    import restate
    from hypercorn.asyncio import serve
    from hypercorn.config import Config

    service = restate.Service("steps")

    @service.handler()
    async def run(ctx: restate.Context, count: int) -> list:
        return await timed(count, lambda: ctx.run_typed("nothing", nothing))

    config = Config()
    config.bind, config.loglevel = [f"127.0.0.1:{port}"], "warning"
    print("listening", flush=True)
    asyncio.run(serve(restate.app([service]), config))


def dbos(url, steps, at_once, seconds):
    from dbos import DBOS, DBOSConfig

    steps, at_once, seconds = int(steps), int(at_once), float(seconds)
    config: DBOSConfig = {"name": "bench", "system_database_url": url, "log_level": "ERROR"}
    DBOS(config=config)
    step = DBOS.step()(nothing)

    @DBOS.workflow()
    async def run():
        return await timed(steps, step)

    async def measure():
        took = []
        for number in range(20):
            latencies = await run()
            if number >= 5:
                took += latencies
        return {"took": took, "steps_a_second": await in_flight(at_once, seconds, run) * steps}

    DBOS.launch()
    print(json.dumps(asyncio.run(measure())), flush=True)
    DBOS.destroy()


try:
    {"restate": restate, "dbos": dbos}[sys.argv[1]](*sys.argv[2:])
except ImportError as error:
    print(error, file=sys.stderr)
    sys.exit(MISSING)
