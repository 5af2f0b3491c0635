"""A placeholder for a translator: no model, it only marks the language."""

from atlas.runtime.base import AgentBase


class Translator(AgentBase):
    async def execute(self, input_data):
        target = input_data["target_lang"]
        return {
            "translated_text": f"[{target}] {input_data['text']}",
            "source_lang": "en",
            "target_lang": target,
        }
