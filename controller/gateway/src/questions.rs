//! Questions of jobs, put to the users of MCP clients: by elicitation during a call, or as the input that a result or a task requires.

use std::time::Duration;

use atlas_service::{Caller, Error, Service};
use atlas_types::{AskKind, JobId, Question, QuestionId};
use rmcp::RoleServer;
use rmcp::model::{
    ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema, InputRequest,
    InputRequests, InputResponses, ProtocolVersion,
};
use rmcp::service::{Peer, RequestContext};
use serde_json::{Value, json};

use crate::media::AnswerAlone;

/// The member of a form that has the answer, unless the question is a form itself.
const ANSWER: &str = "answer";

/// How questions reach the user of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// The client cannot ask its user.
    Nobody,
    /// The server asks the client during the call.
    Elicitation,
    /// The result names the questions, and the client makes the call again with the answers.
    Input,
}

impl Reach {
    /// What the client of a call has declared.
    pub(crate) fn of(context: &RequestContext<RoleServer>) -> Self {
        let elicitation = context.client_capabilities().and_then(|known| known.elicitation);
        // A client that names no form of it knows the first one.
        let asks = elicitation.is_some_and(|elicitation| elicitation.form.is_some() || elicitation.url.is_none());
        let later = context.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28);
        let parts = context.extensions.get::<http::request::Parts>();
        let hears = later || parts.is_none_or(|parts| parts.extensions.get::<AnswerAlone>().is_none());
        match (asks && hears, later) {
            (false, _) => Self::Nobody,
            (true, false) => Self::Elicitation,
            (true, true) => Self::Input,
        }
    }
}

/// What happened to asking the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    /// There is an answer, of this user or of somebody else.
    Answered,
    /// The user did not want to answer, or did not in time; the question stays open.
    Open,
}

/// Asks the user of a client, again if the answer does not fit.
pub(crate) async fn elicit(
    service: &Service,
    caller: &Caller,
    peer: &Peer<RoleServer>,
    question: &Question,
    wait: Duration,
) -> Result<Asked, Error> {
    /// How often an answer may not fit.
    const TRIES: usize = 3;
    let mut why = String::new();
    for _ in 0..TRIES {
        let asked = peer.create_elicitation_with_timeout(form(question, &why), Some(wait)).await;
        let Ok(result) = asked else { return Ok(Asked::Open) };
        match take(service, caller, question, result).await {
            Err(Error::AnswerRefused(refused)) => why = refused,
            taken => return taken,
        }
    }
    Ok(Asked::Open)
}

/// The open questions as requests, by their ids.
pub(crate) fn requests<'a>(questions: impl IntoIterator<Item = &'a Question>) -> InputRequests {
    let request = |question: &Question| {
        let request = InputRequest::Elicitation(ElicitRequest::new(form(question, "")));
        (question.id.to_string(), request)
    };
    questions.into_iter().map(request).collect()
}

/// Takes the responses of a client to the questions of a job. `Open` if the user did not want to answer one of them. Responses to questions that have
/// ended are left out: somebody else was first.
pub(crate) async fn respond(
    service: &Service,
    caller: &Caller,
    job: JobId,
    responses: InputResponses,
) -> Result<Asked, Error> {
    let mut all = Asked::Answered;
    for (id, response) in responses {
        let id: QuestionId = id.parse().map_err(|_| Error::UnknownQuestion)?;
        let question = service.question(caller, id, atlas_service::Consistency::Linearizable).await?;
        let open = service.open_questions(caller, job).await?;
        if !open.iter().any(|open| open.id == id) {
            continue;
        }
        let result = serde_json::from_value::<ElicitResult>(response)
            .map_err(|error| Error::Malformed(format!("the response to {id}: {error}")))?;
        if take(service, caller, &question, result).await? == Asked::Open {
            all = Asked::Open;
        }
    }
    Ok(all)
}

async fn take(service: &Service, caller: &Caller, question: &Question, result: ElicitResult) -> Result<Asked, Error> {
    if result.action != ElicitationAction::Accept {
        return Ok(Asked::Open);
    }
    let answer = answer(question, result.content.unwrap_or_default());
    match service.answer(caller, question.id, &answer, answer.is_string()).await {
        Ok(_) | Err(Error::QuestionClosed(_)) => Ok(Asked::Answered),
        Err(error) => Err(error),
    }
}

/// The answer in the content of a filled form.
fn answer(question: &Question, mut content: Value) -> Value {
    match own_schema(question) {
        Some(_) => content,
        None => content.get_mut(ANSWER).map(Value::take).unwrap_or_default(),
    }
}

/// The form of a question, and why the answer before was refused.
fn form(question: &Question, why: &str) -> ElicitRequestParams {
    let prompt = &question.ask.prompt;
    let message = if why.is_empty() { prompt.to_string() } else { format!("{prompt}\n{why}") };
    let requested_schema = own_schema(question).unwrap_or_else(|| schema(question));
    ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema }
}

/// The schema of a question that is a form, if the protocol has such forms: objects of plain values.
fn own_schema(question: &Question) -> Option<ElicitationSchema> {
    let AskKind::Form { schema } = &question.ask.kind else { return None };
    serde_json::from_slice(schema).ok()
}

fn schema(question: &Question) -> ElicitationSchema {
    let shown = atlas_service::shown_question(question);
    let options = shown["options"].as_array().cloned().unwrap_or_default();
    let names: Vec<&str> = options.iter().filter_map(Value::as_str).collect();
    let listed = names.join(", ");
    let member = match &question.ask.kind {
        AskKind::Approve { other: false, .. } | AskKind::Choose { many: false, other: false, .. } => {
            json!({ "type": "string", "enum": names })
        }
        AskKind::Approve { .. } | AskKind::Choose { many: false, .. } => {
            json!({ "type": "string", "description": format!("One of: {listed}. Or another text.") })
        }
        AskKind::Choose { many: true, .. } => {
            json!({ "type": "string", "description": format!("Some of these, with commas between them: {listed}") })
        }
        AskKind::Confirm => json!({ "type": "boolean" }),
        AskKind::Text => json!({ "type": "string" }),
        AskKind::Form { schema } => {
            let schema = String::from_utf8_lossy(schema);
            json!({ "type": "string", "description": format!("JSON that satisfies {schema}") })
        }
    };
    let schema = json!({ "type": "object", "properties": { ANSWER: member }, "required": [ANSWER] });
    serde_json::from_value(schema).unwrap_or_else(|_| unreachable!("an object of plain values"))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use atlas_types::{Ask, ClusterTime, EventSeq, Namespace, Timestamp};

    use super::*;

    fn question(kind: AskKind) -> Question {
        let ask = Ask { kind, prompt: "Which?".into(), answerers: Vec::new(), timeout: None, default: None };
        Question {
            id: QuestionId(9),
            namespace: Namespace::default_namespace(),
            job: JobId(7),
            rule: None,
            step: 1,
            ask: Arc::new(ask),
            asked: EventSeq(1),
            asked_at: Timestamp(0),
            due: None::<ClusterTime>,
            end: None,
            ended_at: Timestamp(0),
        }
    }

    fn choose(many: bool, other: bool) -> Question {
        question(AskKind::Choose { options: vec!["a".into(), "b".into()], many, other })
    }

    #[test]
    fn every_question_has_a_form_of_plain_values() {
        let check = |question: &Question, member: Value| {
            let form = serde_json::to_value(form(question, "")).expect("JSON");
            assert_eq!(form["requestedSchema"]["properties"][ANSWER], member, "{form}");
            assert_eq!((&form["message"], &form["requestedSchema"]["required"]), (&json!("Which?"), &json!([ANSWER])));
        };
        check(&choose(false, false), json!({"type": "string", "enum": ["a", "b"]}));
        check(&choose(false, true), json!({"type": "string", "description": "One of: a, b. Or another text."}));
        check(&question(AskKind::Confirm), json!({"type": "boolean"}));
        check(&question(AskKind::Text), json!({"type": "string"}));
    }

    #[test]
    fn a_form_is_asked_as_it_is_where_the_protocol_has_such_forms() {
        let plain = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
        let plain = question(AskKind::Form { schema: plain.to_string().into_bytes().into() });
        assert_eq!(answer(&plain, json!({"n": 1})), json!({"n": 1}));
        let deep = json!({"type": "array", "items": {"type": "object"}});
        let deep = question(AskKind::Form { schema: deep.to_string().into_bytes().into() });
        assert_eq!(answer(&deep, json!({ANSWER: "[{}]"})), json!("[{}]"));
        assert_eq!(answer(&choose(false, false), json!({})), Value::Null);
    }

    #[test]
    fn requests_have_the_ids_of_their_questions() {
        let question = choose(true, false);
        let requests = requests([&question]);
        assert_eq!(requests.keys().map(String::as_str).collect::<Vec<_>>(), ["question-0000000000000009"]);
    }
}
