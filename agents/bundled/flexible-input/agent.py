"""Truncates a text and optionally converts it to upper case."""

from atlas.runtime.base import AgentBase

DEFAULTS = {"format": "plain", "max_length": 500}


class FlexibleInput(AgentBase):
    async def execute(self, input_data):
        options = DEFAULTS | input_data.get("options", {})
        result = input_data["text"][: options["max_length"]]
        if options["format"] == "uppercase":
            result = result.upper()
        return {"result": result, "format_used": options["format"]}
