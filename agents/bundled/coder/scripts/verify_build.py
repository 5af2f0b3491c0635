"""Checks or builds the project."""

import os

import _coder

mark = os.path.join(os.getcwd(), _coder.MARK)
if _coder.is_own() and not os.path.exists(mark):
    open(mark, "w").close()
    text = "The worker of an earlier attempt was lost, and its folder with it. The folder is empty: make all changes again."
    _coder.give(build_ok=False, build_output=text, _next="fix_loop_gate")
else:
    project = _coder.project()
    command = _coder.setting("BUILD_CMD") or project["check"] or project["build"]
    if command:
        good, text = _coder.run(command, 280)
        _coder.give(build_ok=good, build_output=text, **({} if good else {"_next": "fix_loop_gate"}))
    else:
        _coder.give(build_ok=True, build_output="There is no command to build or check the project.")
