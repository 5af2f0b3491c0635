//! The tools of an agent: those of its own file, and the files of `functions/tools` that it lists.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use atlas_model::{Tool as ModelTool, ToolCall};
use atlas_tool_runner::{CallLimits, Owner, Script, ScriptSurroundings, Tool};
use atlas_tools::Declaration;
use atlas_turn::{OfferedTool, Outcome, ToolAction, ToolRule};
use serde_json::{Value, json};

use super::Launcher;
use crate::attempt::Work;
use crate::provider::llm::fault::Fault;
use crate::secrets::Secrets;

/// The folder of the files that shared tools see as their root, in the package.
const FUNCTIONS: &str = "functions";
/// The variable with which an agent lets guarded tools pass.
const AUTO_CONFIRM: &str = "auto_confirm";
/// The function that computes the instructions.
const INSTRUCTIONS: &str = "_instructions";

/// The tools, ready to be called.
pub(in crate::provider) struct Toolbox {
    tools: BTreeMap<String, Tool>,
    /// In the order of the files.
    order: Vec<String>,
    instructions: Option<Tool>,
    /// Tools that a person should allow before they are called.
    guarded: Vec<String>,
    /// Whether the agent's variable `auto_confirm` lets all of them pass.
    auto_confirm: bool,
    /// Removed with the attempt.
    _folder: Folder,
}

impl Toolbox {
    /// Reads the files. Without a workspace, the tools run in an empty folder of their own.
    pub(in crate::provider) fn open(
        work: &Work,
        global_tools: &[String],
        variables: &BTreeMap<String, String>,
        secrets: &Secrets,
        environment: Vec<(OsString, OsString)>,
        workspace: Option<PathBuf>,
    ) -> Result<Self, Fault> {
        let directory = &work.agent.directory;
        let folder = Folder::new(&work.assignment.job.to_string());
        let folder = folder.map_err(|error| Fault::internal(format!("could not make a folder for tools: {error}")))?;
        let reveal = |(name, value): (&String, &String)| (name.clone(), revealed(value, secrets));
        let surroundings = Arc::new(ScriptSurroundings {
            root: directory.clone(),
            functions: directory.join(FUNCTIONS),
            workspace: workspace.unwrap_or_else(|| folder.0.join("work")),
            scratch: folder.0.join("scratch"),
            inherited: environment,
            variables: variables.iter().map(reveal).collect(),
            auto_confirm: false,
        });
        let mut toolbox = Self {
            tools: BTreeMap::new(),
            order: Vec::new(),
            instructions: None,
            guarded: Vec::new(),
            auto_confirm: variables
                .get(AUTO_CONFIRM)
                .is_some_and(|value| !matches!(value.trim(), "" | "0" | "false" | "no")),
            _folder: folder,
        };
        for name in global_tools {
            let path = atlas_package::global_tool(directory, name);
            let path = path.map_err(|error| Fault::Definition(error.to_string()))?;
            toolbox.add(Script::read(&path, Owner::Shared).map_err(|error| refused(&error))?, &surroundings)?;
        }
        if let Some(path) = atlas_package::own_tools(directory).into_iter().next() {
            let owner = Owner::Agent { name: work.agent.contract.name.to_string(), folder: directory.clone() };
            let script = Script::read(&path, owner).map_err(|error| refused(&error))?;
            if script.declared.instructions {
                toolbox.instructions = instructions(script.clone(), &surroundings)?;
            }
            toolbox.add(script, &surroundings)?;
        }
        Ok(toolbox)
    }

    fn add(&mut self, script: Script, surroundings: &Arc<ScriptSurroundings>) -> Result<(), Fault> {
        self.guarded.extend(script.declared.guarded.iter().cloned());
        for tool in script.prepare(surroundings).map_err(|error| refused(&error))? {
            let name = tool.declaration.name.clone();
            if self.tools.insert(name.clone(), tool).is_some() {
                return Err(Fault::Definition(format!("two tools have the name \"{name}\"")));
            }
            self.order.push(name);
        }
        Ok(())
    }

    /// What a model is offered.
    pub(in crate::provider) fn offered(&self) -> Vec<OfferedTool> {
        let legal = atlas_llm::names::legal(self.order.iter().map(String::as_str));
        let tools = self.order.iter().zip(legal).filter_map(|(name, legal)| {
            let declaration = &self.tools.get(name)?.declaration;
            let (description, input_schema) = (declaration.description.clone(), declaration.schema());
            Some(OfferedTool { name: name.clone(), tool: ModelTool { name: legal, description, input_schema } })
        });
        tools.collect()
    }

    /// The rules of guarded tools: they count where the agent's own rules say nothing.
    pub(in crate::provider) fn guards(&self) -> impl Iterator<Item = ToolRule> {
        let guarded = self.guarded.iter().filter(|_| !self.auto_confirm);
        guarded.map(|tool| ToolRule { tool: tool.clone(), action: ToolAction::Ask })
    }

    /// Calls a tool. Whatever happens, the model gets a value.
    pub(in crate::provider) async fn call(&self, call: &ToolCall, launcher: &Launcher) -> Outcome {
        let Some(tool) = self.tools.get(&call.name) else {
            return Outcome::error("UnknownTool", format!("there is no tool \"{}\"", call.name));
        };
        Outcome::Value(tool.call_by(launcher, &call.arguments, &CallLimits::default()).await.value)
    }

    /// The text that the function `_instructions` computes.
    pub(in crate::provider) async fn instructions(&self, launcher: &Launcher) -> Result<String, String> {
        let Some(tool) = &self.instructions else {
            return Err("dynamic_instructions is true, and the tools have no function _instructions".to_owned());
        };
        let called = tool.call_by(launcher, &json!({}), &CallLimits::default()).await;
        let text = called.value.get("output").and_then(Value::as_str).or_else(|| called.value.as_str());
        match text {
            // A tool that writes nothing returns this word.
            Some(text) if !called.failed && text != "DONE" => Ok(text.to_owned()),
            _ => Err(format!("the function _instructions gave no text: {}", called.value)),
        }
    }
}

fn instructions(mut script: Script, surroundings: &Arc<ScriptSurroundings>) -> Result<Option<Tool>, Fault> {
    let name = INSTRUCTIONS.to_owned();
    let declaration = Declaration { function: name.clone(), name, description: String::new(), parameters: Vec::new() };
    script.declared.tools = vec![declaration];
    Ok(script.prepare(surroundings).map_err(|error| refused(&error))?.pop())
}

fn refused(error: &atlas_tool_runner::PrepareError) -> Fault {
    Fault::Definition(atlas_env::chain(error))
}

/// A value of a variable with the secrets to which it refers.
fn revealed(value: &str, secrets: &Secrets) -> String {
    let mut revealed = value.to_owned();
    for name in atlas_package::placeholders(value) {
        if let Some(secret) = secrets.declared(name) {
            revealed = revealed.replace(&format!("{{{{{name}}}}}"), secret.expose());
        }
    }
    revealed
}

/// The folder of an attempt. It is removed with this value.
struct Folder(PathBuf);

impl Folder {
    fn new(job: &str) -> std::io::Result<Self> {
        let path = std::env::temp_dir().join(format!("atlas-tools-{job}-{}", std::process::id()));
        fs::create_dir_all(path.join("work"))?;
        fs::create_dir_all(path.join("scratch"))?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What cannot be removed is left to the system's own cleaning of temporary files.
        let _ = fs::remove_dir_all(&self.0);
    }
}
