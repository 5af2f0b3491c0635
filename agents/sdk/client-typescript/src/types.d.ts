// Generated from the table of operations by `cargo xtask fix`; do not edit.
// Objects keep members that are not listed here.

/** Why a request was refused, in the form of Atlas for Python. The header `Atlas-Error-Code` contains the code. */
export interface Error {
  /** one line, for people */
  error: string;
}

/** The same as a problem document (RFC 9457): for clients that accept `application/problem+json`, and always on paths that Atlas for Python does not have. */
export interface Problem {
  /** path of the code's page: `/errors/` and the code */
  type: string;
  /** the title of the code's page */
  title: string;
  /** the HTTP status */
  status: number;
  /** `E` and four digits */
  code: string;
  /** one line, for people */
  detail: string;
  /** violations of an input or a contract */
  errors?: Array<Violation>;
  /** what to try */
  hint?: string;
  /** seconds until a repeat may succeed */
  retry_after_s?: number;
}

/** One violation in an input or a contract. */
export interface Violation {
  /** location, a JSON pointer */
  pointer: string;
  /** violated keyword of JSON Schema */
  rule: string;
  /** description, possibly with a suggestion */
  message: string;
}

/** The id of a job. */
export interface Id {
  /** `job-` and sixteen hexadecimal digits */
  id: string;
}

/** A job to submit. Unknown members are ignored with a header `Warning`; those that look like a member that Atlas for Python does not have are refused. */
export interface Submission {
  /** the agent's name */
  agent: string;
  /** any JSON; defaults to `{}` */
  input?: unknown;
  /** higher runs first; fractions are cut off, and text must be digits */
  priority?: number | string | boolean;
  /** a requirement such as `^1.2.0`; defaults to the latest version */
  version?: string | null;
  /** at most 64, of at most 1024 bytes each */
  labels?: Record<string, string> | null;
  /** execution timeout in seconds; defaults to the contract's */
  timeout?: number | null;
  /** earliest start, Unix seconds */
  at?: number | null;
  /** most that its model calls may cost, US dollars; as text, such as `"0.01"`, it is exact */
  budget_usd?: number | string | null;
  /** what happens to its questions to people: `fail`, `wait`, or `answer:` and a text; defaults to `fail` */
  questions?: string | null;
  /** whether it waits or fails while no registered node has what it needs; defaults to what its namespace says, or else `fail` */
  unsatisfiable?: "wait" | "fail" | (string & {}) | null;
  /** what it is about: one line that people see in lists */
  title?: string | null;
  /** the conversation that it continues or begins; `temp` is never kept */
  conversation?: string | null;
}

/** One job of many: a [Submission](#submission) with its own key, outside conversations. Unknown members are refused. */
export interface BatchJob {
  /** the agent's name */
  agent: string;
  /** any JSON; defaults to `{}` */
  input?: unknown;
  /** higher runs first; fractions are cut off, and text must be digits */
  priority?: number | string | boolean;
  /** a requirement such as `^1.2.0`; defaults to the latest version */
  version?: string | null;
  /** at most 64, of at most 1024 bytes each */
  labels?: Record<string, string> | null;
  /** execution timeout in seconds; defaults to the contract's */
  timeout?: number | null;
  /** earliest start, Unix seconds */
  at?: number | null;
  /** most that its model calls may cost, US dollars; as text, such as `"0.01"`, it is exact */
  budget_usd?: number | string | null;
  /** what happens to its questions to people: `fail`, `wait`, or `answer:` and a text; defaults to `fail` */
  questions?: string | null;
  /** whether it waits or fails while no registered node has what it needs; defaults to what its namespace says, or else `fail` */
  unsatisfiable?: "wait" | "fail" | (string & {}) | null;
  /** what it is about: one line that people see in lists */
  title?: string | null;
  /** a repeat with the same key gets the first answer; must not begin with `~` */
  idempotency_key?: string | null;
}

/** Jobs to submit, queued in this order. The body may have eight times the size of a single submission, each job the size of one. */
export interface Batch {
  /** the jobs */
  jobs: Array<BatchJob>;
}

/** Result for one job: one of these members. */
export interface BatchResult {
  /** the job is queued, possibly by an earlier request with the same key */
  id?: string;
  error?: Problem;
}

/** Results for many jobs. */
export interface BatchResults {
  /** number of accepted jobs */
  taken: number;
  /** one for each job, in order */
  results: Array<BatchResult>;
  /** present if refused jobs may be accepted later: send them again after this many seconds */
  retry_after_s?: number;
}

/** One job. */
export interface Job {
  /** `job-` and sixteen hexadecimal digits */
  id: string;
  /** the agent */
  agent_name: string;
  /** the status */
  status: "pending" | "running" | "completed" | "failed" | "cancelled" | (string & {});
  /** the input */
  input_data: unknown;
  /** the output; null if there is none */
  output_data: unknown;
  /** error of a failed job; otherwise empty */
  error: string;
  /** higher runs first */
  priority: number;
  /** Unix seconds */
  created_at: number;
  /** Unix seconds; 0 if it has not started */
  started_at: number;
  /** Unix seconds; 0 if it has not ended */
  completed_at: number;
  /** start time of the agent; 0 in a warm slot */
  warmup_ms: number;
  /** execution time */
  execution_ms: number;
  /** number of the retry within its family; 0 for the first job */
  retry_count: number;
  /** the first job of its family, if it is a retry */
  original_job_id: string;
  /** metadata of triggers, chains and attempts */
  metadata: Record<string, unknown>;
  /** reason for the status, one word; with `view=full` */
  reason?: "" | "queued" | "backoff" | "lost" | "in_doubt" | "running" | "preparing" | "cancelling" | "delayed" | "parked" | "waiting" | "routing" | "approval" | "no_node" | "no_room" | "unsatisfiable" | "concurrency" | "namespace_limit" | "key_limit" | "rate_limit" | "circuit" | "budget" | (string & {});
  /** what it is waiting for, a sentence; with `view=full` */
  waiting_for?: string;
  /** what it is about, a sentence; with `view=full`, if it has a title */
  title?: string;
  /** namespace; with `view=full` */
  namespace?: string;
  /** version of the agent; with `view=full` */
  agent_version?: string;
  /** digest of that version's package; with `view=full` */
  digest?: string;
  /** number of the event of its submission; with `view=full` */
  log?: number;
  /** number of the latest attempt; with `view=full` */
  attempt?: number;
  /** attempts that ended because the job was parked, which do not count; with `view=full`, if there were any */
  parks?: number;
  /** maximum number of attempts; with `view=full` */
  max_attempts?: number;
  /** the node; with `view=full` */
  node?: string;
  /** the node's epoch; with `view=full`, while it has a lease */
  epoch?: number;
  /** the lease's token; with `view=full`, while it has a lease */
  fencing_token?: number;
  /** the run that carries it, or carried it; with `view=full` */
  run?: string;
  /** what the orchestrator decided about it: `action`, `decider`, `selection` (its revision), `asked_agent`, and `rule` if a rule decided; with `view=full`, unless the default orchestrator allowed it */
  route?: {
    /** `allow`, `redirect`, `reject` or `undecided` */
    action: string;
    /** what decided */
    decider: string;
    /** the revision of the selection */
    selection: number;
    /** the agent that the job was submitted for */
    asked_agent: string;
    /** the rule that decided, if one did */
    rule?: string;
  };
  /** whether a warm slot ran it; with `view=full` */
  warm?: boolean;
  /** kind of failure; with `view=full` */
  failure_kind?: "" | "agent" | "no_agent" | "input_invalid" | "output_invalid" | "startup" | "timeout" | "queue_timeout" | "unsatisfiable" | "rejected" | "dependency" | "lease_lost" | "internal" | (string & {});
  /** code of the error, with a page of its own; empty unless the job failed; with `view=full` */
  error_code?: string;
  /** the job that spawned it; with `view=full` */
  parent?: string;
  /** number of spawning jobs above it; with `view=full` */
  depth?: number;
  /** the job that retries it; with `view=full` */
  retried_by?: string;
  /** the job whose first steps it began with; with `view=full`, if there is one */
  forked_from?: string;
  /** how many steps it began with; with `view=full`, if it is a fork */
  fork_steps?: number;
  /** the model or tier that it calls instead of the one in its contract; with `view=full`, if it is a fork with another one */
  fork_model?: string;
  /** who submitted it; with `view=full` */
  principal?: string;
  /** interface it came through; with `view=full` */
  door?: "http" | "worker" | "duty" | "peer" | "mcp" | "local" | (string & {});
  /** the idempotency key; with `view=full` */
  request_id?: string;
  /** its labels; with `view=full` */
  labels?: Record<string, string>;
  /** time in the queue; with `view=full` */
  queue_ms?: number;
  /** time from submission to end; with `view=full` */
  total_ms?: number;
  /** tokens that its recorded steps sent to models, in all attempts; with `view=full`, if there were any */
  tokens_input?: number;
  /** tokens that models answered; with `view=full`, if there were any */
  tokens_output?: number;
  /** price of its recorded steps in US dollars; with `view=full`, if there were any */
  cost_usd?: number;
  /** most that its model calls may cost in US dollars; with `view=full`, if it has a budget */
  budget_usd?: number;
  /** it waits while no registered node has what it needs; with `view=full`, unless it fails then */
  unsatisfiable?: "wait" | (string & {});
  /** the rule for its questions; with `view=full`, unless it is `fail` */
  questions?: string;
  /** its open questions and those of the jobs below it; with `view=full`, if there are any */
  needs_answer?: Array<string>;
  /** the approvals that policies demand: `policy`, `rule`, `question`, the `agent` that may run with it (another one than that of the job if an orchestrator redirected the job since), and `approved_by`, which is empty while nobody has approved; with `view=full`, if there are any */
  approvals?: Array<{
    policy: string;
    rule: string;
    question: string;
    /** the agent that may run with it */
    agent: string;
    /** empty while nobody has approved */
    approved_by: string;
  }>;
  /** those of `needs_answer` that policies ask: `question`, `job`, and `who` may answer, in words; with `view=full`, if there are any */
  needs_approval?: Array<{
    question: string;
    job: string;
    /** who may answer, in words */
    who: string;
  }>;
  /** its price together with that of the jobs below it in the state; with `view=full`, if it has children and any of them cost something */
  tree_cost_usd?: number;
}

/** A job as in [Job](#job) with `view=full`, and the jobs that it spawned. */
export interface JobTree {
  /** `job-` and sixteen hexadecimal digits */
  id: string;
  /** the jobs that it spawned, oldest first; at most 1000 in total */
  children: Array<JobTree>;
  /** the jobs that it was retried as, oldest first, if there are any; a retry of a child is another child */
  retries?: Array<JobTree>;
}

/** Why a job waits. A job that has started has an empty `starts_if` and no estimate. */
export interface Explained {
  /** `job-` and sixteen hexadecimal digits */
  id: string;
  /** status of the job */
  status: string;
  /** reason for the status, one word, as in [Job](#job) */
  reason: string;
  /** what it is waiting for, a sentence */
  waiting_for: string;
  /** when it was submitted, Unix seconds */
  since: number;
  /** its position among the waiting jobs with the same demand, from 1; absent after 1000, or if it is not in the queue */
  position?: number;
  /** number of waiting jobs with the same demand; absent if it is not in the queue */
  class_jobs?: number;
  estimate?: Estimate;
  /** ways to start it, the least effort first; at most 5 */
  starts_if: Array<Counterfactual>;
  lacking?: Lacking;
}

/** What a job needs that no node has, if it failed for that: of the node that lacks the least. */
export interface Lacking {
  /** the node */
  node: string;
  /** what it lacks, in words */
  short: Array<string>;
}

/** When a waiting job will start if nothing but time passes, from the durations of the latest jobs of its agent. */
export interface Estimate {
  /** whether there is an estimate */
  known: boolean;
  /** seconds until it starts; median */
  seconds?: number;
  /** with a probability of 90 % it takes longer */
  seconds_low?: number;
  /** with a probability of 90 % it takes less */
  seconds_high?: number;
  /** why there is no estimate */
  says?: string;
}

/** Changes that together start a waiting job; the planner confirmed it. */
export interface Counterfactual {
  /** the changes as a sentence, without the `if` */
  says: string;
  /** the changes, each with a `kind`: `time` (`until`), `wake`, `allow`, `resolve`, `end` (`jobs`, and the number of `other_jobs` of other namespaces), `others_wait`, `priority` (`at_least`), `limit` (`at_least`), `namespace_limit` (`at_least`), `key_limit` (`at_least`), `rate` (`until`), `resume` (`agent`, `version`), `probe` (`until`), `open` (`node`, `now`), `label` (`node`, `labels`), `room` (`node` and the additional free amounts), `register` (what another node must have), `ask` (the largest amount that the contract may state) */
  changes: Array<Record<string, unknown>>;
}

/** A recorded step of a job. */
export interface Step {
  /** its number, from 0 */
  step: number;
  /** what it records */
  kind: "start" | "model" | "tools" | "child" | "sleep" | "question" | "intent" | "effect" | "code" | (string & {});
  /** hash of what was asked, 32 hexadecimal digits */
  key: string;
  /** how long it took */
  duration_ms: number;
  /** tokens sent to a model */
  tokens_input: number;
  /** tokens that a model answered */
  tokens_output: number;
  /** its price in dollars */
  cost_usd: number;
  /** size of the outcome */
  outcome_bytes: number;
  /** what came of it; null if a long list has no room for it */
  outcome: unknown;
}

/** Result of an erasure. */
export interface Erased {
  /** always true; what cannot be erased is an error */
  erased: boolean;
}

/** Result of a cancellation. */
export interface Cancelled {
  /** false if there was nothing to cancel */
  cancelled: boolean;
}

/** Resolution of a job in doubt: exactly one member. */
export interface Decision {
  /** run the job again */
  run_again?: boolean;
  /** complete it with this output */
  output?: unknown;
  /** fail it with this error */
  error?: string;
}

/** How a new job begins and goes on. */
export interface Fork {
  /** how many recorded steps it begins with, from 1 to all of them */
  steps: number;
  /** the model or tier that it calls after them; defaults to that of the other job */
  model?: string | null;
  /** the version of the agent that goes on, or a requirement; defaults to that of the other job */
  version?: string | null;
  /** values that are set in the state of a graph */
  set?: {
    /** the super-step whose nodes see them first */
    before: number;
    /** the values by their keys */
    values: Record<string, unknown>;
  } | null;
}

/** Result of a resolution. */
export interface Resolved {
  /** the job */
  id: string;
  /** its status */
  status: "pending" | "running" | "completed" | "failed" | "cancelled" | (string & {});
}

/** A message to a job. */
export interface Message {
  /** the message, any JSON of at most 64 KiB */
  message: unknown;
  /** the sender's name for it; a job gets a message of one id once */
  id?: string;
  /** the question that it answers, as the job's reason shows it */
  answers?: string;
  /** what it is about: a durable program can wait for the next message of a channel; no control characters */
  channel?: string;
}

/** A question of a job to people. */
export interface Question {
  /** `question-` and sixteen hexadecimal digits */
  id: string;
  /** the job that asks */
  job: string;
  /** the step of the job's journal that asks; 0 if a policy asks */
  step: number;
  /** the order in which questions were asked */
  number: number;
  /** what kind of answer it has */
  kind: "approve" | "choose" | "confirm" | "text" | "form" | (string & {});
  /** the question in words */
  prompt: string;
  /** what can be chosen */
  options: Array<string>;
  /** the answer is a list of options */
  many: boolean;
  /** another text than the options is an answer */
  other: boolean;
  /** of a form: the JSON Schema of the answer */
  schema?: unknown;
  /** who may answer; empty for everybody with the right */
  answerers: Array<string>;
  /** whether it is open, or how it ended */
  status: "open" | "answered" | "defaulted" | "expired" | "cancelled" | (string & {});
  /** Unix seconds */
  asked_at: number;
  /** when its time passes, Unix seconds */
  deadline: number | null;
  /** the answer when its time has passed */
  default?: unknown;
  /** the answer; null without one */
  answer: unknown;
  /** who answered */
  answered_by: string;
  /** Unix seconds */
  ended_at: number | null;
  /** if a policy asks: `policy`, `rule`, the `role` that may answer (empty for everybody with the right), `self`: whether who submitted the job may answer, and `who` may answer, in words */
  approval?: Record<string, unknown>;
}

/** The answer to a question: exactly one member. */
export interface QuestionAnswer {
  /** a text, a list of strings, `yes` or `no`, or a value that satisfies the schema, as the question asks; at most 16 KiB */
  answer?: unknown;
  /** the answer in words: several options with commas between them, a form as JSON */
  text?: string;
}

/** Result of a message. */
export interface Sent {
  /** the message */
  id: string;
  /** the job had it before */
  repeated: boolean;
}

/** One change of a job; a frame of the event streams. */
export interface Change {
  /** the job */
  job_id: string;
  /** its agent */
  agent_name: string;
  /** the status before */
  old_status: "pending" | "running" | "completed" | "failed" | "cancelled" | (string & {});
  /** the status after */
  new_status: "pending" | "running" | "completed" | "failed" | "cancelled" | (string & {});
  /** Unix seconds */
  timestamp: number;
  /** kind of change, one word; with `view=full` */
  change?: "submitted" | "granted" | "carried" | "started" | "lost" | "woken" | "resolved" | "parked" | "routed" | "cancelling" | "ended" | (string & {});
  job: Job;
}

/** One event. A job's has the members of `Change` as well. */
export interface ClusterEvent {
  /** its number, without gaps over all kinds */
  event: number;
  /** what it is about */
  kind: "job" | "agent" | "node" | "object" | "run" | "cluster" | (string & {});
  /** a job's or a run's id, the name of an agent, a node or an object; empty for the cluster */
  name: string;
  /** Unix seconds */
  timestamp: number;
  /** what happened, a word: registered, deprecated, failing, retired or deleted; ready, down, cordoned, draining, failing, contested (another worker asked for its name) or removed; created, changed or deleted; started, step_started, step_ended or ended; configured; or a change of a job */
  change: string;
  job?: Job;
  /** name, version, digest, labels, retired, deprecated, circuit */
  agent?: Record<string, unknown>;
  /** name, epoch, health, cordoned, draining, labels, circuit; null if it was removed */
  node?: Record<string, unknown> | null;
  /** kind, namespace, uid, revision, labels, spec, by; as it was before if it was deleted */
  object?: Record<string, unknown>;
  /** id, chain_name, namespace, status, current_step, total_steps, error */
  run?: Record<string, unknown>;
  /** the configuration that holds from here on */
  config?: Record<string, unknown>;
}

/** One log line or progress step of an attempt. */
export interface Line {
  /** number of the attempt */
  attempt: number;
  /** its number within the attempt */
  number: number;
  /** Unix seconds */
  at: number;
  /** kind */
  kind: "log" | "progress" | (string & {});
  /** the level of a log line */
  level: string;
  /** the text */
  text: string;
}

/** One agent version. Lists have its first four members, and with `view=full` those up to `revision`; alone it has all. */
export interface Agent {
  /** its name */
  name: string;
  /** three numbers */
  version: string;
  /** from its contract */
  description: string;
  /** capabilities */
  capabilities: Array<string>;
  /** what it is; with `view=full` */
  kind?: "agent" | "orchestrator" | (string & {});
  /** how it runs; with `view=full` */
  provider?: "python" | "node" | "exec" | "llm" | "graph" | "normal" | (string & {});
  /** its package; with `view=full` */
  digest?: string;
  /** the package's size; with `view=full` */
  package_bytes?: number;
  /** Unix seconds; with `view=full` */
  registered_at?: number;
  /** whether it is retired; with `view=full` */
  retired?: boolean;
  /** deprecation message; null if not deprecated; with `view=full` */
  deprecated?: string | null;
  /** from its contract; with `view=full` */
  labels?: Record<string, string>;
  /** whether jobs start on it although attempts fail; with `view=full` */
  circuit?: Circuit;
  /** who registered its package; null if that is not known; with `view=full` */
  registered_by?: string | null;
  /** the number of its package, from 1 on; with `view=full` */
  revision?: number;
  /** its packages, that of now first; at most 11; not in lists */
  revisions?: Array<AgentRevision>;
  /** input schema, a JSON Schema; not in lists */
  input_schema?: unknown;
  /** output schema, a JSON Schema; not in lists */
  output_schema?: unknown;
  /** the whole contract, normalised; not in lists */
  contract?: Record<string, unknown>;
}

/** A package that an agent version has or had. */
export interface AgentRevision {
  /** its number, from 1 on */
  revision: number;
  /** the package */
  digest: string;
  /** the package's size */
  package_bytes: number;
  /** Unix seconds */
  registered_at: number;
  /** who registered it; null if that is not known */
  registered_by: string | null;
  /** the revision whose package it has again; null if it is the first with its package */
  copy_of: number | null;
}

/** Rollback of a version. */
export interface RollbackRequest {
  /** the revision to go back to; the one before the package of now by default */
  revision?: number | null;
}

/** Result of a rollback. */
export interface RolledBack {
  /** the agent */
  name: string;
  /** its version */
  version: string;
  /** the package it has now */
  digest: string;
  /** the revision that it went back to */
  from: number;
  /** the number that the package has now */
  revision: number;
}

/** Result of a registration. */
export interface Registered {
  /** the agent or the skill */
  name: string;
  /** its version */
  version: string;
  /** its package */
  digest: string;
  /** false if the same package was already registered */
  changed: boolean;
}

/** Result of a deletion. */
export interface Deleted {
  /** true */
  deleted: boolean;
}

/** Result of a retirement. */
export interface Retired {
  /** true */
  retired: boolean;
}

/** Deprecation of a version. */
export interface DeprecateRequest {
  /** message, at most 1024 bytes */
  message?: string;
  /** false removes the deprecation */
  deprecated?: boolean | null;
}

/** Deprecation of a version. */
export interface Deprecated {
  /** message; null if not deprecated */
  deprecated: string | null;
}

/** Deadline of a drain. */
export interface DrainRequest {
  /** after this many seconds the worker returns its running jobs, which then run elsewhere; needs feature level 4. Without it, all jobs finish */
  deadline_s?: number | null;
}

/** Labels of a node to change, at most 64 at once; needs feature level 4. */
export interface LabelRequest {
  /** labels to set; keys and values have at most 1024 bytes, keys contain no `=` and do not end with `-`. A node has at most 64 labels from operators */
  set?: Record<string, string>;
  /** keys of labels to remove; a label of the worker with the same key becomes effective again */
  remove?: Array<string>;
}

/** One worker. */
export interface Node {
  /** its name */
  id: string;
  /** its incarnation */
  epoch: number;
  /** whether it has a session */
  health: "ready" | "down" | (string & {});
  /** whether it gets no new leases */
  cordoned: boolean;
  /** whether it is being emptied */
  draining: boolean;
  /** Unix seconds by which its worker returns running jobs; null without a deadline */
  drain_ends_at: number | null;
  /** its cores */
  cores: number;
  /** free cores */
  cores_free: number;
  /** its memory */
  memory_bytes: number;
  /** free memory */
  memory_bytes_free: number;
  /** its architecture */
  arch: string;
  /** its GPUs */
  gpus: Array<{
    index: number;
    uuid: string;
    vendor: string;
    model: string;
    memory_bytes: number;
    free_bytes: number;
    mig_profile: string;
    healthy: boolean;
  }>;
  /** its devices */
  devices: Array<string>;
  /** whether jobs' requirements are checked against its hardware */
  hardware_checks: boolean;
  /** maximum number of concurrent jobs that run a process */
  places: number;
  /** free concurrency */
  places_free: number;
  /** maximum number of concurrent jobs of `llm` agents */
  llm_places: number;
  /** free concurrency for `llm` agents */
  llm_places_free: number;
  /** number of leases */
  running: number;
  /** number of warm slots */
  warm: number;
  /** effective labels: those of its worker, overridden by those of operators */
  labels: Record<string, string>;
  /** labels set by operators */
  operator_labels: Record<string, string>;
  /** Unix seconds */
  registered_at: number;
  circuit: Circuit;
  /** the latest worker that was refused because it asked for this name while the node's own worker had it: its `address`, the address of the `holder`, and `at`, Unix seconds */
  rival: {
    address: string;
    /** the address of the node's own worker */
    holder: string;
    /** Unix seconds */
    at: number;
  } | null;
}

/** Whether jobs start on an agent version or a node although attempts fail there. */
export interface Circuit {
  /** `closed`: as usual; `open`: none, for a pause; `half_open`: one, which probes it */
  state: "closed" | "open" | "half_open" | (string & {});
  /** failures in a row */
  failures: number;
  /** Unix seconds at which it opened; null while it is closed */
  since: number | null;
  /** seconds without a start after the latest failure; null while it is closed */
  pause_s: number | null;
}

/** The request is recorded. */
export interface Accepted {
  /** true */
  accepted: boolean;
}

/** The object is removed. */
export interface Removed {
  /** true */
  removed: boolean;
}

/** Numbers of jobs. */
export interface Health {
  /** `ok` */
  status: "ok" | (string & {});
  /** waiting jobs */
  pending: number;
  /** running jobs */
  running: number;
  /** free places in the queue */
  capacity_remaining: number;
  hardware?: Hardware;
}

/** Hardware declared by operators, over all nodes. */
export interface Hardware {
  /** GPUs */
  total_gpus: number;
  /** free GPUs */
  free_gpus: number;
  /** the memory of each */
  gpu_vram_gb: Array<number>;
  /** memory */
  total_memory_gb: number;
  /** free memory */
  free_memory_gb: number;
  /** cores */
  total_cpu_cores: number;
  /** free cores */
  free_cpu_cores: number;
  /** `any` where nodes differ */
  architecture: string;
  /** allocations of jobs */
  allocations: Array<{
    slot_id: string;
    gpu_devices: Array<number>;
    memory_gb: number;
    cpu_cores: number;
  }>;
}

/** The controller can serve requests, or with `alone=true` is the only member that runs. */
export interface Ready {
  /** false while it is alone and cannot serve requests */
  ready: boolean;
}

/** The program and its cluster. */
export interface Version {
  /** version of the program */
  version: string;
  /** how it was started */
  mode: "production" | "dev" | (string & {});
  /** highest supported feature level */
  level: number;
  /** 32 hexadecimal digits */
  cluster_id: string;
  /** data directory; in development mode only */
  data_dir?: string;
}

/** Statistics of all agents together. */
export interface GlobalFigures {
  /** jobs that changed their status */
  total_jobs: number;
  /** share of failed jobs */
  error_rate: number;
  /** share of retries */
  retry_rate: number;
  /** share of completed jobs that ran in a warm slot */
  warm_hit_rate: number;
  /** jobs that ended in the last minute */
  throughput_per_min: number;
  /** median of the execution time */
  latency_p50_ms: number;
  /** 95th percentile */
  latency_p95_ms: number;
  /** 99th percentile */
  latency_p99_ms: number;
}

/** Statistics of one agent, over the last thousand jobs. */
export interface AgentFigures {
  /** number of jobs by status */
  jobs_by_status: Record<string, number>;
  /** jobs that changed their status */
  total_jobs: number;
  /** share of failed jobs */
  error_rate: number;
  /** jobs that ended in the last minute */
  throughput_per_min: number;
  /** median of the execution time */
  latency_p50_ms: number;
  /** 95th percentile */
  latency_p95_ms: number;
  /** 99th percentile */
  latency_p99_ms: number;
  /** share of completed jobs that ran in a warm slot */
  warm_hit_rate: number;
  /** number of retries */
  total_retries: number;
}

/** Statistics of all agents. */
export interface Figures {
  global: GlobalFigures;
  /** by name */
  agents: Record<string, AgentFigures>;
}

/** A run to start. Unknown members are ignored with a header `Warning`; those that look like `priority` are refused. */
export interface ChainStart {
  /** a definition, also under the key `chain`; or the name of a stored chain */
  chain: Record<string, unknown> | string;
  /** the input of the chain; defaults to `{}` */
  input?: Record<string, unknown> | null;
  /** the priority of its jobs; defaults to 0 */
  priority?: number | null;
}

/** A chain whose steps are looked at. */
export interface ChainToCheck {
  /** a definition, also under the key `chain`; or the name of a stored chain */
  chain: Record<string, unknown> | string;
}

/** How the steps of a chain fit together. */
export interface ChainCheck {
  /** the name of the chain */
  name: string;
  /** name, agent and version of each step */
  steps: Array<Record<string, unknown>>;
  /** for each step after the first: strategy, cost and confidence, the fields with their types, and notes */
  joins: Array<Record<string, unknown>>;
  /** the model that converts data where a strategy is `llm_bridge`; empty if there is none */
  model: string;
  /** what is wrong with the `input_map` of a step: the step's number from 0 (`step`), the `field`, what the map has for it (`given`), `message`, `hint`, and `level`: `error` if no run can pass the step, else `warning` */
  problems: Array<Record<string, unknown>>;
}

/** The id of a run. */
export interface ChainId {
  /** `chain-` and sixteen hexadecimal digits */
  id: string;
}

/** One run of a chain. With `view=full` it has the members after `result`. */
export interface ChainRun {
  /** its id */
  id: string;
  /** the name of the chain */
  chain_name: string;
  /** its status */
  status: "pending" | "running" | "completed" | "failed" | "cancelled" | (string & {});
  /** the input of the chain */
  input_data: unknown;
  /** Unix seconds */
  created_at: number;
  /** Unix seconds; 0.0 until it has ended */
  completed_at: number;
  /** number of the step that was started last; -1 before the first */
  current_step: number;
  /** number of steps of the chain */
  total_steps: number;
  /** success, output, error, failed_at, steps and mediation_summary; null until it has ended */
  result: Record<string, unknown> | null;
  /** revision of the stored chain; null if the definition came with the request */
  revision?: number | null;
  /** the definition as it was at the start */
  definition?: Record<string, unknown>;
  /** the priority of its jobs */
  priority?: number;
  /** number of changes */
  version?: number;
  /** the steps that were started: name, agent, version, job_id, status, strategy */
  step_jobs?: Array<Record<string, unknown>>;
  /** the step that failed: its number from 0 (`step`), `name`, `agent`, `job_id`, the `reason`, the places in its input or output that are wrong (`at`), and the `output` that its agent returned; null for what there is not */
  failure?: Record<string, unknown> | null;
  /** the job that it carries */
  job_id?: string | null;
}

/** A run as in [ChainRun](#chainrun) with `view=full`, and the jobs of its steps. */
export interface ChainTree {
  /** `chain-` and sixteen hexadecimal digits */
  id: string;
  /** the jobs of its steps, oldest first; at most 1000 with those below them */
  children: Array<JobTree>;
}

export interface Conversation {
  /** Continues the conversation as `conversation_id` of `send_message`. */
  id: string;
  /** The agent that answers. */
  agent: string;
  /** Who continues it: all, one MCP session, or those who send its id. */
  scope: "shared" | "connection" | "named" | (string & {});
  /** The principal that began it. */
  owner: string;
  /** Messages that were answered. */
  turns: number;
  /** Size of the messages. */
  bytes: number;
  /** Unix time in seconds. */
  created_at: number;
  /** Unix time in seconds. */
  updated_at: number;
  /** When it is removed if there is no further turn, Unix time in seconds; null for never. */
  expires_at: number | null;
  /** The job that answers the latest message. */
  running_job: string | null;
  /** What was said, the oldest first; not in lists. */
  messages?: Array<{
    role: "user" | "assistant" | (string & {});
    content: string;
    images?: Array<Record<string, unknown>>;
    /** The model and the settings that a message was asked with, if the agent lets its input choose them. */
    settings?: Record<string, unknown>;
  }>;
}

/** A conversation that begins with turns of another one. */
export interface ConversationBranch {
  /** The name of the new conversation. */
  id: string;
  /** How many turns it begins with; all without it. */
  turns?: number;
}

/** A shared memory: one text for all who use its scope. */
export interface Memory {
  /** Who shares it: `namespace`, `agent:NAME`, `user:NAME` or `conversation:ID`. */
  scope: string;
  /** The whole text; empty if nothing was written. */
  text: string;
  /** Size of the text. */
  bytes: number;
  /** Entries that the text consists of. */
  entries: number;
  /** When it was changed, Unix time in seconds; null if nothing was written. */
  updated_at: number | null;
}

/** One text that was appended to a memory, or that replaced it. */
export interface MemoryEntry {
  /** Unique in its memory. */
  id: string;
  text: string;
  /** Whether it replaced all that was there before. */
  replaces: boolean;
  /** Whether a later one replaced it: it is history, and no part of the text. */
  replaced: boolean;
  /** Whether it is a summary, which stands for entries before it. */
  summary: boolean;
  /** The principal that wrote it. */
  author: string;
  /** The agent that wrote it; null if it was a person or another program. */
  agent: string | null;
  /** The job that wrote it; null if it was a person or another program. */
  job: string | null;
  /** Unix time in seconds. */
  written_at: number;
}

/** What is written to a memory. */
export interface MemoryChange {
  content: string;
  /** `append` adds a line, `write` replaces the text, and `compact` replaces the oldest entries by a summary of them. */
  action: "append" | "write" | "compact" | (string & {});
  /** Whose memory: `namespace` if it is empty, or `agent:NAME`, `user:NAME`, `conversation:ID`. */
  scope?: string;
  /** Only of a summary, which needs it. */
  summary_of?: SummaryOf | null;
}

/** For which entries a summary stands: the oldest ones of the text. */
export interface SummaryOf {
  /** The id of the first one. */
  first: string;
  /** The id of the last one. */
  last: string;
  /** How many they are. If the memory was changed, so that the oldest entries are others, the summary is refused; entries that were appended stay behind it. */
  entries: number;
  /** The job that wrote the summary; null if it was a person or another program. */
  job?: string | null;
}

/** One piece of knowledge. */
export interface KnowledgeEntry {
  /** Unique in its namespace. */
  id: string;
  content: string;
  domain: string;
  tags: Array<string>;
  metadata: Record<string, unknown>;
  /** In ISO 8601. */
  created_at: string;
  /** In ISO 8601. */
  updated_at: string;
  /** The principal that wrote it last. */
  author: string;
  /** The agent that wrote it last; null if it was a person or another program. */
  agent: string | null;
  /** The job that wrote it last; null if it was a person or another program. */
  job: string | null;
}

/** A piece of knowledge that is to be stored. */
export interface KnowledgeDraft {
  /** Made of the domain and a number if it is empty. An entry of this id is replaced. */
  id?: string;
  content: string;
  /** `general` if it is empty. */
  domain?: string;
  tags?: Array<string>;
  metadata?: Record<string, unknown>;
}

/** What changes of a piece of knowledge; what is not named stays. */
export interface KnowledgeChange {
  content?: string | null;
  tags?: Array<string> | null;
  /** Replaces all metadata. */
  metadata?: Record<string, unknown> | null;
}

/** A domain of knowledge. */
export interface KnowledgeDomain {
  domain: string;
  /** Entries in it. */
  entries: number;
}

/** What agents may do with knowledge. */
export interface KnowledgeAcl {
  /** Domains that an agent writes only if its contract names them. */
  protected_domains: Array<string>;
  /** By name. */
  agents: Array<KnowledgeRights>;
}

/** What the contract of an agent says about knowledge. */
export interface KnowledgeRights {
  agent: string;
  /** The version that jobs get which name none. */
  version: string;
  /** Whether it requires knowledge at all; without that it reads and writes nothing. */
  enabled: boolean;
  /** Domains that it reads; `*` are all. */
  read_domains: Array<string>;
  /** Domains that it writes; `*` are all that are not protected. */
  write_domains: Array<string>;
}

/** A rule on who finds which documents: a document is found by whom any rule with it names. */
export interface DocumentReaders {
  /** Names of principals, in which `*` is any text. None for everyone. */
  principals?: Array<string>;
  /** Documents whose sources begin with it. */
  source?: string;
  /** Documents with these members in their metadata. The text `caller.NAME` stands for what is known of the caller under that name. */
  metadata?: Record<string, unknown>;
}

/** The vectors of the chunks of a base. */
export interface BaseVectors {
  /** `ready` if each chunk has one, `building`, or `failed`. */
  state: string;
  /** Chunks of the base, when they were last counted. */
  chunks: number;
  /** Chunks of them that have no vector yet. They are found by words alone. */
  missing: number;
  /** Numbers of a vector; 0 before the first one is made. */
  dimension: number;
  /** Why there are no more of them; null if nothing failed. It is tried again. */
  error: string | null;
}

/** How the sources of a base were last read. */
export interface BaseCollection {
  /** When it ended, Unix time in seconds. */
  at: number;
  /** The job that read them. */
  job: string;
  /** Documents that they have. */
  documents: number;
  /** Why some are missing, the first few. */
  errors: Array<string>;
}

/** The job that reads the sources of a base. */
export interface BaseCollecting {
  /** The job. Its output says what was added, replaced and removed. */
  job: string;
}

/** A document base. */
export interface Base {
  /** Unique in its namespace. */
  name: string;
  /** What the documents are about. */
  description: string;
  /** Most bytes of a chunk. */
  chunk_size: number;
  /** How much of the chunk before a chunk repeats, in percent of its size. */
  chunk_overlap: number;
  /** Chunks that a search finds if it does not say how many. */
  top_k: number;
  /** The model that makes vectors of its chunks; null if they are found by words alone. */
  embedding: string | null;
  /** The model that ranks what was found; null without one. */
  reranker: string | null;
  /** What the cluster fills it from, besides what is added. */
  sources: Array<string>;
  /** How often the sources are read again, in minutes; 0 is only when somebody asks for it. */
  refresh_minutes: number;
  /** Who finds which documents; all find all if it is empty. */
  readers: Array<DocumentReaders>;
  /** The vectors; null without a model for them. */
  vectors: BaseVectors | null;
  /** How the sources were last read; null before the first time. */
  collected: BaseCollection | null;
  /** Documents in it. */
  documents: number;
  /** Size of its segments. */
  bytes: number;
  /** Artifacts that hold its documents. */
  segments: number;
  /** The principal that changed it last. */
  author: string;
  /** When it was changed, Unix time in seconds. */
  updated_at: number;
}

/** A base that is to be made. What is not named has its default. */
export interface BaseDraft {
  name: string;
  /** What the documents are about. */
  description?: string | null;
  /** Most bytes of a chunk, 64 to 65536; 2000 if it is left out. */
  chunk_size?: number | null;
  /** How much of the chunk before a chunk repeats, 0 to 50 percent of its size; 5 if it is left out. */
  chunk_overlap?: number | null;
  /** Chunks that a search finds if it does not say how many, 1 to 100; 5 if it is left out. */
  top_k?: number | null;
  /** The model that makes vectors of chunks; by words alone without one. */
  embedding?: string | null;
  /** The model that ranks what was found; none without it. */
  reranker?: string | null;
  /** Pages, websites and repositories that the cluster fills the base from, up to 64. */
  sources?: Array<string> | null;
  /** How often the sources are read again, in minutes, at least 5; 0 is only when somebody asks for it. */
  refresh_minutes?: number | null;
  /** Who finds which documents, up to 64 rules; all find all without one. */
  readers?: Array<DocumentReaders> | null;
}

/** What changes of a base; what is not named stays. */
export interface BaseChange {
  description?: string | null;
  chunk_size?: number | null;
  chunk_overlap?: number | null;
  top_k?: number | null;
  /** The model that makes vectors of chunks, empty for none. */
  embedding?: string | null;
  /** The model that ranks what was found, empty for none. */
  reranker?: string | null;
  /** Pages, websites and repositories that the cluster fills the base from, up to 64. */
  sources?: Array<string> | null;
  /** How often the sources are read again, in minutes, at least 5; 0 is only when somebody asks for it. */
  refresh_minutes?: number | null;
  /** Who finds which documents, up to 64 rules; all find all without one. */
  readers?: Array<DocumentReaders> | null;
}

/** How a base is written anew. */
export interface BaseRebuild {
  /** Whether documents that no controller can read are left out; otherwise they are an error. */
  drop_unreadable?: boolean;
  /** Whether all vectors are made anew, for example because the model is another one. */
  vectors?: boolean;
}

/** A base that was written anew. */
export interface RebuiltBase {
  /** Documents in it. */
  documents: number;
  segments: number;
  /** Documents that could not be read, and are no longer in it. */
  lost: number;
}

/** A document that is to be added. */
export interface DocumentDraft {
  /** Its name in the base, such as the path of its file. The document of the same source is replaced. */
  source: string;
  /** Up to 4 MiB. */
  text: string;
  /** Searches can ask for members of it. */
  metadata?: Record<string, unknown>;
}

/** Documents that are to be added. */
export interface DocumentDrafts {
  /** Up to 1000. */
  documents: Array<DocumentDraft>;
}

/** What happened to a document. */
export interface AddedDocument {
  source: string;
  /** `added`, `replaced`, `unchanged` or `refused`. */
  status: string;
  /** What it is known by; null if it was refused. */
  id: string | null;
  /** Why it was refused; null if it was not. */
  reason: string | null;
}

/** What happened to documents, in the order of the request. */
export interface AddedDocuments {
  documents: Array<AddedDocument>;
}

/** A document of a base. */
export interface BaseDocument {
  /** What it is known by: the same source, metadata and text have the same id. */
  id: string;
  source: string;
  /** Size of its text. */
  bytes: number;
  metadata: Record<string, unknown>;
  /** Null if it was not asked for. */
  text: string | null;
}

/** A page of the documents of a base. */
export interface DocumentPage {
  documents: Array<BaseDocument>;
  /** The source after which the next page begins; null on the last one. */
  next: string | null;
  /** What the page lacks. */
  unreadable: Array<UnreadableSegment>;
}

/** Documents that no controller can read. They are missing in an answer. */
export interface UnreadableSegment {
  /** The digest of the artifact. */
  segment: string;
  /** How many documents it had; 0 for a caller that may not read all of the base. */
  documents: number;
  reason: string;
}

/** How many documents were removed. */
export interface RemovedDocuments {
  removed: number;
}

/** A question to a base. */
export interface DocumentQuery {
  /** Without a model for vectors, chunks that share no word with it are not found. */
  query: string;
  /** Most chunks, 1 to 100; as the base says if it is left out. */
  top_k?: number | null;
  /** Only documents whose sources begin with it. */
  source?: string;
  /** Only documents whose metadata have these members with these values. */
  metadata?: Record<string, unknown>;
  /** Whether the answer says why each chunk came. */
  explain?: boolean;
  /** Whether words alone count, so that no model is asked. */
  words_only?: boolean;
  /** Whether the model that ranks what was found is not asked. */
  unranked?: boolean;
}

/** A chunk that fits a question. */
export interface DocumentHit {
  source: string;
  text: string;
  /** More is better. It compares the hits of one answer. */
  score: number;
  /** The id of the document. */
  document: string;
  /** Which chunk of the document it is, from 1. */
  chunk: number;
  /** How many chunks the document has. */
  chunks: number;
  metadata: Record<string, unknown>;
  /** Its place by the words of the question; null if it has none, or if the question did not ask to explain. */
  by_words: HitRank | null;
  /** Its place by its vector, likewise. The score is the cosine. */
  by_vector: HitRank | null;
  /** Its place by the model that ranks, likewise. */
  by_model: HitRank | null;
}

/** The place of a chunk in an order. */
export interface HitRank {
  /** From 1. */
  place: number;
  score: number;
}

/** The chunks that fit a question, the best first. */
export interface FoundDocuments {
  base: string;
  hits: Array<DocumentHit>;
  /** Documents that were searched. */
  documents: number;
  /** Chunks that were searched. */
  chunks: number;
  /** Chunks of them without a vector, which are found by words alone; 0 if words alone count. */
  without_vector: number;
  /** What could not be searched. */
  unreadable: Array<UnreadableSegment>;
}

/** A request for the next message of a conversation. It may have more members of OpenAI's interface. */
export interface ChatCompletionRequest {
  /** A model of the namespace, an agent or a chain. */
  model: string;
  /** What was said so far, the oldest first. */
  messages: Array<Record<string, unknown>>;
  /** Whether the answer arrives in chunks. */
  stream?: boolean | null;
}

/** The next message of a conversation. */
export interface ChatCompletion {
  /** `chatcmpl-` and the id of the job. */
  id: string;
  object: string;
  /** Unix time in seconds. */
  created: number;
  /** The model as the request names it. */
  model: string;
  /** One message, and why the model stopped. */
  choices: Array<Record<string, unknown>>;
}

/** A request for a text that goes on from a prompt. It may have more members of OpenAI's interface. */
export interface CompletionRequest {
  /** A model of the namespace, an agent or a chain. */
  model: string;
  /** A text. */
  prompt: unknown;
  /** Whether the answer arrives in chunks. */
  stream?: boolean | null;
}

/** A text that goes on from a prompt. */
export interface Completion {
  /** `cmpl-` and the id of the job. */
  id: string;
  object: string;
  /** Unix time in seconds. */
  created: number;
  /** The model as the request names it. */
  model: string;
  /** One text, and why the model stopped. */
  choices: Array<Record<string, unknown>>;
}

/** A request for the vectors of texts. It may have more members of OpenAI's interface. */
export interface EmbeddingsRequest {
  /** A model of the namespace of the type `embedding`. */
  model: string;
  /** A text, or a list of texts. */
  input: unknown;
}

/** The vectors of texts. */
export interface Embeddings {
  object: string;
  /** One vector for each text, in their order. */
  data: Array<Record<string, unknown>>;
  /** The model as the request names it. */
  model: string;
  /** The tokens of the texts. */
  usage: Record<string, unknown>;
}

/** What the caller may name as a model. */
export interface UsableModel {
  /** What a request names. */
  id: string;
  object: string;
  /** Unix time in seconds. */
  created: number;
  /** The provider of a model, or the namespace of an agent or a chain. */
  owned_by: string;
}

/** All that the caller may name as a model. */
export interface UsableModels {
  object: string;
  data: Array<UsableModel>;
}

/** A request for a response. It may have more members of OpenAI's interface. */
export interface ResponseRequest {
  /** A model of the namespace, an agent or a chain. */
  model: string;
  /** A text, or a list of items. */
  input: unknown;
  /** Whether the response arrives as events. */
  stream?: boolean | null;
  /** Whether the response is made also if its client goes away. */
  background?: boolean | null;
  /** Whether it can be read later. */
  store?: boolean | null;
  /** The response that this one goes on from. */
  previous_response_id?: string | null;
}

/** A response: the output of a model as items. */
export interface ModelResponse {
  /** `resp_` and the id of the job. */
  id: string;
  object: string;
  /** `queued`, `in_progress`, `completed`, `incomplete`, `failed` or `cancelled`. */
  status: string;
  /** The model as the request names it. */
  model: string;
  /** Messages, tool calls and reasoning, in the order in which the model wrote them. */
  output: Array<Record<string, unknown>>;
}

/** A response that was deleted. */
export interface DeletedResponse {
  id: string;
  object: string;
  deleted: boolean;
}

/** The items that a response was asked with. */
export interface InputItems {
  object: string;
  data: Array<Record<string, unknown>>;
}

/** Why a request below `/v1/` was refused, in OpenAI's form. The header `Atlas-Error-Code` has our code where there is one. */
export interface ApiError {
  /** What is wrong. */
  error: {
    /** For people. */
    message: string;
    /** A class of errors, such as `invalid_request_error`. */
    type: string;
    /** The member of the request that is refused. */
    param: string | null;
    /** What programs compare with, such as `model_not_found`. */
    code: string | null;
  };
}

/** An MCP server and the issuers of tokens for it. */
export interface ProtectedResource {
  /** the address of the server */
  resource: string;
  /** the addresses of the issuers */
  authorization_servers: Array<string>;
  /** how a token is sent */
  bearer_methods_supported?: Array<string>;
  /** the client of `atlasctl login` at each issuer that has one */
  atlasctl_clients?: Record<string, string>;
}

/** The registry document of MCP. */
export interface McpServers {
  /** one for each agent */
  servers: Array<Record<string, unknown>>;
}

/** What a completed or failed job did, or a run of a chain. */
export interface Trace {
  /** the id of the job or of the run */
  trace_id: string;
  /** the job; of a run, the job that it carries, or empty */
  job_id: string;
  /** the agent; of a run, the chain */
  agent_name: string;
  /** the status; that of a job is `completed` or `failed` */
  status: "completed" | "failed" | "pending" | "running" | "cancelled" | (string & {});
  /** start-up of the agent; 0 in a used slot */
  warmup_ms?: number;
  /** how long the agent ran */
  execution_ms?: number;
  /** Unix seconds; 0 if it did not start */
  started_at?: number;
  /** Unix seconds */
  completed_at?: number;
  /** tokens sent to models */
  input_tokens?: number;
  /** tokens that models generated */
  output_tokens?: number;
  /** their sum */
  total_tokens?: number;
  /** the model that was called last; empty if none was */
  model?: string;
  /** cost of the tokens, six decimals */
  estimated_cost_usd?: number;
  /** the job that spawned it, or the run whose step it is */
  parent_trace_id?: string;
  /** the chain whose step it is */
  chain_name?: string;
  /** its position in the chain from 0; -1 outside a chain */
  step_index?: number;
  /** results of the checks in the agent's eval.yaml */
  eval_results: Array<{
    /** the check */
    name: string;
    /** whether it passed */
    passed: boolean;
    /** what passes */
    expected: unknown;
    /** the value of the output */
    actual: unknown;
    /** why it did not pass */
    message: string;
  }>;
  /** the job's metadata without internal members */
  metadata: Record<string, unknown>;
  /** of a run: why it failed */
  error?: string;
  /** of a run: the step that failed, from 0; -1 if none did */
  failed_at?: number;
  /** of a run: the traces of the jobs of its steps that have ended */
  steps?: Array<Trace>;
}

/** One skill. */
export interface Skill {
  /** its name */
  name: string;
  /** its version */
  version: string;
  /** what it does */
  description: string;
  /** input schema, a JSON Schema */
  input_schema: Record<string, unknown>;
  /** output schema, a JSON Schema */
  output_schema: Record<string, unknown>;
}

/** What policies leave the agent of a job. */
export interface LeftPermissions {
  /** the permissions of its contract, lowered by policies; empty if its version is not registered any more */
  permissions: Record<string, unknown>;
  /** the policies that count in the namespace */
  policies: Array<string>;
}

/** An operation on a registered agent. */
export interface PolicyQuestion {
  /** the agent */
  agent: string;
  /** a requirement such as `^1.2.0`; defaults to the latest */
  version?: string | null;
  /** what is done; defaults to `submit` */
  operation?: "deploy" | "submit" | (string & {}) | null;
  /** the input of the job; defaults to an empty object */
  input?: unknown;
  /** the priority of the job */
  priority?: number;
}

/** What policies decide. */
export interface PolicyAnswer {
  /** whether no policy denies it */
  allowed: boolean;
  /** what happens to it: `ask` if it waits for an approval */
  effect: "allow" | "ask" | "deny" | (string & {});
  /** what is done */
  operation: "deploy" | "submit" | (string & {});
  /** who asks */
  principal: string;
  /** the agent */
  agent: string;
  /** the version */
  version: string;
  /** what each policy of the namespace decides, by name */
  decisions: Array<{
    /** the policy */
    policy: string;
    /** the rule that decided; null if none did */
    rule: string | null;
    /** whether it does not deny */
    allowed: boolean;
    /** what it decided */
    effect: "allow" | "ask" | "deny" | (string & {});
    /** why, for people */
    why: string | null;
  }>;
  /** the permissions of the contract, lowered by policies */
  permissions: Record<string, unknown>;
  /** the policies that count in the namespace */
  policies: Array<string>;
}

/** The selected orchestrator. */
export interface Orchestrator {
  /** its name; `DefaultOrchestrator` is the one that allows all jobs */
  name: string;
  /** whether it is the default one */
  type: "default" | "custom" | (string & {});
}

/** The orchestrator to select. Unknown members are ignored with a header `Warning` beside a name, and refused without one. */
export interface OrchestratorName {
  /** the name of an agent of the type `orchestrator`; without a name, the default one is selected */
  name?: string | null;
}

/** What was selected. */
export interface SelectedOrchestrator {
  /** its name */
  orchestrator: string;
}

/** A call of a skill. */
export interface SkillTest {
  /** its input; defaults to an empty object */
  input?: Record<string, unknown>;
}

/** How a call of a skill ended. */
export interface SkillTested {
  /** what it returned; null if it failed */
  output: unknown;
  /** why it failed, or empty */
  error: string;
  /** true if the input does not fit the schema, and the skill was not called */
  refused: boolean;
}

/** A security policy. */
export type Policy = Record<string, unknown>;

/** An OpenAPI document. */
export type Document = Record<string, unknown>;

/** One controller of the cluster. */
export interface Member {
  /** its number */
  id: number;
  /** its name */
  name: string;
  /** role */
  role: "leader" | "follower" | "learner" | (string & {});
  /** whether it answers */
  reachable: boolean;
  /** its term */
  term: number | null;
  /** the end of its log */
  last_index: number | null;
  /** last applied log index */
  applied: number | null;
  /** last log index that the leader knows of */
  matched: number | null;
  /** milliseconds since the last contact */
  heartbeat_ms: number | null;
  /** 99th percentile of fsync */
  fsync_p99_ms: number | null;
  /** time of the last complete backup that it sent */
  backup_at: number | null;
  /** when its certificate should be replaced; null without TLS */
  certificate_due_at: number | null;
  /** when its certificate ends; null without TLS */
  certificate_ends_at: number | null;
  /** whether its disk is nearly full */
  short_of_space: boolean | null;
  /** highest supported feature level */
  level: number | null;
  /** its program's version */
  version: string | null;
  /** where peers reach it */
  peer: string;
  /** where workers reach it */
  worker: string;
  /** where clients reach it */
  http: string;
}

/** The cluster as one controller sees it. */
export interface Cluster {
  /** 32 hexadecimal digits */
  cluster_id: string;
  /** how it was started */
  mode: "production" | "dev" | (string & {});
  /** version of the program */
  version: string;
  /** active feature level */
  level: number;
  /** highest supported feature level */
  level_known: number;
  /** name of the leader */
  leader: string | null;
  /** the term */
  term: number;
  /** last committed log index */
  commit: number;
  /** last applied log index */
  applied: number;
  /** whether a membership change is in progress */
  changing: boolean;
  /** why its wall clock is not trusted */
  clock_doubt: string | null;
  /** its disk */
  disk: {
    room: "ample" | "short" | "none" | (string & {});
    free_bytes: number;
  };
  /** last log entry at which all digests agreed */
  agreed_at: number;
  /** voters and reachable voters */
  quorum: {
    voters: number;
    reachable: number;
  };
  /** the members */
  members: Array<Member>;
}

/** Request for a join token: of a controller, or of a node. */
export type TokenRequest = {
  /** defaults to `controller` */
  kind?: "controller" | (string & {}) | null;
  /** for workers only */
  node?: null;
  /** lifetime in seconds; defaults to 600 */
  expires_s?: number | null;
} | {
  /** a node joins, which needs a cluster with TLS */
  kind: "worker" | (string & {});
  /** the name of the node */
  node: string;
  /** lifetime in seconds; defaults to 600 */
  expires_s?: number | null;
};

/** A join token. */
export interface Token {
  /** the secret */
  token: string;
  /** what can join with it */
  kind: "controller" | "worker" | (string & {});
  /** lifetime in seconds */
  expires_s: number;
  /** Unix seconds */
  expires_at: number;
}

/** Token to revoke. */
export interface RevokeRequest {
  /** the token */
  token: string;
}

/** The token is revoked. */
export interface Revoked {
  /** true */
  revoked: boolean;
}

/** Request for a leadership transfer. */
export interface TransferRequest {
  /** number or name of the new leader; defaults to the most up-to-date member */
  to?: string | null;
}

/** The new leader. */
export interface Transferred {
  /** its name */
  leader: string;
  /** the term */
  term: number;
}

/** A kind of object. */
export interface ObjectKind {
  /** its word */
  kind: string;
  /** what its objects are for */
  description: string;
  /** where its objects are; those of the cluster are in the namespace `default` */
  scope: "cluster" | "namespace" | (string & {});
  /** the right that a change needs */
  right: string;
  /** the version of its format */
  spec_version: number;
  /** JSON Schema of the spec */
  schema: Record<string, unknown>;
}

/** What an object should be. */
export interface ObjectRequest {
  /** its labels; all of them, so a missing one is removed */
  labels?: Record<string, string>;
  /** the document, as its kind describes it; fractions become text */
  spec: Record<string, unknown>;
}

/** The value of a secret. */
export interface SecretRequest {
  /** the value */
  value: string;
  /** refuse to make a secret that does not exist */
  rotate?: boolean;
}

/** One step of a login. */
export interface LoginRequest {
  /** `code` exchanges what the browser brought, `device` begins a login on another device, `poll` asks whether the person is done there */
  step: "code" | "device" | "poll" | (string & {});
  /** with `code`: the code of the issuer */
  code?: string;
  /** with `code`: the verifier of PKCE */
  verifier?: string;
  /** with `code`: the state of the login */
  state?: string;
  /** with `code`: where the browser was sent to */
  redirect_uri?: string;
  /** with `poll`: the code of the answer to `device` */
  device_code?: string;
}

/** How far a login is. */
export interface LoginProgress {
  /** what has happened */
  status: "waiting" | "logged_in" | "logged_out" | (string & {});
  /** for the next `poll` */
  device_code?: string;
  /** what the person types on the other device */
  user_code?: string;
  /** where the person types it */
  verification_uri?: string;
  /** seconds before the first `poll`, and between two of them */
  interval?: number;
  /** seconds by which the interval has become longer */
  longer?: number;
  /** when the code or the access token expires, seconds since the Unix epoch; null if the token does not */
  expires_at?: number | null;
  /** whether the access token is renewed without a person */
  renewable?: boolean;
}

/** One step of a login at an MCP server. */
export interface ServerLoginRequest {
  /** `begin` finds the issuer and registers a client there, `code` exchanges what the browser brought */
  step: "begin" | "code" | (string & {});
  /** where the browser is sent to */
  redirect_uri?: string;
  /** with `begin`: a client that is registered at the issuer; without one, Atlas registers itself */
  client_id?: string | null;
  /** with `begin`: the secret of that client, as `secret://NAME` */
  client_secret?: string | null;
  /** with `begin`: instead of the scopes that the server names */
  scopes?: Array<string> | null;
  /** with `code`: the code of the issuer */
  code?: string;
  /** with `code`: the verifier of PKCE */
  verifier?: string;
  /** with `code`: the state of the login */
  state?: string;
}

/** How far a login at an MCP server is. */
export interface ServerLoginProgress {
  /** what has happened */
  status: "waiting" | "logged_in" | "logged_out" | (string & {});
  /** who gives the tokens */
  issuer?: string;
  /** the login page, without its parameters */
  authorize_url?: string;
  /** the client that asks for tokens */
  client_id?: string;
  /** what the client asks for */
  scopes?: Array<string>;
  /** what the tokens are for */
  resource?: string;
  /** whether the answer of the login page names the issuer, so that one without it must be refused */
  names_issuer?: boolean;
  /** when the access token expires, seconds since the Unix epoch; null if it does not */
  expires_at?: number | null;
  /** whether the access token is renewed without a person */
  renewable?: boolean;
}

/** An object. */
export interface Object {
  /** its kind */
  kind: string;
  /** name, namespace, labels, uid, revision, created_at, updated_at, updated_by */
  metadata: {
    name: string;
    namespace: string;
    labels: Record<string, string>;
    uid: number;
    revision: number;
    created_at: number;
    updated_at: number;
    updated_by: string;
  };
  /** what its author wants */
  spec: Record<string, unknown>;
  /** what the cluster says about it */
  status: Record<string, unknown> | null;
}

/** A page of objects. */
export interface Objects {
  /** by name */
  objects: Array<Object>;
  /** `after` for the next page; null on the last one */
  next: string | null;
}

/** A trigger, or what changes of one. Numbers may be text, and the members may be under `trigger`. */
export interface TriggerRequest {
  /** only for a new trigger; generated without it */
  id?: string;
  /** a name for people */
  name?: string;
  /** only for a new trigger */
  trigger_type?: "cron" | "interval" | "one_shot" | "webhook" | (string & {});
  /** defaults to true */
  enabled?: boolean;
  /** the agent that it runs */
  agent_name?: string;
  /** the chain that it runs, instead of an agent */
  chain_name?: string;
  /** the input of each job */
  input_data?: Record<string, unknown>;
  /** the priority of each job */
  priority?: number;
  /** metadata of each job */
  metadata?: Record<string, unknown>;
  /** five fields, for the type `cron` */
  cron_expr?: string;
  /** more than 0, for the type `interval` */
  interval_seconds?: number;
  /** Unix seconds, for the type `one_shot` */
  fire_at?: number;
  /** signs the calls of a webhook; `***` leaves it as it is */
  webhook_secret?: string;
  /** of `cron_expr`, such as `Europe/Rome`; UTC without it */
  time_zone?: string;
  /** what a firing does while the last job has not ended */
  overlap?: "allow" | "skip" | "queue" | "cancel" | (string & {});
  /** how many missed times are made up for */
  catch_up?: number;
  /** each firing is delayed by less than this */
  jitter_seconds?: number;
  /** the secret that signs calls, `secret://NAME` */
  hmac?: string | null;
  /** how the sender signs its calls */
  scheme?: "atlas" | "github" | "stripe" | "slack" | "shopify" | "standard" | (string & {});
  /** how old the signed time stamp of a call may be; with 0, the scheme `atlas` asks for none, and the others that sign one accept it for 5 minutes */
  replay_window_seconds?: number;
  /** members of the input, and the paths of their values in a call */
  map?: Record<string, string>;
}

/** A trigger. The members from `namespace` on are part of the full view. */
export interface Trigger {
  /** its id */
  id: string;
  /** a name for people */
  name: string;
  /** what makes it fire */
  trigger_type: "cron" | "interval" | "one_shot" | "webhook" | (string & {});
  /** whether it fires by itself, or when it is called */
  enabled: boolean;
  /** the agent that it runs */
  agent_name: string;
  /** the chain that it runs */
  chain_name: string;
  /** the input of each job */
  input_data: Record<string, unknown>;
  /** the priority of each job */
  priority: number;
  /** metadata of each job */
  metadata: Record<string, unknown>;
  /** when it fires */
  cron_expr: string;
  /** how often it fires */
  interval_seconds: number;
  /** Unix seconds */
  fire_at: number;
  /** whether it has a secret */
  webhook_secret: "" | "***" | (string & {});
  /** Unix seconds; 0 if it has not fired */
  last_fired: number;
  /** Unix seconds; 0 if it does not fire by itself */
  next_fire: number;
  /** how often it has fired */
  fire_count: number;
  /** the job of the last firing */
  last_job_id: string;
  /** Unix seconds */
  created_at: number;
  /** its namespace */
  namespace?: string;
  /** the event of its last change */
  revision?: number;
  /** of `cron_expr`, such as `Europe/Rome`; UTC without it */
  time_zone?: string;
  /** what a firing does while the last job has not ended */
  overlap?: "allow" | "skip" | "queue" | "cancel" | (string & {});
  /** how many missed times are made up for */
  catch_up?: number;
  /** each firing is delayed by less than this */
  jitter_seconds?: number;
  /** the secret that signs calls, `secret://NAME` */
  hmac?: string | null;
  /** how the sender signs its calls */
  scheme?: "atlas" | "github" | "stripe" | "slack" | "shopify" | "standard" | (string & {});
  /** how old the signed time stamp of a call may be; with 0, the scheme `atlas` asks for none, and the others that sign one accept it for 5 minutes */
  replay_window_seconds?: number;
  /** members of the input, and the paths of their values in a call */
  map?: Record<string, string>;
  /** times without a firing */
  missed?: number;
  /** why it did not fire when it was due */
  error?: string;
  /** parts of `cron_expr` that never match, or match more than they seem to */
  warnings?: Array<string>;
  /** the last ten, newest first */
  firings?: Array<{
    fired_at: number;
    tick: number;
    by: "schedule" | "request" | "webhook" | "backfill" | (string & {});
    job_id: string | null;
  }>;
}

/** The job of a firing. */
export interface Fired {
  /** its id */
  job_id: string;
}

/** The next times of a trigger. */
export interface NextFirings {
  /** Unix seconds, ascending; empty if it does not fire by itself */
  next: Array<number>;
  /** the same times in the time zone of the trigger */
  local: Array<string>;
}

/** Calls of a webhook that reached this controller since it started, newest first. */
export interface Deliveries {
  /** the calls */
  deliveries: Array<Delivery>;
}

/** One call of a webhook. */
export interface Delivery {
  /** Unix seconds */
  at: number;
  /** the address of the caller, or of the proxy before this controller */
  from: string;
  /** its header `User-Agent`, at most 128 bytes */
  program: string;
  /** what the caller calls it; empty if it did not say */
  delivery: string;
  /** `repeated` is an earlier delivery again, and `greeted` only asked whether somebody is here */
  outcome: "fired" | "greeted" | "repeated" | "refused" | (string & {});
  /** the job or run; empty if it was refused */
  job_id: string;
  /** the code of the error; empty if it was not refused */
  code: string;
  /** its text, at most 128 bytes */
  error: string;
}

/** The answer to a call that starts nothing: the `challenge` of Slack, or `pong` for the `ping` of GitHub. */
export interface Greeted {
  /** what was sent */
  challenge?: string;
  /** true */
  pong?: boolean;
}

/** A call to try out. */
export interface TriggerTest {
  /** the body of the call */
  body?: Record<string, unknown> | null;
}

/** What a call would start. */
export interface TriggerTested {
  /** the agent */
  agent_name: string;
  /** the chain, instead of an agent */
  chain_name: string;
  /** its version; null if there is none */
  agent_version: string | null;
  /** the input */
  input_data: Record<string, unknown>;
  /** the priority */
  priority: number;
  /** the metadata */
  metadata: Record<string, unknown>;
  /** whether the job would run */
  accepted: boolean;
  /** why it would fail */
  error: string;
  /** whether calls need a signature */
  signed: boolean;
  /** the header that has it */
  signature: string;
  /** whether calls are accepted now */
  enabled: boolean;
}

/** Times to make up for. */
export interface BackfillRequest {
  /** Unix seconds */
  from: number;
  /** Unix seconds */
  to: number;
  /** only list the times */
  dry_run?: boolean;
}

/** The times of a backfill. */
export interface Backfilled {
  /** ascending, at most 100 */
  times: Array<{
    time: number;
    local: string;
    job_id: string | null;
  }>;
  /** whether the jobs were only listed */
  dry_run: boolean;
}

/** The body of a call: members of the input. */
export type Call = Record<string, unknown>;

/** The receipt of a job. */
export interface Receipt {
  /** the job */
  job: string;
  /** the hash of the last entry, which stands for all of them */
  head: string;
  /** the entries as they are hashed: JSON with `entry`, `previous`, `kind` (`job`, `submission`, `agent`, `policy`, `route`, `attempt`, `question`, `step`, `steps`, `end`) and what is known; and as the last member the SHA-256 of the entry without it, `hash` */
  lines: Array<string>;
}

/** Records of the audit. */
export interface AuditPage {
  /** the records, by time */
  records: Array<{
    /** the controller that has it */
    member: string;
    /** the record as it is written: JSON with `number`, `controller`, `previous`, `at_ms`, `principal`, `decision` (`allow`, `failed`, `deny`, `dropped`) and, where there is something to say, `on_behalf_of`, `namespace`, `door`, `verb`, `object`, `code`, `request_id`, `count`; and as the last member the SHA-256 of the record without it, `hash` */
    line: string;
  }>;
  /** where the next page begins, with a position for each controller */
  cursor: string;
  /** whether there is a next page */
  more: boolean;
  /** the controllers that answered */
  members: Array<{
    /** the controller */
    member: string;
    /** the number of its newest record */
    end: number;
  }>;
  /** the controllers that did not answer: their records are not here, and the next page with this cursor has them once they answer */
  missing: Array<{
    /** the controller */
    member: string;
    /** why */
    reason: string;
  }>;
}

/** Who sends the request. */
export interface Whoami {
  /** the principal */
  principal: string;
  /** `false` while authentication is off: everybody may do everything */
  authenticated: boolean;
  /** what it is granted */
  grants: Array<{
    /** where; absent for the whole cluster */
    namespace?: string;
    /** the rights */
    rights: Array<string>;
  }>;
  /** what else is known of it: texts by the names of attributes, which rules of document bases compare */
  attributes?: Record<string, Array<string>>;
}

/** Request for a token. */
export interface AccessTokenRequest {
  /** letters, digits and hyphens */
  name: string;
  /** who shows it; defaults to the name */
  principal?: string | null;
  /** what it is for */
  description?: string | null;
  /** validity in seconds; null for ever; defaults to 7776000, 90 days */
  valid_for_s?: number | null;
}

/** A new token. */
export interface AccessToken {
  /** its text, which is shown this once */
  token: string;
  object: Object;
}
