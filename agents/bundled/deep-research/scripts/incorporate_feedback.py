"""Begins the research again with what the person said."""

import _state

said = _state.state().get("decision", "")
feedback = f"A person has read the report, and wants this above all:\n{said}"
_state.give(_next="research_each_question", research_feedback=feedback, research_attempts=0)
