//! Policies: what agents may have, and rules on deploying and submitting ([ADR 43](../../../docs/adr/0043-policies.md)).
//!
//! They are evaluated where a version is registered and where the verdict of a job is made, so that triggers, steps of chains, children
//! and retries pass them as well; allowed secrets also where a lease goes out. Each replica keeps them as objects; `apply` knows none.

use std::sync::Arc;

use atlas_contract::Permissions;
use atlas_desk::{Attempted, Caller, Consistency, Error};
use atlas_objects::{PolicyAsk, PolicyRule, PolicySpec};
use atlas_policy::{Decision, Effect, RuleInput, decide};
use atlas_state::State;
use atlas_types::{
    AgentName, AgentVersion, ApprovalAsk, Ask, AskKind, AskingRule, Bounds, CALLED_FROM_METADATA, Failure, FailureKind,
    JOB_APPROVALS_MAX, Job, Micros, Namespace, ObjectName, POLICIES_MAX, PolicyRef, Principal, Verdict,
};
use atlas_vault::not_allowed;
use bytes::Bytes;
use serde_json::{Map, Value, json};

use crate::Registry;
use crate::policies::{Policy, rules_of};
use crate::versions::{find_version, unknown_agent};

/// Members of the permissions that a policy bounds.
const MEMORY: &str = "max_memory_mb";
const CPU: &str = "max_cpu_seconds";
const FILESYSTEM: &str = "filesystem";
const NETWORK: &str = "network";

/// What policies decide on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PolicyOperation {
    Deploy,
    Submit,
}

/// An operation that policies decide on.
pub struct Operation<'a> {
    pub kind: PolicyOperation,
    pub caller: &'a Caller,
    /// The normalised contract of the agent.
    pub contract: &'a Value,
    /// The input of a job.
    pub input: Option<&'a Bytes>,
    pub priority: i64,
}

/// How a job runs again.
#[derive(Debug, Clone, Copy)]
pub struct RunAgain {
    /// What the new job is, in words.
    pub name: &'static str,
    /// True if it is not the same work, so that nobody has approved it.
    pub changes: bool,
}

/// A question which policies would decide what.
#[derive(Debug, Clone)]
pub struct PolicyQuestion {
    pub agent: String,
    /// The version, as for a submission.
    pub version: Option<String>,
    pub operation: PolicyOperation,
    /// The input of the job.
    pub input: Bytes,
    pub priority: i64,
}

/// An operation, in the terms of its rules.
struct Question {
    asked: RuleInput,
    input: Option<Bytes>,
    secrets: Vec<String>,
}

/// The namespace that called a skill, as its job tells it. The metadata of a trigger's job is that of whoever wrote the trigger.
pub fn called_from(job: &Job) -> Option<Namespace> {
    let metadata: Map<String, Value> = serde_json::from_slice(&job.metadata).ok()?;
    if metadata.contains_key("_trigger_id") {
        return None;
    }
    Namespace::new(metadata.get(CALLED_FROM_METADATA)?.as_str()?).ok()
}

impl PolicyOperation {
    fn as_str(self) -> &'static str {
        match self {
            Self::Deploy => "deploy",
            Self::Submit => "submit",
        }
    }
}

impl Registry {
    /// Refuses an operation that a policy does not allow, and says which approvals the others demand.
    pub async fn allowed(&self, state: &State, operation: &Operation<'_>) -> Result<Vec<ApprovalAsk>, Error> {
        let namespace = &operation.caller.namespace;
        let policies = self.policies(state, namespace);
        let decisions = self.decisions(&policies, operation).await?;
        let mut asks = Vec::new();
        let mut denied = None;
        for (policy, Decision { rule, place, effect, why }) in policies.iter().zip(decisions) {
            match (effect, place.and_then(|place| policy.spec.rules.get(place))) {
                (Effect::Allow, _) => {}
                // A skill is a part of the job that calls it, which was asked about. Nobody answers in the namespace of skills.
                (Effect::Ask, _) if namespace.is_of_skills() => {}
                // A deployment has nothing that could wait; a rule that asks about one is refused as an object.
                (Effect::Ask, Some(rule)) if operation.kind == PolicyOperation::Submit => {
                    if asks.len() < JOB_APPROVALS_MAX {
                        asks.push(approval(policy, rule, operation));
                    } else {
                        let why = Some(format!("more than {JOB_APPROVALS_MAX} policies ask"));
                        denied = Some(Error::PolicyDenied {
                            policy: policy.name.clone(),
                            rule: Some(rule.name.clone()),
                            why,
                        });
                    }
                }
                _ => denied = Some(Error::PolicyDenied { policy: policy.name.clone(), rule, why }),
            }
            if denied.is_some() {
                break;
            }
        }
        let Some(error) = denied else { return Ok(asks) };
        let agent = operation.contract["name"].as_str().unwrap_or_default();
        let verb = match operation.kind {
            PolicyOperation::Deploy => "registerAgent",
            PolicyOperation::Submit => "submitJob",
        };
        let attempted = Attempted { verb, object: &format!("agent/{agent}") };
        self.desk.audit.denied(operation.caller, attempted, &error).await;
        Err(error)
    }

    /// Whether no policy denies an operation, for lists of what a caller may use. It records nothing; the operation itself is judged when it is
    /// asked for.
    pub async fn would_allow(&self, state: &State, operation: &Operation<'_>) -> Result<bool, Error> {
        let policies = self.policies(state, &operation.caller.namespace);
        let decisions = self.decisions(&policies, operation).await?;
        Ok(decisions.iter().all(|decision| decision.effect != Effect::Deny))
    }

    /// Refuses to register a contract that a policy does not allow.
    pub async fn may_deploy(&self, caller: &Caller, state: &State, contract: &Value) -> Result<(), Error> {
        let operation = Operation { kind: PolicyOperation::Deploy, caller, contract, input: None, priority: 0 };
        self.allowed(state, &operation).await.map(drop)
    }

    /// The verdict on a job whose input its contract accepts. A client is refused; what nobody waits for becomes a failed job.
    pub async fn under_policies(
        &self,
        state: &State,
        agent: &AgentVersion,
        operation: Operation<'_>,
        is_client: bool,
    ) -> Result<Verdict, Error> {
        let pin = atlas_types::AgentPin { version: agent.version, digest: agent.digest };
        match self.allowed(state, &operation).await {
            Ok(asks) if asks.is_empty() => Ok(Verdict::Accepted(pin)),
            Ok(asks) => Ok(Verdict::Asked { pin, asks }),
            Err(error @ Error::PolicyDenied { .. }) if !is_client => {
                let error = format!("{}: {error}", error.entry().code);
                let failure = Failure { kind: FailureKind::Rejected, error: error.into() };
                // Without a version, the contract's retries do not run what was denied.
                Ok(Verdict::Refused { pin: None, failure })
            }
            Err(error) => Err(error),
        }
    }

    /// Refuses to run a job again that a policy does not allow, or about which one asks: the new job would not wait. Who submitted the job
    /// and got an approval needs no second one for the same.
    pub async fn may_run_again(
        &self,
        caller: &Caller,
        state: &State,
        job: &Job,
        agent: &AgentVersion,
        what: RunAgain,
    ) -> Result<(), Error> {
        if self.policies(state, &job.namespace).is_empty() {
            return Ok(());
        }
        let (known, input) = (self.contract(agent).await?, self.desk.bytes(&job.input).await?);
        let operation = Operation {
            kind: PolicyOperation::Submit,
            caller,
            contract: &known.value,
            input: Some(&input),
            priority: job.priority,
        };
        let is_same = !what.changes && job.pin.as_ref().is_some_and(|pin| pin.digest == agent.digest);
        let holds = |rule: &AskingRule| is_same && has_approval(job, &caller.principal, rule);
        match self.allowed(state, &operation).await?.into_iter().find(|ask| !holds(&ask.rule)) {
            None => Ok(()),
            Some(ApprovalAsk { rule, .. }) => {
                let AskingRule { policy, rule, .. } = &*rule;
                Err(Error::ApprovalNeeded { policy: policy.to_string(), rule: rule.to_string(), what: what.name })
            }
        }
    }

    /// The secret of a job that a policy of its namespace keeps from it.
    pub fn forbidden_secret<'a>(&self, state: &State, job: &'a Job) -> Option<&'a str> {
        let policies = self.policies(state, &job.namespace);
        let mut secrets = job.spec.iter().flat_map(|spec| &spec.secrets).map(|secret| &**secret);
        secrets.find(|secret| policies.iter().any(|policy| !policy.allows(secret)))
    }

    /// What policies leave the agent of a job; none if they bound nothing.
    pub fn bounds_of(&self, state: &State, job: &Job) -> Option<Bounds> {
        Some(bounds(&self.policies_on(state, job))).filter(|bounds| !bounds.is_empty())
    }

    /// The policies that bound a job, by name: those of its namespace, and for a run of a skill also those of the namespace that called it.
    /// All of them if the job does not tell which one that was.
    fn policies_on(&self, state: &State, job: &Job) -> Vec<Arc<Policy>> {
        if !job.namespace.is_of_skills() {
            return self.policies(state, &job.namespace);
        }
        let caller = called_from(job);
        let counts = |policy: &PolicySpec| {
            policy.is_in(&job.namespace) || caller.as_ref().is_none_or(|caller| policy.is_in(caller))
        };
        self.policies.those(state, counts)
    }

    /// The permissions that policies leave the agent of a job, and the names of these policies.
    pub async fn policies_of_job(&self, caller: &Caller, text: &str) -> Result<Value, Error> {
        let id = self.desk.job_id(caller, text).await?;
        let state = self.desk.state(Consistency::Linearizable).await?;
        let job = self.desk.job_in(caller, &state, id).await?;
        let version = job.pin.as_ref().and_then(|pin| state.agent(&job.namespace, &job.agent, pin.version));
        let contract = match version {
            Some(version) => self.contract(version).await?.value.clone(),
            None => Value::Null,
        };
        Ok(shown(&self.policies_on(&state, &job), &contract))
    }

    /// Which policies would allow or deny an operation of this caller, and why.
    pub async fn explain_policies(&self, caller: &Caller, question: &PolicyQuestion) -> Result<Value, Error> {
        let name = AgentName::new(&question.agent)?;
        let state = self.desk.state(Consistency::Linearizable).await?;
        let version = question.version.as_deref();
        let found = find_version(&state, caller, &name, version)?;
        let agent = found.ok_or_else(|| unknown_agent(&state, caller, name.as_str(), version))?;
        let known = self.contract(&agent).await?;
        let operation = Operation {
            kind: question.operation,
            caller,
            contract: &known.value,
            input: (question.operation == PolicyOperation::Submit).then_some(&question.input),
            priority: question.priority,
        };
        let policies = self.policies(&state, &operation.caller.namespace);
        let decisions = self.decisions(&policies, &operation).await?;
        let mut answer = shown(&policies, &known.value);
        answer["operation"] = operation.kind.as_str().into();
        answer["principal"] = caller.principal.as_str().into();
        answer["agent"] = agent.name.as_str().into();
        answer["version"] = agent.version.to_string().into();
        let effect = decisions.iter().map(|decision| decision.effect).max().unwrap_or(Effect::Allow);
        answer["allowed"] = (effect != Effect::Deny).into();
        answer["effect"] = effect.as_str().into();
        let decision = |(policy, Decision { rule, effect, why, .. }): (&Arc<Policy>, Decision)| {
            let allowed = effect != Effect::Deny;
            json!({ "policy": policy.name, "rule": rule, "allowed": allowed, "effect": effect.as_str(), "why": why })
        };
        answer["decisions"] = policies.iter().zip(decisions).map(decision).collect();
        Ok(answer)
    }

    /// The policies that count in a namespace, as its jobs name them. Those beyond the bound of a job are left out.
    pub fn policies_of(&self, state: &State, namespace: &Namespace) -> Vec<PolicyRef> {
        let policies = self.policies(state, namespace);
        policies.iter().take(POLICIES_MAX).map(|policy| policy.reference.clone()).collect()
    }

    /// The policies that count in a namespace, by name.
    fn policies(&self, state: &State, namespace: &Namespace) -> Vec<Arc<Policy>> {
        self.policies.of(state, namespace)
    }

    /// What each policy decides. Rules take their time, so they are evaluated on a blocking thread.
    async fn decisions(&self, policies: &[Arc<Policy>], operation: &Operation<'_>) -> Result<Vec<Decision>, Error> {
        if policies.is_empty() {
            return Ok(Vec::new());
        }
        let (policies, question) = (policies.to_vec(), Question::of(policies, operation));
        if !policies.iter().any(|policy| policy.is_about(question.asked.operation)) {
            return Ok(question.decided(&policies));
        }
        let decided = self.desk.env.spawn_blocking("evaluate-policies", move || question.decided(&policies));
        decided.join().await.map_err(|_| Error::Internal)
    }
}

impl Question {
    fn of(policies: &[Arc<Policy>], operation: &Operation<'_>) -> Self {
        let agent = capped(policies, operation.contract);
        let secrets = agent.pointer("/permissions/secrets").and_then(Value::as_array).into_iter().flatten();
        Self {
            secrets: secrets.filter_map(Value::as_str).map(str::to_owned).collect(),
            asked: RuleInput {
                operation: operation.kind.as_str(),
                principal: operation.caller.principal.to_string(),
                namespace: operation.caller.namespace.to_string(),
                agent,
                input: Value::Null,
                priority: operation.priority,
            },
            input: operation.input.cloned(),
        }
    }

    /// What each policy decides.
    fn decided(mut self, policies: &[Arc<Policy>]) -> Vec<Decision> {
        if let Some(input) = &self.input {
            self.asked.input = serde_json::from_slice(input).unwrap_or_default();
        }
        let mut steps = 0;
        policies.iter().map(|policy| self.decision(policy, &mut steps)).collect()
    }

    fn decision(&self, policy: &Policy, steps: &mut u64) -> Decision {
        let denied = |why: String| Decision { rule: None, place: None, effect: Effect::Deny, why: Some(why) };
        if let Some(secret) = self.secrets.iter().find(|secret| !policy.allows(secret)) {
            return denied(not_allowed(secret));
        }
        match &policy.rules {
            Ok(rules) => decide(rules, &self.asked, steps),
            Err(error) => denied(format!("the policy cannot be read: {error}")),
        }
    }
}

/// Whether a principal submitted a job and got the approval that a rule demands.
fn has_approval(job: &Job, principal: &Principal, rule: &AskingRule) -> bool {
    let approvals = job.approvals.iter().flat_map(|approvals| &approvals.all);
    // What was approved before a redirect was another agent.
    let mut approved = approvals.filter(|approval| approval.by.is_some() && approval.agent == job.agent);
    job.principal == *principal && approved.any(|approval| approval.policy == rule.policy && approval.rule == rule.rule)
}

/// The question of a rule whether a job may run.
fn approval(policy: &Policy, rule: &PolicyRule, operation: &Operation<'_>) -> ApprovalAsk {
    let ask = rule.ask.clone().unwrap_or_default();
    let contract = |member: &str| operation.contract[member].as_str().unwrap_or_default();
    let (agent, version, principal) = (contract("name"), contract("version"), &operation.caller.principal);
    let mut prompt = format!("May {principal} run {agent} {version} with priority {}?", operation.priority);
    prompt += &format!(" The rule \"{}\" of the policy \"{}\" asks.", rule.name, policy.name);
    if let Some(message) = &rule.message {
        prompt += &format!("\n{message}");
    }
    let seconds = ask.timeout_seconds.unwrap_or(PolicyAsk::TIMEOUT_SECONDS);
    // The kind has checked the names.
    let answerers = ask.principals.iter().flatten().filter_map(|name| Principal::new(name).ok()).collect();
    let role = ask.role.as_deref().and_then(|role| ObjectName::new(role).ok());
    let own = ask.own.unwrap_or(false);
    let rule = AskingRule { policy: policy.reference.name.clone(), rule: rule.name.as_str().into(), role, own };
    let ask = Ask {
        kind: AskKind::Approve { options: Vec::new(), other: true },
        prompt: prompt.into(),
        answerers,
        timeout: Some(Micros::from_secs(seconds)),
        default: None,
    };
    ApprovalAsk { rule: Arc::new(rule), ask: Arc::new(ask) }
}

/// What is wrong with the rules of a policy. Doors refuse it.
pub fn refusal_of(spec: &[u8]) -> Option<String> {
    rules_of(&PolicySpec::read(spec).ok()?).err()
}

/// A contract with the permissions that are left to the agent.
fn capped(policies: &[Arc<Policy>], contract: &Value) -> Value {
    let mut contract = contract.clone();
    let bounds = bounds(policies);
    let is_container = contract.pointer("/permissions/isolation").is_some_and(|isolation| isolation == "container")
        && contract.pointer("/provider/type").is_some_and(|kind| kind == "python" || kind == "exec");
    if let Some(permissions) = contract.get_mut("permissions").and_then(Value::as_object_mut) {
        let defaults = Permissions::default();
        // A default binds only a container, and of the amounts only the memory. The contract does not tell it from the same amount
        // where that is stated.
        let unbinding = [(!is_container).then_some(defaults.max_memory_mb), Some(defaults.max_cpu_seconds)];
        let amounts = [(MEMORY, bounds.memory_mb), (CPU, bounds.cpu_seconds)];
        for ((member, cap), unbinding) in amounts.into_iter().zip(unbinding) {
            let Some(cap) = cap else { continue };
            // An amount of 0 or less means no limit, so the limit of the policy counts.
            let asked = permissions.get(member).and_then(Value::as_i64).filter(|asked| Some(*asked) != unbinding);
            let asked = asked.and_then(|asked| u64::try_from(asked).ok()).filter(|asked| *asked > 0);
            permissions.insert(member.to_owned(), asked.map_or(cap, |asked| asked.min(cap)).into());
        }
        let words = |permissions: &Map<String, Value>, member: &str| -> Vec<String> {
            let words = permissions.get(member).and_then(Value::as_array).into_iter().flatten();
            words.filter_map(Value::as_str).map(str::to_owned).collect()
        };
        if bounds.filesystem.is_some() {
            let left = bounds.files_left(&words(permissions, FILESYSTEM));
            permissions.insert(FILESYSTEM.to_owned(), left.into());
        }
        if bounds.network.is_some() {
            let left = bounds.network_left(&words(permissions, NETWORK));
            permissions.insert(NETWORK.to_owned(), left.into());
        }
    }
    contract
}

/// What all policies leave.
fn bounds(policies: &[Arc<Policy>]) -> Bounds {
    policies.iter().map(|policy| policy.spec.bounds()).fold(Bounds::default(), Bounds::and)
}

fn shown(policies: &[Arc<Policy>], contract: &Value) -> Value {
    let permissions = capped(policies, contract).get_mut("permissions").map(Value::take);
    let names: Vec<&str> = policies.iter().map(|policy| policy.name.as_str()).collect();
    json!({ "permissions": permissions.unwrap_or_else(|| Value::Object(Map::new())), "policies": names })
}

#[cfg(test)]
mod tests {
    use atlas_types::{Digest, EventSeq};

    use super::*;

    /// The amounts that a policy leaves an agent.
    fn left(permissions: &str, (memory, cpu): (i64, i64)) -> (i64, i64) {
        let text =
            format!("agent:\n  name: a\n  version: 1.0.0\n  provider: {{type: exec, command: [x]}}\n{permissions}");
        let contract = atlas_contract::parse(text.as_bytes()).expect("a contract").to_json();
        let name = ObjectName::new("p").expect("a name");
        let policy = Policy {
            name: "p".to_owned(),
            reference: PolicyRef { name, revision: EventSeq(1), digest: Digest([0; 32]) },
            spec: PolicySpec { max_memory_mb: Some(memory), max_cpu_seconds: Some(cpu), ..PolicySpec::default() },
            rules: Ok(Vec::new()),
        };
        let shown = capped(&[Arc::new(policy)], &contract);
        let amount = |member: &str| shown["permissions"][member].as_i64().unwrap_or_default();
        (amount(MEMORY), amount(CPU))
    }

    #[test]
    fn what_is_shown_is_what_workers_enforce() {
        assert_eq!(left("", (1_024, 300)), (1_024, 300));
        assert_eq!(left("", (64, 5)), (64, 5));
        assert_eq!(left("  permissions: {max_memory_mb: 700, max_cpu_seconds: 70}\n", (1_024, 300)), (700, 70));
        assert_eq!(left("  permissions: {max_memory_mb: 0, max_cpu_seconds: -1}\n", (1_024, 300)), (1_024, 300));
        let container = "  permissions: {isolation: container, container_image: i}\n";
        assert_eq!(left(container, (1_024, 300)), (512, 300));
        assert_eq!(left(container, (64, 5)), (64, 5));
    }
}
