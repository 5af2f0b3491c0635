"""Reverses a text."""


async def execute(input_data):
    return {"text": input_data["text"][::-1]}
