//! What an autoscaler is told about work.

use std::time::Duration;

use atlas_wire::proto::scaler::v1::external_scaler_client::ExternalScalerClient;
use atlas_wire::proto::scaler::v1::{GetMetricsRequest, ScaledObjectRef};
use tonic::transport::Channel;

use crate::client::{PATIENCE, Server};

const RENDER: &str = "agent:\n  name: render\n  version: 1.0.0\n  hardware: {gpu: true, gpu_vram_gb: 16}\n";

fn scaled(members: &[(&str, &str)]) -> ScaledObjectRef {
    let metadata = members.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    ScaledObjectRef { name: "workers".to_owned(), namespace: "atlas".to_owned(), scaler_metadata: metadata }
}

async fn start() -> (Server, ExternalScalerClient<Channel>) {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let server = Server::start_with(dir, |options| options.scaler = Some(([127, 0, 0, 1], 0).into())).await;
    let address = server.controller.scaler_addr().expect("it listens");
    let scaler = ExternalScalerClient::connect(format!("http://{address}")).await.expect("connects");
    (server, scaler)
}

#[tokio::test(flavor = "multi_thread")]
async fn autoscalers_learn_how_many_jobs_need_workers() {
    let (server, mut scaler) = start().await;
    let mut streamed = scaler.stream_is_active(scaled(&[])).await.expect("a stream").into_inner();
    let mut heard =
        async || tokio::time::timeout(PATIENCE, streamed.message()).await.expect("in time").expect("no error");
    assert_eq!(heard().await.map(|answer| answer.result), Some(false));
    server.register(RENDER).await;
    server.register("agent:\n  name: echo\n  version: 1.0.0\n").await;
    for agent in ["render", "render", "echo"] {
        server.submit(&format!(r#"{{"agent": "{agent}", "input": {{}}}}"#)).await;
    }
    assert_eq!(heard().await.map(|answer| answer.result), Some(true));

    for (members, jobs) in [
        (&[][..], 3),
        (&[("hardware", "gpu")], 2),
        (&[("hardware", "cpu")], 1),
        (&[("agent", "echo")], 1),
        (&[("agent", "echo"), ("hardware", "gpu")], 0),
        (&[("namespace", "team-a")], 0),
    ] {
        let question = GetMetricsRequest { scaled_object_ref: Some(scaled(members)), metric_name: "m".to_owned() };
        let metrics = scaler.get_metrics(question).await.expect("an answer").into_inner().metric_values;
        let told: Vec<_> = metrics.iter().map(|metric| (metric.metric_name.as_str(), metric.metric_value)).collect();
        assert_eq!(told, [("m", jobs)], "{members:?}");
        let active = scaler.is_active(scaled(members)).await.expect("an answer").into_inner().result;
        assert_eq!(active, jobs > 0, "{members:?}");
    }
    let specs = scaler.get_metric_spec(scaled(&[("jobsPerWorker", "2.5")])).await.expect("an answer").into_inner();
    let told: Vec<_> = specs.metric_specs.iter().map(|spec| (spec.target_size, spec.target_size_float)).collect();
    assert_eq!(told, [(3, 2.5)]);
    let refused = scaler.is_active(scaled(&[("hardware", "tpu")])).await.expect_err("no such hardware");
    assert_eq!(refused.code(), tonic::Code::InvalidArgument, "{refused}");
    let large = "x".repeat(1 << 20);
    let refused = scaler.is_active(scaled(&[("agent", &large)])).await.expect_err("too large");
    assert_eq!(refused.code(), tonic::Code::OutOfRange, "{refused}");
    tokio::time::timeout(Duration::from_secs(30), server.controller.shutdown()).await.expect("streams end with it");
}
