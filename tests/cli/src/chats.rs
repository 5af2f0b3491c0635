//! Conversations at the command line: chats over a pipe, single questions with files, two clients at one conversation, and interrupts.

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use atlas_llm_server::{Reply, Server};
use expect_test::expect_file;
use serde_json::Value;

use crate::laptop::Laptop;
use crate::session::Session;

/// The texts of the messages of a request.
fn said(request: &Value) -> Vec<String> {
    let messages = request["messages"].as_array().into_iter().flatten();
    let text = |message: &Value| {
        let parts = message["content"].as_array().into_iter().flatten();
        let texts: String = parts.filter_map(|part| part["text"].as_str()).collect();
        message["content"].as_str().map_or(texts, str::to_owned)
    };
    messages.map(text).collect()
}

/// A model that says how many messages it saw and what the last one begins with.
fn echo(request: &Value, _: usize) -> Reply {
    let said = said(request);
    let last = said.last().cloned().unwrap_or_default();
    let system = match &request["system"] {
        Value::Null => String::new(),
        Value::String(text) => format!(" ({text})"),
        other => format!(" ({})", other[0]["text"].as_str().unwrap_or_default()),
    };
    if last.contains("code") {
        return Reply::text("Here it is:\n\n```python\nprint(1)\n```\n");
    }
    let first = last.lines().next().unwrap_or_default();
    let lines = last.lines().count();
    Reply::text(&format!("{} messages, the last with {lines} lines: {first}{system}", said.len()))
}

fn add_model(session: &mut Session<'_>, server: &Server, name: &str) {
    let base = server.base_url();
    session.quiet(&format!(
        "atlasctl model add {name} --provider anthropic --name {name} --base-url {base} --key '${{CARGO_PKG_NAME}}' --no-probe"
    ));
}

#[test]
fn messages_are_answered_in_turn_and_the_cluster_keeps_them() {
    let server = Server::start(echo).expect("a server");
    let laptop = Laptop::with(&[]);
    let mut session = laptop.session("Chats");
    session.run("atlasctl chat </dev/null");
    session.run("atlasctl ask Hello");
    add_model(&mut session, &server, "fast");
    add_model(&mut session, &server, "other");
    session.run("printf 'Hello\\n' | atlasctl chat --conversation trip --instructions 'Be brief.'");
    session.run("printf 'And then?\\n.info\\n.modle x\\n.copy now\\n' | atlasctl chat --conversation trip");
    session.run("printf ':::\\none\\n.two\\n:::\\n.model other\\n.set temperature 9\\n.set temperature 0.5\\n.info\\nagain\\n.save trip.md\\n' | atlasctl chat --conversation trip");
    session.run("cat trip.md");
    session.run("atlasctl conversation show trip");
    session.run(
        "printf '.regenerate\\n' | atlasctl chat --conversation trip 2>&1 | sed 's/chat-[0-9tz]*-[0-9a-f]*/chat-ID/'",
    );
    session.run("atlasctl conversation branch trip short --turns 1");
    session.run("atlasctl conversation branch trip short");
    session.run("atlasctl conversation branch trip long --turns 9");
    session.run("atlasctl conversation rename short first");
    session.run("atlasctl conversation export first --as openai");
    session.run("atlasctl conversation export first --as md");
    session.run("printf '.help\\n.empty\\n.empty\\n.exit\\nunread\\n' | atlasctl chat --conversation first");
    session.run("atlasctl chat gone </dev/null");
    session.run("atlasctl chat wordcount --model fast </dev/null");
    let job = session.quiet("atlasctl job list -o name --limit 1").trim().to_owned();
    session.run(&format!("atlasctl job transcript {job}"));
    session.run(&format!("atlasctl job transcript {job} --as openai"));
    expect_file!["../transcripts/chats.txt"].assert_eq(&session.page());
}

#[test]
fn one_question_has_files_and_what_is_piped() {
    let server = Server::start(echo).expect("a server");
    let laptop = Laptop::with(&[]);
    let file = |name: &str, bytes: &[u8]| {
        let path = laptop.folder().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, bytes).expect("written");
    };
    file("notes/one.txt", b"first\n");
    file("notes/two.md", b"second\n");
    file("notes/data.bin", b"\0\x01");
    file("picture.png", b"\x89PNG\r\n\x1a\n");
    let mut session = laptop.session("Single questions");
    add_model(&mut session, &server, "fast");
    session.run("atlasctl ask Hello there --quiet");
    session.run("printf 'a\\nb\\n' | atlasctl ask Summarize: --quiet");
    session.run("printf 'only this\\n' | atlasctl ask -q");
    session.run("atlasctl ask -q </dev/null");
    session.run("atlasctl ask -q -f notes/one.txt");
    session.run("atlasctl ask -q -f notes 'What are these?'");
    session.run("atlasctl ask -q -f 'notes/*.md' -f notes/data.bin 'What are these?'");
    session.run("printf 'piped' | atlasctl ask -q -f - 'What is this?'");
    session.run("atlasctl ask -q -f picture.png 'What is this?'");
    session.run("atlasctl ask -q -f https://example.org/page 'What is this?'");
    session.run("atlasctl ask -q --code 'Some code, please'");
    session.run("atlasctl ask -q 'Some code, please'");
    session.run("atlasctl ask --dry-run -m fast --set temperature=0 --instructions 'Be brief.' Hello");
    session.run("atlasctl ask --set warmth=1 Hello");
    session.run("atlasctl ask -m gone Hello");
    session.run("atlasctl ask -q --conversation talk one && atlasctl ask -q --conversation talk two");
    session.run("atlasctl ask Hello -o jsonpath={.output_data.result} -q");
    expect_file!["../transcripts/single-questions.txt"].assert_eq(&session.page());
}

#[test]
fn two_clients_see_the_same_turns_in_the_same_order() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let requests = Arc::clone(&seen);
    let server = Server::start(move |request, _| {
        let said = said(request);
        requests.lock().expect("not poisoned").push(said.clone());
        Reply::text(&format!("answer to {}", said.last().cloned().unwrap_or_default()))
    });
    let server = server.expect("a server");
    let laptop = Laptop::with(&[]);
    let mut session = laptop.session("Two clients");
    add_model(&mut session, &server, "fast");
    let lines = |who: &str| (1..=4).map(|number| format!("{who} {number}\\n")).collect::<String>();
    let chat =
        |who: &str| format!("printf '{}' | atlasctl chat --conversation both >{who}.txt 2>{who}.err", lines(who));
    session.quiet(&format!("({}) & ({}) & wait", chat("ann"), chat("bob")));
    let export = session.quiet("atlasctl conversation export both");
    let conversation: Value = serde_json::from_str(&export).expect("JSON");
    let texts: Vec<&str> = conversation["messages"]
        .as_array()
        .expect("messages")
        .iter()
        .filter_map(|message| message["content"].as_str())
        .collect();
    assert_eq!(texts.len(), 16, "{texts:?}");
    for pair in texts.chunks(2) {
        assert_eq!(pair[1], format!("answer to {}", pair[0]));
    }
    for who in ["ann", "bob"] {
        let asked: Vec<&str> = texts.iter().copied().filter(|text| text.starts_with(who)).collect();
        assert_eq!(asked, (1..=4).map(|number| format!("{who} {number}")).collect::<Vec<_>>());
        let answers = fs::read_to_string(laptop.folder().join(format!("{who}.txt"))).expect("UTF-8");
        assert_eq!(answers, asked.iter().map(|text| format!("answer to {text}\n")).collect::<String>());
    }
    // The model saw at each turn what was said before it.
    let mut seen = seen.lock().expect("not poisoned").clone();
    seen.sort_by_key(Vec::len);
    for (turn, messages) in seen.iter().enumerate() {
        assert_eq!(messages[..], texts[..=2 * turn], "turn {turn}");
    }
}

#[test]
fn an_interrupt_ends_the_turn_and_not_the_chat() {
    let count = AtomicUsize::new(0);
    let server = Server::start(move |_, _| match count.fetch_add(1, Ordering::Relaxed) {
        0 => Reply::Never,
        _ => Reply::text("I am here."),
    });
    let server = server.expect("a server");
    let laptop = Laptop::with(&[]);
    let mut session = laptop.session("An interrupted turn");
    add_model(&mut session, &server, "fast");
    fs::write(laptop.folder().join("lines"), "Write a long story.\nAre you there?\n").expect("written");
    let mut chat = session.follow("atlasctl chat --conversation story <lines");
    let waits = || (server.requests().len() == 1).then_some(());
    atlas_cluster_tests::eventually("the model is asked", atlas_cluster_tests::LONG, waits);
    chat.interrupt();
    let (stdout, stderr, status) = chat.end();
    assert_eq!((stdout.as_str(), status.code()), ("I am here.\n", Some(0)), "{stderr}");
    assert!(stderr.contains("interrupted"), "{stderr}");
    assert_eq!(session.quiet("atlasctl conversation list --columns turns --no-headers").trim(), "1");
    let jobs = session.quiet("atlasctl job list -o jsonl");
    assert!(jobs.contains("cancelled"), "{jobs}");
}
