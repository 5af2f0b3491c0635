//! What a tool sees besides its arguments.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// Whose tool is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Owner {
    /// A tool of the folder of tools.
    Shared,
    /// A tool of an agent.
    Agent {
        /// The name of the agent.
        name: String,
        /// Its folder.
        folder: PathBuf,
    },
}

/// Where tools run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptSurroundings {
    /// The folder that the tools of agents see as `LLM_ROOT_DIR`.
    pub root: PathBuf,
    /// The folder of tools, which shared tools see as `LLM_ROOT_DIR`.
    pub functions: PathBuf,
    /// The working folder of tools.
    pub workspace: PathBuf,
    /// A folder of our own, for prepared scripts and results.
    pub scratch: PathBuf,
    /// Variables of the process that tools see; all others are hidden.
    pub inherited: Vec<(OsString, OsString)>,
    /// Variables of the agent, by name: a tool sees them as `LLM_AGENT_VAR_NAME`.
    pub variables: BTreeMap<String, String>,
    /// Whether guards of tools let everything pass.
    pub auto_confirm: bool,
}

/// Bytes of a `.env` file that are read.
const DOTENV_BYTES_MAX: usize = 64 << 10;

/// The name of the file with functions for Bash tools, in the scratch folder.
pub(crate) const HELPERS: &str = "prompt-utils.sh";

impl ScriptSurroundings {
    /// The variables of a call. What is inherited is never replaced by a `.env` file.
    pub(crate) fn variables(
        &self,
        tool: &str,
        function: &str,
        owner: &Owner,
        output: &Path,
    ) -> BTreeMap<OsString, OsString> {
        let mut all: BTreeMap<OsString, OsString> = self.inherited.iter().cloned().collect();
        let mut set = |name: String, value: OsString| drop(all.insert(name.into(), value));
        set("LLM_OUTPUT".to_owned(), output.into());
        set("LLM_PROMPT_UTILS_FILE".to_owned(), self.scratch.join(HELPERS).into());
        set("CLICOLOR_FORCE".to_owned(), "1".into());
        set("FORCE_COLOR".to_owned(), "1".into());
        for (name, value) in &self.variables {
            set(format!("LLM_AGENT_VAR_{}", name.to_uppercase().replace('-', "_")), value.into());
        }
        if self.auto_confirm {
            set("AUTO_CONFIRM".to_owned(), "1".into());
        }
        let dotenv = match owner {
            Owner::Shared => {
                set("LLM_ROOT_DIR".to_owned(), self.functions.clone().into());
                set("LLM_TOOL_NAME".to_owned(), tool.into());
                set("LLM_TOOL_CACHE_DIR".to_owned(), self.functions.join("cache").join(tool).into());
                vec![self.functions.join(".env")]
            }
            Owner::Agent { name, folder } => {
                set("LLM_ROOT_DIR".to_owned(), self.root.clone().into());
                set("LLM_AGENT_NAME".to_owned(), name.into());
                set("LLM_AGENT_FUNC".to_owned(), function.into());
                set("LLM_AGENT_ROOT_DIR".to_owned(), folder.clone().into());
                set("LLM_AGENT_CACHE_DIR".to_owned(), self.root.join("cache").join(name).into());
                vec![folder.join(".env"), self.root.join(".env")]
            }
        };
        for (name, value) in dotenv.iter().flat_map(|path| read_dotenv(path)) {
            all.entry(name.into()).or_insert(value.into());
        }
        all
    }
}

/// The variables of a file; none if there is no such file.
fn read_dotenv(path: &Path) -> Vec<(String, String)> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let text = if text.len() > DOTENV_BYTES_MAX { "" } else { &text[..] };
    text.lines().filter_map(variable).collect()
}

fn variable(line: &str) -> Option<(String, String)> {
    let line = line.trim();
    let (name, value) = line.split_once('=').filter(|_| !line.starts_with('#'))?;
    let (name, value) = (name.trim(), value.trim());
    let quoted = |quote| value.strip_prefix(quote).and_then(|rest: &str| rest.strip_suffix(quote));
    let value = quoted('"').or_else(|| quoted('\'')).unwrap_or(value);
    let usable = !name.is_empty() && !value.contains('\0') && !name.contains('\0');
    usable.then(|| (name.to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_dotenv_file() {
        let pair = |name: &str, value: &str| Some((name.to_owned(), value.to_owned()));
        assert_eq!(variable(" A = b=c "), pair("A", "b=c"));
        assert_eq!(variable("A='x y'"), pair("A", "x y"));
        assert_eq!(variable("A=\"\""), pair("A", ""));
        assert_eq!(variable("A=\""), pair("A", "\""));
        for line in ["", "# A=b", "A", "=b", "A=\0"] {
            assert_eq!(variable(line), None, "{line:?}");
        }
    }
}
