//! Targets with a limit that others share: each try waits, and no time limit of the call counts the wait.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use atlas_env::Clock;
use atlas_llm::client::{Client, Gate, Pass, Target};
use atlas_model::{CallError, Message, Request};
use expect_test::expect;
use futures::future::{BoxFuture, FutureExt as _};
use serde_json::json;

use crate::chat::{HOST, strict, target, whole};
use crate::machine::run;
use crate::server::{Reply, Server};

/// How long each try waits: longer than the whole call may take.
const WAIT: Duration = Duration::from_secs(100);
const LIMIT: Duration = Duration::from_secs(70);

type Log = Arc<Mutex<Vec<String>>>;

struct SlowGate {
    clock: Arc<dyn Clock>,
    log: Log,
}

struct Held(Log);

impl Gate for SlowGate {
    fn enter(&self, tokens: u64) -> BoxFuture<'_, Result<Box<dyn Pass>, CallError>> {
        async move {
            self.log.lock().expect("not poisoned").push(format!("asks for {tokens}"));
            self.clock.sleep(WAIT).await;
            Ok(Box::new(Held(Arc::clone(&self.log))) as Box<dyn Pass>)
        }
        .boxed()
    }
}

impl Pass for Held {
    fn end(self: Box<Self>, tokens: u64) {
        self.0.lock().expect("not poisoned").push(format!("used {tokens}"));
    }
}

#[test]
fn each_try_waits_in_no_time_of_the_call() {
    let log = run(|env, network| async move {
        let busy = Reply::json(500, &json!({"error": {"message": "busy"}}));
        let server = Server::start(&env, &network, HOST, strict, vec![busy, Reply::json(200, &whole("Hello"))]);
        let log = Log::default();
        let gate = SlowGate { clock: Arc::clone(&env.clock), log: Arc::clone(&log) };
        let limited = Target { gate: Some(Arc::new(gate)), output_tokens_max: Some(100), ..target() };
        let request = Request { messages: vec![Message::user("Hi")].into(), ..Request::default() };
        let begin = env.clock.monotonic();
        let done = Client::new(env.clone()).call(&[limited], &request, LIMIT, &mut |_| {}).await.expect("an answer");
        let mut log = log.lock().expect("not poisoned").clone();
        let took = env.clock.monotonic().saturating_sub(begin);
        log.push(format!("{took:?}, {} tries, {} requests", done.tries, server.seen().len()));
        log
    });
    expect![[r#"
        asks for 111
        used 0
        asks for 111
        used 23
        200.5s, 2 tries, 2 requests"#]]
    .assert_eq(&log.join("\n"));
}
