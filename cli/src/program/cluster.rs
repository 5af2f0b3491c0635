//! What the definition of an agent needs of a cluster, and the cluster does not have. It may come later, so these are warnings.

use std::collections::BTreeSet;
use std::path::Path;

use atlas_contract::{Contract, ProviderKind, RequiredSkill, Warning, nearest};
use atlas_graph::Kind;
use atlas_package::{GraphFolder, TIERS};
use serde_json::Value;

use crate::client::{Client, all_objects};
use crate::failure::Failure;

/// What a cluster has, by kind.
#[derive(Debug, Default)]
pub(crate) struct Has {
    agents: BTreeSet<String>,
    models: BTreeSet<String>,
    secrets: BTreeSet<String>,
    servers: BTreeSet<String>,
    skills: BTreeSet<String>,
    orchestrators: BTreeSet<String>,
    bases: BTreeSet<String>,
}

impl Has {
    /// Asks the cluster. `along` are the agents that are deployed together.
    pub(crate) async fn ask(client: &Client, along: impl Iterator<Item = String>) -> Result<Self, Failure> {
        let names = async |kind: &str| -> Result<BTreeSet<String>, Failure> {
            let name = |object: &Value| object["metadata"]["name"].as_str().map(str::to_owned);
            Ok(all_objects(client, kind).await?.iter().filter_map(name).collect())
        };
        let agents = client.get(&["api", "agents"], &[("all", "true")]).await?;
        let agents = agents.as_array().into_iter().flatten().filter_map(|agent| agent["name"].as_str());
        Ok(Self {
            agents: agents.map(str::to_owned).chain(along).collect(),
            models: names("model").await?.into_iter().chain(names("tier").await?).collect(),
            secrets: names("secret").await?,
            servers: names("mcp-server").await?,
            skills: names("skill").await?,
            orchestrators: names("orchestrator").await?,
            bases: names("base").await?,
        })
    }

    /// What the agent in a folder needs and the cluster lacks, each with the command that adds it.
    pub(crate) fn lacks(&self, folder: &Path, contract: &Contract) -> Vec<Warning> {
        let mut lacking = Lacking { warnings: Vec::new() };
        let pointer = |path: &str| format!("agent.yaml /agent/{path}");
        if contract.provider.kind.has_models() && !folder.join("mock.yaml").is_file() {
            // A worker's environment can have a model for a tier.
            let named = contract.model.name.iter().filter(|name| !name.starts_with('{'));
            for name in named.chain(&contract.model.others).filter(|name| !TIERS.contains(&name.as_str())) {
                let add = format!("atlasctl model add {name} --provider PROVIDER --name ID");
                lacking.look(&self.models, pointer("model"), ("model", name), &add);
            }
        }
        for name in &contract.permissions.secrets {
            let add = format!("atlasctl secret set {name}");
            lacking.look(&self.secrets, pointer("permissions/secrets"), ("secret", name), &add);
        }
        let called = contract.provider.mcp.iter().map(|mcp| &mcp.server);
        let servers = contract.requires.mcp_servers.iter().map(|server| &server.name).chain(called);
        for name in servers.filter(|name| !name.starts_with('{')) {
            let add = format!("atlasctl mcp add {name} --url URL");
            lacking.look(&self.servers, pointer("requires/mcp_servers"), ("MCP server", name), &add);
        }
        for entry in &contract.requires.skills {
            self.skill(entry, contract, &mut lacking);
        }
        for name in &contract.requires.documents {
            let add = format!("atlasctl rag create {name} FOLDER");
            lacking.look(&self.bases, pointer("requires/documents"), ("document base", name), &add);
        }
        for dependency in &contract.requires.agents {
            let add = "atlasctl deploy FOLDER";
            lacking.look(&self.agents, pointer("requires/agents"), ("agent", &dependency.name), add);
        }
        let steps = contract.provider.steps.iter().flatten().filter_map(|step| step["agent"].as_str());
        for agent in steps.map(|agent| agent.rsplit_once('@').map_or(agent, |(name, _)| name)) {
            lacking.look(&self.agents, pointer("provider/steps"), ("agent", agent), "atlasctl deploy FOLDER");
        }
        let orchestrator = &contract.provider.orchestrator;
        if !orchestrator.is_empty() && !self.agents.contains(orchestrator) {
            let add = "atlasctl orchestrator list";
            lacking.look(&self.orchestrators, pointer("provider/orchestrator"), ("orchestrator", orchestrator), add);
        }
        if contract.provider.kind == ProviderKind::Graph
            && let Ok(loaded) = GraphFolder::new(folder).read()
        {
            for node in loaded.graph.nodes.iter() {
                if let Kind::Agent(agent) = &node.kind
                    && !agent.agent.contains("{{")
                {
                    let at = format!("graph.yaml /nodes/{}/agent", node.id);
                    lacking.look(&self.agents, at, ("agent", &agent.agent), "atlasctl deploy FOLDER");
                }
            }
        }
        lacking.warnings
    }

    /// A tool of the platform, a skill, a tool of an MCP server, or an agent.
    fn skill(&self, entry: &str, contract: &Contract, lacking: &mut Lacking) {
        let name = RequiredSkill::of(entry).name;
        let is_platform = name.starts_with("atlas.") || name.starts_with("user__");
        let is_server = name.split_once('.').is_some_and(|(server, _)| self.servers.contains(server));
        let is_agent = contract.provider.kind == ProviderKind::Llm && self.agents.contains(name);
        if !(is_platform || is_server || is_agent) {
            let at = "agent.yaml /agent/requires/skills".to_owned();
            lacking.look(&self.skills, at, ("skill", name), "atlasctl skill deploy FOLDER");
        }
    }
}

struct Lacking {
    warnings: Vec<Warning>,
}

impl Lacking {
    fn look(&mut self, there: &BTreeSet<String>, path: String, (what, name): (&str, &str), add: &str) {
        if there.contains(name) {
            return;
        }
        let meant = nearest(name, there.iter().map(String::as_str));
        let hint = meant
            .map_or_else(|| format!("add it: {add}"), |meant| format!("did you mean \"{meant}\"? or add it: {add}"));
        let warning = Warning::new(path, format!("the cluster has no {what} \"{name}\"")).with_hint(hint);
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn what_a_cluster_lacks_is_told_with_the_command() {
        let text = "agent: {name: a, version: 1.0.0, provider: {type: llm}, model: {name: smal, others: [fast, big]}, \
                    permissions: {secrets: [KEY]}, requires: {mcp_servers: [github], agents: [helper], \
                    documents: [handbok], skills: [atlas.exec.run, user__ask, github.search, there, writer]}}";
        let contract = atlas_contract::parse(text.as_bytes()).expect("a contract");
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
        let folder = tempfile::tempdir().expect("a folder");
        let (models, skills, agents) = (set(&["small"]), set(&["there"]), set(&["writer"]));
        let has = Has { models, skills, agents, bases: set(&["handbook"]), ..Has::default() };
        let told: String = has.lacks(folder.path(), &contract).iter().map(|warning| format!("{warning}\n")).collect();
        expect![[r#"
            agent.yaml /agent/model: the cluster has no model "smal"; did you mean "small"? or add it: atlasctl model add smal --provider PROVIDER --name ID
            agent.yaml /agent/model: the cluster has no model "big"; add it: atlasctl model add big --provider PROVIDER --name ID
            agent.yaml /agent/permissions/secrets: the cluster has no secret "KEY"; add it: atlasctl secret set KEY
            agent.yaml /agent/requires/mcp_servers: the cluster has no MCP server "github"; add it: atlasctl mcp add github --url URL
            agent.yaml /agent/requires/skills: the cluster has no skill "github.search"; add it: atlasctl skill deploy FOLDER
            agent.yaml /agent/requires/documents: the cluster has no document base "handbok"; did you mean "handbook"? or add it: atlasctl rag create handbok FOLDER
            agent.yaml /agent/requires/agents: the cluster has no agent "helper"; add it: atlasctl deploy FOLDER
        "#]]
        .assert_eq(&told);
        std::fs::write(folder.path().join("mock.yaml"), "").expect("a file");
        assert_eq!(has.lacks(folder.path(), &contract).len(), 5, "answers are prepared");
    }
}
