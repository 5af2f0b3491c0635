//! Jobs for document bases: vectors of texts and of questions, and how well texts answer a question. The controllers, which keep the bases,
//! call no models; they submit these jobs and wait for them ([ADR 85](../../../../../docs/adr/0085-document-bases.md)).

use atlas_graph_run::{Embedder, SearchModels as _, search};
use atlas_model::{CallError, CallErrorKind, DOCUMENTS_TEXTS_MAX, NanoDollars, Purpose};
use atlas_retrieval::{VectorError, Vectors};
use atlas_turn::Failure;
use atlas_turn::record::START;
use atlas_types::{StepKey, StepKind, StepUsage};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::drive::{Driver, ESTIMATED, USAGE};
use super::fault::Fault;
use super::fixed::Fixed;
use super::search::Searching;
use crate::journal::{JournalError, Made, hashed};
use crate::mailbox::Answer;
use crate::provider::elsewhere;
use crate::provider::platform::{Platform, Stopped};

/// The tool of the platform that tells the texts of chunks.
const TEXTS: &str = "atlas.documents.texts";

/// The input of such a job.
#[derive(Debug, Deserialize)]
struct Asked {
    /// The name of a model of the namespace.
    model: String,
    purpose: AskedFor,
    #[serde(default)]
    texts: Vec<String>,
    /// The base of the chunks.
    #[serde(default)]
    base: String,
    /// Chunks of a base instead of texts: who may read jobs need not be one who may read the documents, so the input only names them.
    #[serde(default)]
    chunks: Vec<String>,
    /// The question, for scores.
    #[serde(default)]
    query: String,
}

/// What the texts are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum AskedFor {
    /// Parts of documents, which get vectors as they are kept.
    Document,
    /// One question, which gets a vector as the model gives it.
    Question,
    /// Parts of documents, which get scores.
    Rank,
}

impl Asked {
    fn read(input: &[u8]) -> Result<Self, Fault> {
        let asked: Self = serde_json::from_slice(input).map_err(|error| Fault::Input(error.to_string()))?;
        let Self { purpose, texts, base, chunks, query, .. } = &asked;
        let count = texts.len() + chunks.len();
        let refused = match purpose {
            _ if count == 0 => Some("there is no text".to_owned()),
            _ if !texts.is_empty() && !chunks.is_empty() => {
                Some("it has texts and chunks; give one of them".to_owned())
            }
            _ if count > DOCUMENTS_TEXTS_MAX => Some(format!("{count} texts, more than {DOCUMENTS_TEXTS_MAX}")),
            _ if !chunks.is_empty() && base.is_empty() => Some("the base of the chunks is missing".to_owned()),
            AskedFor::Question if texts.len() != 1 => Some("a question is one text".to_owned()),
            AskedFor::Rank if query.trim().is_empty() => Some("there is no query".to_owned()),
            // Providers refuse them, and do not say which one it is.
            _ => texts.iter().position(|text| text.trim().is_empty()).map(|number| format!("text {number} is empty")),
        };
        refused.map_or(Ok(asked), |why| Err(Fault::Input(why)))
    }

    /// What its model must be for.
    fn purpose_of_model(&self) -> Purpose {
        match self.purpose {
            AskedFor::Document | AskedFor::Question => Purpose::Embedding,
            AskedFor::Rank => Purpose::Reranker,
        }
    }
}

impl Driver<'_, '_> {
    /// The job of a contract with `documents: yes`. Each call is a step, so that an attempt after this one pays for none again.
    pub(super) async fn document_models(mut self) -> Result<Value, Fault> {
        let input = self.work.input.clone();
        let asked = elsewhere(self.control.env, input.len(), move || Asked::read(&input)).await;
        let mut asked = asked.unwrap_or_else(|| Err(Fault::internal("reading the input was interrupted")))?;
        let fixed = self.fix_documents(&asked).await?;
        if !asked.chunks.is_empty() {
            asked.texts = self.chunk_texts(&asked).await?;
        }
        let mut searching = Searching::new(&mut self, &fixed);
        let answered = answered(&asked, &fixed, &mut searching).await;
        let Searching { used, opened, fault, .. } = searching;
        let measured = [
            ("input_tokens", used.input.into()),
            ("output_tokens", used.output.into()),
            ("model", fixed.settings.model.as_str().into()),
        ];
        self.metadata.extend(measured.map(|(name, value)| (name.to_owned(), value)));
        if used.estimated {
            self.metadata.insert(USAGE.to_owned(), ESTIMATED.into());
        }
        let seen = opened.values().find_map(|models| models.seen.as_ref()?.value());
        self.metadata.extend(seen.map(|seen| ("_models".to_owned(), seen)));
        if let Some(fault) = fault {
            return Err(fault);
        }
        let mut output = answered?;
        output.insert("tokens".to_owned(), used.input.into());
        Ok(output.into())
    }

    /// The texts of chunks, which a controller tells only to jobs of this agent.
    async fn chunk_texts(&self, Asked { base, chunks, .. }: &Asked) -> Result<Vec<String>, Fault> {
        #[derive(Deserialize)]
        struct Told {
            texts: Vec<String>,
        }
        let platform = Platform::of(self.work, self.shared);
        let mut texts = Vec::new();
        // One answer has as many as fit.
        while let Some(rest) = chunks.get(texts.len()..).filter(|rest| !rest.is_empty()) {
            let arguments = json!({"base": base, "chunks": rest});
            let answer = platform.ask(TEXTS, &arguments, hashed(&("texts", texts.len()))).await;
            let told = match answer.map_err(|Stopped| Fault::Journal(JournalError::Stopped))? {
                Answer::Completed(told) => told,
                Answer::Failed(why) | Answer::Refused(why) => return Err(Fault::Input(why)),
            };
            let read = serde_json::from_slice::<Told>(&told);
            let Told { texts: more } = read.map_err(|error| Fault::internal(format!("texts of chunks: {error}")))?;
            if more.is_empty() || more.len() > rest.len() {
                return Err(Fault::internal(format!("{} texts for {} chunks", more.len(), rest.len())));
            }
            texts.extend(more);
        }
        Ok(texts)
    }

    /// What the job is fixed to: as recorded, or determined now.
    async fn fix_documents(&mut self, asked: &Asked) -> Result<Fixed, Fault> {
        let (work, shared) = (self.work, self.shared);
        let make = || async move {
            let model = (asked.model.as_str(), asked.purpose_of_model());
            let mut fixed = Fixed::of_documents(&work.agent, model, &work.assignment.attachments, shared)?;
            let budget = work.assignment.budget_nanodollars.map(NanoDollars);
            fixed.settings.limits.budget = budget;
            fixed.searches.values_mut().for_each(|one| one.settings.limits.budget = budget);
            let outcome = serde_json::to_vec(&fixed).map_err(|error| Fault::internal(error.to_string()))?;
            Ok::<_, Fault>(Made { outcome, usage: StepUsage::default() })
        };
        let recorded = self.journal.step(StepKind::Start, StepKey(START.0), make).await?;
        Fixed::read(&recorded)
    }
}

/// The members of the output. The error says nothing if the models have a fault.
async fn answered(
    asked: &Asked,
    fixed: &Fixed,
    models: &mut Searching<'_, '_, '_>,
) -> Result<Map<String, Value>, Fault> {
    let Asked { model, texts, query, .. } = asked;
    let model = model.as_str();
    let borrowed: Vec<&str> = texts.iter().map(String::as_str).collect();
    let env = models.env();
    let output = match asked.purpose {
        AskedFor::Document => {
            let rows = search::embed(&env, model, &borrowed, models).await.map_err(unusable)?;
            let bytes = rows.first().map_or(0, Vec::len) * rows.len();
            let written = elsewhere(&env, bytes, move || encoded(&rows)).await;
            let written = written.ok_or_else(|| Fault::internal("writing the vectors was interrupted"))?;
            let (dimension, vectors) =
                written.map_err(|why| unusable(format!("the embedding model \"{model}\": {why}")))?;
            json!({"model": id(model, fixed, models)?, "dimension": dimension, "vectors": vectors})
        }
        AskedFor::Question => {
            let text = borrowed.first().copied().unwrap_or_default();
            let row = search::embed_question(model, text, models).await.map_err(unusable)?;
            let refused = |error: VectorError| unusable(format!("the embedding model \"{model}\": {error}"));
            Vectors::from_rows(row.len(), [&row]).map_err(refused)?;
            json!({"model": id(model, fixed, models)?, "dimension": row.len(), "question": row})
        }
        AskedFor::Rank => {
            let scores = search::rank(model, query, &borrowed, models).await.map_err(unusable)?;
            json!({"model": fixed.settings.model, "scores": scores})
        }
    };
    match output {
        Value::Object(members) => Ok(members),
        _ => Err(Fault::internal("the output is no object")),
    }
}

/// The dimension of vectors, and their rows as they are kept.
fn encoded(rows: &[Vec<f32>]) -> Result<(usize, String), String> {
    let dimension = rows.first().map_or(0, Vec::len);
    let mut vectors = Vectors::new(dimension).map_err(|error| error.to_string())?;
    for (number, row) in rows.iter().enumerate() {
        vectors.push(row).map_err(|error| format!("text {number}: {error}"))?;
    }
    Ok((dimension, STANDARD.encode(vectors.to_bytes())))
}

/// What tells the model of the job apart from those whose vectors do not fit together.
fn id(model: &str, fixed: &Fixed, models: &Searching<'_, '_, '_>) -> Result<String, Fault> {
    let embedder = models.embedder(model).map_err(|error| unusable(error.to_string()))?;
    Ok(id_of(&fixed.settings.model, &embedder))
}

/// The name that the provider knows a model by, and a digest of all that decides which vectors it gives, without the address of its server.
fn id_of(name: &str, embedder: &Embedder) -> String {
    let digest: String = hashed(&embedder.id).0.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    format!("{name}#{digest}")
}

/// An answer that is of no use.
fn unusable(why: String) -> Fault {
    Fault::Turn(Failure::Call(CallError::new(CallErrorKind::Answer, why)))
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(input: &Value, expected: &Expect) {
        let read = Asked::read(input.to_string().as_bytes());
        expected.assert_eq(&read.map_or_else(|fault| fault.to_string(), |asked| format!("{:?}", asked.purpose)));
    }

    #[test]
    fn inputs_are_read_or_refused() {
        let texts = |count| json!({"model": "m", "purpose": "document", "texts": vec!["a"; count]});
        check(&texts(1), &expect!["Document"]);
        check(&texts(512), &expect!["Document"]);
        check(&texts(0), &expect!["Input validation: there is no text"]);
        check(&texts(513), &expect!["Input validation: 513 texts, more than 512"]);
        check(&json!({"model": "m", "purpose": "question", "texts": ["a"]}), &expect!["Question"]);
        let two = json!({"model": "m", "purpose": "question", "texts": ["a", "b"]});
        check(&two, &expect!["Input validation: a question is one text"]);
        check(&json!({"model": "m", "purpose": "rank", "texts": ["a"], "query": "q"}), &expect!["Rank"]);
        let none = json!({"model": "m", "purpose": "rank", "texts": ["a"]});
        check(&none, &expect!["Input validation: there is no query"]);
        let chunks = |base: &str| json!({"model": "m", "purpose": "document", "base": base, "chunks": ["00"]});
        check(&chunks("b"), &expect!["Document"]);
        check(&chunks(""), &expect!["Input validation: the base of the chunks is missing"]);
        let both = json!({"model": "m", "purpose": "document", "texts": ["a"], "base": "b", "chunks": ["00"]});
        check(&both, &expect!["Input validation: it has texts and chunks; give one of them"]);
        let empty = json!({"model": "m", "purpose": "document", "texts": ["a", " \n"]});
        check(&empty, &expect!["Input validation: text 1 is empty"]);
    }

    #[test]
    fn vectors_without_a_direction_name_their_text() {
        let told = |rows: &[Vec<f32>]| encoded(rows).expect_err("refused");
        expect!["text 1: vector 1 has only zeros, so it points nowhere"].assert_eq(&told(&[vec![1.0], vec![0.0]]));
        expect!["text 1: vector 1 has 2 numbers instead of 1; another model made it"]
            .assert_eq(&told(&[vec![1.0], vec![1.0, 2.0]]));
        expect!["text 0: vector 0: number 0 is NaN"].assert_eq(&told(&[vec![f32::NAN]]));
        expect!["vectors of 0 numbers: a vector has 1 to 8192"].assert_eq(&told(&[]));
        let (dimension, vectors) = encoded(&[vec![3.0, -4.0], vec![0.0, 1.0]]).expect("vectors");
        let bytes = STANDARD.decode(vectors).expect("Base64");
        let read = Vectors::from_bytes(dimension, &bytes).expect("vectors");
        assert_eq!(read, Vectors::from_rows(2, [[3.0, -4.0], [0.0, 1.0]]).expect("vectors"));
    }

    #[test]
    fn models_are_told_apart_without_their_address() {
        let of = |id: &str| id_of("small", &Embedder { id: id.to_owned(), tokens_max: None, texts_max: 1 });
        let (one, other) = (of("http://a"), of("http://b"));
        assert!(one != other && one.starts_with("small#") && one.len() == "small#".len() + 16, "{one} {other}");
    }
}
