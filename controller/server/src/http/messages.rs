//! `POST /api/jobs/{id}/messages`.

use atlas_api::types::SentMessage;
use atlas_service::{Caller, NewMessage};
use atlas_types::{Channel, MessageId, StepKey};
use bytes::Bytes;
use http::StatusCode;
use serde_json::value::RawValue;

use super::HttpDoor;
use super::answer::{self, Answer, Problem};
use super::request::Request;

/// `{"message": …}` with an `id`, the question that it `answers` and a `channel`, if it has these.
pub(crate) async fn send(door: &HttpDoor, caller: &Caller, request: &mut Request, id: &str) -> Answer {
    let body = request.json_text(door, door.limits.body_bytes_max).await?;
    let message = read_message(&body)?;
    let job = door.service.job_id(caller, id).await?;
    let (id, repeated) = door.service.send_message(caller, job, message).await?;
    Ok(answer::body(StatusCode::OK, &SentMessage { id: id.as_str().to_owned(), repeated }))
}

fn read_message(body: &[u8]) -> Result<NewMessage, Problem> {
    #[derive(serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Members<'a> {
        #[serde(borrow)]
        message: &'a RawValue,
        #[serde(default)]
        id: Option<String>,
        #[serde(default)]
        answers: Option<String>,
        #[serde(default)]
        channel: Option<String>,
    }
    let read: Members<'_> = serde_json::from_slice(body).map_err(|error| Problem::malformed(error.to_string()))?;
    let id =
        read.id.as_deref().map(MessageId::new).transpose().map_err(|error| Problem::malformed(error.to_string()))?;
    let answers = read.answers.as_deref().map(key).transpose()?;
    let channel = read.channel.as_deref().map(Channel::new).transpose();
    let channel = channel.map_err(|error| Problem::malformed(error.to_string()))?;
    Ok(NewMessage { id, answers, channel, body: Bytes::copy_from_slice(read.message.get().as_bytes()) })
}

/// The key of a question: 32 hexadecimal digits.
fn key(text: &str) -> Result<StepKey, Problem> {
    let digits = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let number = digits.then(|| u128::from_str_radix(text, 16).ok()).flatten();
    let key = number.map(|number| StepKey(number.to_be_bytes()));
    key.ok_or_else(|| Problem::malformed("'answers' is the key of a question: 32 hexadecimal digits"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_has_content_and_perhaps_a_name_and_a_question() {
        let read = |body: &str| read_message(body.as_bytes()).ok();
        let full = read(r#"{"message": {"a": 1}, "id": "m1", "answers": "000102030405060708090a0b0c0d0e0f"}"#);
        let full = full.expect("it is complete");
        assert_eq!((&full.body[..], full.id.as_ref().map(MessageId::as_str)), (&br#"{"a": 1}"#[..], Some("m1")));
        assert_eq!(full.answers, Some(StepKey(std::array::from_fn(|at| at as u8))));
        assert!(read(r#"{"message": null}"#).is_some_and(|message| message.id.is_none() && message.answers.is_none()));
        let named = |channel: &str| read(&format!(r#"{{"message": 1, "channel": "{channel}"}}"#))?.channel;
        assert_eq!(named("approvals/a b").as_ref().map(Channel::as_str), Some("approvals/a b"));
        assert_eq!([named(&"x".repeat(128)).is_some(), named(&"x".repeat(129)).is_some()], [true, false]);
        for wrong in [
            "{}",
            r#"{"id": "m1"}"#,
            r#"{"message": 1, "id": ""}"#,
            r#"{"message": 1, "channel": ""}"#,
            r#"{"message": 1, "channel": "a\nb"}"#,
            r#"{"message": 1, "answers": "00"}"#,
            r#"{"message": 1, "answers": "+00102030405060708090a0b0c0d0e0f"}"#,
            r#"{"message": 1, "x": 2}"#,
        ] {
            assert!(read(wrong).is_none(), "{wrong}");
        }
    }
}
