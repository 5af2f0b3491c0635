"""Takes the topic from the request."""

import _state

topic = _state.state().get("initial_prompt", "").strip()
if topic:
    _state.give(topic=topic)
else:
    _state.give(_next="ask_topic")
