"""Finds the folder of the project. One outside the folder of the attempt is known by its absolute path."""

import os

import _coder

root = _coder._atlas.root()
if not os.path.isdir(root):
    _coder._atlas.fail(f"the folder {root} does not exist")
if _coder.is_own():
    open(os.path.join(os.getcwd(), _coder.MARK), "w").close()
    _coder.give(project_dir=os.path.relpath(root, os.path.realpath(os.getcwd())))
else:
    _coder.give(project_dir=root)
