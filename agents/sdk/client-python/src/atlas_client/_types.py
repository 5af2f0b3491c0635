"""Generated from the table of operations by `cargo xtask fix`; do not edit.

Objects keep members that are not listed here."""

from __future__ import annotations

from typing import Any, TypedDict, Union


class Error(TypedDict):
    """Why a request was refused, in the form of Atlas for Python. The header `Atlas-Error-Code` contains the code."""

    #: one line, for people
    error: str


class _Problem(TypedDict):
    """Members that are always there."""

    #: path of the code's page: `/errors/` and the code
    type: str
    #: the title of the code's page
    title: str
    #: the HTTP status
    status: int
    #: `E` and four digits
    code: str
    #: one line, for people
    detail: str


class Problem(_Problem, total=False):
    """The same as a problem document (RFC 9457): for clients that accept `application/problem+json`, and always on paths that Atlas for Python does not have."""

    #: violations of an input or a contract
    errors: list[Violation]
    #: what to try
    hint: str
    #: seconds until a repeat may succeed
    retry_after_s: int


class Violation(TypedDict):
    """One violation in an input or a contract."""

    #: location, a JSON pointer
    pointer: str
    #: violated keyword of JSON Schema
    rule: str
    #: description, possibly with a suggestion
    message: str


class Id(TypedDict):
    """The id of a job."""

    #: `job-` and sixteen hexadecimal digits
    id: str


class _Submission(TypedDict):
    """Members that are always there."""

    #: the agent's name
    agent: str


class Submission(_Submission, total=False):
    """A job to submit. Unknown members are ignored with a header `Warning`; those that look like a member that Atlas for Python does not have are refused."""

    #: any JSON; defaults to `{}`
    input: Any
    #: higher runs first; fractions are cut off, and text must be digits
    priority: int | float | str | bool
    #: a requirement such as `^1.2.0`; defaults to the latest version
    version: str | None
    #: at most 64, of at most 1024 bytes each
    labels: dict[str, str] | None
    #: execution timeout in seconds; defaults to the contract's
    timeout: float | None
    #: earliest start, Unix seconds
    at: float | None
    #: most that its model calls may cost, US dollars; as text, such as `"0.01"`, it is exact
    budget_usd: float | str | None
    #: what happens to its questions to people: `fail`, `wait`, or `answer:` and a text; defaults to `fail`
    questions: str | None
    #: whether it waits or fails while no registered node has what it needs; defaults to what its namespace says, or else `fail`
    unsatisfiable: str | None
    #: what it is about: one line that people see in lists
    title: str | None
    #: the conversation that it continues or begins; `temp` is never kept
    conversation: str | None


class _BatchJob(TypedDict):
    """Members that are always there."""

    #: the agent's name
    agent: str


class BatchJob(_BatchJob, total=False):
    """One job of many: a [Submission](#submission) with its own key, outside conversations. Unknown members are refused."""

    #: any JSON; defaults to `{}`
    input: Any
    #: higher runs first; fractions are cut off, and text must be digits
    priority: int | float | str | bool
    #: a requirement such as `^1.2.0`; defaults to the latest version
    version: str | None
    #: at most 64, of at most 1024 bytes each
    labels: dict[str, str] | None
    #: execution timeout in seconds; defaults to the contract's
    timeout: float | None
    #: earliest start, Unix seconds
    at: float | None
    #: most that its model calls may cost, US dollars; as text, such as `"0.01"`, it is exact
    budget_usd: float | str | None
    #: what happens to its questions to people: `fail`, `wait`, or `answer:` and a text; defaults to `fail`
    questions: str | None
    #: whether it waits or fails while no registered node has what it needs; defaults to what its namespace says, or else `fail`
    unsatisfiable: str | None
    #: what it is about: one line that people see in lists
    title: str | None
    #: a repeat with the same key gets the first answer; must not begin with `~`
    idempotency_key: str | None


class Batch(TypedDict):
    """Jobs to submit, queued in this order. The body may have eight times the size of a single submission, each job the size of one."""

    #: the jobs
    jobs: list[BatchJob]


class BatchResult(TypedDict, total=False):
    """Result for one job: one of these members."""

    #: the job is queued, possibly by an earlier request with the same key
    id: str
    error: Problem


class _BatchResults(TypedDict):
    """Members that are always there."""

    #: number of accepted jobs
    taken: int
    #: one for each job, in order
    results: list[BatchResult]


class BatchResults(_BatchResults, total=False):
    """Results for many jobs."""

    #: present if refused jobs may be accepted later: send them again after this many seconds
    retry_after_s: int


class _JobRoute(TypedDict):
    """Members that are always there."""

    #: `allow`, `redirect`, `reject` or `undecided`
    action: str
    #: what decided
    decider: str
    #: the revision of the selection
    selection: int
    #: the agent that the job was submitted for
    asked_agent: str


class JobRoute(_JobRoute, total=False):
    """An object."""

    #: the rule that decided, if one did
    rule: str


class JobApprovals(TypedDict):
    """An object."""

    policy: str
    rule: str
    question: str
    #: the agent that may run with it
    agent: str
    #: empty while nobody has approved
    approved_by: str


class JobNeedsApproval(TypedDict):
    """An object."""

    question: str
    job: str
    #: who may answer, in words
    who: str


class _Job(TypedDict):
    """Members that are always there."""

    #: `job-` and sixteen hexadecimal digits
    id: str
    #: the agent
    agent_name: str
    #: the status
    status: str
    #: the input
    input_data: Any
    #: the output; null if there is none
    output_data: Any
    #: error of a failed job; otherwise empty
    error: str
    #: higher runs first
    priority: int
    #: Unix seconds
    created_at: float
    #: Unix seconds; 0 if it has not started
    started_at: float
    #: Unix seconds; 0 if it has not ended
    completed_at: float
    #: start time of the agent; 0 in a warm slot
    warmup_ms: float
    #: execution time
    execution_ms: float
    #: number of the retry within its family; 0 for the first job
    retry_count: int
    #: the first job of its family, if it is a retry
    original_job_id: str
    #: metadata of triggers, chains and attempts
    metadata: dict[str, Any]


class Job(_Job, total=False):
    """One job."""

    #: reason for the status, one word; with `view=full`
    reason: str
    #: what it is waiting for, a sentence; with `view=full`
    waiting_for: str
    #: what it is about, a sentence; with `view=full`, if it has a title
    title: str
    #: namespace; with `view=full`
    namespace: str
    #: version of the agent; with `view=full`
    agent_version: str
    #: digest of that version's package; with `view=full`
    digest: str
    #: number of the event of its submission; with `view=full`
    log: int
    #: number of the latest attempt; with `view=full`
    attempt: int
    #: attempts that ended because the job was parked, which do not count; with `view=full`, if there were any
    parks: int
    #: maximum number of attempts; with `view=full`
    max_attempts: int
    #: the node; with `view=full`
    node: str
    #: the node's epoch; with `view=full`, while it has a lease
    epoch: int
    #: the lease's token; with `view=full`, while it has a lease
    fencing_token: int
    #: the run that carries it, or carried it; with `view=full`
    run: str
    #: what the orchestrator decided about it: `action`, `decider`, `selection` (its revision), `asked_agent`, and `rule` if a rule decided; with `view=full`, unless the default orchestrator allowed it
    route: JobRoute
    #: whether a warm slot ran it; with `view=full`
    warm: bool
    #: kind of failure; with `view=full`
    failure_kind: str
    #: code of the error, with a page of its own; empty unless the job failed; with `view=full`
    error_code: str
    #: the job that spawned it; with `view=full`
    parent: str
    #: number of spawning jobs above it; with `view=full`
    depth: int
    #: the job that retries it; with `view=full`
    retried_by: str
    #: the job whose first steps it began with; with `view=full`, if there is one
    forked_from: str
    #: how many steps it began with; with `view=full`, if it is a fork
    fork_steps: int
    #: the model or tier that it calls instead of the one in its contract; with `view=full`, if it is a fork with another one
    fork_model: str
    #: who submitted it; with `view=full`
    principal: str
    #: interface it came through; with `view=full`
    door: str
    #: the idempotency key; with `view=full`
    request_id: str
    #: its labels; with `view=full`
    labels: dict[str, str]
    #: time in the queue; with `view=full`
    queue_ms: float
    #: time from submission to end; with `view=full`
    total_ms: float
    #: tokens that its recorded steps sent to models, in all attempts; with `view=full`, if there were any
    tokens_input: int
    #: tokens that models answered; with `view=full`, if there were any
    tokens_output: int
    #: price of its recorded steps in US dollars; with `view=full`, if there were any
    cost_usd: float
    #: most that its model calls may cost in US dollars; with `view=full`, if it has a budget
    budget_usd: float
    #: it waits while no registered node has what it needs; with `view=full`, unless it fails then
    unsatisfiable: str
    #: the rule for its questions; with `view=full`, unless it is `fail`
    questions: str
    #: its open questions and those of the jobs below it; with `view=full`, if there are any
    needs_answer: list[str]
    #: the approvals that policies demand: `policy`, `rule`, `question`, the `agent` that may run with it (another one than that of the job if an orchestrator redirected the job since), and `approved_by`, which is empty while nobody has approved; with `view=full`, if there are any
    approvals: list[JobApprovals]
    #: those of `needs_answer` that policies ask: `question`, `job`, and `who` may answer, in words; with `view=full`, if there are any
    needs_approval: list[JobNeedsApproval]
    #: its price together with that of the jobs below it in the state; with `view=full`, if it has children and any of them cost something
    tree_cost_usd: float


class _JobTree(TypedDict):
    """Members that are always there."""

    #: `job-` and sixteen hexadecimal digits
    id: str
    #: the jobs that it spawned, oldest first; at most 1000 in total
    children: list[JobTree]


class JobTree(_JobTree, total=False):
    """A job as in [Job](#job) with `view=full`, and the jobs that it spawned."""

    #: the jobs that it was retried as, oldest first, if there are any; a retry of a child is another child
    retries: list[JobTree]


class _Explained(TypedDict):
    """Members that are always there."""

    #: `job-` and sixteen hexadecimal digits
    id: str
    #: status of the job
    status: str
    #: reason for the status, one word, as in [Job](#job)
    reason: str
    #: what it is waiting for, a sentence
    waiting_for: str
    #: when it was submitted, Unix seconds
    since: float
    #: ways to start it, the least effort first; at most 5
    starts_if: list[Counterfactual]


class Explained(_Explained, total=False):
    """Why a job waits. A job that has started has an empty `starts_if` and no estimate."""

    #: its position among the waiting jobs with the same demand, from 1; absent after 1000, or if it is not in the queue
    position: int
    #: number of waiting jobs with the same demand; absent if it is not in the queue
    class_jobs: int
    estimate: Estimate
    lacking: Lacking


class Lacking(TypedDict):
    """What a job needs that no node has, if it failed for that: of the node that lacks the least."""

    #: the node
    node: str
    #: what it lacks, in words
    short: list[str]


class _Estimate(TypedDict):
    """Members that are always there."""

    #: whether there is an estimate
    known: bool


class Estimate(_Estimate, total=False):
    """When a waiting job will start if nothing but time passes, from the durations of the latest jobs of its agent."""

    #: seconds until it starts; median
    seconds: float
    #: with a probability of 90 % it takes longer
    seconds_low: float
    #: with a probability of 90 % it takes less
    seconds_high: float
    #: why there is no estimate
    says: str


class Counterfactual(TypedDict):
    """Changes that together start a waiting job; the planner confirmed it."""

    #: the changes as a sentence, without the `if`
    says: str
    #: the changes, each with a `kind`: `time` (`until`), `wake`, `allow`, `resolve`, `end` (`jobs`, and the number of `other_jobs` of other namespaces), `others_wait`, `priority` (`at_least`), `limit` (`at_least`), `namespace_limit` (`at_least`), `key_limit` (`at_least`), `rate` (`until`), `resume` (`agent`, `version`), `probe` (`until`), `open` (`node`, `now`), `label` (`node`, `labels`), `room` (`node` and the additional free amounts), `register` (what another node must have), `ask` (the largest amount that the contract may state)
    changes: list[dict[str, Any]]


class Step(TypedDict):
    """A recorded step of a job."""

    #: its number, from 0
    step: int
    #: what it records
    kind: str
    #: hash of what was asked, 32 hexadecimal digits
    key: str
    #: how long it took
    duration_ms: float
    #: tokens sent to a model
    tokens_input: int
    #: tokens that a model answered
    tokens_output: int
    #: its price in dollars
    cost_usd: float
    #: size of the outcome
    outcome_bytes: int
    #: what came of it; null if a long list has no room for it
    outcome: Any


class Erased(TypedDict):
    """Result of an erasure."""

    #: always true; what cannot be erased is an error
    erased: bool


class Cancelled(TypedDict):
    """Result of a cancellation."""

    #: false if there was nothing to cancel
    cancelled: bool


class Decision(TypedDict, total=False):
    """Resolution of a job in doubt: exactly one member."""

    #: run the job again
    run_again: bool
    #: complete it with this output
    output: Any
    #: fail it with this error
    error: str


class ForkSet(TypedDict):
    """An object."""

    #: the super-step whose nodes see them first
    before: int
    #: the values by their keys
    values: dict[str, Any]


class _Fork(TypedDict):
    """Members that are always there."""

    #: how many recorded steps it begins with, from 1 to all of them
    steps: int


class Fork(_Fork, total=False):
    """How a new job begins and goes on."""

    #: the model or tier that it calls after them; defaults to that of the other job
    model: str | None
    #: the version of the agent that goes on, or a requirement; defaults to that of the other job
    version: str | None
    #: values that are set in the state of a graph
    set: ForkSet | None


class Resolved(TypedDict):
    """Result of a resolution."""

    #: the job
    id: str
    #: its status
    status: str


class _Message(TypedDict):
    """Members that are always there."""

    #: the message, any JSON of at most 64 KiB
    message: Any


class Message(_Message, total=False):
    """A message to a job."""

    #: the sender's name for it; a job gets a message of one id once
    id: str
    #: the question that it answers, as the job's reason shows it
    answers: str
    #: what it is about: a durable program can wait for the next message of a channel; no control characters
    channel: str


class _Question(TypedDict):
    """Members that are always there."""

    #: `question-` and sixteen hexadecimal digits
    id: str
    #: the job that asks
    job: str
    #: the step of the job's journal that asks; 0 if a policy asks
    step: int
    #: the order in which questions were asked
    number: int
    #: what kind of answer it has
    kind: str
    #: the question in words
    prompt: str
    #: what can be chosen
    options: list[str]
    #: the answer is a list of options
    many: bool
    #: another text than the options is an answer
    other: bool
    #: who may answer; empty for everybody with the right
    answerers: list[str]
    #: whether it is open, or how it ended
    status: str
    #: Unix seconds
    asked_at: float
    #: when its time passes, Unix seconds
    deadline: float | None
    #: the answer; null without one
    answer: Any
    #: who answered
    answered_by: str
    #: Unix seconds
    ended_at: float | None


class Question(_Question, total=False):
    """A question of a job to people."""

    #: of a form: the JSON Schema of the answer
    schema: Any
    #: the answer when its time has passed
    default: Any
    #: if a policy asks: `policy`, `rule`, the `role` that may answer (empty for everybody with the right), `self`: whether who submitted the job may answer, and `who` may answer, in words
    approval: dict[str, Any]


class QuestionAnswer(TypedDict, total=False):
    """The answer to a question: exactly one member."""

    #: a text, a list of strings, `yes` or `no`, or a value that satisfies the schema, as the question asks; at most 16 KiB
    answer: Any
    #: the answer in words: several options with commas between them, a form as JSON
    text: str


class Sent(TypedDict):
    """Result of a message."""

    #: the message
    id: str
    #: the job had it before
    repeated: bool


class _Change(TypedDict):
    """Members that are always there."""

    #: the job
    job_id: str
    #: its agent
    agent_name: str
    #: the status before
    old_status: str
    #: the status after
    new_status: str
    #: Unix seconds
    timestamp: float
    job: Job


class Change(_Change, total=False):
    """One change of a job; a frame of the event streams."""

    #: kind of change, one word; with `view=full`
    change: str


class _ClusterEvent(TypedDict):
    """Members that are always there."""

    #: its number, without gaps over all kinds
    event: int
    #: what it is about
    kind: str
    #: a job's or a run's id, the name of an agent, a node or an object; empty for the cluster
    name: str
    #: Unix seconds
    timestamp: float
    #: what happened, a word: registered, deprecated, failing, retired or deleted; ready, down, cordoned, draining, failing, contested (another worker asked for its name) or removed; created, changed or deleted; started, step_started, step_ended or ended; configured; or a change of a job
    change: str


class ClusterEvent(_ClusterEvent, total=False):
    """One event. A job's has the members of `Change` as well."""

    job: Job
    #: name, version, digest, labels, retired, deprecated, circuit
    agent: dict[str, Any]
    #: name, epoch, health, cordoned, draining, labels, circuit; null if it was removed
    node: dict[str, Any] | None
    #: kind, namespace, uid, revision, labels, spec, by; as it was before if it was deleted
    object: dict[str, Any]
    #: id, chain_name, namespace, status, current_step, total_steps, error
    run: dict[str, Any]
    #: the configuration that holds from here on
    config: dict[str, Any]


class Line(TypedDict):
    """One log line or progress step of an attempt."""

    #: number of the attempt
    attempt: int
    #: its number within the attempt
    number: int
    #: Unix seconds
    at: float
    #: kind
    kind: str
    #: the level of a log line
    level: str
    #: the text
    text: str


class _Agent(TypedDict):
    """Members that are always there."""

    #: its name
    name: str
    #: three numbers
    version: str
    #: from its contract
    description: str
    #: capabilities
    capabilities: list[str]


class Agent(_Agent, total=False):
    """One agent version. Lists have its first four members, and with `view=full` those up to `revision`; alone it has all."""

    #: what it is; with `view=full`
    kind: str
    #: how it runs; with `view=full`
    provider: str
    #: its package; with `view=full`
    digest: str
    #: the package's size; with `view=full`
    package_bytes: int
    #: Unix seconds; with `view=full`
    registered_at: float
    #: whether it is retired; with `view=full`
    retired: bool
    #: deprecation message; null if not deprecated; with `view=full`
    deprecated: str | None
    #: from its contract; with `view=full`
    labels: dict[str, str]
    #: whether jobs start on it although attempts fail; with `view=full`
    circuit: Circuit
    #: who registered its package; null if that is not known; with `view=full`
    registered_by: str | None
    #: the number of its package, from 1 on; with `view=full`
    revision: int
    #: its packages, that of now first; at most 11; not in lists
    revisions: list[AgentRevision]
    #: input schema, a JSON Schema; not in lists
    input_schema: Any
    #: output schema, a JSON Schema; not in lists
    output_schema: Any
    #: the whole contract, normalised; not in lists
    contract: dict[str, Any]


class AgentRevision(TypedDict):
    """A package that an agent version has or had."""

    #: its number, from 1 on
    revision: int
    #: the package
    digest: str
    #: the package's size
    package_bytes: int
    #: Unix seconds
    registered_at: float
    #: who registered it; null if that is not known
    registered_by: str | None
    #: the revision whose package it has again; null if it is the first with its package
    copy_of: int | None


class RollbackRequest(TypedDict, total=False):
    """Rollback of a version."""

    #: the revision to go back to; the one before the package of now by default
    revision: int | None


RolledBack = TypedDict("RolledBack", {"name": "str", "version": "str", "digest": "str", "from": "int", "revision": "int"})


class Registered(TypedDict):
    """Result of a registration."""

    #: the agent or the skill
    name: str
    #: its version
    version: str
    #: its package
    digest: str
    #: false if the same package was already registered
    changed: bool


class Deleted(TypedDict):
    """Result of a deletion."""

    #: true
    deleted: bool


class Retired(TypedDict):
    """Result of a retirement."""

    #: true
    retired: bool


class DeprecateRequest(TypedDict, total=False):
    """Deprecation of a version."""

    #: message, at most 1024 bytes
    message: str
    #: false removes the deprecation
    deprecated: bool | None


class Deprecated(TypedDict):
    """Deprecation of a version."""

    #: message; null if not deprecated
    deprecated: str | None


class DrainRequest(TypedDict, total=False):
    """Deadline of a drain."""

    #: after this many seconds the worker returns its running jobs, which then run elsewhere; needs feature level 4. Without it, all jobs finish
    deadline_s: float | None


class LabelRequest(TypedDict, total=False):
    """Labels of a node to change, at most 64 at once; needs feature level 4."""

    #: labels to set; keys and values have at most 1024 bytes, keys contain no `=` and do not end with `-`. A node has at most 64 labels from operators
    set: dict[str, str]
    #: keys of labels to remove; a label of the worker with the same key becomes effective again
    remove: list[str]


class NodeGpus(TypedDict):
    """An object."""

    index: int
    uuid: str
    vendor: str
    model: str
    memory_bytes: int
    free_bytes: int
    mig_profile: str
    healthy: bool


class NodeRival(TypedDict):
    """An object."""

    address: str
    #: the address of the node's own worker
    holder: str
    #: Unix seconds
    at: float


class Node(TypedDict):
    """One worker."""

    #: its name
    id: str
    #: its incarnation
    epoch: int
    #: whether it has a session
    health: str
    #: whether it gets no new leases
    cordoned: bool
    #: whether it is being emptied
    draining: bool
    #: Unix seconds by which its worker returns running jobs; null without a deadline
    drain_ends_at: float | None
    #: its cores
    cores: int
    #: free cores
    cores_free: int
    #: its memory
    memory_bytes: int
    #: free memory
    memory_bytes_free: int
    #: its architecture
    arch: str
    #: its GPUs
    gpus: list[NodeGpus]
    #: its devices
    devices: list[str]
    #: whether jobs' requirements are checked against its hardware
    hardware_checks: bool
    #: maximum number of concurrent jobs that run a process
    places: int
    #: free concurrency
    places_free: int
    #: maximum number of concurrent jobs of `llm` agents
    llm_places: int
    #: free concurrency for `llm` agents
    llm_places_free: int
    #: number of leases
    running: int
    #: number of warm slots
    warm: int
    #: effective labels: those of its worker, overridden by those of operators
    labels: dict[str, str]
    #: labels set by operators
    operator_labels: dict[str, str]
    #: Unix seconds
    registered_at: float
    circuit: Circuit
    #: the latest worker that was refused because it asked for this name while the node's own worker had it: its `address`, the address of the `holder`, and `at`, Unix seconds
    rival: NodeRival | None


class Circuit(TypedDict):
    """Whether jobs start on an agent version or a node although attempts fail there."""

    #: `closed`: as usual; `open`: none, for a pause; `half_open`: one, which probes it
    state: str
    #: failures in a row
    failures: int
    #: Unix seconds at which it opened; null while it is closed
    since: float | None
    #: seconds without a start after the latest failure; null while it is closed
    pause_s: int | None


class Accepted(TypedDict):
    """The request is recorded."""

    #: true
    accepted: bool


class Removed(TypedDict):
    """The object is removed."""

    #: true
    removed: bool


class _Health(TypedDict):
    """Members that are always there."""

    #: `ok`
    status: str
    #: waiting jobs
    pending: int
    #: running jobs
    running: int
    #: free places in the queue
    capacity_remaining: int


class Health(_Health, total=False):
    """Numbers of jobs."""

    hardware: Hardware


class HardwareAllocations(TypedDict):
    """An object."""

    slot_id: str
    gpu_devices: list[int]
    memory_gb: float
    cpu_cores: int


class Hardware(TypedDict):
    """Hardware declared by operators, over all nodes."""

    #: GPUs
    total_gpus: int
    #: free GPUs
    free_gpus: int
    #: the memory of each
    gpu_vram_gb: list[float]
    #: memory
    total_memory_gb: float
    #: free memory
    free_memory_gb: float
    #: cores
    total_cpu_cores: int
    #: free cores
    free_cpu_cores: int
    #: `any` where nodes differ
    architecture: str
    #: allocations of jobs
    allocations: list[HardwareAllocations]


class Ready(TypedDict):
    """The controller can serve requests, or with `alone=true` is the only member that runs."""

    #: false while it is alone and cannot serve requests
    ready: bool


class _Version(TypedDict):
    """Members that are always there."""

    #: version of the program
    version: str
    #: how it was started
    mode: str
    #: highest supported feature level
    level: int
    #: 32 hexadecimal digits
    cluster_id: str


class Version(_Version, total=False):
    """The program and its cluster."""

    #: data directory; in development mode only
    data_dir: str


class GlobalFigures(TypedDict):
    """Statistics of all agents together."""

    #: jobs that changed their status
    total_jobs: int
    #: share of failed jobs
    error_rate: float
    #: share of retries
    retry_rate: float
    #: share of completed jobs that ran in a warm slot
    warm_hit_rate: float
    #: jobs that ended in the last minute
    throughput_per_min: int
    #: median of the execution time
    latency_p50_ms: float
    #: 95th percentile
    latency_p95_ms: float
    #: 99th percentile
    latency_p99_ms: float


class AgentFigures(TypedDict):
    """Statistics of one agent, over the last thousand jobs."""

    #: number of jobs by status
    jobs_by_status: dict[str, int]
    #: jobs that changed their status
    total_jobs: int
    #: share of failed jobs
    error_rate: float
    #: jobs that ended in the last minute
    throughput_per_min: int
    #: median of the execution time
    latency_p50_ms: float
    #: 95th percentile
    latency_p95_ms: float
    #: 99th percentile
    latency_p99_ms: float
    #: share of completed jobs that ran in a warm slot
    warm_hit_rate: float
    #: number of retries
    total_retries: int


Figures = TypedDict("Figures", {"global": "GlobalFigures", "agents": "dict[str, AgentFigures]"})


class _ChainStart(TypedDict):
    """Members that are always there."""

    #: a definition, also under the key `chain`; or the name of a stored chain
    chain: dict[str, Any] | str


class ChainStart(_ChainStart, total=False):
    """A run to start. Unknown members are ignored with a header `Warning`; those that look like `priority` are refused."""

    #: the input of the chain; defaults to `{}`
    input: dict[str, Any] | None
    #: the priority of its jobs; defaults to 0
    priority: int | None


class ChainToCheck(TypedDict):
    """A chain whose steps are looked at."""

    #: a definition, also under the key `chain`; or the name of a stored chain
    chain: dict[str, Any] | str


class ChainCheck(TypedDict):
    """How the steps of a chain fit together."""

    #: the name of the chain
    name: str
    #: name, agent and version of each step
    steps: list[dict[str, Any]]
    #: for each step after the first: strategy, cost and confidence, the fields with their types, and notes
    joins: list[dict[str, Any]]
    #: the model that converts data where a strategy is `llm_bridge`; empty if there is none
    model: str
    #: what is wrong with the `input_map` of a step: the step's number from 0 (`step`), the `field`, what the map has for it (`given`), `message`, `hint`, and `level`: `error` if no run can pass the step, else `warning`
    problems: list[dict[str, Any]]


class ChainId(TypedDict):
    """The id of a run."""

    #: `chain-` and sixteen hexadecimal digits
    id: str


class _ChainRun(TypedDict):
    """Members that are always there."""

    #: its id
    id: str
    #: the name of the chain
    chain_name: str
    #: its status
    status: str
    #: the input of the chain
    input_data: Any
    #: Unix seconds
    created_at: float
    #: Unix seconds; 0.0 until it has ended
    completed_at: float
    #: number of the step that was started last; -1 before the first
    current_step: int
    #: number of steps of the chain
    total_steps: int
    #: success, output, error, failed_at, steps and mediation_summary; null until it has ended
    result: dict[str, Any] | None


class ChainRun(_ChainRun, total=False):
    """One run of a chain. With `view=full` it has the members after `result`."""

    #: revision of the stored chain; null if the definition came with the request
    revision: int | None
    #: the definition as it was at the start
    definition: dict[str, Any]
    #: the priority of its jobs
    priority: int
    #: number of changes
    version: int
    #: the steps that were started: name, agent, version, job_id, status, strategy
    step_jobs: list[dict[str, Any]]
    #: the step that failed: its number from 0 (`step`), `name`, `agent`, `job_id`, the `reason`, the places in its input or output that are wrong (`at`), and the `output` that its agent returned; null for what there is not
    failure: dict[str, Any] | None
    #: the job that it carries
    job_id: str | None


class ChainTree(TypedDict):
    """A run as in [ChainRun](#chainrun) with `view=full`, and the jobs of its steps."""

    #: `chain-` and sixteen hexadecimal digits
    id: str
    #: the jobs of its steps, oldest first; at most 1000 with those below them
    children: list[JobTree]


class _ConversationMessages(TypedDict):
    """Members that are always there."""

    role: str
    content: str


class ConversationMessages(_ConversationMessages, total=False):
    """An object."""

    images: list[dict[str, Any]]
    #: The model and the settings that a message was asked with, if the agent lets its input choose them.
    settings: dict[str, Any]


class _Conversation(TypedDict):
    """Members that are always there."""

    #: Continues the conversation as `conversation_id` of `send_message`.
    id: str
    #: The agent that answers.
    agent: str
    #: Who continues it: all, one MCP session, or those who send its id.
    scope: str
    #: The principal that began it.
    owner: str
    #: Messages that were answered.
    turns: int
    #: Size of the messages.
    bytes: int
    #: Unix time in seconds.
    created_at: int
    #: Unix time in seconds.
    updated_at: int
    #: When it is removed if there is no further turn, Unix time in seconds; null for never.
    expires_at: int | None
    #: The job that answers the latest message.
    running_job: str | None


class Conversation(_Conversation, total=False):
    """An object."""

    #: What was said, the oldest first; not in lists.
    messages: list[ConversationMessages]


class _ConversationBranch(TypedDict):
    """Members that are always there."""

    #: The name of the new conversation.
    id: str


class ConversationBranch(_ConversationBranch, total=False):
    """A conversation that begins with turns of another one."""

    #: How many turns it begins with; all without it.
    turns: int


class Memory(TypedDict):
    """A shared memory: one text for all who use its scope."""

    #: Who shares it: `namespace`, `agent:NAME`, `user:NAME` or `conversation:ID`.
    scope: str
    #: The whole text; empty if nothing was written.
    text: str
    #: Size of the text.
    bytes: int
    #: Entries that the text consists of.
    entries: int
    #: When it was changed, Unix time in seconds; null if nothing was written.
    updated_at: int | None


class MemoryEntry(TypedDict):
    """One text that was appended to a memory, or that replaced it."""

    #: Unique in its memory.
    id: str
    text: str
    #: Whether it replaced all that was there before.
    replaces: bool
    #: Whether a later one replaced it: it is history, and no part of the text.
    replaced: bool
    #: Whether it is a summary, which stands for entries before it.
    summary: bool
    #: The principal that wrote it.
    author: str
    #: The agent that wrote it; null if it was a person or another program.
    agent: str | None
    #: The job that wrote it; null if it was a person or another program.
    job: str | None
    #: Unix time in seconds.
    written_at: int


class _MemoryChange(TypedDict):
    """Members that are always there."""

    content: str
    #: `append` adds a line, `write` replaces the text, and `compact` replaces the oldest entries by a summary of them.
    action: str


class MemoryChange(_MemoryChange, total=False):
    """What is written to a memory."""

    #: Whose memory: `namespace` if it is empty, or `agent:NAME`, `user:NAME`, `conversation:ID`.
    scope: str
    #: Only of a summary, which needs it.
    summary_of: SummaryOf | None


class _SummaryOf(TypedDict):
    """Members that are always there."""

    #: The id of the first one.
    first: str
    #: The id of the last one.
    last: str
    #: How many they are. If the memory was changed, so that the oldest entries are others, the summary is refused; entries that were appended stay behind it.
    entries: int


class SummaryOf(_SummaryOf, total=False):
    """For which entries a summary stands: the oldest ones of the text."""

    #: The job that wrote the summary; null if it was a person or another program.
    job: str | None


class KnowledgeEntry(TypedDict):
    """One piece of knowledge."""

    #: Unique in its namespace.
    id: str
    content: str
    domain: str
    tags: list[str]
    metadata: dict[str, Any]
    #: In ISO 8601.
    created_at: str
    #: In ISO 8601.
    updated_at: str
    #: The principal that wrote it last.
    author: str
    #: The agent that wrote it last; null if it was a person or another program.
    agent: str | None
    #: The job that wrote it last; null if it was a person or another program.
    job: str | None


class _KnowledgeDraft(TypedDict):
    """Members that are always there."""

    content: str


class KnowledgeDraft(_KnowledgeDraft, total=False):
    """A piece of knowledge that is to be stored."""

    #: Made of the domain and a number if it is empty. An entry of this id is replaced.
    id: str
    #: `general` if it is empty.
    domain: str
    tags: list[str]
    metadata: dict[str, Any]


class KnowledgeChange(TypedDict, total=False):
    """What changes of a piece of knowledge; what is not named stays."""

    content: str | None
    tags: list[str] | None
    #: Replaces all metadata.
    metadata: dict[str, Any] | None


class KnowledgeDomain(TypedDict):
    """A domain of knowledge."""

    domain: str
    #: Entries in it.
    entries: int


class KnowledgeAcl(TypedDict):
    """What agents may do with knowledge."""

    #: Domains that an agent writes only if its contract names them.
    protected_domains: list[str]
    #: By name.
    agents: list[KnowledgeRights]


class KnowledgeRights(TypedDict):
    """What the contract of an agent says about knowledge."""

    agent: str
    #: The version that jobs get which name none.
    version: str
    #: Whether it requires knowledge at all; without that it reads and writes nothing.
    enabled: bool
    #: Domains that it reads; `*` are all.
    read_domains: list[str]
    #: Domains that it writes; `*` are all that are not protected.
    write_domains: list[str]


class DocumentReaders(TypedDict, total=False):
    """A rule on who finds which documents: a document is found by whom any rule with it names."""

    #: Names of principals, in which `*` is any text. None for everyone.
    principals: list[str]
    #: Documents whose sources begin with it.
    source: str
    #: Documents with these members in their metadata. The text `caller.NAME` stands for what is known of the caller under that name.
    metadata: dict[str, Any]


class BaseVectors(TypedDict):
    """The vectors of the chunks of a base."""

    #: `ready` if each chunk has one, `building`, or `failed`.
    state: str
    #: Chunks of the base, when they were last counted.
    chunks: int
    #: Chunks of them that have no vector yet. They are found by words alone.
    missing: int
    #: Numbers of a vector; 0 before the first one is made.
    dimension: int
    #: Why there are no more of them; null if nothing failed. It is tried again.
    error: str | None


class BaseCollection(TypedDict):
    """How the sources of a base were last read."""

    #: When it ended, Unix time in seconds.
    at: int
    #: The job that read them.
    job: str
    #: Documents that they have.
    documents: int
    #: Why some are missing, the first few.
    errors: list[str]


class BaseCollecting(TypedDict):
    """The job that reads the sources of a base."""

    #: The job. Its output says what was added, replaced and removed.
    job: str


class Base(TypedDict):
    """A document base."""

    #: Unique in its namespace.
    name: str
    #: What the documents are about.
    description: str
    #: Most bytes of a chunk.
    chunk_size: int
    #: How much of the chunk before a chunk repeats, in percent of its size.
    chunk_overlap: int
    #: Chunks that a search finds if it does not say how many.
    top_k: int
    #: The model that makes vectors of its chunks; null if they are found by words alone.
    embedding: str | None
    #: The model that ranks what was found; null without one.
    reranker: str | None
    #: What the cluster fills it from, besides what is added.
    sources: list[str]
    #: How often the sources are read again, in minutes; 0 is only when somebody asks for it.
    refresh_minutes: int
    #: Who finds which documents; all find all if it is empty.
    readers: list[DocumentReaders]
    #: The vectors; null without a model for them.
    vectors: BaseVectors | None
    #: How the sources were last read; null before the first time.
    collected: BaseCollection | None
    #: Documents in it.
    documents: int
    #: Size of its segments.
    bytes: int
    #: Artifacts that hold its documents.
    segments: int
    #: The principal that changed it last.
    author: str
    #: When it was changed, Unix time in seconds.
    updated_at: int


class _BaseDraft(TypedDict):
    """Members that are always there."""

    name: str


class BaseDraft(_BaseDraft, total=False):
    """A base that is to be made. What is not named has its default."""

    #: What the documents are about.
    description: str | None
    #: Most bytes of a chunk, 64 to 65536; 2000 if it is left out.
    chunk_size: int | None
    #: How much of the chunk before a chunk repeats, 0 to 50 percent of its size; 5 if it is left out.
    chunk_overlap: int | None
    #: Chunks that a search finds if it does not say how many, 1 to 100; 5 if it is left out.
    top_k: int | None
    #: The model that makes vectors of chunks; by words alone without one.
    embedding: str | None
    #: The model that ranks what was found; none without it.
    reranker: str | None
    #: Pages, websites and repositories that the cluster fills the base from, up to 64.
    sources: list[str] | None
    #: How often the sources are read again, in minutes, at least 5; 0 is only when somebody asks for it.
    refresh_minutes: int | None
    #: Who finds which documents, up to 64 rules; all find all without one.
    readers: list[DocumentReaders] | None


class BaseChange(TypedDict, total=False):
    """What changes of a base; what is not named stays."""

    description: str | None
    chunk_size: int | None
    chunk_overlap: int | None
    top_k: int | None
    #: The model that makes vectors of chunks, empty for none.
    embedding: str | None
    #: The model that ranks what was found, empty for none.
    reranker: str | None
    #: Pages, websites and repositories that the cluster fills the base from, up to 64.
    sources: list[str] | None
    #: How often the sources are read again, in minutes, at least 5; 0 is only when somebody asks for it.
    refresh_minutes: int | None
    #: Who finds which documents, up to 64 rules; all find all without one.
    readers: list[DocumentReaders] | None


class BaseRebuild(TypedDict, total=False):
    """How a base is written anew."""

    #: Whether documents that no controller can read are left out; otherwise they are an error.
    drop_unreadable: bool
    #: Whether all vectors are made anew, for example because the model is another one.
    vectors: bool


class RebuiltBase(TypedDict):
    """A base that was written anew."""

    #: Documents in it.
    documents: int
    segments: int
    #: Documents that could not be read, and are no longer in it.
    lost: int


class _DocumentDraft(TypedDict):
    """Members that are always there."""

    #: Its name in the base, such as the path of its file. The document of the same source is replaced.
    source: str
    #: Up to 4 MiB.
    text: str


class DocumentDraft(_DocumentDraft, total=False):
    """A document that is to be added."""

    #: Searches can ask for members of it.
    metadata: dict[str, Any]


class DocumentDrafts(TypedDict):
    """Documents that are to be added."""

    #: Up to 1000.
    documents: list[DocumentDraft]


class AddedDocument(TypedDict):
    """What happened to a document."""

    source: str
    #: `added`, `replaced`, `unchanged` or `refused`.
    status: str
    #: What it is known by; null if it was refused.
    id: str | None
    #: Why it was refused; null if it was not.
    reason: str | None


class AddedDocuments(TypedDict):
    """What happened to documents, in the order of the request."""

    documents: list[AddedDocument]


class BaseDocument(TypedDict):
    """A document of a base."""

    #: What it is known by: the same source, metadata and text have the same id.
    id: str
    source: str
    #: Size of its text.
    bytes: int
    metadata: dict[str, Any]
    #: Null if it was not asked for.
    text: str | None


class DocumentPage(TypedDict):
    """A page of the documents of a base."""

    documents: list[BaseDocument]
    #: The source after which the next page begins; null on the last one.
    next: str | None
    #: What the page lacks.
    unreadable: list[UnreadableSegment]


class UnreadableSegment(TypedDict):
    """Documents that no controller can read. They are missing in an answer."""

    #: The digest of the artifact.
    segment: str
    #: How many documents it had; 0 for a caller that may not read all of the base.
    documents: int
    reason: str


class RemovedDocuments(TypedDict):
    """How many documents were removed."""

    removed: int


class _DocumentQuery(TypedDict):
    """Members that are always there."""

    #: Without a model for vectors, chunks that share no word with it are not found.
    query: str


class DocumentQuery(_DocumentQuery, total=False):
    """A question to a base."""

    #: Most chunks, 1 to 100; as the base says if it is left out.
    top_k: int | None
    #: Only documents whose sources begin with it.
    source: str
    #: Only documents whose metadata have these members with these values.
    metadata: dict[str, Any]
    #: Whether the answer says why each chunk came.
    explain: bool
    #: Whether words alone count, so that no model is asked.
    words_only: bool
    #: Whether the model that ranks what was found is not asked.
    unranked: bool


class DocumentHit(TypedDict):
    """A chunk that fits a question."""

    source: str
    text: str
    #: More is better. It compares the hits of one answer.
    score: float
    #: The id of the document.
    document: str
    #: Which chunk of the document it is, from 1.
    chunk: int
    #: How many chunks the document has.
    chunks: int
    metadata: dict[str, Any]
    #: Its place by the words of the question; null if it has none, or if the question did not ask to explain.
    by_words: HitRank | None
    #: Its place by its vector, likewise. The score is the cosine.
    by_vector: HitRank | None
    #: Its place by the model that ranks, likewise.
    by_model: HitRank | None


class HitRank(TypedDict):
    """The place of a chunk in an order."""

    #: From 1.
    place: int
    score: float


class FoundDocuments(TypedDict):
    """The chunks that fit a question, the best first."""

    base: str
    hits: list[DocumentHit]
    #: Documents that were searched.
    documents: int
    #: Chunks that were searched.
    chunks: int
    #: Chunks of them without a vector, which are found by words alone; 0 if words alone count.
    without_vector: int
    #: What could not be searched.
    unreadable: list[UnreadableSegment]


class _ChatCompletionRequest(TypedDict):
    """Members that are always there."""

    #: A model of the namespace, an agent or a chain.
    model: str
    #: What was said so far, the oldest first.
    messages: list[dict[str, Any]]


class ChatCompletionRequest(_ChatCompletionRequest, total=False):
    """A request for the next message of a conversation. It may have more members of OpenAI's interface."""

    #: Whether the answer arrives in chunks.
    stream: bool | None


class ChatCompletion(TypedDict):
    """The next message of a conversation."""

    #: `chatcmpl-` and the id of the job.
    id: str
    object: str
    #: Unix time in seconds.
    created: int
    #: The model as the request names it.
    model: str
    #: One message, and why the model stopped.
    choices: list[dict[str, Any]]


class _CompletionRequest(TypedDict):
    """Members that are always there."""

    #: A model of the namespace, an agent or a chain.
    model: str
    #: A text.
    prompt: Any


class CompletionRequest(_CompletionRequest, total=False):
    """A request for a text that goes on from a prompt. It may have more members of OpenAI's interface."""

    #: Whether the answer arrives in chunks.
    stream: bool | None


class Completion(TypedDict):
    """A text that goes on from a prompt."""

    #: `cmpl-` and the id of the job.
    id: str
    object: str
    #: Unix time in seconds.
    created: int
    #: The model as the request names it.
    model: str
    #: One text, and why the model stopped.
    choices: list[dict[str, Any]]


class EmbeddingsRequest(TypedDict):
    """A request for the vectors of texts. It may have more members of OpenAI's interface."""

    #: A model of the namespace of the type `embedding`.
    model: str
    #: A text, or a list of texts.
    input: Any


class Embeddings(TypedDict):
    """The vectors of texts."""

    object: str
    #: One vector for each text, in their order.
    data: list[dict[str, Any]]
    #: The model as the request names it.
    model: str
    #: The tokens of the texts.
    usage: dict[str, Any]


class UsableModel(TypedDict):
    """What the caller may name as a model."""

    #: What a request names.
    id: str
    object: str
    #: Unix time in seconds.
    created: int
    #: The provider of a model, or the namespace of an agent or a chain.
    owned_by: str


class UsableModels(TypedDict):
    """All that the caller may name as a model."""

    object: str
    data: list[UsableModel]


class _ResponseRequest(TypedDict):
    """Members that are always there."""

    #: A model of the namespace, an agent or a chain.
    model: str
    #: A text, or a list of items.
    input: Any


class ResponseRequest(_ResponseRequest, total=False):
    """A request for a response. It may have more members of OpenAI's interface."""

    #: Whether the response arrives as events.
    stream: bool | None
    #: Whether the response is made also if its client goes away.
    background: bool | None
    #: Whether it can be read later.
    store: bool | None
    #: The response that this one goes on from.
    previous_response_id: str | None


class ModelResponse(TypedDict):
    """A response: the output of a model as items."""

    #: `resp_` and the id of the job.
    id: str
    object: str
    #: `queued`, `in_progress`, `completed`, `incomplete`, `failed` or `cancelled`.
    status: str
    #: The model as the request names it.
    model: str
    #: Messages, tool calls and reasoning, in the order in which the model wrote them.
    output: list[dict[str, Any]]


class DeletedResponse(TypedDict):
    """A response that was deleted."""

    id: str
    object: str
    deleted: bool


class InputItems(TypedDict):
    """The items that a response was asked with."""

    object: str
    data: list[dict[str, Any]]


class ApiErrorError(TypedDict):
    """An object."""

    #: For people.
    message: str
    #: A class of errors, such as `invalid_request_error`.
    type: str
    #: The member of the request that is refused.
    param: str | None
    #: What programs compare with, such as `model_not_found`.
    code: str | None


class ApiError(TypedDict):
    """Why a request below `/v1/` was refused, in OpenAI's form. The header `Atlas-Error-Code` has our code where there is one."""

    #: What is wrong.
    error: ApiErrorError


class _ProtectedResource(TypedDict):
    """Members that are always there."""

    #: the address of the server
    resource: str
    #: the addresses of the issuers
    authorization_servers: list[str]


class ProtectedResource(_ProtectedResource, total=False):
    """An MCP server and the issuers of tokens for it."""

    #: how a token is sent
    bearer_methods_supported: list[str]
    #: the client of `atlasctl login` at each issuer that has one
    atlasctl_clients: dict[str, str]


class McpServers(TypedDict):
    """The registry document of MCP."""

    #: one for each agent
    servers: list[dict[str, Any]]


class TraceEvalResults(TypedDict):
    """An object."""

    #: the check
    name: str
    #: whether it passed
    passed: bool
    #: what passes
    expected: Any
    #: the value of the output
    actual: Any
    #: why it did not pass
    message: str


class _Trace(TypedDict):
    """Members that are always there."""

    #: the id of the job or of the run
    trace_id: str
    #: the job; of a run, the job that it carries, or empty
    job_id: str
    #: the agent; of a run, the chain
    agent_name: str
    #: the status; that of a job is `completed` or `failed`
    status: str
    #: results of the checks in the agent's eval.yaml
    eval_results: list[TraceEvalResults]
    #: the job's metadata without internal members
    metadata: dict[str, Any]


class Trace(_Trace, total=False):
    """What a completed or failed job did, or a run of a chain."""

    #: start-up of the agent; 0 in a used slot
    warmup_ms: float
    #: how long the agent ran
    execution_ms: float
    #: Unix seconds; 0 if it did not start
    started_at: float
    #: Unix seconds
    completed_at: float
    #: tokens sent to models
    input_tokens: int
    #: tokens that models generated
    output_tokens: int
    #: their sum
    total_tokens: int
    #: the model that was called last; empty if none was
    model: str
    #: cost of the tokens, six decimals
    estimated_cost_usd: float
    #: the job that spawned it, or the run whose step it is
    parent_trace_id: str
    #: the chain whose step it is
    chain_name: str
    #: its position in the chain from 0; -1 outside a chain
    step_index: int
    #: of a run: why it failed
    error: str
    #: of a run: the step that failed, from 0; -1 if none did
    failed_at: int
    #: of a run: the traces of the jobs of its steps that have ended
    steps: list[Trace]


class Skill(TypedDict):
    """One skill."""

    #: its name
    name: str
    #: its version
    version: str
    #: what it does
    description: str
    #: input schema, a JSON Schema
    input_schema: dict[str, Any]
    #: output schema, a JSON Schema
    output_schema: dict[str, Any]


class LeftPermissions(TypedDict):
    """What policies leave the agent of a job."""

    #: the permissions of its contract, lowered by policies; empty if its version is not registered any more
    permissions: dict[str, Any]
    #: the policies that count in the namespace
    policies: list[str]


class _PolicyQuestion(TypedDict):
    """Members that are always there."""

    #: the agent
    agent: str


class PolicyQuestion(_PolicyQuestion, total=False):
    """An operation on a registered agent."""

    #: a requirement such as `^1.2.0`; defaults to the latest
    version: str | None
    #: what is done; defaults to `submit`
    operation: str | None
    #: the input of the job; defaults to an empty object
    input: Any
    #: the priority of the job
    priority: int


class PolicyAnswerDecisions(TypedDict):
    """An object."""

    #: the policy
    policy: str
    #: the rule that decided; null if none did
    rule: str | None
    #: whether it does not deny
    allowed: bool
    #: what it decided
    effect: str
    #: why, for people
    why: str | None


class PolicyAnswer(TypedDict):
    """What policies decide."""

    #: whether no policy denies it
    allowed: bool
    #: what happens to it: `ask` if it waits for an approval
    effect: str
    #: what is done
    operation: str
    #: who asks
    principal: str
    #: the agent
    agent: str
    #: the version
    version: str
    #: what each policy of the namespace decides, by name
    decisions: list[PolicyAnswerDecisions]
    #: the permissions of the contract, lowered by policies
    permissions: dict[str, Any]
    #: the policies that count in the namespace
    policies: list[str]


class Orchestrator(TypedDict):
    """The selected orchestrator."""

    #: its name; `DefaultOrchestrator` is the one that allows all jobs
    name: str
    #: whether it is the default one
    type: str


class OrchestratorName(TypedDict, total=False):
    """The orchestrator to select. Unknown members are ignored with a header `Warning` beside a name, and refused without one."""

    #: the name of an agent of the type `orchestrator`; without a name, the default one is selected
    name: str | None


class SelectedOrchestrator(TypedDict):
    """What was selected."""

    #: its name
    orchestrator: str


class SkillTest(TypedDict, total=False):
    """A call of a skill."""

    #: its input; defaults to an empty object
    input: dict[str, Any]


class SkillTested(TypedDict):
    """How a call of a skill ended."""

    #: what it returned; null if it failed
    output: Any
    #: why it failed, or empty
    error: str
    #: true if the input does not fit the schema, and the skill was not called
    refused: bool


#: A security policy.
Policy = dict[str, Any]


#: An OpenAPI document.
Document = dict[str, Any]


class Member(TypedDict):
    """One controller of the cluster."""

    #: its number
    id: int
    #: its name
    name: str
    #: role
    role: str
    #: whether it answers
    reachable: bool
    #: its term
    term: int | None
    #: the end of its log
    last_index: int | None
    #: last applied log index
    applied: int | None
    #: last log index that the leader knows of
    matched: int | None
    #: milliseconds since the last contact
    heartbeat_ms: int | None
    #: 99th percentile of fsync
    fsync_p99_ms: float | None
    #: time of the last complete backup that it sent
    backup_at: float | None
    #: when its certificate should be replaced; null without TLS
    certificate_due_at: float | None
    #: when its certificate ends; null without TLS
    certificate_ends_at: float | None
    #: whether its disk is nearly full
    short_of_space: bool | None
    #: highest supported feature level
    level: int | None
    #: its program's version
    version: str | None
    #: where peers reach it
    peer: str
    #: where workers reach it
    worker: str
    #: where clients reach it
    http: str


class ClusterDisk(TypedDict):
    """An object."""

    room: str
    free_bytes: int


class ClusterQuorum(TypedDict):
    """An object."""

    voters: int
    reachable: int


class Cluster(TypedDict):
    """The cluster as one controller sees it."""

    #: 32 hexadecimal digits
    cluster_id: str
    #: how it was started
    mode: str
    #: version of the program
    version: str
    #: active feature level
    level: int
    #: highest supported feature level
    level_known: int
    #: name of the leader
    leader: str | None
    #: the term
    term: int
    #: last committed log index
    commit: int
    #: last applied log index
    applied: int
    #: whether a membership change is in progress
    changing: bool
    #: why its wall clock is not trusted
    clock_doubt: str | None
    #: its disk
    disk: ClusterDisk
    #: last log entry at which all digests agreed
    agreed_at: int
    #: voters and reachable voters
    quorum: ClusterQuorum
    #: the members
    members: list[Member]


class TokenRequest1(TypedDict, total=False):
    """An object."""

    #: defaults to `controller`
    kind: str | None
    #: for workers only
    node: None
    #: lifetime in seconds; defaults to 600
    expires_s: int | None


class _TokenRequest2(TypedDict):
    """Members that are always there."""

    #: a node joins, which needs a cluster with TLS
    kind: str
    #: the name of the node
    node: str


class TokenRequest2(_TokenRequest2, total=False):
    """An object."""

    #: lifetime in seconds; defaults to 600
    expires_s: int | None


#: Request for a join token: of a controller, or of a node.
TokenRequest = Union["TokenRequest1", "TokenRequest2"]


class Token(TypedDict):
    """A join token."""

    #: the secret
    token: str
    #: what can join with it
    kind: str
    #: lifetime in seconds
    expires_s: int
    #: Unix seconds
    expires_at: float


class RevokeRequest(TypedDict):
    """Token to revoke."""

    #: the token
    token: str


class Revoked(TypedDict):
    """The token is revoked."""

    #: true
    revoked: bool


class TransferRequest(TypedDict, total=False):
    """Request for a leadership transfer."""

    #: number or name of the new leader; defaults to the most up-to-date member
    to: str | None


class Transferred(TypedDict):
    """The new leader."""

    #: its name
    leader: str
    #: the term
    term: int


class ObjectKind(TypedDict):
    """A kind of object."""

    #: its word
    kind: str
    #: what its objects are for
    description: str
    #: where its objects are; those of the cluster are in the namespace `default`
    scope: str
    #: the right that a change needs
    right: str
    #: the version of its format
    spec_version: int
    #: JSON Schema of the spec
    schema: dict[str, Any]


class _ObjectRequest(TypedDict):
    """Members that are always there."""

    #: the document, as its kind describes it; fractions become text
    spec: dict[str, Any]


class ObjectRequest(_ObjectRequest, total=False):
    """What an object should be."""

    #: its labels; all of them, so a missing one is removed
    labels: dict[str, str]


class _SecretRequest(TypedDict):
    """Members that are always there."""

    #: the value
    value: str


class SecretRequest(_SecretRequest, total=False):
    """The value of a secret."""

    #: refuse to make a secret that does not exist
    rotate: bool


class _LoginRequest(TypedDict):
    """Members that are always there."""

    #: `code` exchanges what the browser brought, `device` begins a login on another device, `poll` asks whether the person is done there
    step: str


class LoginRequest(_LoginRequest, total=False):
    """One step of a login."""

    #: with `code`: the code of the issuer
    code: str
    #: with `code`: the verifier of PKCE
    verifier: str
    #: with `code`: the state of the login
    state: str
    #: with `code`: where the browser was sent to
    redirect_uri: str
    #: with `poll`: the code of the answer to `device`
    device_code: str


class _LoginProgress(TypedDict):
    """Members that are always there."""

    #: what has happened
    status: str


class LoginProgress(_LoginProgress, total=False):
    """How far a login is."""

    #: for the next `poll`
    device_code: str
    #: what the person types on the other device
    user_code: str
    #: where the person types it
    verification_uri: str
    #: seconds before the first `poll`, and between two of them
    interval: int
    #: seconds by which the interval has become longer
    longer: int
    #: when the code or the access token expires, seconds since the Unix epoch; null if the token does not
    expires_at: int | None
    #: whether the access token is renewed without a person
    renewable: bool


class _ServerLoginRequest(TypedDict):
    """Members that are always there."""

    #: `begin` finds the issuer and registers a client there, `code` exchanges what the browser brought
    step: str


class ServerLoginRequest(_ServerLoginRequest, total=False):
    """One step of a login at an MCP server."""

    #: where the browser is sent to
    redirect_uri: str
    #: with `begin`: a client that is registered at the issuer; without one, Atlas registers itself
    client_id: str | None
    #: with `begin`: the secret of that client, as `secret://NAME`
    client_secret: str | None
    #: with `begin`: instead of the scopes that the server names
    scopes: list[str] | None
    #: with `code`: the code of the issuer
    code: str
    #: with `code`: the verifier of PKCE
    verifier: str
    #: with `code`: the state of the login
    state: str


class _ServerLoginProgress(TypedDict):
    """Members that are always there."""

    #: what has happened
    status: str


class ServerLoginProgress(_ServerLoginProgress, total=False):
    """How far a login at an MCP server is."""

    #: who gives the tokens
    issuer: str
    #: the login page, without its parameters
    authorize_url: str
    #: the client that asks for tokens
    client_id: str
    #: what the client asks for
    scopes: list[str]
    #: what the tokens are for
    resource: str
    #: whether the answer of the login page names the issuer, so that one without it must be refused
    names_issuer: bool
    #: when the access token expires, seconds since the Unix epoch; null if it does not
    expires_at: int | None
    #: whether the access token is renewed without a person
    renewable: bool


class ObjectMetadata(TypedDict):
    """An object."""

    name: str
    namespace: str
    labels: dict[str, str]
    uid: int
    revision: int
    created_at: float
    updated_at: float
    updated_by: str


class Object(TypedDict):
    """An object."""

    #: its kind
    kind: str
    #: name, namespace, labels, uid, revision, created_at, updated_at, updated_by
    metadata: ObjectMetadata
    #: what its author wants
    spec: dict[str, Any]
    #: what the cluster says about it
    status: dict[str, Any] | None


class Objects(TypedDict):
    """A page of objects."""

    #: by name
    objects: list[Object]
    #: `after` for the next page; null on the last one
    next: str | None


class TriggerRequest(TypedDict, total=False):
    """A trigger, or what changes of one. Numbers may be text, and the members may be under `trigger`."""

    #: only for a new trigger; generated without it
    id: str
    #: a name for people
    name: str
    #: only for a new trigger
    trigger_type: str
    #: defaults to true
    enabled: bool
    #: the agent that it runs
    agent_name: str
    #: the chain that it runs, instead of an agent
    chain_name: str
    #: the input of each job
    input_data: dict[str, Any]
    #: the priority of each job
    priority: int
    #: metadata of each job
    metadata: dict[str, Any]
    #: five fields, for the type `cron`
    cron_expr: str
    #: more than 0, for the type `interval`
    interval_seconds: float
    #: Unix seconds, for the type `one_shot`
    fire_at: float
    #: signs the calls of a webhook; `***` leaves it as it is
    webhook_secret: str
    #: of `cron_expr`, such as `Europe/Rome`; UTC without it
    time_zone: str
    #: what a firing does while the last job has not ended
    overlap: str
    #: how many missed times are made up for
    catch_up: int
    #: each firing is delayed by less than this
    jitter_seconds: int
    #: the secret that signs calls, `secret://NAME`
    hmac: str | None
    #: how the sender signs its calls
    scheme: str
    #: how old the signed time stamp of a call may be; with 0, the scheme `atlas` asks for none, and the others that sign one accept it for 5 minutes
    replay_window_seconds: int
    #: members of the input, and the paths of their values in a call
    map: dict[str, str]


class TriggerFirings(TypedDict):
    """An object."""

    fired_at: float
    tick: float
    by: str
    job_id: str | None


class _Trigger(TypedDict):
    """Members that are always there."""

    #: its id
    id: str
    #: a name for people
    name: str
    #: what makes it fire
    trigger_type: str
    #: whether it fires by itself, or when it is called
    enabled: bool
    #: the agent that it runs
    agent_name: str
    #: the chain that it runs
    chain_name: str
    #: the input of each job
    input_data: dict[str, Any]
    #: the priority of each job
    priority: int
    #: metadata of each job
    metadata: dict[str, Any]
    #: when it fires
    cron_expr: str
    #: how often it fires
    interval_seconds: float
    #: Unix seconds
    fire_at: float
    #: whether it has a secret
    webhook_secret: str
    #: Unix seconds; 0 if it has not fired
    last_fired: float
    #: Unix seconds; 0 if it does not fire by itself
    next_fire: float
    #: how often it has fired
    fire_count: int
    #: the job of the last firing
    last_job_id: str
    #: Unix seconds
    created_at: float


class Trigger(_Trigger, total=False):
    """A trigger. The members from `namespace` on are part of the full view."""

    #: its namespace
    namespace: str
    #: the event of its last change
    revision: int
    #: of `cron_expr`, such as `Europe/Rome`; UTC without it
    time_zone: str
    #: what a firing does while the last job has not ended
    overlap: str
    #: how many missed times are made up for
    catch_up: int
    #: each firing is delayed by less than this
    jitter_seconds: int
    #: the secret that signs calls, `secret://NAME`
    hmac: str | None
    #: how the sender signs its calls
    scheme: str
    #: how old the signed time stamp of a call may be; with 0, the scheme `atlas` asks for none, and the others that sign one accept it for 5 minutes
    replay_window_seconds: int
    #: members of the input, and the paths of their values in a call
    map: dict[str, str]
    #: times without a firing
    missed: int
    #: why it did not fire when it was due
    error: str
    #: parts of `cron_expr` that never match, or match more than they seem to
    warnings: list[str]
    #: the last ten, newest first
    firings: list[TriggerFirings]


class Fired(TypedDict):
    """The job of a firing."""

    #: its id
    job_id: str


class NextFirings(TypedDict):
    """The next times of a trigger."""

    #: Unix seconds, ascending; empty if it does not fire by itself
    next: list[float]
    #: the same times in the time zone of the trigger
    local: list[str]


class Deliveries(TypedDict):
    """Calls of a webhook that reached this controller since it started, newest first."""

    #: the calls
    deliveries: list[Delivery]


Delivery = TypedDict("Delivery", {"at": "float", "from": "str", "program": "str", "delivery": "str", "outcome": "str", "job_id": "str", "code": "str", "error": "str"})


class Greeted(TypedDict, total=False):
    """The answer to a call that starts nothing: the `challenge` of Slack, or `pong` for the `ping` of GitHub."""

    #: what was sent
    challenge: str
    #: true
    pong: bool


class TriggerTest(TypedDict, total=False):
    """A call to try out."""

    #: the body of the call
    body: dict[str, Any] | None


class TriggerTested(TypedDict):
    """What a call would start."""

    #: the agent
    agent_name: str
    #: the chain, instead of an agent
    chain_name: str
    #: its version; null if there is none
    agent_version: str | None
    #: the input
    input_data: dict[str, Any]
    #: the priority
    priority: int
    #: the metadata
    metadata: dict[str, Any]
    #: whether the job would run
    accepted: bool
    #: why it would fail
    error: str
    #: whether calls need a signature
    signed: bool
    #: the header that has it
    signature: str
    #: whether calls are accepted now
    enabled: bool


_BackfillRequest = TypedDict("_BackfillRequest", {"from": "float", "to": "float"})


class BackfillRequest(_BackfillRequest, total=False):
    """Times to make up for."""

    #: only list the times
    dry_run: bool


class BackfilledTimes(TypedDict):
    """An object."""

    time: float
    local: str
    job_id: str | None


class Backfilled(TypedDict):
    """The times of a backfill."""

    #: ascending, at most 100
    times: list[BackfilledTimes]
    #: whether the jobs were only listed
    dry_run: bool


#: The body of a call: members of the input.
Call = dict[str, Any]


class Receipt(TypedDict):
    """The receipt of a job."""

    #: the job
    job: str
    #: the hash of the last entry, which stands for all of them
    head: str
    #: the entries as they are hashed: JSON with `entry`, `previous`, `kind` (`job`, `submission`, `agent`, `policy`, `route`, `attempt`, `question`, `step`, `steps`, `end`) and what is known; and as the last member the SHA-256 of the entry without it, `hash`
    lines: list[str]


class AuditPageRecords(TypedDict):
    """An object."""

    #: the controller that has it
    member: str
    #: the record as it is written: JSON with `number`, `controller`, `previous`, `at_ms`, `principal`, `decision` (`allow`, `failed`, `deny`, `dropped`) and, where there is something to say, `on_behalf_of`, `namespace`, `door`, `verb`, `object`, `code`, `request_id`, `count`; and as the last member the SHA-256 of the record without it, `hash`
    line: str


class AuditPageMembers(TypedDict):
    """An object."""

    #: the controller
    member: str
    #: the number of its newest record
    end: int


class AuditPageMissing(TypedDict):
    """An object."""

    #: the controller
    member: str
    #: why
    reason: str


class AuditPage(TypedDict):
    """Records of the audit."""

    #: the records, by time
    records: list[AuditPageRecords]
    #: where the next page begins, with a position for each controller
    cursor: str
    #: whether there is a next page
    more: bool
    #: the controllers that answered
    members: list[AuditPageMembers]
    #: the controllers that did not answer: their records are not here, and the next page with this cursor has them once they answer
    missing: list[AuditPageMissing]


class _WhoamiGrants(TypedDict):
    """Members that are always there."""

    #: the rights
    rights: list[str]


class WhoamiGrants(_WhoamiGrants, total=False):
    """An object."""

    #: where; absent for the whole cluster
    namespace: str


class _Whoami(TypedDict):
    """Members that are always there."""

    #: the principal
    principal: str
    #: `false` while authentication is off: everybody may do everything
    authenticated: bool
    #: what it is granted
    grants: list[WhoamiGrants]


class Whoami(_Whoami, total=False):
    """Who sends the request."""

    #: what else is known of it: texts by the names of attributes, which rules of document bases compare
    attributes: dict[str, list[str]]


class _AccessTokenRequest(TypedDict):
    """Members that are always there."""

    #: letters, digits and hyphens
    name: str


class AccessTokenRequest(_AccessTokenRequest, total=False):
    """Request for a token."""

    #: who shows it; defaults to the name
    principal: str | None
    #: what it is for
    description: str | None
    #: validity in seconds; null for ever; defaults to 7776000, 90 days
    valid_for_s: int | None


class AccessToken(TypedDict):
    """A new token."""

    #: its text, which is shown this once
    token: str
    object: Object
