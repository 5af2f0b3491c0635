//! The message of a request, before `rmcp` reads it.

use std::borrow::Cow;

use bytes::Bytes;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use serde_json::value::RawValue;

/// A message as far as it is looked at here.
#[derive(Deserialize)]
struct Head<'a> {
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    params: Option<Params<'a>>,
}

#[derive(Deserialize)]
struct Params<'a> {
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

/// The message with the arguments of a call as an object, if a model sent them as its text. The error says where the JSON ends.
pub(crate) fn read(body: Bytes) -> Result<Bytes, serde_json::Error> {
    let Ok(head) = serde_json::from_slice::<Head<'_>>(&body) else {
        // It is no call; `rmcp` says what else is wrong with it.
        return serde_json::from_slice::<IgnoredAny>(&body).map(|_| body);
    };
    let is_call = head.method.is_some_and(|method| method == "tools/call");
    let arguments = head.params.and_then(|params| params.arguments).filter(|_| is_call);
    let text = arguments.and_then(|arguments| serde_json::from_str::<String>(arguments.get()).ok());
    let Some(object) = text.and_then(|text| object_of(&text)) else { return Ok(body) };
    let mut message: Value = serde_json::from_slice(&body)?;
    // A list is read as a struct, too, and has no such member.
    let Some(arguments) = message.pointer_mut("/params/arguments") else { return Ok(body) };
    *arguments = object;
    Ok(message.to_string().into())
}

/// The object that a text is.
pub(crate) fn object_of(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok().filter(Value::is_object)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(body: &str) -> Option<String> {
        let read = read(Bytes::from(body.to_owned())).ok()?;
        Some(String::from_utf8_lossy(&read).into_owned())
    }

    #[test]
    fn arguments_that_are_the_text_of_an_object_are_that_object() {
        let call = |arguments: &str| {
            format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"x","arguments":{arguments}}}}}"#
            )
        };
        assert_eq!(told(&call(r#""{\"a\": 1.0}""#)), Some(call(r#"{"a":1.0}"#)));
        for same in [call(r#"{"a":1.0}"#), call(r#""[]""#), call(r#""x""#), call("1"), "[]".to_owned(), "1".to_owned()]
        {
            assert_eq!(told(&same), Some(same.clone()));
        }
        for list in [r#"{"method":"tools/call","params":["{}"]}"#, r#"["tools/call",["{}"]]"#] {
            assert_eq!(told(list), Some(list.to_owned()));
        }
        assert_eq!(told("{"), None);
    }
}
