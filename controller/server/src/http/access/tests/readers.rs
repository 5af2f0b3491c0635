//! Rules on who finds which documents, at the doors of HTTP and MCP: what is known of a caller comes from its binding and its issuer.

use serde_json::{Value, json};

use super::Cluster;

const SEARCH: &str = "/api/bases/handbook/search";

impl Cluster {
    /// A principal that reads objects, and what else is known of it.
    async fn reader(&self, name: &str, attributes: Value) -> String {
        let token = self.token_of(name).await;
        let spec = json!({"grants": [{"role": "viewer", "namespace": "default"}], "attributes": attributes});
        let path = format!("/api/objects/binding/{name}");
        let bound = self.ask("PUT", &path, Some(&self.root), &json!({"spec": spec})).await;
        assert_eq!(bound.status, 200, "{}", bound.text);
        token
    }

    /// A base with a rule on teams, and a document of two teams each.
    async fn has_base(&self) {
        let rules = json!([{"metadata": {"team": "caller.team"}}]);
        let base = json!({"name": "handbook", "description": "How we work.", "readers": rules});
        let made = self.ask("POST", "/api/bases", Some(&self.root), &base).await;
        assert_eq!(made.status, 200, "{}", made.text);
        let document = |team: &str| json!({"source": format!("{team}/a b.md"), "text": format!("Tea for {team}."), "metadata": {"team": team}});
        let documents = json!({"documents": [document("law"), document("ops")]});
        let added = self.ask("POST", "/api/bases/handbook/documents", Some(&self.root), &documents).await;
        assert_eq!(added.status, 200, "{}", added.text);
    }

    async fn sources(&self, token: &str) -> Vec<String> {
        let found = self.ask("POST", SEARCH, Some(token), &json!({"query": "tea"})).await;
        assert_eq!(found.status, 200, "{}", found.text);
        let body = found.body();
        let hits = body["hits"].as_array().expect("hits").iter();
        hits.map(|hit| hit["source"].as_str().expect("a text").to_owned()).collect()
    }
}

#[tokio::test]
async fn a_team_finds_what_is_its_own() {
    let cluster = Cluster::start(true).await;
    cluster.has_base().await;
    let law = cluster.reader("ann", json!({"team": ["law"]})).await;
    let both = cluster.reader("bob", json!({"team": ["ops", "law"]})).await;
    let none = cluster.reader("eve", json!({"site": ["north"]})).await;
    assert_eq!(cluster.sources(&law).await, ["law/a b.md"]);
    assert_eq!(cluster.sources(&both).await.len(), 2);
    assert_eq!(cluster.sources(&none).await, Vec::<String>::new());
    assert_eq!(cluster.sources(&cluster.root).await, Vec::<String>::new(), "root changes the rules instead");
    let who = cluster.ask("GET", "/api/auth/whoami", Some(&both), &Value::Null).await.body();
    assert_eq!(who["attributes"], json!({"team": ["ops", "law"]}));
    // What is known of somebody may change, and counts from the next request on.
    let spec = json!({"spec": {"grants": [{"role": "viewer", "namespace": "default"}]}});
    assert_eq!(cluster.ask("PUT", "/api/objects/binding/ann", Some(&cluster.root), &spec).await.status, 200);
    assert_eq!(cluster.sources(&law).await, Vec::<String>::new());
    // Nobody says of himself which team he is of.
    let bound = cluster.ask("PUT", "/api/objects/binding/eve", Some(&none), &spec).await;
    assert_eq!(bound.code, "E2107", "{}", bound.text);
    for wrong in [json!({"principal": ["root"]}), json!({"a.b": ["x"]}), json!({"team": []}), json!({"team": "law"})] {
        let spec = json!({"spec": {"grants": [], "attributes": wrong}});
        let refused = cluster.ask("PUT", "/api/objects/binding/eve", Some(&cluster.root), &spec).await;
        assert_eq!(refused.code, "E1118", "{}", refused.text);
    }
    cluster.controller.shutdown().await;
}

#[tokio::test]
async fn clients_of_mcp_find_and_read_what_their_caller_may() {
    let cluster = Cluster::start(true).await;
    cluster.has_base().await;
    let law = cluster.reader("ann", json!({"team": ["law"]})).await;
    let nobody = cluster.token_of("nobody").await;
    let ask = async |token: &str, method: &str, params: Value| {
        cluster.ask_mcp(Some(token), "default", method, params).await.body()
    };
    let listed = ask(&law, "resources/list", json!({})).await;
    let resources = listed["result"]["resources"].as_array().expect("a list");
    let base = resources.iter().find(|resource| resource["uri"] == "atlas://bases/handbook").expect("the base");
    assert_eq!((&base["name"], &base["description"]), (&json!("handbook"), &json!("How we work.")));
    let listed = ask(&nobody, "resources/list", json!({})).await;
    assert!(!listed.to_string().contains("atlas://bases/"), "{listed}");
    let templates = ask(&law, "resources/templates/list", json!({})).await;
    assert!(templates.to_string().contains("atlas://bases/{base}/{+source}"), "{templates}");

    let read = async |token: &str, uri: &str| ask(token, "resources/read", json!({"uri": uri})).await;
    let text = |read: &Value| read["result"]["contents"][0]["text"].as_str().unwrap_or_default().to_owned();
    let page = text(&read(&law, "atlas://bases/handbook").await);
    assert!(page.starts_with("# handbook\n\nHow we work.\n\nDocuments: 1,"), "{page}");
    assert!(page.ends_with("- law/a b.md\n"), "{page}");
    assert_eq!(text(&read(&law, "atlas://bases/handbook/law/a%20b.md").await), "Tea for law.");
    // One that is not readable is as one that is not there.
    let refusals = ["ops/a%20b.md", "no/such.md"].map(|source| format!("atlas://bases/handbook/{source}"));
    let mut said = Vec::new();
    for uri in &refusals {
        said.push(read(&law, uri).await["error"]["message"].to_string());
    }
    assert!(said[0] == said[1] && said[0].contains("has no document"), "{said:?}");
    let refused = read(&nobody, "atlas://bases/handbook").await;
    assert!(refused.to_string().contains("E2107"), "{refused}");
    let unknown = read(&law, "atlas://bases/nothing").await;
    assert!(unknown.to_string().contains("no such base"), "{unknown}");

    let call = |arguments: Value| json!({"name": "search_documents", "arguments": arguments});
    let found = ask(&law, "tools/call", call(json!({"base": "handbook", "query": "tea", "top_k": 5}))).await;
    let hits = found["result"]["structuredContent"]["hits"].as_array();
    let hits = hits.unwrap_or_else(|| panic!("{found}")).clone();
    assert_eq!(hits.len(), 1, "{found}");
    assert_eq!(
        (&hits[0]["text"], &hits[0]["uri"]),
        (&json!("Tea for law."), &json!("atlas://bases/handbook/law/a%20b.md"))
    );
    let refused = ask(&nobody, "tools/call", call(json!({"base": "handbook", "query": "tea"}))).await;
    assert!(refused.to_string().contains("E2107"), "{refused}");
    cluster.controller.shutdown().await;
}
