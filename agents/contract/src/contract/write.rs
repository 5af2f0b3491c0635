//! The normalised contract: every member with its value, and extensions only if they are set (compatibility §2.1).

use atlas_types::{AgentKind, Effects};
use serde_json::{Map, Value, json};

use super::{
    Contract, ExecMode, Expose, Hardware, KeyLimits, Mcp, Permissions, Provider, RateLimit, Replay, RequiredServer,
    SharedBy,
};

impl Contract {
    /// The contract as JSON, in one fixed order of members.
    pub fn to_json(&self) -> Value {
        let requires = &self.requires;
        let knowledge = &requires.knowledge;
        let agents: Vec<Value> =
            requires.agents.iter().map(|other| json!({"name": other.name, "version": other.version})).collect();
        let mut contract = json!({
            "name": self.name.as_str(),
            "version": self.version_text,
            "type": match self.kind {
                AgentKind::Agent => "agent",
                AgentKind::Orchestrator => "orchestrator",
            },
            "description": self.description,
            "input_schema": self.input_schema,
            "output_schema": self.output_schema,
            "capabilities": self.capabilities,
            "model": {"preference": self.model.preference, "override_allowed": self.model.override_allowed},
            "requires": {
                "platform_tools": requires.platform_tools,
                "spawn_agents": requires.spawn_agents,
                "skills": requires.skills,
                "memory": requires.memory.map_or(Value::Bool(false), SharedBy::to_json),
                "knowledge": {
                    "enabled": knowledge.enabled,
                    "read_domains": knowledge.read_domains,
                    "write_domains": knowledge.write_domains,
                },
                "agents": agents,
            },
            "hardware": hardware(&self.hardware),
            "retry": {"max_retries": self.retry.max_retries, "backoff_base": self.retry.backoff_base},
            "permissions": self.permissions.to_json(),
            "provider": provider(&self.provider),
            "execution_timeout": self.execution_timeout,
        });
        set(&mut contract, "durable", self.durable.then_some(Value::Bool(true)));
        let replay = (self.replay != Replay::Normal).then(|| Value::from(self.replay.as_str()));
        set(&mut contract, "replay", replay);
        let effects = self.effects.map(|effects| match effects {
            Effects::Pure => "pure",
            Effects::Idempotent => "idempotent",
            Effects::Reconcilable => "reconcilable",
            Effects::Once => "once",
        });
        if let Some(model) = contract.get_mut("model") {
            set(model, "name", self.model.name.as_deref().map(Value::from));
            set(model, "others", (!self.model.others.is_empty()).then(|| json!(self.model.others)));
        }
        if let Some(requires) = contract.get_mut("requires") {
            let servers: Vec<Value> = self.requires.mcp_servers.iter().map(server).collect();
            set(requires, "documents", (!self.requires.documents.is_empty()).then(|| json!(self.requires.documents)));
            set(requires, "mcp_servers", (!servers.is_empty()).then_some(Value::Array(servers)));
        }
        set(&mut contract, "effects", effects.map(Value::from));
        set(&mut contract, "max_attempts", self.max_attempts.map(Value::from));
        set(&mut contract, "concurrency", self.concurrency.map(Value::from));
        set(&mut contract, "rate", self.rate.map(RateLimit::to_json));
        set(&mut contract, "per_key", self.per_key.as_ref().map(KeyLimits::to_json));
        set(&mut contract, "max_failures", self.max_failures.map(Value::from));
        set(&mut contract, "title", self.title.as_deref().map(Value::from));
        set(&mut contract, "conversation", self.conversation.as_deref().map(Value::from));
        set(&mut contract, "queue_timeout", self.queue_timeout.map(Value::from));
        set(&mut contract, "startup_timeout", self.startup_timeout.map(Value::from));
        set(&mut contract, "labels", self.labels.as_ref().map(|labels| json!(labels)));
        set(&mut contract, "dependencies", self.packages.as_ref().map(|packages| json!({"packages": packages})));
        contract
    }
}

impl RateLimit {
    fn to_json(self) -> Value {
        let mut rate = json!({"jobs": self.jobs, "seconds": self.seconds});
        set(&mut rate, "burst", self.burst.map(Value::from));
        rate
    }
}

impl KeyLimits {
    fn to_json(&self) -> Value {
        let mut limits = json!({"key": self.key});
        set(&mut limits, "concurrency", self.concurrency.map(Value::from));
        set(&mut limits, "rate", self.rate.map(RateLimit::to_json));
        limits
    }
}

impl Permissions {
    /// The permissions as JSON, in one fixed order of members.
    pub fn to_json(&self) -> Value {
        json!({
            "filesystem": self.filesystem,
            "network": self.network,
            "spawn": self.spawn,
            "max_memory_mb": self.max_memory_mb,
            "max_cpu_seconds": self.max_cpu_seconds,
            "secrets": self.secrets,
            "isolation": self.isolation,
            "container_image": self.container_image,
        })
    }
}

fn server(server: &RequiredServer) -> Value {
    let mut entry = json!({"name": server.name});
    set(&mut entry, "tools", server.tools.clone().map(Value::from));
    set(&mut entry, "expose", (server.expose == Expose::Search).then(|| Value::from("search")));
    entry
}

fn hardware(hardware: &Hardware) -> Value {
    let mut value = json!({
        "gpu": hardware.gpu,
        "gpu_vram_gb": hardware.gpu_vram_gb,
        "min_memory_gb": hardware.min_memory_gb.unwrap_or(1),
        "min_cpu_cores": hardware.min_cpu_cores.unwrap_or(1),
        "architecture": hardware.architecture.as_deref().unwrap_or("any"),
        "node_affinity": hardware.node_affinity,
        "device_access": hardware.device_access,
    });
    set(&mut value, "gpu_count", hardware.gpu_count.map(Value::from));
    set(&mut value, "gpu_vram_bytes", hardware.gpu_vram_bytes.map(Value::from));
    set(&mut value, "node_labels", hardware.node_labels.as_ref().map(|labels| json!(labels)));
    value
}

fn provider(provider: &Provider) -> Value {
    let mut value = json!({
        "type": provider.kind.as_str(),
        "command": provider.command,
        "system_prompt": provider.system_prompt,
        "focus": provider.focus,
        "output_format": provider.output_format,
        "max_iterations": provider.max_iterations,
    });
    let mode = provider.mode.map(|mode| match mode {
        ExecMode::PerJob => "per_job",
        ExecMode::Warm => "warm",
    });
    set(&mut value, "mode", mode.map(Value::from));
    let called = provider.mcp.iter().flat_map(Mcp::members);
    called.for_each(|(name, member)| set(&mut value, &name, Some(member)));
    set(&mut value, "steps", provider.steps.clone().map(Value::from));
    let orchestrator = Some(provider.orchestrator.as_str()).filter(|name| !name.is_empty());
    set(&mut value, "orchestrator", orchestrator.map(Value::from));
    provider.llm.members().into_iter().for_each(|(name, member)| set(&mut value, &name, Some(member)));
    value
}

/// Adds a member if it has a value.
fn set(object: &mut Value, name: &str, value: Option<Value>) {
    let members: Option<&mut Map<String, Value>> = object.as_object_mut();
    if let (Some(members), Some(value)) = (members, value) {
        members.insert(name.to_owned(), value);
    }
}
