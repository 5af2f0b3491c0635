//! `atlasctl cluster members`.

use atlas_api::types::Member;

use crate::answers;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Column, List, ListOptions, Shown, column, members, yaml};

/// Options of `atlasctl cluster members`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    #[command(flatten)]
    list: ListOptions,
}

const COLUMNS: [Column<Member>; 7] = [
    column("CONTROLLER", "name", |member, _| member.name.clone()),
    column("NUMBER", "id", |member, _| member.id.to_string()),
    column("ROLE", "role", |member, _| member.role.clone()),
    column("PEERS", "peer", |member, _| member.peer.clone()),
    column("WORKERS", "worker", |member, _| member.worker.clone()),
    column("HTTP", "http", |member, _| member.http.clone()),
    column("VERSION", "version", |member, _| member.version.clone().unwrap_or_default()),
];

pub(super) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    members(context, &options.list).await
}

/// Lists the controllers.
pub(crate) async fn members(context: &Context, options: &ListOptions) -> Result<Exit, Failure> {
    let value = context.client()?.get(&["api", "cluster", "members"], &[]).await?;
    let name = |member: &Member| format!("controller/{}", member.name);
    context.list(value, options, &List { columns: &COLUMNS, members: members::CONTROLLER, name })?;
    Ok(Exit::Done)
}

/// Shows one controller, by its name or number.
pub(crate) async fn member(context: &Context, wanted: &str) -> Result<Exit, Failure> {
    let members = context.client()?.get(&["api", "cluster", "members"], &[]).await?;
    for value in members.as_array().into_iter().flatten() {
        let member: Member = answers::read(value)?;
        if member.name == wanted || member.id.to_string() == wanted {
            let names = vec![format!("controller/{}", member.name)];
            context.show(&Shown { value: value.clone(), text: yaml(value), names })?;
            return Ok(Exit::Done);
        }
    }
    let failure = Failure::new("E6001", Exit::NotFound, format!("no such member: {wanted}"));
    Err(failure.with_next("list them: atlasctl cluster members"))
}
