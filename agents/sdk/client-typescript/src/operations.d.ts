// Generated from the table of operations by `cargo xtask fix`; do not edit.

import type * as t from "./types.js";
import type { Bytes, CallOptions, Calls, Events } from "./calls.js";

/** Every operation of the interface. */
export class Operations extends Calls {
  /** Submits a job. The answer is sent once the job is durable. Needs the right `jobs.submit`. */
  submitJob(
    body: t.Submission,
    options?: CallOptions & {
      /** `refuse` refuses jobs that cannot run, instead of accepting them and letting them fail */
      validate?: "refuse";
      /** with `validate=refuse`: `agent` refuses the name of a stored chain as well */
      only?: "agent";
      /** seconds to wait for the end of the job; the answer is then the job */
      wait?: number;
      /** `true` also waits for the retries of a failed job and returns the last of them */
      family?: boolean;
      /** `full` adds the members that Atlas for Python does not have */
      view?: "full" | "plain";
      /** `true` refuses what is accepted with a header `Warning` otherwise */
      strict?: boolean;
      /** up to 255 characters; a repeat with the same key gets the first answer */
      idempotencyKey?: string;
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<t.Id | t.Job>;
  /** Submits many jobs, each with its own result. The answer is sent once the accepted jobs are durable. Needs the right `jobs.submit`. */
  submitJobs(
    body: t.Batch,
    options?: CallOptions & {
      /** `refuse` refuses jobs that cannot run, instead of accepting them and letting them fail */
      validate?: "refuse";
      /** seconds to wait for space in a full queue; defaults to 0 */
      queueWait?: number;
      /** gives each job that has no `idempotency_key` the key `KEY.INDEX`, its index in the list from 0 */
      idempotencyKey?: string;
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<t.BatchResults>;
  /** Jobs, newest first. Needs the right `jobs.read`. */
  listJobs(
    options?: CallOptions & {
      /** only jobs with this status */
      status?: string;
      /** only jobs of this agent */
      agent?: string;
      /** only jobs with this label, as `KEY=VALUE`; repeatable */
      label?: string | string[];
      /** only jobs with these words in their error or labels */
      text?: string;
      /** only jobs submitted before this job: the id of the last job of a page gets the next page */
      before?: string;
      /** submitted at or after this time, Unix seconds */
      since?: number;
      /** submitted at or before this time, Unix seconds */
      until?: number;
      /** maximum number, 1 to 1000; 50 if it is not a number */
      limit?: number;
      /** number to skip */
      offset?: number;
      /** `full` adds the members that Atlas for Python does not have */
      view?: "full" | "plain";
      /** `stale` answers from the state of this controller, without asking the others */
      consistency?: "stale" | "linearizable";
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<Array<t.Job>>;
  /** One job. Needs the right `jobs.read`. */
  getJob(
    id: string,
    options?: CallOptions & {
      /** seconds to wait for the job's end, as `/api/jobs/{id}/wait` does */
      wait?: number;
      /** `true` also waits for the retries of a failed job and returns the last of them */
      family?: boolean;
      /** `full` adds the members that Atlas for Python does not have */
      view?: "full" | "plain";
      /** `stale` answers from the state of this controller, without asking the others */
      consistency?: "stale" | "linearizable";
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<t.Job>;
  /** Cancels a pending job; false for every other and for an unknown job. Needs the right `jobs.control`. */
  deleteJob(
    id: string,
    options?: CallOptions & {
      /** up to 255 characters; a repeat with the same key gets the first answer */
      idempotencyKey?: string;
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<t.Cancelled>;
  /** Waits for a job; returns it after it has ended or the timeout has passed. Needs the right `jobs.read`. */
  waitForJob(
    id: string,
    options?: CallOptions & {
      /** maximum seconds to wait; defaults to 60 */
      timeout?: number;
      /** `true` also waits for the retries of a failed job and returns the last of them */
      family?: boolean;
      /** `true` also returns a job that has an open question, or a job below it */
      questions?: boolean;
      /** `full` adds the members that Atlas for Python does not have */
      view?: "full" | "plain";
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<t.Job>;
  /** A job with the jobs that it spawned, except those that have left the state. Needs the right `jobs.read`. */
  getJobTree(
    id: string,
    options?: CallOptions & {
      /** `stale` answers from the state of this controller, without asking the others */
      consistency?: "stale" | "linearizable";
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<t.JobTree>;
  /** The permissions that policies leave the agent of a job. Needs the right `jobs.read`. */
  getJobPolicies(
    id: string,
    options?: CallOptions & {
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<t.LeftPermissions>;
  /** Why a job waits, since when, and what would start it. Needs the right `jobs.read`. */
  explainJob(
    id: string,
    options?: CallOptions & {
      /** `stale` answers from the state of this controller, without asking the others */
      consistency?: "stale" | "linearizable";
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<t.Explained>;
  /** The recorded steps of a job, in order. Needs the right `jobs.read`. */
  listSteps(
    id: string,
    options?: CallOptions & {
      /** only the steps after this number */
      after?: number;
      /** maximum number, 1 to 1000; 50 if it is not a number */
      limit?: number;
      /** `stale` answers from the state of this controller, without asking the others */
      consistency?: "stale" | "linearizable";
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<Array<t.Step>>;
  /** A receipt of a job that has ended, which can be verified anywhere. Needs the right `jobs.read`. */
  getReceipt(
    id: string,
    options?: CallOptions & {
      /** `stale` answers from the state of this controller, without asking the others */
      consistency?: "stale" | "linearizable";
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<t.Receipt>;
  /** Cancels a pending or running job and the jobs that it spawned. Needs the right `jobs.control`. */
  cancelJob(
    id: string,
    options?: CallOptions & {
      /** up to 255 characters; a repeat with the same key gets the first answer */
      idempotencyKey?: string;
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<t.Cancelled>;
  /** Runs an ended job again as a new job. Needs the right `jobs.control`. */
  retryJob(
    id: string,
    options?: CallOptions & {
      /** `true` copies the recorded steps, which the new job does not repeat */
      resume?: boolean;
      /** what happens to the questions of the new job: `fail`, `wait`, or `answer:` and a text; defaults to what happens to those of the ended one */
      questions?: string;
      /** up to 255 characters; a repeat with the same key gets the first answer */
      idempotencyKey?: string;
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<t.Id>;
  /** Erases the input, output, log, steps and error text of an ended job. Needs the right `jobs.control`. */
  eraseJob(
    id: string,
    options?: CallOptions & {
      /** up to 255 characters; a repeat with the same key gets the first answer */
      idempotencyKey?: string;
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<t.Erased>;
  /** Erases all jobs of a namespace, and its ended runs. All must have ended. Needs the right `jobs.control`. */
  eraseJobs(
    options?: CallOptions & {
      /** up to 255 characters; a repeat with the same key gets the first answer */
      idempotencyKey?: string;
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<t.Erased>;
  /** Begins a new job with the first recorded steps of another one. Needs the right `jobs.control`. */
  forkJob(
    id: string,
    body: t.Fork,
    options?: CallOptions & {
      /** up to 255 characters; a repeat with the same key gets the first answer */
      idempotencyKey?: string;
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<t.Id>;
  /** Resolves a job in doubt. Needs the right `jobs.control`. */
  resolveJob(
    id: string,
    body: t.Decision,
    options?: CallOptions & {
      /** up to 255 characters; a repeat with the same key gets the first answer */
      idempotencyKey?: string;
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<t.Resolved>;
  /** Sends a message to a job that has not ended. Needs the right `jobs.control`. */
  sendMessage(
    id: string,
    body: t.Message,
    options?: CallOptions & {
      /** up to 255 characters; a repeat with the same key gets the first answer */
      idempotencyKey?: string;
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<t.Sent>;
  /** The questions of jobs to people, the oldest first. Needs the right `jobs.read`. */
  listQuestions(
    options?: CallOptions & {
      /** `all` adds questions that have ended; defaults to `open` */
      status?: "open" | "all";
      /** only those of this job and of the jobs below it */
      job?: string;
      /** only those with a number after this one */
      after?: number;
      /** maximum number, 1 to 1000; 50 if it is not a number */
      limit?: number;
      /** `stale` answers from the state of this controller, without asking the others */
      consistency?: "stale" | "linearizable";
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<Array<t.Question>>;
  /** One question. Needs the right `jobs.read`. */
  getQuestion(
    id: string,
    options?: CallOptions & {
      /** `stale` answers from the state of this controller, without asking the others */
      consistency?: "stale" | "linearizable";
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<t.Question>;
  /** Answers a question. The first answer stands. Needs the right `questions.answer`. */
  answerQuestion(
    id: string,
    body: t.QuestionAnswer,
    options?: CallOptions & {
      /** up to 255 characters; a repeat with the same key gets the first answer */
      idempotencyKey?: string;
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<t.Question>;
  /** The changes of one job, until it has ended. Needs the right `jobs.read`. */
  followJob(
    id: string,
    options?: CallOptions & {
      /** `false` ends the stream after the past events */
      follow?: boolean;
      /** the last event seen, for clients that cannot send `Last-Event-ID` */
      after?: string;
      /** `full` adds the members that Atlas for Python does not have */
      view?: "full" | "plain";
      /** `true` adds pieces of models' answers to the stream: events `delta`, `gap`, `reset` */
      deltas?: boolean;
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Events<t.Change>;
  /** Log lines and progress of a job. Needs the right `jobs.read`. */
  jobLogs(
    id: string,
    options?: CallOptions & {
      /** the last event seen, for clients that cannot send `Last-Event-ID` */
      after?: string;
      /** `true` adds pieces of models' answers to the stream: events `delta`, `gap`, `reset` */
      deltas?: boolean;
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<Array<t.Line>>;
  /** Log lines and progress of a job. Needs the right `jobs.read`. */
  streamJobLogs(
    id: string,
    options?: CallOptions & {
      /** the last event seen, for clients that cannot send `Last-Event-ID` */
      after?: string;
      /** `true` adds pieces of models' answers to the stream: events `delta`, `gap`, `reset` */
      deltas?: boolean;
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Events<t.Line>;
  /** What completed and failed jobs did, the latest first. Needs the right `jobs.read`. */
  listTraces(
    options?: CallOptions & {
      /** only traces of this agent */
      agent?: string;
      /** maximum number, 1 to 1000; 50 if it is not a number */
      limit?: number;
      /** `stale` answers from the state of this controller, without asking the others */
      consistency?: "stale" | "linearizable";
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<Array<t.Trace>>;
  /** What one job did, with the checks of its agent; or what the jobs of one run of a chain did. Needs the right `jobs.read`. */
  getTrace(
    id: string,
    options?: CallOptions & {
      /** `stale` answers from the state of this controller, without asking the others */
      consistency?: "stale" | "linearizable";
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<t.Trace>;
  /** The changes of all jobs. Needs the right `jobs.read`. */
  followAll(
    options?: CallOptions & {
      /** the last event seen, for clients that cannot send `Last-Event-ID` */
      after?: string;
      /** `full` adds the members that Atlas for Python does not have */
      view?: "full" | "plain";
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Events<t.Change>;
  /** The same as `/api/events`. Needs the right `jobs.read`. */
  followAllAtWs(
    options?: CallOptions & {
      /** the last event seen, for clients that cannot send `Last-Event-ID` */
      after?: string;
      /** `full` adds the members that Atlas for Python does not have */
      view?: "full" | "plain";
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Events<t.Change>;
  /** Events of every kind: jobs, agents, nodes, the configuration. Needs the right `cluster.read`. */
  followEvents(
    options?: CallOptions & {
      /** only events of these kinds, with commas between: job, agent, node, object, run, cluster */
      kind?: string;
      /** only events about what has this name: a job's id, an agent or a node */
      name?: string;
      /** the last event seen, for clients that cannot send `Last-Event-ID` */
      after?: number;
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Events<t.ClusterEvent>;
  /** Runs a chain. The answer is sent once the run is durable. Needs the right `jobs.submit`. */
  startChain(
    body: t.ChainStart,
    options?: CallOptions & {
      /** seconds to wait for the end of the run, which is then the answer */
      wait?: number;
      /** `full` adds the members that Atlas for Python does not have */
      view?: "full" | "plain";
      /** `true` refuses what is accepted with a header `Warning` otherwise */
      strict?: boolean;
      /** up to 255 characters; a repeat with the same key gets the first answer */
      idempotencyKey?: string;
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<t.ChainId | t.ChainRun>;
  /** Shows how each step of a chain gets its input from the step before. Nothing runs. Needs the right `jobs.read`. */
  checkChain(
    body: t.ChainToCheck,
    options?: CallOptions & {
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<t.ChainCheck>;
  /** Runs of chains, newest first. Those that ended last are kept. Needs the right `jobs.read`. */
  listChainRuns(
    options?: CallOptions & {
      /** only runs with this status */
      status?: string;
      /** maximum number, 1 to 1000; 50 if it is not a number */
      limit?: number;
      /** `full` adds the members that Atlas for Python does not have */
      view?: "full" | "plain";
      /** `stale` answers from the state of this controller, without asking the others */
      consistency?: "stale" | "linearizable";
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<Array<t.ChainRun>>;
  /** One run of a chain. Needs the right `jobs.read`. */
  getChainRun(
    id: string,
    options?: CallOptions & {
      /** seconds to wait for the end of the run */
      wait?: number;
      /** `full` adds the members that Atlas for Python does not have */
      view?: "full" | "plain";
      /** `stale` answers from the state of this controller, without asking the others */
      consistency?: "stale" | "linearizable";
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<t.ChainRun>;
  /** One run of a chain with the jobs of its steps, their retries and the jobs that they spawned. Needs the right `jobs.read`. */
  getChainTree(
    id: string,
    options?: CallOptions & {
      /** `stale` answers from the state of this controller, without asking the others */
      consistency?: "stale" | "linearizable";
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<t.ChainTree>;
  /** Cancels a run and the job of its current step. Needs the right `jobs.control`. */
  cancelChainRun(
    id: string,
    options?: CallOptions & {
      /** up to 255 characters; a repeat with the same key gets the first answer */
      idempotencyKey?: string;
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<t.Cancelled>;
  /** Agent versions by name and version. Needs the right `agents.read`. */
  listAgents(
    options?: CallOptions & {
      /** `true` for all versions including retired ones, `false` for only the latest of each name */
      all?: boolean;
      /** only versions of this agent */
      name?: string;
      /** only versions with exactly this capability */
      capability?: string;
      /** only versions with this text in name, description or capabilities, ignoring case */
      q?: string;
      /** maximum number, 1 to 1000; defaults to all */
      limit?: number;
      /** number to skip */
      offset?: number;
      /** `full` adds the members that Atlas for Python does not have */
      view?: "full" | "plain";
      /** `stale` answers from the state of this controller, without asking the others */
      consistency?: "stale" | "linearizable";
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<Array<t.Agent>>;
  /** Registers an agent from its package. Needs the right `agents.publish`. */
  registerAgent(
    body: Uint8Array,
    options?: CallOptions & {
      /** `true` replaces another package of the same version */
      replace?: boolean;
      /** up to 255 characters; a repeat with the same key gets the first answer */
      idempotencyKey?: string;
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<t.Registered>;
  /** One version with its schemas and its contract. Needs the right `agents.read`. */
  getAgent(
    name: string,
    options?: CallOptions & {
      /** a requirement such as `^1.2.0`; defaults to the latest */
      version?: string;
      /** `stale` answers from the state of this controller, without asking the others */
      consistency?: "stale" | "linearizable";
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<t.Agent>;
  /** The versions of one agent, including retired ones. Needs the right `agents.read`. */
  listVersions(
    name: string,
    options?: CallOptions & {
      /** `stale` answers from the state of this controller, without asking the others */
      consistency?: "stale" | "linearizable";
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<Array<t.Agent>>;
  /** One version, retired or not. Needs the right `agents.read`. */
  getVersion(
    name: string,
    version: string,
    options?: CallOptions & {
      /** `stale` answers from the state of this controller, without asking the others */
      consistency?: "stale" | "linearizable";
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<t.Agent>;
  /** Closes the circuit of a version: its jobs start as usual again. Needs the right `agents.publish`. */
  resumeAgent(
    name: string,
    version: string,
    options?: CallOptions & {
      /** up to 255 characters; a repeat with the same key gets the first answer */
      idempotencyKey?: string;
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<t.Accepted>;
  /** Registers an earlier package of a version again: that of a revision, or the one before the package of now. Needs the right `agents.publish`. */
  rollBackAgent(
    name: string,
    version: string,
    body?: t.RollbackRequest,
    options?: CallOptions & {
      /** up to 255 characters; a repeat with the same key gets the first answer */
      idempotencyKey?: string;
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<t.RolledBack>;
  /** Retires a version: it accepts no new jobs; its existing jobs finish. Needs the right `agents.publish`. */
  retireAgent(
    name: string,
    version: string,
    options?: CallOptions & {
      /** up to 255 characters; a repeat with the same key gets the first answer */
      idempotencyKey?: string;
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<t.Retired>;
  /** Deletes a retired version that no waiting or running job uses. Needs the right `agents.publish`. */
  deleteAgent(
    name: string,
    version: string,
    options?: CallOptions & {
      /** up to 255 characters; a repeat with the same key gets the first answer */
      idempotencyKey?: string;
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<t.Deleted>;
  /** Marks a version as deprecated; it still accepts jobs. Needs the right `agents.publish`. */
  deprecateAgent(
    name: string,
    version: string,
    body?: t.DeprecateRequest,
    options?: CallOptions & {
      /** up to 255 characters; a repeat with the same key gets the first answer */
      idempotencyKey?: string;
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<t.Deprecated>;
  /** Nodes by name, with their hardware and free resources. Needs the right `nodes.read`. */
  listNodes(
    options?: CallOptions & {
      /** maximum number, 1 to 1000; defaults to all */
      limit?: number;
      /** number to skip */
      offset?: number;
      /** `stale` answers from the state of this controller, without asking the others */
      consistency?: "stale" | "linearizable";
    },
  ): Promise<Array<t.Node>>;
  /** One node. Needs the right `nodes.read`. */
  getNode(
    name: string,
    options?: CallOptions & {
      /** `stale` answers from the state of this controller, without asking the others */
      consistency?: "stale" | "linearizable";
    },
  ): Promise<t.Node>;
  /** Removes a node that holds no lease. Needs the right `nodes.operate`. */
  removeNode(
    name: string,
    options?: CallOptions & {
      /** up to 255 characters; a repeat with the same key gets the first answer */
      idempotencyKey?: string;
    },
  ): Promise<t.Removed>;
  /** Drains a node: no new leases until it is empty. Needs the right `nodes.operate`. */
  drainNode(
    name: string,
    body?: t.DrainRequest,
    options?: CallOptions & {
      /** up to 255 characters; a repeat with the same key gets the first answer */
      idempotencyKey?: string;
    },
  ): Promise<t.Accepted>;
  /** Stops new leases on a node. Needs the right `nodes.operate`. */
  cordonNode(
    name: string,
    options?: CallOptions & {
      /** up to 255 characters; a repeat with the same key gets the first answer */
      idempotencyKey?: string;
    },
  ): Promise<t.Accepted>;
  /** Allows new leases on a node again; ends a drain. Needs the right `nodes.operate`. */
  uncordonNode(
    name: string,
    options?: CallOptions & {
      /** up to 255 characters; a repeat with the same key gets the first answer */
      idempotencyKey?: string;
    },
  ): Promise<t.Accepted>;
  /** Closes the circuit of a node: it takes jobs as usual again. Needs the right `nodes.operate`. */
  resumeNode(
    name: string,
    options?: CallOptions & {
      /** up to 255 characters; a repeat with the same key gets the first answer */
      idempotencyKey?: string;
    },
  ): Promise<t.Accepted>;
  /** Sets or removes labels of a node; they override those of its worker. Needs the right `nodes.operate`. */
  labelNode(
    name: string,
    body: t.LabelRequest,
    options?: CallOptions & {
      /** up to 255 characters; a repeat with the same key gets the first answer */
      idempotencyKey?: string;
    },
  ): Promise<t.Accepted>;
  /** The kinds of objects, with the JSON Schema of each. Needs the right `public`. */
  listObjectKinds(
    options?: CallOptions,
  ): Promise<Array<t.ObjectKind>>;
  /** Objects of a kind by name. Needs the right `objects.read`. */
  listObjects(
    kind: string,
    options?: CallOptions & {
      /** only objects with this label, `KEY` or `KEY=VALUE` */
      label?: string;
      /** the name after which the page begins, `next` of the page before */
      after?: string;
      /** maximum number, 1 to 1000; 50 if it is not a number */
      limit?: number;
      /** `stale` answers from the state of this controller, without asking the others */
      consistency?: "stale" | "linearizable";
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<t.Objects>;
  /** One object. `ETag` is its revision. Needs the right `objects.read`. */
  getObject(
    kind: string,
    name: string,
    options?: CallOptions & {
      /** `stale` answers from the state of this controller, without asking the others */
      consistency?: "stale" | "linearizable";
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<t.Object>;
  /** Makes an object, or replaces its labels and its spec. The same document again changes nothing. Needs the right `objects.write`. */
  putObject(
    kind: string,
    name: string,
    body: t.ObjectRequest,
    options?: CallOptions & {
      /** the revision that the object must have, in quotation marks */
      ifMatch?: string;
      /** `*`: there must be no such object */
      ifNoneMatch?: string;
      /** `true` checks the request and changes nothing */
      dryRun?: boolean;
      /** up to 255 characters; a repeat with the same key gets the first answer */
      idempotencyKey?: string;
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<t.Object>;
  /** Deletes an object that nothing uses. Needs the right `objects.write`. */
  deleteObject(
    kind: string,
    name: string,
    options?: CallOptions & {
      /** the revision that the object must have, in quotation marks */
      ifMatch?: string;
      /** `*`: there must be no such object */
      ifNoneMatch?: string;
      /** `true` checks the request and changes nothing */
      dryRun?: boolean;
      /** up to 255 characters; a repeat with the same key gets the first answer */
      idempotencyKey?: string;
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<t.Deleted>;
  /** Sets the value of a secret as a new version. No answer contains a value; everything else about a secret is the object of the kind `secret`. Needs the right `objects.write`. */
  setSecret(
    name: string,
    body: t.SecretRequest,
    options?: CallOptions & {
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<t.Object>;
  /** One step of a login to a model whose provider gives access tokens. The tokens become the secret `NAME.login`; no answer contains one. Needs the right `objects.write`. */
  logInToModel(
    name: string,
    body: t.LoginRequest,
    options?: CallOptions & {
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<t.LoginProgress>;
  /** Forgets the tokens of a model. The issuer is not told. Needs the right `objects.write`. */
  logOutOfModel(
    name: string,
    options?: CallOptions & {
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<t.LoginProgress>;
  /** One step of a login at an MCP server that wants access tokens. The tokens become the secret `NAME.mcp-login`; no answer contains one. Needs the right `objects.write`. */
  logInToMcpServer(
    name: string,
    body: t.ServerLoginRequest,
    options?: CallOptions & {
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<t.ServerLoginProgress>;
  /** Forgets the tokens of an MCP server. The issuer is not told. Needs the right `objects.write`. */
  logOutOfMcpServer(
    name: string,
    options?: CallOptions & {
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<t.ServerLoginProgress>;
  /** The orchestrator that decides on jobs before they run. Needs the right `objects.read`. */
  orchestrator(
    options?: CallOptions & {
      /** `stale` answers from the state of this controller, without asking the others */
      consistency?: "stale" | "linearizable";
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<t.Orchestrator>;
  /** Selects an orchestrator. It decides on every job that gets its first lease after the answer. Needs the right `objects.write`. */
  selectOrchestrator(
    body: t.OrchestratorName,
    options?: CallOptions & {
      /** `true` refuses what is accepted with a header `Warning` otherwise */
      strict?: boolean;
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<t.SelectedOrchestrator>;
  /** What policies would decide if the caller deployed a registered agent, or submitted a job for it. Nothing is changed. Needs the right `agents.read`. */
  explainPolicies(
    body: t.PolicyQuestion,
    options?: CallOptions & {
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<t.PolicyAnswer>;
  /** Makes a trigger, or replaces the one with this id. The members may be under `trigger`. Needs the right `objects.write`. */
  createTrigger(
    body: t.TriggerRequest,
    options?: CallOptions & {
      /** `true` refuses what is accepted with a header `Warning` otherwise */
      strict?: boolean;
      /** `*`: there must be no such object */
      ifNoneMatch?: string;
      /** up to 255 characters; a repeat with the same key gets the first answer */
      idempotencyKey?: string;
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<t.Trigger>;
  /** Triggers, newest first. Needs the right `objects.read`. */
  listTriggers(
    options?: CallOptions & {
      /** only triggers of this type */
      type?: string;
      /** `true`, `1` and `yes`: only enabled ones; anything else: only disabled ones */
      enabled?: string;
      /** maximum number; 100 without it */
      limit?: string;
      /** `full` adds the members that Atlas for Python does not have */
      view?: "full" | "plain";
      /** `stale` answers from the state of this controller, without asking the others */
      consistency?: "stale" | "linearizable";
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<Array<t.Trigger>>;
  /** One trigger. Needs the right `objects.read`. */
  getTrigger(
    id: string,
    options?: CallOptions & {
      /** `full` adds the members that Atlas for Python does not have */
      view?: "full" | "plain";
      /** `stale` answers from the state of this controller, without asking the others */
      consistency?: "stale" | "linearizable";
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<t.Trigger>;
  /** Changes members of a trigger, and computes its next time. Needs the right `objects.write`. */
  changeTrigger(
    id: string,
    body: t.TriggerRequest,
    options?: CallOptions & {
      /** `true` refuses what is accepted with a header `Warning` otherwise */
      strict?: boolean;
      /** up to 255 characters; a repeat with the same key gets the first answer */
      idempotencyKey?: string;
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<t.Trigger>;
  /** Deletes a trigger. Needs the right `objects.write`. */
  deleteTrigger(
    id: string,
    options?: CallOptions & {
      /** up to 255 characters; a repeat with the same key gets the first answer */
      idempotencyKey?: string;
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<t.Deleted>;
  /** Fires a trigger now, also a disabled one. Needs the right `jobs.submit`. */
  fireTrigger(
    id: string,
    options?: CallOptions & {
      /** up to 255 characters; a repeat with the same key gets the first answer */
      idempotencyKey?: string;
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<t.Fired>;
  /** The next times at which a trigger fires. Needs the right `objects.read`. */
  nextFirings(
    id: string,
    options?: CallOptions & {
      /** how many, at most 100; defaults to 5 */
      count?: number;
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<t.NextFirings>;
  /** The latest calls of a webhook that reached this controller, newest first. Needs the right `objects.read`. */
  triggerDeliveries(
    id: string,
    options?: CallOptions & {
      /** how many, at most 100; defaults to 20 */
      limit?: number;
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<t.Deliveries>;
  /** What a call would start. Nothing is started. Needs the right `objects.write`. */
  testTrigger(
    id: string,
    body?: t.TriggerTest,
    options?: CallOptions & {
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<t.TriggerTested>;
  /** Fires a trigger for times that have passed, each once. Needs the right `jobs.submit`. */
  backfillTrigger(
    id: string,
    body: t.BackfillRequest,
    options?: CallOptions & {
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<t.Backfilled>;
  /** Fires a webhook. The members of the body replace those of its input. Needs the right `public`. */
  callHook(
    id: string,
    body?: t.Call,
    options?: CallOptions & {
      /** the HMAC-SHA256 of the body with the secret of the trigger, if it has one: 64 hexadecimal digits, also after `sha256=`, or several with commas between them; other schemes have headers of their own */
      xAtlasSignature?: string;
      /** the time of the call in whole seconds since 1970, if the trigger has a replay window; it is signed before the body */
      xAtlasTimestamp?: string;
      /** the sender's name for this delivery; a repeat gets the first answer */
      xAtlasDelivery?: string;
      /** up to 255 characters; a repeat with the same key gets the first answer */
      idempotencyKey?: string;
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<t.Fired | t.Greeted>;
  /** Numbers of waiting and running jobs, and declared hardware. Needs the right `public`. */
  health(
    options?: CallOptions & {
      /** `stale` answers from the state of this controller, without asking the others */
      consistency?: "stale" | "linearizable";
    },
  ): Promise<t.Health>;
  /** Whether this controller can serve requests. Needs the right `public`. */
  ready(
    options?: CallOptions & {
      /** `true` succeeds as well while no other member runs */
      alone?: boolean;
    },
  ): Promise<t.Ready>;
  /** The program and the cluster. Needs the right `public`. */
  version(
    options?: CallOptions,
  ): Promise<t.Version>;
  /** Statistics of all agents. Needs the right `metrics.read`. */
  figures(
    options?: CallOptions,
  ): Promise<t.Figures>;
  /** Statistics of one agent. Needs the right `metrics.read`. */
  figuresOfAgent(
    agent: string,
    options?: CallOptions,
  ): Promise<t.AgentFigures>;
  /** All instruments in the OpenMetrics text form. Needs the right `metrics.read`. */
  metrics(
    options?: CallOptions,
  ): Promise<string>;
  /** The page of an error code: cause and what to try. The `type` of a problem document is its path. Needs the right `public`. */
  errorPage(
    code: string,
    options?: CallOptions,
  ): Promise<string>;
  /** This interface as an OpenAPI document. Needs the right `public`. */
  openApi(
    options?: CallOptions,
  ): Promise<t.Document>;
  /** The skills, the oldest first, then the platform's tools. Needs the right `agents.read`. */
  skills(
    options?: CallOptions & {
      /** `stale` answers from the state of this controller, without asking the others */
      consistency?: "stale" | "linearizable";
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<Array<t.Skill>>;
  /** Deploys a skill from its package. It replaces one of the same name. Needs the right `agents.publish`. */
  deploySkill(
    body: Uint8Array,
    options?: CallOptions & {
      /** `true` replaces another package of the same version */
      replace?: boolean;
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<t.Registered>;
  /** One skill. Needs the right `agents.read`. */
  getSkill(
    name: string,
    options?: CallOptions & {
      /** `stale` answers from the state of this controller, without asking the others */
      consistency?: "stale" | "linearizable";
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<t.Skill>;
  /** Calls a skill as an agent would, and waits for its end. Needs the right `jobs.submit`. */
  testSkill(
    name: string,
    body?: t.SkillTest,
    options?: CallOptions & {
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<t.SkillTested>;
  /** Removes a skill. Its package is kept as long as something uses it. Needs the right `agents.publish`. */
  removeSkill(
    name: string,
    options?: CallOptions & {
      /** the revision that the object must have, in quotation marks */
      ifMatch?: string;
      /** `*`: there must be no such object */
      ifNoneMatch?: string;
      /** `true` checks the request and changes nothing */
      dryRun?: boolean;
      /** up to 255 characters; a repeat with the same key gets the first answer */
      idempotencyKey?: string;
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<t.Deleted>;
  /** The conversations with agents, by id, without their messages. Needs the right `jobs.read`. */
  listConversations(
    options?: CallOptions & {
      /** `stale` answers from the state of this controller, without asking the others */
      consistency?: "stale" | "linearizable";
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<Array<t.Conversation>>;
  /** A conversation with its messages, the oldest first. Needs the right `jobs.read`. */
  getConversation(
    id: string,
    options?: CallOptions & {
      /** `stale` answers from the state of this controller, without asking the others */
      consistency?: "stale" | "linearizable";
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<t.Conversation>;
  /** Begins another conversation with the first turns of this one. Both go on independently of each other. Needs the right `jobs.submit`. */
  branchConversation(
    id: string,
    body: t.ConversationBranch,
    options?: CallOptions & {
      /** up to 255 characters; a repeat with the same key gets the first answer */
      idempotencyKey?: string;
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<t.Conversation>;
  /** Deletes a conversation. The answer of a turn under way is not kept. Needs the right `jobs.control`. */
  deleteConversation(
    id: string,
    options?: CallOptions & {
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<t.Deleted>;
  /** The agents as MCP servers: names, titles, addresses and models. Needs the right `public`. */
  mcpRegistry(
    options?: CallOptions & {
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<t.McpServers>;
  /** The text of a shared memory. Needs the right `objects.read`. */
  getMemory(
    options?: CallOptions & {
      /** whose memory: `namespace`, `agent:NAME`, `user:NAME` or `conversation:ID` */
      scope?: string;
      /** `stale` answers from the state of this controller, without asking the others */
      consistency?: "stale" | "linearizable";
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<t.Memory>;
  /** Appends a line to a shared memory, or replaces its text or its oldest entries. Needs the right `objects.write`. */
  writeMemory(
    body: t.MemoryChange,
    options?: CallOptions & {
      /** up to 255 characters; a repeat with the same key gets the first answer */
      idempotencyKey?: string;
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<t.Memory>;
  /** Removes a shared memory with its history. Needs the right `objects.write`. */
  clearMemory(
    options?: CallOptions & {
      /** whose memory: `namespace`, `agent:NAME`, `user:NAME` or `conversation:ID` */
      scope?: string;
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<t.Deleted>;
  /** What was written to a shared memory and by whom, the oldest first; also the latest that was replaced. Needs the right `objects.read`. */
  listMemoryEntries(
    options?: CallOptions & {
      /** whose memory: `namespace`, `agent:NAME`, `user:NAME` or `conversation:ID` */
      scope?: string;
      /** `stale` answers from the state of this controller, without asking the others */
      consistency?: "stale" | "linearizable";
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<Array<t.MemoryEntry>>;
  /** The entries that contain a text, by domain and id. Needs the right `objects.read`. */
  searchKnowledge(
    options?: CallOptions & {
      /** compared without case with content and tags; all entries if it is empty */
      q?: string;
      /** only entries of this domain */
      domain?: string;
      /** only entries with one of these tags, with commas between them */
      tags?: string;
      /** maximum number, 1 to 1000; 50 if it is not a number */
      limit?: number;
      /** `stale` answers from the state of this controller, without asking the others */
      consistency?: "stale" | "linearizable";
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<Array<t.KnowledgeEntry>>;
  /** The entries, by domain and id. Needs the right `objects.read`. */
  listKnowledge(
    options?: CallOptions & {
      /** only entries of this domain */
      domain?: string;
      /** maximum number, 1 to 1000; 50 if it is not a number */
      limit?: number;
      /** number to skip */
      offset?: number;
      /** `stale` answers from the state of this controller, without asking the others */
      consistency?: "stale" | "linearizable";
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<Array<t.KnowledgeEntry>>;
  /** Stores an entry. One with the same id is replaced. Needs the right `objects.write`. */
  storeKnowledge(
    body: t.KnowledgeDraft,
    options?: CallOptions & {
      /** up to 255 characters; a repeat with the same key gets the first answer */
      idempotencyKey?: string;
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<t.KnowledgeEntry>;
  /** One entry. Needs the right `objects.read`. */
  getKnowledge(
    id: string,
    options?: CallOptions & {
      /** `stale` answers from the state of this controller, without asking the others */
      consistency?: "stale" | "linearizable";
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<t.KnowledgeEntry>;
  /** Changes members of an entry. Needs the right `objects.write`. */
  changeKnowledge(
    id: string,
    body: t.KnowledgeChange,
    options?: CallOptions & {
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<t.KnowledgeEntry>;
  /** Deletes an entry. Needs the right `objects.write`. */
  deleteKnowledge(
    id: string,
    options?: CallOptions & {
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<t.Deleted>;
  /** The domains that have entries, by name. Needs the right `objects.read`. */
  listKnowledgeDomains(
    options?: CallOptions & {
      /** `stale` answers from the state of this controller, without asking the others */
      consistency?: "stale" | "linearizable";
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<Array<t.KnowledgeDomain>>;
  /** Which domains agents read and write. Needs the right `objects.read`. */
  getKnowledgeAcl(
    options?: CallOptions & {
      /** only this agent */
      agent?: string;
      /** `stale` answers from the state of this controller, without asking the others */
      consistency?: "stale" | "linearizable";
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<t.KnowledgeAcl>;
  /** The document bases by name. Needs the right `objects.read`. */
  listBases(
    options?: CallOptions & {
      /** `stale` answers from the state of this controller, without asking the others */
      consistency?: "stale" | "linearizable";
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<Array<t.Base>>;
  /** Makes a document base. A repeat with the same settings finds it. Needs the right `objects.write`. */
  createBase(
    body: t.BaseDraft,
    options?: CallOptions & {
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<t.Base>;
  /** One document base. Needs the right `objects.read`. */
  getBase(
    name: string,
    options?: CallOptions & {
      /** `stale` answers from the state of this controller, without asking the others */
      consistency?: "stale" | "linearizable";
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<t.Base>;
  /** Changes settings of a base. Documents are cut anew by them. Needs the right `objects.write`. */
  changeBase(
    name: string,
    body: t.BaseChange,
    options?: CallOptions & {
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<t.Base>;
  /** Deletes a base with its documents. Needs the right `objects.write`. */
  deleteBase(
    name: string,
    options?: CallOptions & {
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<t.Deleted>;
  /** Writes the documents of a base anew: removed ones leave its segments. Needs the right `objects.write`. */
  rebuildBase(
    name: string,
    body: t.BaseRebuild,
    options?: CallOptions & {
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<t.RebuiltBase>;
  /** Reads the sources of a base by a job. If one does so already, the answer is that job. Needs the right `objects.write`. */
  collectBase(
    name: string,
    options?: CallOptions & {
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<t.BaseCollecting>;
  /** The documents of a base by source. Needs the right `objects.read`. */
  listDocuments(
    name: string,
    options?: CallOptions & {
      /** only documents whose sources begin with it */
      source?: string;
      /** the `next` of the page before */
      after?: string;
      /** maximum number, 1 to 1000; 50 if it is not a number */
      limit?: number;
      /** `true` adds the texts; a page then has up to 8 MiB of them */
      text?: boolean;
      /** `stale` answers from the state of this controller, without asking the others */
      consistency?: "stale" | "linearizable";
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<t.DocumentPage>;
  /** Adds documents. One with the same source is replaced; one that is there already changes nothing. Needs the right `objects.write`. */
  addDocuments(
    name: string,
    body: t.DocumentDrafts,
    options?: CallOptions & {
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<t.AddedDocuments>;
  /** Removes documents. They are in no answer from then on. Needs the right `objects.write`. */
  removeDocuments(
    name: string,
    options?: CallOptions & {
      /** the source; if no document has it, a pattern in which `*` is any text, such as `docs/*.md` */
      source?: string;
      /** `true` writes the base anew, so that no segment has removed documents */
      erase?: boolean;
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<t.RemovedDocuments>;
  /** The parts of documents that fit a question, the best first. Needs the right `objects.read`. */
  searchDocuments(
    name: string,
    body: t.DocumentQuery,
    options?: CallOptions & {
      /** `stale` answers from the state of this controller, without asking the others */
      consistency?: "stale" | "linearizable";
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<t.FoundDocuments>;
  /** What the caller may name as a model: models, agents and chains. Needs the right `jobs.submit`. */
  listUsableModels(
    options?: CallOptions & {
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<t.UsableModels>;
  /** One that the caller may name as a model. Needs the right `jobs.submit`. */
  getUsableModel(
    model: string,
    options?: CallOptions & {
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<t.UsableModel>;
  /** The same by its long name: `model`, `agent` or `chain` before the name. Needs the right `jobs.submit`. */
  getUsableModelOf(
    form: string,
    model: string,
    options?: CallOptions & {
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<t.UsableModel>;
  /** The next message of a conversation, by a job. Needs the right `jobs.submit`. */
  createChatCompletion(
    body: t.ChatCompletionRequest,
    options?: CallOptions & {
      /** up to 255 characters; a repeat with the same key gets the first answer */
      idempotencyKey?: string;
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<t.ChatCompletion>;
  /** The next message of a conversation, by a job. Needs the right `jobs.submit`. */
  streamCreateChatCompletion(
    body: t.ChatCompletionRequest,
    options?: CallOptions & {
      /** up to 255 characters; a repeat with the same key gets the first answer */
      idempotencyKey?: string;
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Events<t.ChatCompletion>;
  /** A text that goes on from a prompt, by a job. Needs the right `jobs.submit`. */
  createCompletion(
    body: t.CompletionRequest,
    options?: CallOptions & {
      /** up to 255 characters; a repeat with the same key gets the first answer */
      idempotencyKey?: string;
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<t.Completion>;
  /** A text that goes on from a prompt, by a job. Needs the right `jobs.submit`. */
  streamCreateCompletion(
    body: t.CompletionRequest,
    options?: CallOptions & {
      /** up to 255 characters; a repeat with the same key gets the first answer */
      idempotencyKey?: string;
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Events<t.Completion>;
  /** The vectors of texts, by a job. Needs the right `jobs.submit`. */
  createEmbeddings(
    body: t.EmbeddingsRequest,
    options?: CallOptions & {
      /** up to 255 characters; a repeat with the same key gets the first answer */
      idempotencyKey?: string;
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<t.Embeddings>;
  /** A response of a model, by a job; in the background, the answer is sent once the job is durable. Needs the right `jobs.submit`. */
  createResponse(
    body: t.ResponseRequest,
    options?: CallOptions & {
      /** up to 255 characters; a repeat with the same key gets the first answer */
      idempotencyKey?: string;
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<t.ModelResponse>;
  /** A response of a model, by a job; in the background, the answer is sent once the job is durable. Needs the right `jobs.submit`. */
  streamCreateResponse(
    body: t.ResponseRequest,
    options?: CallOptions & {
      /** up to 255 characters; a repeat with the same key gets the first answer */
      idempotencyKey?: string;
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Events<t.ModelResponse>;
  /** A response that the caller asked for; with `jobs.read` also those of others. Needs the right `jobs.submit`. */
  getResponse(
    id: string,
    options?: CallOptions & {
      /** `true` answers with the events of the response */
      stream?: boolean;
      /** with `stream`: only events with a larger `sequence_number` */
      startingAfter?: number;
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<t.ModelResponse>;
  /** A response that the caller asked for; with `jobs.read` also those of others. Needs the right `jobs.submit`. */
  streamGetResponse(
    id: string,
    options?: CallOptions & {
      /** `true` answers with the events of the response */
      stream?: boolean;
      /** with `stream`: only events with a larger `sequence_number` */
      startingAfter?: number;
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Events<t.ModelResponse>;
  /** The items that a response was asked with. Needs the right `jobs.submit`. */
  listInputItems(
    id: string,
    options?: CallOptions & {
      /** most items, 1 to 100; defaults to 20 */
      limit?: number;
      /** `asc`: the oldest item first; defaults to `desc` */
      order?: "asc" | "desc";
      /** the id of the last item of the page before */
      after?: string;
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<t.InputItems>;
  /** Cancels the job of a response. Needs the right `jobs.control`. */
  cancelResponse(
    id: string,
    options?: CallOptions & {
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<t.ModelResponse>;
  /** Deletes a response: its job is cancelled if it runs, and what was said is erased from its record. Needs the right `jobs.control`. */
  deleteResponse(
    id: string,
    options?: CallOptions & {
      /** the namespace; defaults to `default` */
      namespace?: string;
    },
  ): Promise<t.DeletedResponse>;
  /** The security policy of the cluster. Needs the right `public`. */
  securityPolicy(
    options?: CallOptions,
  ): Promise<t.Policy>;
  /** Leader, log positions, reachable voters and members of the cluster. Needs the right `cluster.read`. */
  cluster(
    options?: CallOptions,
  ): Promise<t.Cluster>;
  /** The members by number, with their state. Needs the right `cluster.read`. */
  listMembers(
    options?: CallOptions & {
      /** maximum number, 1 to 1000; defaults to all */
      limit?: number;
      /** number to skip */
      offset?: number;
    },
  ): Promise<Array<t.Member>>;
  /** Removes a member permanently; refused if no quorum would remain. Needs the right `cluster.operate`. */
  removeMember(
    member: string,
    options?: CallOptions & {
      /** up to 255 characters; a repeat with the same key gets the first answer */
      idempotencyKey?: string;
    },
  ): Promise<t.Removed>;
  /** Creates a token with which a controller or a node can join. Needs the right `cluster.operate`. */
  createJoinToken(
    body?: t.TokenRequest,
    options?: CallOptions & {
      /** up to 255 characters; a repeat with the same key gets the first answer */
      idempotencyKey?: string;
    },
  ): Promise<t.Token>;
  /** Revokes a join token. Needs the right `cluster.operate`. */
  revokeJoinToken(
    body: t.RevokeRequest,
    options?: CallOptions & {
      /** up to 255 characters; a repeat with the same key gets the first answer */
      idempotencyKey?: string;
    },
  ): Promise<t.Revoked>;
  /** Makes another member the leader. Needs the right `cluster.operate`. */
  transferLeader(
    body?: t.TransferRequest,
    options?: CallOptions & {
      /** up to 255 characters; a repeat with the same key gets the first answer */
      idempotencyKey?: string;
    },
  ): Promise<t.Transferred>;
  /** A backup of the cluster, streamed. Needs the right `cluster.operate`. */
  snapshot(
    options?: CallOptions,
  ): Bytes;
  /** Who sends the request, and what this principal is granted. Needs the right `public`. */
  whoami(
    options?: CallOptions,
  ): Promise<t.Whoami>;
  /** Which issuers give tokens for the MCP server of the platform (RFC 9728). Needs the right `public`. */
  mcpResource(
    options?: CallOptions,
  ): Promise<t.ProtectedResource>;
  /** Which issuers give tokens for the MCP server of an agent (RFC 9728). Needs the right `public`. */
  mcpResourceOfAgent(
    name: string,
    options?: CallOptions,
  ): Promise<t.ProtectedResource>;
  /** Makes a token. Only its hash is stored: everything else about it is the object of the kind `token`, and deleting that revokes it. Needs the right `access.manage`. */
  createToken(
    body: t.AccessTokenRequest,
    options?: CallOptions,
  ): Promise<t.AccessToken>;
  /** Records of who did what, and of who was denied it, oldest first. Each controller has those of its own doors; the answer has those of all, and names controllers that did not answer. Needs the right `audit.read`. */
  readAudit(
    options?: CallOptions & {
      /** continues where the answer with this cursor ended; `end` is after the newest record of each controller */
      cursor?: string;
      /** only those of this controller, by name or number */
      member?: string;
      /** maximum number, 1 to 1000; defaults to 100 */
      limit?: number;
      /** only those of this principal */
      principal?: string;
      /** only those of this operation */
      verb?: string;
      /** only those about objects that begin with this, such as `agent/` */
      object?: string;
      /** only those in this namespace */
      namespace?: string;
      /** only those with this decision */
      decision?: "allow" | "failed" | "deny" | "dropped";
      /** not before this time, Unix seconds */
      since?: number;
      /** before this time, Unix seconds */
      until?: number;
    },
  ): Promise<t.AuditPage>;
}
