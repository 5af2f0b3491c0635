//! `/api/questions`: the questions of jobs to people.

use atlas_service::{Caller, Error, QuestionQuery, shown_question};
use atlas_types::{EventSeq, Question, QuestionId};
use http::StatusCode;
use serde_json::Value;

use super::HttpDoor;
use super::answer::{Answer, Problem, Response, ready_json};
use super::request::Request;

/// `GET /api/questions`: the oldest first.
pub(crate) async fn list(door: &HttpDoor, caller: &Caller, request: &Request) -> Answer {
    let query = request.query();
    let ended = match query.filled("status").as_deref() {
        None | Some("open") => false,
        Some("all") => true,
        Some(_) => return Err(Problem::malformed("'status' must be open or all")),
    };
    let job = match query.filled("job") {
        Some(job) => Some(door.service.job_id(caller, &job).await?),
        None => None,
    };
    let after = EventSeq(query.count("after")?.unwrap_or(0));
    let wanted = QuestionQuery { ended, job, after, limit: query.limit() };
    let questions = door.service.questions(caller, &wanted, request.consistency()).await?;
    Ok(json(&questions.iter().map(|question| shown_question(question)).collect()))
}

/// `GET /api/questions/{id}`.
pub(crate) async fn get(door: &HttpDoor, caller: &Caller, request: &Request, id: &str) -> Answer {
    let question = door.service.question(caller, read_id(id)?, request.consistency()).await?;
    Ok(one(&question))
}

/// `POST /api/questions/{id}/answer`: `{"answer": …}`, or `{"text": "…"}` for the words of a person.
pub(crate) async fn answer(door: &HttpDoor, caller: &Caller, request: &mut Request, id: &str) -> Answer {
    let body = request.json_text(door, door.limits.body_bytes_max).await?;
    let (answer, is_text) = read_answer(&body)?;
    let question = door.service.answer(caller, read_id(id)?, &answer, is_text).await?;
    Ok(one(&question))
}

/// A text that is no id names no question.
fn read_id(text: &str) -> Result<QuestionId, Problem> {
    Ok(text.parse().map_err(|_| Error::UnknownQuestion)?)
}

/// The answer, and whether it is in words.
fn read_answer(body: &[u8]) -> Result<(Value, bool), Problem> {
    #[derive(serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Members {
        /// Some null is an answer as well, which does not fit.
        #[serde(default, deserialize_with = "present")]
        answer: Option<Value>,
        text: Option<String>,
    }
    fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
        serde::Deserialize::deserialize(deserializer).map(Some)
    }
    let read: Members = serde_json::from_slice(body).map_err(|error| Problem::malformed(error.to_string()))?;
    match (read.answer, read.text) {
        (Some(answer), None) => Ok((answer, false)),
        (None, Some(text)) => Ok((text.into(), true)),
        _ => Err(Problem::malformed("the body must have either 'answer' or 'text'")),
    }
}

fn one(question: &Question) -> Response {
    json(&shown_question(question))
}

fn json(value: &Value) -> Response {
    let mut body = Vec::with_capacity(512);
    atlas_service::json::raw(&mut body, value.to_string().as_bytes());
    ready_json(StatusCode::OK, body)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_answer_is_a_value_or_words() {
        let read = |body: &str| read_answer(body.as_bytes()).ok();
        assert_eq!(read(r#"{"answer": ["a"]}"#), Some((json!(["a"]), false)));
        assert_eq!(read(r#"{"answer": null}"#), Some((json!(null), false)));
        assert_eq!(read(r#"{"text": "a, b"}"#), Some((json!("a, b"), true)));
        for wrong in ["", "[]", "{}", r#"{"text": 1}"#, r#"{"answer": 1, "text": "1"}"#, r#"{"answer": 1, "x": 2}"#] {
            assert!(read(wrong).is_none(), "{wrong}");
        }
    }
}
