//! Which specs are refused. A refusal is part of the answer of every replica, so a changed rule belongs to a feature level.

use atlas_model::{SpecError, check_headers, check_url};

use super::{ARGUMENTS_MAX, ServerSpec, TEXT_BYTES_MAX, TOOLS_MAX, Transport, VARIABLES_MAX};
use crate::tool;

/// Longest time limit.
const SECONDS_MAX: u32 = 86_400;

impl ServerSpec {
    /// Refuses what no call could use, and every place where a credential would be readable.
    pub fn check(&self) -> Result<(), SpecError> {
        match self.transport {
            Transport::Stdio => self.check_program()?,
            Transport::Http | Transport::Sse => self.check_address()?,
        }
        self.check_tools()?;
        for (field, value) in [
            ("spec.timeout_seconds", self.timeout_seconds),
            ("spec.start_timeout_seconds", self.start_timeout_seconds),
            ("spec.idle_timeout_seconds", self.idle_timeout_seconds),
        ] {
            if !(1..=SECONDS_MAX).contains(&value) {
                return Err(SpecError::new(field, format!("is between 1 and {SECONDS_MAX}")));
            }
        }
        Ok(())
    }

    fn check_address(&self) -> Result<(), SpecError> {
        let word = self.transport.as_str();
        let others = [
            ("spec.command", self.command.is_some()),
            ("spec.args", !self.args.is_empty()),
            ("spec.env", !self.env.is_empty()),
            ("spec.cwd", self.cwd.is_some()),
        ];
        if let Some((field, _)) = others.into_iter().find(|(_, given)| *given) {
            return Err(SpecError::new(field, format!("is for the transport stdio, not for {word}")));
        }
        let Some(url) = &self.url else {
            return Err(SpecError::new("spec.url", format!("is needed for the transport {word}")));
        };
        check_url(url).map_err(|text| SpecError::new("spec.url", text))?;
        let headers = self.headers.iter().map(|(name, value)| (name.as_str(), Some(value.as_str())));
        check_headers("spec.headers", headers)
    }

    fn check_program(&self) -> Result<(), SpecError> {
        let others = [
            ("spec.url", self.url.is_some()),
            ("spec.headers", !self.headers.is_empty()),
            ("spec.forward_inbound_auth", self.forward_inbound_auth),
            ("spec.plain_http", self.plain_http),
        ];
        if let Some((field, _)) = others.into_iter().find(|(_, given)| *given) {
            return Err(SpecError::new(field, "is for the transports http and sse, not for stdio"));
        }
        let command = self.command.as_deref().unwrap_or_default();
        if command.trim().is_empty() {
            return Err(SpecError::new("spec.command", "is needed for the transport stdio"));
        }
        text("spec.command", command)?;
        text("spec.cwd", self.cwd.as_deref().unwrap_or_default())?;
        if self.args.len() > ARGUMENTS_MAX {
            return Err(SpecError::new("spec.args", format!("has more than {ARGUMENTS_MAX} items")));
        }
        self.args.iter().try_for_each(|argument| text("spec.args", argument))?;
        if self.env.len() > VARIABLES_MAX {
            return Err(SpecError::new("spec.env", format!("has more than {VARIABLES_MAX} members")));
        }
        for (name, value) in &self.env {
            let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
            if name.is_empty() || name.len() > 128 || !name.bytes().all(is_name) {
                let problem = format!("has a member {name:?}, which is not the name of a variable");
                return Err(SpecError::new("spec.env", problem));
            }
            text("spec.env", value)?;
        }
        Ok(())
    }

    fn check_tools(&self) -> Result<(), SpecError> {
        let names = self.tools.iter().flatten().map(|name| ("spec.tools", name.as_str()));
        let effects = self.effects.keys().map(|name| ("spec.effects", name.as_str()));
        let pins = self.pins.names().map(|name| ("spec.pins", name));
        for (field, count) in [
            ("spec.tools", self.tools.as_ref().map_or(0, Vec::len)),
            ("spec.effects", self.effects.len()),
            ("spec.pins", self.pins.len()),
        ] {
            if count > TOOLS_MAX {
                return Err(SpecError::new(field, format!("has more than {TOOLS_MAX} names")));
            }
        }
        for (field, name) in names.chain(effects).chain(pins) {
            if !tool::is_name(name) {
                let problem = format!("has the name {name:?}, which no tool can have");
                return Err(SpecError::new(field, problem));
            }
        }
        self.pins.check()
    }
}

/// Refuses a text that is too long or cannot be passed to a program.
fn text(field: &'static str, text: &str) -> Result<(), SpecError> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(SpecError::new(field, format!("has a text of more than {TEXT_BYTES_MAX} bytes")));
    }
    if text.contains('\0') {
        return Err(SpecError::new(field, "has a text with a NUL character"));
    }
    Ok(())
}
