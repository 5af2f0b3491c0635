//! `atlasctl cluster members`.

use crate::api::{self, Controller};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Shown, Table};

pub(crate) async fn run(context: &Context) -> Result<Exit, Failure> {
    let value = context.client()?.get(&["api", "cluster", "members"], &[]).await?;
    let members: Vec<Controller> = api::read(&value)?;
    let mut table = Table::new(&["CONTROLLER", "NUMBER", "ROLE", "PEERS", "WORKERS", "HTTP", "VERSION"]);
    for member in &members {
        let Controller { name, id, role, peer, worker, http, version, .. } = member.clone();
        table.row([name, id.to_string(), role, peer, worker, http, version.unwrap_or_default()]);
    }
    let names = members.iter().map(|member| format!("controller/{}", member.name)).collect();
    context.show(&Shown { value, text: table.text(), names })?;
    Ok(Exit::Done)
}
