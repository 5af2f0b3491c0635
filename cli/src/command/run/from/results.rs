//! The results of the lines of a file: ids, outputs or refusals.

use atlas_api::types::Job;
use atlas_env::Env;
use serde_json::{Value, json};

use super::{Line, Settled};
use crate::answers;
use crate::client::{Client, refusal_of_element};
use crate::command::run::{Options, family};
use crate::context::Context;
use crate::ending;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Form, Shown};

/// Waits for the job of each line in turn and prints its output, or why there is none; the first line without an output
/// decides on the exit code.
pub(super) async fn print(
    context: &Context,
    client: &Client,
    options: &Options,
    lines: &[Line],
    settled: &[Settled],
) -> Result<Exit, Failure> {
    let since = Env::system().clock.monotonic();
    // These forms print each result as it comes; the others need all of them.
    let streams = context.form.is_text() || matches!(context.form, Form::Jsonl | Form::Name);
    let (mut all, mut first) = (Vec::new(), Exit::Done);
    for (line, settled) in lines.iter().zip(settled) {
        let (shown, exit) = match settled {
            Err(problem) => (refusal(line.number, problem), Exit::Invalid),
            Ok(id) => {
                let mut latest = id.clone();
                let waited = tokio::select! {
                    waited = family(context, client, &mut latest, options.attending(), since) => waited?,
                    // Ctrl-C ends this program, not the jobs.
                    _ = tokio::signal::ctrl_c() => None,
                };
                let Some(waited) = waited else {
                    context.note(&format!("stopped waiting at line {}; the jobs continue", line.number));
                    first = Exit::WaitTimedOut;
                    break;
                };
                ended(line.number, waited)?
            }
        };
        if first == Exit::Done {
            first = exit;
        }
        if streams {
            context.show(&shown)?;
        } else {
            all.push(shown);
        }
    }
    if !streams {
        context.show(&together(all))?;
    }
    Ok(first)
}

/// A line whose job was submitted.
pub(super) fn submitted(id: &str) -> Shown {
    Shown { value: json!({"id": id}), text: format!("{id}\n"), names: vec![format!("job/{id}")] }
}

/// A line that was refused, with the places that are wrong.
pub(super) fn refusal(number: usize, problem: &Value) -> Shown {
    let failure = Failure { next: None, retry_after: None, ..refusal_of_element(problem) };
    Shown { value: json!({"error": problem}), text: format!("line {number}: {failure}\n"), names: Vec::new() }
}

/// A line whose job has ended, or is no longer waited for.
fn ended(number: usize, value: Value) -> Result<(Shown, Exit), Failure> {
    let job: Job = answers::read(&value)?;
    let text = ending::result(&job).unwrap_or_else(|failure| format!("line {number}: {failure}\n"));
    Ok((Shown { value, text, names: vec![format!("job/{}", job.id)] }, ending::exit(&job)))
}

/// Several results as one list.
pub(super) fn together(all: Vec<Shown>) -> Shown {
    let mut list = Shown { value: Value::Array(Vec::new()), ..Shown::default() };
    for shown in all {
        list.text += &shown.text;
        list.names.extend(shown.names);
        if let Value::Array(values) = &mut list.value {
            values.push(shown.value);
        }
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_line_says_where() {
        assert_eq!(submitted("job-1").text, "job-1\n");
        let problem =
            json!({"code": "E1102", "detail": "no", "errors": [{"pointer": "/nme", "message": "not allowed"}]});
        assert_eq!(refusal(3, &problem).text, "line 3: error[E1102]: no\n  at /nme    not allowed\n");
        // As from a controller without requests for several jobs.
        let alone = json!({"code": "E1102", "message": "no", "errors": []});
        assert_eq!(refusal(3, &alone).text, "line 3: error[E1102]: no\n");
    }
}
