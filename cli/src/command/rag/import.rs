//! `atlasctl rag import`: bases of Loki, the files of its folder `rags`, become bases of the cluster. Their documents are put together from
//! their chunks; their vectors stay behind.

mod join;
mod loki;

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use self::loki::LokiBase;
use super::{BASES, add, at, wait};
use crate::command::object::is_conflict;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::names;
use crate::words;

/// Options of `atlasctl rag import`.
#[derive(Debug, clap::Args)]
pub(crate) struct Import {
    /// Files of the folder rags of Loki. Each becomes a base with its name.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// The base's name, for one file.
    #[arg(long, value_name = "NAME", value_parser = names::base)]
    name: Option<String>,
    /// The model that makes vectors of the parts, of the type embedding; without one, documents are found by words alone.
    #[arg(long, value_name = "MODEL")]
    embedding: Option<String>,
    /// The model that ranks what was found, of the type reranker.
    #[arg(long, value_name = "MODEL")]
    reranker: Option<String>,
    /// Change the settings of a base that is there.
    #[arg(long)]
    replace: bool,
}

pub(super) async fn run(context: &Context, options: &Import) -> Result<Exit, Failure> {
    if options.name.is_some() && options.files.len() > 1 {
        return Err(
            Failure::usage("--name is for one file").with_next("name the files alone, or import them one by one")
        );
    }
    let files: Vec<String> = options.files.iter().map(|file| file.display().to_string()).collect();
    names::each(context, &files, async |file| one(context, Path::new(file), options).await).await
}

async fn one(context: &Context, file: &Path, options: &Import) -> Result<Exit, Failure> {
    let base = LokiBase::open(file)?;
    let stem = file.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let name = options.name.clone().or(stem).unwrap_or_default();
    create(context, &name, settings(&base, options), options.replace).await?;
    for told in told(&base, options) {
        context.note(&told);
    }
    let exit = add::send(context, &name, base.documents, base.skipped).await?;
    if options.embedding.is_none() {
        return Ok(exit);
    }
    Ok(match wait::for_vectors(context, &name).await? {
        Exit::Done => exit,
        short => short,
    })
}

async fn create(context: &Context, name: &str, settings: Map<String, Value>, replace: bool) -> Result<(), Failure> {
    let client = context.client()?;
    let mut draft = settings.clone();
    draft.insert("name".to_owned(), name.into());
    match client.post(&BASES, &[], &Value::Object(draft)).await {
        Err(failure) if is_conflict(&failure) && replace => {
            client.put(&at(name), &[], &Value::Object(settings)).await.map(drop)
        }
        Err(failure) if is_conflict(&failure) => {
            let message = format!("the base \"{name}\" exists already, with other settings");
            Err(Failure { message, ..failure }.with_next("take another --name, or change them: add --replace"))
        }
        answer => answer.map(drop),
    }
}

/// The settings that move over. What is out of bounds here keeps the default.
fn settings(base: &LokiBase, options: &Import) -> Map<String, Value> {
    let within = |value: Option<u64>, least: u64, most: u64| value.filter(|value| (least..=most).contains(value));
    let size = within(base.chunk_size, 64, 65_536);
    // Bytes in Loki, percent here.
    let overlap =
        base.chunk_overlap.zip(size).map(|(overlap, size)| overlap.saturating_mul(100).saturating_add(size / 2) / size);
    let members = [
        ("chunk_size", size.map(|size| json!(size))),
        ("chunk_overlap", within(overlap, 0, 50).map(|percent| json!(percent))),
        ("top_k", within(base.top_k, 1, 100).map(|count| json!(count))),
        ("embedding", options.embedding.as_ref().map(|model| json!(model))),
        ("reranker", options.reranker.as_ref().map(|model| json!(model))),
    ];
    members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

/// What does not move over, and what takes its place.
fn told(base: &LokiBase, options: &Import) -> Vec<String> {
    let mut told = Vec::new();
    if base.vectors > 0 {
        let with = match &options.embedding {
            Some(model) => format!("the model {model} makes new ones"),
            None => "documents are found by words; for vectors, add a model and name it: --embedding MODEL".to_owned(),
        };
        let vectors = words::count(base.vectors, "vector");
        let by = base.embedding_model.as_deref().map(|model| format!(" of {model}")).unwrap_or_default();
        told.push(format!("{vectors}{by} stay behind: {with}"));
    }
    if let Some(model) = base.reranker_model.as_deref().filter(|_| options.reranker.is_none()) {
        told.push(format!("answers were ranked by {model}: name a model that ranks here: --reranker MODEL"));
    }
    if !base.document_paths.is_empty() {
        let paths = words::some(&base.document_paths, 5);
        told.push(format!("the documents came from {paths}: add what changes there with atlasctl rag add"));
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> Import {
        Import { files: Vec::new(), name: None, embedding: None, reranker: None, replace: false }
    }

    #[test]
    fn settings_are_those_of_loki_within_bounds() {
        let of = |size, overlap, top_k| {
            let base = LokiBase {
                chunk_size: Some(size),
                chunk_overlap: Some(overlap),
                top_k: Some(top_k),
                ..LokiBase::default()
            };
            Value::Object(settings(&base, &options())).to_string()
        };
        expect_test::expect![[r#"{"chunk_size":1500,"chunk_overlap":5,"top_k":4}"#]].assert_eq(&of(1_500, 75, 4));
        // Nothing of it is possible here, and the overlap has no size to be a part of.
        expect_test::expect!["{}"].assert_eq(&of(1, 75, 0));
        expect_test::expect![[r#"{"chunk_size":100}"#]].assert_eq(&of(100, u64::MAX, 101));
    }

    #[test]
    fn what_stays_behind_is_said() {
        let base = LokiBase {
            vectors: 2,
            embedding_model: Some("openai:small".to_owned()),
            reranker_model: Some("jina:base".to_owned()),
            document_paths: vec!["/srv/docs/**/*.md".to_owned()],
            ..LokiBase::default()
        };
        expect_test::expect![[r#"
            2 vectors of openai:small stay behind: documents are found by words; for vectors, add a model and name it: --embedding MODEL
            answers were ranked by jina:base: name a model that ranks here: --reranker MODEL
            the documents came from /srv/docs/**/*.md: add what changes there with atlasctl rag add"#]]
        .assert_eq(&told(&base, &options()).join("\n"));
    }
}
