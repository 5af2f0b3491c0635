//! The twelve tools of the platform (compatibility §18.3): names, descriptions, arguments, and the result of `atlas.exec.run`.

use serde_json::{Value, json};

/// The tool that runs an agent and waits for it.
pub const RUN: &str = "atlas.exec.run";

/// Describes what a name in `requires.skills` is. Workers call it, and agents do not see it.
pub const LOOKUP: &str = "atlas.tool.lookup";

/// One tool.
#[derive(Debug)]
pub struct Tool {
    /// The name, `atlas.…`.
    pub name: &'static str,
    /// One sentence.
    pub description: &'static str,
    /// The known arguments as JSON. None is required, and others are ignored.
    properties: &'static str,
}

impl Tool {
    /// JSON Schema of the arguments.
    pub fn input_schema(&self) -> Value {
        let properties: Value = serde_json::from_str(self.properties).unwrap_or_default();
        json!({"type": "object", "properties": properties})
    }
}

/// All of them.
pub const TOOLS: [Tool; 12] = [
    Tool {
        name: "atlas.registry.list",
        description: "Lists the registered agents, each with its highest version.",
        properties: r#"{"type": {"type": "string", "description": "Only agents of this type: agent or orchestrator."}}"#,
    },
    Tool {
        name: "atlas.registry.describe",
        description: "Describes an agent: capabilities, input and output schema, time limit.",
        properties: r#"{"name": {"type": "string", "description": "The name of the agent."}}"#,
    },
    Tool {
        name: "atlas.registry.search",
        description: "Finds agents that have at least one of some capabilities.",
        properties: r#"{"capabilities": {"type": "array", "items": {"type": "string"}}}"#,
    },
    Tool {
        name: "atlas.exec.run",
        description: "Runs an agent and waits for its result.",
        properties: r#"{"agent": {"type": "string", "description": "The name of the agent."}, "input": {"type": "object", "description": "Its input."}}"#,
    },
    Tool {
        name: "atlas.exec.spawn",
        description: "Submits a job and returns its id without waiting for it.",
        properties: r#"{"agent": {"type": "string", "description": "The name of the agent."}, "input": {"type": "object", "description": "Its input."}, "priority": {"type": "integer", "description": "Higher runs first."}}"#,
    },
    Tool {
        name: "atlas.exec.status",
        description: "The status of a job.",
        properties: r#"{"job_id": {"type": "string"}}"#,
    },
    Tool {
        name: "atlas.exec.cancel",
        description: "Cancels a job that has not started.",
        properties: r#"{"job_id": {"type": "string"}}"#,
    },
    Tool {
        name: "atlas.queue.inspect",
        description: "Lists jobs, oldest first.",
        properties: r#"{"status": {"type": "string", "description": "Only jobs with this status: pending, running, completed, failed or cancelled."}, "limit": {"type": "integer", "description": "Most jobs to list; 50 if not given."}}"#,
    },
    Tool {
        name: "atlas.monitor.health",
        description: "Numbers of waiting and running jobs, and how many more the queue takes.",
        properties: r#"{}"#,
    },
    Tool {
        name: "atlas.monitor.metrics",
        description: "Statistics of one agent, or of all.",
        properties: r#"{"agent": {"type": "string", "description": "The name of the agent."}}"#,
    },
    Tool { name: "atlas.monitor.trace", description: "One trace.", properties: r#"{"trace_id": {"type": "string"}}"# },
    Tool {
        name: "atlas.monitor.traces",
        description: "Lists traces.",
        properties: r#"{"agent": {"type": "string"}, "limit": {"type": "integer"}}"#,
    },
];

/// The tool of a name.
pub fn find(name: &str) -> Option<&'static Tool> {
    TOOLS.iter().find(|tool| tool.name == name)
}

/// The result of `atlas.exec.run`: the output of the agent, or its error. It tells of a failure as a value.
pub fn ran(agent: &str, ended: Result<Value, String>) -> Value {
    let (success, data, error) = match ended {
        Ok(output) => (true, output, String::new()),
        Err(error) => (false, json!({}), error),
    };
    // In Atlas for Python no pool runs the agent, so its errors lack what the pool adds.
    let error = match error.split_once(':') {
        Some(("Pool error", why)) if why.trim_start().starts_with("Agent not found") => {
            format!("Agent not found: {agent}")
        }
        Some(("Pool error", why)) => why.trim_start().to_owned(),
        Some(("Input validation", _)) => "Input validation failed".to_owned(),
        Some(("Output validation", _)) => "Output validation failed".to_owned(),
        _ => error,
    };
    json!({"success": success, "data": data, "error": error, "agent_name": agent})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_has_a_schema_that_accepts_any_object() {
        for tool in &TOOLS {
            assert!(tool.input_schema()["properties"].is_object(), "{}", tool.name);
            assert!(tool.input_schema().get("required").is_none(), "{}", tool.name);
        }
    }

    #[test]
    fn a_run_tells_of_failures_as_a_value() {
        let failed = |error: &str| ran("x", Err(error.to_owned()))["error"].clone();
        assert_eq!(failed("Pool error: Agent not found or no implementation: x"), "Agent not found: x");
        assert_eq!(failed("Pool error: no model: x"), "no model: x");
        assert_eq!(failed("Input validation: 'message' is a required property"), "Input validation failed");
        assert_eq!(failed("ValueError: no"), "ValueError: no");
        let ran = ran("x", Ok(json!({"n": 1})));
        assert_eq!(ran, json!({"success": true, "data": {"n": 1}, "error": "", "agent_name": "x"}));
    }
}
