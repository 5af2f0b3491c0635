//! `atlasctl types`: the types of what an agent takes and gives, for programs.

use std::fs;
use std::path::{Path, PathBuf};

use atlas_api::types::Agent;
use atlas_package::CONTRACT_FILE;
use serde_json::{Value, json};

use crate::answers;
use crate::command::agent::named;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Shown;
use crate::types::{Language, written};
use crate::words::could_not;

/// Options of `atlasctl types`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Folder of an agent, or the name of one of the cluster, optionally with @VERSION.
    #[arg(value_name = "AGENT|DIR", default_value = ".")]
    agent: String,
    /// Language of the types.
    #[arg(long, value_enum, default_value_t = Language::Ts)]
    lang: Language,
    /// File to write; without it, the types are printed.
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

pub(crate) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    let text = match folder(&options.agent) {
        Some(folder) => of_folder(&folder, options.lang)?,
        None => of_agent(context, &options.agent, options.lang).await?,
    };
    let Some(file) = &options.file else {
        let value = json!({"language": word(options.lang), "text": text});
        context.show(&Shown { value, text, names: vec![options.agent.clone()] })?;
        return Ok(Exit::Done);
    };
    // A file that stays as it is starts no build.
    if fs::read_to_string(file).ok().as_deref() != Some(text.as_str()) {
        fs::write(file, &text).map_err(|error| could_not("write", file, &error))?;
    }
    let path = file.display().to_string();
    let shown = Shown {
        value: json!({"language": word(options.lang), "path": path}),
        text: format!("{path}\n"),
        names: vec![path],
    };
    context.show(&shown)?;
    Ok(Exit::Done)
}

/// The folder that is meant: one that is there, or a path.
fn folder(text: &str) -> Option<PathBuf> {
    let path = Path::new(text);
    (path.components().count() != 1 || text.starts_with('.') || path.is_dir()).then(|| path.to_owned())
}

fn of_folder(folder: &Path, language: Language) -> Result<String, Failure> {
    let path = folder.join(CONTRACT_FILE);
    let defined = atlas_package::contract_of_folder(folder).map_err(|error| {
        let message = format!("could not read the agent in \"{}\": {}", folder.display(), atlas_env::chain(&error));
        Failure::new("E1103", Exit::Invalid, message)
    })?;
    let bytes = match defined {
        Some(bytes) if !path.is_file() => bytes,
        _ => fs::read(&path).map_err(|error| could_not("read", &path, &error))?,
    };
    let contract = atlas_contract::parse(&bytes).map_err(|error| {
        let message = format!("the contract \"{}\" is not valid: {error}", path.display());
        Failure::new("E1103", Exit::Invalid, message).with_next("the rules: atlasctl docs contract")
    })?;
    Ok(of_own(language, &contract.input_schema, &contract.output_schema))
}

/// The types of an agent for its own program.
pub(crate) fn of_own(language: Language, input: &Value, output: &Value) -> String {
    let title = format!("Made of {CONTRACT_FILE} by atlasctl types; what is changed here is lost.");
    written(language, &title, "", input, output)
}

/// The types of an agent of the cluster have its name in front, because a program may have those of several.
async fn of_agent(context: &Context, text: &str, language: Language) -> Result<String, Failure> {
    let (name, requirement) = named(text);
    let query: Vec<(&str, &str)> = requirement.iter().map(|text| ("version", *text)).collect();
    let agent: Agent = answers::read(&context.client()?.get(&["api", "agents", name], &query).await?)?;
    let title = format!("Made of the contract of {} {} by atlasctl types.", agent.name, agent.version);
    Ok(written(language, &title, &agent.name, &agent.input_schema, &agent.output_schema))
}

fn word(language: Language) -> &'static str {
    match language {
        Language::Ts => "ts",
        Language::Python => "python",
    }
}
