"""Rejects empty inputs and sorts jobs by the length of their texts."""

from atlas.orchestrator.protocol import RoutingDecision

# A limit in characters, and what is decided about jobs below it or above it.
SHORT = 200
LONG = 1000


class PriorityRouter:
    """Short texts go to a fast model at a low priority, long ones to a powerful model at a high priority."""

    async def route(self, job, registry):
        if not job.input_data:
            return RoutingDecision(action="reject", metadata={"reason": "Empty input data"})
        length = sum(len(value) for value in job.input_data.values() if isinstance(value, str))
        if length < SHORT:
            return RoutingDecision(priority=-1, metadata={"complexity": "low", "model_tier": "fast"})
        if length > LONG:
            return RoutingDecision(priority=10, metadata={"complexity": "high", "model_tier": "powerful"})
        return RoutingDecision(metadata={"complexity": "medium", "model_tier": "balanced"})

    async def on_job_complete(self, job):
        """Nothing to learn from it."""

    async def on_job_failed(self, job):
        """Nothing to learn from it."""
