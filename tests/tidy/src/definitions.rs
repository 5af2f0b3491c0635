//! Every member of a definition that is read has an effect: a program reads it, or it is in the list of members without effect.
//!
//! The definitions are those of agents: `agent.yaml`, `config.yaml` and `graph.yaml`. The lists are in the crates that parse them, where
//! checks of deployments use them.

use std::path::{Path, PathBuf};

use crate::tree::{files, read, report, root};

/// A parsed definition.
struct Definition {
    /// The file with its structures.
    file: &'static str,
    /// The structures whose members are looked for.
    structures: &'static [&'static str],
    /// Members that nothing reads, as the crate lists them for its warnings.
    without_effect: &'static [&'static str],
    /// Where a member is read, by the beginnings of paths.
    readers: &'static [&'static str],
}

const DEFINITIONS: [Definition; 4] = [
    Definition {
        file: "agents/contract/src/contract.rs",
        structures: &["Contract", "Model", "Requires", "Provider", "Hardware", "Retry", "Permissions"],
        without_effect: &["override_allowed", "memory", "knowledge", "spawn"],
        readers: &[
            "agents/contract/src/contract/run.rs",
            "agents/package/",
            "worker/",
            "controller/",
            "agents/policy/",
        ],
    },
    Definition {
        file: "agents/contract/src/contract/llm.rs",
        structures: &["Llm"],
        without_effect: &[],
        readers: &["worker/", "controller/"],
    },
    Definition {
        file: "agents/loki-agent/src/config.rs",
        structures: &["Config"],
        // The last one has the names of members that are none.
        without_effect: &["compression_threshold", "conversation_starters", "unknown"],
        readers: &["worker/", "agents/package/src/derive.rs"],
    },
    Definition {
        file: "agents/graph/src/graph.rs",
        structures: &["Graph", "Settings", "Llm", "Script", "Approval", "Input", "Rag", "MapNode", "Agent"],
        without_effect: &["conversation_starters", "log_state_snapshots"],
        // The version of the format decides whether a graph is read.
        readers: &[
            "worker/",
            "agents/graph/src/run",
            "agents/graph/src/graph.rs",
            "agents/graph/src/load.rs",
            "agents/package/src/derive.rs",
        ],
    },
];

#[test]
fn each_member_of_a_definition_has_an_effect_or_is_listed() {
    let root = root();
    let sources: Vec<(PathBuf, String)> = files(&["rs"])
        .into_iter()
        .map(|path| (path.strip_prefix(&root).unwrap_or(&path).to_owned(), path))
        .filter(|(name, _)| !name.components().any(|part| part.as_os_str() == "tests"))
        .map(|(name, path)| {
            let text = read(&path);
            let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default().to_owned();
            (name, code)
        })
        .collect();
    let mut findings = Vec::new();
    for definition in &DEFINITIONS {
        let text = read(&root.join(definition.file));
        let mut seen = 0;
        for structure in definition.structures {
            for member in members(&text, structure) {
                seen += 1;
                let readers = sources.iter().filter(|(name, _)| is_reader(name, definition));
                let is_read = readers.into_iter().any(|(_, code)| reads(code, &member));
                if !is_read && !definition.without_effect.contains(&member.as_str()) {
                    let at = format!("{}: {structure}.{member}", definition.file);
                    findings.push(format!("{at} is read by nothing: give it an effect, or list it as without effect"));
                }
            }
        }
        assert!(seen > 10, "the structures of {} are found", definition.file);
    }
    report("members of definitions have an effect, or are listed", &findings);
}

fn is_reader(name: &Path, definition: &Definition) -> bool {
    definition.readers.iter().any(|reader| name.to_string_lossy().starts_with(reader))
}

/// The public members of a structure.
fn members(text: &str, structure: &str) -> Vec<String> {
    let Some((_, rest)) = text.split_once(&format!("pub struct {structure} {{\n")) else { return Vec::new() };
    let body = rest.split("\n}\n").next().unwrap_or_default();
    let name = |line: &str| Some(line.trim().strip_prefix("pub ")?.split_once(':')?.0.to_owned());
    body.lines().filter_map(name).collect()
}

/// Whether a text has `.member`, without more letters behind it and without `(`, or reads the member of a document.
fn reads(code: &str, member: &str) -> bool {
    if code.contains(&format!("\"{member}\"")) || code.contains(&format!("/{member}\"")) {
        return true;
    }
    let wanted = format!(".{member}");
    code.match_indices(&wanted).any(|(place, _)| {
        let next = code[place + wanted.len()..].chars().next();
        next.is_none_or(|next| !next.is_alphanumeric() && next != '_' && next != '(')
    })
}

#[test]
fn members_are_found_where_they_are_read() {
    let text = "pub struct A {\n    /// x\n    pub one: u8,\n    two: u8,\n    pub three: Vec<u8>,\n}\npub struct B {\n    pub four: u8,\n}\n";
    assert_eq!(members(text, "A"), ["one", "three"]);
    assert_eq!(members(text, "C"), [""; 0]);
    assert!(reads("let x = a.one;", "one") && reads("f(&a.one)", "one"));
    assert!(reads("contract[\"one\"]", "one") && reads("pointer(\"/a/one\")", "one"));
    assert!(!reads("a.one_more", "one") && !reads("a.one()", "one") && !reads("one", "one"));
}
