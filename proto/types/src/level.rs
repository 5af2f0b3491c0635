//! Feature levels: one table of what each level adds, so that code names a feature and never a number.
//!
//! A level is active once all members report that they know it; a command of a later level is refused until then. A feature of a
//! new level is one more row at the end: the last row is the level of this program. Rows are never changed or removed, because
//! logs and snapshots carry their numbers.

#[cfg(test)]
mod reference;

/// A feature level: what a member must know to read and to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Level(pub u32);

impl Level {
    /// The level that this program writes.
    pub const CURRENT: Self = FEATURES[FEATURES.len() - 1].level;
}

/// One row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Feature {
    /// The level that has it.
    pub level: Level,
    /// What it adds: one sentence, for the page on upgrades.
    pub text: &'static str,
}

macro_rules! features {
    ($($level:literal $name:ident $text:literal;)*) => {
        $(
            #[doc = $text]
            pub const $name: Level = Level($level);
        )*

        /// All features, by rising level.
        pub const FEATURES: &[Feature] = &[$(Feature { level: $name, text: $text }),*];
    };
}

features! {
    1 FIRST "Agents, nodes, jobs, leases, drains, histories and the limits of the cluster.";

    2 MEMBERSHIP "Controllers join with a token.";
    2 DIGESTS "Members compare the digests of their states.";
    2 DOUBT "A person decides what happens to a job in doubt.";
    2 UNCHECKED_NODES "A worker can switch hardware checks off.";
    2 HISTORIES_FORGOTTEN "The position of a removed member's history is forgotten.";

    3 SPAWN "Jobs spawn child jobs.";
    3 NOT_BEFORE "A job can have a time before which it does not start.";
    3 DEPRECATION "Agent versions can be deprecated.";
    3 RETRY_LIMITS "The spawn depth, retries of deterministic failures and the longest backoff are options of the cluster.";
    3 REPEATED_TOKENS "A request for a join token can be repeated under its request id.";
    3 GENERATED_NAMES "Request ids that a door generated are counted apart from those of clients.";
    3 REFUSED_INPUTS "A retry of a job whose input was refused is refused again.";

    4 DRAIN_DEADLINE "A drain can have a deadline.";
    4 NODE_LABELS "Operators give nodes labels.";

    5 AGENT_NAMES "Names of agents may contain `/`, `\\` and `..`.";
    5 REQUIRED_AGENTS "An agent version names the agents that it requires.";
    5 RETIREMENT_TIMES "The time at which an agent version was retired is noted.";
    5 AGENT_DELETION "Retired agent versions can be deleted, and are deleted after the retention of the cluster.";
    5 REPEATED_VERSIONS "Registering a known agent version again succeeds even when a limit is reached.";
    5 RETRY_BOUNDS "The number of retries and the pause before each are bounded.";
    5 MEMBER_NUMBERS "A join that would exceed the highest member number is refused.";
    5 FORSAKEN_RETRIES "A parent that stops waiting for a child also cancels the child's retry.";
    5 CHECKED_INVENTORIES "Inventories that are too large or list a GPU index twice are refused.";
    5 COUNTED_TEXTS "Labels of jobs and agents count against the payload bytes of the cluster.";
    5 TRIMMED_NAMES "Generated request ids beyond their bound are forgotten.";

    6 DELTAS "Workers send pieces of models' answers as they form.";
    6 STORED_LOGS "The log of a running attempt is stored from time to time.";
    6 LLM_PLACES "Jobs of `llm` agents take places of their own on a node.";
    6 JOURNAL "The state keeps a journal of the steps of a job, and later attempts replay it.";
    6 PARK "A job with a journal can park: it waits for a time, a child or a message without a lease.";
    6 CARRY "A run can carry a job, which then runs without a lease.";
    6 OBJECTS "Objects keep configuration, of the kinds `namespace` and `webhook`.";
    6 MODELS "Objects of the kinds `model` and `tier` describe the models that agents use.";
    6 ATTACHMENTS "Agent versions name the secrets and the model that their jobs use, and a job can carry the credential of its caller.";
    6 BUDGETS "A job can have a budget for its model calls.";
    6 TOOLS "Agents call the tools of the platform.";
    6 SECRETS "Objects of the kind `secret` keep sealed values.";
    6 FORKS "A job can begin with the first steps of another job's journal.";
    6 SKILLS "Objects of the kind `skill` hold packages of skills.";
    6 RUNS "Chains run as replicated runs, and objects of the kind `chain` keep their definitions.";
    6 BRANCHES "Chains have conditions, branches, and retries, time limits and failure policies of their steps.";
    6 TRIGGERS "Objects of the kind `trigger` start jobs.";
    6 PINS "Objects of the kind `pin` name the agents that are MCP tools of their own.";
    6 CONVERSATIONS "Objects of the kind `conversation` hold conversations with agents.";
    6 QUESTIONS "Jobs ask people questions, and a job says what happens to them.";
    6 ORCHESTRATORS "Orchestrators decide on jobs before they run, and objects of the kind `routing` select them.";
    6 ACCESS "Objects of the kinds `token`, `role` and `binding` say who may do what.";
    6 ENROLLMENTS "Objects of the kind `enrollment` name the nodes that may connect where TLS is on.";
    6 MCP_SERVERS "Objects of the kind `mcp-server` describe MCP servers, and agent versions name those that their jobs use.";
    6 RUNNING_LIMITS "Objects of the kind `namespace` limit how many jobs run at once.";
    6 ORCHESTRATOR_RULES "Objects of the kind `orchestrator` hold rules that decide on jobs, and a job names the rule that decided.";
    6 ISSUERS "Objects of the kind `issuer` name issuers whose tokens are accepted.";
    6 FORK_CHANGES "A fork of a graph can set values of its state.";
    6 OTHER_MODELS "Agent versions name further models that their jobs call.";
    6 POLICIES "Objects of the kind `policy` restrict what is deployed and submitted.";
    6 RATES "Contracts and namespaces limit how often jobs start, and contracts limit the jobs of each value of a key.";
    6 ERASURE "What was sent to and made by ended jobs can be erased.";
    6 SHARES "Namespaces share the cluster by weight, and waiting jobs can age.";
    6 EVIDENCE "Jobs keep for their receipts on which nodes they ran, who answered their questions, and which policies allowed them.";
    6 CIRCUITS "Agent versions and nodes on which attempts keep failing take no more jobs for a time.";
    6 APPROVALS "Rules of policies ask people before a job runs.";
    6 PYTHON "Jobs of Python agents go to nodes with Python.";
    6 ENVELOPES "Jobs draw on the budget of the job that spawned them.";
    6 FAREWELL "A worker that stops says so, and its session ends at once.";
    6 RIVALS "A worker that asks for the name of another one is refused, and noted at the node.";
    6 WAITING_FOR_NODES "A job can wait for a node that has what it needs.";
    6 REVISIONS "Agent versions keep the packages that others replaced, and are replaced only if that was asked for.";
    6 TITLES "A job has a title, which says to people what it is about.";
    6 DURABLE "Durable programs record the steps of their own code, messages name channels, a retry can change the rule for questions, and jobs of Node.js agents go to nodes with Node.js.";
    6 SHARED_KNOWLEDGE "Objects of the kinds `memory`, `knowledge` and `base` keep what agents share and search.";
    6 LOCAL_MODELS "Workers run models of the provider `local` themselves.";
}
