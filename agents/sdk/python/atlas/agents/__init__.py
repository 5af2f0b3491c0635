"""The agents of this process: `atlas.agents.FOLDER` is `agent.py` of a folder."""

from atlas._folders import install

install(__name__, "agent.py")
