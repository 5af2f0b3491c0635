//! State keys that are read or reduced but written by nothing. A script can write any key, so a graph with scripts is not checked.

use std::collections::BTreeSet;

use super::Checking;
use crate::finding::Check;
use crate::graph::{INITIAL_PROMPT, Kind, Node};
use crate::template;

pub(super) fn check(checking: &mut Checking<'_>) {
    let graph = checking.graph;
    let writes_anything = |node: &Node| {
        let open =
            |schema: &serde_json::Value| schema.get("additionalProperties") != Some(&serde_json::Value::Bool(false));
        matches!(node.kind, Kind::Script(_)) || node.output_schema().is_some_and(open)
    };
    if graph.nodes.iter().any(writes_anything) {
        return;
    }
    let mut written: BTreeSet<&str> = graph.initial_state.keys().map(String::as_str).collect();
    written.insert(INITIAL_PROMPT);
    for node in graph.nodes.iter() {
        written.extend(node.writes());
        if let Kind::Map(map) = &node.kind {
            written.extend([map.collect_into.as_str(), map.item.as_str()]);
        }
    }
    for node in graph.nodes.iter() {
        for (field, text) in node.strict_templates() {
            let is_given = |key: &&str| *key == "vars" || key.starts_with("__") && key.ends_with("__");
            let keys: BTreeSet<&str> = template::root_keys(text).into_iter().collect();
            for key in keys.into_iter().filter(|key| !written.contains(key) && !is_given(key)) {
                let message = format!("{field} needs '{key}', which nothing writes");
                checking.warn(Check::UnwrittenKey, Some(node), field, message);
            }
        }
    }
    for key in graph.reducers.keys().filter(|key| !written.contains(key.as_str())) {
        let message = format!("the reducer of '{key}' has no effect, because nothing writes the key");
        checking.warn(Check::UnusedReducer, None, &format!("reducers/{key}"), message);
    }
}
