//! Fits a request to a target before it is sent: what the model does not declare is left out, or the target is passed over.

use std::borrow::Cow;

use atlas_model::{CallError, CallErrorKind, Capability, Part, Purpose, Request, estimate};

use super::Target;

/// A request as a target gets it, and the settings that were left out.
pub(super) fn fit<'a>(
    target: &Target,
    request: &'a Request,
) -> Result<(Cow<'a, Request>, Vec<&'static str>), CallError> {
    refuse_other_work(target, request)?;
    refuse_too_long(target, request)?;
    let has = |capability| target.capabilities.as_ref().is_none_or(|declared| declared.contains(&capability));
    let lacks = |what: &str| {
        let text = format!("the model {} does not declare that it {what}", target.name);
        CallError::new(CallErrorKind::UnknownModel, text)
    };
    if !request.tools.is_empty() && !has(Capability::Tools) {
        return Err(lacks("calls tools (capability tools)"));
    }
    if images(request) && !has(Capability::Vision) {
        return Err(lacks("reads images (capability vision)"));
    }
    let stream = request.stream && target.stream;
    let mut fitted = Cow::Borrowed(request);
    // What stays as it is, is not copied: a conversation may be long.
    if target.model != request.model || stream != request.stream {
        let fitted = fitted.to_mut();
        target.model.clone_into(&mut fitted.model);
        fitted.stream = stream;
    }
    let mut dropped = Vec::new();
    // An answer in another form is found by the check of the agent's output.
    if !has(Capability::JsonSchema) && request.output.is_some() {
        fitted.to_mut().output = None;
    }
    if !has(Capability::Reasoning) && request.reasoning_effort.is_some() {
        fitted.to_mut().reasoning_effort = None;
        dropped.push("reasoning_effort");
    }
    if let (Some(asked), Some(most)) = (request.max_tokens, target.output_tokens_max)
        && asked > most
    {
        fitted.to_mut().max_tokens = Some(most);
    }
    Ok((fitted, dropped))
}

/// Refuses work that the model is not for.
fn refuse_other_work(target: &Target, request: &Request) -> Result<(), CallError> {
    let wanted = request.task.purpose();
    if wanted == target.purpose {
        return Ok(());
    }
    let name = |purpose| match purpose {
        Purpose::Chat => "conversations (type: chat)",
        Purpose::Embedding => "embeddings (type: embedding)",
        Purpose::Reranker => "reranking (type: reranker)",
    };
    let text = format!("the model {} is for {} and not for {}", target.name, name(target.purpose), name(wanted));
    Err(CallError::new(CallErrorKind::UnknownModel, text))
}

fn images(request: &Request) -> bool {
    let mut parts = request.messages.iter().flat_map(|message| &message.parts);
    parts.any(|part| matches!(part, Part::Image(_)))
}

/// Refuses a request that the model cannot hold, before it is paid for. The estimate is rough, so others may still be too long.
fn refuse_too_long(target: &Target, request: &Request) -> Result<(), CallError> {
    let Some(limit) = target.context_window else { return Ok(()) };
    let tokens = estimate::request(request);
    if tokens < limit {
        return Ok(());
    }
    let text = format!("the request has about {tokens} tokens, and the model {} can hold {limit}", target.name);
    Err(CallError::new(CallErrorKind::TooLong, text))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use atlas_model::{Image, Message, OutputSchema, Tool};
    use serde_json::json;

    use super::*;
    use crate::Endpoint;
    use crate::openai::Chat;

    fn target(capabilities: Option<&[Capability]>) -> Target {
        let mut target = Target::new("small", "m-1", Arc::new(Chat::default()), Endpoint::default());
        target.capabilities = capabilities.map(|all| all.iter().copied().collect::<BTreeSet<_>>());
        target.output_tokens_max = Some(100);
        target
    }

    fn request() -> Request {
        let output = OutputSchema { name: "o".to_owned(), schema: json!({}) };
        Request {
            messages: vec![Message::user("hi")].into(),
            max_tokens: Some(4_096),
            output: Some(output),
            reasoning_effort: Some("low".to_owned()),
            stream: true,
            ..Request::default()
        }
    }

    #[test]
    fn what_is_not_declared_is_left_out() {
        let request = request();
        let (fitted, dropped) = fit(&target(Some(&[])), &request).expect("fits");
        let fitted = fitted.into_owned();
        assert_eq!((fitted.model.as_str(), fitted.max_tokens, fitted.stream), ("m-1", Some(100), true));
        assert_eq!((fitted.output, fitted.reasoning_effort, dropped), (None, None, vec!["reasoning_effort"]));
        let both = [Capability::JsonSchema, Capability::Reasoning];
        for capabilities in [None, Some(&both[..])] {
            let (fitted, dropped) = fit(&target(capabilities), &request).expect("fits");
            assert!(fitted.output.is_some() && fitted.reasoning_effort.is_some() && dropped.is_empty());
        }
    }

    #[test]
    fn what_fits_is_not_copied() {
        let request = Request { model: "m-1".to_owned(), max_tokens: None, ..request() };
        let fitted = |stream| {
            let target = Target { stream, ..target(None) };
            fit(&target, &request).map(|(fitted, _)| matches!(fitted, Cow::Borrowed(_)))
        };
        assert_eq!((fitted(true), fitted(false)), (Ok(true), Ok(false)));
    }

    #[test]
    fn tools_and_images_need_a_model_that_declares_them() {
        let tool = Tool { name: "t".to_owned(), description: String::new(), input_schema: json!({}) };
        let tools = Request { tools: vec![tool], ..request() };
        let mut images = request();
        let image = Image { mime: "image/png".to_owned(), data: String::new() };
        images.messages[0].parts.push(Part::Image(image));
        for (asked, capability, what) in [
            (tools, Capability::Tools, "calls tools (capability tools)"),
            (images, Capability::Vision, "reads images (capability vision)"),
        ] {
            let refused = fit(&target(Some(&[])), &asked).expect_err("refused").message;
            assert_eq!(refused, format!("the model small does not declare that it {what}"));
            assert!(fit(&target(Some(&[capability])), &asked).is_ok() && fit(&target(None), &asked).is_ok());
        }
    }
}
