//! Model calls of durable programs: a call that was answered is not made again.

use atlas_llm_server::{Reply, Server};
use serde_json::json;

use super::Rig;

const THINKS: &str = r#"
    async def execute(self, input_data):
        messages = [
            {"role": "system", "content": "Be short."},
            {"role": "user", "content": "One?"},
            {"role": "assistant", "content": "Two."},
            {"role": "user", "content": "Three?"},
        ]
        first = await self.context.model(messages, max_tokens=20)
        await self.context.step("gate", gate, input_data["folder"], "open")
        second = await self.context.model("Four?")
        return {"texts": [first.text, second.text], "tokens": first.input_tokens + second.input_tokens}
"#;

#[tokio::test]
async fn an_answered_call_with_messages_is_not_made_again_after_a_lost_worker() {
    let server = Server::start(|request, _| {
        let messages = request["messages"].as_array().expect("messages");
        Reply::text(&format!("{} messages", messages.len()))
    })
    .expect("a server");
    let key = ("ANTHROPIC_API_KEY", "key".to_owned());
    let mut rig = Rig::start_with(vec![("ANTHROPIC_BASE_URL", server.base_url()), key]);
    rig.deploy("thinks", "1.0.0", "  model: { preference: fast }\n", THINKS).await;
    let job = rig.submit("thinks").await;
    for lost in 1..=2 {
        job.until_line("waits for open", lost);
        rig.kill_worker();
        rig.start_worker();
    }
    job.until_line("waits for open", 3);
    assert_eq!(server.requests().len(), 1, "it is recorded");
    job.open("open");
    let ended = rig.api.wait(&job.id).await;
    let expected = json!({"texts": ["3 messages", "1 messages"], "tokens": 20});
    assert_eq!(ended["output_data"], expected, "{ended}");
    assert!(ended["attempt"].as_u64() >= Some(3), "{ended}");
    assert_eq!(ended["tokens_input"], json!(20), "each call counts once: {ended}");
    let requests = server.requests();
    assert_eq!(requests.len(), 2);
    let said = |text: &str| requests[0].to_string().contains(text);
    assert!(said("Be short.") && said("One?") && said("Two.") && said("Three?"), "{}", requests[0]);
    assert_eq!(requests[0]["max_tokens"], 20);
}
