//! Why jobs wait, and what would start them.

use crate::client::Server;

const RENDER: &str = "agent:\n  name: render\n  version: 1.0.0\n  hardware:\n    gpu: true\n    gpu_vram_gb: 16\n    architecture: any\n";

#[tokio::test(flavor = "multi_thread")]
async fn a_waiting_job_is_explained_with_what_would_start_it() {
    let server = Server::start().await;
    server.register(RENDER).await;
    let id = server.submit(r#"{"agent": "render", "input": {}}"#).await;
    let explained = server.get(&format!("/api/jobs/{id}/explain")).await;
    assert_eq!(explained.status, 200, "{explained:?}");
    let explained = explained.json();
    assert_eq!((&explained["status"], &explained["reason"]), (&"pending".into(), &"no_node".into()), "{explained}");
    assert_eq!((&explained["position"], &explained["class_jobs"]), (&1.into(), &1.into()), "{explained}");
    assert_eq!(explained["estimate"]["known"], false, "{explained}");
    assert_eq!(explained["starts_if"][0]["says"], "another worker joins with: GPU (16GB VRAM)", "{explained}");
    let change = &explained["starts_if"][0]["changes"][0];
    assert_eq!(
        (&change["kind"], &change["gpus"], &change["vram_bytes"]),
        (&"register".into(), &1.into(), &(16_u64 << 30).into())
    );

    let metrics = server.get("/metrics").await.body;
    assert!(metrics.contains("atlas_job_waiting_count{atlas_job_reason=\"no_node\"} 1\n"), "{metrics}");

    server.post(&format!("/api/jobs/{id}/cancel"), "").await;
    let ended = server.get(&format!("/api/jobs/{id}/explain")).await.json();
    assert_eq!((&ended["status"], &ended["starts_if"]), (&"cancelled".into(), &serde_json::json!([])));
    for (path, status, code) in [
        ("/api/jobs/job-0000000000000001/explain", 404, "E3001"),
        ("/api/jobs/%00/explain", 404, "E3001"),
        (&format!("/api/jobs/{id}/explain?wait=1"), 400, "E1104"),
        (&format!("/api/jobs/{id}/explain?namespace=team"), 404, "E3001"),
    ] {
        let refused = server.get(path).await;
        assert_eq!((refused.status, refused.header("atlas-error-code")), (status, Some(code)), "{path}: {refused:?}");
    }
    server.controller.shutdown().await;
}
