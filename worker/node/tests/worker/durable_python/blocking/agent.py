"""An agent without `await`."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

from atlas.durable import Parked, StepFailed, step
from atlas.runtime.base import AgentBase


@step(retry={"attempts": 2, "delay": 1})
def charge(order):
    if order == 13:
        raise ValueError("refused")
    return {"charged": order, "thread": threading.current_thread().name}


async def asynchronous(n):
    return n + 1


class Agent(AgentBase):
    def execute(self, input_data):
        return getattr(self, input_data["use"])(self.context)

    def order(self, context):
        charged = charge(5)
        context.sleep(60)
        answer = context.ask("Ship it?", kind="confirm")
        try:
            charge(13)
        except StepFailed as error:
            failed = [error.type, error.text]
        return {"charged": charged, "answer": answer, "failed": failed, "more": context.step("asynchronous", asynchronous, 1)}

    def side_by_side(self, context):
        with ThreadPoolExecutor(4) as pool:
            values = list(pool.map(lambda n: context.step("part", time.sleep, n / 1000) or n, range(4)))
        children = context.spawn_all([("echo", {"n": n}) for n in range(3)])
        return {"values": values, "children": [child.data for child in children]}

    def undecided(self, context):
        def look(n):
            raise ConnectionError("no answer")

        for _ in range(2):
            try:
                context.step("pay", time.sleep, 0, effects="once", reconcile=look)
            except BaseException as error:
                context.progress(type(error).__name__)

    def parks(self, context):
        with ThreadPoolExecutor(2) as pool:
            waiting = [pool.submit(context.sleep, seconds) for seconds in (100, 200)]
            try:
                waiting[0].result()
            except Parked:
                context.progress("unwound")
                raise
