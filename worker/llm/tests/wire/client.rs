//! Tries, retries, fallbacks and limits of time.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use atlas_http::Proxy;
use atlas_llm::client::{Backend, Client, Failure, Progress, Target};
use atlas_llm::scripted::Script;
use atlas_model::{Message, Request};
use expect_test::{Expect, expect};
use serde_json::json;

use crate::chat::{HOST, KEY, finish, strict, target, text, whole};
use crate::machine::{run, wait};
use crate::server::{Reply, Server};

pub(crate) const LIMIT: Duration = Duration::from_secs(3600);

pub(crate) fn asking(stream: bool) -> Request {
    Request { messages: vec![Message::user("Hi")].into(), stream, ..Request::default() }
}

fn busy(status: u16) -> Reply {
    Reply::json(status, &json!({"error": {"message": "busy"}}))
}

/// Makes a call and compares what happens with the virtual time at which it does.
fn check(replies: Vec<Reply>, targets: &[Target], stream: bool, limit: Duration, expected: &Expect) {
    let log = run(|env, network| async move {
        let server = Server::start(&env, &network, HOST, strict, replies);
        network.silence("localhost:2");
        let begin = env.clock.monotonic();
        let clock = Arc::clone(&env.clock);
        let mut log = Vec::new();
        let mut watch = |progress: Progress<'_>| {
            if !matches!(progress, Progress::Waited(_)) {
                log.push(format!("{:?} {}", clock.monotonic().saturating_sub(begin), line(&progress)));
            }
        };
        let called = Client::new(env.clone()).call(targets, &asking(stream), limit, &mut watch).await;
        let end = env.clock.monotonic().saturating_sub(begin);
        log.push(match called {
            Ok(done) => {
                format!("{end:?} {:?} of target {} after {} tries", done.answer.text(), done.target, done.tries)
            }
            Err(Failure { error, earlier, lasting }) => {
                let lasting = if lasting.is_empty() { String::new() } else { format!(", lasting: {lasting:?}") };
                format!("{end:?} failed: {} {error} (earlier: {}{lasting})", error.kind.name(), earlier.len())
            }
        });
        log.push(format!("requests: {}, replies left: {}", server.seen().len(), server.left()));
        log
    });
    assert!(!log.join("\n").contains(KEY), "{log:?}");
    expected.assert_eq(&log.join("\n"));
}

fn line(progress: &Progress<'_>) -> String {
    match progress {
        Progress::Try { target, number } => format!("try {number} of {}", target.name),
        Progress::Dropped { setting, .. } => format!("dropped {setting}"),
        Progress::Delta(delta) => format!("{delta:?}"),
        Progress::Reset => "reset".to_owned(),
        Progress::Waited(time) => format!("waited {time:?}"),
        Progress::Failed { error, pause, .. } => format!("{} {error}, pause {pause:?}", error.kind.name()),
    }
}

pub(crate) fn at(authority: &str) -> Target {
    let mut target = target();
    let Backend::Http(http) = &mut target.backend else { panic!("HTTP") };
    http.endpoint.base_url = format!("http://{authority}/v1");
    Target { name: authority.to_owned(), ..target }
}

fn scripted(yaml: &str) -> Target {
    let script = Script::parse(yaml.as_bytes()).expect("a script");
    Target { name: "mock".to_owned(), backend: Backend::Scripted(Arc::new(script)), ..target() }
}

#[test]
fn whole_answers_and_streams() {
    check(
        vec![Reply::json(200, &whole("Hello"))],
        &[target()],
        false,
        LIMIT,
        &expect![[r#"
        0ns try 1 of small
        0ns "Hello" of target 0 after 1 tries
        requests: 1, replies left: 0"#]],
    );
    let slow = Reply::events(&[text("Hel")]).wait(Duration::from_secs(15)).then(format!("data: {}\n\n", text("lo")));
    let slow = slow.wait(Duration::from_secs(15)).then(format!("data: {}\n\ndata: [DONE]\n\n", finish()));
    check(
        vec![slow],
        &[target()],
        true,
        LIMIT,
        &expect![[r#"
        0ns try 1 of small
        0ns Text("Hel")
        15s Text("lo")
        30s "Hello" of target 0 after 1 tries
        requests: 1, replies left: 0"#]],
    );
}

#[test]
fn failures_that_may_pass_are_tried_again() {
    let replies = vec![busy(503), busy(429).header("retry-after", "7"), Reply::json(200, &whole("Hello"))];
    check(
        replies,
        &[target()],
        false,
        LIMIT,
        &expect![[r#"
        0ns try 1 of small
        0ns provider busy, pause Some(500ms)
        500ms try 2 of small
        500ms rate_limited busy, pause Some(7s)
        7.5s try 3 of small
        7.5s "Hello" of target 0 after 3 tries
        requests: 3, replies left: 0"#]],
    );
    check(
        vec![busy(500), busy(529), busy(408)],
        &[target()],
        false,
        LIMIT,
        &expect![[r#"
        0ns try 1 of small
        0ns provider busy, pause Some(500ms)
        500ms try 2 of small
        500ms provider busy, pause Some(1s)
        1.5s try 3 of small
        1.5s timeout busy, pause None
        1.5s failed: timeout busy (earlier: 0)
        requests: 3, replies left: 0"#]],
    );
    let date = busy(429).header("retry-after", "Mon, 23 Nov 2026 18:00:30 GMT");
    check(
        vec![date, Reply::json(200, &whole("Hello"))],
        &[target()],
        false,
        LIMIT,
        &expect![[r#"
        0ns try 1 of small
        0ns rate_limited busy, pause Some(30s)
        30s try 2 of small
        30s "Hello" of target 0 after 2 tries
        requests: 2, replies left: 0"#]],
    );
}

#[test]
fn other_failures_are_not() {
    let refused =
        json!({"error": {"message": format!("Incorrect API key provided: {KEY}"), "code": "invalid_api_key"}});
    check(
        vec![Reply::json(401, &refused)],
        &[target()],
        false,
        LIMIT,
        &expect![[r#"
        0ns try 1 of small
        0ns credentials Incorrect API key provided: [redacted], pause None
        0ns failed: credentials Incorrect API key provided: [redacted] (earlier: 0)
        requests: 1, replies left: 0"#]],
    );
    check(
        vec![busy(409).header("x-should-retry", "false")],
        &[target()],
        false,
        LIMIT,
        &expect![[r#"
            0ns try 1 of small
            0ns provider busy, pause None
            0ns failed: provider busy (earlier: 0, lasting: {0})
            requests: 1, replies left: 0"#]],
    );
    check(
        vec![busy(429).header("x-should-retry", "false")],
        &[target()],
        false,
        LIMIT,
        &expect![[r#"
            0ns try 1 of small
            0ns rate_limited busy, pause None
            0ns failed: rate_limited busy (earlier: 0, lasting: {0})
            requests: 1, replies left: 0"#]],
    );
    check(
        vec![Reply::new(404, "text/plain", "no such page")],
        &[target()],
        false,
        LIMIT,
        &expect![[r#"
        0ns try 1 of small
        0ns answer no such page: the API is not at localhost:1/…/chat/completions; the base_url of this model is what comes before "/chat/completions"; at most servers it ends with "/v1", pause None
        0ns failed: answer no such page: the API is not at localhost:1/…/chat/completions; the base_url of this model is what comes before "/chat/completions"; at most servers it ends with "/v1" (earlier: 0, lasting: {0})
        requests: 1, replies left: 0"#]],
    );
    check(
        vec![Reply::new(200, "text/html", "<html>")],
        &[target()],
        true,
        LIMIT,
        &expect![[r#"
        0ns try 1 of small
        0ns answer the answer is text/html and not a stream: <html>: the API is not at localhost:1/…/chat/completions; the base_url of this model is what comes before "/chat/completions"; at most servers it ends with "/v1", pause None
        0ns failed: answer the answer is text/html and not a stream: <html>: the API is not at localhost:1/…/chat/completions; the base_url of this model is what comes before "/chat/completions"; at most servers it ends with "/v1" (earlier: 0, lasting: {0})
        requests: 1, replies left: 0"#]],
    );
    let elsewhere = Reply::new(307, "text/plain", "").header("location", "http://localhost:9/steal");
    check(
        vec![elsewhere],
        &[target()],
        false,
        LIMIT,
        &expect![[r#"
        0ns try 1 of small
        0ns answer the provider answered 307 Temporary Redirect without a text, pause None
        0ns failed: answer the provider answered 307 Temporary Redirect without a text (earlier: 0)
        requests: 1, replies left: 0"#]],
    );
}

#[test]
fn fallbacks_follow_in_their_order() {
    let fallbacks = [target(), at("localhost:9"), scripted("[{match: '*', text: Hello}]")];
    let one = |target: &Target| Target { attempts: 1, ..target.clone() };
    check(
        vec![busy(401)],
        &fallbacks.each_ref().map(one),
        true,
        LIMIT,
        &expect![[r#"
        0ns try 1 of small
        0ns credentials busy, pause None
        0ns try 1 of localhost:9
        0ns connection localhost:9: client error (Connect): connection refused, pause None
        0ns try 1 of mock
        0ns Text("Hello")
        0ns "Hello" of target 2 after 3 tries
        requests: 1, replies left: 0"#]],
    );
    check(
        vec![busy(400)],
        &fallbacks,
        false,
        LIMIT,
        &expect![[r#"
        0ns try 1 of small
        0ns request busy, pause None
        0ns failed: request busy (earlier: 0)
        requests: 1, replies left: 0"#]],
    );
    check(
        Vec::new(),
        &[],
        false,
        LIMIT,
        &expect![[r#"
        0ns failed: request there is no model to call (earlier: 0)
        requests: 0, replies left: 0"#]],
    );
}

#[test]
fn a_pause_beyond_the_deadline_is_not_waited_for() {
    let targets = [target(), scripted("[{match: '*', text: Hello}]")];
    check(
        vec![busy(429).header("retry-after", "601")],
        &targets,
        false,
        LIMIT,
        &expect![[r#"
        0ns try 1 of small
        0ns rate_limited busy, pause None
        0ns try 1 of mock
        0ns "Hello" of target 1 after 2 tries
        requests: 1, replies left: 0"#]],
    );
}

#[test]
fn streams_that_break_start_over() {
    let replies = vec![Reply::events(&[text("Hel")]).cut(), Reply::events(&[text("Hello"), finish()])];
    check(
        replies,
        &[target()],
        true,
        LIMIT,
        &expect![[r#"
            0ns try 1 of small
            0ns Text("Hel")
            1ms connection the connection ended before the answer was complete, pause Some(500ms)
            501ms reset
            501ms try 2 of small
            501ms Text("Hello")
            501ms "Hello" of target 0 after 2 tries
            requests: 2, replies left: 0"#]],
    );
    let silent = Reply::events(&[text("Hel")]).wait(Duration::from_secs(21));
    check(
        vec![silent, Reply::events(&[text("Hello"), finish()])],
        &[target()],
        true,
        LIMIT,
        &expect![[r#"
        0ns try 1 of small
        0ns Text("Hel")
        20s timeout nothing of the answer arrived for 20 s, pause Some(500ms)
        20.5s reset
        20.5s try 2 of small
        20.5s Text("Hello")
        20.5s "Hello" of target 0 after 2 tries
        requests: 2, replies left: 0"#]],
    );
}

#[test]
fn time_is_limited() {
    let slow = || Reply::json(200, &whole("Hello")).delay(Duration::from_secs(61));
    check(
        vec![slow(), slow(), slow()],
        &[target()],
        false,
        LIMIT,
        &expect![[r#"
        0ns try 1 of small
        60s timeout no answer within 60 s, pause Some(500ms)
        60.5s try 2 of small
        120.5s timeout no answer within 60 s, pause Some(1s)
        121.5s try 3 of small
        181.5s timeout no answer within 60 s, pause None
        181.5s failed: timeout no answer within 60 s (earlier: 0)
        requests: 3, replies left: 0"#]],
    );
    check(
        vec![slow()],
        &[target()],
        false,
        Duration::from_secs(5),
        &expect![[r#"
        0ns try 1 of small
        5s timeout no answer within 5 s, pause None
        5s failed: timeout no answer within 5 s (earlier: 0)
        requests: 1, replies left: 0"#]],
    );
    check(
        Vec::new(),
        &[Target { attempts: 2, ..at("localhost:2") }],
        false,
        LIMIT,
        &expect![[r#"
        0ns try 1 of localhost:2
        10s connection localhost:2: client error (Connect): no connection within 10 s, pause Some(500ms)
        10.5s try 2 of localhost:2
        20.5s connection localhost:2: client error (Connect): no connection within 10 s, pause None
        20.5s failed: connection localhost:2: client error (Connect): no connection within 10 s (earlier: 0)
        requests: 0, replies left: 0"#]],
    );
    check(
        Vec::new(),
        &[target()],
        false,
        Duration::ZERO,
        &expect![[r#"
        0ns failed: timeout there was no time left for the call (earlier: 0)
        requests: 0, replies left: 0"#]],
    );
}

#[test]
fn requests_that_are_too_long_go_to_the_next_model() {
    let holding = |limit| Target { context_window: Some(limit), ..target() };
    let targets = [holding(8), Target { name: "large".to_owned(), ..holding(9) }];
    check(
        vec![Reply::json(200, &whole("Hello"))],
        &targets,
        false,
        LIMIT,
        &expect![[r#"
        0ns try 1 of large
        0ns "Hello" of target 1 after 1 tries
        requests: 1, replies left: 0"#]],
    );
    check(
        Vec::new(),
        &targets[..1],
        false,
        LIMIT,
        &expect![[r#"
        0ns failed: too_long the request has about 8 tokens, and the model small can hold 8 (earlier: 0)
        requests: 0, replies left: 0"#]],
    );
}

#[test]
fn addresses_are_checked_before_anything_is_sent() {
    check(
        Vec::new(),
        &[at("models.example.org")],
        false,
        LIMIT,
        &expect![[r#"
        0ns try 1 of models.example.org
        0ns request the address of the model is plain HTTP to "models.example.org": requests and keys would be readable on the way; use https, pause None
        0ns failed: request the address of the model is plain HTTP to "models.example.org": requests and keys would be readable on the way; use https (earlier: 0)
        requests: 0, replies left: 0"#]],
    );
    check(
        Vec::new(),
        &[at("user@localhost")],
        false,
        LIMIT,
        &expect![[r#"
        0ns try 1 of user@localhost
        0ns request the address of the model is not valid: it contains a user name, pause None
        0ns failed: request the address of the model is not valid: it contains a user name (earlier: 0)
        requests: 0, replies left: 0"#]],
    );
}

#[test]
fn settings_that_are_left_out_are_reported() {
    let log = run(|env, network| async move {
        let _server = Server::start(&env, &network, HOST, strict, vec![Reply::json(200, &whole("Hello"))]);
        let mut dropped = Vec::new();
        let mut watch = |progress: Progress<'_>| {
            if let Progress::Dropped { setting, .. } = progress {
                dropped.push(setting);
            }
        };
        let request = Request { top_k: Some(4), ..asking(false) };
        Client::new(env).call(&[target()], &request, LIMIT, &mut watch).await.expect("an answer");
        dropped
    });
    assert_eq!(log, ["top_k"]);
}

#[test]
fn connections_are_used_again() {
    let connections = |reply: fn() -> Reply, stream| {
        run(|env, network| async move {
            let replies = (0..5).map(|_| reply()).collect();
            let _server = Server::start(&env, &network, HOST, strict, replies);
            let client = Client::new(env);
            for _ in 0..5 {
                client.call(&[target()], &asking(stream), LIMIT, &mut |_| {}).await.expect("an answer");
            }
            network.connections.load(Ordering::Relaxed)
        })
    };
    assert_eq!(connections(|| Reply::json(200, &whole("Hello")), false), 1);
    assert_eq!(connections(|| Reply::events(&[text("Hello"), finish()]).then("data: [DONE]\n\n"), true), 1);
}

#[test]
fn a_dropped_call_closes_its_connection() {
    run(|env, network| async move {
        let endless = Reply::events(&[text("Hel")]).endless(": more\n\n", Duration::from_secs(1));
        let server = Server::start(&env, &network, HOST, strict, vec![endless]);
        let client = Client::new(env);
        let (target, request) = (target(), asking(true));
        {
            let mut watch = |_: Progress<'_>| {};
            let targets = [target];
            let call = client.call(&targets, &request, LIMIT, &mut watch);
            tokio::select! { _ = call => panic!("an answer"), () = wait(Duration::from_secs(5)) => {} }
        }
        let sent = server.sent();
        wait(Duration::from_secs(60)).await;
        assert!((4..=6).contains(&sent), "{sent}");
        assert!(server.sent() <= sent + 1, "the server noticed");
    });
}

#[test]
fn proxies_are_tunnels() {
    let (request, text) = run(|env, network| async move {
        let _server = Server::start(&env, &network, "models.test:80", strict, vec![Reply::json(200, &whole("Hello"))]);
        let mut arrivals = network.serve("proxy.test:3128");
        let proxy = env.spawn("proxy", async move {
            use tokio::io::{AsyncReadExt, AsyncWriteExt};
            let mut client = arrivals.0.recv().await.expect("a connection");
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(client.read_u8().await.expect("a byte"));
            }
            client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.expect("written");
            let mut server = network.open("models.test:80").expect("the server");
            let copied = tokio::io::copy_bidirectional(&mut client, &mut server);
            tokio::select! { _ = copied => {}, () = wait(Duration::from_secs(60)) => {} }
            String::from_utf8(head).expect("text")
        });
        let mut target = at("models.test");
        let Backend::Http(http) = &mut target.backend else { panic!("HTTP") };
        http.plain = true;
        http.proxy =
            Proxy::choose(Some("http://user:pass@proxy.test:3128"), &|_| None, "http://models.test").expect("a proxy");
        let done = Client::new(env).call(&[target], &asking(false), LIMIT, &mut |_| {}).await.expect("an answer");
        (proxy.join().await.expect("no panic"), done.answer.text())
    });
    assert_eq!(text, "Hello");
    assert!(request.starts_with("CONNECT models.test:80 HTTP/1.1\r\n"), "{request}");
    assert!(request.to_lowercase().contains("proxy-authorization: basic dxnlcjpwyxnz"), "{request}");
}

#[test]
fn scripts_are_providers() {
    let script = "[{match: '*', times: 2, error: {kind: rate_limited, message: slow, retry_after_seconds: 2}}, \
                  {match: '*', delay_seconds: 1.5, text: Hello you}]";
    check(
        Vec::new(),
        &[scripted(script)],
        true,
        LIMIT,
        &expect![[r#"
        0ns try 1 of mock
        0ns rate_limited slow, pause Some(2s)
        2s try 2 of mock
        2s rate_limited slow, pause Some(2s)
        4s try 3 of mock
        5.5s Text("Hello ")
        5.5s Text("you")
        5.5s "Hello you" of target 0 after 3 tries
        requests: 0, replies left: 0"#]],
    );
}

#[test]
fn probes_look_for_the_model() {
    let probe = |reply: Option<Reply>| {
        run(|env, network| async move {
            let list = |seen: &crate::server::Seen| {
                let is_right = seen.method == "GET"
                    && seen.uri.path() == "/v1/models"
                    && seen.headers.contains_key("authorization");
                if is_right { Ok(()) } else { Err(format!("{seen:?}")) }
            };
            network.silence("localhost:2");
            let target = if reply.is_some() { target() } else { at("localhost:2") };
            let _server = Server::start(&env, &network, HOST, list, reply.into_iter().collect());
            format!("{:?}", Client::new(env).probe(&target).await)
        })
    };
    let models = |names: &[&str]| json!({"object": "list", "data": names.iter().map(|name| json!({"id": name})).collect::<Vec<_>>()});
    let slow = Reply::json(200, &models(&["a", "gpt-test"])).delay(Duration::from_millis(212));
    expect!["Reachable { latency: 212ms }"].assert_eq(&probe(Some(slow)));
    expect![[r#"Failed(CallError { kind: UnknownModel, status: None, message: "model 'gpt-test' not found", retry_after: None })"#]].assert_eq(&probe(Some(Reply::json(200, &models(&["a"])))));
    expect![[r#"Failed(CallError { kind: Credentials, status: Some(401), message: "busy", retry_after: None })"#]]
        .assert_eq(&probe(Some(busy(401))));
    expect![[
        r#"Failed(CallError { kind: Timeout, status: None, message: "no answer within 5 s", retry_after: None })"#
    ]]
    .assert_eq(&probe(Some(Reply::json(200, &models(&[])).delay(Duration::from_secs(6)))));
    expect![[
        r#"Failed(CallError { kind: Timeout, status: None, message: "no answer within 5 s", retry_after: None })"#
    ]]
    .assert_eq(&probe(None));
}

#[test]
fn real_sockets() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let answer = runtime.block_on(async {
        let env = atlas_env::Env::system();
        let server = Server::new(strict, vec![Reply::events(&[text("Hel"), text("lo"), finish()])]);
        let address = server.on_socket(&env).await;
        let done = Client::new(env).call(&[at(&address)], &asking(true), LIMIT, &mut |_| {}).await;
        done.expect("an answer").answer.text()
    });
    assert_eq!(answer, "Hello");
}
