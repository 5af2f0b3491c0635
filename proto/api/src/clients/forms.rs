//! The forms of bodies, from their schemas.

use serde_json::Value;

/// What a value may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Form {
    /// Anything.
    Unknown,
    Null,
    Boolean,
    Whole,
    Number,
    Text,
    /// One of these texts; newer servers may have others.
    Words(Vec<String>),
    /// A type of its own.
    Named(String),
    List(Box<Self>),
    /// An object with values of one form.
    Map(Box<Self>),
    Object(Vec<Member>),
    /// One of these.
    Any(Vec<Self>),
}

/// A member of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) name: String,
    pub(super) says: String,
    pub(super) is_required: bool,
    pub(super) form: Form,
}

/// The form that a schema describes.
pub(super) fn form(schema: &Value) -> Form {
    if let Some(name) = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next()) {
        return Form::Named(name.to_owned());
    }
    if let Some(values) = schema["enum"].as_array() {
        let words: Vec<String> = values.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        let null = values.iter().any(Value::is_null).then_some(Form::Null);
        return any([Form::Words(words)].into_iter().chain(null).collect());
    }
    if let Some(word) = schema["const"].as_str() {
        return Form::Words(vec![word.to_owned()]);
    }
    if let Some(forms) = schema["anyOf"].as_array().or(schema["oneOf"].as_array()) {
        return any(forms.iter().map(form).collect());
    }
    match &schema["type"] {
        Value::String(kind) => of_kind(kind, schema),
        Value::Array(kinds) => any(kinds.iter().filter_map(Value::as_str).map(|kind| of_kind(kind, schema)).collect()),
        _ => Form::Unknown,
    }
}

fn of_kind(kind: &str, schema: &Value) -> Form {
    match kind {
        "null" => Form::Null,
        "boolean" => Form::Boolean,
        "integer" => Form::Whole,
        "number" => Form::Number,
        "string" => Form::Text,
        "array" => Form::List(Box::new(form(&schema["items"]))),
        "object" => object(schema),
        _ => Form::Unknown,
    }
}

fn object(schema: &Value) -> Form {
    let Some(properties) = schema["properties"].as_object() else {
        return Form::Map(Box::new(form(&schema["additionalProperties"])));
    };
    let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let member = |(name, schema): (&String, &Value)| Member {
        name: name.clone(),
        says: schema["description"].as_str().unwrap_or_default().to_owned(),
        is_required: required.contains(&name.as_str()),
        form: form(schema),
    };
    Form::Object(properties.iter().map(member).collect())
}

fn any(mut forms: Vec<Form>) -> Form {
    if forms.len() == 1 { forms.remove(0) } else { Form::Any(forms) }
}
