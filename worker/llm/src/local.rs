//! Models that the caller's machine runs itself. Nothing is sent, and what starts them is not known here.

use std::sync::Arc;

use atlas_model::{Answer, CallError, CallErrorKind, Request, Usage, estimate};
use futures::future::BoxFuture;

use crate::{EncodeError, embedding, failure};

/// Runs models on this machine.
pub trait LocalModels: Send + Sync {
    /// A vector for each text, in their order. Texts and vectors are those of one call.
    fn embed(&self, model: &str, texts: Vec<String>, dimensions: u32) -> BoxFuture<'_, Result<Embeddings, CallError>>;

    /// Whether a model can be called: it is made ready if it is not yet.
    fn probe(&self, model: &str) -> BoxFuture<'_, Result<(), CallError>>;
}

/// What a model made of texts.
#[derive(Debug, Clone, PartialEq)]
pub struct Embeddings {
    pub vectors: Vec<Vec<f32>>,
    /// The tokens of all texts; 0 if the model does not say.
    pub tokens: u64,
}

/// One of them.
#[derive(Clone)]
pub struct Local {
    pub models: Arc<dyn LocalModels>,
    /// The length of its vectors.
    pub dimensions: u32,
}

impl Local {
    /// Makes the vectors that a request asks for. Without a count of the model, the tokens are an estimate.
    pub(crate) async fn call(&self, request: &Request) -> Result<Answer, CallError> {
        let refused = |error: EncodeError| CallError::new(CallErrorKind::Request, error.to_string());
        let texts = embedding::texts(request).map_err(refused)?;
        let estimated: u64 = texts.iter().map(|text| estimate::text(text)).sum();
        let (asked, texts) = (texts.len(), texts.into_iter().map(str::to_owned).collect());
        let Embeddings { vectors, tokens } = self.models.embed(&request.model, texts, self.dimensions).await?;
        let is_length = |vector: &Vec<f32>| u32::try_from(vector.len()).is_ok_and(|length| length == self.dimensions);
        if let Some(vector) = vectors.iter().find(|vector| !is_length(vector)) {
            let (got, dimensions) = (vector.len(), self.dimensions);
            return Err(failure::answer(format!("a vector has {got} dimensions instead of {dimensions}")));
        }
        let usage = Usage { input: if tokens > 0 { tokens } else { estimated }, ..Usage::default() };
        let answer = Answer::of_vectors(&request.model, &vectors, asked, usage);
        answer.map_err(|error| failure::answer(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use atlas_env::Env;
    use atlas_model::ModelTask;
    use expect_test::{Expect, expect};
    use futures::FutureExt as _;

    use super::*;
    use crate::client::{Backend, Client, Health};
    use crate::connect::{Surroundings, target};

    /// Answers with so many vectors of this length, or fails.
    struct Fake(Result<(usize, usize, u64), CallError>);

    impl LocalModels for Fake {
        fn embed(
            &self,
            _model: &str,
            _texts: Vec<String>,
            _dimensions: u32,
        ) -> BoxFuture<'_, Result<Embeddings, CallError>> {
            let made =
                |(count, length, tokens): &_| Embeddings { vectors: vec![vec![1.0; *length]; *count], tokens: *tokens };
            let end = self.0.as_ref().map(made).map_err(Clone::clone);
            std::future::ready(end).boxed()
        }

        fn probe(&self, _model: &str) -> BoxFuture<'_, Result<(), CallError>> {
            std::future::ready(self.0.as_ref().map(|_| ()).map_err(Clone::clone)).boxed()
        }
    }

    fn local(fake: Fake) -> crate::client::Target {
        let spec =
            r#"{"provider": "local", "name": "wordllama", "type": "embedding", "parameters": {"dimensions": "64"}}"#;
        let spec = atlas_model::ModelSpec::read(spec.as_bytes()).expect("a spec");
        let local: Option<Arc<dyn LocalModels>> = Some(Arc::new(fake));
        let none =
            Surroundings { secret: &|_| None, variable: &|_| None, login: None, bearer: None, script: None, local };
        target("near", &spec, &none).expect("a target")
    }

    async fn check(fake: Fake, request: Request, expected: &Expect) {
        let target = local(fake);
        assert!(matches!(target.backend, Backend::Local(_)));
        let (client, limit) = (Client::new(Env::system()), std::time::Duration::from_secs(600));
        let called = client.call(&[target], &request, limit, &mut |_| {}).await;
        let told = |answer: &Answer| {
            format!("{} vectors, {} tokens", answer.vectors(2).map_or(0, |v| v.len()), answer.usage.input)
        };
        expected.assert_eq(&called.map_or_else(|failure| failure.to_string(), |done| told(&done.answer)));
    }

    fn two() -> Request {
        Request::embed(ModelTask::EmbedDocuments, ["five!".to_owned(), "two".to_owned()])
    }

    #[tokio::test]
    async fn vectors_are_those_that_were_asked_for() {
        check(Fake(Ok((2, 64, 7))), two(), &expect!["2 vectors, 7 tokens"]).await;
        check(Fake(Ok((2, 64, 0))), two(), &expect!["2 vectors, 3 tokens"]).await;
        check(Fake(Ok((2, 65, 7))), two(), &expect!["a vector has 65 dimensions instead of 64"]).await;
        check(Fake(Ok((1, 64, 7))), two(), &expect!["the answer has 1 vectors for 2 texts"]).await;
        let chat = expect!["the model near is for embeddings (type: embedding) and not for conversations (type: chat)"];
        check(Fake(Ok((2, 64, 7))), Request::default(), &chat).await;
        let missing = CallError::new(CallErrorKind::UnknownModel, "not installed");
        check(Fake(Err(missing)), two(), &expect!["not installed"]).await;
    }

    #[tokio::test]
    async fn a_probe_makes_the_model_ready() {
        let client = Client::new(Env::system());
        assert!(matches!(client.probe(&local(Fake(Ok((0, 0, 0))))).await, Health::Reachable { .. }));
        let missing = CallError::new(CallErrorKind::UnknownModel, "not installed");
        assert_eq!(client.probe(&local(Fake(Err(missing.clone())))).await, Health::Failed(missing));
    }
}
