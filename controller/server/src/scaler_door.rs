//! The door for autoscalers of Kubernetes: an external scaler of KEDA, which asks how many jobs need workers. It shows numbers and changes
//! nothing, and whoever asks shows no token: KEDA has none.

use std::collections::HashMap;
use std::pin::Pin;
use std::time::Duration;

use atlas_env::{Env, Listener};
use atlas_service::{Service, WorkFilter};
use atlas_types::{AgentName, Namespace};
use atlas_wire::proto::scaler::v1::external_scaler_server::{ExternalScaler, ExternalScalerServer};
use atlas_wire::proto::scaler::v1::{
    GetMetricSpecResponse, GetMetricsRequest, GetMetricsResponse, IsActiveResponse, MetricSpec, MetricValue,
    ScaledObjectRef,
};
use futures::Stream;
use tokio::sync::watch;
use tonic::{Request, Response, Status};

use crate::listen;

/// The most connections, and the most streams of one.
const CONNECTIONS_MAX: usize = 64;
const STREAMS_PER_CONNECTION_MAX: u32 = 64;
/// The largest question.
const QUESTION_BYTES_MAX: usize = 64 << 10;
/// How often a stream looks whether there is work.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// The name of the metric.
const METRIC: &str = "atlas-jobs";
/// The most jobs that one worker should have.
const JOBS_PER_WORKER_MAX: f64 = 1e6;

/// Serves autoscalers on `listener` until `stop` becomes true.
pub(crate) async fn serve(service: Service, env: Env, listener: Box<dyn Listener>, stop: watch::Receiver<bool>) {
    let rpc = Rpc { service, env: env.clone(), stop: stop.clone() };
    let scaler = ExternalScalerServer::new(rpc).max_decoding_message_size(QUESTION_BYTES_MAX);
    let stopped = async {
        let mut stop = stop;
        // A dropped sender also stops the door.
        let _ = stop.wait_for(|stop| *stop).await;
    };
    let serving = tonic::transport::Server::builder()
        .max_concurrent_streams(STREAMS_PER_CONNECTION_MAX)
        .add_service(scaler)
        .serve_with_incoming_shutdown(listen::connections(listener, CONNECTIONS_MAX, env), stopped);
    if let Err(error) = serving.await {
        tracing::error!(error = &error as &dyn std::error::Error, "the interface of autoscalers failed");
    }
}

struct Rpc {
    service: Service,
    env: Env,
    stop: watch::Receiver<bool>,
}

/// What the metadata of a scaled object ask for.
#[derive(Debug, PartialEq)]
struct Wanted {
    filter: WorkFilter,
    jobs_per_worker: f64,
}

impl Wanted {
    /// Reads metadata. Members that are not ours are those of KEDA, such as `scalerAddress`.
    fn read(metadata: &HashMap<String, String>) -> Result<Self, String> {
        let text = |name: &str| metadata.get(name).map(|text| text.trim()).filter(|text| !text.is_empty());
        let namespace =
            text("namespace").map(Namespace::new).transpose().map_err(|error| format!("namespace: {error}"))?;
        let agent = text("agent").map(AgentName::new).transpose().map_err(|error| format!("agent: {error}"))?;
        let gpu = match text("hardware") {
            None => None,
            Some("gpu") => Some(true),
            Some("cpu") => Some(false),
            Some(_) => return Err("hardware: it is gpu, cpu, or left out for all jobs".to_owned()),
        };
        let jobs = text("jobsPerWorker").map_or(Ok(1.0), str::parse::<f64>);
        let fits = |jobs: &f64| jobs.is_finite() && *jobs > 0.0 && *jobs <= JOBS_PER_WORKER_MAX;
        let jobs_per_worker = jobs
            .ok()
            .filter(fits)
            .ok_or_else(|| format!("jobsPerWorker: it is a number above 0, at most {JOBS_PER_WORKER_MAX}"))?;
        let namespace = namespace.unwrap_or_else(Namespace::default_namespace);
        Ok(Self { filter: WorkFilter { namespace, agent, gpu }, jobs_per_worker })
    }

    fn of(scaled: Option<&ScaledObjectRef>) -> Result<Self, Status> {
        let none = HashMap::new();
        let metadata = scaled.map_or(&none, |scaled| &scaled.scaler_metadata);
        Self::read(metadata).map_err(Status::invalid_argument)
    }
}

async fn count(service: &Service, filter: WorkFilter) -> Result<u64, Status> {
    service.jobs_for_workers(filter).await.map_err(|error| Status::unavailable(error.to_string()))
}

type Answers = Pin<Box<dyn Stream<Item = Result<IsActiveResponse, Status>> + Send>>;

#[tonic::async_trait]
impl ExternalScaler for Rpc {
    type StreamIsActiveStream = Answers;

    async fn is_active(&self, request: Request<ScaledObjectRef>) -> Result<Response<IsActiveResponse>, Status> {
        let wanted = Wanted::of(Some(request.get_ref()))?;
        let result = count(&self.service, wanted.filter).await? > 0;
        Ok(Response::new(IsActiveResponse { result }))
    }

    async fn stream_is_active(&self, request: Request<ScaledObjectRef>) -> Result<Response<Answers>, Status> {
        let Wanted { filter, .. } = Wanted::of(Some(request.get_ref()))?;
        let parts = (self.service.clone(), self.env.clone(), self.stop.clone(), None::<bool>);
        let answers = futures::stream::unfold(parts, move |(service, env, mut stop, last)| {
            let filter = filter.clone();
            async move {
                loop {
                    let now = match count(&service, filter.clone()).await {
                        Ok(count) => count > 0,
                        Err(status) => return Some((Err(status), (service, env, stop, last))),
                    };
                    if last != Some(now) {
                        return Some((Ok(IsActiveResponse { result: now }), (service, env, stop, Some(now))));
                    }
                    tokio::select! {
                        _ = stop.wait_for(|stop| *stop) => return None,
                        () = env.clock.sleep(LOOK_EVERY) => {}
                    }
                }
            }
        });
        Ok(Response::new(Box::pin(answers)))
    }

    async fn get_metric_spec(
        &self,
        request: Request<ScaledObjectRef>,
    ) -> Result<Response<GetMetricSpecResponse>, Status> {
        let target = Wanted::of(Some(request.get_ref()))?.jobs_per_worker;
        #[expect(clippy::cast_possible_truncation, reason = "at most 1e6")]
        let spec =
            MetricSpec { metric_name: METRIC.to_owned(), target_size: target.ceil() as i64, target_size_float: target };
        Ok(Response::new(GetMetricSpecResponse { metric_specs: vec![spec] }))
    }

    async fn get_metrics(&self, request: Request<GetMetricsRequest>) -> Result<Response<GetMetricsResponse>, Status> {
        let GetMetricsRequest { scaled_object_ref, metric_name } = request.into_inner();
        let wanted = Wanted::of(scaled_object_ref.as_ref())?;
        let count = count(&self.service, wanted.filter).await?;
        #[expect(clippy::cast_precision_loss, reason = "there are fewer jobs than 2^53")]
        let value = MetricValue {
            metric_name,
            metric_value: i64::try_from(count).unwrap_or(i64::MAX),
            metric_value_float: count as f64,
        };
        Ok(Response::new(GetMetricsResponse { metric_values: vec![value] }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(members: &[(&str, &str)]) -> Result<Wanted, String> {
        Wanted::read(&members.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    }

    #[test]
    fn metadata_select_jobs() {
        let wanted = |namespace: &str, agent: Option<&str>, gpu, jobs_per_worker| {
            let agent = agent.map(|agent| AgentName::new(agent).expect("a name"));
            let namespace = Namespace::new(namespace).expect("a name");
            Ok(Wanted { filter: WorkFilter { namespace, agent, gpu }, jobs_per_worker })
        };
        assert_eq!(read(&[]), wanted("default", None, None, 1.0));
        assert_eq!(read(&[("scalerAddress", "x"), ("agent", " ")]), wanted("default", None, None, 1.0));
        let all = [("namespace", "team-a"), ("agent", "render"), ("hardware", "gpu"), ("jobsPerWorker", "2.5")];
        assert_eq!(read(&all), wanted("team-a", Some("render"), Some(true), 2.5));
        for (name, value) in [
            ("namespace", "../x"),
            ("agent", "a\nb"),
            ("hardware", "tpu"),
            ("jobsPerWorker", "0"),
            ("jobsPerWorker", "-1"),
            ("jobsPerWorker", "NaN"),
            ("jobsPerWorker", "1e7"),
            ("jobsPerWorker", "many"),
        ] {
            assert!(read(&[(name, value)]).is_err_and(|why| why.starts_with(name)), "{name}={value}");
        }
    }
}
