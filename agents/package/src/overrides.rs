//! What the environment of the person who deploys an agent of Loki replaces in its definition. Packing writes it into the package as
//! `overrides.json`, so that all workers read the same definition, and the digest covers it.

use std::path::Path;

use atlas_loki_agent::{OverrideError, Overrides};

use crate::graph;

/// The file with the values that replace those of the definition beside it.
pub const OVERRIDES_FILE: &str = "overrides.json";

const BYTES_MAX: usize = 1 << 20;

/// Why values that replace others cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OverridesError {
    #[error(transparent)]
    Variable(#[from] OverrideError),
    #[error("{OVERRIDES_FILE} is not usable: {why}")]
    File { why: String },
}

/// Those of a folder; none if it has no such file.
pub(crate) fn of_folder(folder: &Path) -> Result<Overrides, OverridesError> {
    let path = folder.join(OVERRIDES_FILE);
    if !path.is_file() {
        return Ok(Overrides::default());
    }
    let bytes =
        graph::read(&path, BYTES_MAX as u64 + 1).map_err(|error| OverridesError::File { why: error.to_string() })?;
    read(&bytes)
}

/// Those in the text of the file.
pub(crate) fn read(bytes: &[u8]) -> Result<Overrides, OverridesError> {
    if bytes.len() > BYTES_MAX {
        return Err(OverridesError::File { why: format!("it has more than {BYTES_MAX} bytes") });
    }
    let document = serde_json::from_slice(bytes).map_err(|error| OverridesError::File { why: error.to_string() })?;
    Overrides::read(&document).map_err(|why| OverridesError::File { why })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::{GraphFolder, config, pack, pack_in, unpack};

    #[test]
    fn a_package_has_the_values_of_the_environment() {
        let root = tempfile::tempdir().expect("a folder");
        let agent = root.path().join("my-agent");
        fs::create_dir(&agent).expect("a folder");
        fs::write(agent.join("config.yaml"), "name: A\nmodel: m\nglobal_tools: [fs_ls.sh]\n").expect("a file");
        let variable = |name: &str| match name {
            "MY_AGENT_MODEL" => Some("openai:n".to_owned()),
            "MY_AGENT_GLOBAL_TOOLS" => Some(r#"["demo_sh"]"#.to_owned()),
            _ => None,
        };
        let package = pack_in(&agent, &variable).expect("a package");
        assert_eq!(package.contract.model.name.as_deref(), Some("n"));
        let to = root.path().join("unpacked");
        unpack(&package.bytes, &to, &crate::Limits::default()).expect("it unpacks");
        let read = config(&to).expect("a configuration");
        assert_eq!((read.model.as_deref(), &read.global_tools[..]), (Some("openai:n"), &["demo_sh".to_owned()][..]));
        assert!(to.join("functions/tools/demo_sh.sh").is_file() && !to.join("functions/tools/fs_ls.py").exists());
        // Without variables, it is the package of the folder.
        assert_eq!(pack_in(&agent, &|_| None).expect("a package"), pack(&agent).expect("a package"));
        let refused = pack_in(&agent, &|name| name.ends_with("TOP_P").then(|| "x".to_owned())).expect_err("no number");
        let cause = std::error::Error::source(&refused).expect("a cause").to_string();
        assert_eq!(cause, "the variable MY_AGENT_TOP_P of the environment is not usable: \"x\" is no number");
    }

    #[test]
    fn graphs_are_changed_as_well() {
        let root = tempfile::tempdir().expect("a folder");
        let agent = root.path().join("flow");
        fs::create_dir(&agent).expect("a folder");
        let graph =
            "name: x\nstart: e\ntemperature: 0.5\nvariables: [{name: k, description: d}]\nnodes:\n  e: {type: end}\n";
        fs::write(agent.join("graph.yaml"), graph).expect("a file");
        let variable = |name: &str| match name {
            "FLOW_TEMPERATURE" => Some("null".to_owned()),
            "FLOW_VARIABLES" => Some(r#"[{"name": "k", "value": "v"}]"#.to_owned()),
            _ => None,
        };
        let package = pack_in(&agent, &variable).expect("a package");
        let to = root.path().join("unpacked");
        unpack(&package.bytes, &to, &crate::Limits::default()).expect("it unpacks");
        let graph = GraphFolder::new(&to).read().expect("a graph").graph;
        assert_eq!((graph.temperature, graph.variables[0].default.as_deref()), (None, Some("v")));
        fs::write(to.join(OVERRIDES_FILE), "[]").expect("a file");
        assert!(GraphFolder::new(&to).read().is_err());
    }
}
