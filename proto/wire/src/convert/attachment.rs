//! Attachments of leases. Values are not copied on their way out: the frame shares their buffers, which overwrite themselves.

use std::collections::BTreeMap;
use std::fmt;

use atlas_types::{
    ATTACHED_MODELS_MAX, ATTACHED_SECRETS_MAX, ATTACHED_SERVERS_MAX, ATTACHMENTS_BYTES_MAX, AttachedModel,
    AttachedSecret, AttachedServer, Attachment, Attachments, BOUNDS_WORDS_MAX, Bounds, SECRET_BYTES_MAX,
    SPEC_BYTES_MAX, SecretSource, SecretText,
};
use bytes::Bytes;

use super::{ConvertError, bounded, required, word};
use crate::proto::worker::v1 as pb;

impl From<Attachments> for pb::Attachments {
    fn from(attachments: Attachments) -> Self {
        let mut all = Self::default();
        for attachment in attachments.iter() {
            match attachment {
                Attachment::Secrets(secrets) => all.secrets = secrets.iter().map(secret_out).collect(),
                Attachment::Bearer(bearer) => all.bearer = Bytes::from_owner(bearer.clone()),
                Attachment::Models(models) => all.models = models.iter().map(model_out).collect(),
                Attachment::Servers(servers) => all.servers = servers.iter().map(server_out).collect(),
                Attachment::Bounds(bounds) => all.bounds = Some(bounds_out(bounds)),
            }
        }
        all
    }
}

impl TryFrom<pb::Attachments> for Attachments {
    type Error = ConvertError;

    fn try_from(all: pb::Attachments) -> Result<Self, ConvertError> {
        bounded("attachments.secrets", all.secrets.len(), ATTACHED_SECRETS_MAX)?;
        bounded("attachments.models", all.models.len(), ATTACHED_MODELS_MAX)?;
        bounded("attachments.servers", all.servers.len(), ATTACHED_SERVERS_MAX)?;
        let mut found = Vec::new();
        if !all.secrets.is_empty() {
            let secrets = all.secrets.into_iter().map(secret_in).collect::<Result<BTreeMap<_, _>, _>>()?;
            found.push(Attachment::Secrets(secrets));
        }
        if !all.bearer.is_empty() {
            found.push(Attachment::Bearer(text_in("attachments.bearer", &all.bearer)?));
        }
        if !all.models.is_empty() {
            let models = all.models.into_iter().map(model_in).collect::<Result<_, _>>()?;
            found.push(Attachment::Models(models));
        }
        if !all.servers.is_empty() {
            let servers = all.servers.into_iter().map(server_in).collect::<Result<_, _>>()?;
            found.push(Attachment::Servers(servers));
        }
        if let Some(bounds) = all.bounds {
            found.push(Attachment::Bounds(bounds_in(bounds)?));
        }
        let found = Self::new(found);
        bounded("attachments", found.bytes(), ATTACHMENTS_BYTES_MAX)?;
        Ok(found)
    }
}

fn secret_out((name, secret): (&String, &AttachedSecret)) -> pb::AttachedSecret {
    use pb::attached_secret::Source;
    let source = match &secret.source {
        SecretSource::Value(value) => Source::Value(Bytes::from_owner(value.clone())),
        SecretSource::Environment { variable } => Source::Variable(variable.clone()),
        SecretSource::File { path, member } => {
            Source::File(pb::SecretFile { path: path.clone(), member: member.clone().unwrap_or_default() })
        }
    };
    pb::AttachedSecret { name: name.clone(), declared: secret.declared, source: Some(source) }
}

fn secret_in(secret: pb::AttachedSecret) -> Result<(String, AttachedSecret), ConvertError> {
    use pb::attached_secret::Source;
    let source = match required("attached_secret.source", secret.source)? {
        Source::Value(value) => SecretSource::Value(text_in("attached_secret.value", &value)?),
        Source::Variable(variable) => {
            SecretSource::Environment { variable: word("attached_secret.variable", variable)? }
        }
        Source::File(pb::SecretFile { path, member }) => {
            let (path, member) = (word("secret_file.path", path)?, word("secret_file.member", member)?);
            SecretSource::File { path, member: Some(member).filter(|member| !member.is_empty()) }
        }
    };
    Ok((word("attached_secret.name", secret.name)?, AttachedSecret { source, declared: secret.declared }))
}

fn model_out(model: &AttachedModel) -> pb::AttachedModel {
    let spec = Bytes::from_owner(model.spec.clone());
    pb::AttachedModel { name: model.name.clone(), spec, asked: model.asked.clone() }
}

fn model_in(model: pb::AttachedModel) -> Result<AttachedModel, ConvertError> {
    bounded("attached_model.spec", model.spec.len(), SPEC_BYTES_MAX)?;
    bounded("attached_model.asked", model.asked.len(), ATTACHED_MODELS_MAX)?;
    let asked = model.asked.into_iter().map(|name| word("attached_model.asked", name)).collect::<Result<_, _>>()?;
    Ok(AttachedModel { name: word("attached_model.name", model.name)?, spec: (*model.spec).into(), asked })
}

fn server_out(server: &AttachedServer) -> pb::AttachedServer {
    let spec = Bytes::from_owner(server.spec.clone());
    pb::AttachedServer { name: server.name.clone(), spec, login: server.login }
}

fn server_in(server: pb::AttachedServer) -> Result<AttachedServer, ConvertError> {
    bounded("attached_server.spec", server.spec.len(), SPEC_BYTES_MAX)?;
    let name = word("attached_server.name", server.name)?;
    Ok(AttachedServer { name, spec: (*server.spec).into(), login: server.login })
}

fn bounds_out(bounds: &Bounds) -> pb::Bounds {
    let words = |words: &Option<Vec<String>>| words.clone().map(|words| pb::Words { words });
    pb::Bounds {
        filesystem: words(&bounds.filesystem),
        network: words(&bounds.network),
        memory_mb: bounds.memory_mb,
        cpu_seconds: bounds.cpu_seconds,
    }
}

fn bounds_in(bounds: pb::Bounds) -> Result<Bounds, ConvertError> {
    let words = |field: &'static str, words: Option<pb::Words>| {
        let Some(pb::Words { words }) = words else { return Ok(None) };
        bounded(field, words.len(), BOUNDS_WORDS_MAX)?;
        words.into_iter().map(|one| word(field, one)).collect::<Result<Vec<_>, _>>().map(Some)
    };
    Ok(Bounds {
        filesystem: words("bounds.filesystem", bounds.filesystem)?,
        network: words("bounds.network", bounds.network)?,
        memory_mb: bounds.memory_mb,
        cpu_seconds: bounds.cpu_seconds,
    })
}

/// A credential between controllers. Errors contain its length at most.
pub fn credential_in(bytes: &[u8]) -> Result<SecretText, ConvertError> {
    text_in("credential", bytes)
}

/// A value. Errors contain its length at most.
fn text_in(field: &'static str, bytes: &[u8]) -> Result<SecretText, ConvertError> {
    bounded(field, bytes.len(), SECRET_BYTES_MAX)?;
    let text = std::str::from_utf8(bytes).map_err(|_| ConvertError::Form { field })?;
    Ok(SecretText::new(text))
}

/// The generated `Debug` would show the bearer.
impl fmt::Debug for pb::Attachments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (secrets, models, servers) = (self.secrets.len(), self.models.len(), self.servers.len());
        write!(f, "Attachments({secrets} secrets, {models} models, {servers} servers)")
    }
}

/// The generated `Debug` would show the credential.
impl fmt::Debug for crate::proto::peer::v1::HoldCredentialRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HoldCredentialRequest({:x})", self.job_id)
    }
}

/// The generated `Debug` would show the value.
impl fmt::Debug for pb::AttachedSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AttachedSecret({})", self.name)
    }
}

/// The generated `Debug` would show the value.
impl fmt::Debug for pb::attached_secret::Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Source")
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use proptest::prelude::*;
    use prost::Message as _;

    use super::*;

    fn all() -> Attachments {
        let secret = |source, declared| AttachedSecret { source, declared };
        let file =
            |member: Option<&str>| SecretSource::File { path: "/run/s".to_owned(), member: member.map(Into::into) };
        let variable = SecretSource::Environment { variable: "ATLAS_SECRET_B".to_owned() };
        let secrets = BTreeMap::from([
            ("a".to_owned(), secret(SecretSource::Value(SecretText::new("canary")), true)),
            ("b".to_owned(), secret(variable, true)),
            ("c".to_owned(), secret(file(None), false)),
            ("d".to_owned(), secret(file(Some("K")), true)),
            ("e".to_owned(), secret(SecretSource::Value(SecretText::new("")), true)),
        ]);
        let model = AttachedModel { name: "fast".to_owned(), spec: (*b"{}").into(), asked: vec!["fast".to_owned()] };
        Attachments::new([
            Attachment::Secrets(secrets),
            Attachment::Bearer(SecretText::new("Bearer canary")),
            Attachment::Models(vec![model]),
            Attachment::Servers(vec![AttachedServer { name: "github".to_owned(), spec: (*b"{}").into(), login: true }]),
            Attachment::Bounds(Bounds {
                filesystem: Some(vec!["read".to_owned()]),
                network: Some(Vec::new()),
                memory_mb: Some(64),
                cpu_seconds: None,
            }),
        ])
    }

    #[test]
    fn attachments_arrive_as_they_were_sent() {
        for sent in [all(), Attachments::default()] {
            let bytes = pb::Attachments::from(sent.clone()).encode_to_vec();
            let frame = pb::Attachments::decode(bytes.as_slice()).expect("a message");
            assert!(!format!("{frame:?}").contains("canary"));
            assert!(Attachments::try_from(frame).expect("attachments") == sent);
        }
    }

    #[test]
    fn no_generated_type_shows_a_value() {
        let frame = pb::Attachments::from(all());
        expect!["Attachments(5 secrets, 1 models, 1 servers)"].assert_eq(&format!("{frame:?}"));
        expect!["AttachedSecret(a)"].assert_eq(&format!("{:?}", frame.secrets[0]));
        expect!["Some(Source)"].assert_eq(&format!("{:?}", frame.secrets[0].source));
    }

    fn check(change: impl FnOnce(&mut pb::Attachments), refused: &Expect) {
        let mut frame = pb::Attachments::from(all());
        change(&mut frame);
        let error = Attachments::try_from(frame).expect_err("a refusal");
        refused.assert_eq(&error.to_string());
    }

    #[test]
    fn a_refusal_names_the_field_and_no_value() {
        use pb::attached_secret::Source;
        check(|all| all.secrets[0].source = None, &expect![[r#"field "attached_secret.source" is missing"#]]);
        check(
            |all| all.secrets[0].source = Some(Source::Value(vec![b'x'; SECRET_BYTES_MAX + 1].into())),
            &expect![[r#"field "attached_secret.value" has 16385 bytes or items, more than 16384"#]],
        );
        check(|all| all.bearer = vec![0xff].into(), &expect![[r#"field "attachments.bearer" is malformed"#]]);
        check(
            |all| all.secrets = vec![all.secrets[0].clone(); ATTACHED_SECRETS_MAX + 1],
            &expect![[r#"field "attachments.secrets" has 129 bytes or items, more than 128"#]],
        );
        check(
            |all| all.models = vec![all.models[0].clone(); ATTACHED_MODELS_MAX + 1],
            &expect![[r#"field "attachments.models" has 17 bytes or items, more than 16"#]],
        );
        check(
            |all| {
                all.bounds = Some(pb::Bounds {
                    network: Some(pb::Words { words: vec!["x".to_owned(); 17] }),
                    ..Default::default()
                })
            },
            &expect![[r#"field "bounds.network" has 17 bytes or items, more than 16"#]],
        );
        let large =
            pb::AttachedModel { name: "m".to_owned(), spec: vec![b' '; SPEC_BYTES_MAX].into(), asked: Vec::new() };
        check(
            |all| all.models = vec![large; 9],
            &expect![[r#"field "attachments" has 589896 bytes or items, more than 524288"#]],
        );
    }

    proptest! {
        #[test]
        fn hostile_bytes_do_no_harm(bytes in proptest::collection::vec(any::<u8>(), 0..256)) {
            if let Ok(frame) = pb::Attachments::decode(bytes.as_slice()) {
                let _ = Attachments::try_from(frame);
            }
        }
    }
}
