async def execute(input_data):
    return {"text": str(input_data.get("text", "")).upper()}
