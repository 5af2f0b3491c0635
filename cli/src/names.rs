//! Names of objects as arguments: `NAME`, or `KIND/NAME` as `-o name` prints it.

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::words::shell;

/// Kinds that may precede a name.
const KINDS: [&str; 15] = [
    "job",
    "agent",
    "node",
    "controller",
    "context",
    "model",
    "skill",
    "trigger",
    "secret",
    "chain",
    "orchestrator",
    "policy",
    "mcp-server",
    "base",
    "knowledge",
];

/// How the ids of executions begin. A job that a run carries names it with the second.
const EXECUTIONS: [&str; 2] = ["chain-", "run-"];

/// Whether an id, or the beginning of one, is that of a run of a chain.
pub(crate) fn is_execution(id: &str) -> bool {
    EXECUTIONS.iter().any(|prefix| id.starts_with(prefix))
}

/// A job's id or a unique prefix of it.
pub(crate) fn job(text: &str) -> Result<String, String> {
    let id = bare(text, "job")?;
    if is_execution(&id) {
        return Err(format!("{id} is a run of a chain; its jobs: atlasctl job tree {id}"));
    }
    Ok(id)
}

/// The id of a job or of a run of a chain, or a unique prefix of it.
pub(crate) fn ran(text: &str) -> Result<String, String> {
    bare(text, "job")
}

/// An agent's name, optionally with `@VERSION`.
pub(crate) fn agent(text: &str) -> Result<String, String> {
    bare(text, "agent")
}

/// A node's name.
pub(crate) fn node(text: &str) -> Result<String, String> {
    bare(text, "node")
}

/// A model's name.
pub(crate) fn model(text: &str) -> Result<String, String> {
    bare(text, "model")
}

/// A chain's name.
pub(crate) fn chain(text: &str) -> Result<String, String> {
    bare(text, "chain")
}

/// A policy's name.
pub(crate) fn policy(text: &str) -> Result<String, String> {
    bare(text, "policy")
}

/// A question's id.
pub(crate) fn question(text: &str) -> Result<String, String> {
    bare(text, "question")
}

/// The name of an MCP server.
pub(crate) fn server(text: &str) -> Result<String, String> {
    bare(text, "mcp-server")
}

/// A skill's name.
pub(crate) fn skill(text: &str) -> Result<String, String> {
    bare(text, "skill")
}

/// A secret's name.
pub(crate) fn secret(text: &str) -> Result<String, String> {
    bare(text, "secret")
}

/// A trigger's name.
pub(crate) fn trigger(text: &str) -> Result<String, String> {
    bare(text, "trigger")
}

/// A conversation's id.
pub(crate) fn conversation(text: &str) -> Result<String, String> {
    bare(text, "conversation")
}

/// An orchestrator's name.
pub(crate) fn orchestrator(text: &str) -> Result<String, String> {
    bare(text, "orchestrator")
}

/// A controller's name or number.
pub(crate) fn controller(text: &str) -> Result<String, String> {
    bare(text, "controller")
}

/// The name of a controller or of a worker; a worker has the name of its node.
pub(crate) fn process(text: &str) -> Result<String, String> {
    let kinds = ["controller", "worker", "node"];
    let kind = text.split_once('/').map_or("controller", |(kind, _)| kind.strip_suffix('s').unwrap_or(kind));
    if kinds.contains(&kind) {
        bare(text, kind)
    } else {
        Err(format!("expected a controller or a worker, not a {kind}"))
    }
}

/// A document base's name.
pub(crate) fn base(text: &str) -> Result<String, String> {
    bare(text, "base")
}

/// The id of a knowledge entry.
pub(crate) fn entry(text: &str) -> Result<String, String> {
    bare(text, "knowledge")
}

/// A domain of knowledge.
pub(crate) fn domain(text: &str) -> Result<String, String> {
    bare(text, "domain")
}

/// The scope of a memory: `namespace`, or a kind and a name with a colon between them.
pub(crate) fn scope(text: &str) -> Result<String, String> {
    let scope = text.strip_prefix("memory/").unwrap_or(text);
    let is_named = |(kind, name): (&str, &str)| ["agent", "user", "conversation"].contains(&kind) && !name.is_empty();
    if scope == "namespace" || scope.split_once(':').is_some_and(is_named) {
        return Ok(scope.to_owned());
    }
    Err("write namespace, agent:NAME, user:NAME or conversation:ID; while authentication is off, every user is user:local".to_owned())
}

/// A context's name.
pub(crate) fn context(text: &str) -> Result<String, String> {
    bare(text, "context")
}

/// The name without its kind.
fn bare(text: &str, wanted: &str) -> Result<String, String> {
    let name = match text.split_once('/') {
        Some((kind, name)) if kind.strip_suffix('s').unwrap_or(kind) == wanted => name,
        Some((kind, _)) if KINDS.contains(&kind) => return Err(format!("expected a {wanted}, not a {kind}")),
        _ => text,
    };
    if name.is_empty() { Err(format!("expected the name of a {wanted}")) } else { Ok(name.to_owned()) }
}

/// Agent versions as `NAME@VERSION …`, or one version as `NAME VERSION`.
pub(crate) fn versions(texts: &[String]) -> Result<Vec<(&str, &str)>, Failure> {
    let whole = |text: &'_ str| text.split_once('@').is_some_and(|(_, version)| !version.is_empty());
    match texts {
        [name, version] if !whole(name) && !whole(version) => Ok(vec![(name, version)]),
        texts => texts
            .iter()
            .map(|text| match text.split_once('@') {
                Some((name, version)) if !version.is_empty() => Ok((name, version)),
                _ => {
                    let name = text.trim_end_matches('@');
                    let failure = Failure::usage(format!("which version of \"{name}\"?"));
                    let name = shell(name);
                    Err(failure
                        .with_next(format!("write: {name}@VERSION   or list them: atlasctl agent versions {name}")))
                }
            })
            .collect(),
    }
}

/// Runs `one` for each name, in order. A failure is reported and does not stop the others; the first failure decides
/// the exit code. What they show of several names is one document where the output format has only one.
pub(crate) async fn each(
    context: &Context,
    names: &[String],
    one: impl AsyncFn(&str) -> Result<Exit, Failure>,
) -> Result<Exit, Failure> {
    if let [name] = names {
        return one(name).await;
    }
    let all = async {
        let mut first = Exit::Done;
        for name in names {
            let exit = match one(name).await {
                Ok(exit) => exit,
                Err(failure) if failure.exit == Exit::Unreachable => return Err(failure),
                Err(failure) => {
                    context.report(&failure);
                    failure.exit
                }
            };
            if first == Exit::Done {
                first = exit;
            }
        }
        Ok(first)
    };
    context.as_one(false, all).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_bare_or_have_their_kind() {
        for text in ["job-4f3a", "job/job-4f3a", "jobs/job-4f3a"] {
            assert_eq!(job(text).as_deref(), Ok("job-4f3a"), "{text}");
        }
        assert_eq!(agent("agent/hello@0.1.0").as_deref(), Ok("hello@0.1.0"));
        assert_eq!(agent("team/hello").as_deref(), Ok("team/hello"));
        assert_eq!(job("node/w1"), Err("expected a job, not a node".to_owned()));
        assert_eq!((base("base/wiki").as_deref(), entry("knowledge/ops-1").as_deref()), (Ok("wiki"), Ok("ops-1")));
        assert_eq!(base("knowledge/x"), Err("expected a base, not a knowledge".to_owned()));
        for (text, expected) in [("namespace", "namespace"), ("memory/user:a/b", "user:a/b"), ("agent:a", "agent:a")] {
            assert_eq!(scope(text).as_deref(), Ok(expected));
        }
        assert!(["", "user", "user:", "team:a", "memory/"].iter().all(|text| scope(text).is_err()));
        for text in ["c1", "controller/c1", "worker/c1", "node/c1", "controllers/c1"] {
            assert_eq!(process(text).as_deref(), Ok("c1"), "{text}");
        }
        assert!(process("job/c1").is_err() && process("worker/").is_err() && process("").is_err());
        assert!(node("").is_err() && node("node/").is_err());
    }

    #[test]
    fn versions_are_named_in_one_word_or_in_two() {
        let told = |texts: &[&str]| {
            let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
            versions(&texts)
                .map(|all| all.iter().map(|(name, version)| format!("{name} {version};")).collect::<String>())
        };
        assert_eq!(told(&["hello", "0.1.0"]).as_deref(), Ok("hello 0.1.0;"));
        assert_eq!(told(&["hello@0.1.0"]).as_deref(), Ok("hello 0.1.0;"));
        assert_eq!(told(&["hello@0.1.0", "hello@0.2.0"]).as_deref(), Ok("hello 0.1.0;hello 0.2.0;"));
        assert!(told(&["hello"]).is_err() && told(&["hello@", "a@1.0.0"]).is_err());
    }
}
