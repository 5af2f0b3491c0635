//! `atlasctl agent show`.

use atlas_api::types::Agent;

use crate::answers;
use crate::command::agent::one_version;
use crate::context::Context;
use crate::display::CircuitDisplay as _;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::names;
use crate::output::Shown;
use crate::words;

/// Options of `atlasctl agent show`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Agent names, each optionally with @VERSION, also as printed by -o name.
    #[arg(required = true, value_name = "NAME", value_parser = names::agent)]
    names: Vec<String>,
    /// Version or requirement; defaults to the latest.
    #[arg(long = "version", value_name = "REQUIREMENT")]
    requirement: Option<String>,
}

pub(crate) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    names::each(context, &options.names, async |text| {
        let (name, requirement) = one_version(text, options.requirement.as_deref())?;
        show(context, name, requirement).await
    })
    .await
}

/// Shows one agent.
pub(crate) async fn show(context: &Context, name: &str, requirement: Option<&str>) -> Result<Exit, Failure> {
    let query: Vec<(&str, &str)> = requirement.iter().map(|text| ("version", *text)).collect();
    let value = context.client()?.get(&["api", "agents", name], &query).await?;
    let agent: Agent = answers::read(&value)?;
    let shown = Shown { text: text(&agent), value, names: vec![format!("agent/{}", agent.name)] };
    context.show(&shown)?;
    let name = words::shell(&agent.name);
    context.next(&format!("next: atlasctl agent schema {name}   or: atlasctl run {name} key=value"));
    Ok(Exit::Done)
}

fn text(agent: &Agent) -> String {
    let digest = agent.digest.get(..15).unwrap_or(&agent.digest);
    let mut text = format!("{} {}   {}", agent.name, agent.version, agent.description).trim_end().to_owned() + "\n";
    text += &format!("  program        {}\n", agent.provider);
    if !agent.capabilities.is_empty() {
        text += &format!("  capabilities   {}\n", agent.capabilities.join(", "));
    }
    if agent.retired {
        text += "  retired        accepts no new jobs\n";
    } else if let Some(why) = &agent.deprecated {
        text += format!("  deprecated     {why}").trim_end();
        text += "\n";
    }
    if let Some(circuit) = agent.circuit.sentence() {
        text += &format!("  circuit        {circuit}\n");
    }
    text += &format!("  package        {}, {digest}\n", words::bytes(agent.package_bytes));
    if agent.revisions.len() > 1 {
        text += &format!("  revision       {}{}, {} earlier\n", agent.revision, by(agent), agent.revisions.len() - 1);
    }
    text += &format!("  input          {}\n", fields(&agent.input_schema));
    text += &format!("  output         {}\n", fields(&agent.output_schema));
    text
}

/// ` by ada`, if it is known who registered the package.
fn by(agent: &Agent) -> String {
    agent.registered_by.as_ref().map(|by| format!(" by {by}")).unwrap_or_default()
}

/// The properties of an object schema, with a question mark after the optional ones: `content, style?`.
fn fields(schema: &serde_json::Value) -> String {
    let Some(properties) = schema["properties"].as_object().filter(|properties| !properties.is_empty()) else {
        return "anything".to_owned();
    };
    let required = |name: &String| {
        schema["required"].as_array().is_some_and(|names| names.iter().any(|one| one.as_str() == Some(name.as_str())))
    };
    let field = |name: &String| if required(name) { name.clone() } else { format!("{name}?") };
    properties.keys().map(field).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;
    use atlas_api::types::AgentRevision;

    #[test]
    fn an_agent_reads_at_a_glance() {
        let agent = Agent {
            name: "formatter".to_owned(),
            version: "1.0.0".to_owned(),
            description: "Formats text.".to_owned(),
            provider: "python".to_owned(),
            digest: format!("sha256:{}", "9f2c41d0".repeat(8)),
            package_bytes: 1229,
            input_schema: json!({"properties": {"content": {}, "style": {}}, "required": ["content"]}),
            revision: 2,
            registered_by: Some("ada".to_owned()),
            revisions: vec![AgentRevision::default(), AgentRevision::default()],
            ..Agent::default()
        };
        expect![[r#"
            formatter 1.0.0   Formats text.
              program        python
              package        1.2 KiB, sha256:9f2c41d0
              revision       2 by ada, 1 earlier
              input          content, style?
              output         anything
        "#]]
        .assert_eq(&text(&agent));
    }
}
