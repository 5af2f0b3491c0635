//! `atlasctl version`.

use serde_json::{Value, json};

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Shown;

pub(crate) async fn run(context: &Context) -> Result<Exit, Failure> {
    let ours = env!("CARGO_PKG_VERSION");
    // The command succeeds even if no cluster is reachable, because it can print its own version.
    let client = context.client()?;
    let cluster = client.get(&["api", "version"], &[]).await;
    let mut text = format!("atlasctl {ours}\n");
    match &cluster {
        Ok(cluster) => {
            let say = |key: &str| cluster[key].as_str().unwrap_or("unknown").to_owned();
            text += &format!("cluster  {}  {}  ({})\n", say("version"), say("mode"), client.base());
        }
        Err(failure) => context.note(&failure.message),
    }
    let value = json!({"atlasctl": ours, "cluster": cluster.unwrap_or(Value::Null)});
    context.show(&Shown { value, text, names: vec![format!("atlasctl/{ours}")] })?;
    Ok(Exit::Done)
}
