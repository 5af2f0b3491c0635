"""Makes one section of each question with its finding."""

import _state

state = _state.state()
pairs = zip(state.get("questions", []), state.get("question_findings", []))
_state.give(findings="\n\n".join(f"## {question}\n\n{finding or 'Nothing was found.'}" for question, finding in pairs))
