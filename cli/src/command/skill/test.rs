//! `atlasctl skill test`.

use serde_json::{Value, json};

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::{self, Source};
use crate::names;
use crate::output::Shown;

/// Options of `atlasctl skill test`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// The skill's name.
    #[arg(value_name = "NAME", value_parser = names::skill)]
    name: String,
    /// Input: one JSON object, or key=value arguments (key=@FILE reads the text of a file).
    #[arg(value_name = "JSON|KEY=VALUE")]
    words: Vec<String>,
    /// Input as JSON, @FILE, or - for stdin.
    #[arg(short, long, value_name = "JSON|@FILE|-", allow_hyphen_values = true)]
    input: Option<String>,
}

/// Calls the skill once, and prints what it returns.
pub(super) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    let client = context.client()?;
    let name = &options.name;
    let input = match input::source(&options.words, options.input.as_deref())? {
        Source::Whole(value) => value,
        Source::Pairs(pairs) => {
            let skill = client.get(&["api", "skills", name], &[]).await?;
            input::object(pairs, &skill["input_schema"])?
        }
    };
    let answer = client.post(&["api", "skills", name, "test"], &[], &json!({ "input": input })).await?;
    if let Some(failure) = failure(name, &answer) {
        return Err(failure);
    }
    let output = &answer["output"];
    let names = vec![format!("skill/{name}")];
    context.show(&Shown { value: output.clone(), text: format!("{output}\n"), names })?;
    Ok(Exit::Done)
}

/// Why the call has no output.
fn failure(name: &str, answer: &Value) -> Option<Failure> {
    let error = answer["error"].as_str().filter(|error| !error.is_empty())?;
    Some(if answer["refused"] == true {
        let message = format!("the input does not fit the schema of {name}: {error}");
        Failure::new("E1102", Exit::Invalid, message).with_next(format!("its schema: atlasctl skill show {name}"))
    } else {
        Failure::new("E3101", Exit::JobFailed, error.to_owned())
            .with_next("its job: atlasctl job list --namespace atlas-skills".to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_have_their_exit_codes() {
        let of = |answer: Value| failure("words", &answer).map(|failure| (failure.exit, failure.message));
        assert_eq!(of(json!({ "output": 1, "error": "", "refused": false })), None);
        let failed = (Exit::JobFailed, "no text".to_owned());
        assert_eq!(of(json!({ "output": null, "error": "no text", "refused": false })), Some(failed));
        let refused = (Exit::Invalid, "the input does not fit the schema of words: x".to_owned());
        assert_eq!(of(json!({ "output": null, "error": "x", "refused": true })), Some(refused));
    }
}
