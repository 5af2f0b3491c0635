"""The tool of the agent: what it sees of its surroundings."""

import os


def show_surroundings() -> dict:
    """Shows the variables with which tools are called."""
    return {name: os.environ[name] for name in sorted(os.environ) if name.startswith("LLM_AGENT_VAR_") or name == "LLM_AGENT_NAME"}
