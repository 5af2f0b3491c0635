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
    /// Maximum number of steps, 1 to 1000.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=1000))]
    limit: u64,
}

pub(crate) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    if chain_run::is_one(&options.id) {
        return chain_run::each_job(context, &options.id, async |job| of_job(context, job, options, true).await).await;
    }
    of_job(context, &options.id, options, false).await
}

/// Shows the steps of a job; as data with the job's id if it is one of several.
async fn of_job(context: &Context, id: &str, options: &Options, is_one_of_several: bool) -> Result<Exit, Failure> {
    let (limit, after) = (options.limit.to_string(), options.after.map(|after| after.to_string()));
    let mut query = vec![("limit", limit.as_str())];
    query.extend(after.as_deref().map(|after| ("after", after)));
    let mut value = context.client()?.get(&["api", "jobs", id, "steps"], &query).await?;
    let text = table(&value)?;
    let names = steps(&value)?.iter().map(|step| step.step.to_string()).collect();
    for step in value.as_array_mut().into_iter().flatten().filter(|_| is_one_of_several) {
        step["job"] = id.into();
    }
    context.show(&Shown { value, text, names })?;
    Ok(Exit::Done)
}

fn steps(value: &Value) -> Result<Vec<JobStep>, Failure> {
    answers::read(value)
}

fn table(value: &Value) -> Result<String, Failure> {
    let mut table = Table::new(&["STEP", "KIND", "OUTCOME", "TOOK", "TOKENS IN", "TOKENS OUT", "COST"]);
    for step in steps(value)? {
        let cost = if step.cost_usd > 0.0 { words::dollars(step.cost_usd) } else { String::new() };
        let tokens = |count: u64| if count > 0 { count.to_string() } else { String::new() };
        table.row([
            step.step.to_string(),
            step.kind,
            words::bytes(step.outcome_bytes),
            words::milliseconds(step.duration_ms),
            tokens(step.tokens_input),
            tokens(step.tokens_output),
            cost,
        ]);
    }
    Ok(table.text())
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
            0     start  2 B       <1 ms  -          -           -
            1     model  20.0 KiB  1.9 s  900        40          $0.0031
        "#]]
        .assert_eq(&table(&value).expect("steps"));
    }
}
