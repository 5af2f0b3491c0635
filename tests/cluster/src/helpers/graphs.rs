//! Helpers of the model nodes of a graph.

use super::*;

/// Two nodes at the same time start helpers and collect them; a node after them collects the one that is left, and an agent node makes
/// the graph one that may have helpers.
const LEAD: &str = "name: lead
initial_state: {left: '', right: '', said: ''}
start: split
nodes:
  split: {type: llm, prompt: split, next: [left, right]}
  left: {type: llm, prompt: left, tools: [agent__spawn, agent__collect], next: join, state_updates: {left: '{{output}}'}}
  right: {type: llm, prompt: right, tools: [agent__spawn, agent__collect], next: join, state_updates: {right: '{{output}}'}}
  join: {type: llm, prompt: 'join {{left}} {{right}}', tools: [agent__collect, agent__list], next: agent, state_updates: {said: '{{output}}'}}
  agent: {type: agent, agent: kid, prompt: 'kid of a node', next: done, state_updates: {said: '{{said}}, {{output}}'}}
  done: {type: end, output: '{{said}}'}
";

fn graph(folder: &Path, name: &str, text: &str) -> Vec<u8> {
    let agent = folder.join(name);
    fs::create_dir_all(&agent).expect("a folder");
    fs::write(agent.join("graph.yaml"), text).expect("a file");
    pack(&agent).expect("a package").bytes
}

fn spawn(prompt: &str) -> (&'static str, Value) {
    ("agent__spawn", json!({"agent": "kid", "prompt": prompt}))
}

fn collect(id: &Value) -> (&'static str, Value) {
    ("agent__collect", json!({ "id": id }))
}

/// What a node says in a round. The left one leaves the helper that works late to the node after it.
fn play(first: &str, round: usize, results: &[Value]) -> Reply {
    let words: Vec<&str> = first.split(' ').collect();
    match (words[0], round) {
        ("left", 0) => calls(&[spawn("work left"), spawn("work late")]),
        ("right", 0) => calls(&[spawn("work right")]),
        // The first of its texts says where the late one is.
        ("left" | "right", 1) => {
            let ids: Vec<&str> = results.iter().filter_map(|result| result["id"].as_str()).collect();
            let mut reply = calls(&[collect(&results[0]["id"])]);
            if let (Reply::Message { content, .. }, Some(late)) = (&mut reply, ids.get(1)) {
                content.insert(0, json!({"type": "text", "text": late}));
            }
            reply
        }
        ("join", 0) => {
            let late = words.iter().flat_map(|word| word.lines()).find(|word| word.starts_with("agent_kid_"));
            calls(&[("agent__list", json!({})), collect(&json!(late))])
        }
        ("join", _) => Reply::text(&format!("{first}, {}, {}", results[0]["active_count"], outputs(&results[1..]))),
        ("left" | "right", _) => Reply::text(&outputs(results)),
        (_, _) => Reply::text(&format!("did {first}")),
    }
}

#[tokio::test]
async fn model_nodes_have_helpers_that_work_once_wherever_worker_and_leader_die() {
    let folder = tempfile::tempdir().expect("a folder");
    let seen = Mutex::new(BTreeMap::<String, u32>::new());
    let answer = move |request: &Value, _: usize| {
        let (first, round, results) = read(request);
        let reply = play(&first, round, &results);
        if !first.starts_with("work") {
            return reply;
        }
        let mut seen = seen.lock().expect("not poisoned");
        let times = seen.entry(first).or_default();
        *times += 1;
        if *times == 1 { Reply::Never } else { Reply::Held(Box::new(reply)) }
    };
    let server = Server::start(answer).expect("a server");
    let mut members = trio(folder.path(), &[]).await;
    let api = Api::new(&members[0].http.to_string());
    api.register(agent(folder.path(), "kid", "")).await;
    api.register(graph(folder.path(), "lead", LEAD)).await;
    let first = worker(folder.path(), &members, &server);
    let job = api.submit("lead", json!({"message": "lead"})).await;
    let all_wait = |times: usize| {
        eventually("all helpers wait for the model", LONG, || {
            let waiting = server.requests().iter().filter(|request| read(request).0.starts_with("work")).count();
            (waiting >= times * HELPERS).then_some(())
        });
    };
    all_wait(1);
    // One of split, and two of each of the nodes beside each other.
    recorded(&api, &job, 5).await;
    let (api, second) = disturb(folder.path(), &mut members, (&server, first), all_wait).await;
    let done = api.wait(&job).await;
    let text = done["output_data"]["text"].as_str().unwrap_or_else(|| panic!("{done}"));
    let kids = jobs(&api, "kid").await;
    let late = text.split_whitespace().find(|word| word.starts_with("agent_kid_")).expect("the id of a helper");
    assert_eq!(
        text.replace(late, "LATE"),
        "join LATE\ndid work left did work right, 1, did work late, did kid of a node",
        "{done}"
    );
    assert_eq!(kids.len(), HELPERS + 1, "{kids:?}");
    assert!(kids.iter().all(|kid| kid["status"] == "completed"), "{kids:?}");
    let answered: Vec<_> = server.answered().iter().map(|request| (read(request).0, read(request).1)).collect();
    let different: BTreeSet<_> = answered.iter().cloned().collect();
    // One of split, three of each of the two beside each other, two of join, and one of each helper.
    let requests = 1 + 2 * 3 + 2 + HELPERS + 1;
    assert_eq!((answered.len(), different.len()), (requests, requests), "no call was answered twice: {answered:?}");
    assert_eq!(second.end(Signal::SIGTERM), Some(0));
}

/// The agent node is only there so that the graph may have helpers.
const TALK: &str = "name: lead
initial_state: {said: ''}
start: talk
nodes:
  talk:
    type: llm
    prompt: lead
    tools: [agent__spawn, agent__collect, agent__reply_escalation, agent__send_message, agent__check_inbox]
    next: done
    fallback: agent
    state_updates: {said: '{{output}}'}
  agent: {type: agent, agent: kid, prompt: none, next: done}
  done: {type: end, output: '{{said}}'}
";

#[tokio::test]
async fn questions_and_messages_reach_model_nodes() {
    talk(|folder| graph(folder, "lead", TALK)).await;
}
