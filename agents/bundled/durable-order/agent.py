"""An order whose worker may be lost at any line: the next attempt goes on after the steps that are recorded."""

from atlas.durable import Retry, step
from atlas.runtime.base import AgentBase


@step(retry=Retry(3, delay=1.0))
def reserve(order):
    return f"reservation of {order}"


@step(effects="once")
def charge(order, cents):
    return f"{cents} cents for {order}"


@step
def ship(order, reservation):
    return f"parcel for the {reservation}"


class DurableOrder(AgentBase):
    async def execute(self, input_data):
        order = input_data["order"]
        reservation = await reserve(order)
        payment = await charge(order, input_data["cents"])
        await self.context.sleep(input_data.get("pause", 0))
        return {"payment": payment, "parcel": await ship(order, reservation)}
