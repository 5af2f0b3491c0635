"""Tests the project."""

import _coder

command = _coder.setting("TEST_CMD") or _coder.project()["test"]
if command:
    good, text = _coder.run(command, 580)
    _coder.give(tests_ok=good, tests_output=text, _next="end_success" if good else "fix_loop_gate")
else:
    _coder.give(tests_ok=True, tests_output="There is no command to test the project.", _next="end_success")
