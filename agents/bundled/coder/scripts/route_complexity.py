"""Sends complex changes to a person, unless the caller approved them beforehand."""

import _coder

state = _coder.state()
approved = _coder.setting("AUTOAPPROVE") == "1" or _coder.setting("CODER_AUTOAPPROVE") == "1"
complex = state.get("complexity_score", 0) >= 7
_coder.give(_next="gate_approval" if complex and not approved else "implement")
