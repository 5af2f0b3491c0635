//! The files with tools of an agent, read as a job reads them.

use std::collections::BTreeMap;
use std::path::Path;

use atlas_contract::Warning;
use atlas_package::TOOLS_FOLDER;
use atlas_tool_runner::{Owner, Script};

use crate::program::Findings;

/// What is known of an agent's tools.
#[derive(Debug, Default)]
pub(super) struct Tools {
    /// The file of each tool, in the order of the names.
    files: BTreeMap<String, String>,
    /// Why jobs that open the tools fail: where, and what.
    faults: Vec<(String, String)>,
    /// Files with tools that are not read, and the one that is.
    unread: Vec<(String, String)>,
    /// Whether the agent's own file has the function `_instructions`.
    pub(super) instructions: bool,
}

impl Tools {
    /// Reads the tools of the package in a folder.
    pub(super) fn read(root: &Path, global_tools: &[String]) -> Self {
        let mut tools = Self::default();
        for name in global_tools {
            match atlas_package::global_tool(root, name) {
                Ok(path) => tools.add(root, &path, Owner::Shared),
                // Packing adds it.
                Err(_) if atlas_package::is_packaged_tool(name) && !root.join(TOOLS_FOLDER).join(name).exists() => {}
                Err(error) => tools.faults.push(("/global_tools".to_owned(), error.to_string())),
            }
        }
        let own = atlas_package::own_tools(root);
        if let Some((first, others)) = own.split_first() {
            tools.add(root, first, Owner::Agent { name: String::new(), folder: root.to_owned() });
            tools.unread.extend(others.iter().map(|other| (shown(root, other), shown(root, first))));
        }
        tools
    }

    fn add(&mut self, root: &Path, path: &Path, owner: Owner) {
        let file = shown(root, path);
        let is_own = owner != Owner::Shared;
        let script = match Script::read(path, owner).and_then(|script| script.check().map(|()| script)) {
            Ok(script) => script,
            Err(error) => {
                let why = atlas_env::chain(&error).replace(&format!("{}/", root.display()), "");
                return self.faults.push((file, why));
            }
        };
        self.instructions |= is_own && script.declared.instructions;
        for tool in &script.declared.tools {
            if let Some(other) = self.files.insert(tool.name.clone(), file.clone()) {
                let what = format!("two tools have the name \"{}\": in {other} and in {file}", tool.name);
                self.faults.push((file.clone(), what));
            }
        }
    }

    /// The names of all tools.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    /// Reports what is wrong. If no job reads the tools, it fails none.
    pub(super) fn tell(&self, definition: &str, are_read: bool, findings: &mut Findings) {
        for (at, what) in &self.faults {
            let at = if at.starts_with('/') { format!("{definition} {at}") } else { at.clone() };
            match are_read {
                true => findings.fault(at, what.clone()),
                false => {
                    findings.warn(Warning::new(at, what.clone()).with_hint("no node calls the tools of these files"))
                }
            }
        }
        for (file, first) in &self.unread {
            let hint = format!("{first} counts; put all tools into it, or into {TOOLS_FOLDER}");
            findings.warn(Warning::new(file, "has no effect: an agent has one file of tools").with_hint(hint));
        }
    }
}

fn shown(root: &Path, path: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).display().to_string()
}
