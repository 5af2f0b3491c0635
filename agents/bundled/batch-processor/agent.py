"""Adds up the prices of a list of items."""

from atlas.runtime.base import AgentBase


class BatchProcessor(AgentBase):
    async def execute(self, input_data):
        items = input_data["items"]
        # The schema's default only documents; nothing fills it in.
        return {
            "total": sum(item["price"] for item in items),
            "count": len(items),
            "currency": input_data.get("currency", "USD"),
        }
