"""Decides whether there is another attempt to fix what failed."""

import _coder

state = _coder.state()
attempt, most = state.get("fix_attempts", 0) + 1, state.get("max_fix_attempts", 3)
if attempt > most:
    _coder.give(_next="end_failure")
else:
    if state.get("build_ok") is False:
        what, output = "The build failed", state.get("build_output", "")
    elif state.get("tests_ok") is False:
        what, output = "The tests failed", state.get("tests_output", "")
    else:
        what, output = "The verification itself failed", "No failure was detected; the commands took too long or could not be run."
    instructions = (
        f"FIX {attempt} of {most}. {what}. Make the smallest fix of the cause, and no other change.\n\n{output}"
    )
    # What failed before is checked anew.
    _coder.give(_next="implement", fix_attempts=attempt, fix_instructions=instructions, build_ok=None, tests_ok=None)
