//! `atlasctl mcp add`: writes the object of an MCP server from options, or the objects of a file `mcp.json`.

use std::path::PathBuf;
use std::time::Duration;

use atlas_mcp_spec::{ImportedServer, ServerSpec, Transport};
use serde_json::{Value, json};

use super::{KIND, accept};
use crate::client::Client;
use crate::command::mcp::import;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::names;
use crate::output::Shown;
use crate::words;

/// Options of `atlasctl mcp add`.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct Options {
    /// The name of the server in Atlas; with --from, only this server of the file.
    #[arg(value_parser = names::server, required_unless_present = "from")]
    name: Option<String>,
    /// The address of a server over HTTP.
    #[arg(long, value_name = "URL", group = "place")]
    url: Option<String>,
    /// The program of a server over standard input and output; its arguments follow after --, or with spaces in this text.
    #[arg(long, value_name = "PROGRAM", group = "place")]
    command: Option<String>,
    /// A file with servers, as other programs keep them: mcp.json.
    #[arg(long, value_name = "FILE", group = "place")]
    from: Option<PathBuf>,
    /// The older transport with an event stream, instead of streamable HTTP.
    #[arg(long, requires = "url")]
    sse: bool,
    /// A header of each request; the value may contain references, such as 'Bearer {{NAME}}'; repeatable.
    #[arg(long = "header", value_name = "NAME=VALUE", value_parser = words::parse_label, requires = "url")]
    headers: Vec<(String, String)>,
    /// Pass on the Authorization header of the request that a job came from.
    #[arg(long, requires = "url")]
    forward_inbound_auth: bool,
    /// Allow http:// to another machine.
    #[arg(long, requires = "url")]
    plain_http: bool,
    /// A variable of the program; the value may be a reference, such as secret://NAME; repeatable.
    #[arg(long = "env", value_name = "NAME=VALUE", value_parser = words::parse_label, requires = "command")]
    env: Vec<(String, String)>,
    /// The directory of the program.
    #[arg(long, value_name = "DIR", requires = "command")]
    cwd: Option<String>,
    /// A tool that agents may call, * at the end for any rest; repeatable. Without it, all.
    #[arg(long = "tool", value_name = "NAME")]
    tools: Vec<String>,
    /// Accept the tools as they are now, and offer only these until the next accept-changes.
    #[arg(long)]
    pin: bool,
    /// Longest time of one call.
    #[arg(long, value_name = "DURATION", value_parser = words::parse_seconds)]
    timeout: Option<Duration>,
    /// Replace a server of the same name.
    #[arg(long)]
    replace: bool,
    /// Arguments of the program.
    #[arg(last = true, value_name = "ARGUMENT")]
    args: Vec<String>,
}

pub(crate) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    let servers = match (&options.from, &options.name) {
        (Some(file), name) => import::read(file, name.as_deref())?,
        (None, Some(name)) => vec![ImportedServer { name: name.clone(), spec: options.spec()?, needs_login: false }],
        (None, None) => return Err(Failure::usage("give a NAME with --url or --command, or a file with --from")),
    };
    let (mut text, mut values, mut shown) = (String::new(), Vec::new(), Vec::new());
    for ImportedServer { name, spec, needs_login } in servers {
        let next = if needs_login && spec.login_refused().is_none() {
            "log in: atlasctl mcp login"
        } else {
            "try it: atlasctl mcp test"
        };
        let spec = serde_json::to_value(&spec).map_err(|error| Failure::usage(format!("the definition: {error}")))?;
        values.push(put(&context.client()?, &name, &spec, &json!({}), options.replace).await?);
        if options.pin {
            values.pop();
            values.push(accept::accept(context, &name, None).await?.0);
        }
        text += &format!("{KIND} {name}   added   {next} {name}\n");
        shown.push(format!("{KIND}/{name}"));
    }
    let value = if values.len() == 1 { values.remove(0) } else { Value::Array(values) };
    context.show(&Shown { value, text, names: shown })?;
    Ok(Exit::Done)
}

/// Writes the object of a server.
pub(crate) async fn put(
    client: &Client,
    name: &str,
    spec: &Value,
    labels: &Value,
    replace: bool,
) -> Result<Value, Failure> {
    let path = ["api", "objects", KIND, name];
    let body = json!({ "labels": labels, "spec": spec });
    let answer = if replace { client.put(&path, &[], &body).await } else { client.put_new(&path, &[], &body).await };
    answer.map_err(|failure| match failure.code.as_deref() {
        Some("E1116") => Failure { message: format!("the MCP server \"{name}\" exists already"), ..failure }
            .with_next("replace it: add --replace"),
        _ => failure,
    })
}

impl Options {
    fn spec(&self) -> Result<ServerSpec, Failure> {
        let mut spec = match (&self.url, &self.command) {
            (Some(url), _) => ServerSpec::http(url.clone()),
            (None, Some(command)) => program(command, &self.args)?,
            (None, None) => return Err(Failure::usage("where is the server? give --url, --command or --from")),
        };
        if self.sse {
            spec.transport = Transport::Sse;
        }
        spec.headers = self.headers.iter().cloned().collect();
        spec.forward_inbound_auth = self.forward_inbound_auth;
        spec.plain_http = self.plain_http;
        spec.env = self.env.iter().cloned().collect();
        spec.cwd.clone_from(&self.cwd);
        spec.tools = (!self.tools.is_empty()).then(|| self.tools.clone());
        if let Some(timeout) = self.timeout {
            spec.timeout_seconds = u32::try_from(timeout.as_secs()).unwrap_or(u32::MAX);
        }
        // The controller checks again; here the error comes before anything is sent.
        spec.check().map_err(|error| Failure::usage(format!("the definition is refused: {error}")))?;
        Ok(spec)
    }
}

/// A program with its arguments: those after `--`, or the words of the text.
fn program(command: &str, args: &[String]) -> Result<ServerSpec, Failure> {
    if !args.is_empty() || !command.contains(char::is_whitespace) {
        return Ok(ServerSpec::stdio(command, args.to_vec()));
    }
    if command.contains(['"', '\'', '\\']) {
        return Err(Failure::usage("--command has quotes in it: write the arguments after --"));
    }
    let mut words = command.split_whitespace().map(str::to_owned);
    Ok(ServerSpec::stdio(words.next().unwrap_or_default(), words.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_have_their_arguments_in_the_text_or_after_it() {
        let args = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let spec = program("uvx mcp-server-fetch  -v", &[]).expect("words");
        assert_eq!((spec.command.as_deref(), spec.args), (Some("uvx"), args(&["mcp-server-fetch", "-v"])));
        let spec = program("my program", &args(&["a b"])).expect("as it is");
        assert_eq!((spec.command.as_deref(), spec.args), (Some("my program"), args(&["a b"])));
        assert!(program("sh -c 'x'", &[]).is_err());
    }
}
