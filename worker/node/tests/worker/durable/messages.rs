//! Messages to programs, also those of channels that nobody waits for at the time.

use super::scene::{Scene, agent};
use crate::support::without_python;

#[tokio::test]
async fn messages_of_other_channels_are_put_aside_for_later() {
    if without_python() {
        return;
    }
    let code = r#"
    async def execute(self, input_data):
        approved = await self.context.receive("approval")
        other = await self.context.receive("")
        nothing = await self.context.receive("approval", timeout=0.2)
        return {"got": [approved.body, other.body, nothing]}
"#;
    let mut scene = Scene::set(&agent(code, "")).await;
    scene.message("m1", Some("news"));
    scene.message("m2", None);
    let first = scene.attempt(1);
    scene.session.grant(&first).await;
    assert!(scene.record_until(u64::MAX).await.is_none(), "it parks");
    assert_eq!(scene.parked.last().expect("one").read, 2, "they are put aside");
    scene.message("m3", Some("approval"));
    scene.parks = false;
    let second = scene.attempt(2);
    let output = scene.run(&second).await.output(&scene.controller);
    assert_eq!(output, r#"{"got":["m3","m1",null]}"#);
    let third = scene.attempt(3);
    assert_eq!(scene.run(&third).await.output(&scene.controller), output);
    scene.shutdown().await;
}
