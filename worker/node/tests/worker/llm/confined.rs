//! Agents without a process of their own, whose tools and scripts are confined.

use serde_json::Value;

use super::scene::Scene;

const GRAPH: &str = "name: g\nstart: one\nnodes:\n  one: { type: script, script: one.sh, next: done }\n  done: { type: end, output: '{{said}}' }\n";
const SCRIPT: &str = "echo '{\"said\": \"hi\"}'\n";

/// The contract of a graph with more members.
pub(crate) fn graph(more: &str) -> [(&'static str, String); 3] {
    let contract = format!("agent:\n  name: g\n  version: 1.0.0\n  provider:\n    type: graph\n{more}");
    [("agent.yaml", contract), ("graph.yaml", GRAPH.to_owned()), ("one.sh", SCRIPT.to_owned())]
}

#[tokio::test]
async fn a_graph_says_how_its_scripts_are_confined() {
    for (more, expected) in
        [("", None), ("  permissions: {filesystem: [], network: []}\n", Some("own files only, no network ("))]
    {
        let files = graph(more);
        let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
        let mut scene = Scene::set(&files, &[]).await;
        let attempt = scene.attempt(1, "{}");
        let end = scene.run(&attempt).await;
        let output: Value = serde_json::from_str(&end.output(&scene.controller)).expect("JSON");
        assert_eq!(output["text"], "hi");
        let metadata = Scene::metadata(&end);
        let said = metadata["_sandbox"].as_str();
        assert_eq!(
            said.map(|said| said.starts_with(expected.unwrap_or("nothing"))),
            expected.map(|_| true),
            "{metadata}"
        );
        scene.node.shutdown().await;
    }
}
