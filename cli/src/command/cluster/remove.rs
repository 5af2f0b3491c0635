//! `atlasctl cluster remove`.

use atlas_api::types::ClusterView;

use crate::answers;
use crate::confirm;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::names;
use crate::output::Shown;

/// Options of `atlasctl cluster remove`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Name or number of the controller.
    #[arg(value_name = "CONTROLLER", value_parser = names::controller)]
    name: String,
    /// Skip the confirmation.
    #[arg(short, long)]
    yes: bool,
}

pub(crate) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    remove(context, &options.name, options.yes).await
}

/// Removes a controller; asks first unless `yes`.
pub(crate) async fn remove(context: &Context, name: &str, yes: bool) -> Result<Exit, Failure> {
    let client = context.client()?;
    let cluster: ClusterView = answers::read(&client.get(&["api", "cluster"], &[]).await?)?;
    let left = cluster.members.iter().filter(|member| member.role != "learner" && member.name != name).count();
    context.note(&format!("{name} is removed permanently; {left} of {} voters remain", cluster.quorum.voters));
    if !yes && confirm::answer(&format!("type {name} to continue: "))?.as_deref() != Some(name) {
        return Err(Failure::new("E0113", Exit::Usage, "nothing was changed: this needs a confirmation")
            .with_next(format!("atlasctl cluster remove {name} --yes")));
    }
    let value = client.delete(&["api", "cluster", "members", name]).await?;
    context.show(&Shown { value, text: format!("{name} is removed\n"), names: vec![format!("controller/{name}")] })?;
    Ok(Exit::Done)
}
