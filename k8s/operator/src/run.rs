//! The program: waits for the lease, then watches each kind in each namespace.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use atlas_env::Env;
use axum::Router;
use axum::routing::get;
use futures::stream::{self, Stream, StreamExt as _};
use http::HeaderValue;
use http::header::USER_AGENT;
use kube::api::DynamicObject;
use kube::runtime::controller::{self, Controller};
use kube::runtime::watcher;
use kube::{Api, Client, Config};

use crate::atlas::Atlas;
use crate::elect::Election;
use crate::kind::Kind;
use crate::options::Options;
use crate::reconcile::{Operator, api_resource};
use crate::words;

/// Attempts at a time, of one kind in one namespace.
const CONCURRENCY: u16 = 4;
/// Resources of one page when they are listed.
const PAGE: u32 = 500;

/// Runs until `stop` completes. An operator that lost the lease ends with an error: Kubernetes starts it again, with nothing left over.
pub async fn run(options: &Options, env: Env, stop: impl Future<Output = ()>) -> anyhow::Result<()> {
    let atlas = Atlas::new(&options.server, options.token_file.clone(), options.ca_file.as_ref(), env.clone())?;
    let client = client().await.context("no API server of Kubernetes is configured")?;
    let listener = tokio::net::TcpListener::bind(options.listen).await;
    let listener = listener.with_context(|| format!("could not listen at {}", options.listen))?;
    let probe = Router::new().route("/healthz", get(|| async { "ok\n" }));
    env.spawn_vital("probe", async move {
        if let Err(error) = axum::serve(listener, probe).await {
            tracing::error!("the probe ended: {error}");
        }
    });
    let me = (options.identity.as_str(), options.server.as_str());
    let mut election = Election::new(client.clone(), &options.namespace, me, env.clone());
    let mut stop = std::pin::pin!(stop);
    tokio::select! {
        won = election.win() => won?,
        () = &mut stop => return Ok(()),
    }
    tracing::info!(server = options.server, "operator ready");
    let resync = Duration::from_secs(options.resync);
    let operator = Operator::new(client, atlas, &options.namespace, &options.identity, resync, env);
    let ended = tokio::select! {
        () = election.hold() => Err(anyhow::anyhow!("the lease was lost")),
        () = watch(Arc::new(operator), options.namespaces()) => Err(anyhow::anyhow!("the watches ended")),
        () = &mut stop => Ok(()),
    };
    if ended.is_ok() {
        election.release().await;
    }
    ended
}

/// The API server. It notes who changed a resource by the name that is in front of this version.
async fn client() -> anyhow::Result<Client> {
    let mut config = Config::infer().await?;
    let name = HeaderValue::from_static(concat!("atlas-operator/", env!("CARGO_PKG_VERSION")));
    config.headers.push((USER_AGENT, name));
    Ok(Client::try_from(config)?)
}

async fn watch(operator: Arc<Operator>, namespaces: Vec<String>) {
    let each = namespaces.iter().flat_map(|namespace| Kind::ALL.map(|kind| (namespace.clone(), kind)));
    let streams = each.map(|(namespace, kind)| resources(operator.clone(), &namespace, kind));
    stream::select_all(streams).for_each(|()| std::future::ready(())).await;
}

/// Attempts at the resources of one kind in one namespace, as they change and become due.
fn resources(operator: Arc<Operator>, namespace: &str, kind: Kind) -> Pin<Box<dyn Stream<Item = ()> + Send>> {
    let resource = api_resource(kind);
    let api: Api<DynamicObject> = Api::namespaced_with(operator.client.clone(), namespace, &resource);
    let config = watcher::Config::default().page_size(PAGE);
    let namespace = namespace.to_owned();
    let attempts = Controller::new_with(api, config, resource)
        .with_config(controller::Config::default().concurrency(CONCURRENCY))
        .run(
            move |object, operator: Arc<Operator>| async move { operator.reconcile(kind, object).await },
            |object, failure, operator| operator.after_failure(&object, failure),
            operator,
        );
    Box::pin(attempts.map(move |attempt| match attempt {
        // The resource is gone, or its failure is reported already.
        Ok(_) | Err(controller::Error::ObjectNotFound(_) | controller::Error::ReconcilerFailed(..)) => {}
        Err(error) => {
            if let Some(words) = words::of_watch(kind, &error) {
                tracing::warn!(kind = kind.name(), namespace, "{words}");
            }
        }
    }))
}
