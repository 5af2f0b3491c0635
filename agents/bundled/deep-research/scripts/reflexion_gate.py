"""Begins the research again if the verdict is REVISE, at most twice. Without a verdict, it goes on."""

import re

import _state

ATTEMPTS_MAX = 2

state = _state.state()
critique, attempts = state.get("critique", ""), state.get("research_attempts", 0)
verdict = re.search(r"verdict:\s*\**\s*(pass|revise)", critique, re.IGNORECASE)
if verdict and verdict.group(1).lower() == "revise" and attempts < ATTEMPTS_MAX:
    feedback = f"An earlier round of research was not good enough. Improve on this criticism, as far as it concerns your question:\n{critique}"
    _state.give(_next="research_each_question", research_attempts=attempts + 1, research_feedback=feedback)
else:
    _state.give(_next="synthesize")
