"""A job as an orchestrator sees it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class JobData:
    """One job, as it was when the orchestrator was called."""

    id: str = ""
    agent_name: str = ""
    status: str = "pending"
    input_data: dict[str, Any] = field(default_factory=dict)
    output_data: dict[str, Any] | None = None
    error: str = ""
    priority: int = 0
    created_at: float = 0.0
    started_at: float = 0.0
    completed_at: float = 0.0
    warmup_ms: float = 0.0
    execution_ms: float = 0.0
    retry_count: int = 0
    original_job_id: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)

    @property
    def is_terminal(self) -> bool:
        return self.status in ("completed", "failed", "cancelled")

    @property
    def total_ms(self) -> float:
        return (self.completed_at - self.created_at) * 1000 if self.completed_at else 0.0
