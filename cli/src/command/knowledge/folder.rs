//! Folders of knowledge as Atlas for Python keeps them: `DOMAIN/ID.md` with YAML in front (compatibility §23.2).

use std::path::PathBuf;

use atlas_api::types::KnowledgeEntry;
use atlas_knowledge::{Entry, Folder, FolderError, Name};
use serde_json::{Value, json};

use super::{ENTRIES, counted, left_out};
use crate::answers;
use crate::client::Client;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::names;
use crate::output::Shown;

/// Entries of one page.
const PAGE: usize = 500;

/// Options of `atlasctl knowledge import`.
#[derive(Debug, clap::Args)]
pub(crate) struct Import {
    /// The folder.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

/// Options of `atlasctl knowledge export`.
#[derive(Debug, clap::Args)]
pub(crate) struct Export {
    /// The folder; it is made if there is none.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Only entries of this domain.
    #[arg(long, value_name = "DOMAIN", value_parser = names::domain)]
    domain: Option<String>,
}

pub(super) async fn import(context: &Context, options: &Import) -> Result<Exit, Failure> {
    if !options.folder.is_dir() {
        return Err(Failure::usage(format!("there is no folder \"{}\"", options.folder.display())));
    }
    let entries = Folder::new(&options.folder).entries().map_err(|error| unusable(&error))?;
    let left_out = left_out::find(&options.folder, &entries);
    left_out::tell(context, &left_out);
    let client = context.client()?;
    let (mut stored, mut refused) = (0, Vec::new());
    for entry in &entries {
        let body = json!({
            "id": entry.id.as_str(),
            "content": entry.content,
            "domain": entry.domain.as_str(),
            "tags": entry.tags,
            "metadata": entry.metadata,
        });
        match client.post(&ENTRIES, &[], &body).await {
            Ok(_) => stored += 1,
            // One bad entry does not cost the others; a cluster that does not answer ends the import.
            Err(failure) if failure.exit == Exit::Invalid => {
                context.note(&format!("{}/{}: {}", entry.domain, entry.id, failure.message));
                refused.push(entry.id.to_string());
            }
            Err(failure) => return Err(failure),
        }
    }
    let value = json!({"stored": stored, "refused": refused, "left_out": left_out.value()});
    context.show(&Shown { value, text: counted("stored", stored), names: Vec::new() })?;
    Ok(if refused.is_empty() && left_out.skipped.is_empty() { Exit::Done } else { Exit::Short })
}

pub(super) async fn export(context: &Context, options: &Export) -> Result<Exit, Failure> {
    let folder = Folder::new(&options.folder);
    let entries = all(&context.client()?, options.domain.as_deref()).await?;
    for value in &entries {
        let KnowledgeEntry { id, content, domain, tags, metadata, created_at, updated_at, .. } =
            answers::read::<KnowledgeEntry>(value)?;
        let name = |text: &str| Name::new(text).map_err(|error| Failure::usage(error.to_string()));
        let (id, domain) = (name(&id)?, name(&domain)?);
        let entry = Entry { id, content, domain, tags, metadata, created_at, updated_at };
        folder.put(&entry).map_err(|error| unusable(&error))?;
    }
    let value = json!({"written": entries.len(), "folder": options.folder.display().to_string()});
    context.show(&Shown { value, text: counted("wrote", entries.len()), names: Vec::new() })?;
    Ok(Exit::Done)
}

/// All entries, page by page.
pub(super) async fn all(client: &Client, domain: Option<&str>) -> Result<Vec<Value>, Failure> {
    let limit = PAGE.to_string();
    let mut found: Vec<Value> = Vec::new();
    loop {
        let offset = found.len().to_string();
        let mut query = vec![("limit", limit.as_str()), ("offset", offset.as_str())];
        query.extend(domain.map(|domain| ("domain", domain)));
        let page: Vec<Value> = answers::read(&client.get(&ENTRIES, &query).await?)?;
        let last = page.len() < PAGE;
        found.extend(page);
        if last {
            return Ok(found);
        }
    }
}

fn unusable(error: &FolderError) -> Failure {
    let why = std::error::Error::source(error).map(|source| format!(": {source}")).unwrap_or_default();
    Failure::usage(format!("{error}{why}"))
}
