//! One file per kind of row, or per family of related kinds.

mod chain;
mod cli;
mod contract;
mod eval;
mod graph;
mod hardware;
mod jobs;
mod knowledge;
mod length;
mod llm;
mod mcp;
mod mediation;
mod metrics;
mod model;
mod package;
mod policy;
mod rest;
mod retry;
mod schema;
mod secret;
mod supervisor;
mod todo;
mod tool;
mod tool_exec;
mod trigger;
mod versions;
mod websocket;

use crate::bench::Bench;
use crate::result::{Judged, RowResult};
use crate::row::Row;

type Judge = fn(&Row, &Bench) -> Judged;

/// The covered kinds, with the members that a row must have; rows for different features use the same kind name.
const KINDS: &[(&str, &[&str], Judge)] = &[
    ("contract", &["yaml"], |row, _| contract::contract(row)),
    ("skill", &["yaml"], |row, _| contract::skill(row)),
    ("permissions", &["permissions"], |row, _| contract::permissions(row)),
    ("remote_spec", &["spec"], |row, _| contract::remote(row)),
    ("requirement", &["requires_knowledge"], |row, _| contract::knowledge(row)),
    ("pack", &["files_base64"], |row, _| package::pack(row)),
    ("registry_layout", &["published"], |row, _| package::registry_layout(row)),
    ("registry_search", &["published", "query"], |row, _| package::registry_search(row)),
    ("registry_versions", &["published", "name"], |row, _| package::registry_versions(row)),
    ("registry_download", &["published", "name", "version"], |row, _| package::registry_download(row)),
    ("unpack", &["archive_base64"], |row, _| package::unpack(row)),
    ("definition", &["definition"], |row, _| chain::definition(row)),
    ("chain", &["chain"], chain::execution),
    ("metrics", &["transitions"], |row, _| metrics::judge(row)),
    ("validate", &["schema", "data"], |row, _| schema::judge(row)),
    ("latest", &["versions"], |row, _| versions::judge(row)),
    ("exact", &["versions", "version"], |row, _| versions::judge(row)),
    ("range", &["versions", "range"], |row, _| versions::judge(row)),
    ("best", &["published", "required"], |row, _| versions::judge(row)),
    ("matches", &["available", "required"], |row, _| versions::judge(row)),
    ("missing", &["requires_agents", "registered"], |row, _| versions::judge(row)),
    ("sequence", &["inventory", "ops"], |row, _| hardware::sequence(row)),
    ("describe", &["spec"], |row, _| hardware::describe(row)),
    ("secrets", &["available", "names"], |row, _| secret::resolve(row)),
    ("secret_file", &["file", "text", "name"], |row, _| secret::file(row)),
    ("secret_env", &["prefix", "name", "env"], |row, _| secret::environment(row)),
    ("retry", &["job", "new_status"], |row, _| retry::judge(row)),
    ("jobs", &["jobs"], jobs::judge),
    ("example_llm_agent", &["agent", "injected_as"], llm::example),
    ("llm_provider", &["agent", "responses"], llm::provider),
    ("http", &["steps"], rest::judge),
    ("websocket", &["path"], websocket::judge),
    ("cli", &["args"], cli::judge),
    ("auth", &["path"], mcp::request),
    ("rpc", &["request"], mcp::request),
    ("call", &["tool"], mcp::call),
    ("sequence", &["calls"], mcp::sequence),
    ("stdio", &["request"], mcp::stdio),
    ("federation", &["on_b", "prefix"], mcp::federation),
    ("tokenize", &["name"], |row, _| mediation::words(row)),
    ("similarity", &["source", "target"], |row, _| mediation::score(row)),
    ("mediate", &["source_schema", "target_schema", "data"], |row, _| mediation::mediation(row)),
    ("bridge", &["answers"], |row, _| mediation::bridge(row)),
    ("extract_json", &["response"], |row, _| mediation::extracted(row)),
    ("example_value", &["target_properties"], |row, _| mediation::example(row)),
    ("fields", &["expr"], |row, _| trigger::cron(row)),
    ("invalid", &["expr"], |row, _| trigger::cron(row)),
    ("next", &["expr", "after"], |row, _| trigger::next(row)),
    ("hmac", &["secret", "body"], |row, _| trigger::hmac(row)),
    ("validate", &["definition"], |row, _| trigger::validate(row)),
    ("next_fire", &["definition"], |row, _| trigger::next_fire(row)),
    ("ticks", &["triggers"], |row, _| trigger::ticks(row)),
    ("remote_spec", &["spec"], |row, _| mcp::remote_spec(row)),
    ("cost", &["model"], |row, _| model::cost(row)),
    ("check", &["check", "output"], |row, _| eval::check(row)),
    ("load", &["directory", "yaml"], |row, _| eval::load(row)),
    ("length", &["input", "expr"], |row, _| length::judge(row)),
    ("supervisor", &["agent", "agents", "rounds"], |row, _| supervisor::judge(row)),
    ("todo", &[], |row, _| todo::judge(row)),
    ("tool-exec", &["rounds"], |row, _| tool_exec::judge(row)),
    ("tool-declaration", &["lang", "scope", "file", "source"], |row, _| tool::declaration(row)),
    ("graph-validate", &["yaml"], |row, _| graph::validate(row)),
    ("graph-run", &["yaml", "state_in"], |row, _| graph::run(row)),
    ("graph-llm", &["yaml", "state_in", "replies"], |row, _| graph::run(row)),
    ("template", &["template", "state"], |row, _| graph::template(row)),
    ("reduce", &["reducer", "incoming"], |row, _| graph::reduce(row)),
    ("search_text", &["input"], |row, _| model::search_text(row)),
    ("load", &["policy"], |row, _| policy::load(row)),
    ("resolve", &["policy", "permissions"], |row, _| policy::resolve(row)),
    ("container_argv", &["image"], |row, _| policy::container(row)),
    ("parse", &["text"], |row, _| knowledge::parse(row)),
    ("layout", &["entries"], |row, _| knowledge::layout(row)),
    ("search", &["entries", "query"], |row, _| knowledge::search(row)),
    ("get", &["entries", "id"], |row, _| knowledge::get(row)),
    ("bad_id", &["id"], |row, _| knowledge::stored(row)),
    ("domain_name", &["domain"], |row, _| knowledge::stored(row)),
    ("list", &["entries"], |row, _| knowledge::list(row)),
    ("update", &["entries", "id"], |row, _| knowledge::update(row)),
    ("delete_sequence", &["entries", "id"], |row, _| knowledge::delete(row)),
    ("auto_id", &["domain", "content"], |row, _| knowledge::generated(row)),
    ("acl", &["acl", "domain"], |row, _| knowledge::acl(row)),
    ("context_read", &["entries", "acl", "query", "get"], |row, _| knowledge::context_read(row)),
    ("context_store", &["acl", "domain"], |row, _| knowledge::context_store(row)),
    ("file", &["initial", "ops"], |row, _| knowledge::memory(row)),
];

/// Whether a row has effects that later rows of its kind see.
pub(crate) fn in_order(row: &Row) -> bool {
    row.kind == "cli"
}

/// Judges one row.
pub(crate) fn judge(row: &Row, bench: &Bench) -> RowResult {
    let fits = |(kind, members, _): &&(&str, &[&str], Judge)| {
        row.kind == *kind && members.iter().all(|member| row.input.get(member).is_some())
    };
    match KINDS.iter().find(fits) {
        Some((_, _, judge)) => judge(row, bench).into(),
        None => RowResult::Skip(format!("rows of kind \"{}\" with {}", row.kind, row.members())),
    }
}
