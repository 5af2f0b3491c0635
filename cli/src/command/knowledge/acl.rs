//! `atlasctl knowledge acl`: which domains agents read and write.

use atlas_api::types::{KnowledgeAcl, KnowledgeRights};
use atlas_knowledge::{Acl, ProtectedDomains, Reason};
use serde_json::{Value, json};

use crate::answers;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::names;
use crate::output::{Column, List, ListOptions, Shown, column, members};

/// Options of `atlasctl knowledge acl`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Only this agent.
    #[arg(long, value_name = "NAME", value_parser = names::agent)]
    agent: Option<String>,
    /// Ask about this domain: exit code 0 if the agent may, 5 if not.
    #[arg(long, value_name = "DOMAIN", requires = "agent", value_parser = names::domain)]
    domain: Option<String>,
    /// What the agent is to do in the domain; both if it is left out.
    #[arg(long, value_name = "ACCESS", requires = "domain")]
    to: Option<Access>,
    #[command(flatten)]
    list: ListOptions,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Access {
    /// Find and read entries.
    Read,
    /// Store and change entries.
    Write,
}

const COLUMNS: [Column<KnowledgeRights>; 4] = [
    column("AGENT", "agent", |rights, _| rights.agent.clone()),
    column("VERSION", "version", |rights, _| rights.version.clone()),
    column("READS", "read_domains", |rights, _| domains(rights, &rights.read_domains)),
    column("WRITES", "write_domains", |rights, _| domains(rights, &rights.write_domains)),
];

pub(super) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    let query: Vec<_> = options.agent.iter().map(|agent| ("agent", agent.as_str())).collect();
    let value = context.client()?.get(&["api", "knowledge", "acl"], &query).await?;
    let acl: KnowledgeAcl = answers::read(&value)?;
    if let Some(domain) = &options.domain {
        return decide(context, &acl, domain, options.to);
    }
    let name = |rights: &KnowledgeRights| format!("agent/{}", rights.agent);
    let list = List { columns: &COLUMNS, members: members::KNOWLEDGE_RIGHTS, name };
    let agents = value.get("agents").cloned().unwrap_or_else(|| Value::Array(Vec::new()));
    if context.list(agents, &options.list, &list)? == 0 {
        context.note("no agents: atlasctl deploy DIR");
    }
    if !acl.protected_domains.is_empty() {
        let protected = acl.protected_domains.join(", ");
        context.note(&format!("protected, so * does not count for writing: {protected}"));
    }
    Ok(Exit::Done)
}

fn domains(rights: &KnowledgeRights, domains: &[String]) -> String {
    if rights.enabled && !domains.is_empty() { domains.join(",") } else { "-".to_owned() }
}

fn decide(context: &Context, acl: &KnowledgeAcl, domain: &str, to: Option<Access>) -> Result<Exit, Failure> {
    let Some(rights) = acl.agents.first() else { return Err(Failure::usage("no such agent")) };
    let (reading, writing) = reasons(rights, &acl.protected_domains, domain);
    let asked = [(Access::Read, "read", &reading), (Access::Write, "write", &writing)];
    let asked: Vec<_> = asked.into_iter().filter(|(access, ..)| to.is_none_or(|to| to == *access)).collect();
    let mut value = json!({"agent": rights.agent, "version": rights.version, "domain": domain});
    let mut text = String::new();
    for (_, verb, (may, why)) in &asked {
        let can = if *may { "can" } else { "cannot" };
        text += &format!("{} {can} {verb} {domain}: {why}\n", rights.agent);
        value[*verb] = json!({"allowed": may, "why": why});
    }
    context.show(&Shown { value, text, names: vec![format!("agent/{}", rights.agent)] })?;
    Ok(if asked.iter().all(|(.., (may, _))| *may) { Exit::Done } else { Exit::Denied })
}

/// Whether the agent may read and write a domain, and why.
fn reasons(rights: &KnowledgeRights, protected: &[String], domain: &str) -> ((bool, String), (bool, String)) {
    if !rights.enabled {
        let none = || (false, "its contract does not require knowledge".to_owned());
        return (none(), none());
    }
    let acl = Acl {
        read_domains: rights.read_domains.clone(),
        write_domains: rights.write_domains.clone(),
        protected: ProtectedDomains(protected.iter().cloned().collect()),
    };
    let told = |reason: Reason| (reason.is_allowed(), reason.to_string());
    (told(acl.reading(domain)), told(acl.writing(domain)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_answer_has_its_reason() {
        let rights = |enabled: bool, reads: &[&str], writes: &[&str]| KnowledgeRights {
            enabled,
            read_domains: reads.iter().map(|domain| (*domain).to_owned()).collect(),
            write_domains: writes.iter().map(|domain| (*domain).to_owned()).collect(),
            ..KnowledgeRights::default()
        };
        let told = |rights: &KnowledgeRights, domain| {
            let ((reads, read), (writes, write)) = reasons(rights, &["law".to_owned()], domain);
            format!("{reads} {read}; {writes} {write}")
        };
        let any = rights(true, &["*"], &["*"]);
        assert_eq!(told(&any, "ops"), "true its contract says *; true its contract says *");
        assert_eq!(
            told(&any, "law"),
            "true its contract says *; false it is protected, and the contract says * without naming it"
        );
        let named = rights(true, &["ops"], &["law", "*"]);
        assert_eq!(told(&named, "law"), "false its contract does not name it; true its contract names it");
        let none = rights(false, &["*"], &["*"]);
        assert!(told(&none, "ops").starts_with("false its contract does not require knowledge; false"));
    }
}
