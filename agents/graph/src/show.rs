//! A graph as JSON: all fields that are set, and those that have a default.

use serde_json::{Map, Value, json};

use crate::graph::{Graph, Kind, Next, Node, OnItemError, Settings, Variable};

impl Graph {
    /// The graph with its defaults.
    pub fn to_json(&self) -> Value {
        let nodes: Map<String, Value> = self.nodes.iter().map(|node| (node.id.clone(), node.to_json())).collect();
        let reducers: Map<String, Value> =
            self.reducers.iter().map(|(key, reducer)| (key.clone(), json!(reducer.name()))).collect();
        set(json!({
            "name": self.name,
            "description": self.description,
            "version": self.version,
            "model": self.model,
            "temperature": self.temperature,
            "top_p": self.top_p,
            "reasoning_effort": self.reasoning_effort,
            "global_tools": self.global_tools,
            "mcp_servers": self.mcp_servers,
            "conversation_starters": self.conversation_starters,
            "variables": self.variables.iter().map(Variable::to_json).collect::<Vec<_>>(),
            "settings": self.settings.to_json(),
            "initial_state": self.initial_state,
            "reducers": reducers,
            "start": self.start,
            "nodes": nodes,
        }))
    }
}

impl Variable {
    fn to_json(&self) -> Value {
        set(json!({"name": self.name, "description": self.description, "default": self.default}))
    }
}

impl Settings {
    fn to_json(&self) -> Value {
        set(json!({
            "max_loop_iterations": self.max_loop_iterations,
            "timeout": self.timeout,
            "log_state_snapshots": self.log_state_snapshots,
            "validate_before_run": self.validate_before_run,
            "max_concurrency": self.max_concurrency,
            "fail_fast": self.fail_fast.then_some(true),
        }))
    }
}

impl Node {
    /// The node with its defaults.
    pub fn to_json(&self) -> Value {
        let updates = self.updates.as_ref().map(texts);
        let next = self.next.as_ref().map(|next| match next {
            Next::One(target) => json!(target),
            Next::Many(targets) => json!(targets),
        });
        let common = json!({
            "id": self.id, "description": self.description, "type": self.type_name(), "next": next, "state_updates": updates,
        });
        let (mut common, own) = (set(common), set(self.kind_json()));
        if let (Some(common), Value::Object(own)) = (common.as_object_mut(), own) {
            common.extend(own);
        }
        common
    }

    fn kind_json(&self) -> Value {
        match &self.kind {
            Kind::Llm(llm) => json!({
                "prompt": llm.prompt, "instructions": llm.instructions, "tools": llm.tools, "model": llm.model,
                "temperature": llm.temperature, "top_p": llm.top_p, "reasoning_effort": llm.reasoning_effort,
                "fallback": llm.fallback, "max_attempts": llm.max_attempts, "max_iterations": llm.max_iterations,
                "output_schema": llm.output_schema, "timeout": llm.timeout,
            }),
            Kind::Script(script) => {
                json!({"script": script.script, "timeout": script.timeout, "fallback": script.fallback})
            }
            Kind::Approval(approval) => json!({
                "question": approval.question, "options": approval.options, "routes": texts(&approval.routes),
                "on_other": approval.on_other, "timeout": approval.timeout, "on_timeout": approval.on_timeout,
            }),
            Kind::Input(input) => {
                json!({"question": input.question, "default": input.default, "validation": input.validation})
            }
            Kind::Rag(rag) => json!({
                "documents": rag.documents, "query": rag.query, "top_k": rag.top_k,
                "embedding_model": rag.embedding_model, "chunk_size": rag.chunk_size, "chunk_overlap": rag.chunk_overlap,
                "reranker_model": rag.reranker_model, "batch_size": rag.batch_size, "timeout": rag.timeout,
            }),
            Kind::Map(map) => json!({
                "over": map.over, "as": map.item, "branch": map.branch, "collect_into": map.collect_into,
                "output_key": map.output_key, "max_concurrency": map.max_concurrency,
                "on_item_error": map.on_item_error.map(|rule| match rule {
                    OnItemError::Fail => "fail",
                    OnItemError::Null => "null",
                    OnItemError::Skip => "skip",
                }),
            }),
            Kind::Agent(agent) => json!({
                "agent": agent.agent, "prompt": agent.prompt, "timeout": agent.timeout, "output_schema": agent.output_schema,
            }),
            Kind::End { output } => json!({"output": output}),
        }
    }
}

#[expect(clippy::ptr_arg, reason = "it is passed to map")]
fn texts(pairs: &Vec<(String, String)>) -> Value {
    Value::Object(pairs.iter().map(|(name, text)| (name.clone(), json!(text))).collect())
}

/// An object without the members that are not set.
fn set(value: Value) -> Value {
    match value {
        Value::Object(members) => Value::Object(members.into_iter().filter(|(_, value)| !value.is_null()).collect()),
        other => other,
    }
}
