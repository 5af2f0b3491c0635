"""One call of a model: the prompt asks for a short summary, the answer is the summary."""

from atlas.llm.provider import LLMResponse
from atlas.runtime.llm_agent import LLMAgent


class LLMSummarizer(LLMAgent):
    def build_prompt(self, input_data):
        sentences = input_data.get("max_sentences", 3)
        return (
            f"Summarize the following text in at most {sentences} sentences. Return ONLY the summary, no preamble.\n\n"
            f"{input_data['text']}"
        )

    def parse_response(self, response: LLMResponse, input_data):
        return {"summary": response.text.strip(), "model": response.model}
