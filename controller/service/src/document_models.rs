//! Vectors and scores for document bases. Workers call the models, by jobs of an agent that is part of this program: only they have the secrets
//! and the network of providers, and a job records what was paid for.

use std::sync::Arc;
use std::time::Duration;

use atlas_api::catalogue::{self, Entry};
use atlas_artifacts::digest_of;
use atlas_desk::on_behalf;
use atlas_jobs::relations;
use atlas_model::{DOCUMENTS_TEXTS_MAX, ModelSpec, Purpose};
use atlas_records::{Shown, View};
use atlas_retrieval::Vectors;
use atlas_state::State;
use atlas_types::{ERASED_LABEL, JobId, JobStatus, Object, ObjectKey, ObjectKind, ObjectName, RequestId};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

pub(crate) use crate::kept::QuestionVector;
use crate::probes::{self, OwnAgent, Standing};
use crate::{Caller, Error, Service, Submission};

/// Most texts of one request.
pub(crate) const TEXTS_MAX: usize = DOCUMENTS_TEXTS_MAX;
/// Most bytes of a question.
const QUESTION_BYTES_MAX: usize = 64 << 10;
/// Longest wait for the vector of a question, and for scores: somebody waits for the answer.
pub(crate) const ASK_WAIT: Duration = Duration::from_secs(30);
/// How many times as long as for a worker it is waited for a job that runs and that nobody waits for.
const ROUNDS: usize = 3;
/// Failures that have nothing to do with a text.
const OF_NO_TEXT: [Entry; 3] = [catalogue::NO_MODEL, catalogue::BUDGET_SPENT, catalogue::NO_LOGIN];
/// How many jobs one idempotency key stands for, at most: the next one is made when the last one failed. After that, jobs have no key.
const KEYS_MAX: usize = 8;

/// Chunks of a base. Jobs name them, and the worker asks for their texts: who may read jobs need not be one who may read the documents.
#[derive(Debug, Clone)]
pub(crate) struct Chunks {
    pub(crate) base: String,
    /// What they are known by, 1 to [`TEXTS_MAX`].
    pub(crate) keys: Vec<String>,
}

/// Chunks to embed.
#[derive(Debug, Clone)]
pub(crate) struct EmbedAsk {
    /// A model of the namespace of the type `embedding`.
    pub(crate) model: String,
    pub(crate) chunks: Chunks,
    /// The priority of the job.
    pub(crate) priority: i64,
    /// How long it is waited for. A job that no worker has taken by then is cancelled; one that runs has a while longer.
    pub(crate) wait: Duration,
    /// An idempotency key: a repeat finds the job, unless that failed.
    pub(crate) request_id: Option<String>,
}

/// The vectors of texts.
#[derive(Debug, Clone)]
pub(crate) struct Embedded {
    /// The job that made them.
    pub(crate) job: JobId,
    /// What tells the model apart from those whose vectors do not fit to these.
    pub(crate) model: String,
    /// A row for each text, in their order.
    pub(crate) vectors: Arc<Vectors>,
}

/// A question to embed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct QuestionAsk<'a> {
    /// A model of the namespace of the type `embedding`.
    pub(crate) model: &'a str,
    pub(crate) text: &'a str,
    pub(crate) priority: i64,
}

/// Chunks to score for a question.
#[derive(Debug, Clone)]
pub(crate) struct RankAsk<'a> {
    /// A model of the namespace of the type `reranker`.
    pub(crate) model: &'a str,
    pub(crate) query: &'a str,
    pub(crate) chunks: Chunks,
    pub(crate) priority: i64,
}

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum Unanswered {
    /// The job failed, perhaps because of a text.
    Failed(Error),
    /// Nothing is known of the texts.
    Error(Error),
}

impl From<Error> for Unanswered {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

impl From<Unanswered> for Error {
    fn from(unanswered: Unanswered) -> Self {
        match unanswered {
            Unanswered::Failed(error) | Unanswered::Error(error) => error,
        }
    }
}

/// A job to be done.
struct Work<'a> {
    input: Value,
    /// Whether it is part of a search, whose caller may search the base.
    is_search: bool,
    priority: i64,
    wait: Duration,
    /// How many times longer it is waited for while a worker has it.
    rounds: usize,
    request_id: Option<&'a str>,
}

/// The output of a job with texts of documents.
#[derive(Deserialize)]
struct Rows {
    model: String,
    dimension: usize,
    vectors: String,
}

/// The output of a job with a question.
#[derive(Deserialize)]
struct Row {
    model: String,
    question: Vec<f32>,
}

/// The output of a job that scores texts.
#[derive(Deserialize)]
struct Scores {
    scores: Vec<f64>,
}

impl Service {
    /// Embeds chunks by a job of the caller. Whether the caller may ask is decided before.
    pub(crate) async fn embed(&self, caller: &Caller, ask: EmbedAsk) -> Result<Embedded, Unanswered> {
        let EmbedAsk { model, chunks, priority, wait, request_id } = ask;
        let Chunks { base, keys } = check_chunks(chunks)?;
        let state = self.shared.current().await?;
        find_model(&state, caller, &model, Purpose::Embedding)?;
        let count = keys.len();
        let input = json!({"model": model, "purpose": "document", "base": base, "chunks": keys});
        let work = Work { input, is_search: false, priority, wait, rounds: ROUNDS, request_id: request_id.as_deref() };
        let shown = self.documents_job(caller, &state, work).await?;
        let job = shown.job().id;
        let read = self.shared.env.spawn_blocking("read-vectors", move || {
            let Rows { model, dimension, vectors } = output(&shown)?;
            Ok::<_, String>((model, rows(dimension, &vectors, count)?))
        });
        let (model, vectors) = read.join().await.map_err(|_| Error::Internal)?.map_err(|why| unusable(job, &why))?;
        Ok(Embedded { job, model, vectors: Arc::new(vectors) })
    }

    /// Embeds a question by a job of the caller, unless it was asked a while ago.
    pub(crate) async fn embed_question(
        &self,
        caller: &Caller,
        ask: QuestionAsk<'_>,
    ) -> Result<Arc<QuestionVector>, Error> {
        let QuestionAsk { model, text, priority } = ask;
        check_question(text)?;
        let state = self.shared.current().await?;
        let object = find_model(&state, caller, model, Purpose::Embedding)?;
        let question = (object.key.clone(), object.revision, digest_of(text.as_bytes()));
        if let Some(vector) = self.shared.questions.get(&question) {
            return Ok(vector);
        }
        let input = json!({"model": model, "purpose": "question", "texts": [text]});
        let work = Work { input, is_search: false, priority, wait: ASK_WAIT, rounds: 0, request_id: None };
        let shown = self.documents_job(caller, &state, work).await.map_err(Error::from)?;
        let vector = row(&shown).map_err(|why| unusable(shown.job().id, &why))?;
        let vector = Arc::new(vector);
        self.shared.questions.keep(question, vector.clone());
        Ok(vector)
    }

    /// How well each chunk answers a question, in their order; more is better. A job of the caller finds it out.
    pub(crate) async fn rank(&self, caller: &Caller, ask: RankAsk<'_>) -> Result<Vec<f64>, Error> {
        let RankAsk { model, query, chunks, priority } = ask;
        let Chunks { base, keys } = check_chunks(chunks)?;
        check_question(query)?;
        let state = self.shared.current().await?;
        find_model(&state, caller, model, Purpose::Reranker)?;
        let count = keys.len();
        let input = json!({"model": model, "purpose": "rank", "base": base, "chunks": keys, "query": query});
        let work = Work { input, is_search: true, priority, wait: ASK_WAIT, rounds: 0, request_id: None };
        let shown = self.documents_job(caller, &state, work).await.map_err(Error::from)?;
        scores(&shown, count).map_err(|why| unusable(shown.job().id, &why))
    }

    /// Does work by a job, and returns the job once it is completed.
    async fn documents_job(&self, caller: &Caller, state: &State, work: Work<'_>) -> Result<Shown, Unanswered> {
        let own = probes::documents()?;
        let caller = caller.clone().with_request_id(None);
        match own.standing(state, &caller.namespace) {
            Standing::Ready => {}
            Standing::Missing => {
                let cluster = on_behalf::cluster_in(caller.namespace.clone());
                self.register_made(&cluster, own.package.clone()).await?;
            }
            Standing::Foreign => {
                self.shared.needs.is_foreign(&caller.namespace, own);
                return Err(Error::VersionTaken(own.foreign()).into());
            }
        }
        for number in 0..=KEYS_MAX {
            if let Some(ended) = self.documents_job_of(&caller, own, &work, number).await? {
                return Ok(ended);
            }
        }
        Err(Error::Internal.into())
    }

    /// Does work by the job of the `number`th key. None if that is a job of an earlier request, and cannot be used.
    async fn documents_job_of(
        &self,
        caller: &Caller,
        own: &'static OwnAgent,
        work: &Work<'_>,
        number: usize,
    ) -> Result<Option<Shown>, Unanswered> {
        let Work { input, is_search, priority, wait, rounds, request_id } = work;
        let key = request_id.filter(|_| number < KEYS_MAX).map(|key| match number {
            0 => RequestId::new(key),
            _ => RequestId::new(&format!("{key}.{number}")),
        });
        let has_key = key.is_some();
        let submission =
            Submission { request_id: key.transpose().map_err(Error::from)?, ..own.submission(input, *priority) };
        let submission = if *is_search { relations::for_search(submission) } else { submission };
        let submitted = match self.submit_to_wait(caller, submission).await {
            Err(Error::RequestConflict) if has_key => return Ok(None),
            submitted => submitted?,
        };
        let (id, is_earlier) = (submitted.id, submitted.is_earlier());
        let mut shown = match self.wait_for(caller, submitted, View::Full, *wait).await {
            // It ended so long ago that it was deleted.
            Err(Error::UnknownJob) if is_earlier => return Ok(None),
            shown => shown?,
        };
        for _ in 0..*rounds {
            if shown.job().status.is_terminal() || shown.job().lease.is_none() {
                break;
            }
            // What it has paid for would be lost.
            shown = self.wait(caller, id, View::Full, *wait).await?;
        }
        let job = shown.job();
        match job.status {
            // Its vectors were kept, and erased in the job since.
            JobStatus::Completed if is_earlier && job.labels.contains_key(ERASED_LABEL) => Ok(None),
            JobStatus::Completed if own.runs(job) => Ok(Some(shown)),
            _ if is_earlier && (job.status.is_terminal() || !own.runs(job)) => Ok(None),
            JobStatus::Failed => Err(failed(&shown)),
            status if status.is_terminal() => Err(Unanswered::Error(failed(&shown).into())),
            _ => {
                if let Err(error) = self.shared.jobs.cancel_for(caller, id, true).await {
                    tracing::debug!(error = &error as &dyn std::error::Error, job = %id, "could not cancel a job for documents");
                }
                let why = shown.waiting_for().map(|why| format!(": {why}")).unwrap_or_default();
                let why = format!("no worker has answered within {} s{why} ({id})", wait.as_secs());
                Err(Error::ModelFailed { entry: catalogue::MODEL_CALL, why }.into())
            }
        }
    }
}

/// Refuses chunks that no job can be about.
fn check_chunks(chunks: Chunks) -> Result<Chunks, Error> {
    match chunks.keys.len() {
        1..=TEXTS_MAX => Ok(chunks),
        count => Err(Error::Malformed(format!("{count} chunks: a request has 1 to {TEXTS_MAX}"))),
    }
}

/// Refuses a question that no model would answer.
fn check_question(text: &str) -> Result<(), Error> {
    if text.trim().is_empty() {
        return Err(Error::Malformed("the question is empty".to_owned()));
    }
    if text.len() > QUESTION_BYTES_MAX {
        return Err(Error::TooLarge { what: "the question for a model", limit: QUESTION_BYTES_MAX as u64 });
    }
    Ok(())
}

/// A model of the caller's namespace that is for some work.
pub(crate) fn find_model<'s>(
    state: &'s State,
    caller: &Caller,
    name: &str,
    purpose: Purpose,
) -> Result<&'s Arc<Object>, Error> {
    let short: String = name.chars().take(128).collect();
    let unknown = || Error::UnknownObject(format!("no such model: \"{short}\""));
    let object_name = ObjectName::new(name).map_err(|_| unknown())?;
    let key = ObjectKey { namespace: caller.namespace.clone(), kind: ObjectKind::new("model")?, name: object_name };
    let object = state.object(&key).ok_or_else(unknown)?;
    let spec = ModelSpec::read(&object.spec)
        .map_err(|error| Error::Malformed(format!("the model \"{short}\" cannot be read: {error}")))?;
    if spec.purpose == purpose {
        return Ok(object);
    }
    let (is, wanted) = (word(spec.purpose), word(purpose));
    Err(Error::Malformed(format!("the model \"{short}\" has the type {is}, and {wanted} is needed")))
}

fn word(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Chat => "chat",
        Purpose::Embedding => "embedding",
        Purpose::Reranker => "reranker",
    }
}

fn output<T: DeserializeOwned>(shown: &Shown) -> Result<T, String> {
    serde_json::from_value(shown.output().unwrap_or_default()).map_err(|error| error.to_string())
}

/// The rows of vectors, as a job has them.
fn rows(dimension: usize, vectors: &str, count: usize) -> Result<Vectors, String> {
    let bytes = STANDARD.decode(vectors).map_err(|error| error.to_string())?;
    let vectors = Vectors::from_bytes(dimension, &bytes).map_err(|error| error.to_string())?;
    if vectors.len() == count { Ok(vectors) } else { Err(format!("{} vectors for {count} texts", vectors.len())) }
}

fn row(shown: &Shown) -> Result<QuestionVector, String> {
    let Row { model, question } = output(shown)?;
    Vectors::from_rows(question.len(), [&question]).map_err(|error| error.to_string())?;
    Ok(QuestionVector { model, numbers: question })
}

fn scores(shown: &Shown, count: usize) -> Result<Vec<f64>, String> {
    let Scores { scores } = output(shown)?;
    if scores.len() != count {
        return Err(format!("{} scores for {count} texts", scores.len()));
    }
    match scores.iter().position(|score| !score.is_finite()) {
        Some(number) => Err(format!("the score of text {number} is not finite")),
        None => Ok(scores),
    }
}

/// A job whose output is none.
fn unusable(job: JobId, why: &str) -> Error {
    let why = format!("the answer of a job for documents cannot be used: {why} ({job})");
    Error::ModelFailed { entry: catalogue::MODEL_CALL, why }
}

/// A job that has failed, or that somebody cancelled.
fn failed(shown: &Shown) -> Unanswered {
    let job = shown.job();
    let code = shown.error_code().unwrap_or_default();
    let entry = catalogue::ENTRIES.iter().find(|entry| entry.code == code).copied();
    let why = job.failure.as_ref().map(|failure| failure.error.to_string());
    let why = why.unwrap_or_else(|| format!("the job that calls the model is {}", job.status.as_str()));
    let entry = entry.unwrap_or(catalogue::MODEL_CALL);
    let error = Error::ModelFailed { entry, why: format!("{why} ({})", job.id) };
    match OF_NO_TEXT.iter().any(|other| other.code == entry.code) {
        true => Unanswered::Error(error),
        false => Unanswered::Failed(error),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(checked: Result<(), Error>, expected: &Expect) {
        expected.assert_eq(&checked.map_or_else(|error| error.to_string(), |()| "good".to_owned()));
    }

    #[test]
    fn requests_are_bounded() {
        let chunks = |count| check_chunks(Chunks { base: "b".to_owned(), keys: vec!["a".to_owned(); count] }).map(drop);
        check(chunks(0), &expect!["0 chunks: a request has 1 to 512"]);
        check(chunks(TEXTS_MAX), &expect!["good"]);
        check(chunks(TEXTS_MAX + 1), &expect!["513 chunks: a request has 1 to 512"]);
        check(check_question(" \n"), &expect!["the question is empty"]);
        let long = "a".repeat(QUESTION_BYTES_MAX);
        check(check_question(&long), &expect!["good"]);
        check(check_question(&(long + "a")), &expect!["the question for a model is larger than 65536 bytes"]);
    }

    #[test]
    fn vectors_are_read_or_refused() {
        let told = |dimension, vectors: &str, count| match rows(dimension, vectors, count) {
            Ok(vectors) => format!("{} rows", vectors.len()),
            Err(why) => why,
        };
        let written = STANDARD.encode(Vectors::from_rows(2, [[1.0, 0.0], [0.0, 1.0]]).expect("rows").to_bytes());
        expect!["2 rows"].assert_eq(&told(2, &written, 2));
        expect!["2 vectors for 3 texts"].assert_eq(&told(2, &written, 3));
        expect!["12 bytes are no whole number of vectors of 7 bytes"].assert_eq(&told(3, &written, 2));
        expect!["vectors of 0 numbers: a vector has 1 to 8192"].assert_eq(&told(0, "", 0));
        assert!(told(2, "?", 2).starts_with("Invalid symbol"));
    }
}
