//! Rules for single nodes: V6 to V13 and our own.

use super::{Availability, Checking, inside};
use crate::finding::{Check, Level};
use crate::graph::{Approval, Kind, Llm, Node, Rag, Script};
use crate::{LengthRule, template};

pub(super) fn check(checking: &mut Checking<'_>, node: &Node) {
    match &node.kind {
        Kind::Llm(llm) => self::llm(checking, node, llm),
        Kind::Script(script) => self::script(checking, node, script),
        Kind::Approval(approval) => self::approval(checking, node, approval),
        Kind::Input(input) => {
            if let Some(Err(error)) = input.validation.as_deref().map(LengthRule::parse) {
                checking.error(Check::InputValidation, Some(node), "validation", error.to_string());
            }
            if node.next_set().len() > 1 {
                let message = "an input node continues with one node, not with a list".to_owned();
                checking.error(Check::InputNext, Some(node), "next", message);
            }
        }
        Kind::Rag(rag) => {
            search(checking, node, rag);
            if rag.documents.is_empty() {
                checking.error(Check::RagDocuments, Some(node), "documents", "rag node lists no documents".to_owned());
            }
            if node.updates.as_ref().is_none_or(Vec::is_empty) && !checking.branches.contains(node.id.as_str()) {
                let message = "rag result is never stored (no state_updates)".to_owned();
                checking.warn(Check::RagUpdates, Some(node), "", message);
            }
        }
        Kind::Agent(agent) => {
            let message = match checking.surroundings.agent(&agent.agent) {
                Availability::Yes => None,
                Availability::No => Some(format!("agent '{}' is not installed", agent.agent)),
                Availability::Undefined => {
                    Some(format!("agent '{}' has neither config.yaml nor graph.yaml", agent.agent))
                }
            };
            if let Some(message) = message {
                checking.error(Check::Agent, Some(node), "agent", message);
            }
        }
        Kind::Map(_) | Kind::End { .. } => {}
    }
    next(checking, node);
    for (field, text) in node.templates() {
        for found in template::lookalikes(text) {
            let message = format!("'{found}' is not a placeholder and stays as it is");
            let hint = "a placeholder has no spaces, and only letters, digits, _, ., [ and ]".to_owned();
            checking.add(Check::Lookalike, Level::Warning, Some(node), &field, message, Some(hint));
        }
    }
}

pub(super) fn settings(checking: &mut Checking<'_>) {
    let too_few = || "max_concurrency must be at least 1".to_owned();
    if checking.graph.settings.max_concurrency == 0 {
        checking.error(Check::Concurrency, None, "settings/max_concurrency", too_few());
    }
    for node in checking.graph.nodes.iter() {
        if matches!(&node.kind, Kind::Map(map) if map.max_concurrency == Some(0)) {
            checking.error(Check::Concurrency, Some(node), "max_concurrency", too_few());
        }
    }
    if let Some(model) = &checking.graph.model
        && checking.surroundings.models().is_some_and(|models| !models.contains(model))
    {
        checking.error(Check::Model, None, "model", format!("unknown model '{model}'"));
    }
}

/// Every node but approvals and ends needs a `next`, and map branches must not have one.
fn next(checking: &mut Checking<'_>, node: &Node) {
    let ends_otherwise = matches!(node.kind, Kind::Approval(_) | Kind::End { .. });
    if !node.next_targets().is_empty() || ends_otherwise || checking.branches.contains(node.id.as_str()) {
        return;
    }
    if let Kind::Script(script) = &node.kind
        && node.next.is_none()
    {
        let text = inside(&script.script).and_then(|path| checking.surroundings.script(&path));
        if text.is_none_or(|text| text.contains("_next")) {
            let message = "has no next, so each of its outputs must have a _next".to_owned();
            checking.warn(Check::MissingNext, Some(node), "", message);
            return;
        }
    }
    checking.error(Check::MissingNext, Some(node), "next", format!("{} node has no next", node.type_name()));
}

fn llm(checking: &mut Checking<'_>, node: &Node, llm: &Llm) {
    for (index, tool) in llm.tools.iter().flatten().enumerate() {
        let (check, known, name) = match tool.strip_prefix("mcp:") {
            Some(server) => (Check::Server, checking.surroundings.servers(), server),
            None => (Check::Tool, checking.surroundings.tools(), tool.as_str()),
        };
        let Some(known) = known.filter(|known| !known.contains(name)) else { continue };
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        let suggestion = checking.nearest(name, &known);
        let what = if check == Check::Server { "MCP server" } else { "tool" };
        let message = format!("unknown {what} '{tool}'");
        checking.add(check, Level::Error, Some(node), &format!("tools/{index}"), message, suggestion);
    }
    if let Some(model) = &llm.model {
        known_model(checking, node, "model", model);
    }
}

fn search(checking: &mut Checking<'_>, node: &Node, rag: &Rag) {
    for (field, value, most) in [
        ("top_k", rag.top_k, Rag::TOP_MAX),
        ("chunk_size", rag.chunk_size, Rag::CHUNK_MAX),
        ("batch_size", rag.batch_size, Rag::BATCH_MAX),
        ("timeout", rag.timeout, u64::MAX),
    ] {
        if value.is_some_and(|value| !(1..=most).contains(&value)) {
            let to = if most == u64::MAX { String::new() } else { format!(" and at most {most}") };
            checking.error(Check::RagSettings, Some(node), field, format!("{field} is at least 1{to}"));
        }
    }
    let size = rag.chunk_size.unwrap_or(Rag::CHUNK_DEFAULT);
    if rag.chunk_overlap.is_some_and(|overlap| overlap >= size) {
        let message = format!("chunk_overlap is less than chunk_size, which is {size}");
        checking.error(Check::RagSettings, Some(node), "chunk_overlap", message);
    }
    if rag.batch_size.is_some() && rag.embedding_model.is_none() {
        let hint = Some("add embedding_model, or remove batch_size".to_owned());
        let message = "batch_size is for the calls of an embedding_model, and there is none".to_owned();
        checking.add(Check::RagSettings, Level::Error, Some(node), "batch_size", message, hint);
    }
    for (field, model) in [("embedding_model", &rag.embedding_model), ("reranker_model", &rag.reranker_model)] {
        if let Some(model) = model {
            known_model(checking, node, field, model);
        }
    }
}

/// Reports a model that there is not.
fn known_model(checking: &mut Checking<'_>, node: &Node, field: &str, model: &str) {
    let Some(known) = checking.surroundings.models().filter(|known| !known.contains(model)) else { return };
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    let suggestion = checking.nearest(model, &known);
    checking.add(Check::Model, Level::Error, Some(node), field, format!("unknown model '{model}'"), suggestion);
}

fn script(checking: &mut Checking<'_>, node: &Node, script: &Script) {
    let Some(path) = inside(&script.script) else {
        let message = format!("the script is outside the agent's folder: {}", script.script);
        let hint = Some("give a path relative to the folder, without leaving it".to_owned());
        checking.add(Check::ScriptPath, Level::Error, Some(node), "script", message, hint);
        return;
    };
    if checking.surroundings.script(&path).is_none() {
        checking.error(Check::ScriptFile, Some(node), "script", format!("script file not found: {}", script.script));
    }
}

fn approval(checking: &mut Checking<'_>, node: &Node, approval: &Approval) {
    for (index, option) in approval.options.iter().enumerate() {
        if !approval.routes.iter().any(|(label, _)| label == option) {
            checking.error(Check::OptionRoute, Some(node), "routes", format!("option '{option}' has no route"));
        }
        if approval.options[..index].contains(option) {
            let message = format!("option '{option}' is listed twice");
            checking.warn(Check::OptionTwice, Some(node), &format!("options/{index}"), message);
        }
    }
    for (label, _) in &approval.routes {
        if !approval.options.contains(label) {
            let message = format!("route '{label}' matches no option");
            checking.warn(Check::RouteOption, Some(node), "routes", message);
        }
    }
    if approval.timeout.is_some() != approval.on_timeout.is_some() {
        let message = "timeout and on_timeout are set together".to_owned();
        checking.error(Check::OnTimeout, Some(node), "timeout", message);
    }
}
