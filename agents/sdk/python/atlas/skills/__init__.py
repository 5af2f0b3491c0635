"""Skills: functions that agents share. `atlas.skills.FOLDER` is `skill.py` of a folder."""

from atlas._folders import install

install(__name__, "skill.py")
