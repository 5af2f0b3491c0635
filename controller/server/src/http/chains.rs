//! `/api/chains` (compatibility §15.2).

use atlas_api::types::{self, of};
use atlas_service::{Caller, ChainSource, ChainStart};
use bytes::Bytes;
use http::StatusCode;
use serde_json::{Value, json};

use super::HttpDoor;
use super::answer::{self, Answer, Problem, json, ready_json, with_warnings};
use super::names::ignored_members;
use super::request::Request;

/// `POST /api/chains` with `{"chain": {…}, "input": {}}`. Our own: `"chain": "NAME"` runs a stored chain, `"priority"`, `?wait=`.
pub(crate) async fn start(door: &HttpDoor, caller: &Caller, request: &mut Request) -> Answer {
    let body = request.body(door, door.limits.body_bytes_max).await?;
    let (start, unknown) = read(&body)?;
    let strict = request.query().flag("strict")?;
    let warnings = ignored_members(of::<types::ChainStart>(), unknown.iter().map(String::as_str), strict)?;
    let wait = request.query().seconds("wait", door.limits.wait_max)?;
    let id = door.service.start_chain(caller, start).await?.shown();
    let answer = match wait {
        Some(wait) => json(StatusCode::OK, &door.service.wait_chain_run(caller, &id, request.view(), wait).await?),
        None => answer::body(StatusCode::CREATED, &types::ChainId { id }),
    };
    Ok(with_warnings(answer, warnings))
}

/// What is to start, and the members of the body that mean nothing.
fn read(body: &Bytes) -> Result<(ChainStart, Vec<String>), Problem> {
    let Ok(body) = serde_json::from_slice::<Value>(body) else { return Err(Problem::malformed("Invalid JSON")) };
    let Value::Object(mut members) = body else { return Err(Problem::malformed("the body must be an object")) };
    let chain = match members.remove("chain") {
        None | Some(Value::Null) => return Err(Problem::malformed("Missing 'chain' field")),
        Some(Value::String(name)) if name.is_empty() => return Err(Problem::malformed("Missing 'chain' field")),
        Some(Value::Object(empty)) if empty.is_empty() => return Err(Problem::malformed("Missing 'chain' field")),
        Some(Value::String(name)) => ChainSource::Named(name),
        Some(definition) => ChainSource::Given(definition),
    };
    let input = match members.remove("input") {
        None | Some(Value::Null) => json!({}),
        Some(input @ Value::Object(_)) => input,
        Some(_) => return Err(Problem::malformed("'input' must be an object")),
    };
    let priority = match members.remove("priority") {
        None | Some(Value::Null) => 0,
        Some(priority) => priority.as_i64().ok_or_else(|| Problem::malformed("'priority' must be an integer"))?,
    };
    let unknown = members.into_iter().map(|(name, _)| name).collect();
    Ok((ChainStart { priority, ..ChainStart::new(chain, input.to_string().into()) }, unknown))
}

/// `GET /api/chains`: newest first.
pub(crate) async fn list(door: &HttpDoor, caller: &Caller, request: &Request) -> Answer {
    let query = request.query();
    let (status, limit) = (query.filled("status"), query.limit());
    let runs = door.service.chain_runs(caller, status.as_deref(), limit, request.view(), request.consistency()).await?;
    Ok(json(StatusCode::OK, &Value::Array(runs)))
}

/// `GET /api/chains/{id}`; with `?wait=` it waits until the run has ended.
pub(crate) async fn get(door: &HttpDoor, caller: &Caller, request: &Request, id: &str) -> Answer {
    let run = match request.query().seconds("wait", door.limits.wait_max)? {
        Some(wait) => door.service.wait_chain_run(caller, id, request.view(), wait).await?,
        None => door.service.chain_run(caller, id, request.view(), request.consistency()).await?,
    };
    Ok(json(StatusCode::OK, &run))
}

/// `POST /api/chains/check` with `{"chain": …}`.
pub(crate) async fn check(door: &HttpDoor, caller: &Caller, request: &mut Request) -> Answer {
    let body = request.json_text(door, door.limits.body_bytes_max).await?;
    Ok(json(StatusCode::OK, &door.service.check_chain(caller, read(&body)?.0.chain).await?))
}

/// `GET /api/chains/{id}/tree`: the run with the jobs of its steps and all jobs below them.
pub(crate) async fn tree(door: &HttpDoor, caller: &Caller, request: &Request, id: &str) -> Answer {
    Ok(ready_json(StatusCode::OK, door.service.chain_tree(caller, id, request.consistency()).await?))
}

/// `POST /api/chains/{id}/cancel`.
pub(crate) async fn cancel(door: &HttpDoor, caller: &Caller, id: &str) -> Answer {
    let cancelled = door.service.cancel_chain_run(caller, id).await?;
    Ok(answer::body(StatusCode::OK, &types::Cancellation { cancelled }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(body: &str) -> String {
        match read(&Bytes::copy_from_slice(body.as_bytes())) {
            Ok((start, _)) => format!("{:?} {} {}", start.chain, String::from_utf8_lossy(&start.input), start.priority),
            Err(problem) => format!("! {}", problem.into_error()),
        }
    }

    #[test]
    fn bodies_name_or_contain_a_chain() {
        for (body, expected) in [
            (r#"{"chain":"c"}"#, r#"Named("c") {} 0"#),
            (r#"{"chain":"c","input":{"a":1},"priority":-3}"#, r#"Named("c") {"a":1} -3"#),
            (r#"{"chain":{"name":"c"},"input":null}"#, r#"Given(Object {"name": String("c")}) {} 0"#),
            ("{", "! Invalid JSON"),
            ("[]", "! the body must be an object"),
            ("{}", "! Missing 'chain' field"),
            (r#"{"chain":{}}"#, "! Missing 'chain' field"),
            (r#"{"chain":"c","input":[]}"#, "! 'input' must be an object"),
            (r#"{"chain":"c","priority":"1"}"#, "! 'priority' must be an integer"),
        ] {
            assert_eq!(told(body), expected, "{body}");
        }
    }
}
