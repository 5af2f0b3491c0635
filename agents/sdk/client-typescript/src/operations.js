// Generated from the table of operations by `cargo xtask fix`; do not edit.

import { Calls } from "./calls.js";

/** Every operation of the interface. */
export class Operations extends Calls {
  submitJob(body, options = {}) {
    return this._json(
      "POST",
      "/api/jobs",
      {},
      { validate: options.validate, only: options.only, wait: options.wait, family: options.family, view: options.view, strict: options.strict, namespace: options.namespace },
      { "Idempotency-Key": options.idempotencyKey },
      body,
      options,
    );
  }

  submitJobs(body, options = {}) {
    return this._json(
      "POST",
      "/api/jobs:batch",
      {},
      { validate: options.validate, queue_wait: options.queueWait, namespace: options.namespace },
      { "Idempotency-Key": options.idempotencyKey },
      body,
      options,
    );
  }

  listJobs(options = {}) {
    return this._json(
      "GET",
      "/api/jobs",
      {},
      { status: options.status, agent: options.agent, label: options.label, text: options.text, before: options.before, since: options.since, until: options.until, limit: options.limit, offset: options.offset, view: options.view, consistency: options.consistency, namespace: options.namespace },
      {},
      undefined,
      options,
    );
  }

  getJob(id, options = {}) {
    return this._json(
      "GET",
      "/api/jobs/{id}",
      { id },
      { wait: options.wait, family: options.family, view: options.view, consistency: options.consistency, namespace: options.namespace },
      {},
      undefined,
      options,
    );
  }

  deleteJob(id, options = {}) {
    return this._json(
      "DELETE",
      "/api/jobs/{id}",
      { id },
      { namespace: options.namespace },
      { "Idempotency-Key": options.idempotencyKey },
      undefined,
      options,
    );
  }

  waitForJob(id, options = {}) {
    return this._json(
      "GET",
      "/api/jobs/{id}/wait",
      { id },
      { timeout: options.timeout, family: options.family, questions: options.questions, view: options.view, namespace: options.namespace },
      {},
      undefined,
      options,
    );
  }

  getJobTree(id, options = {}) {
    return this._json(
      "GET",
      "/api/jobs/{id}/tree",
      { id },
      { consistency: options.consistency, namespace: options.namespace },
      {},
      undefined,
      options,
    );
  }

  getJobPolicies(id, options = {}) {
    return this._json(
      "GET",
      "/api/jobs/{id}/policies",
      { id },
      { namespace: options.namespace },
      {},
      undefined,
      options,
    );
  }

  explainJob(id, options = {}) {
    return this._json(
      "GET",
      "/api/jobs/{id}/explain",
      { id },
      { consistency: options.consistency, namespace: options.namespace },
      {},
      undefined,
      options,
    );
  }

  listSteps(id, options = {}) {
    return this._json(
      "GET",
      "/api/jobs/{id}/steps",
      { id },
      { after: options.after, limit: options.limit, consistency: options.consistency, namespace: options.namespace },
      {},
      undefined,
      options,
    );
  }

  getReceipt(id, options = {}) {
    return this._json(
      "GET",
      "/api/jobs/{id}/receipt",
      { id },
      { consistency: options.consistency, namespace: options.namespace },
      {},
      undefined,
      options,
    );
  }

  cancelJob(id, options = {}) {
    return this._json(
      "POST",
      "/api/jobs/{id}/cancel",
      { id },
      { namespace: options.namespace },
      { "Idempotency-Key": options.idempotencyKey },
      undefined,
      options,
    );
  }

  retryJob(id, options = {}) {
    return this._json(
      "POST",
      "/api/jobs/{id}/retry",
      { id },
      { resume: options.resume, questions: options.questions, namespace: options.namespace },
      { "Idempotency-Key": options.idempotencyKey },
      undefined,
      options,
    );
  }

  eraseJob(id, options = {}) {
    return this._json(
      "POST",
      "/api/jobs/{id}/erase",
      { id },
      { namespace: options.namespace },
      { "Idempotency-Key": options.idempotencyKey },
      undefined,
      options,
    );
  }

  eraseJobs(options = {}) {
    return this._json(
      "POST",
      "/api/jobs:erase",
      {},
      { namespace: options.namespace },
      { "Idempotency-Key": options.idempotencyKey },
      undefined,
      options,
    );
  }

  forkJob(id, body, options = {}) {
    return this._json(
      "POST",
      "/api/jobs/{id}/fork",
      { id },
      { namespace: options.namespace },
      { "Idempotency-Key": options.idempotencyKey },
      body,
      options,
    );
  }

  resolveJob(id, body, options = {}) {
    return this._json(
      "POST",
      "/api/jobs/{id}/resolve",
      { id },
      { namespace: options.namespace },
      { "Idempotency-Key": options.idempotencyKey },
      body,
      options,
    );
  }

  sendMessage(id, body, options = {}) {
    return this._json(
      "POST",
      "/api/jobs/{id}/messages",
      { id },
      { namespace: options.namespace },
      { "Idempotency-Key": options.idempotencyKey },
      body,
      options,
    );
  }

  listQuestions(options = {}) {
    return this._json(
      "GET",
      "/api/questions",
      {},
      { status: options.status, job: options.job, after: options.after, limit: options.limit, consistency: options.consistency, namespace: options.namespace },
      {},
      undefined,
      options,
    );
  }

  getQuestion(id, options = {}) {
    return this._json(
      "GET",
      "/api/questions/{id}",
      { id },
      { consistency: options.consistency, namespace: options.namespace },
      {},
      undefined,
      options,
    );
  }

  answerQuestion(id, body, options = {}) {
    return this._json(
      "POST",
      "/api/questions/{id}/answer",
      { id },
      { namespace: options.namespace },
      { "Idempotency-Key": options.idempotencyKey },
      body,
      options,
    );
  }

  followJob(id, options = {}) {
    return this._stream(
      "GET",
      "/api/jobs/{id}/events",
      { id },
      { follow: options.follow, after: options.after, view: options.view, deltas: options.deltas, namespace: options.namespace },
      {},
      undefined,
      options,
    );
  }

  jobLogs(id, options = {}) {
    return this._json(
      "GET",
      "/api/jobs/{id}/logs",
      { id },
      { after: options.after, deltas: options.deltas, namespace: options.namespace },
      {},
      undefined,
      options,
    );
  }

  streamJobLogs(id, options = {}) {
    return this._stream(
      "GET",
      "/api/jobs/{id}/logs",
      { id },
      { after: options.after, deltas: options.deltas, namespace: options.namespace },
      {},
      undefined,
      options,
    );
  }

  listTraces(options = {}) {
    return this._json(
      "GET",
      "/api/traces",
      {},
      { agent: options.agent, limit: options.limit, consistency: options.consistency, namespace: options.namespace },
      {},
      undefined,
      options,
    );
  }

  getTrace(id, options = {}) {
    return this._json(
      "GET",
      "/api/traces/{id}",
      { id },
      { consistency: options.consistency, namespace: options.namespace },
      {},
      undefined,
      options,
    );
  }

  followAll(options = {}) {
    return this._stream(
      "GET",
      "/api/events",
      {},
      { after: options.after, view: options.view, namespace: options.namespace },
      {},
      undefined,
      options,
    );
  }

  followAllAtWs(options = {}) {
    return this._stream(
      "GET",
      "/ws",
      {},
      { after: options.after, view: options.view, namespace: options.namespace },
      {},
      undefined,
      options,
    );
  }

  followEvents(options = {}) {
    return this._stream(
      "GET",
      "/api/cluster/events",
      {},
      { kind: options.kind, name: options.name, after: options.after, namespace: options.namespace },
      {},
      undefined,
      options,
    );
  }

  startChain(body, options = {}) {
    return this._json(
      "POST",
      "/api/chains",
      {},
      { wait: options.wait, view: options.view, strict: options.strict, namespace: options.namespace },
      { "Idempotency-Key": options.idempotencyKey },
      body,
      options,
    );
  }

  checkChain(body, options = {}) {
    return this._json(
      "POST",
      "/api/chains/check",
      {},
      { namespace: options.namespace },
      {},
      body,
      options,
    );
  }

  listChainRuns(options = {}) {
    return this._json(
      "GET",
      "/api/chains",
      {},
      { status: options.status, limit: options.limit, view: options.view, consistency: options.consistency, namespace: options.namespace },
      {},
      undefined,
      options,
    );
  }

  getChainRun(id, options = {}) {
    return this._json(
      "GET",
      "/api/chains/{id}",
      { id },
      { wait: options.wait, view: options.view, consistency: options.consistency, namespace: options.namespace },
      {},
      undefined,
      options,
    );
  }

  getChainTree(id, options = {}) {
    return this._json(
      "GET",
      "/api/chains/{id}/tree",
      { id },
      { consistency: options.consistency, namespace: options.namespace },
      {},
      undefined,
      options,
    );
  }

  cancelChainRun(id, options = {}) {
    return this._json(
      "POST",
      "/api/chains/{id}/cancel",
      { id },
      { namespace: options.namespace },
      { "Idempotency-Key": options.idempotencyKey },
      undefined,
      options,
    );
  }

  listAgents(options = {}) {
    return this._json(
      "GET",
      "/api/agents",
      {},
      { all: options.all, name: options.name, capability: options.capability, q: options.q, limit: options.limit, offset: options.offset, view: options.view, consistency: options.consistency, namespace: options.namespace },
      {},
      undefined,
      options,
    );
  }

  registerAgent(body, options = {}) {
    return this._json(
      "POST",
      "/api/agents",
      {},
      { replace: options.replace, namespace: options.namespace },
      { "Idempotency-Key": options.idempotencyKey },
      body,
      options,
    );
  }

  getAgent(name, options = {}) {
    return this._json(
      "GET",
      "/api/agents/{name}",
      { name },
      { version: options.version, consistency: options.consistency, namespace: options.namespace },
      {},
      undefined,
      options,
    );
  }

  listVersions(name, options = {}) {
    return this._json(
      "GET",
      "/api/agents/{name}/versions",
      { name },
      { consistency: options.consistency, namespace: options.namespace },
      {},
      undefined,
      options,
    );
  }

  getVersion(name, version, options = {}) {
    return this._json(
      "GET",
      "/api/agents/{name}/versions/{version}",
      { name, version },
      { consistency: options.consistency, namespace: options.namespace },
      {},
      undefined,
      options,
    );
  }

  resumeAgent(name, version, options = {}) {
    return this._json(
      "POST",
      "/api/agents/{name}/versions/{version}/resume",
      { name, version },
      { namespace: options.namespace },
      { "Idempotency-Key": options.idempotencyKey },
      undefined,
      options,
    );
  }

  rollBackAgent(name, version, body, options = {}) {
    return this._json(
      "POST",
      "/api/agents/{name}/versions/{version}/rollback",
      { name, version },
      { namespace: options.namespace },
      { "Idempotency-Key": options.idempotencyKey },
      body,
      options,
    );
  }

  retireAgent(name, version, options = {}) {
    return this._json(
      "DELETE",
      "/api/agents/{name}/versions/{version}",
      { name, version },
      { namespace: options.namespace },
      { "Idempotency-Key": options.idempotencyKey },
      undefined,
      options,
    );
  }

  deleteAgent(name, version, options = {}) {
    return this._json(
      "POST",
      "/api/agents/{name}/versions/{version}/delete",
      { name, version },
      { namespace: options.namespace },
      { "Idempotency-Key": options.idempotencyKey },
      undefined,
      options,
    );
  }

  deprecateAgent(name, version, body, options = {}) {
    return this._json(
      "POST",
      "/api/agents/{name}/versions/{version}/deprecate",
      { name, version },
      { namespace: options.namespace },
      { "Idempotency-Key": options.idempotencyKey },
      body,
      options,
    );
  }

  listNodes(options = {}) {
    return this._json(
      "GET",
      "/api/nodes",
      {},
      { limit: options.limit, offset: options.offset, consistency: options.consistency },
      {},
      undefined,
      options,
    );
  }

  getNode(name, options = {}) {
    return this._json(
      "GET",
      "/api/nodes/{name}",
      { name },
      { consistency: options.consistency },
      {},
      undefined,
      options,
    );
  }

  removeNode(name, options = {}) {
    return this._json(
      "DELETE",
      "/api/nodes/{name}",
      { name },
      {},
      { "Idempotency-Key": options.idempotencyKey },
      undefined,
      options,
    );
  }

  drainNode(name, body, options = {}) {
    return this._json(
      "POST",
      "/api/nodes/{name}/drain",
      { name },
      {},
      { "Idempotency-Key": options.idempotencyKey },
      body,
      options,
    );
  }

  cordonNode(name, options = {}) {
    return this._json(
      "POST",
      "/api/nodes/{name}/cordon",
      { name },
      {},
      { "Idempotency-Key": options.idempotencyKey },
      undefined,
      options,
    );
  }

  uncordonNode(name, options = {}) {
    return this._json(
      "POST",
      "/api/nodes/{name}/uncordon",
      { name },
      {},
      { "Idempotency-Key": options.idempotencyKey },
      undefined,
      options,
    );
  }

  resumeNode(name, options = {}) {
    return this._json(
      "POST",
      "/api/nodes/{name}/resume",
      { name },
      {},
      { "Idempotency-Key": options.idempotencyKey },
      undefined,
      options,
    );
  }

  labelNode(name, body, options = {}) {
    return this._json(
      "POST",
      "/api/nodes/{name}/labels",
      { name },
      {},
      { "Idempotency-Key": options.idempotencyKey },
      body,
      options,
    );
  }

  listObjectKinds(options = {}) {
    return this._json(
      "GET",
      "/api/objects",
      {},
      {},
      {},
      undefined,
      options,
    );
  }

  listObjects(kind, options = {}) {
    return this._json(
      "GET",
      "/api/objects/{kind}",
      { kind },
      { label: options.label, after: options.after, limit: options.limit, consistency: options.consistency, namespace: options.namespace },
      {},
      undefined,
      options,
    );
  }

  getObject(kind, name, options = {}) {
    return this._json(
      "GET",
      "/api/objects/{kind}/{name}",
      { kind, name },
      { consistency: options.consistency, namespace: options.namespace },
      {},
      undefined,
      options,
    );
  }

  putObject(kind, name, body, options = {}) {
    return this._json(
      "PUT",
      "/api/objects/{kind}/{name}",
      { kind, name },
      { dry_run: options.dryRun, namespace: options.namespace },
      { "If-Match": options.ifMatch, "If-None-Match": options.ifNoneMatch, "Idempotency-Key": options.idempotencyKey },
      body,
      options,
    );
  }

  deleteObject(kind, name, options = {}) {
    return this._json(
      "DELETE",
      "/api/objects/{kind}/{name}",
      { kind, name },
      { dry_run: options.dryRun, namespace: options.namespace },
      { "If-Match": options.ifMatch, "If-None-Match": options.ifNoneMatch, "Idempotency-Key": options.idempotencyKey },
      undefined,
      options,
    );
  }

  setSecret(name, body, options = {}) {
    return this._json(
      "PUT",
      "/api/secrets/{name}",
      { name },
      { namespace: options.namespace },
      {},
      body,
      options,
    );
  }

  logInToModel(name, body, options = {}) {
    return this._json(
      "POST",
      "/api/models/{name}/login",
      { name },
      { namespace: options.namespace },
      {},
      body,
      options,
    );
  }

  logOutOfModel(name, options = {}) {
    return this._json(
      "DELETE",
      "/api/models/{name}/login",
      { name },
      { namespace: options.namespace },
      {},
      undefined,
      options,
    );
  }

  logInToMcpServer(name, body, options = {}) {
    return this._json(
      "POST",
      "/api/mcp-servers/{name}/login",
      { name },
      { namespace: options.namespace },
      {},
      body,
      options,
    );
  }

  logOutOfMcpServer(name, options = {}) {
    return this._json(
      "DELETE",
      "/api/mcp-servers/{name}/login",
      { name },
      { namespace: options.namespace },
      {},
      undefined,
      options,
    );
  }

  orchestrator(options = {}) {
    return this._json(
      "GET",
      "/api/orchestrator",
      {},
      { consistency: options.consistency, namespace: options.namespace },
      {},
      undefined,
      options,
    );
  }

  selectOrchestrator(body, options = {}) {
    return this._json(
      "POST",
      "/api/orchestrator",
      {},
      { strict: options.strict, namespace: options.namespace },
      {},
      body,
      options,
    );
  }

  explainPolicies(body, options = {}) {
    return this._json(
      "POST",
      "/api/policies/explain",
      {},
      { namespace: options.namespace },
      {},
      body,
      options,
    );
  }

  createTrigger(body, options = {}) {
    return this._json(
      "POST",
      "/api/triggers",
      {},
      { strict: options.strict, namespace: options.namespace },
      { "If-None-Match": options.ifNoneMatch, "Idempotency-Key": options.idempotencyKey },
      body,
      options,
    );
  }

  listTriggers(options = {}) {
    return this._json(
      "GET",
      "/api/triggers",
      {},
      { type: options.type, enabled: options.enabled, limit: options.limit, view: options.view, consistency: options.consistency, namespace: options.namespace },
      {},
      undefined,
      options,
    );
  }

  getTrigger(id, options = {}) {
    return this._json(
      "GET",
      "/api/triggers/{id}",
      { id },
      { view: options.view, consistency: options.consistency, namespace: options.namespace },
      {},
      undefined,
      options,
    );
  }

  changeTrigger(id, body, options = {}) {
    return this._json(
      "PUT",
      "/api/triggers/{id}",
      { id },
      { strict: options.strict, namespace: options.namespace },
      { "Idempotency-Key": options.idempotencyKey },
      body,
      options,
    );
  }

  deleteTrigger(id, options = {}) {
    return this._json(
      "DELETE",
      "/api/triggers/{id}",
      { id },
      { namespace: options.namespace },
      { "Idempotency-Key": options.idempotencyKey },
      undefined,
      options,
    );
  }

  fireTrigger(id, options = {}) {
    return this._json(
      "POST",
      "/api/triggers/{id}/fire",
      { id },
      { namespace: options.namespace },
      { "Idempotency-Key": options.idempotencyKey },
      undefined,
      options,
    );
  }

  nextFirings(id, options = {}) {
    return this._json(
      "GET",
      "/api/triggers/{id}/next",
      { id },
      { count: options.count, namespace: options.namespace },
      {},
      undefined,
      options,
    );
  }

  triggerDeliveries(id, options = {}) {
    return this._json(
      "GET",
      "/api/triggers/{id}/deliveries",
      { id },
      { limit: options.limit, namespace: options.namespace },
      {},
      undefined,
      options,
    );
  }

  testTrigger(id, body, options = {}) {
    return this._json(
      "POST",
      "/api/triggers/{id}/test",
      { id },
      { namespace: options.namespace },
      {},
      body,
      options,
    );
  }

  backfillTrigger(id, body, options = {}) {
    return this._json(
      "POST",
      "/api/triggers/{id}/backfill",
      { id },
      { namespace: options.namespace },
      {},
      body,
      options,
    );
  }

  callHook(id, body, options = {}) {
    return this._json(
      "POST",
      "/api/hooks/{id}",
      { id },
      { namespace: options.namespace },
      { "X-Atlas-Signature": options.xAtlasSignature, "X-Atlas-Timestamp": options.xAtlasTimestamp, "X-Atlas-Delivery": options.xAtlasDelivery, "Idempotency-Key": options.idempotencyKey },
      body,
      options,
    );
  }

  health(options = {}) {
    return this._json(
      "GET",
      "/api/health",
      {},
      { consistency: options.consistency },
      {},
      undefined,
      options,
    );
  }

  ready(options = {}) {
    return this._json(
      "GET",
      "/api/ready",
      {},
      { alone: options.alone },
      {},
      undefined,
      options,
    );
  }

  version(options = {}) {
    return this._json(
      "GET",
      "/api/version",
      {},
      {},
      {},
      undefined,
      options,
    );
  }

  figures(options = {}) {
    return this._json(
      "GET",
      "/api/metrics",
      {},
      {},
      {},
      undefined,
      options,
    );
  }

  figuresOfAgent(agent, options = {}) {
    return this._json(
      "GET",
      "/api/metrics/{agent}",
      { agent },
      {},
      {},
      undefined,
      options,
    );
  }

  metrics(options = {}) {
    return this._text(
      "GET",
      "/metrics",
      {},
      {},
      {},
      undefined,
      options,
    );
  }

  errorPage(code, options = {}) {
    return this._text(
      "GET",
      "/errors/{code}",
      { code },
      {},
      {},
      undefined,
      options,
    );
  }

  openApi(options = {}) {
    return this._json(
      "GET",
      "/api/openapi.json",
      {},
      {},
      {},
      undefined,
      options,
    );
  }

  skills(options = {}) {
    return this._json(
      "GET",
      "/api/skills",
      {},
      { consistency: options.consistency, namespace: options.namespace },
      {},
      undefined,
      options,
    );
  }

  deploySkill(body, options = {}) {
    return this._json(
      "POST",
      "/api/skills",
      {},
      { replace: options.replace, namespace: options.namespace },
      {},
      body,
      options,
    );
  }

  getSkill(name, options = {}) {
    return this._json(
      "GET",
      "/api/skills/{name}",
      { name },
      { consistency: options.consistency, namespace: options.namespace },
      {},
      undefined,
      options,
    );
  }

  testSkill(name, body, options = {}) {
    return this._json(
      "POST",
      "/api/skills/{name}/test",
      { name },
      { namespace: options.namespace },
      {},
      body,
      options,
    );
  }

  removeSkill(name, options = {}) {
    return this._json(
      "DELETE",
      "/api/skills/{name}",
      { name },
      { dry_run: options.dryRun, namespace: options.namespace },
      { "If-Match": options.ifMatch, "If-None-Match": options.ifNoneMatch, "Idempotency-Key": options.idempotencyKey },
      undefined,
      options,
    );
  }

  listConversations(options = {}) {
    return this._json(
      "GET",
      "/api/conversations",
      {},
      { consistency: options.consistency, namespace: options.namespace },
      {},
      undefined,
      options,
    );
  }

  getConversation(id, options = {}) {
    return this._json(
      "GET",
      "/api/conversations/{id}",
      { id },
      { consistency: options.consistency, namespace: options.namespace },
      {},
      undefined,
      options,
    );
  }

  branchConversation(id, body, options = {}) {
    return this._json(
      "POST",
      "/api/conversations/{id}/branch",
      { id },
      { namespace: options.namespace },
      { "Idempotency-Key": options.idempotencyKey },
      body,
      options,
    );
  }

  deleteConversation(id, options = {}) {
    return this._json(
      "DELETE",
      "/api/conversations/{id}",
      { id },
      { namespace: options.namespace },
      {},
      undefined,
      options,
    );
  }

  mcpRegistry(options = {}) {
    return this._json(
      "GET",
      "/.well-known/mcp/server.json",
      {},
      { namespace: options.namespace },
      {},
      undefined,
      options,
    );
  }

  getMemory(options = {}) {
    return this._json(
      "GET",
      "/api/memory",
      {},
      { scope: options.scope, consistency: options.consistency, namespace: options.namespace },
      {},
      undefined,
      options,
    );
  }

  writeMemory(body, options = {}) {
    return this._json(
      "POST",
      "/api/memory",
      {},
      { namespace: options.namespace },
      { "Idempotency-Key": options.idempotencyKey },
      body,
      options,
    );
  }

  clearMemory(options = {}) {
    return this._json(
      "DELETE",
      "/api/memory",
      {},
      { scope: options.scope, namespace: options.namespace },
      {},
      undefined,
      options,
    );
  }

  listMemoryEntries(options = {}) {
    return this._json(
      "GET",
      "/api/memory/entries",
      {},
      { scope: options.scope, consistency: options.consistency, namespace: options.namespace },
      {},
      undefined,
      options,
    );
  }

  searchKnowledge(options = {}) {
    return this._json(
      "GET",
      "/api/knowledge/search",
      {},
      { q: options.q, domain: options.domain, tags: options.tags, limit: options.limit, consistency: options.consistency, namespace: options.namespace },
      {},
      undefined,
      options,
    );
  }

  listKnowledge(options = {}) {
    return this._json(
      "GET",
      "/api/knowledge/entries",
      {},
      { domain: options.domain, limit: options.limit, offset: options.offset, consistency: options.consistency, namespace: options.namespace },
      {},
      undefined,
      options,
    );
  }

  storeKnowledge(body, options = {}) {
    return this._json(
      "POST",
      "/api/knowledge/entries",
      {},
      { namespace: options.namespace },
      { "Idempotency-Key": options.idempotencyKey },
      body,
      options,
    );
  }

  getKnowledge(id, options = {}) {
    return this._json(
      "GET",
      "/api/knowledge/entries/{id}",
      { id },
      { consistency: options.consistency, namespace: options.namespace },
      {},
      undefined,
      options,
    );
  }

  changeKnowledge(id, body, options = {}) {
    return this._json(
      "PUT",
      "/api/knowledge/entries/{id}",
      { id },
      { namespace: options.namespace },
      {},
      body,
      options,
    );
  }

  deleteKnowledge(id, options = {}) {
    return this._json(
      "DELETE",
      "/api/knowledge/entries/{id}",
      { id },
      { namespace: options.namespace },
      {},
      undefined,
      options,
    );
  }

  listKnowledgeDomains(options = {}) {
    return this._json(
      "GET",
      "/api/knowledge/domains",
      {},
      { consistency: options.consistency, namespace: options.namespace },
      {},
      undefined,
      options,
    );
  }

  getKnowledgeAcl(options = {}) {
    return this._json(
      "GET",
      "/api/knowledge/acl",
      {},
      { agent: options.agent, consistency: options.consistency, namespace: options.namespace },
      {},
      undefined,
      options,
    );
  }

  listBases(options = {}) {
    return this._json(
      "GET",
      "/api/bases",
      {},
      { consistency: options.consistency, namespace: options.namespace },
      {},
      undefined,
      options,
    );
  }

  createBase(body, options = {}) {
    return this._json(
      "POST",
      "/api/bases",
      {},
      { namespace: options.namespace },
      {},
      body,
      options,
    );
  }

  getBase(name, options = {}) {
    return this._json(
      "GET",
      "/api/bases/{name}",
      { name },
      { consistency: options.consistency, namespace: options.namespace },
      {},
      undefined,
      options,
    );
  }

  changeBase(name, body, options = {}) {
    return this._json(
      "PUT",
      "/api/bases/{name}",
      { name },
      { namespace: options.namespace },
      {},
      body,
      options,
    );
  }

  deleteBase(name, options = {}) {
    return this._json(
      "DELETE",
      "/api/bases/{name}",
      { name },
      { namespace: options.namespace },
      {},
      undefined,
      options,
    );
  }

  rebuildBase(name, body, options = {}) {
    return this._json(
      "POST",
      "/api/bases/{name}/rebuild",
      { name },
      { namespace: options.namespace },
      {},
      body,
      options,
    );
  }

  collectBase(name, options = {}) {
    return this._json(
      "POST",
      "/api/bases/{name}/collect",
      { name },
      { namespace: options.namespace },
      {},
      undefined,
      options,
    );
  }

  listDocuments(name, options = {}) {
    return this._json(
      "GET",
      "/api/bases/{name}/documents",
      { name },
      { source: options.source, after: options.after, limit: options.limit, text: options.text, consistency: options.consistency, namespace: options.namespace },
      {},
      undefined,
      options,
    );
  }

  addDocuments(name, body, options = {}) {
    return this._json(
      "POST",
      "/api/bases/{name}/documents",
      { name },
      { namespace: options.namespace },
      {},
      body,
      options,
    );
  }

  removeDocuments(name, options = {}) {
    return this._json(
      "DELETE",
      "/api/bases/{name}/documents",
      { name },
      { source: options.source, erase: options.erase, namespace: options.namespace },
      {},
      undefined,
      options,
    );
  }

  searchDocuments(name, body, options = {}) {
    return this._json(
      "POST",
      "/api/bases/{name}/search",
      { name },
      { consistency: options.consistency, namespace: options.namespace },
      {},
      body,
      options,
    );
  }

  listUsableModels(options = {}) {
    return this._json(
      "GET",
      "/v1/models",
      {},
      { namespace: options.namespace },
      {},
      undefined,
      options,
    );
  }

  getUsableModel(model, options = {}) {
    return this._json(
      "GET",
      "/v1/models/{model}",
      { model },
      { namespace: options.namespace },
      {},
      undefined,
      options,
    );
  }

  getUsableModelOf(form, model, options = {}) {
    return this._json(
      "GET",
      "/v1/models/{form}/{model}",
      { form, model },
      { namespace: options.namespace },
      {},
      undefined,
      options,
    );
  }

  createChatCompletion(body, options = {}) {
    return this._json(
      "POST",
      "/v1/chat/completions",
      {},
      { namespace: options.namespace },
      { "Idempotency-Key": options.idempotencyKey },
      body,
      options,
    );
  }

  streamCreateChatCompletion(body, options = {}) {
    return this._stream(
      "POST",
      "/v1/chat/completions",
      {},
      { namespace: options.namespace },
      { "Idempotency-Key": options.idempotencyKey },
      body,
      options,
    );
  }

  createCompletion(body, options = {}) {
    return this._json(
      "POST",
      "/v1/completions",
      {},
      { namespace: options.namespace },
      { "Idempotency-Key": options.idempotencyKey },
      body,
      options,
    );
  }

  streamCreateCompletion(body, options = {}) {
    return this._stream(
      "POST",
      "/v1/completions",
      {},
      { namespace: options.namespace },
      { "Idempotency-Key": options.idempotencyKey },
      body,
      options,
    );
  }

  createEmbeddings(body, options = {}) {
    return this._json(
      "POST",
      "/v1/embeddings",
      {},
      { namespace: options.namespace },
      { "Idempotency-Key": options.idempotencyKey },
      body,
      options,
    );
  }

  createResponse(body, options = {}) {
    return this._json(
      "POST",
      "/v1/responses",
      {},
      { namespace: options.namespace },
      { "Idempotency-Key": options.idempotencyKey },
      body,
      options,
    );
  }

  streamCreateResponse(body, options = {}) {
    return this._stream(
      "POST",
      "/v1/responses",
      {},
      { namespace: options.namespace },
      { "Idempotency-Key": options.idempotencyKey },
      body,
      options,
    );
  }

  getResponse(id, options = {}) {
    return this._json(
      "GET",
      "/v1/responses/{id}",
      { id },
      { stream: options.stream, starting_after: options.startingAfter, namespace: options.namespace },
      {},
      undefined,
      options,
    );
  }

  streamGetResponse(id, options = {}) {
    return this._stream(
      "GET",
      "/v1/responses/{id}",
      { id },
      { stream: options.stream, starting_after: options.startingAfter, namespace: options.namespace },
      {},
      undefined,
      options,
    );
  }

  listInputItems(id, options = {}) {
    return this._json(
      "GET",
      "/v1/responses/{id}/input_items",
      { id },
      { limit: options.limit, order: options.order, after: options.after, namespace: options.namespace },
      {},
      undefined,
      options,
    );
  }

  cancelResponse(id, options = {}) {
    return this._json(
      "POST",
      "/v1/responses/{id}/cancel",
      { id },
      { namespace: options.namespace },
      {},
      undefined,
      options,
    );
  }

  deleteResponse(id, options = {}) {
    return this._json(
      "DELETE",
      "/v1/responses/{id}",
      { id },
      { namespace: options.namespace },
      {},
      undefined,
      options,
    );
  }

  securityPolicy(options = {}) {
    return this._json(
      "GET",
      "/api/security/policy",
      {},
      {},
      {},
      undefined,
      options,
    );
  }

  cluster(options = {}) {
    return this._json(
      "GET",
      "/api/cluster",
      {},
      {},
      {},
      undefined,
      options,
    );
  }

  listMembers(options = {}) {
    return this._json(
      "GET",
      "/api/cluster/members",
      {},
      { limit: options.limit, offset: options.offset },
      {},
      undefined,
      options,
    );
  }

  removeMember(member, options = {}) {
    return this._json(
      "DELETE",
      "/api/cluster/members/{member}",
      { member },
      {},
      { "Idempotency-Key": options.idempotencyKey },
      undefined,
      options,
    );
  }

  createJoinToken(body, options = {}) {
    return this._json(
      "POST",
      "/api/cluster/join-tokens",
      {},
      {},
      { "Idempotency-Key": options.idempotencyKey },
      body,
      options,
    );
  }

  revokeJoinToken(body, options = {}) {
    return this._json(
      "POST",
      "/api/cluster/join-tokens/revoke",
      {},
      {},
      { "Idempotency-Key": options.idempotencyKey },
      body,
      options,
    );
  }

  transferLeader(body, options = {}) {
    return this._json(
      "POST",
      "/api/cluster/transfer-leader",
      {},
      {},
      { "Idempotency-Key": options.idempotencyKey },
      body,
      options,
    );
  }

  snapshot(options = {}) {
    return this._bytes(
      "GET",
      "/api/cluster/snapshot",
      {},
      {},
      {},
      undefined,
      options,
    );
  }

  whoami(options = {}) {
    return this._json(
      "GET",
      "/api/auth/whoami",
      {},
      {},
      {},
      undefined,
      options,
    );
  }

  mcpResource(options = {}) {
    return this._json(
      "GET",
      "/.well-known/oauth-protected-resource/mcp",
      {},
      {},
      {},
      undefined,
      options,
    );
  }

  mcpResourceOfAgent(name, options = {}) {
    return this._json(
      "GET",
      "/.well-known/oauth-protected-resource/agents/{name}/mcp",
      { name },
      {},
      {},
      undefined,
      options,
    );
  }

  createToken(body, options = {}) {
    return this._json(
      "POST",
      "/api/auth/tokens",
      {},
      {},
      {},
      body,
      options,
    );
  }

  readAudit(options = {}) {
    return this._json(
      "GET",
      "/api/audit",
      {},
      { cursor: options.cursor, member: options.member, limit: options.limit, principal: options.principal, verb: options.verb, object: options.object, namespace: options.namespace, decision: options.decision, since: options.since, until: options.until },
      {},
      undefined,
      options,
    );
  }
}
