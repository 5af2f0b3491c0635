//! Programs in Python whose jobs have a model: the worker calls it, and records each call.

use atlas_llm_server::{Reply, Server};
use atlas_types::{Assignment, StepsResult};

use super::scene::Scene;
use super::stored::{CANARY, spec, with};
use crate::support::{End, without_python};

const CONTRACT: &str = "agent: {name: thinker, version: 1.0.0, model: {preference: fast}}\n";

/// Asks in the ways that there are: as an agent with one call, twice at the same time, and from another thread.
const AGENT: &str = r#"
import asyncio
from atlas.llm import LLMError, LLMProvider, LLMResponse
from atlas.runtime.llm_agent import LLMAgent


class Thinker(LLMAgent):
    def build_prompt(self, input_data):
        return "Say " + input_data["say"]

    def parse_response(self, response: LLMResponse, input_data):
        return {"said": response.text, "model": response.model}

    async def execute(self, input_data):
        ways = input_data.get("ways")
        if not ways:
            return await super().execute(input_data)
        assert isinstance(self.context.llm, LLMProvider)
        if ways == "wrong":
            try:
                await self.context.llm.complete("x", top_p=1)
            except TypeError as error:
                return {"error": str(error)}
        ask = lambda text: self.context.llm.complete(text, system="Be brief.", max_tokens=7, temperature=0.5)
        both = await asyncio.gather(ask("a"), ask("b"))
        other = await asyncio.to_thread(lambda: asyncio.run(ask("c")))
        return {"said": [answer.text for answer in (*both, other)]}
"#;

pub(super) const FILES: [(&str, &str); 2] = [("agent.yaml", CONTRACT), ("agent.py", AGENT)];

#[tokio::test]
async fn a_program_asks_the_model_of_its_job() {
    if without_python() {
        return;
    }
    let server = Server::start(|_, _| Reply::text(&format!("hello {CANARY}"))).expect("a server");
    let mut scene = Scene::set(&FILES, &[]).await;
    let only = with(scene.attempt(1, r#"{"say": "hello"}"#), &[("small", spec(&server, "tiny"))]);
    let end = scene.run(&only).await;
    assert_eq!(end.output(&scene.controller), r#"{"said":"hello [redacted:key]","model":"tiny"}"#);
    assert_eq!(server.keys(), [CANARY]);
    assert_eq!(server.requests()[0]["messages"][0]["content"], "Say hello");
    let steps = scene.steps();
    assert!(steps[0].starts_with("start 0+0") && steps[1].starts_with("model 10+5"), "{steps:?}");
    assert_eq!(scene.journal.steps[1].usage.cost_nanodollars, 10 * 1_000 + 5 * 2_000);
    let metadata = Scene::metadata(&end);
    assert_eq!(
        (&metadata["_trace_input_tokens"], &metadata["_models"]["small"]["reachable"]),
        (&10.into(), &true.into())
    );
    assert!(!format!("{steps:?} {end:?}").contains("canary"));
    scene.node.shutdown().await;
}

#[tokio::test]
async fn calls_run_side_by_side_and_a_later_attempt_repeats_none() {
    if without_python() {
        return;
    }
    let server =
        Server::start(|request, _| Reply::text(&request["messages"][0]["content"].to_string())).expect("a server");
    let mut scene = Scene::set(&FILES, &[]).await;
    let models = [("small", spec(&server, "tiny"))];
    let lost = with(scene.attempt(1, r#"{"ways": "all"}"#), &models);
    scene.session.grant(&lost).await;
    assert!(scene.record_until(3).await.is_none());
    scene.stop(&lost).await;
    let next = with(scene.attempt(2, r#"{"ways": "all"}"#), &models);
    assert_eq!(scene.run(&next).await.output(&scene.controller), r#"{"said":["\"a\"","\"b\"","\"c\""]}"#);
    // Both calls of the first attempt were made; the later attempt knows those that were recorded.
    let made: Vec<_> = server.requests().iter().map(|request| request["messages"][0]["content"].clone()).collect();
    assert_eq!(made.iter().filter(|content| **content == "c").count(), 1, "{made:?}");
    assert!(made.len() <= 4, "{made:?}");
    let first = &server.requests()[0];
    assert_eq!(
        (&first["system"], &first["max_tokens"], &first["temperature"]),
        (&"Be brief.".into(), &7.into(), &0.5.into())
    );
    let wrong = with(scene.attempt(1, r#"{"ways": "wrong"}"#), &models);
    scene.journal = Default::default();
    let journal = scene.attempt(1, "{}").journal;
    let end = scene.run(&Assignment { journal, ..wrong }).await;
    assert!(end.output(&scene.controller).contains("unexpected keyword argument 'top_p'"));
    scene.node.shutdown().await;
}

#[tokio::test]
async fn a_program_keeps_to_the_budget_of_its_job() {
    if without_python() {
        return;
    }
    let server = Server::start(|_, _| Reply::text("hello")).expect("a server");
    let mut scene = Scene::set(&FILES, &[]).await;
    scene.budget = [StepsResult::OverBudget { budget: 50_000_000, spent: 48_000_000 }].into();
    let assignment = with(scene.attempt(1, r#"{"say": "hello"}"#), &[("small", spec(&server, "tiny"))]);
    let end = scene.run(&Assignment { budget_nanodollars: Some(50_000_000), ..assignment }).await;
    let End::Failed { failure, .. } = &end else { panic!("{end:?}") };
    assert!(failure.error.starts_with("E3203: "), "{}", failure.error);
    assert_eq!((scene.reserved.len(), server.requests().len()), (1, 0));
    scene.node.shutdown().await;
}

#[tokio::test]
async fn without_a_model_a_program_answers_from_its_mock_or_says_what_is_missing() {
    if without_python() {
        return;
    }
    let mock = "- match: '*'\n  text: prepared\n";
    let files = [FILES[0], FILES[1], ("mock.yaml", mock)];
    let mut scene = Scene::set(&files, &[]).await;
    let only = scene.attempt(1, r#"{"say": "hello"}"#);
    assert_eq!(scene.run(&only).await.output(&scene.controller), r#"{"said":"prepared","model":"mock"}"#);
    scene.node.shutdown().await;

    let agent = AGENT.replace(
        "class Thinker(LLMAgent):",
        "class Thinker(LLMAgent):\n    def _create_provider(self):\n        import no_such_package\n",
    );
    let mut scene = Scene::set(&[FILES[0], ("agent.py", &agent)], &[]).await;
    let only = scene.attempt(1, r#"{"say": "hello"}"#);
    let end = scene.run(&only).await;
    let error = end.error();
    let expected = "Pool error: No module named 'no_such_package'; list the package in dependencies.packages, or give the job a model: there is no \
                    model for the tier \"fast\"";
    assert!(error.starts_with(expected), "{error}");
    scene.node.shutdown().await;
}
