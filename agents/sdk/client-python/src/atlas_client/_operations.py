"""Generated from the table of operations by `cargo xtask fix`; do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from . import _types as t
from ._calls import AsyncBytes, AsyncCalls, AsyncEvents, Bytes, Calls, Events


class AsyncOperations(AsyncCalls):
    """Every operation of the interface, with async."""

    async def submit_job(
        self,
        body: t.Submission,
        *,
        validate: Literal["refuse"] | None = None,
        only: Literal["agent"] | None = None,
        wait: float | None = None,
        family: bool | None = None,
        view: Literal["full", "plain"] | None = None,
        strict: bool | None = None,
        idempotency_key: str | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Id | t.Job:
        """Submits a job. The answer is sent once the job is durable. Needs the right `jobs.submit`.

        validate: `refuse` refuses jobs that cannot run, instead of accepting them and letting them fail
        only: with `validate=refuse`: `agent` refuses the name of a stored chain as well
        wait: seconds to wait for the end of the job; the answer is then the job
        family: `true` also waits for the retries of a failed job and returns the last of them
        view: `full` adds the members that Atlas for Python does not have
        strict: `true` refuses what is accepted with a header `Warning` otherwise
        idempotency_key: up to 255 characters; a repeat with the same key gets the first answer
        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "POST",
            "/api/jobs",
            {},
            {"validate": validate, "only": only, "wait": wait, "family": family, "view": view, "strict": strict, "namespace": namespace},
            {"Idempotency-Key": idempotency_key},
            body,
            deadline,
        )

    async def submit_jobs(
        self,
        body: t.Batch,
        *,
        validate: Literal["refuse"] | None = None,
        queue_wait: float | None = None,
        idempotency_key: str | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.BatchResults:
        """Submits many jobs, each with its own result. The answer is sent once the accepted jobs are durable. Needs the right `jobs.submit`.

        validate: `refuse` refuses jobs that cannot run, instead of accepting them and letting them fail
        queue_wait: seconds to wait for space in a full queue; defaults to 0
        idempotency_key: gives each job that has no `idempotency_key` the key `KEY.INDEX`, its index in the list from 0
        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "POST",
            "/api/jobs:batch",
            {},
            {"validate": validate, "queue_wait": queue_wait, "namespace": namespace},
            {"Idempotency-Key": idempotency_key},
            body,
            deadline,
        )

    async def list_jobs(
        self,
        *,
        status: str | None = None,
        agent: str | None = None,
        label: str | Sequence[str] | None = None,
        text: str | None = None,
        before: str | None = None,
        since: float | None = None,
        until: float | None = None,
        limit: int | None = None,
        offset: int | None = None,
        view: Literal["full", "plain"] | None = None,
        consistency: Literal["stale", "linearizable"] | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> list[t.Job]:
        """Jobs, newest first. Needs the right `jobs.read`.

        status: only jobs with this status
        agent: only jobs of this agent
        label: only jobs with this label, as `KEY=VALUE`; repeatable
        text: only jobs with these words in their error or labels
        before: only jobs submitted before this job: the id of the last job of a page gets the next page
        since: submitted at or after this time, Unix seconds
        until: submitted at or before this time, Unix seconds
        limit: maximum number, 1 to 1000; 50 if it is not a number
        offset: number to skip
        view: `full` adds the members that Atlas for Python does not have
        consistency: `stale` answers from the state of this controller, without asking the others
        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "GET",
            "/api/jobs",
            {},
            {"status": status, "agent": agent, "label": label, "text": text, "before": before, "since": since, "until": until, "limit": limit, "offset": offset, "view": view, "consistency": consistency, "namespace": namespace},
            {},
            None,
            deadline,
        )

    async def get_job(
        self,
        id: str,
        *,
        wait: float | None = None,
        family: bool | None = None,
        view: Literal["full", "plain"] | None = None,
        consistency: Literal["stale", "linearizable"] | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Job:
        """One job. Needs the right `jobs.read`.

        wait: seconds to wait for the job's end, as `/api/jobs/{id}/wait` does
        family: `true` also waits for the retries of a failed job and returns the last of them
        view: `full` adds the members that Atlas for Python does not have
        consistency: `stale` answers from the state of this controller, without asking the others
        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "GET",
            "/api/jobs/{id}",
            {"id": id},
            {"wait": wait, "family": family, "view": view, "consistency": consistency, "namespace": namespace},
            {},
            None,
            deadline,
        )

    async def delete_job(
        self,
        id: str,
        *,
        idempotency_key: str | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Cancelled:
        """Cancels a pending job; false for every other and for an unknown job. Needs the right `jobs.control`.

        idempotency_key: up to 255 characters; a repeat with the same key gets the first answer
        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "DELETE",
            "/api/jobs/{id}",
            {"id": id},
            {"namespace": namespace},
            {"Idempotency-Key": idempotency_key},
            None,
            deadline,
        )

    async def wait_for_job(
        self,
        id: str,
        *,
        timeout: float | None = None,
        family: bool | None = None,
        questions: bool | None = None,
        view: Literal["full", "plain"] | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Job:
        """Waits for a job; returns it after it has ended or the timeout has passed. Needs the right `jobs.read`.

        timeout: maximum seconds to wait; defaults to 60
        family: `true` also waits for the retries of a failed job and returns the last of them
        questions: `true` also returns a job that has an open question, or a job below it
        view: `full` adds the members that Atlas for Python does not have
        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "GET",
            "/api/jobs/{id}/wait",
            {"id": id},
            {"timeout": timeout, "family": family, "questions": questions, "view": view, "namespace": namespace},
            {},
            None,
            deadline,
        )

    async def get_job_tree(
        self,
        id: str,
        *,
        consistency: Literal["stale", "linearizable"] | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.JobTree:
        """A job with the jobs that it spawned, except those that have left the state. Needs the right `jobs.read`.

        consistency: `stale` answers from the state of this controller, without asking the others
        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "GET",
            "/api/jobs/{id}/tree",
            {"id": id},
            {"consistency": consistency, "namespace": namespace},
            {},
            None,
            deadline,
        )

    async def get_job_policies(
        self,
        id: str,
        *,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.LeftPermissions:
        """The permissions that policies leave the agent of a job. Needs the right `jobs.read`.

        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "GET",
            "/api/jobs/{id}/policies",
            {"id": id},
            {"namespace": namespace},
            {},
            None,
            deadline,
        )

    async def explain_job(
        self,
        id: str,
        *,
        consistency: Literal["stale", "linearizable"] | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Explained:
        """Why a job waits, since when, and what would start it. Needs the right `jobs.read`.

        consistency: `stale` answers from the state of this controller, without asking the others
        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "GET",
            "/api/jobs/{id}/explain",
            {"id": id},
            {"consistency": consistency, "namespace": namespace},
            {},
            None,
            deadline,
        )

    async def list_steps(
        self,
        id: str,
        *,
        after: int | None = None,
        limit: int | None = None,
        consistency: Literal["stale", "linearizable"] | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> list[t.Step]:
        """The recorded steps of a job, in order. Needs the right `jobs.read`.

        after: only the steps after this number
        limit: maximum number, 1 to 1000; 50 if it is not a number
        consistency: `stale` answers from the state of this controller, without asking the others
        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "GET",
            "/api/jobs/{id}/steps",
            {"id": id},
            {"after": after, "limit": limit, "consistency": consistency, "namespace": namespace},
            {},
            None,
            deadline,
        )

    async def get_receipt(
        self,
        id: str,
        *,
        consistency: Literal["stale", "linearizable"] | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Receipt:
        """A receipt of a job that has ended, which can be verified anywhere. Needs the right `jobs.read`.

        consistency: `stale` answers from the state of this controller, without asking the others
        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "GET",
            "/api/jobs/{id}/receipt",
            {"id": id},
            {"consistency": consistency, "namespace": namespace},
            {},
            None,
            deadline,
        )

    async def cancel_job(
        self,
        id: str,
        *,
        idempotency_key: str | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Cancelled:
        """Cancels a pending or running job and the jobs that it spawned. Needs the right `jobs.control`.

        idempotency_key: up to 255 characters; a repeat with the same key gets the first answer
        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "POST",
            "/api/jobs/{id}/cancel",
            {"id": id},
            {"namespace": namespace},
            {"Idempotency-Key": idempotency_key},
            None,
            deadline,
        )

    async def retry_job(
        self,
        id: str,
        *,
        resume: bool | None = None,
        questions: str | None = None,
        idempotency_key: str | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Id:
        """Runs an ended job again as a new job. Needs the right `jobs.control`.

        resume: `true` copies the recorded steps, which the new job does not repeat
        questions: what happens to the questions of the new job: `fail`, `wait`, or `answer:` and a text; defaults to what happens to those of the ended one
        idempotency_key: up to 255 characters; a repeat with the same key gets the first answer
        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "POST",
            "/api/jobs/{id}/retry",
            {"id": id},
            {"resume": resume, "questions": questions, "namespace": namespace},
            {"Idempotency-Key": idempotency_key},
            None,
            deadline,
        )

    async def erase_job(
        self,
        id: str,
        *,
        idempotency_key: str | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Erased:
        """Erases the input, output, log, steps and error text of an ended job. Needs the right `jobs.control`.

        idempotency_key: up to 255 characters; a repeat with the same key gets the first answer
        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "POST",
            "/api/jobs/{id}/erase",
            {"id": id},
            {"namespace": namespace},
            {"Idempotency-Key": idempotency_key},
            None,
            deadline,
        )

    async def erase_jobs(
        self,
        *,
        idempotency_key: str | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Erased:
        """Erases all jobs of a namespace, and its ended runs. All must have ended. Needs the right `jobs.control`.

        idempotency_key: up to 255 characters; a repeat with the same key gets the first answer
        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "POST",
            "/api/jobs:erase",
            {},
            {"namespace": namespace},
            {"Idempotency-Key": idempotency_key},
            None,
            deadline,
        )

    async def fork_job(
        self,
        id: str,
        body: t.Fork,
        *,
        idempotency_key: str | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Id:
        """Begins a new job with the first recorded steps of another one. Needs the right `jobs.control`.

        idempotency_key: up to 255 characters; a repeat with the same key gets the first answer
        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "POST",
            "/api/jobs/{id}/fork",
            {"id": id},
            {"namespace": namespace},
            {"Idempotency-Key": idempotency_key},
            body,
            deadline,
        )

    async def resolve_job(
        self,
        id: str,
        body: t.Decision,
        *,
        idempotency_key: str | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Resolved:
        """Resolves a job in doubt. Needs the right `jobs.control`.

        idempotency_key: up to 255 characters; a repeat with the same key gets the first answer
        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "POST",
            "/api/jobs/{id}/resolve",
            {"id": id},
            {"namespace": namespace},
            {"Idempotency-Key": idempotency_key},
            body,
            deadline,
        )

    async def send_message(
        self,
        id: str,
        body: t.Message,
        *,
        idempotency_key: str | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Sent:
        """Sends a message to a job that has not ended. Needs the right `jobs.control`.

        idempotency_key: up to 255 characters; a repeat with the same key gets the first answer
        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "POST",
            "/api/jobs/{id}/messages",
            {"id": id},
            {"namespace": namespace},
            {"Idempotency-Key": idempotency_key},
            body,
            deadline,
        )

    async def list_questions(
        self,
        *,
        status: Literal["open", "all"] | None = None,
        job: str | None = None,
        after: int | None = None,
        limit: int | None = None,
        consistency: Literal["stale", "linearizable"] | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> list[t.Question]:
        """The questions of jobs to people, the oldest first. Needs the right `jobs.read`.

        status: `all` adds questions that have ended; defaults to `open`
        job: only those of this job and of the jobs below it
        after: only those with a number after this one
        limit: maximum number, 1 to 1000; 50 if it is not a number
        consistency: `stale` answers from the state of this controller, without asking the others
        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "GET",
            "/api/questions",
            {},
            {"status": status, "job": job, "after": after, "limit": limit, "consistency": consistency, "namespace": namespace},
            {},
            None,
            deadline,
        )

    async def get_question(
        self,
        id: str,
        *,
        consistency: Literal["stale", "linearizable"] | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Question:
        """One question. Needs the right `jobs.read`.

        consistency: `stale` answers from the state of this controller, without asking the others
        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "GET",
            "/api/questions/{id}",
            {"id": id},
            {"consistency": consistency, "namespace": namespace},
            {},
            None,
            deadline,
        )

    async def answer_question(
        self,
        id: str,
        body: t.QuestionAnswer,
        *,
        idempotency_key: str | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Question:
        """Answers a question. The first answer stands. Needs the right `questions.answer`.

        idempotency_key: up to 255 characters; a repeat with the same key gets the first answer
        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "POST",
            "/api/questions/{id}/answer",
            {"id": id},
            {"namespace": namespace},
            {"Idempotency-Key": idempotency_key},
            body,
            deadline,
        )

    def follow_job(
        self,
        id: str,
        *,
        follow: bool | None = None,
        after: str | None = None,
        view: Literal["full", "plain"] | None = None,
        deltas: bool | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> AsyncEvents[t.Change]:
        """The changes of one job, until it has ended. Needs the right `jobs.read`.

        follow: `false` ends the stream after the past events
        after: the last event seen, for clients that cannot send `Last-Event-ID`
        view: `full` adds the members that Atlas for Python does not have
        deltas: `true` adds pieces of models' answers to the stream: events `delta`, `gap`, `reset`
        namespace: the namespace; defaults to `default`
        """
        return self._stream(
            "GET",
            "/api/jobs/{id}/events",
            {"id": id},
            {"follow": follow, "after": after, "view": view, "deltas": deltas, "namespace": namespace},
            {},
            None,
            deadline,
        )

    async def job_logs(
        self,
        id: str,
        *,
        after: str | None = None,
        deltas: bool | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> list[t.Line]:
        """Log lines and progress of a job. Needs the right `jobs.read`.

        after: the last event seen, for clients that cannot send `Last-Event-ID`
        deltas: `true` adds pieces of models' answers to the stream: events `delta`, `gap`, `reset`
        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "GET",
            "/api/jobs/{id}/logs",
            {"id": id},
            {"after": after, "deltas": deltas, "namespace": namespace},
            {},
            None,
            deadline,
        )

    def stream_job_logs(
        self,
        id: str,
        *,
        after: str | None = None,
        deltas: bool | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> AsyncEvents[t.Line]:
        """Log lines and progress of a job. Needs the right `jobs.read`.

        after: the last event seen, for clients that cannot send `Last-Event-ID`
        deltas: `true` adds pieces of models' answers to the stream: events `delta`, `gap`, `reset`
        namespace: the namespace; defaults to `default`
        """
        return self._stream(
            "GET",
            "/api/jobs/{id}/logs",
            {"id": id},
            {"after": after, "deltas": deltas, "namespace": namespace},
            {},
            None,
            deadline,
        )

    async def list_traces(
        self,
        *,
        agent: str | None = None,
        limit: int | None = None,
        consistency: Literal["stale", "linearizable"] | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> list[t.Trace]:
        """What completed and failed jobs did, the latest first. Needs the right `jobs.read`.

        agent: only traces of this agent
        limit: maximum number, 1 to 1000; 50 if it is not a number
        consistency: `stale` answers from the state of this controller, without asking the others
        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "GET",
            "/api/traces",
            {},
            {"agent": agent, "limit": limit, "consistency": consistency, "namespace": namespace},
            {},
            None,
            deadline,
        )

    async def get_trace(
        self,
        id: str,
        *,
        consistency: Literal["stale", "linearizable"] | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Trace:
        """What one job did, with the checks of its agent; or what the jobs of one run of a chain did. Needs the right `jobs.read`.

        consistency: `stale` answers from the state of this controller, without asking the others
        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "GET",
            "/api/traces/{id}",
            {"id": id},
            {"consistency": consistency, "namespace": namespace},
            {},
            None,
            deadline,
        )

    def follow_all(
        self,
        *,
        after: str | None = None,
        view: Literal["full", "plain"] | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> AsyncEvents[t.Change]:
        """The changes of all jobs. Needs the right `jobs.read`.

        after: the last event seen, for clients that cannot send `Last-Event-ID`
        view: `full` adds the members that Atlas for Python does not have
        namespace: the namespace; defaults to `default`
        """
        return self._stream(
            "GET",
            "/api/events",
            {},
            {"after": after, "view": view, "namespace": namespace},
            {},
            None,
            deadline,
        )

    def follow_all_at_ws(
        self,
        *,
        after: str | None = None,
        view: Literal["full", "plain"] | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> AsyncEvents[t.Change]:
        """The same as `/api/events`. Needs the right `jobs.read`.

        after: the last event seen, for clients that cannot send `Last-Event-ID`
        view: `full` adds the members that Atlas for Python does not have
        namespace: the namespace; defaults to `default`
        """
        return self._stream(
            "GET",
            "/ws",
            {},
            {"after": after, "view": view, "namespace": namespace},
            {},
            None,
            deadline,
        )

    def follow_events(
        self,
        *,
        kind: str | None = None,
        name: str | None = None,
        after: int | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> AsyncEvents[t.ClusterEvent]:
        """Events of every kind: jobs, agents, nodes, the configuration. Needs the right `cluster.read`.

        kind: only events of these kinds, with commas between: job, agent, node, object, run, cluster
        name: only events about what has this name: a job's id, an agent or a node
        after: the last event seen, for clients that cannot send `Last-Event-ID`
        namespace: the namespace; defaults to `default`
        """
        return self._stream(
            "GET",
            "/api/cluster/events",
            {},
            {"kind": kind, "name": name, "after": after, "namespace": namespace},
            {},
            None,
            deadline,
        )

    async def start_chain(
        self,
        body: t.ChainStart,
        *,
        wait: float | None = None,
        view: Literal["full", "plain"] | None = None,
        strict: bool | None = None,
        idempotency_key: str | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.ChainId | t.ChainRun:
        """Runs a chain. The answer is sent once the run is durable. Needs the right `jobs.submit`.

        wait: seconds to wait for the end of the run, which is then the answer
        view: `full` adds the members that Atlas for Python does not have
        strict: `true` refuses what is accepted with a header `Warning` otherwise
        idempotency_key: up to 255 characters; a repeat with the same key gets the first answer
        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "POST",
            "/api/chains",
            {},
            {"wait": wait, "view": view, "strict": strict, "namespace": namespace},
            {"Idempotency-Key": idempotency_key},
            body,
            deadline,
        )

    async def check_chain(
        self,
        body: t.ChainToCheck,
        *,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.ChainCheck:
        """Shows how each step of a chain gets its input from the step before. Nothing runs. Needs the right `jobs.read`.

        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "POST",
            "/api/chains/check",
            {},
            {"namespace": namespace},
            {},
            body,
            deadline,
        )

    async def list_chain_runs(
        self,
        *,
        status: str | None = None,
        limit: int | None = None,
        view: Literal["full", "plain"] | None = None,
        consistency: Literal["stale", "linearizable"] | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> list[t.ChainRun]:
        """Runs of chains, newest first. Those that ended last are kept. Needs the right `jobs.read`.

        status: only runs with this status
        limit: maximum number, 1 to 1000; 50 if it is not a number
        view: `full` adds the members that Atlas for Python does not have
        consistency: `stale` answers from the state of this controller, without asking the others
        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "GET",
            "/api/chains",
            {},
            {"status": status, "limit": limit, "view": view, "consistency": consistency, "namespace": namespace},
            {},
            None,
            deadline,
        )

    async def get_chain_run(
        self,
        id: str,
        *,
        wait: float | None = None,
        view: Literal["full", "plain"] | None = None,
        consistency: Literal["stale", "linearizable"] | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.ChainRun:
        """One run of a chain. Needs the right `jobs.read`.

        wait: seconds to wait for the end of the run
        view: `full` adds the members that Atlas for Python does not have
        consistency: `stale` answers from the state of this controller, without asking the others
        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "GET",
            "/api/chains/{id}",
            {"id": id},
            {"wait": wait, "view": view, "consistency": consistency, "namespace": namespace},
            {},
            None,
            deadline,
        )

    async def get_chain_tree(
        self,
        id: str,
        *,
        consistency: Literal["stale", "linearizable"] | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.ChainTree:
        """One run of a chain with the jobs of its steps, their retries and the jobs that they spawned. Needs the right `jobs.read`.

        consistency: `stale` answers from the state of this controller, without asking the others
        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "GET",
            "/api/chains/{id}/tree",
            {"id": id},
            {"consistency": consistency, "namespace": namespace},
            {},
            None,
            deadline,
        )

    async def cancel_chain_run(
        self,
        id: str,
        *,
        idempotency_key: str | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Cancelled:
        """Cancels a run and the job of its current step. Needs the right `jobs.control`.

        idempotency_key: up to 255 characters; a repeat with the same key gets the first answer
        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "POST",
            "/api/chains/{id}/cancel",
            {"id": id},
            {"namespace": namespace},
            {"Idempotency-Key": idempotency_key},
            None,
            deadline,
        )

    async def list_agents(
        self,
        *,
        all: bool | None = None,
        name: str | None = None,
        capability: str | None = None,
        q: str | None = None,
        limit: int | None = None,
        offset: int | None = None,
        view: Literal["full", "plain"] | None = None,
        consistency: Literal["stale", "linearizable"] | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> list[t.Agent]:
        """Agent versions by name and version. Needs the right `agents.read`.

        all: `true` for all versions including retired ones, `false` for only the latest of each name
        name: only versions of this agent
        capability: only versions with exactly this capability
        q: only versions with this text in name, description or capabilities, ignoring case
        limit: maximum number, 1 to 1000; defaults to all
        offset: number to skip
        view: `full` adds the members that Atlas for Python does not have
        consistency: `stale` answers from the state of this controller, without asking the others
        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "GET",
            "/api/agents",
            {},
            {"all": all, "name": name, "capability": capability, "q": q, "limit": limit, "offset": offset, "view": view, "consistency": consistency, "namespace": namespace},
            {},
            None,
            deadline,
        )

    async def register_agent(
        self,
        body: bytes,
        *,
        replace: bool | None = None,
        idempotency_key: str | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Registered:
        """Registers an agent from its package. Needs the right `agents.publish`.

        replace: `true` replaces another package of the same version
        idempotency_key: up to 255 characters; a repeat with the same key gets the first answer
        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "POST",
            "/api/agents",
            {},
            {"replace": replace, "namespace": namespace},
            {"Idempotency-Key": idempotency_key},
            body,
            deadline,
        )

    async def get_agent(
        self,
        name: str,
        *,
        version: str | None = None,
        consistency: Literal["stale", "linearizable"] | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Agent:
        """One version with its schemas and its contract. Needs the right `agents.read`.

        version: a requirement such as `^1.2.0`; defaults to the latest
        consistency: `stale` answers from the state of this controller, without asking the others
        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "GET",
            "/api/agents/{name}",
            {"name": name},
            {"version": version, "consistency": consistency, "namespace": namespace},
            {},
            None,
            deadline,
        )

    async def list_versions(
        self,
        name: str,
        *,
        consistency: Literal["stale", "linearizable"] | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> list[t.Agent]:
        """The versions of one agent, including retired ones. Needs the right `agents.read`.

        consistency: `stale` answers from the state of this controller, without asking the others
        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "GET",
            "/api/agents/{name}/versions",
            {"name": name},
            {"consistency": consistency, "namespace": namespace},
            {},
            None,
            deadline,
        )

    async def get_version(
        self,
        name: str,
        version: str,
        *,
        consistency: Literal["stale", "linearizable"] | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Agent:
        """One version, retired or not. Needs the right `agents.read`.

        consistency: `stale` answers from the state of this controller, without asking the others
        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "GET",
            "/api/agents/{name}/versions/{version}",
            {"name": name, "version": version},
            {"consistency": consistency, "namespace": namespace},
            {},
            None,
            deadline,
        )

    async def resume_agent(
        self,
        name: str,
        version: str,
        *,
        idempotency_key: str | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Accepted:
        """Closes the circuit of a version: its jobs start as usual again. Needs the right `agents.publish`.

        idempotency_key: up to 255 characters; a repeat with the same key gets the first answer
        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "POST",
            "/api/agents/{name}/versions/{version}/resume",
            {"name": name, "version": version},
            {"namespace": namespace},
            {"Idempotency-Key": idempotency_key},
            None,
            deadline,
        )

    async def roll_back_agent(
        self,
        name: str,
        version: str,
        body: t.RollbackRequest | None = None,
        *,
        idempotency_key: str | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.RolledBack:
        """Registers an earlier package of a version again: that of a revision, or the one before the package of now. Needs the right `agents.publish`.

        idempotency_key: up to 255 characters; a repeat with the same key gets the first answer
        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "POST",
            "/api/agents/{name}/versions/{version}/rollback",
            {"name": name, "version": version},
            {"namespace": namespace},
            {"Idempotency-Key": idempotency_key},
            body,
            deadline,
        )

    async def retire_agent(
        self,
        name: str,
        version: str,
        *,
        idempotency_key: str | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Retired:
        """Retires a version: it accepts no new jobs; its existing jobs finish. Needs the right `agents.publish`.

        idempotency_key: up to 255 characters; a repeat with the same key gets the first answer
        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "DELETE",
            "/api/agents/{name}/versions/{version}",
            {"name": name, "version": version},
            {"namespace": namespace},
            {"Idempotency-Key": idempotency_key},
            None,
            deadline,
        )

    async def delete_agent(
        self,
        name: str,
        version: str,
        *,
        idempotency_key: str | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Deleted:
        """Deletes a retired version that no waiting or running job uses. Needs the right `agents.publish`.

        idempotency_key: up to 255 characters; a repeat with the same key gets the first answer
        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "POST",
            "/api/agents/{name}/versions/{version}/delete",
            {"name": name, "version": version},
            {"namespace": namespace},
            {"Idempotency-Key": idempotency_key},
            None,
            deadline,
        )

    async def deprecate_agent(
        self,
        name: str,
        version: str,
        body: t.DeprecateRequest | None = None,
        *,
        idempotency_key: str | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Deprecated:
        """Marks a version as deprecated; it still accepts jobs. Needs the right `agents.publish`.

        idempotency_key: up to 255 characters; a repeat with the same key gets the first answer
        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "POST",
            "/api/agents/{name}/versions/{version}/deprecate",
            {"name": name, "version": version},
            {"namespace": namespace},
            {"Idempotency-Key": idempotency_key},
            body,
            deadline,
        )

    async def list_nodes(
        self,
        *,
        limit: int | None = None,
        offset: int | None = None,
        consistency: Literal["stale", "linearizable"] | None = None,
        deadline: float | None = None,
    ) -> list[t.Node]:
        """Nodes by name, with their hardware and free resources. Needs the right `nodes.read`.

        limit: maximum number, 1 to 1000; defaults to all
        offset: number to skip
        consistency: `stale` answers from the state of this controller, without asking the others
        """
        return await self._json(
            "GET",
            "/api/nodes",
            {},
            {"limit": limit, "offset": offset, "consistency": consistency},
            {},
            None,
            deadline,
        )

    async def get_node(
        self,
        name: str,
        *,
        consistency: Literal["stale", "linearizable"] | None = None,
        deadline: float | None = None,
    ) -> t.Node:
        """One node. Needs the right `nodes.read`.

        consistency: `stale` answers from the state of this controller, without asking the others
        """
        return await self._json(
            "GET",
            "/api/nodes/{name}",
            {"name": name},
            {"consistency": consistency},
            {},
            None,
            deadline,
        )

    async def remove_node(
        self,
        name: str,
        *,
        idempotency_key: str | None = None,
        deadline: float | None = None,
    ) -> t.Removed:
        """Removes a node that holds no lease. Needs the right `nodes.operate`.

        idempotency_key: up to 255 characters; a repeat with the same key gets the first answer
        """
        return await self._json(
            "DELETE",
            "/api/nodes/{name}",
            {"name": name},
            {},
            {"Idempotency-Key": idempotency_key},
            None,
            deadline,
        )

    async def drain_node(
        self,
        name: str,
        body: t.DrainRequest | None = None,
        *,
        idempotency_key: str | None = None,
        deadline: float | None = None,
    ) -> t.Accepted:
        """Drains a node: no new leases until it is empty. Needs the right `nodes.operate`.

        idempotency_key: up to 255 characters; a repeat with the same key gets the first answer
        """
        return await self._json(
            "POST",
            "/api/nodes/{name}/drain",
            {"name": name},
            {},
            {"Idempotency-Key": idempotency_key},
            body,
            deadline,
        )

    async def cordon_node(
        self,
        name: str,
        *,
        idempotency_key: str | None = None,
        deadline: float | None = None,
    ) -> t.Accepted:
        """Stops new leases on a node. Needs the right `nodes.operate`.

        idempotency_key: up to 255 characters; a repeat with the same key gets the first answer
        """
        return await self._json(
            "POST",
            "/api/nodes/{name}/cordon",
            {"name": name},
            {},
            {"Idempotency-Key": idempotency_key},
            None,
            deadline,
        )

    async def uncordon_node(
        self,
        name: str,
        *,
        idempotency_key: str | None = None,
        deadline: float | None = None,
    ) -> t.Accepted:
        """Allows new leases on a node again; ends a drain. Needs the right `nodes.operate`.

        idempotency_key: up to 255 characters; a repeat with the same key gets the first answer
        """
        return await self._json(
            "POST",
            "/api/nodes/{name}/uncordon",
            {"name": name},
            {},
            {"Idempotency-Key": idempotency_key},
            None,
            deadline,
        )

    async def resume_node(
        self,
        name: str,
        *,
        idempotency_key: str | None = None,
        deadline: float | None = None,
    ) -> t.Accepted:
        """Closes the circuit of a node: it takes jobs as usual again. Needs the right `nodes.operate`.

        idempotency_key: up to 255 characters; a repeat with the same key gets the first answer
        """
        return await self._json(
            "POST",
            "/api/nodes/{name}/resume",
            {"name": name},
            {},
            {"Idempotency-Key": idempotency_key},
            None,
            deadline,
        )

    async def label_node(
        self,
        name: str,
        body: t.LabelRequest,
        *,
        idempotency_key: str | None = None,
        deadline: float | None = None,
    ) -> t.Accepted:
        """Sets or removes labels of a node; they override those of its worker. Needs the right `nodes.operate`.

        idempotency_key: up to 255 characters; a repeat with the same key gets the first answer
        """
        return await self._json(
            "POST",
            "/api/nodes/{name}/labels",
            {"name": name},
            {},
            {"Idempotency-Key": idempotency_key},
            body,
            deadline,
        )

    async def list_object_kinds(
        self,
        *,
        deadline: float | None = None,
    ) -> list[t.ObjectKind]:
        """The kinds of objects, with the JSON Schema of each. Needs the right `public`."""
        return await self._json(
            "GET",
            "/api/objects",
            {},
            {},
            {},
            None,
            deadline,
        )

    async def list_objects(
        self,
        kind: str,
        *,
        label: str | None = None,
        after: str | None = None,
        limit: int | None = None,
        consistency: Literal["stale", "linearizable"] | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Objects:
        """Objects of a kind by name. Needs the right `objects.read`.

        label: only objects with this label, `KEY` or `KEY=VALUE`
        after: the name after which the page begins, `next` of the page before
        limit: maximum number, 1 to 1000; 50 if it is not a number
        consistency: `stale` answers from the state of this controller, without asking the others
        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "GET",
            "/api/objects/{kind}",
            {"kind": kind},
            {"label": label, "after": after, "limit": limit, "consistency": consistency, "namespace": namespace},
            {},
            None,
            deadline,
        )

    async def get_object(
        self,
        kind: str,
        name: str,
        *,
        consistency: Literal["stale", "linearizable"] | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Object:
        """One object. `ETag` is its revision. Needs the right `objects.read`.

        consistency: `stale` answers from the state of this controller, without asking the others
        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "GET",
            "/api/objects/{kind}/{name}",
            {"kind": kind, "name": name},
            {"consistency": consistency, "namespace": namespace},
            {},
            None,
            deadline,
        )

    async def put_object(
        self,
        kind: str,
        name: str,
        body: t.ObjectRequest,
        *,
        if_match: str | None = None,
        if_none_match: str | None = None,
        dry_run: bool | None = None,
        idempotency_key: str | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Object:
        """Makes an object, or replaces its labels and its spec. The same document again changes nothing. Needs the right `objects.write`.

        if_match: the revision that the object must have, in quotation marks
        if_none_match: `*`: there must be no such object
        dry_run: `true` checks the request and changes nothing
        idempotency_key: up to 255 characters; a repeat with the same key gets the first answer
        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "PUT",
            "/api/objects/{kind}/{name}",
            {"kind": kind, "name": name},
            {"dry_run": dry_run, "namespace": namespace},
            {"If-Match": if_match, "If-None-Match": if_none_match, "Idempotency-Key": idempotency_key},
            body,
            deadline,
        )

    async def delete_object(
        self,
        kind: str,
        name: str,
        *,
        if_match: str | None = None,
        if_none_match: str | None = None,
        dry_run: bool | None = None,
        idempotency_key: str | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Deleted:
        """Deletes an object that nothing uses. Needs the right `objects.write`.

        if_match: the revision that the object must have, in quotation marks
        if_none_match: `*`: there must be no such object
        dry_run: `true` checks the request and changes nothing
        idempotency_key: up to 255 characters; a repeat with the same key gets the first answer
        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "DELETE",
            "/api/objects/{kind}/{name}",
            {"kind": kind, "name": name},
            {"dry_run": dry_run, "namespace": namespace},
            {"If-Match": if_match, "If-None-Match": if_none_match, "Idempotency-Key": idempotency_key},
            None,
            deadline,
        )

    async def set_secret(
        self,
        name: str,
        body: t.SecretRequest,
        *,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Object:
        """Sets the value of a secret as a new version. No answer contains a value; everything else about a secret is the object of the kind `secret`. Needs the right `objects.write`.

        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "PUT",
            "/api/secrets/{name}",
            {"name": name},
            {"namespace": namespace},
            {},
            body,
            deadline,
        )

    async def log_in_to_model(
        self,
        name: str,
        body: t.LoginRequest,
        *,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.LoginProgress:
        """One step of a login to a model whose provider gives access tokens. The tokens become the secret `NAME.login`; no answer contains one. Needs the right `objects.write`.

        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "POST",
            "/api/models/{name}/login",
            {"name": name},
            {"namespace": namespace},
            {},
            body,
            deadline,
        )

    async def log_out_of_model(
        self,
        name: str,
        *,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.LoginProgress:
        """Forgets the tokens of a model. The issuer is not told. Needs the right `objects.write`.

        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "DELETE",
            "/api/models/{name}/login",
            {"name": name},
            {"namespace": namespace},
            {},
            None,
            deadline,
        )

    async def log_in_to_mcp_server(
        self,
        name: str,
        body: t.ServerLoginRequest,
        *,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.ServerLoginProgress:
        """One step of a login at an MCP server that wants access tokens. The tokens become the secret `NAME.mcp-login`; no answer contains one. Needs the right `objects.write`.

        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "POST",
            "/api/mcp-servers/{name}/login",
            {"name": name},
            {"namespace": namespace},
            {},
            body,
            deadline,
        )

    async def log_out_of_mcp_server(
        self,
        name: str,
        *,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.ServerLoginProgress:
        """Forgets the tokens of an MCP server. The issuer is not told. Needs the right `objects.write`.

        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "DELETE",
            "/api/mcp-servers/{name}/login",
            {"name": name},
            {"namespace": namespace},
            {},
            None,
            deadline,
        )

    async def orchestrator(
        self,
        *,
        consistency: Literal["stale", "linearizable"] | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Orchestrator:
        """The orchestrator that decides on jobs before they run. Needs the right `objects.read`.

        consistency: `stale` answers from the state of this controller, without asking the others
        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "GET",
            "/api/orchestrator",
            {},
            {"consistency": consistency, "namespace": namespace},
            {},
            None,
            deadline,
        )

    async def select_orchestrator(
        self,
        body: t.OrchestratorName,
        *,
        strict: bool | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.SelectedOrchestrator:
        """Selects an orchestrator. It decides on every job that gets its first lease after the answer. Needs the right `objects.write`.

        strict: `true` refuses what is accepted with a header `Warning` otherwise
        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "POST",
            "/api/orchestrator",
            {},
            {"strict": strict, "namespace": namespace},
            {},
            body,
            deadline,
        )

    async def explain_policies(
        self,
        body: t.PolicyQuestion,
        *,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.PolicyAnswer:
        """What policies would decide if the caller deployed a registered agent, or submitted a job for it. Nothing is changed. Needs the right `agents.read`.

        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "POST",
            "/api/policies/explain",
            {},
            {"namespace": namespace},
            {},
            body,
            deadline,
        )

    async def create_trigger(
        self,
        body: t.TriggerRequest,
        *,
        strict: bool | None = None,
        if_none_match: str | None = None,
        idempotency_key: str | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Trigger:
        """Makes a trigger, or replaces the one with this id. The members may be under `trigger`. Needs the right `objects.write`.

        strict: `true` refuses what is accepted with a header `Warning` otherwise
        if_none_match: `*`: there must be no such object
        idempotency_key: up to 255 characters; a repeat with the same key gets the first answer
        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "POST",
            "/api/triggers",
            {},
            {"strict": strict, "namespace": namespace},
            {"If-None-Match": if_none_match, "Idempotency-Key": idempotency_key},
            body,
            deadline,
        )

    async def list_triggers(
        self,
        *,
        type: str | None = None,
        enabled: str | None = None,
        limit: str | None = None,
        view: Literal["full", "plain"] | None = None,
        consistency: Literal["stale", "linearizable"] | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> list[t.Trigger]:
        """Triggers, newest first. Needs the right `objects.read`.

        type: only triggers of this type
        enabled: `true`, `1` and `yes`: only enabled ones; anything else: only disabled ones
        limit: maximum number; 100 without it
        view: `full` adds the members that Atlas for Python does not have
        consistency: `stale` answers from the state of this controller, without asking the others
        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "GET",
            "/api/triggers",
            {},
            {"type": type, "enabled": enabled, "limit": limit, "view": view, "consistency": consistency, "namespace": namespace},
            {},
            None,
            deadline,
        )

    async def get_trigger(
        self,
        id: str,
        *,
        view: Literal["full", "plain"] | None = None,
        consistency: Literal["stale", "linearizable"] | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Trigger:
        """One trigger. Needs the right `objects.read`.

        view: `full` adds the members that Atlas for Python does not have
        consistency: `stale` answers from the state of this controller, without asking the others
        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "GET",
            "/api/triggers/{id}",
            {"id": id},
            {"view": view, "consistency": consistency, "namespace": namespace},
            {},
            None,
            deadline,
        )

    async def change_trigger(
        self,
        id: str,
        body: t.TriggerRequest,
        *,
        strict: bool | None = None,
        idempotency_key: str | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Trigger:
        """Changes members of a trigger, and computes its next time. Needs the right `objects.write`.

        strict: `true` refuses what is accepted with a header `Warning` otherwise
        idempotency_key: up to 255 characters; a repeat with the same key gets the first answer
        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "PUT",
            "/api/triggers/{id}",
            {"id": id},
            {"strict": strict, "namespace": namespace},
            {"Idempotency-Key": idempotency_key},
            body,
            deadline,
        )

    async def delete_trigger(
        self,
        id: str,
        *,
        idempotency_key: str | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Deleted:
        """Deletes a trigger. Needs the right `objects.write`.

        idempotency_key: up to 255 characters; a repeat with the same key gets the first answer
        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "DELETE",
            "/api/triggers/{id}",
            {"id": id},
            {"namespace": namespace},
            {"Idempotency-Key": idempotency_key},
            None,
            deadline,
        )

    async def fire_trigger(
        self,
        id: str,
        *,
        idempotency_key: str | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Fired:
        """Fires a trigger now, also a disabled one. Needs the right `jobs.submit`.

        idempotency_key: up to 255 characters; a repeat with the same key gets the first answer
        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "POST",
            "/api/triggers/{id}/fire",
            {"id": id},
            {"namespace": namespace},
            {"Idempotency-Key": idempotency_key},
            None,
            deadline,
        )

    async def next_firings(
        self,
        id: str,
        *,
        count: int | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.NextFirings:
        """The next times at which a trigger fires. Needs the right `objects.read`.

        count: how many, at most 100; defaults to 5
        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "GET",
            "/api/triggers/{id}/next",
            {"id": id},
            {"count": count, "namespace": namespace},
            {},
            None,
            deadline,
        )

    async def trigger_deliveries(
        self,
        id: str,
        *,
        limit: int | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Deliveries:
        """The latest calls of a webhook that reached this controller, newest first. Needs the right `objects.read`.

        limit: how many, at most 100; defaults to 20
        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "GET",
            "/api/triggers/{id}/deliveries",
            {"id": id},
            {"limit": limit, "namespace": namespace},
            {},
            None,
            deadline,
        )

    async def test_trigger(
        self,
        id: str,
        body: t.TriggerTest | None = None,
        *,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.TriggerTested:
        """What a call would start. Nothing is started. Needs the right `objects.write`.

        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "POST",
            "/api/triggers/{id}/test",
            {"id": id},
            {"namespace": namespace},
            {},
            body,
            deadline,
        )

    async def backfill_trigger(
        self,
        id: str,
        body: t.BackfillRequest,
        *,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Backfilled:
        """Fires a trigger for times that have passed, each once. Needs the right `jobs.submit`.

        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "POST",
            "/api/triggers/{id}/backfill",
            {"id": id},
            {"namespace": namespace},
            {},
            body,
            deadline,
        )

    async def call_hook(
        self,
        id: str,
        body: t.Call | None = None,
        *,
        x_atlas_signature: str | None = None,
        x_atlas_timestamp: str | None = None,
        x_atlas_delivery: str | None = None,
        idempotency_key: str | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Fired | t.Greeted:
        """Fires a webhook. The members of the body replace those of its input. Needs the right `public`.

        x_atlas_signature: the HMAC-SHA256 of the body with the secret of the trigger, if it has one: 64 hexadecimal digits, also after `sha256=`, or several with commas between them; other schemes have headers of their own
        x_atlas_timestamp: the time of the call in whole seconds since 1970, if the trigger has a replay window; it is signed before the body
        x_atlas_delivery: the sender's name for this delivery; a repeat gets the first answer
        idempotency_key: up to 255 characters; a repeat with the same key gets the first answer
        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "POST",
            "/api/hooks/{id}",
            {"id": id},
            {"namespace": namespace},
            {"X-Atlas-Signature": x_atlas_signature, "X-Atlas-Timestamp": x_atlas_timestamp, "X-Atlas-Delivery": x_atlas_delivery, "Idempotency-Key": idempotency_key},
            body,
            deadline,
        )

    async def health(
        self,
        *,
        consistency: Literal["stale", "linearizable"] | None = None,
        deadline: float | None = None,
    ) -> t.Health:
        """Numbers of waiting and running jobs, and declared hardware. Needs the right `public`.

        consistency: `stale` answers from the state of this controller, without asking the others
        """
        return await self._json(
            "GET",
            "/api/health",
            {},
            {"consistency": consistency},
            {},
            None,
            deadline,
        )

    async def ready(
        self,
        *,
        alone: bool | None = None,
        deadline: float | None = None,
    ) -> t.Ready:
        """Whether this controller can serve requests. Needs the right `public`.

        alone: `true` succeeds as well while no other member runs
        """
        return await self._json(
            "GET",
            "/api/ready",
            {},
            {"alone": alone},
            {},
            None,
            deadline,
        )

    async def version(
        self,
        *,
        deadline: float | None = None,
    ) -> t.Version:
        """The program and the cluster. Needs the right `public`."""
        return await self._json(
            "GET",
            "/api/version",
            {},
            {},
            {},
            None,
            deadline,
        )

    async def figures(
        self,
        *,
        deadline: float | None = None,
    ) -> t.Figures:
        """Statistics of all agents. Needs the right `metrics.read`."""
        return await self._json(
            "GET",
            "/api/metrics",
            {},
            {},
            {},
            None,
            deadline,
        )

    async def figures_of_agent(
        self,
        agent: str,
        *,
        deadline: float | None = None,
    ) -> t.AgentFigures:
        """Statistics of one agent. Needs the right `metrics.read`."""
        return await self._json(
            "GET",
            "/api/metrics/{agent}",
            {"agent": agent},
            {},
            {},
            None,
            deadline,
        )

    async def metrics(
        self,
        *,
        deadline: float | None = None,
    ) -> str:
        """All instruments in the OpenMetrics text form. Needs the right `metrics.read`."""
        return await self._text(
            "GET",
            "/metrics",
            {},
            {},
            {},
            None,
            deadline,
        )

    async def error_page(
        self,
        code: str,
        *,
        deadline: float | None = None,
    ) -> str:
        """The page of an error code: cause and what to try. The `type` of a problem document is its path. Needs the right `public`."""
        return await self._text(
            "GET",
            "/errors/{code}",
            {"code": code},
            {},
            {},
            None,
            deadline,
        )

    async def open_api(
        self,
        *,
        deadline: float | None = None,
    ) -> t.Document:
        """This interface as an OpenAPI document. Needs the right `public`."""
        return await self._json(
            "GET",
            "/api/openapi.json",
            {},
            {},
            {},
            None,
            deadline,
        )

    async def skills(
        self,
        *,
        consistency: Literal["stale", "linearizable"] | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> list[t.Skill]:
        """The skills, the oldest first, then the platform's tools. Needs the right `agents.read`.

        consistency: `stale` answers from the state of this controller, without asking the others
        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "GET",
            "/api/skills",
            {},
            {"consistency": consistency, "namespace": namespace},
            {},
            None,
            deadline,
        )

    async def deploy_skill(
        self,
        body: bytes,
        *,
        replace: bool | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Registered:
        """Deploys a skill from its package. It replaces one of the same name. Needs the right `agents.publish`.

        replace: `true` replaces another package of the same version
        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "POST",
            "/api/skills",
            {},
            {"replace": replace, "namespace": namespace},
            {},
            body,
            deadline,
        )

    async def get_skill(
        self,
        name: str,
        *,
        consistency: Literal["stale", "linearizable"] | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Skill:
        """One skill. Needs the right `agents.read`.

        consistency: `stale` answers from the state of this controller, without asking the others
        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "GET",
            "/api/skills/{name}",
            {"name": name},
            {"consistency": consistency, "namespace": namespace},
            {},
            None,
            deadline,
        )

    async def test_skill(
        self,
        name: str,
        body: t.SkillTest | None = None,
        *,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.SkillTested:
        """Calls a skill as an agent would, and waits for its end. Needs the right `jobs.submit`.

        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "POST",
            "/api/skills/{name}/test",
            {"name": name},
            {"namespace": namespace},
            {},
            body,
            deadline,
        )

    async def remove_skill(
        self,
        name: str,
        *,
        if_match: str | None = None,
        if_none_match: str | None = None,
        dry_run: bool | None = None,
        idempotency_key: str | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Deleted:
        """Removes a skill. Its package is kept as long as something uses it. Needs the right `agents.publish`.

        if_match: the revision that the object must have, in quotation marks
        if_none_match: `*`: there must be no such object
        dry_run: `true` checks the request and changes nothing
        idempotency_key: up to 255 characters; a repeat with the same key gets the first answer
        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "DELETE",
            "/api/skills/{name}",
            {"name": name},
            {"dry_run": dry_run, "namespace": namespace},
            {"If-Match": if_match, "If-None-Match": if_none_match, "Idempotency-Key": idempotency_key},
            None,
            deadline,
        )

    async def list_conversations(
        self,
        *,
        consistency: Literal["stale", "linearizable"] | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> list[t.Conversation]:
        """The conversations with agents, by id, without their messages. Needs the right `jobs.read`.

        consistency: `stale` answers from the state of this controller, without asking the others
        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "GET",
            "/api/conversations",
            {},
            {"consistency": consistency, "namespace": namespace},
            {},
            None,
            deadline,
        )

    async def get_conversation(
        self,
        id: str,
        *,
        consistency: Literal["stale", "linearizable"] | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Conversation:
        """A conversation with its messages, the oldest first. Needs the right `jobs.read`.

        consistency: `stale` answers from the state of this controller, without asking the others
        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "GET",
            "/api/conversations/{id}",
            {"id": id},
            {"consistency": consistency, "namespace": namespace},
            {},
            None,
            deadline,
        )

    async def branch_conversation(
        self,
        id: str,
        body: t.ConversationBranch,
        *,
        idempotency_key: str | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Conversation:
        """Begins another conversation with the first turns of this one. Both go on independently of each other. Needs the right `jobs.submit`.

        idempotency_key: up to 255 characters; a repeat with the same key gets the first answer
        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "POST",
            "/api/conversations/{id}/branch",
            {"id": id},
            {"namespace": namespace},
            {"Idempotency-Key": idempotency_key},
            body,
            deadline,
        )

    async def delete_conversation(
        self,
        id: str,
        *,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Deleted:
        """Deletes a conversation. The answer of a turn under way is not kept. Needs the right `jobs.control`.

        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "DELETE",
            "/api/conversations/{id}",
            {"id": id},
            {"namespace": namespace},
            {},
            None,
            deadline,
        )

    async def mcp_registry(
        self,
        *,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.McpServers:
        """The agents as MCP servers: names, titles, addresses and models. Needs the right `public`.

        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "GET",
            "/.well-known/mcp/server.json",
            {},
            {"namespace": namespace},
            {},
            None,
            deadline,
        )

    async def get_memory(
        self,
        *,
        scope: str | None = None,
        consistency: Literal["stale", "linearizable"] | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Memory:
        """The text of a shared memory. Needs the right `objects.read`.

        scope: whose memory: `namespace`, `agent:NAME`, `user:NAME` or `conversation:ID`
        consistency: `stale` answers from the state of this controller, without asking the others
        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "GET",
            "/api/memory",
            {},
            {"scope": scope, "consistency": consistency, "namespace": namespace},
            {},
            None,
            deadline,
        )

    async def write_memory(
        self,
        body: t.MemoryChange,
        *,
        idempotency_key: str | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Memory:
        """Appends a line to a shared memory, or replaces its text or its oldest entries. Needs the right `objects.write`.

        idempotency_key: up to 255 characters; a repeat with the same key gets the first answer
        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "POST",
            "/api/memory",
            {},
            {"namespace": namespace},
            {"Idempotency-Key": idempotency_key},
            body,
            deadline,
        )

    async def clear_memory(
        self,
        *,
        scope: str | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Deleted:
        """Removes a shared memory with its history. Needs the right `objects.write`.

        scope: whose memory: `namespace`, `agent:NAME`, `user:NAME` or `conversation:ID`
        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "DELETE",
            "/api/memory",
            {},
            {"scope": scope, "namespace": namespace},
            {},
            None,
            deadline,
        )

    async def list_memory_entries(
        self,
        *,
        scope: str | None = None,
        consistency: Literal["stale", "linearizable"] | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> list[t.MemoryEntry]:
        """What was written to a shared memory and by whom, the oldest first; also the latest that was replaced. Needs the right `objects.read`.

        scope: whose memory: `namespace`, `agent:NAME`, `user:NAME` or `conversation:ID`
        consistency: `stale` answers from the state of this controller, without asking the others
        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "GET",
            "/api/memory/entries",
            {},
            {"scope": scope, "consistency": consistency, "namespace": namespace},
            {},
            None,
            deadline,
        )

    async def search_knowledge(
        self,
        *,
        q: str | None = None,
        domain: str | None = None,
        tags: str | None = None,
        limit: int | None = None,
        consistency: Literal["stale", "linearizable"] | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> list[t.KnowledgeEntry]:
        """The entries that contain a text, by domain and id. Needs the right `objects.read`.

        q: compared without case with content and tags; all entries if it is empty
        domain: only entries of this domain
        tags: only entries with one of these tags, with commas between them
        limit: maximum number, 1 to 1000; 50 if it is not a number
        consistency: `stale` answers from the state of this controller, without asking the others
        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "GET",
            "/api/knowledge/search",
            {},
            {"q": q, "domain": domain, "tags": tags, "limit": limit, "consistency": consistency, "namespace": namespace},
            {},
            None,
            deadline,
        )

    async def list_knowledge(
        self,
        *,
        domain: str | None = None,
        limit: int | None = None,
        offset: int | None = None,
        consistency: Literal["stale", "linearizable"] | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> list[t.KnowledgeEntry]:
        """The entries, by domain and id. Needs the right `objects.read`.

        domain: only entries of this domain
        limit: maximum number, 1 to 1000; 50 if it is not a number
        offset: number to skip
        consistency: `stale` answers from the state of this controller, without asking the others
        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "GET",
            "/api/knowledge/entries",
            {},
            {"domain": domain, "limit": limit, "offset": offset, "consistency": consistency, "namespace": namespace},
            {},
            None,
            deadline,
        )

    async def store_knowledge(
        self,
        body: t.KnowledgeDraft,
        *,
        idempotency_key: str | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.KnowledgeEntry:
        """Stores an entry. One with the same id is replaced. Needs the right `objects.write`.

        idempotency_key: up to 255 characters; a repeat with the same key gets the first answer
        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "POST",
            "/api/knowledge/entries",
            {},
            {"namespace": namespace},
            {"Idempotency-Key": idempotency_key},
            body,
            deadline,
        )

    async def get_knowledge(
        self,
        id: str,
        *,
        consistency: Literal["stale", "linearizable"] | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.KnowledgeEntry:
        """One entry. Needs the right `objects.read`.

        consistency: `stale` answers from the state of this controller, without asking the others
        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "GET",
            "/api/knowledge/entries/{id}",
            {"id": id},
            {"consistency": consistency, "namespace": namespace},
            {},
            None,
            deadline,
        )

    async def change_knowledge(
        self,
        id: str,
        body: t.KnowledgeChange,
        *,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.KnowledgeEntry:
        """Changes members of an entry. Needs the right `objects.write`.

        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "PUT",
            "/api/knowledge/entries/{id}",
            {"id": id},
            {"namespace": namespace},
            {},
            body,
            deadline,
        )

    async def delete_knowledge(
        self,
        id: str,
        *,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Deleted:
        """Deletes an entry. Needs the right `objects.write`.

        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "DELETE",
            "/api/knowledge/entries/{id}",
            {"id": id},
            {"namespace": namespace},
            {},
            None,
            deadline,
        )

    async def list_knowledge_domains(
        self,
        *,
        consistency: Literal["stale", "linearizable"] | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> list[t.KnowledgeDomain]:
        """The domains that have entries, by name. Needs the right `objects.read`.

        consistency: `stale` answers from the state of this controller, without asking the others
        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "GET",
            "/api/knowledge/domains",
            {},
            {"consistency": consistency, "namespace": namespace},
            {},
            None,
            deadline,
        )

    async def get_knowledge_acl(
        self,
        *,
        agent: str | None = None,
        consistency: Literal["stale", "linearizable"] | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.KnowledgeAcl:
        """Which domains agents read and write. Needs the right `objects.read`.

        agent: only this agent
        consistency: `stale` answers from the state of this controller, without asking the others
        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "GET",
            "/api/knowledge/acl",
            {},
            {"agent": agent, "consistency": consistency, "namespace": namespace},
            {},
            None,
            deadline,
        )

    async def list_bases(
        self,
        *,
        consistency: Literal["stale", "linearizable"] | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> list[t.Base]:
        """The document bases by name. Needs the right `objects.read`.

        consistency: `stale` answers from the state of this controller, without asking the others
        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "GET",
            "/api/bases",
            {},
            {"consistency": consistency, "namespace": namespace},
            {},
            None,
            deadline,
        )

    async def create_base(
        self,
        body: t.BaseDraft,
        *,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Base:
        """Makes a document base. A repeat with the same settings finds it. Needs the right `objects.write`.

        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "POST",
            "/api/bases",
            {},
            {"namespace": namespace},
            {},
            body,
            deadline,
        )

    async def get_base(
        self,
        name: str,
        *,
        consistency: Literal["stale", "linearizable"] | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Base:
        """One document base. Needs the right `objects.read`.

        consistency: `stale` answers from the state of this controller, without asking the others
        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "GET",
            "/api/bases/{name}",
            {"name": name},
            {"consistency": consistency, "namespace": namespace},
            {},
            None,
            deadline,
        )

    async def change_base(
        self,
        name: str,
        body: t.BaseChange,
        *,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Base:
        """Changes settings of a base. Documents are cut anew by them. Needs the right `objects.write`.

        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "PUT",
            "/api/bases/{name}",
            {"name": name},
            {"namespace": namespace},
            {},
            body,
            deadline,
        )

    async def delete_base(
        self,
        name: str,
        *,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Deleted:
        """Deletes a base with its documents. Needs the right `objects.write`.

        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "DELETE",
            "/api/bases/{name}",
            {"name": name},
            {"namespace": namespace},
            {},
            None,
            deadline,
        )

    async def rebuild_base(
        self,
        name: str,
        body: t.BaseRebuild,
        *,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.RebuiltBase:
        """Writes the documents of a base anew: removed ones leave its segments. Needs the right `objects.write`.

        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "POST",
            "/api/bases/{name}/rebuild",
            {"name": name},
            {"namespace": namespace},
            {},
            body,
            deadline,
        )

    async def collect_base(
        self,
        name: str,
        *,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.BaseCollecting:
        """Reads the sources of a base by a job. If one does so already, the answer is that job. Needs the right `objects.write`.

        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "POST",
            "/api/bases/{name}/collect",
            {"name": name},
            {"namespace": namespace},
            {},
            None,
            deadline,
        )

    async def list_documents(
        self,
        name: str,
        *,
        source: str | None = None,
        after: str | None = None,
        limit: int | None = None,
        text: bool | None = None,
        consistency: Literal["stale", "linearizable"] | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.DocumentPage:
        """The documents of a base by source. Needs the right `objects.read`.

        source: only documents whose sources begin with it
        after: the `next` of the page before
        limit: maximum number, 1 to 1000; 50 if it is not a number
        text: `true` adds the texts; a page then has up to 8 MiB of them
        consistency: `stale` answers from the state of this controller, without asking the others
        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "GET",
            "/api/bases/{name}/documents",
            {"name": name},
            {"source": source, "after": after, "limit": limit, "text": text, "consistency": consistency, "namespace": namespace},
            {},
            None,
            deadline,
        )

    async def add_documents(
        self,
        name: str,
        body: t.DocumentDrafts,
        *,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.AddedDocuments:
        """Adds documents. One with the same source is replaced; one that is there already changes nothing. Needs the right `objects.write`.

        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "POST",
            "/api/bases/{name}/documents",
            {"name": name},
            {"namespace": namespace},
            {},
            body,
            deadline,
        )

    async def remove_documents(
        self,
        name: str,
        *,
        source: str | None = None,
        erase: bool | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.RemovedDocuments:
        """Removes documents. They are in no answer from then on. Needs the right `objects.write`.

        source: the source; if no document has it, a pattern in which `*` is any text, such as `docs/*.md`
        erase: `true` writes the base anew, so that no segment has removed documents
        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "DELETE",
            "/api/bases/{name}/documents",
            {"name": name},
            {"source": source, "erase": erase, "namespace": namespace},
            {},
            None,
            deadline,
        )

    async def search_documents(
        self,
        name: str,
        body: t.DocumentQuery,
        *,
        consistency: Literal["stale", "linearizable"] | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.FoundDocuments:
        """The parts of documents that fit a question, the best first. Needs the right `objects.read`.

        consistency: `stale` answers from the state of this controller, without asking the others
        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "POST",
            "/api/bases/{name}/search",
            {"name": name},
            {"consistency": consistency, "namespace": namespace},
            {},
            body,
            deadline,
        )

    async def list_usable_models(
        self,
        *,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.UsableModels:
        """What the caller may name as a model: models, agents and chains. Needs the right `jobs.submit`.

        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "GET",
            "/v1/models",
            {},
            {"namespace": namespace},
            {},
            None,
            deadline,
        )

    async def get_usable_model(
        self,
        model: str,
        *,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.UsableModel:
        """One that the caller may name as a model. Needs the right `jobs.submit`.

        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "GET",
            "/v1/models/{model}",
            {"model": model},
            {"namespace": namespace},
            {},
            None,
            deadline,
        )

    async def get_usable_model_of(
        self,
        form: str,
        model: str,
        *,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.UsableModel:
        """The same by its long name: `model`, `agent` or `chain` before the name. Needs the right `jobs.submit`.

        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "GET",
            "/v1/models/{form}/{model}",
            {"form": form, "model": model},
            {"namespace": namespace},
            {},
            None,
            deadline,
        )

    async def create_chat_completion(
        self,
        body: t.ChatCompletionRequest,
        *,
        idempotency_key: str | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.ChatCompletion:
        """The next message of a conversation, by a job. Needs the right `jobs.submit`.

        idempotency_key: up to 255 characters; a repeat with the same key gets the first answer
        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "POST",
            "/v1/chat/completions",
            {},
            {"namespace": namespace},
            {"Idempotency-Key": idempotency_key},
            body,
            deadline,
        )

    def stream_create_chat_completion(
        self,
        body: t.ChatCompletionRequest,
        *,
        idempotency_key: str | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> AsyncEvents[t.ChatCompletion]:
        """The next message of a conversation, by a job. Needs the right `jobs.submit`.

        idempotency_key: up to 255 characters; a repeat with the same key gets the first answer
        namespace: the namespace; defaults to `default`
        """
        return self._stream(
            "POST",
            "/v1/chat/completions",
            {},
            {"namespace": namespace},
            {"Idempotency-Key": idempotency_key},
            body,
            deadline,
        )

    async def create_completion(
        self,
        body: t.CompletionRequest,
        *,
        idempotency_key: str | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Completion:
        """A text that goes on from a prompt, by a job. Needs the right `jobs.submit`.

        idempotency_key: up to 255 characters; a repeat with the same key gets the first answer
        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "POST",
            "/v1/completions",
            {},
            {"namespace": namespace},
            {"Idempotency-Key": idempotency_key},
            body,
            deadline,
        )

    def stream_create_completion(
        self,
        body: t.CompletionRequest,
        *,
        idempotency_key: str | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> AsyncEvents[t.Completion]:
        """A text that goes on from a prompt, by a job. Needs the right `jobs.submit`.

        idempotency_key: up to 255 characters; a repeat with the same key gets the first answer
        namespace: the namespace; defaults to `default`
        """
        return self._stream(
            "POST",
            "/v1/completions",
            {},
            {"namespace": namespace},
            {"Idempotency-Key": idempotency_key},
            body,
            deadline,
        )

    async def create_embeddings(
        self,
        body: t.EmbeddingsRequest,
        *,
        idempotency_key: str | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Embeddings:
        """The vectors of texts, by a job. Needs the right `jobs.submit`.

        idempotency_key: up to 255 characters; a repeat with the same key gets the first answer
        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "POST",
            "/v1/embeddings",
            {},
            {"namespace": namespace},
            {"Idempotency-Key": idempotency_key},
            body,
            deadline,
        )

    async def create_response(
        self,
        body: t.ResponseRequest,
        *,
        idempotency_key: str | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.ModelResponse:
        """A response of a model, by a job; in the background, the answer is sent once the job is durable. Needs the right `jobs.submit`.

        idempotency_key: up to 255 characters; a repeat with the same key gets the first answer
        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "POST",
            "/v1/responses",
            {},
            {"namespace": namespace},
            {"Idempotency-Key": idempotency_key},
            body,
            deadline,
        )

    def stream_create_response(
        self,
        body: t.ResponseRequest,
        *,
        idempotency_key: str | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> AsyncEvents[t.ModelResponse]:
        """A response of a model, by a job; in the background, the answer is sent once the job is durable. Needs the right `jobs.submit`.

        idempotency_key: up to 255 characters; a repeat with the same key gets the first answer
        namespace: the namespace; defaults to `default`
        """
        return self._stream(
            "POST",
            "/v1/responses",
            {},
            {"namespace": namespace},
            {"Idempotency-Key": idempotency_key},
            body,
            deadline,
        )

    async def get_response(
        self,
        id: str,
        *,
        stream: bool | None = None,
        starting_after: int | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.ModelResponse:
        """A response that the caller asked for; with `jobs.read` also those of others. Needs the right `jobs.submit`.

        stream: `true` answers with the events of the response
        starting_after: with `stream`: only events with a larger `sequence_number`
        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "GET",
            "/v1/responses/{id}",
            {"id": id},
            {"stream": stream, "starting_after": starting_after, "namespace": namespace},
            {},
            None,
            deadline,
        )

    def stream_get_response(
        self,
        id: str,
        *,
        stream: bool | None = None,
        starting_after: int | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> AsyncEvents[t.ModelResponse]:
        """A response that the caller asked for; with `jobs.read` also those of others. Needs the right `jobs.submit`.

        stream: `true` answers with the events of the response
        starting_after: with `stream`: only events with a larger `sequence_number`
        namespace: the namespace; defaults to `default`
        """
        return self._stream(
            "GET",
            "/v1/responses/{id}",
            {"id": id},
            {"stream": stream, "starting_after": starting_after, "namespace": namespace},
            {},
            None,
            deadline,
        )

    async def list_input_items(
        self,
        id: str,
        *,
        limit: int | None = None,
        order: Literal["asc", "desc"] | None = None,
        after: str | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.InputItems:
        """The items that a response was asked with. Needs the right `jobs.submit`.

        limit: most items, 1 to 100; defaults to 20
        order: `asc`: the oldest item first; defaults to `desc`
        after: the id of the last item of the page before
        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "GET",
            "/v1/responses/{id}/input_items",
            {"id": id},
            {"limit": limit, "order": order, "after": after, "namespace": namespace},
            {},
            None,
            deadline,
        )

    async def cancel_response(
        self,
        id: str,
        *,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.ModelResponse:
        """Cancels the job of a response. Needs the right `jobs.control`.

        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "POST",
            "/v1/responses/{id}/cancel",
            {"id": id},
            {"namespace": namespace},
            {},
            None,
            deadline,
        )

    async def delete_response(
        self,
        id: str,
        *,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.DeletedResponse:
        """Deletes a response: its job is cancelled if it runs, and what was said is erased from its record. Needs the right `jobs.control`.

        namespace: the namespace; defaults to `default`
        """
        return await self._json(
            "DELETE",
            "/v1/responses/{id}",
            {"id": id},
            {"namespace": namespace},
            {},
            None,
            deadline,
        )

    async def security_policy(
        self,
        *,
        deadline: float | None = None,
    ) -> t.Policy:
        """The security policy of the cluster. Needs the right `public`."""
        return await self._json(
            "GET",
            "/api/security/policy",
            {},
            {},
            {},
            None,
            deadline,
        )

    async def cluster(
        self,
        *,
        deadline: float | None = None,
    ) -> t.Cluster:
        """Leader, log positions, reachable voters and members of the cluster. Needs the right `cluster.read`."""
        return await self._json(
            "GET",
            "/api/cluster",
            {},
            {},
            {},
            None,
            deadline,
        )

    async def list_members(
        self,
        *,
        limit: int | None = None,
        offset: int | None = None,
        deadline: float | None = None,
    ) -> list[t.Member]:
        """The members by number, with their state. Needs the right `cluster.read`.

        limit: maximum number, 1 to 1000; defaults to all
        offset: number to skip
        """
        return await self._json(
            "GET",
            "/api/cluster/members",
            {},
            {"limit": limit, "offset": offset},
            {},
            None,
            deadline,
        )

    async def remove_member(
        self,
        member: str,
        *,
        idempotency_key: str | None = None,
        deadline: float | None = None,
    ) -> t.Removed:
        """Removes a member permanently; refused if no quorum would remain. Needs the right `cluster.operate`.

        idempotency_key: up to 255 characters; a repeat with the same key gets the first answer
        """
        return await self._json(
            "DELETE",
            "/api/cluster/members/{member}",
            {"member": member},
            {},
            {"Idempotency-Key": idempotency_key},
            None,
            deadline,
        )

    async def create_join_token(
        self,
        body: t.TokenRequest | None = None,
        *,
        idempotency_key: str | None = None,
        deadline: float | None = None,
    ) -> t.Token:
        """Creates a token with which a controller or a node can join. Needs the right `cluster.operate`.

        idempotency_key: up to 255 characters; a repeat with the same key gets the first answer
        """
        return await self._json(
            "POST",
            "/api/cluster/join-tokens",
            {},
            {},
            {"Idempotency-Key": idempotency_key},
            body,
            deadline,
        )

    async def revoke_join_token(
        self,
        body: t.RevokeRequest,
        *,
        idempotency_key: str | None = None,
        deadline: float | None = None,
    ) -> t.Revoked:
        """Revokes a join token. Needs the right `cluster.operate`.

        idempotency_key: up to 255 characters; a repeat with the same key gets the first answer
        """
        return await self._json(
            "POST",
            "/api/cluster/join-tokens/revoke",
            {},
            {},
            {"Idempotency-Key": idempotency_key},
            body,
            deadline,
        )

    async def transfer_leader(
        self,
        body: t.TransferRequest | None = None,
        *,
        idempotency_key: str | None = None,
        deadline: float | None = None,
    ) -> t.Transferred:
        """Makes another member the leader. Needs the right `cluster.operate`.

        idempotency_key: up to 255 characters; a repeat with the same key gets the first answer
        """
        return await self._json(
            "POST",
            "/api/cluster/transfer-leader",
            {},
            {},
            {"Idempotency-Key": idempotency_key},
            body,
            deadline,
        )

    def snapshot(
        self,
        *,
        deadline: float | None = None,
    ) -> AsyncBytes:
        """A backup of the cluster, streamed. Needs the right `cluster.operate`."""
        return self._bytes(
            "GET",
            "/api/cluster/snapshot",
            {},
            {},
            {},
            None,
            deadline,
        )

    async def whoami(
        self,
        *,
        deadline: float | None = None,
    ) -> t.Whoami:
        """Who sends the request, and what this principal is granted. Needs the right `public`."""
        return await self._json(
            "GET",
            "/api/auth/whoami",
            {},
            {},
            {},
            None,
            deadline,
        )

    async def mcp_resource(
        self,
        *,
        deadline: float | None = None,
    ) -> t.ProtectedResource:
        """Which issuers give tokens for the MCP server of the platform (RFC 9728). Needs the right `public`."""
        return await self._json(
            "GET",
            "/.well-known/oauth-protected-resource/mcp",
            {},
            {},
            {},
            None,
            deadline,
        )

    async def mcp_resource_of_agent(
        self,
        name: str,
        *,
        deadline: float | None = None,
    ) -> t.ProtectedResource:
        """Which issuers give tokens for the MCP server of an agent (RFC 9728). Needs the right `public`."""
        return await self._json(
            "GET",
            "/.well-known/oauth-protected-resource/agents/{name}/mcp",
            {"name": name},
            {},
            {},
            None,
            deadline,
        )

    async def create_token(
        self,
        body: t.AccessTokenRequest,
        *,
        deadline: float | None = None,
    ) -> t.AccessToken:
        """Makes a token. Only its hash is stored: everything else about it is the object of the kind `token`, and deleting that revokes it. Needs the right `access.manage`."""
        return await self._json(
            "POST",
            "/api/auth/tokens",
            {},
            {},
            {},
            body,
            deadline,
        )

    async def read_audit(
        self,
        *,
        cursor: str | None = None,
        member: str | None = None,
        limit: int | None = None,
        principal: str | None = None,
        verb: str | None = None,
        object: str | None = None,
        namespace: str | None = None,
        decision: Literal["allow", "failed", "deny", "dropped"] | None = None,
        since: float | None = None,
        until: float | None = None,
        deadline: float | None = None,
    ) -> t.AuditPage:
        """Records of who did what, and of who was denied it, oldest first. Each controller has those of its own doors; the answer has those of all, and names controllers that did not answer. Needs the right `audit.read`.

        cursor: continues where the answer with this cursor ended; `end` is after the newest record of each controller
        member: only those of this controller, by name or number
        limit: maximum number, 1 to 1000; defaults to 100
        principal: only those of this principal
        verb: only those of this operation
        object: only those about objects that begin with this, such as `agent/`
        namespace: only those in this namespace
        decision: only those with this decision
        since: not before this time, Unix seconds
        until: before this time, Unix seconds
        """
        return await self._json(
            "GET",
            "/api/audit",
            {},
            {"cursor": cursor, "member": member, "limit": limit, "principal": principal, "verb": verb, "object": object, "namespace": namespace, "decision": decision, "since": since, "until": until},
            {},
            None,
            deadline,
        )


class Operations(Calls):
    """Every operation of the interface, without async."""

    def submit_job(
        self,
        body: t.Submission,
        *,
        validate: Literal["refuse"] | None = None,
        only: Literal["agent"] | None = None,
        wait: float | None = None,
        family: bool | None = None,
        view: Literal["full", "plain"] | None = None,
        strict: bool | None = None,
        idempotency_key: str | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Id | t.Job:
        """Submits a job. The answer is sent once the job is durable. Needs the right `jobs.submit`.

        validate: `refuse` refuses jobs that cannot run, instead of accepting them and letting them fail
        only: with `validate=refuse`: `agent` refuses the name of a stored chain as well
        wait: seconds to wait for the end of the job; the answer is then the job
        family: `true` also waits for the retries of a failed job and returns the last of them
        view: `full` adds the members that Atlas for Python does not have
        strict: `true` refuses what is accepted with a header `Warning` otherwise
        idempotency_key: up to 255 characters; a repeat with the same key gets the first answer
        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "POST",
            "/api/jobs",
            {},
            {"validate": validate, "only": only, "wait": wait, "family": family, "view": view, "strict": strict, "namespace": namespace},
            {"Idempotency-Key": idempotency_key},
            body,
            deadline,
        )

    def submit_jobs(
        self,
        body: t.Batch,
        *,
        validate: Literal["refuse"] | None = None,
        queue_wait: float | None = None,
        idempotency_key: str | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.BatchResults:
        """Submits many jobs, each with its own result. The answer is sent once the accepted jobs are durable. Needs the right `jobs.submit`.

        validate: `refuse` refuses jobs that cannot run, instead of accepting them and letting them fail
        queue_wait: seconds to wait for space in a full queue; defaults to 0
        idempotency_key: gives each job that has no `idempotency_key` the key `KEY.INDEX`, its index in the list from 0
        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "POST",
            "/api/jobs:batch",
            {},
            {"validate": validate, "queue_wait": queue_wait, "namespace": namespace},
            {"Idempotency-Key": idempotency_key},
            body,
            deadline,
        )

    def list_jobs(
        self,
        *,
        status: str | None = None,
        agent: str | None = None,
        label: str | Sequence[str] | None = None,
        text: str | None = None,
        before: str | None = None,
        since: float | None = None,
        until: float | None = None,
        limit: int | None = None,
        offset: int | None = None,
        view: Literal["full", "plain"] | None = None,
        consistency: Literal["stale", "linearizable"] | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> list[t.Job]:
        """Jobs, newest first. Needs the right `jobs.read`.

        status: only jobs with this status
        agent: only jobs of this agent
        label: only jobs with this label, as `KEY=VALUE`; repeatable
        text: only jobs with these words in their error or labels
        before: only jobs submitted before this job: the id of the last job of a page gets the next page
        since: submitted at or after this time, Unix seconds
        until: submitted at or before this time, Unix seconds
        limit: maximum number, 1 to 1000; 50 if it is not a number
        offset: number to skip
        view: `full` adds the members that Atlas for Python does not have
        consistency: `stale` answers from the state of this controller, without asking the others
        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "GET",
            "/api/jobs",
            {},
            {"status": status, "agent": agent, "label": label, "text": text, "before": before, "since": since, "until": until, "limit": limit, "offset": offset, "view": view, "consistency": consistency, "namespace": namespace},
            {},
            None,
            deadline,
        )

    def get_job(
        self,
        id: str,
        *,
        wait: float | None = None,
        family: bool | None = None,
        view: Literal["full", "plain"] | None = None,
        consistency: Literal["stale", "linearizable"] | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Job:
        """One job. Needs the right `jobs.read`.

        wait: seconds to wait for the job's end, as `/api/jobs/{id}/wait` does
        family: `true` also waits for the retries of a failed job and returns the last of them
        view: `full` adds the members that Atlas for Python does not have
        consistency: `stale` answers from the state of this controller, without asking the others
        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "GET",
            "/api/jobs/{id}",
            {"id": id},
            {"wait": wait, "family": family, "view": view, "consistency": consistency, "namespace": namespace},
            {},
            None,
            deadline,
        )

    def delete_job(
        self,
        id: str,
        *,
        idempotency_key: str | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Cancelled:
        """Cancels a pending job; false for every other and for an unknown job. Needs the right `jobs.control`.

        idempotency_key: up to 255 characters; a repeat with the same key gets the first answer
        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "DELETE",
            "/api/jobs/{id}",
            {"id": id},
            {"namespace": namespace},
            {"Idempotency-Key": idempotency_key},
            None,
            deadline,
        )

    def wait_for_job(
        self,
        id: str,
        *,
        timeout: float | None = None,
        family: bool | None = None,
        questions: bool | None = None,
        view: Literal["full", "plain"] | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Job:
        """Waits for a job; returns it after it has ended or the timeout has passed. Needs the right `jobs.read`.

        timeout: maximum seconds to wait; defaults to 60
        family: `true` also waits for the retries of a failed job and returns the last of them
        questions: `true` also returns a job that has an open question, or a job below it
        view: `full` adds the members that Atlas for Python does not have
        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "GET",
            "/api/jobs/{id}/wait",
            {"id": id},
            {"timeout": timeout, "family": family, "questions": questions, "view": view, "namespace": namespace},
            {},
            None,
            deadline,
        )

    def get_job_tree(
        self,
        id: str,
        *,
        consistency: Literal["stale", "linearizable"] | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.JobTree:
        """A job with the jobs that it spawned, except those that have left the state. Needs the right `jobs.read`.

        consistency: `stale` answers from the state of this controller, without asking the others
        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "GET",
            "/api/jobs/{id}/tree",
            {"id": id},
            {"consistency": consistency, "namespace": namespace},
            {},
            None,
            deadline,
        )

    def get_job_policies(
        self,
        id: str,
        *,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.LeftPermissions:
        """The permissions that policies leave the agent of a job. Needs the right `jobs.read`.

        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "GET",
            "/api/jobs/{id}/policies",
            {"id": id},
            {"namespace": namespace},
            {},
            None,
            deadline,
        )

    def explain_job(
        self,
        id: str,
        *,
        consistency: Literal["stale", "linearizable"] | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Explained:
        """Why a job waits, since when, and what would start it. Needs the right `jobs.read`.

        consistency: `stale` answers from the state of this controller, without asking the others
        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "GET",
            "/api/jobs/{id}/explain",
            {"id": id},
            {"consistency": consistency, "namespace": namespace},
            {},
            None,
            deadline,
        )

    def list_steps(
        self,
        id: str,
        *,
        after: int | None = None,
        limit: int | None = None,
        consistency: Literal["stale", "linearizable"] | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> list[t.Step]:
        """The recorded steps of a job, in order. Needs the right `jobs.read`.

        after: only the steps after this number
        limit: maximum number, 1 to 1000; 50 if it is not a number
        consistency: `stale` answers from the state of this controller, without asking the others
        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "GET",
            "/api/jobs/{id}/steps",
            {"id": id},
            {"after": after, "limit": limit, "consistency": consistency, "namespace": namespace},
            {},
            None,
            deadline,
        )

    def get_receipt(
        self,
        id: str,
        *,
        consistency: Literal["stale", "linearizable"] | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Receipt:
        """A receipt of a job that has ended, which can be verified anywhere. Needs the right `jobs.read`.

        consistency: `stale` answers from the state of this controller, without asking the others
        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "GET",
            "/api/jobs/{id}/receipt",
            {"id": id},
            {"consistency": consistency, "namespace": namespace},
            {},
            None,
            deadline,
        )

    def cancel_job(
        self,
        id: str,
        *,
        idempotency_key: str | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Cancelled:
        """Cancels a pending or running job and the jobs that it spawned. Needs the right `jobs.control`.

        idempotency_key: up to 255 characters; a repeat with the same key gets the first answer
        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "POST",
            "/api/jobs/{id}/cancel",
            {"id": id},
            {"namespace": namespace},
            {"Idempotency-Key": idempotency_key},
            None,
            deadline,
        )

    def retry_job(
        self,
        id: str,
        *,
        resume: bool | None = None,
        questions: str | None = None,
        idempotency_key: str | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Id:
        """Runs an ended job again as a new job. Needs the right `jobs.control`.

        resume: `true` copies the recorded steps, which the new job does not repeat
        questions: what happens to the questions of the new job: `fail`, `wait`, or `answer:` and a text; defaults to what happens to those of the ended one
        idempotency_key: up to 255 characters; a repeat with the same key gets the first answer
        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "POST",
            "/api/jobs/{id}/retry",
            {"id": id},
            {"resume": resume, "questions": questions, "namespace": namespace},
            {"Idempotency-Key": idempotency_key},
            None,
            deadline,
        )

    def erase_job(
        self,
        id: str,
        *,
        idempotency_key: str | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Erased:
        """Erases the input, output, log, steps and error text of an ended job. Needs the right `jobs.control`.

        idempotency_key: up to 255 characters; a repeat with the same key gets the first answer
        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "POST",
            "/api/jobs/{id}/erase",
            {"id": id},
            {"namespace": namespace},
            {"Idempotency-Key": idempotency_key},
            None,
            deadline,
        )

    def erase_jobs(
        self,
        *,
        idempotency_key: str | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Erased:
        """Erases all jobs of a namespace, and its ended runs. All must have ended. Needs the right `jobs.control`.

        idempotency_key: up to 255 characters; a repeat with the same key gets the first answer
        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "POST",
            "/api/jobs:erase",
            {},
            {"namespace": namespace},
            {"Idempotency-Key": idempotency_key},
            None,
            deadline,
        )

    def fork_job(
        self,
        id: str,
        body: t.Fork,
        *,
        idempotency_key: str | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Id:
        """Begins a new job with the first recorded steps of another one. Needs the right `jobs.control`.

        idempotency_key: up to 255 characters; a repeat with the same key gets the first answer
        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "POST",
            "/api/jobs/{id}/fork",
            {"id": id},
            {"namespace": namespace},
            {"Idempotency-Key": idempotency_key},
            body,
            deadline,
        )

    def resolve_job(
        self,
        id: str,
        body: t.Decision,
        *,
        idempotency_key: str | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Resolved:
        """Resolves a job in doubt. Needs the right `jobs.control`.

        idempotency_key: up to 255 characters; a repeat with the same key gets the first answer
        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "POST",
            "/api/jobs/{id}/resolve",
            {"id": id},
            {"namespace": namespace},
            {"Idempotency-Key": idempotency_key},
            body,
            deadline,
        )

    def send_message(
        self,
        id: str,
        body: t.Message,
        *,
        idempotency_key: str | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Sent:
        """Sends a message to a job that has not ended. Needs the right `jobs.control`.

        idempotency_key: up to 255 characters; a repeat with the same key gets the first answer
        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "POST",
            "/api/jobs/{id}/messages",
            {"id": id},
            {"namespace": namespace},
            {"Idempotency-Key": idempotency_key},
            body,
            deadline,
        )

    def list_questions(
        self,
        *,
        status: Literal["open", "all"] | None = None,
        job: str | None = None,
        after: int | None = None,
        limit: int | None = None,
        consistency: Literal["stale", "linearizable"] | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> list[t.Question]:
        """The questions of jobs to people, the oldest first. Needs the right `jobs.read`.

        status: `all` adds questions that have ended; defaults to `open`
        job: only those of this job and of the jobs below it
        after: only those with a number after this one
        limit: maximum number, 1 to 1000; 50 if it is not a number
        consistency: `stale` answers from the state of this controller, without asking the others
        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "GET",
            "/api/questions",
            {},
            {"status": status, "job": job, "after": after, "limit": limit, "consistency": consistency, "namespace": namespace},
            {},
            None,
            deadline,
        )

    def get_question(
        self,
        id: str,
        *,
        consistency: Literal["stale", "linearizable"] | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Question:
        """One question. Needs the right `jobs.read`.

        consistency: `stale` answers from the state of this controller, without asking the others
        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "GET",
            "/api/questions/{id}",
            {"id": id},
            {"consistency": consistency, "namespace": namespace},
            {},
            None,
            deadline,
        )

    def answer_question(
        self,
        id: str,
        body: t.QuestionAnswer,
        *,
        idempotency_key: str | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Question:
        """Answers a question. The first answer stands. Needs the right `questions.answer`.

        idempotency_key: up to 255 characters; a repeat with the same key gets the first answer
        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "POST",
            "/api/questions/{id}/answer",
            {"id": id},
            {"namespace": namespace},
            {"Idempotency-Key": idempotency_key},
            body,
            deadline,
        )

    def follow_job(
        self,
        id: str,
        *,
        follow: bool | None = None,
        after: str | None = None,
        view: Literal["full", "plain"] | None = None,
        deltas: bool | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> Events[t.Change]:
        """The changes of one job, until it has ended. Needs the right `jobs.read`.

        follow: `false` ends the stream after the past events
        after: the last event seen, for clients that cannot send `Last-Event-ID`
        view: `full` adds the members that Atlas for Python does not have
        deltas: `true` adds pieces of models' answers to the stream: events `delta`, `gap`, `reset`
        namespace: the namespace; defaults to `default`
        """
        return self._stream(
            "GET",
            "/api/jobs/{id}/events",
            {"id": id},
            {"follow": follow, "after": after, "view": view, "deltas": deltas, "namespace": namespace},
            {},
            None,
            deadline,
        )

    def job_logs(
        self,
        id: str,
        *,
        after: str | None = None,
        deltas: bool | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> list[t.Line]:
        """Log lines and progress of a job. Needs the right `jobs.read`.

        after: the last event seen, for clients that cannot send `Last-Event-ID`
        deltas: `true` adds pieces of models' answers to the stream: events `delta`, `gap`, `reset`
        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "GET",
            "/api/jobs/{id}/logs",
            {"id": id},
            {"after": after, "deltas": deltas, "namespace": namespace},
            {},
            None,
            deadline,
        )

    def stream_job_logs(
        self,
        id: str,
        *,
        after: str | None = None,
        deltas: bool | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> Events[t.Line]:
        """Log lines and progress of a job. Needs the right `jobs.read`.

        after: the last event seen, for clients that cannot send `Last-Event-ID`
        deltas: `true` adds pieces of models' answers to the stream: events `delta`, `gap`, `reset`
        namespace: the namespace; defaults to `default`
        """
        return self._stream(
            "GET",
            "/api/jobs/{id}/logs",
            {"id": id},
            {"after": after, "deltas": deltas, "namespace": namespace},
            {},
            None,
            deadline,
        )

    def list_traces(
        self,
        *,
        agent: str | None = None,
        limit: int | None = None,
        consistency: Literal["stale", "linearizable"] | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> list[t.Trace]:
        """What completed and failed jobs did, the latest first. Needs the right `jobs.read`.

        agent: only traces of this agent
        limit: maximum number, 1 to 1000; 50 if it is not a number
        consistency: `stale` answers from the state of this controller, without asking the others
        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "GET",
            "/api/traces",
            {},
            {"agent": agent, "limit": limit, "consistency": consistency, "namespace": namespace},
            {},
            None,
            deadline,
        )

    def get_trace(
        self,
        id: str,
        *,
        consistency: Literal["stale", "linearizable"] | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Trace:
        """What one job did, with the checks of its agent; or what the jobs of one run of a chain did. Needs the right `jobs.read`.

        consistency: `stale` answers from the state of this controller, without asking the others
        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "GET",
            "/api/traces/{id}",
            {"id": id},
            {"consistency": consistency, "namespace": namespace},
            {},
            None,
            deadline,
        )

    def follow_all(
        self,
        *,
        after: str | None = None,
        view: Literal["full", "plain"] | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> Events[t.Change]:
        """The changes of all jobs. Needs the right `jobs.read`.

        after: the last event seen, for clients that cannot send `Last-Event-ID`
        view: `full` adds the members that Atlas for Python does not have
        namespace: the namespace; defaults to `default`
        """
        return self._stream(
            "GET",
            "/api/events",
            {},
            {"after": after, "view": view, "namespace": namespace},
            {},
            None,
            deadline,
        )

    def follow_all_at_ws(
        self,
        *,
        after: str | None = None,
        view: Literal["full", "plain"] | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> Events[t.Change]:
        """The same as `/api/events`. Needs the right `jobs.read`.

        after: the last event seen, for clients that cannot send `Last-Event-ID`
        view: `full` adds the members that Atlas for Python does not have
        namespace: the namespace; defaults to `default`
        """
        return self._stream(
            "GET",
            "/ws",
            {},
            {"after": after, "view": view, "namespace": namespace},
            {},
            None,
            deadline,
        )

    def follow_events(
        self,
        *,
        kind: str | None = None,
        name: str | None = None,
        after: int | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> Events[t.ClusterEvent]:
        """Events of every kind: jobs, agents, nodes, the configuration. Needs the right `cluster.read`.

        kind: only events of these kinds, with commas between: job, agent, node, object, run, cluster
        name: only events about what has this name: a job's id, an agent or a node
        after: the last event seen, for clients that cannot send `Last-Event-ID`
        namespace: the namespace; defaults to `default`
        """
        return self._stream(
            "GET",
            "/api/cluster/events",
            {},
            {"kind": kind, "name": name, "after": after, "namespace": namespace},
            {},
            None,
            deadline,
        )

    def start_chain(
        self,
        body: t.ChainStart,
        *,
        wait: float | None = None,
        view: Literal["full", "plain"] | None = None,
        strict: bool | None = None,
        idempotency_key: str | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.ChainId | t.ChainRun:
        """Runs a chain. The answer is sent once the run is durable. Needs the right `jobs.submit`.

        wait: seconds to wait for the end of the run, which is then the answer
        view: `full` adds the members that Atlas for Python does not have
        strict: `true` refuses what is accepted with a header `Warning` otherwise
        idempotency_key: up to 255 characters; a repeat with the same key gets the first answer
        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "POST",
            "/api/chains",
            {},
            {"wait": wait, "view": view, "strict": strict, "namespace": namespace},
            {"Idempotency-Key": idempotency_key},
            body,
            deadline,
        )

    def check_chain(
        self,
        body: t.ChainToCheck,
        *,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.ChainCheck:
        """Shows how each step of a chain gets its input from the step before. Nothing runs. Needs the right `jobs.read`.

        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "POST",
            "/api/chains/check",
            {},
            {"namespace": namespace},
            {},
            body,
            deadline,
        )

    def list_chain_runs(
        self,
        *,
        status: str | None = None,
        limit: int | None = None,
        view: Literal["full", "plain"] | None = None,
        consistency: Literal["stale", "linearizable"] | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> list[t.ChainRun]:
        """Runs of chains, newest first. Those that ended last are kept. Needs the right `jobs.read`.

        status: only runs with this status
        limit: maximum number, 1 to 1000; 50 if it is not a number
        view: `full` adds the members that Atlas for Python does not have
        consistency: `stale` answers from the state of this controller, without asking the others
        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "GET",
            "/api/chains",
            {},
            {"status": status, "limit": limit, "view": view, "consistency": consistency, "namespace": namespace},
            {},
            None,
            deadline,
        )

    def get_chain_run(
        self,
        id: str,
        *,
        wait: float | None = None,
        view: Literal["full", "plain"] | None = None,
        consistency: Literal["stale", "linearizable"] | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.ChainRun:
        """One run of a chain. Needs the right `jobs.read`.

        wait: seconds to wait for the end of the run
        view: `full` adds the members that Atlas for Python does not have
        consistency: `stale` answers from the state of this controller, without asking the others
        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "GET",
            "/api/chains/{id}",
            {"id": id},
            {"wait": wait, "view": view, "consistency": consistency, "namespace": namespace},
            {},
            None,
            deadline,
        )

    def get_chain_tree(
        self,
        id: str,
        *,
        consistency: Literal["stale", "linearizable"] | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.ChainTree:
        """One run of a chain with the jobs of its steps, their retries and the jobs that they spawned. Needs the right `jobs.read`.

        consistency: `stale` answers from the state of this controller, without asking the others
        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "GET",
            "/api/chains/{id}/tree",
            {"id": id},
            {"consistency": consistency, "namespace": namespace},
            {},
            None,
            deadline,
        )

    def cancel_chain_run(
        self,
        id: str,
        *,
        idempotency_key: str | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Cancelled:
        """Cancels a run and the job of its current step. Needs the right `jobs.control`.

        idempotency_key: up to 255 characters; a repeat with the same key gets the first answer
        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "POST",
            "/api/chains/{id}/cancel",
            {"id": id},
            {"namespace": namespace},
            {"Idempotency-Key": idempotency_key},
            None,
            deadline,
        )

    def list_agents(
        self,
        *,
        all: bool | None = None,
        name: str | None = None,
        capability: str | None = None,
        q: str | None = None,
        limit: int | None = None,
        offset: int | None = None,
        view: Literal["full", "plain"] | None = None,
        consistency: Literal["stale", "linearizable"] | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> list[t.Agent]:
        """Agent versions by name and version. Needs the right `agents.read`.

        all: `true` for all versions including retired ones, `false` for only the latest of each name
        name: only versions of this agent
        capability: only versions with exactly this capability
        q: only versions with this text in name, description or capabilities, ignoring case
        limit: maximum number, 1 to 1000; defaults to all
        offset: number to skip
        view: `full` adds the members that Atlas for Python does not have
        consistency: `stale` answers from the state of this controller, without asking the others
        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "GET",
            "/api/agents",
            {},
            {"all": all, "name": name, "capability": capability, "q": q, "limit": limit, "offset": offset, "view": view, "consistency": consistency, "namespace": namespace},
            {},
            None,
            deadline,
        )

    def register_agent(
        self,
        body: bytes,
        *,
        replace: bool | None = None,
        idempotency_key: str | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Registered:
        """Registers an agent from its package. Needs the right `agents.publish`.

        replace: `true` replaces another package of the same version
        idempotency_key: up to 255 characters; a repeat with the same key gets the first answer
        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "POST",
            "/api/agents",
            {},
            {"replace": replace, "namespace": namespace},
            {"Idempotency-Key": idempotency_key},
            body,
            deadline,
        )

    def get_agent(
        self,
        name: str,
        *,
        version: str | None = None,
        consistency: Literal["stale", "linearizable"] | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Agent:
        """One version with its schemas and its contract. Needs the right `agents.read`.

        version: a requirement such as `^1.2.0`; defaults to the latest
        consistency: `stale` answers from the state of this controller, without asking the others
        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "GET",
            "/api/agents/{name}",
            {"name": name},
            {"version": version, "consistency": consistency, "namespace": namespace},
            {},
            None,
            deadline,
        )

    def list_versions(
        self,
        name: str,
        *,
        consistency: Literal["stale", "linearizable"] | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> list[t.Agent]:
        """The versions of one agent, including retired ones. Needs the right `agents.read`.

        consistency: `stale` answers from the state of this controller, without asking the others
        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "GET",
            "/api/agents/{name}/versions",
            {"name": name},
            {"consistency": consistency, "namespace": namespace},
            {},
            None,
            deadline,
        )

    def get_version(
        self,
        name: str,
        version: str,
        *,
        consistency: Literal["stale", "linearizable"] | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Agent:
        """One version, retired or not. Needs the right `agents.read`.

        consistency: `stale` answers from the state of this controller, without asking the others
        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "GET",
            "/api/agents/{name}/versions/{version}",
            {"name": name, "version": version},
            {"consistency": consistency, "namespace": namespace},
            {},
            None,
            deadline,
        )

    def resume_agent(
        self,
        name: str,
        version: str,
        *,
        idempotency_key: str | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Accepted:
        """Closes the circuit of a version: its jobs start as usual again. Needs the right `agents.publish`.

        idempotency_key: up to 255 characters; a repeat with the same key gets the first answer
        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "POST",
            "/api/agents/{name}/versions/{version}/resume",
            {"name": name, "version": version},
            {"namespace": namespace},
            {"Idempotency-Key": idempotency_key},
            None,
            deadline,
        )

    def roll_back_agent(
        self,
        name: str,
        version: str,
        body: t.RollbackRequest | None = None,
        *,
        idempotency_key: str | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.RolledBack:
        """Registers an earlier package of a version again: that of a revision, or the one before the package of now. Needs the right `agents.publish`.

        idempotency_key: up to 255 characters; a repeat with the same key gets the first answer
        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "POST",
            "/api/agents/{name}/versions/{version}/rollback",
            {"name": name, "version": version},
            {"namespace": namespace},
            {"Idempotency-Key": idempotency_key},
            body,
            deadline,
        )

    def retire_agent(
        self,
        name: str,
        version: str,
        *,
        idempotency_key: str | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Retired:
        """Retires a version: it accepts no new jobs; its existing jobs finish. Needs the right `agents.publish`.

        idempotency_key: up to 255 characters; a repeat with the same key gets the first answer
        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "DELETE",
            "/api/agents/{name}/versions/{version}",
            {"name": name, "version": version},
            {"namespace": namespace},
            {"Idempotency-Key": idempotency_key},
            None,
            deadline,
        )

    def delete_agent(
        self,
        name: str,
        version: str,
        *,
        idempotency_key: str | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Deleted:
        """Deletes a retired version that no waiting or running job uses. Needs the right `agents.publish`.

        idempotency_key: up to 255 characters; a repeat with the same key gets the first answer
        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "POST",
            "/api/agents/{name}/versions/{version}/delete",
            {"name": name, "version": version},
            {"namespace": namespace},
            {"Idempotency-Key": idempotency_key},
            None,
            deadline,
        )

    def deprecate_agent(
        self,
        name: str,
        version: str,
        body: t.DeprecateRequest | None = None,
        *,
        idempotency_key: str | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Deprecated:
        """Marks a version as deprecated; it still accepts jobs. Needs the right `agents.publish`.

        idempotency_key: up to 255 characters; a repeat with the same key gets the first answer
        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "POST",
            "/api/agents/{name}/versions/{version}/deprecate",
            {"name": name, "version": version},
            {"namespace": namespace},
            {"Idempotency-Key": idempotency_key},
            body,
            deadline,
        )

    def list_nodes(
        self,
        *,
        limit: int | None = None,
        offset: int | None = None,
        consistency: Literal["stale", "linearizable"] | None = None,
        deadline: float | None = None,
    ) -> list[t.Node]:
        """Nodes by name, with their hardware and free resources. Needs the right `nodes.read`.

        limit: maximum number, 1 to 1000; defaults to all
        offset: number to skip
        consistency: `stale` answers from the state of this controller, without asking the others
        """
        return self._json(
            "GET",
            "/api/nodes",
            {},
            {"limit": limit, "offset": offset, "consistency": consistency},
            {},
            None,
            deadline,
        )

    def get_node(
        self,
        name: str,
        *,
        consistency: Literal["stale", "linearizable"] | None = None,
        deadline: float | None = None,
    ) -> t.Node:
        """One node. Needs the right `nodes.read`.

        consistency: `stale` answers from the state of this controller, without asking the others
        """
        return self._json(
            "GET",
            "/api/nodes/{name}",
            {"name": name},
            {"consistency": consistency},
            {},
            None,
            deadline,
        )

    def remove_node(
        self,
        name: str,
        *,
        idempotency_key: str | None = None,
        deadline: float | None = None,
    ) -> t.Removed:
        """Removes a node that holds no lease. Needs the right `nodes.operate`.

        idempotency_key: up to 255 characters; a repeat with the same key gets the first answer
        """
        return self._json(
            "DELETE",
            "/api/nodes/{name}",
            {"name": name},
            {},
            {"Idempotency-Key": idempotency_key},
            None,
            deadline,
        )

    def drain_node(
        self,
        name: str,
        body: t.DrainRequest | None = None,
        *,
        idempotency_key: str | None = None,
        deadline: float | None = None,
    ) -> t.Accepted:
        """Drains a node: no new leases until it is empty. Needs the right `nodes.operate`.

        idempotency_key: up to 255 characters; a repeat with the same key gets the first answer
        """
        return self._json(
            "POST",
            "/api/nodes/{name}/drain",
            {"name": name},
            {},
            {"Idempotency-Key": idempotency_key},
            body,
            deadline,
        )

    def cordon_node(
        self,
        name: str,
        *,
        idempotency_key: str | None = None,
        deadline: float | None = None,
    ) -> t.Accepted:
        """Stops new leases on a node. Needs the right `nodes.operate`.

        idempotency_key: up to 255 characters; a repeat with the same key gets the first answer
        """
        return self._json(
            "POST",
            "/api/nodes/{name}/cordon",
            {"name": name},
            {},
            {"Idempotency-Key": idempotency_key},
            None,
            deadline,
        )

    def uncordon_node(
        self,
        name: str,
        *,
        idempotency_key: str | None = None,
        deadline: float | None = None,
    ) -> t.Accepted:
        """Allows new leases on a node again; ends a drain. Needs the right `nodes.operate`.

        idempotency_key: up to 255 characters; a repeat with the same key gets the first answer
        """
        return self._json(
            "POST",
            "/api/nodes/{name}/uncordon",
            {"name": name},
            {},
            {"Idempotency-Key": idempotency_key},
            None,
            deadline,
        )

    def resume_node(
        self,
        name: str,
        *,
        idempotency_key: str | None = None,
        deadline: float | None = None,
    ) -> t.Accepted:
        """Closes the circuit of a node: it takes jobs as usual again. Needs the right `nodes.operate`.

        idempotency_key: up to 255 characters; a repeat with the same key gets the first answer
        """
        return self._json(
            "POST",
            "/api/nodes/{name}/resume",
            {"name": name},
            {},
            {"Idempotency-Key": idempotency_key},
            None,
            deadline,
        )

    def label_node(
        self,
        name: str,
        body: t.LabelRequest,
        *,
        idempotency_key: str | None = None,
        deadline: float | None = None,
    ) -> t.Accepted:
        """Sets or removes labels of a node; they override those of its worker. Needs the right `nodes.operate`.

        idempotency_key: up to 255 characters; a repeat with the same key gets the first answer
        """
        return self._json(
            "POST",
            "/api/nodes/{name}/labels",
            {"name": name},
            {},
            {"Idempotency-Key": idempotency_key},
            body,
            deadline,
        )

    def list_object_kinds(
        self,
        *,
        deadline: float | None = None,
    ) -> list[t.ObjectKind]:
        """The kinds of objects, with the JSON Schema of each. Needs the right `public`."""
        return self._json(
            "GET",
            "/api/objects",
            {},
            {},
            {},
            None,
            deadline,
        )

    def list_objects(
        self,
        kind: str,
        *,
        label: str | None = None,
        after: str | None = None,
        limit: int | None = None,
        consistency: Literal["stale", "linearizable"] | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Objects:
        """Objects of a kind by name. Needs the right `objects.read`.

        label: only objects with this label, `KEY` or `KEY=VALUE`
        after: the name after which the page begins, `next` of the page before
        limit: maximum number, 1 to 1000; 50 if it is not a number
        consistency: `stale` answers from the state of this controller, without asking the others
        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "GET",
            "/api/objects/{kind}",
            {"kind": kind},
            {"label": label, "after": after, "limit": limit, "consistency": consistency, "namespace": namespace},
            {},
            None,
            deadline,
        )

    def get_object(
        self,
        kind: str,
        name: str,
        *,
        consistency: Literal["stale", "linearizable"] | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Object:
        """One object. `ETag` is its revision. Needs the right `objects.read`.

        consistency: `stale` answers from the state of this controller, without asking the others
        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "GET",
            "/api/objects/{kind}/{name}",
            {"kind": kind, "name": name},
            {"consistency": consistency, "namespace": namespace},
            {},
            None,
            deadline,
        )

    def put_object(
        self,
        kind: str,
        name: str,
        body: t.ObjectRequest,
        *,
        if_match: str | None = None,
        if_none_match: str | None = None,
        dry_run: bool | None = None,
        idempotency_key: str | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Object:
        """Makes an object, or replaces its labels and its spec. The same document again changes nothing. Needs the right `objects.write`.

        if_match: the revision that the object must have, in quotation marks
        if_none_match: `*`: there must be no such object
        dry_run: `true` checks the request and changes nothing
        idempotency_key: up to 255 characters; a repeat with the same key gets the first answer
        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "PUT",
            "/api/objects/{kind}/{name}",
            {"kind": kind, "name": name},
            {"dry_run": dry_run, "namespace": namespace},
            {"If-Match": if_match, "If-None-Match": if_none_match, "Idempotency-Key": idempotency_key},
            body,
            deadline,
        )

    def delete_object(
        self,
        kind: str,
        name: str,
        *,
        if_match: str | None = None,
        if_none_match: str | None = None,
        dry_run: bool | None = None,
        idempotency_key: str | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Deleted:
        """Deletes an object that nothing uses. Needs the right `objects.write`.

        if_match: the revision that the object must have, in quotation marks
        if_none_match: `*`: there must be no such object
        dry_run: `true` checks the request and changes nothing
        idempotency_key: up to 255 characters; a repeat with the same key gets the first answer
        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "DELETE",
            "/api/objects/{kind}/{name}",
            {"kind": kind, "name": name},
            {"dry_run": dry_run, "namespace": namespace},
            {"If-Match": if_match, "If-None-Match": if_none_match, "Idempotency-Key": idempotency_key},
            None,
            deadline,
        )

    def set_secret(
        self,
        name: str,
        body: t.SecretRequest,
        *,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Object:
        """Sets the value of a secret as a new version. No answer contains a value; everything else about a secret is the object of the kind `secret`. Needs the right `objects.write`.

        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "PUT",
            "/api/secrets/{name}",
            {"name": name},
            {"namespace": namespace},
            {},
            body,
            deadline,
        )

    def log_in_to_model(
        self,
        name: str,
        body: t.LoginRequest,
        *,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.LoginProgress:
        """One step of a login to a model whose provider gives access tokens. The tokens become the secret `NAME.login`; no answer contains one. Needs the right `objects.write`.

        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "POST",
            "/api/models/{name}/login",
            {"name": name},
            {"namespace": namespace},
            {},
            body,
            deadline,
        )

    def log_out_of_model(
        self,
        name: str,
        *,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.LoginProgress:
        """Forgets the tokens of a model. The issuer is not told. Needs the right `objects.write`.

        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "DELETE",
            "/api/models/{name}/login",
            {"name": name},
            {"namespace": namespace},
            {},
            None,
            deadline,
        )

    def log_in_to_mcp_server(
        self,
        name: str,
        body: t.ServerLoginRequest,
        *,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.ServerLoginProgress:
        """One step of a login at an MCP server that wants access tokens. The tokens become the secret `NAME.mcp-login`; no answer contains one. Needs the right `objects.write`.

        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "POST",
            "/api/mcp-servers/{name}/login",
            {"name": name},
            {"namespace": namespace},
            {},
            body,
            deadline,
        )

    def log_out_of_mcp_server(
        self,
        name: str,
        *,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.ServerLoginProgress:
        """Forgets the tokens of an MCP server. The issuer is not told. Needs the right `objects.write`.

        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "DELETE",
            "/api/mcp-servers/{name}/login",
            {"name": name},
            {"namespace": namespace},
            {},
            None,
            deadline,
        )

    def orchestrator(
        self,
        *,
        consistency: Literal["stale", "linearizable"] | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Orchestrator:
        """The orchestrator that decides on jobs before they run. Needs the right `objects.read`.

        consistency: `stale` answers from the state of this controller, without asking the others
        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "GET",
            "/api/orchestrator",
            {},
            {"consistency": consistency, "namespace": namespace},
            {},
            None,
            deadline,
        )

    def select_orchestrator(
        self,
        body: t.OrchestratorName,
        *,
        strict: bool | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.SelectedOrchestrator:
        """Selects an orchestrator. It decides on every job that gets its first lease after the answer. Needs the right `objects.write`.

        strict: `true` refuses what is accepted with a header `Warning` otherwise
        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "POST",
            "/api/orchestrator",
            {},
            {"strict": strict, "namespace": namespace},
            {},
            body,
            deadline,
        )

    def explain_policies(
        self,
        body: t.PolicyQuestion,
        *,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.PolicyAnswer:
        """What policies would decide if the caller deployed a registered agent, or submitted a job for it. Nothing is changed. Needs the right `agents.read`.

        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "POST",
            "/api/policies/explain",
            {},
            {"namespace": namespace},
            {},
            body,
            deadline,
        )

    def create_trigger(
        self,
        body: t.TriggerRequest,
        *,
        strict: bool | None = None,
        if_none_match: str | None = None,
        idempotency_key: str | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Trigger:
        """Makes a trigger, or replaces the one with this id. The members may be under `trigger`. Needs the right `objects.write`.

        strict: `true` refuses what is accepted with a header `Warning` otherwise
        if_none_match: `*`: there must be no such object
        idempotency_key: up to 255 characters; a repeat with the same key gets the first answer
        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "POST",
            "/api/triggers",
            {},
            {"strict": strict, "namespace": namespace},
            {"If-None-Match": if_none_match, "Idempotency-Key": idempotency_key},
            body,
            deadline,
        )

    def list_triggers(
        self,
        *,
        type: str | None = None,
        enabled: str | None = None,
        limit: str | None = None,
        view: Literal["full", "plain"] | None = None,
        consistency: Literal["stale", "linearizable"] | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> list[t.Trigger]:
        """Triggers, newest first. Needs the right `objects.read`.

        type: only triggers of this type
        enabled: `true`, `1` and `yes`: only enabled ones; anything else: only disabled ones
        limit: maximum number; 100 without it
        view: `full` adds the members that Atlas for Python does not have
        consistency: `stale` answers from the state of this controller, without asking the others
        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "GET",
            "/api/triggers",
            {},
            {"type": type, "enabled": enabled, "limit": limit, "view": view, "consistency": consistency, "namespace": namespace},
            {},
            None,
            deadline,
        )

    def get_trigger(
        self,
        id: str,
        *,
        view: Literal["full", "plain"] | None = None,
        consistency: Literal["stale", "linearizable"] | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Trigger:
        """One trigger. Needs the right `objects.read`.

        view: `full` adds the members that Atlas for Python does not have
        consistency: `stale` answers from the state of this controller, without asking the others
        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "GET",
            "/api/triggers/{id}",
            {"id": id},
            {"view": view, "consistency": consistency, "namespace": namespace},
            {},
            None,
            deadline,
        )

    def change_trigger(
        self,
        id: str,
        body: t.TriggerRequest,
        *,
        strict: bool | None = None,
        idempotency_key: str | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Trigger:
        """Changes members of a trigger, and computes its next time. Needs the right `objects.write`.

        strict: `true` refuses what is accepted with a header `Warning` otherwise
        idempotency_key: up to 255 characters; a repeat with the same key gets the first answer
        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "PUT",
            "/api/triggers/{id}",
            {"id": id},
            {"strict": strict, "namespace": namespace},
            {"Idempotency-Key": idempotency_key},
            body,
            deadline,
        )

    def delete_trigger(
        self,
        id: str,
        *,
        idempotency_key: str | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Deleted:
        """Deletes a trigger. Needs the right `objects.write`.

        idempotency_key: up to 255 characters; a repeat with the same key gets the first answer
        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "DELETE",
            "/api/triggers/{id}",
            {"id": id},
            {"namespace": namespace},
            {"Idempotency-Key": idempotency_key},
            None,
            deadline,
        )

    def fire_trigger(
        self,
        id: str,
        *,
        idempotency_key: str | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Fired:
        """Fires a trigger now, also a disabled one. Needs the right `jobs.submit`.

        idempotency_key: up to 255 characters; a repeat with the same key gets the first answer
        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "POST",
            "/api/triggers/{id}/fire",
            {"id": id},
            {"namespace": namespace},
            {"Idempotency-Key": idempotency_key},
            None,
            deadline,
        )

    def next_firings(
        self,
        id: str,
        *,
        count: int | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.NextFirings:
        """The next times at which a trigger fires. Needs the right `objects.read`.

        count: how many, at most 100; defaults to 5
        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "GET",
            "/api/triggers/{id}/next",
            {"id": id},
            {"count": count, "namespace": namespace},
            {},
            None,
            deadline,
        )

    def trigger_deliveries(
        self,
        id: str,
        *,
        limit: int | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Deliveries:
        """The latest calls of a webhook that reached this controller, newest first. Needs the right `objects.read`.

        limit: how many, at most 100; defaults to 20
        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "GET",
            "/api/triggers/{id}/deliveries",
            {"id": id},
            {"limit": limit, "namespace": namespace},
            {},
            None,
            deadline,
        )

    def test_trigger(
        self,
        id: str,
        body: t.TriggerTest | None = None,
        *,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.TriggerTested:
        """What a call would start. Nothing is started. Needs the right `objects.write`.

        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "POST",
            "/api/triggers/{id}/test",
            {"id": id},
            {"namespace": namespace},
            {},
            body,
            deadline,
        )

    def backfill_trigger(
        self,
        id: str,
        body: t.BackfillRequest,
        *,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Backfilled:
        """Fires a trigger for times that have passed, each once. Needs the right `jobs.submit`.

        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "POST",
            "/api/triggers/{id}/backfill",
            {"id": id},
            {"namespace": namespace},
            {},
            body,
            deadline,
        )

    def call_hook(
        self,
        id: str,
        body: t.Call | None = None,
        *,
        x_atlas_signature: str | None = None,
        x_atlas_timestamp: str | None = None,
        x_atlas_delivery: str | None = None,
        idempotency_key: str | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Fired | t.Greeted:
        """Fires a webhook. The members of the body replace those of its input. Needs the right `public`.

        x_atlas_signature: the HMAC-SHA256 of the body with the secret of the trigger, if it has one: 64 hexadecimal digits, also after `sha256=`, or several with commas between them; other schemes have headers of their own
        x_atlas_timestamp: the time of the call in whole seconds since 1970, if the trigger has a replay window; it is signed before the body
        x_atlas_delivery: the sender's name for this delivery; a repeat gets the first answer
        idempotency_key: up to 255 characters; a repeat with the same key gets the first answer
        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "POST",
            "/api/hooks/{id}",
            {"id": id},
            {"namespace": namespace},
            {"X-Atlas-Signature": x_atlas_signature, "X-Atlas-Timestamp": x_atlas_timestamp, "X-Atlas-Delivery": x_atlas_delivery, "Idempotency-Key": idempotency_key},
            body,
            deadline,
        )

    def health(
        self,
        *,
        consistency: Literal["stale", "linearizable"] | None = None,
        deadline: float | None = None,
    ) -> t.Health:
        """Numbers of waiting and running jobs, and declared hardware. Needs the right `public`.

        consistency: `stale` answers from the state of this controller, without asking the others
        """
        return self._json(
            "GET",
            "/api/health",
            {},
            {"consistency": consistency},
            {},
            None,
            deadline,
        )

    def ready(
        self,
        *,
        alone: bool | None = None,
        deadline: float | None = None,
    ) -> t.Ready:
        """Whether this controller can serve requests. Needs the right `public`.

        alone: `true` succeeds as well while no other member runs
        """
        return self._json(
            "GET",
            "/api/ready",
            {},
            {"alone": alone},
            {},
            None,
            deadline,
        )

    def version(
        self,
        *,
        deadline: float | None = None,
    ) -> t.Version:
        """The program and the cluster. Needs the right `public`."""
        return self._json(
            "GET",
            "/api/version",
            {},
            {},
            {},
            None,
            deadline,
        )

    def figures(
        self,
        *,
        deadline: float | None = None,
    ) -> t.Figures:
        """Statistics of all agents. Needs the right `metrics.read`."""
        return self._json(
            "GET",
            "/api/metrics",
            {},
            {},
            {},
            None,
            deadline,
        )

    def figures_of_agent(
        self,
        agent: str,
        *,
        deadline: float | None = None,
    ) -> t.AgentFigures:
        """Statistics of one agent. Needs the right `metrics.read`."""
        return self._json(
            "GET",
            "/api/metrics/{agent}",
            {"agent": agent},
            {},
            {},
            None,
            deadline,
        )

    def metrics(
        self,
        *,
        deadline: float | None = None,
    ) -> str:
        """All instruments in the OpenMetrics text form. Needs the right `metrics.read`."""
        return self._text(
            "GET",
            "/metrics",
            {},
            {},
            {},
            None,
            deadline,
        )

    def error_page(
        self,
        code: str,
        *,
        deadline: float | None = None,
    ) -> str:
        """The page of an error code: cause and what to try. The `type` of a problem document is its path. Needs the right `public`."""
        return self._text(
            "GET",
            "/errors/{code}",
            {"code": code},
            {},
            {},
            None,
            deadline,
        )

    def open_api(
        self,
        *,
        deadline: float | None = None,
    ) -> t.Document:
        """This interface as an OpenAPI document. Needs the right `public`."""
        return self._json(
            "GET",
            "/api/openapi.json",
            {},
            {},
            {},
            None,
            deadline,
        )

    def skills(
        self,
        *,
        consistency: Literal["stale", "linearizable"] | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> list[t.Skill]:
        """The skills, the oldest first, then the platform's tools. Needs the right `agents.read`.

        consistency: `stale` answers from the state of this controller, without asking the others
        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "GET",
            "/api/skills",
            {},
            {"consistency": consistency, "namespace": namespace},
            {},
            None,
            deadline,
        )

    def deploy_skill(
        self,
        body: bytes,
        *,
        replace: bool | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Registered:
        """Deploys a skill from its package. It replaces one of the same name. Needs the right `agents.publish`.

        replace: `true` replaces another package of the same version
        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "POST",
            "/api/skills",
            {},
            {"replace": replace, "namespace": namespace},
            {},
            body,
            deadline,
        )

    def get_skill(
        self,
        name: str,
        *,
        consistency: Literal["stale", "linearizable"] | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Skill:
        """One skill. Needs the right `agents.read`.

        consistency: `stale` answers from the state of this controller, without asking the others
        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "GET",
            "/api/skills/{name}",
            {"name": name},
            {"consistency": consistency, "namespace": namespace},
            {},
            None,
            deadline,
        )

    def test_skill(
        self,
        name: str,
        body: t.SkillTest | None = None,
        *,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.SkillTested:
        """Calls a skill as an agent would, and waits for its end. Needs the right `jobs.submit`.

        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "POST",
            "/api/skills/{name}/test",
            {"name": name},
            {"namespace": namespace},
            {},
            body,
            deadline,
        )

    def remove_skill(
        self,
        name: str,
        *,
        if_match: str | None = None,
        if_none_match: str | None = None,
        dry_run: bool | None = None,
        idempotency_key: str | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Deleted:
        """Removes a skill. Its package is kept as long as something uses it. Needs the right `agents.publish`.

        if_match: the revision that the object must have, in quotation marks
        if_none_match: `*`: there must be no such object
        dry_run: `true` checks the request and changes nothing
        idempotency_key: up to 255 characters; a repeat with the same key gets the first answer
        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "DELETE",
            "/api/skills/{name}",
            {"name": name},
            {"dry_run": dry_run, "namespace": namespace},
            {"If-Match": if_match, "If-None-Match": if_none_match, "Idempotency-Key": idempotency_key},
            None,
            deadline,
        )

    def list_conversations(
        self,
        *,
        consistency: Literal["stale", "linearizable"] | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> list[t.Conversation]:
        """The conversations with agents, by id, without their messages. Needs the right `jobs.read`.

        consistency: `stale` answers from the state of this controller, without asking the others
        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "GET",
            "/api/conversations",
            {},
            {"consistency": consistency, "namespace": namespace},
            {},
            None,
            deadline,
        )

    def get_conversation(
        self,
        id: str,
        *,
        consistency: Literal["stale", "linearizable"] | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Conversation:
        """A conversation with its messages, the oldest first. Needs the right `jobs.read`.

        consistency: `stale` answers from the state of this controller, without asking the others
        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "GET",
            "/api/conversations/{id}",
            {"id": id},
            {"consistency": consistency, "namespace": namespace},
            {},
            None,
            deadline,
        )

    def branch_conversation(
        self,
        id: str,
        body: t.ConversationBranch,
        *,
        idempotency_key: str | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Conversation:
        """Begins another conversation with the first turns of this one. Both go on independently of each other. Needs the right `jobs.submit`.

        idempotency_key: up to 255 characters; a repeat with the same key gets the first answer
        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "POST",
            "/api/conversations/{id}/branch",
            {"id": id},
            {"namespace": namespace},
            {"Idempotency-Key": idempotency_key},
            body,
            deadline,
        )

    def delete_conversation(
        self,
        id: str,
        *,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Deleted:
        """Deletes a conversation. The answer of a turn under way is not kept. Needs the right `jobs.control`.

        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "DELETE",
            "/api/conversations/{id}",
            {"id": id},
            {"namespace": namespace},
            {},
            None,
            deadline,
        )

    def mcp_registry(
        self,
        *,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.McpServers:
        """The agents as MCP servers: names, titles, addresses and models. Needs the right `public`.

        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "GET",
            "/.well-known/mcp/server.json",
            {},
            {"namespace": namespace},
            {},
            None,
            deadline,
        )

    def get_memory(
        self,
        *,
        scope: str | None = None,
        consistency: Literal["stale", "linearizable"] | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Memory:
        """The text of a shared memory. Needs the right `objects.read`.

        scope: whose memory: `namespace`, `agent:NAME`, `user:NAME` or `conversation:ID`
        consistency: `stale` answers from the state of this controller, without asking the others
        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "GET",
            "/api/memory",
            {},
            {"scope": scope, "consistency": consistency, "namespace": namespace},
            {},
            None,
            deadline,
        )

    def write_memory(
        self,
        body: t.MemoryChange,
        *,
        idempotency_key: str | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Memory:
        """Appends a line to a shared memory, or replaces its text or its oldest entries. Needs the right `objects.write`.

        idempotency_key: up to 255 characters; a repeat with the same key gets the first answer
        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "POST",
            "/api/memory",
            {},
            {"namespace": namespace},
            {"Idempotency-Key": idempotency_key},
            body,
            deadline,
        )

    def clear_memory(
        self,
        *,
        scope: str | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Deleted:
        """Removes a shared memory with its history. Needs the right `objects.write`.

        scope: whose memory: `namespace`, `agent:NAME`, `user:NAME` or `conversation:ID`
        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "DELETE",
            "/api/memory",
            {},
            {"scope": scope, "namespace": namespace},
            {},
            None,
            deadline,
        )

    def list_memory_entries(
        self,
        *,
        scope: str | None = None,
        consistency: Literal["stale", "linearizable"] | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> list[t.MemoryEntry]:
        """What was written to a shared memory and by whom, the oldest first; also the latest that was replaced. Needs the right `objects.read`.

        scope: whose memory: `namespace`, `agent:NAME`, `user:NAME` or `conversation:ID`
        consistency: `stale` answers from the state of this controller, without asking the others
        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "GET",
            "/api/memory/entries",
            {},
            {"scope": scope, "consistency": consistency, "namespace": namespace},
            {},
            None,
            deadline,
        )

    def search_knowledge(
        self,
        *,
        q: str | None = None,
        domain: str | None = None,
        tags: str | None = None,
        limit: int | None = None,
        consistency: Literal["stale", "linearizable"] | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> list[t.KnowledgeEntry]:
        """The entries that contain a text, by domain and id. Needs the right `objects.read`.

        q: compared without case with content and tags; all entries if it is empty
        domain: only entries of this domain
        tags: only entries with one of these tags, with commas between them
        limit: maximum number, 1 to 1000; 50 if it is not a number
        consistency: `stale` answers from the state of this controller, without asking the others
        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "GET",
            "/api/knowledge/search",
            {},
            {"q": q, "domain": domain, "tags": tags, "limit": limit, "consistency": consistency, "namespace": namespace},
            {},
            None,
            deadline,
        )

    def list_knowledge(
        self,
        *,
        domain: str | None = None,
        limit: int | None = None,
        offset: int | None = None,
        consistency: Literal["stale", "linearizable"] | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> list[t.KnowledgeEntry]:
        """The entries, by domain and id. Needs the right `objects.read`.

        domain: only entries of this domain
        limit: maximum number, 1 to 1000; 50 if it is not a number
        offset: number to skip
        consistency: `stale` answers from the state of this controller, without asking the others
        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "GET",
            "/api/knowledge/entries",
            {},
            {"domain": domain, "limit": limit, "offset": offset, "consistency": consistency, "namespace": namespace},
            {},
            None,
            deadline,
        )

    def store_knowledge(
        self,
        body: t.KnowledgeDraft,
        *,
        idempotency_key: str | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.KnowledgeEntry:
        """Stores an entry. One with the same id is replaced. Needs the right `objects.write`.

        idempotency_key: up to 255 characters; a repeat with the same key gets the first answer
        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "POST",
            "/api/knowledge/entries",
            {},
            {"namespace": namespace},
            {"Idempotency-Key": idempotency_key},
            body,
            deadline,
        )

    def get_knowledge(
        self,
        id: str,
        *,
        consistency: Literal["stale", "linearizable"] | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.KnowledgeEntry:
        """One entry. Needs the right `objects.read`.

        consistency: `stale` answers from the state of this controller, without asking the others
        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "GET",
            "/api/knowledge/entries/{id}",
            {"id": id},
            {"consistency": consistency, "namespace": namespace},
            {},
            None,
            deadline,
        )

    def change_knowledge(
        self,
        id: str,
        body: t.KnowledgeChange,
        *,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.KnowledgeEntry:
        """Changes members of an entry. Needs the right `objects.write`.

        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "PUT",
            "/api/knowledge/entries/{id}",
            {"id": id},
            {"namespace": namespace},
            {},
            body,
            deadline,
        )

    def delete_knowledge(
        self,
        id: str,
        *,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Deleted:
        """Deletes an entry. Needs the right `objects.write`.

        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "DELETE",
            "/api/knowledge/entries/{id}",
            {"id": id},
            {"namespace": namespace},
            {},
            None,
            deadline,
        )

    def list_knowledge_domains(
        self,
        *,
        consistency: Literal["stale", "linearizable"] | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> list[t.KnowledgeDomain]:
        """The domains that have entries, by name. Needs the right `objects.read`.

        consistency: `stale` answers from the state of this controller, without asking the others
        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "GET",
            "/api/knowledge/domains",
            {},
            {"consistency": consistency, "namespace": namespace},
            {},
            None,
            deadline,
        )

    def get_knowledge_acl(
        self,
        *,
        agent: str | None = None,
        consistency: Literal["stale", "linearizable"] | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.KnowledgeAcl:
        """Which domains agents read and write. Needs the right `objects.read`.

        agent: only this agent
        consistency: `stale` answers from the state of this controller, without asking the others
        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "GET",
            "/api/knowledge/acl",
            {},
            {"agent": agent, "consistency": consistency, "namespace": namespace},
            {},
            None,
            deadline,
        )

    def list_bases(
        self,
        *,
        consistency: Literal["stale", "linearizable"] | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> list[t.Base]:
        """The document bases by name. Needs the right `objects.read`.

        consistency: `stale` answers from the state of this controller, without asking the others
        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "GET",
            "/api/bases",
            {},
            {"consistency": consistency, "namespace": namespace},
            {},
            None,
            deadline,
        )

    def create_base(
        self,
        body: t.BaseDraft,
        *,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Base:
        """Makes a document base. A repeat with the same settings finds it. Needs the right `objects.write`.

        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "POST",
            "/api/bases",
            {},
            {"namespace": namespace},
            {},
            body,
            deadline,
        )

    def get_base(
        self,
        name: str,
        *,
        consistency: Literal["stale", "linearizable"] | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Base:
        """One document base. Needs the right `objects.read`.

        consistency: `stale` answers from the state of this controller, without asking the others
        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "GET",
            "/api/bases/{name}",
            {"name": name},
            {"consistency": consistency, "namespace": namespace},
            {},
            None,
            deadline,
        )

    def change_base(
        self,
        name: str,
        body: t.BaseChange,
        *,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Base:
        """Changes settings of a base. Documents are cut anew by them. Needs the right `objects.write`.

        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "PUT",
            "/api/bases/{name}",
            {"name": name},
            {"namespace": namespace},
            {},
            body,
            deadline,
        )

    def delete_base(
        self,
        name: str,
        *,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Deleted:
        """Deletes a base with its documents. Needs the right `objects.write`.

        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "DELETE",
            "/api/bases/{name}",
            {"name": name},
            {"namespace": namespace},
            {},
            None,
            deadline,
        )

    def rebuild_base(
        self,
        name: str,
        body: t.BaseRebuild,
        *,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.RebuiltBase:
        """Writes the documents of a base anew: removed ones leave its segments. Needs the right `objects.write`.

        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "POST",
            "/api/bases/{name}/rebuild",
            {"name": name},
            {"namespace": namespace},
            {},
            body,
            deadline,
        )

    def collect_base(
        self,
        name: str,
        *,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.BaseCollecting:
        """Reads the sources of a base by a job. If one does so already, the answer is that job. Needs the right `objects.write`.

        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "POST",
            "/api/bases/{name}/collect",
            {"name": name},
            {"namespace": namespace},
            {},
            None,
            deadline,
        )

    def list_documents(
        self,
        name: str,
        *,
        source: str | None = None,
        after: str | None = None,
        limit: int | None = None,
        text: bool | None = None,
        consistency: Literal["stale", "linearizable"] | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.DocumentPage:
        """The documents of a base by source. Needs the right `objects.read`.

        source: only documents whose sources begin with it
        after: the `next` of the page before
        limit: maximum number, 1 to 1000; 50 if it is not a number
        text: `true` adds the texts; a page then has up to 8 MiB of them
        consistency: `stale` answers from the state of this controller, without asking the others
        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "GET",
            "/api/bases/{name}/documents",
            {"name": name},
            {"source": source, "after": after, "limit": limit, "text": text, "consistency": consistency, "namespace": namespace},
            {},
            None,
            deadline,
        )

    def add_documents(
        self,
        name: str,
        body: t.DocumentDrafts,
        *,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.AddedDocuments:
        """Adds documents. One with the same source is replaced; one that is there already changes nothing. Needs the right `objects.write`.

        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "POST",
            "/api/bases/{name}/documents",
            {"name": name},
            {"namespace": namespace},
            {},
            body,
            deadline,
        )

    def remove_documents(
        self,
        name: str,
        *,
        source: str | None = None,
        erase: bool | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.RemovedDocuments:
        """Removes documents. They are in no answer from then on. Needs the right `objects.write`.

        source: the source; if no document has it, a pattern in which `*` is any text, such as `docs/*.md`
        erase: `true` writes the base anew, so that no segment has removed documents
        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "DELETE",
            "/api/bases/{name}/documents",
            {"name": name},
            {"source": source, "erase": erase, "namespace": namespace},
            {},
            None,
            deadline,
        )

    def search_documents(
        self,
        name: str,
        body: t.DocumentQuery,
        *,
        consistency: Literal["stale", "linearizable"] | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.FoundDocuments:
        """The parts of documents that fit a question, the best first. Needs the right `objects.read`.

        consistency: `stale` answers from the state of this controller, without asking the others
        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "POST",
            "/api/bases/{name}/search",
            {"name": name},
            {"consistency": consistency, "namespace": namespace},
            {},
            body,
            deadline,
        )

    def list_usable_models(
        self,
        *,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.UsableModels:
        """What the caller may name as a model: models, agents and chains. Needs the right `jobs.submit`.

        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "GET",
            "/v1/models",
            {},
            {"namespace": namespace},
            {},
            None,
            deadline,
        )

    def get_usable_model(
        self,
        model: str,
        *,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.UsableModel:
        """One that the caller may name as a model. Needs the right `jobs.submit`.

        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "GET",
            "/v1/models/{model}",
            {"model": model},
            {"namespace": namespace},
            {},
            None,
            deadline,
        )

    def get_usable_model_of(
        self,
        form: str,
        model: str,
        *,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.UsableModel:
        """The same by its long name: `model`, `agent` or `chain` before the name. Needs the right `jobs.submit`.

        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "GET",
            "/v1/models/{form}/{model}",
            {"form": form, "model": model},
            {"namespace": namespace},
            {},
            None,
            deadline,
        )

    def create_chat_completion(
        self,
        body: t.ChatCompletionRequest,
        *,
        idempotency_key: str | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.ChatCompletion:
        """The next message of a conversation, by a job. Needs the right `jobs.submit`.

        idempotency_key: up to 255 characters; a repeat with the same key gets the first answer
        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "POST",
            "/v1/chat/completions",
            {},
            {"namespace": namespace},
            {"Idempotency-Key": idempotency_key},
            body,
            deadline,
        )

    def stream_create_chat_completion(
        self,
        body: t.ChatCompletionRequest,
        *,
        idempotency_key: str | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> Events[t.ChatCompletion]:
        """The next message of a conversation, by a job. Needs the right `jobs.submit`.

        idempotency_key: up to 255 characters; a repeat with the same key gets the first answer
        namespace: the namespace; defaults to `default`
        """
        return self._stream(
            "POST",
            "/v1/chat/completions",
            {},
            {"namespace": namespace},
            {"Idempotency-Key": idempotency_key},
            body,
            deadline,
        )

    def create_completion(
        self,
        body: t.CompletionRequest,
        *,
        idempotency_key: str | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Completion:
        """A text that goes on from a prompt, by a job. Needs the right `jobs.submit`.

        idempotency_key: up to 255 characters; a repeat with the same key gets the first answer
        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "POST",
            "/v1/completions",
            {},
            {"namespace": namespace},
            {"Idempotency-Key": idempotency_key},
            body,
            deadline,
        )

    def stream_create_completion(
        self,
        body: t.CompletionRequest,
        *,
        idempotency_key: str | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> Events[t.Completion]:
        """A text that goes on from a prompt, by a job. Needs the right `jobs.submit`.

        idempotency_key: up to 255 characters; a repeat with the same key gets the first answer
        namespace: the namespace; defaults to `default`
        """
        return self._stream(
            "POST",
            "/v1/completions",
            {},
            {"namespace": namespace},
            {"Idempotency-Key": idempotency_key},
            body,
            deadline,
        )

    def create_embeddings(
        self,
        body: t.EmbeddingsRequest,
        *,
        idempotency_key: str | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.Embeddings:
        """The vectors of texts, by a job. Needs the right `jobs.submit`.

        idempotency_key: up to 255 characters; a repeat with the same key gets the first answer
        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "POST",
            "/v1/embeddings",
            {},
            {"namespace": namespace},
            {"Idempotency-Key": idempotency_key},
            body,
            deadline,
        )

    def create_response(
        self,
        body: t.ResponseRequest,
        *,
        idempotency_key: str | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.ModelResponse:
        """A response of a model, by a job; in the background, the answer is sent once the job is durable. Needs the right `jobs.submit`.

        idempotency_key: up to 255 characters; a repeat with the same key gets the first answer
        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "POST",
            "/v1/responses",
            {},
            {"namespace": namespace},
            {"Idempotency-Key": idempotency_key},
            body,
            deadline,
        )

    def stream_create_response(
        self,
        body: t.ResponseRequest,
        *,
        idempotency_key: str | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> Events[t.ModelResponse]:
        """A response of a model, by a job; in the background, the answer is sent once the job is durable. Needs the right `jobs.submit`.

        idempotency_key: up to 255 characters; a repeat with the same key gets the first answer
        namespace: the namespace; defaults to `default`
        """
        return self._stream(
            "POST",
            "/v1/responses",
            {},
            {"namespace": namespace},
            {"Idempotency-Key": idempotency_key},
            body,
            deadline,
        )

    def get_response(
        self,
        id: str,
        *,
        stream: bool | None = None,
        starting_after: int | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.ModelResponse:
        """A response that the caller asked for; with `jobs.read` also those of others. Needs the right `jobs.submit`.

        stream: `true` answers with the events of the response
        starting_after: with `stream`: only events with a larger `sequence_number`
        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "GET",
            "/v1/responses/{id}",
            {"id": id},
            {"stream": stream, "starting_after": starting_after, "namespace": namespace},
            {},
            None,
            deadline,
        )

    def stream_get_response(
        self,
        id: str,
        *,
        stream: bool | None = None,
        starting_after: int | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> Events[t.ModelResponse]:
        """A response that the caller asked for; with `jobs.read` also those of others. Needs the right `jobs.submit`.

        stream: `true` answers with the events of the response
        starting_after: with `stream`: only events with a larger `sequence_number`
        namespace: the namespace; defaults to `default`
        """
        return self._stream(
            "GET",
            "/v1/responses/{id}",
            {"id": id},
            {"stream": stream, "starting_after": starting_after, "namespace": namespace},
            {},
            None,
            deadline,
        )

    def list_input_items(
        self,
        id: str,
        *,
        limit: int | None = None,
        order: Literal["asc", "desc"] | None = None,
        after: str | None = None,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.InputItems:
        """The items that a response was asked with. Needs the right `jobs.submit`.

        limit: most items, 1 to 100; defaults to 20
        order: `asc`: the oldest item first; defaults to `desc`
        after: the id of the last item of the page before
        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "GET",
            "/v1/responses/{id}/input_items",
            {"id": id},
            {"limit": limit, "order": order, "after": after, "namespace": namespace},
            {},
            None,
            deadline,
        )

    def cancel_response(
        self,
        id: str,
        *,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.ModelResponse:
        """Cancels the job of a response. Needs the right `jobs.control`.

        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "POST",
            "/v1/responses/{id}/cancel",
            {"id": id},
            {"namespace": namespace},
            {},
            None,
            deadline,
        )

    def delete_response(
        self,
        id: str,
        *,
        namespace: str | None = None,
        deadline: float | None = None,
    ) -> t.DeletedResponse:
        """Deletes a response: its job is cancelled if it runs, and what was said is erased from its record. Needs the right `jobs.control`.

        namespace: the namespace; defaults to `default`
        """
        return self._json(
            "DELETE",
            "/v1/responses/{id}",
            {"id": id},
            {"namespace": namespace},
            {},
            None,
            deadline,
        )

    def security_policy(
        self,
        *,
        deadline: float | None = None,
    ) -> t.Policy:
        """The security policy of the cluster. Needs the right `public`."""
        return self._json(
            "GET",
            "/api/security/policy",
            {},
            {},
            {},
            None,
            deadline,
        )

    def cluster(
        self,
        *,
        deadline: float | None = None,
    ) -> t.Cluster:
        """Leader, log positions, reachable voters and members of the cluster. Needs the right `cluster.read`."""
        return self._json(
            "GET",
            "/api/cluster",
            {},
            {},
            {},
            None,
            deadline,
        )

    def list_members(
        self,
        *,
        limit: int | None = None,
        offset: int | None = None,
        deadline: float | None = None,
    ) -> list[t.Member]:
        """The members by number, with their state. Needs the right `cluster.read`.

        limit: maximum number, 1 to 1000; defaults to all
        offset: number to skip
        """
        return self._json(
            "GET",
            "/api/cluster/members",
            {},
            {"limit": limit, "offset": offset},
            {},
            None,
            deadline,
        )

    def remove_member(
        self,
        member: str,
        *,
        idempotency_key: str | None = None,
        deadline: float | None = None,
    ) -> t.Removed:
        """Removes a member permanently; refused if no quorum would remain. Needs the right `cluster.operate`.

        idempotency_key: up to 255 characters; a repeat with the same key gets the first answer
        """
        return self._json(
            "DELETE",
            "/api/cluster/members/{member}",
            {"member": member},
            {},
            {"Idempotency-Key": idempotency_key},
            None,
            deadline,
        )

    def create_join_token(
        self,
        body: t.TokenRequest | None = None,
        *,
        idempotency_key: str | None = None,
        deadline: float | None = None,
    ) -> t.Token:
        """Creates a token with which a controller or a node can join. Needs the right `cluster.operate`.

        idempotency_key: up to 255 characters; a repeat with the same key gets the first answer
        """
        return self._json(
            "POST",
            "/api/cluster/join-tokens",
            {},
            {},
            {"Idempotency-Key": idempotency_key},
            body,
            deadline,
        )

    def revoke_join_token(
        self,
        body: t.RevokeRequest,
        *,
        idempotency_key: str | None = None,
        deadline: float | None = None,
    ) -> t.Revoked:
        """Revokes a join token. Needs the right `cluster.operate`.

        idempotency_key: up to 255 characters; a repeat with the same key gets the first answer
        """
        return self._json(
            "POST",
            "/api/cluster/join-tokens/revoke",
            {},
            {},
            {"Idempotency-Key": idempotency_key},
            body,
            deadline,
        )

    def transfer_leader(
        self,
        body: t.TransferRequest | None = None,
        *,
        idempotency_key: str | None = None,
        deadline: float | None = None,
    ) -> t.Transferred:
        """Makes another member the leader. Needs the right `cluster.operate`.

        idempotency_key: up to 255 characters; a repeat with the same key gets the first answer
        """
        return self._json(
            "POST",
            "/api/cluster/transfer-leader",
            {},
            {},
            {"Idempotency-Key": idempotency_key},
            body,
            deadline,
        )

    def snapshot(
        self,
        *,
        deadline: float | None = None,
    ) -> Bytes:
        """A backup of the cluster, streamed. Needs the right `cluster.operate`."""
        return self._bytes(
            "GET",
            "/api/cluster/snapshot",
            {},
            {},
            {},
            None,
            deadline,
        )

    def whoami(
        self,
        *,
        deadline: float | None = None,
    ) -> t.Whoami:
        """Who sends the request, and what this principal is granted. Needs the right `public`."""
        return self._json(
            "GET",
            "/api/auth/whoami",
            {},
            {},
            {},
            None,
            deadline,
        )

    def mcp_resource(
        self,
        *,
        deadline: float | None = None,
    ) -> t.ProtectedResource:
        """Which issuers give tokens for the MCP server of the platform (RFC 9728). Needs the right `public`."""
        return self._json(
            "GET",
            "/.well-known/oauth-protected-resource/mcp",
            {},
            {},
            {},
            None,
            deadline,
        )

    def mcp_resource_of_agent(
        self,
        name: str,
        *,
        deadline: float | None = None,
    ) -> t.ProtectedResource:
        """Which issuers give tokens for the MCP server of an agent (RFC 9728). Needs the right `public`."""
        return self._json(
            "GET",
            "/.well-known/oauth-protected-resource/agents/{name}/mcp",
            {"name": name},
            {},
            {},
            None,
            deadline,
        )

    def create_token(
        self,
        body: t.AccessTokenRequest,
        *,
        deadline: float | None = None,
    ) -> t.AccessToken:
        """Makes a token. Only its hash is stored: everything else about it is the object of the kind `token`, and deleting that revokes it. Needs the right `access.manage`."""
        return self._json(
            "POST",
            "/api/auth/tokens",
            {},
            {},
            {},
            body,
            deadline,
        )

    def read_audit(
        self,
        *,
        cursor: str | None = None,
        member: str | None = None,
        limit: int | None = None,
        principal: str | None = None,
        verb: str | None = None,
        object: str | None = None,
        namespace: str | None = None,
        decision: Literal["allow", "failed", "deny", "dropped"] | None = None,
        since: float | None = None,
        until: float | None = None,
        deadline: float | None = None,
    ) -> t.AuditPage:
        """Records of who did what, and of who was denied it, oldest first. Each controller has those of its own doors; the answer has those of all, and names controllers that did not answer. Needs the right `audit.read`.

        cursor: continues where the answer with this cursor ended; `end` is after the newest record of each controller
        member: only those of this controller, by name or number
        limit: maximum number, 1 to 1000; defaults to 100
        principal: only those of this principal
        verb: only those of this operation
        object: only those about objects that begin with this, such as `agent/`
        namespace: only those in this namespace
        decision: only those with this decision
        since: not before this time, Unix seconds
        until: before this time, Unix seconds
        """
        return self._json(
            "GET",
            "/api/audit",
            {},
            {"cursor": cursor, "member": member, "limit": limit, "principal": principal, "verb": verb, "object": object, "namespace": namespace, "decision": decision, "since": since, "until": until},
            {},
            None,
            deadline,
        )
