//! `atlasctl rag rebuild`.

use atlas_api::types::RebuiltBase;
use serde_json::json;

use super::{BASES, listed, wait};
use crate::answers;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::names;
use crate::output::Shown;
use crate::words;

/// Options of `atlasctl rag rebuild`.
#[derive(Debug, clap::Args)]
pub(crate) struct Rebuild {
    /// The base's name.
    #[arg(value_name = "NAME", value_parser = names::base)]
    name: String,
    /// Leave out documents that no controller can read.
    #[arg(long)]
    drop_unreadable: bool,
    /// Make all vectors anew, for example because the model is another one now.
    #[arg(long)]
    vectors: bool,
    /// Do not wait for the vectors.
    #[arg(long)]
    no_wait: bool,
}

pub(super) async fn run(context: &Context, options: &Rebuild) -> Result<Exit, Failure> {
    let Rebuild { name, drop_unreadable, vectors, no_wait } = options;
    let path = [BASES[0], BASES[1], name, "rebuild"];
    let body = json!({ "drop_unreadable": drop_unreadable, "vectors": vectors });
    let value = context.client()?.post(&path, &[], &body).await.map_err(listed)?;
    let RebuiltBase { documents, segments, lost } = answers::read(&value)?;
    let (documents, segments) = (words::count(documents, "document"), words::count(segments, "segment"));
    context.show(&Shown {
        text: format!("base/{name}  rebuilt  {documents} in {segments}\n"),
        names: vec![format!("base/{name}")],
        value,
    })?;
    let waited = if *no_wait { Exit::Done } else { wait::for_vectors(context, name).await? };
    if lost == 0 {
        return Ok(waited);
    }
    let lost = words::count(lost, "document");
    context.note(&format!("{}{lost} could not be read and left the base; add them again", words::WARNING));
    Ok(Exit::Short)
}
