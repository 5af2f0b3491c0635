"""The parts of durable agents: the calls of a run, their identities, and their two ways to wait (in a loop, and in a thread).

`run` is the only part that speaks to the worker. It lives on the loop of the agent's process; `ports` reach it from tasks and threads,
and `calls` is what `self.context` and the decorator of steps use.
"""
