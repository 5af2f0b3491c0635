"""One call of a model, which answers with JSON. Any other answer counts as the review, with a middle rating."""

import json

from atlas.llm.provider import LLMResponse
from atlas.runtime.llm_agent import LLMAgent

RATING_UNKNOWN = 5


class OpenAIReviewer(LLMAgent):
    def _create_provider(self):
        from atlas.llm.openai import OpenAIProvider, model_for_preference

        return OpenAIProvider(model=model_for_preference(self.contract.model.preference))

    def build_prompt(self, input_data):
        criteria = input_data.get("criteria", "clarity and accuracy")
        return (
            f"Review the following content based on these criteria: {criteria}\n\n"
            f"Content:\n{input_data['content']}\n\n"
            "Respond in this exact JSON format (no markdown, no code fences):\n"
            '{"review": "your review text", "rating": 7, "suggestions": ["suggestion 1", "suggestion 2"]}\n'
            "Rating must be an integer from 1 to 10."
        )

    def parse_response(self, response: LLMResponse, input_data):
        text = response.text.strip()
        try:
            answer = json.loads(text)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            answer = {}
        return {
            "review": answer.get("review", text),
            "rating": answer.get("rating", RATING_UNKNOWN),
            "suggestions": answer.get("suggestions", []),
            "model": response.model,
        }
