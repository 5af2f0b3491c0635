//! `atlasctl job steps`.

use atlas_api::types::JobStep;
use serde_json::Value;

use crate::answers;
use crate::command::chain_run;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::names;
use crate::output::{Shown, Table};
use crate::words;

/// Which steps of which job.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Id of a job or of a run of a chain, or a unique prefix of it, also as printed by -o name.
    #[arg(value_name = "ID", value_parser = names::ran)]
    id: String,
    /// Only the steps after this number.
    #[arg(long, value_name = "STEP", value_parser = words::parse_number)]
    after: Option<u64>,
    /// Maximum number of steps, 1 to 100000.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    limit: u64,
}

/// Most steps of one answer.
const PAGE: u64 = 1_000;

pub(crate) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    if chain_run::is_one(&options.id) {
        return chain_run::each_job(context, &options.id, async |job| of_job(context, job, options, true).await).await;
    }
    of_job(context, &options.id, options, false).await
}

/// Shows the steps of a job; as data with the job's id if it is one of several.
async fn of_job(context: &Context, id: &str, options: &Options, is_one_of_several: bool) -> Result<Exit, Failure> {
    let client = context.client()?;
    let ask = async |after: Option<u64>, limit: u64| {
        let (limit, after) = (limit.to_string(), after.map(|after| after.to_string()));
        let mut query = vec![("limit", limit.as_str())];
        query.extend(after.as_deref().map(|after| ("after", after)));
        client.get(&["api", "jobs", id, "steps"], &query).await
    };
    let Found { rows, last, has_more } = read(options.after, options.limit, ask).await?;
    let mut value = Value::Array(rows);
    let text = table(&value)?;
    let names = steps(&value)?.iter().map(|step| step.step.to_string()).collect();
    for step in value.as_array_mut().into_iter().flatten().filter(|_| is_one_of_several) {
        step["job"] = id.into();
    }
    context.show(&Shown { value, text, names })?;
    if let Some(last) = last.filter(|_| has_more) {
        context.note(&format!("there are more steps: atlasctl job steps {id} --after {last}, or --limit N"));
    }
    Ok(Exit::Done)
}

/// Some steps, and the number of the last one.
struct Found {
    rows: Vec<Value>,
    last: Option<u64>,
    has_more: bool,
}

/// Reads steps page by page, at most so many, and looks whether there is one more.
async fn read(
    mut after: Option<u64>,
    limit: u64,
    ask: impl AsyncFn(Option<u64>, u64) -> Result<Value, Failure>,
) -> Result<Found, Failure> {
    let mut rows: Vec<Value> = Vec::new();
    loop {
        let left = limit.saturating_sub(rows.len() as u64);
        let wanted = left.clamp(1, PAGE);
        let Value::Array(page) = ask(after, wanted).await? else { return Err(Failure::answer("a list is expected")) };
        if left == 0 {
            return Ok(Found { rows, last: after, has_more: !page.is_empty() });
        }
        let is_whole = page.len() as u64 >= wanted;
        after = page.last().and_then(|step| step["step"].as_u64()).or(after);
        rows.extend(page);
        if !is_whole {
            return Ok(Found { rows, last: after, has_more: false });
        }
    }
}

fn steps(value: &Value) -> Result<Vec<JobStep>, Failure> {
    answers::read(value)
}

fn table(value: &Value) -> Result<String, Failure> {
    let steps = steps(value)?;
    // Steps of other agents have no names, and few have errors.
    let has_names = steps.iter().any(|step| name(step).is_some());
    let has_errors = steps.iter().any(|step| error(step).is_some());
    let head = [
        ("STEP", true),
        ("KIND", true),
        ("NAME", has_names),
        ("OUTCOME", true),
        ("TOOK", true),
        ("TOKENS IN", true),
        ("TOKENS OUT", true),
        ("COST", true),
        ("ERROR", has_errors),
    ];
    let shown = |(head, is_shown): (&'static str, bool)| is_shown.then_some(head);
    let mut table = Table::new(&head.into_iter().filter_map(shown).collect::<Vec<_>>());
    for step in steps {
        let cost = if step.cost_usd > 0.0 { words::dollars(step.cost_usd) } else { String::new() };
        let tokens = |count: u64| if count > 0 { count.to_string() } else { String::new() };
        let (name, error) = (has_names.then(|| name(&step)), has_errors.then(|| error(&step)));
        let cells = [
            Some(step.step.to_string()),
            Some(step.kind.clone()),
            name.map(|name| words::short(name.unwrap_or_default(), NAME_CHARS)),
            Some(words::bytes(step.outcome_bytes)),
            Some(took(step.duration_ms).map(words::milliseconds).unwrap_or_default()),
            Some(tokens(step.tokens_input)),
            Some(tokens(step.tokens_output)),
            Some(cost),
            error.map(|error| words::short(&error.unwrap_or_default(), ERROR_CHARS)),
        ];
        table.row(cells.into_iter().flatten());
    }
    Ok(table.text())
}

/// Most characters of a name, and of an error, in the table.
const NAME_CHARS: usize = 40;
const ERROR_CHARS: usize = 80;

fn name(step: &JobStep) -> Option<&str> {
    name_in(&step.outcome)
}

/// The name that a durable program gave its step. The outcomes of its calls have the call itself beside it.
pub(crate) fn name_in(outcome: &Value) -> Option<&str> {
    outcome.get("call")?;
    outcome.get("name")?.as_str()
}

/// How long a step took; none if it records no work, or if that is not known.
pub(crate) fn took(duration_ms: f64) -> Option<f64> {
    (duration_ms > 0.0).then_some(duration_ms)
}

/// The error of a step of a durable program that failed.
fn error(step: &JobStep) -> Option<String> {
    name(step)?;
    let error = step.outcome.get("error")?;
    let [kind, text] = ["type", "text"].map(|member| error.get(member).and_then(Value::as_str).unwrap_or_default());
    Some(if kind.is_empty() { text.to_owned() } else { format!("{kind}: {text}") })
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;

    #[test]
    fn steps_are_listed_with_their_usage() {
        let value = json!([
            {"step": 0, "kind": "start", "key": "00", "outcome": {}, "outcome_bytes": 2, "duration_ms": 0.0},
            {
                "step": 1, "kind": "model", "key": "11", "outcome": null, "outcome_bytes": 20_480, "duration_ms": 1_912.0,
                "tokens_input": 900, "tokens_output": 40, "cost_usd": 0.0031
            },
        ]);
        expect![[r#"
            STEP  KIND   OUTCOME   TOOK   TOKENS IN  TOKENS OUT  COST
            0     start  2 B       -      -          -           -
            1     model  20.0 KiB  1.9 s  900        40          $0.0031
        "#]]
        .assert_eq(&table(&value).expect("steps"));
    }

    #[tokio::test]
    async fn pages_are_read_until_the_limit_and_more_is_noticed() {
        for (there, after, limit, expected) in [
            (2_500, None, 100, (100, Some(99), true)),
            (2_500, None, 2_500, (2_500, Some(2_499), false)),
            (2_500, Some(9), 2_000, (2_000, Some(2_009), true)),
            (2_500, None, 100_000, (2_500, Some(2_499), false)),
            (1_000, None, 1_000, (1_000, Some(999), false)),
            (0, None, 100, (0, None, false)),
        ] {
            let ask = async |after: Option<u64>, limit: u64| {
                assert!((1..=PAGE).contains(&limit), "{limit}");
                let first = after.map_or(0, |after| after + 1);
                Ok((first..there).take(limit as usize).map(|step| json!({"step": step})).collect())
            };
            let found = read(after, limit, ask).await.expect("pages");
            assert_eq!((found.rows.len(), found.last, found.has_more), expected, "{there} {after:?} {limit}");
        }
    }

    #[test]
    fn steps_of_a_durable_program_have_names_and_errors() {
        let step = |number: u64, kind: &str, outcome: Value| json!({"step": number, "kind": kind, "key": "00", "outcome": outcome, "outcome_bytes": 2, "duration_ms": 5.0});
        let head = |name: &str| json!({"call": format!("step:{name}:00:1"), "name": name, "at_us": 5});
        let with = |name: &str, member: &str, value: Value| {
            let mut outcome = head(name);
            outcome[member] = value;
            outcome
        };
        let value = json!([
            step(0, "start", json!({"name": "not a call"})),
            step(1, "code", with("load", "value", json!([1, 2]))),
            step(2, "code", with("charge", "error", json!({"type": "ValueError", "text": "no card\nsecond line"}))),
            step(3, "sleep", Value::Null),
        ]);
        expect![[r#"
            STEP  KIND   NAME    OUTCOME  TOOK  TOKENS IN  TOKENS OUT  COST  ERROR
            0     start  -       2 B      5 ms  -          -           -     -
            1     code   load    2 B      5 ms  -          -           -     -
            2     code   charge  2 B      5 ms  -          -           -     ValueError: no card…
            3     sleep  -       2 B      5 ms  -          -           -     -
        "#]]
        .assert_eq(&table(&value).expect("steps"));
        let named = json!([step(1, "code", with("load", "value", json!(1)))]);
        assert!(!table(&named).expect("steps").contains("ERROR"), "a column for errors that nobody has");
    }
}
