//! Converts a YAML document to a [`Contract`]: all rules are checked first, then the values are converted.

use std::sync::LazyLock;

use atlas_types::{AgentKind, AgentName, Effects, NodeId, Version};
use serde_json::{Value, json};

use super::members::{Conversions, Members};
use super::{
    Contract, ContractError, Dependency, ExecMode, Expose, Hardware, KeyLimits, Knowledge, Llm, Mcp, Model,
    Permissions, Provider, ProviderKind, RateLimit, Replay, RequiredServer, Requires, Retry, SharedBy, StatedLimits,
    durable, effect, keys,
};
use crate::document::{Wrapped, told};
use crate::python;
use crate::schema::Validator;
use crate::violation::{Violation, member, nearest};
use crate::yaml::{Document, Foreign};

/// The rules that JSON Schema can express.
static RULES: LazyLock<Validator> = LazyLock::new(|| {
    // The rules are a constant; a mistake in them fails every test of this crate.
    let rules = serde_json::from_str(include_str!("rules.json")).expect("the rules are JSON");
    Validator::compile(&rules).expect("the rules are a schema")
});

pub(super) fn contract(document: Document) -> Result<Contract, ContractError> {
    let document = Wrapped::new(document, "agent").map_err(|got| ContractError::NotAMapping { got })?;
    let value = &document.value;
    let mut violations = RULES.validate(value).err().unwrap_or_default();
    for (pointer, found) in &document.foreign {
        let missed = taken_for_null(pointer, found, &violations);
        violations.extend(missed);
    }
    for violation in &mut violations {
        document.name_foreign(violation);
        suggest(violation, value);
    }
    let agent = Members::of(value.get("agent"));
    let name = agent.text("name", "");
    let name = AgentName::new(&name).map_err(|error| error.to_string());
    let version = agent.text("version", "").parse::<Version>().map_err(|error| error.to_string());
    let node = agent.members("hardware").text("node_affinity", "");
    let node = if node.is_empty() { None } else { NodeId::new(&node).err().map(|error| error.to_string()) };
    let unreadable = [
        ("/agent/name", name.as_ref().err()),
        ("/agent/version", version.as_ref().err()),
        ("/agent/hardware/node_affinity", node.as_ref()),
    ];
    for (at, message) in unreadable {
        let told = |violation: &Violation| at == violation.pointer || is_missing(at, violation);
        if let Some(message) = message.filter(|_| !violations.iter().any(told)) {
            violations.push(Violation {
                pointer: at.to_owned(),
                rule: "pattern".to_owned(),
                message: message.clone(),
                suggestion: None,
            });
        }
    }
    let (Ok(name), Ok(version), true) = (name, version, violations.is_empty()) else {
        return Err(ContractError::Rules { plain: plain(value, &violations, document.foreign.is_empty()), violations });
    };
    let mut conversions = Conversions::default();
    let mut contract = typed(&agent, name, version, &mut conversions);
    durable::check(&contract, &mut conversions);
    conversions.violations.iter_mut().for_each(|violation| document.name_foreign(violation));
    if !conversions.violations.is_empty() {
        return Err(ContractError::Conversion { violations: conversions.violations });
    }
    contract.warnings = keys::unknown(RULES.schema(), value);
    contract.warnings.extend(effect::without(value, contract.provider.kind));
    contract.warnings.extend(durable::without_effect(&contract));
    Ok(contract)
}

/// The violations in Atlas's own words. Empty where the document has values that JSON cannot represent: only the other texts name those.
fn plain(value: &Value, violations: &[Violation], is_json: bool) -> Vec<Violation> {
    if !is_json {
        return Vec::new();
    }
    let mut plain = RULES.explain(value);
    // What no rule of the schema says.
    let unruled = |violation: &&Violation| {
        violation.rule == "pattern" && !plain.iter().any(|known| known.pointer == violation.pointer)
    };
    let unruled: Vec<Violation> = violations.iter().filter(unruled).cloned().collect();
    plain.extend(unruled);
    plain
}

/// A violation for a value that JSON cannot represent. The rules saw null in its place, and accept null but not this
/// value.
fn taken_for_null(pointer: &str, found: &Foreign, violations: &[Violation]) -> Option<Violation> {
    let rule = rule_at(pointer)?;
    // A rule with `properties` requires a mapping; null is accepted only as an empty mapping.
    let keywords = [("oneOf", "oneOf"), ("type", "type"), ("properties", "type")];
    let (_, keyword) = keywords.into_iter().find(|(stated, _)| rule.get(stated).is_some())?;
    // An enclosing value may have violations too. Only a violation of its whole shape makes this one redundant.
    let shapes = ["type", "oneOf", "enum"];
    let covers = |violation: &Violation| {
        let below = pointer.strip_prefix(&violation.pointer).is_some_and(|rest| rest.starts_with('/'));
        violation.pointer == pointer || below && shapes.contains(&violation.rule.as_str())
    };
    if violations.iter().any(covers) {
        return None;
    }
    let message = format!("{} is not allowed here", told(found));
    Some(Violation { pointer: pointer.to_owned(), rule: keyword.to_owned(), message, suggestion: None })
}

/// Whether the violation reports that the value at a pointer, or a value that contains it, is missing or has the wrong
/// type.
fn is_missing(at: &str, violation: &Violation) -> bool {
    let Some((above, name)) = at.rsplit_once('/') else { return false };
    let whole = violation.rule == "type" && at.starts_with(&violation.pointer);
    let absent = violation.rule == "required"
        && (violation.pointer == "/"
            || violation.pointer == above && violation.message.starts_with(&python::string(name)));
    whole || absent
}

/// The rule for the value at a pointer.
fn rule_at(pointer: &str) -> Option<&'static Value> {
    pointer.split('/').skip(1).try_fold(RULES.schema(), |rule, part| {
        let named = rule.get("properties").and_then(|members| members.get(part));
        named.or_else(|| rule.get("items"))
    })
}

/// Adds a similar known name to a violation about names.
fn suggest(violation: &mut Violation, value: &Value) {
    let at = if violation.pointer == "/" { "" } else { &violation.pointer };
    let Some(found) = value.pointer(at) else { return };
    let Some(rule) = rule_at(at) else { return };
    let known = |key: &str| -> Vec<&str> {
        match rule.get(key) {
            Some(Value::Object(members)) => members.keys().map(String::as_str).collect(),
            Some(Value::Array(items)) => items.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        }
    };
    let meant = match (violation.rule.as_str(), found) {
        ("additionalProperties", Value::Object(members)) => {
            let known = known("properties");
            let unknown = members.keys().find(|name| !known.contains(&name.as_str()));
            unknown.and_then(|name| nearest(name, known))
        }
        ("required", Value::Object(members)) => {
            let missing =
                known("required").into_iter().find(|name| violation.message.starts_with(&python::string(name)));
            missing
                .and_then(|missing| members.keys().find(|name| nearest(name, [missing]).is_some()))
                .map(String::as_str)
        }
        ("enum", Value::String(text)) => nearest(text, known("enum")),
        _ => None,
    };
    violation.suggestion = meant.map(str::to_owned);
}

fn typed(agent: &Members<'_>, name: AgentName, version: Version, conversions: &mut Conversions) -> Contract {
    let schema = |key: &str| match agent.members(key).get("schema") {
        Some(Value::Object(members)) if !members.is_empty() => Value::Object(members.clone()),
        _ => json!({"type": "object"}),
    };
    let model = agent.members("model");
    let dependencies = agent.members("dependencies");
    let text_of = |key| agent.get(key).and_then(Value::as_str);
    Contract {
        name,
        version,
        version_text: agent.text("version", ""),
        kind: if text_of("type") == Some("orchestrator") { AgentKind::Orchestrator } else { AgentKind::Agent },
        description: agent.text("description", ""),
        input_schema: schema("input"),
        output_schema: schema("output"),
        capabilities: agent.texts("capabilities").unwrap_or_default(),
        model: Model {
            preference: model.text("preference", "balanced"),
            name: model.get("name").and_then(Value::as_str).map(str::to_owned),
            others: model.texts("others").unwrap_or_default(),
            override_allowed: model.flag("override_allowed", true),
        },
        requires: requires(agent.members("requires")),
        hardware: hardware(agent.members("hardware")),
        retry: retry(*agent, conversions),
        permissions: permissions(*agent, conversions),
        has_permissions: !agent.get("permissions").is_none_or(Value::is_null),
        states_access: ["filesystem", "file_system", "network"]
            .iter()
            .any(|name| !agent.members("permissions").get(name).is_none_or(Value::is_null)),
        states_model: !agent.get("model").is_none_or(Value::is_null),
        stated_limits: stated_limits(*agent),
        provider: provider(*agent, conversions),
        execution_timeout: conversions.seconds(*agent, "/agent", "execution_timeout").unwrap_or(60.0),
        durable: agent.flag("durable", false),
        replay: Replay::read(*agent),
        effects: text_of("effects").map(|word| match word {
            "pure" => Effects::Pure,
            "reconcilable" => Effects::Reconcilable,
            "once" => Effects::Once,
            _ => Effects::Idempotent,
        }),
        max_attempts: agent.amount("max_attempts").and_then(|count| u32::try_from(count).ok()),
        concurrency: agent.amount("concurrency").map(|count| u32::try_from(count).unwrap_or(u32::MAX)),
        rate: rate(agent.get("rate")),
        per_key: per_key(agent.get("per_key")),
        max_failures: agent.amount("max_failures").and_then(|count| u32::try_from(count).ok()),
        title: text_of("title").map(str::to_owned),
        conversation: text_of("conversation").map(str::to_owned),
        queue_timeout: conversions.seconds(*agent, "/agent", "queue_timeout"),
        startup_timeout: conversions.seconds(*agent, "/agent", "startup_timeout"),
        labels: agent.map("labels"),
        packages: dependencies.texts("packages"),
        warnings: Vec::new(),
    }
}

/// The rules have checked the numbers.
fn rate(rate: Option<&Value>) -> Option<RateLimit> {
    let rate = Members::of(Some(rate.filter(|rate| !rate.is_null())?));
    let number = |name| rate.amount(name).map(|number| u32::try_from(number).unwrap_or(u32::MAX));
    Some(RateLimit { jobs: number("jobs")?, seconds: number("seconds")?, burst: number("burst") })
}

fn per_key(limits: Option<&Value>) -> Option<KeyLimits> {
    let limits = Members::of(Some(limits.filter(|limits| !limits.is_null())?));
    Some(KeyLimits {
        key: limits.text("key", ""),
        concurrency: limits.amount("concurrency").map(|count| u32::try_from(count).unwrap_or(u32::MAX)),
        rate: rate(limits.get("rate")),
    })
}

fn requires(requires: Members<'_>) -> Requires {
    let any = || vec!["*".to_owned()];
    let knowledge = requires.members("knowledge");
    let enabled = match requires.get("knowledge") {
        Some(Value::Object(members)) => !members.is_empty(),
        Some(Value::Bool(enabled)) => *enabled,
        _ => false,
    };
    let dependency = |value: &Value| match value {
        Value::String(name) => Dependency { name: name.clone(), version: "*".to_owned() },
        entry => {
            let entry = Members::of(Some(entry));
            Dependency { name: entry.text("name", ""), version: entry.text("version", "*") }
        }
    };
    let agents = requires.get("agents").and_then(Value::as_array);
    let servers = requires.get("mcp_servers").and_then(Value::as_array);
    Requires {
        platform_tools: requires.flag("platform_tools", false),
        spawn_agents: requires.flag("spawn_agents", false),
        skills: requires.texts("skills").unwrap_or_default(),
        memory: requires.get("memory").and_then(SharedBy::read),
        knowledge: Knowledge {
            enabled,
            read_domains: knowledge.texts("read_domains").unwrap_or_else(any),
            write_domains: knowledge.texts("write_domains").unwrap_or_default(),
        },
        documents: requires.texts("documents").unwrap_or_default(),
        agents: agents.map(|agents| agents.iter().map(dependency).collect()).unwrap_or_default(),
        mcp_servers: servers.map(|servers| servers.iter().map(server).collect()).unwrap_or_default(),
    }
}

fn server(entry: &Value) -> RequiredServer {
    if let Value::String(name) = entry {
        return RequiredServer { name: name.clone(), tools: None, expose: Expose::Tools };
    }
    let entry = Members::of(Some(entry));
    let expose = if entry.text("expose", "tools") == "search" { Expose::Search } else { Expose::Tools };
    RequiredServer { name: entry.text("name", ""), tools: entry.texts("tools"), expose }
}

fn hardware(hardware: Members<'_>) -> Hardware {
    Hardware {
        gpu: hardware.flag("gpu", false),
        gpu_vram_gb: hardware.amount("gpu_vram_gb").unwrap_or(0),
        min_memory_gb: hardware.amount("min_memory_gb"),
        min_cpu_cores: hardware.amount("min_cpu_cores"),
        architecture: hardware.get("architecture").and_then(Value::as_str).map(str::to_owned),
        node_affinity: hardware.text("node_affinity", ""),
        device_access: hardware.texts("device_access").unwrap_or_default(),
        gpu_count: hardware.amount("gpu_count"),
        gpu_vram_bytes: hardware.amount("gpu_vram_bytes"),
        node_labels: hardware.map("node_labels"),
    }
}

fn retry(agent: Members<'_>, conversions: &mut Conversions) -> Retry {
    let retry = conversions.mapping(agent, "retry");
    Retry {
        max_retries: conversions.int(retry, "/agent/retry", "max_retries", 0),
        backoff_base: conversions.seconds(retry, "/agent/retry", "backoff_base").unwrap_or(2.0),
    }
}

fn permissions(agent: Members<'_>, conversions: &mut Conversions) -> Permissions {
    let mut permissions = permissions_in(conversions.mapping(agent, "permissions"), "/agent/permissions", conversions);
    // An alternative spelling; the normal one takes precedence.
    let named = agent.members("permissions").get("secrets").is_some();
    if let Some(secrets) = agent.members("requires").texts("secrets").filter(|_| !named) {
        permissions.secrets = secrets;
    }
    permissions
}

/// The limits that `permissions` states. A number that cannot be read is reported where the permissions are read.
fn stated_limits(agent: Members<'_>) -> StatedLimits {
    let permissions = agent.members("permissions");
    let stated = |name: &str| {
        let amount = Conversions::default().int(permissions, "", name, 0);
        u64::try_from(amount).ok().filter(|amount| *amount > 0)
    };
    StatedLimits { memory_mb: stated("max_memory_mb"), cpu_seconds: stated("max_cpu_seconds") }
}

/// The permissions in a mapping at a pointer.
fn permissions_in(permissions: Members<'_>, at: &str, conversions: &mut Conversions) -> Permissions {
    let defaults = Permissions::default();
    let isolation = permissions.get("isolation").unwrap_or(&Value::Null);
    let isolation = match isolation.as_str() {
        Some(word @ ("process" | "container")) => word.to_owned(),
        None if permissions.get("isolation").is_none() => defaults.isolation,
        _ => {
            let message =
                format!("Invalid isolation mode {}, must be one of: ['container', 'process']", python::repr(isolation));
            conversions.value(&member(at, "isolation"), message);
            String::new()
        }
    };
    let filesystem = conversions.texts(permissions, at, "filesystem");
    let filesystem = filesystem.or_else(|| conversions.texts(permissions, at, "file_system"));
    Permissions {
        filesystem: filesystem.unwrap_or(defaults.filesystem),
        network: conversions.texts(permissions, at, "network").unwrap_or(defaults.network),
        spawn: conversions.flag(permissions, at, "spawn"),
        max_memory_mb: conversions.int(permissions, at, "max_memory_mb", defaults.max_memory_mb),
        max_cpu_seconds: conversions.int(permissions, at, "max_cpu_seconds", defaults.max_cpu_seconds),
        secrets: conversions.texts(permissions, at, "secrets").unwrap_or_default(),
        isolation,
        container_image: conversions.text(permissions, at, "container_image"),
    }
}

impl Permissions {
    /// Reads a mapping with the keys and the rules of `permissions` in a contract. `at` is its JSON pointer, for the violations.
    pub fn read(mapping: &Value, at: &str) -> Result<Self, Vec<Violation>> {
        let mut conversions = Conversions::default();
        if !mapping.is_object() {
            conversions.wrong(at, format!("{} is not a mapping", python::repr(mapping)));
        }
        let permissions = permissions_in(Members::of(Some(mapping)), at, &mut conversions);
        if conversions.violations.is_empty() { Ok(permissions) } else { Err(conversions.violations) }
    }
}

fn provider(agent: Members<'_>, conversions: &mut Conversions) -> Provider {
    let word = agent.get("provider").and_then(Value::as_str);
    let provider = agent.members("provider");
    let kind = word.map_or_else(|| provider.text("type", "python"), str::to_owned);
    Provider {
        kind: match kind.as_str() {
            "node" => ProviderKind::Node,
            "exec" => ProviderKind::Exec,
            "llm" => ProviderKind::Llm,
            "graph" => ProviderKind::Graph,
            "normal" => ProviderKind::LokiAgent,
            "mcp" => ProviderKind::Mcp,
            "chain" => ProviderKind::Chain,
            _ => ProviderKind::Python,
        },
        command: provider.texts("command").unwrap_or_default(),
        system_prompt: provider.text("system_prompt", ""),
        focus: provider.text("focus", ""),
        output_format: provider.text("output_format", "json"),
        max_iterations: provider.amount("max_iterations").unwrap_or(5),
        mode: provider.get("mode").and_then(Value::as_str).map(|mode| match mode {
            "warm" => ExecMode::Warm,
            _ => ExecMode::PerJob,
        }),
        llm: Llm::read(provider),
        mcp: (kind == "mcp").then(|| Mcp::read(provider, conversions)),
        steps: (kind == "chain").then(|| steps(provider, conversions)),
        orchestrator: if kind == "chain" { provider.text("orchestrator", "") } else { String::new() },
    }
}

/// The steps of a chain. Whether they are those of a chain is checked where chains are known.
fn steps(provider: Members<'_>, conversions: &mut Conversions) -> Vec<Value> {
    let steps = provider.get("steps").and_then(Value::as_array).cloned().unwrap_or_default();
    if steps.is_empty() {
        conversions.value("/agent/provider", "chain provider requires 'steps' in contract".to_owned());
    }
    steps
}
