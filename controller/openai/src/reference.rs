//! The reference page of the parameters and errors, generated from the tables.

use std::fmt::Write;

use atlas_model::CallErrorKind;
use expect_test::expect_file;

use crate::WireError;
use crate::parameters::{self, CHAT, COMPLETIONS, EMBEDDINGS, Parameter, RESPONSES};

const INTRODUCTION: &str = "\
# OpenAI's interface: parameters

Generated from the program's tables by `cargo xtask fix`. Controllers answer programs that are written for OpenAI at `/v1`. The name in
`model` is that of a model or of an agent. This page says which parameters there are, and what happens to each:

- **used**: it has its effect;
- **passed on**: the provider of the model gets it as it is, and refuses the call if it does not know it;
- **ignored**: it has no effect, and none is missed;
- **refused**: the answer is 400 with the name of the parameter in `error.param`.

A parameter that is not listed is refused as well. A parameter that is null counts as absent.

What differs from OpenAI: images are sent by value (`data:` addresses); a request has one answer; the model's reasoning is in
`reasoning_content` of messages and chunks, and can be sent back there; an answer that was filtered or refused has its text in `content` and
the `finish_reason` `content_filter`; system and developer messages become one system text, wherever they are. Arguments of tool calls have no
white space between their tokens.

## Agents

An agent takes messages of the system, the user and the assistant with texts and images, and answers with a text. It has its own tools, models and
settings: `tools`, `tool_choice` and a form of the answer are refused, and so are messages with tool calls; settings of models such as
`temperature` have no effect. The last message is the user's.
";

const RESUMPTION: &str = "
Events count differently from OpenAI's: the `sequence_number` of an event is the place in the response that it reaches, where events count one,
and texts and arguments their bytes. The numbers grow and have gaps. A client goes on after any of them with `starting_after`.
";

#[test]
fn reference_page_is_fresh() {
    let mut page = INTRODUCTION.to_owned();
    let mut section = |name: &str, table: &[Parameter], more: &str| {
        write!(page, "\n## {name}\n\n{}{more}", parameters::rows(table)).expect("text grows");
    };
    section("`POST /v1/chat/completions`", CHAT, "");
    section("`POST /v1/completions`", COMPLETIONS, "");
    section("`POST /v1/embeddings`", EMBEDDINGS, "");
    section("`POST /v1/responses`", RESPONSES, RESUMPTION);
    page.push_str(&errors());
    expect_file!["../../../docs/reference/openai.md"].assert_eq(&page);
}

/// The table of errors.
fn errors() -> String {
    let mut text = "\n## Errors\n\nThe body is `{\"error\": {\"message\", \"type\", \"param\", \"code\"}}`. In a stream that has begun it is the last event.\n\n| status | type | code | when |\n|---|---|---|---|\n".to_owned();
    let rows = [
        (WireError::invalid(""), "the request is wrong"),
        (WireError::invalid("").with_code("invalid_type"), "a parameter has another type"),
        (WireError::invalid("").with_code("invalid_value"), "a parameter has a value that is not allowed"),
        (WireError::invalid("").with_code("missing_required_parameter"), "a parameter is missing"),
        (WireError::unknown_parameter(""), "a parameter is not listed here"),
        (WireError::unsupported("", ""), "a parameter, or its value, is not served"),
        (WireError::too_long(""), "the request is larger than the context of the model"),
        (WireError::of_call(CallErrorKind::Filtered, "", ""), "the provider's filter refused the request"),
        (WireError::authentication(""), "there is no token, or it is not valid"),
        (WireError::permission(""), "the token lacks a right"),
        (WireError::model_not_found(""), "there is no such model or agent, or the token may not use it"),
        (WireError::not_found(""), "there is no such thing, such as a response"),
        (WireError::conflict(""), "the state of the thing does not allow this"),
        (WireError::too_large(0), "the body is too large"),
        (WireError::rate_limited(""), "too many requests or tokens for now"),
        (WireError::quota(""), "a budget is used up"),
        (WireError::internal(""), "a fault of the controller"),
        (WireError::provider(""), "the provider of the model failed, or refused the cluster's key"),
        (
            WireError::provider("").with_code("answer_restarted"),
            "another try of the model call began after a part of the answer was sent",
        ),
        (WireError::unavailable(""), "nothing can serve the request now"),
        (WireError::timeout(""), "the time of the request is over"),
    ];
    for (error, when) in rows {
        let code = error.code.map(|code| format!("`{code}`")).unwrap_or_default();
        writeln!(text, "| {} | `{}` | {code} | {when} |", error.status, error.kind).expect("text grows");
    }
    text
}
