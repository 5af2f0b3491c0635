//! `atlasctl dev --controllers N --workers M`: one process for each, so that single processes can be killed.
//!
//! The first controller reuses the data of a cluster of one; the others join it with tokens, as on real machines.

use std::path::PathBuf;
use std::time::Duration;

use atlas_api::types::{ClusterView, Member, Node};
use atlas_dev::{
    ChildError, ControllerAddresses, DataDir, DevSettings, ExitedProcess, Group, Joining, SettingsError, addresses,
    request,
};
use atlas_env::Env;
use serde_json::json;

use crate::answers;
use crate::client::Client;
use crate::command::dev::agents::Watch;
use crate::command::dev::{Options, asked_to_stop, banner, demo, refusal_of_data, refusal_of_port, watch};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::stillness::LOOK_INTERVAL;
use tokio::signal::unix::SignalKind;

/// Longest wait until a joining controller is a voter, or a worker is registered.
const THERE_WITHIN: Duration = Duration::from_secs(60);
/// Maximum number of controllers; more voters make a cluster slower, not safer.
pub(super) const CONTROLLERS_MAX: u16 = 7;

/// The requested numbers of processes, and the controllers that the data folder already has.
pub(super) struct Wanted {
    controllers: u16,
    workers: u16,
    kept: Vec<ControllerAddresses>,
}

/// The processes to start; none if a single process is enough.
pub(super) fn wanted(options: &Options) -> Result<Option<Wanted>, Failure> {
    let unreadable = |error| Failure::new("E0109", Exit::Short, format!("the data folder could not be read: {error}"));
    let kept = if options.ephemeral { Vec::new() } else { addresses::load(&options.data_dir).map_err(unreadable)? };
    let had = u16::try_from(kept.len()).unwrap_or(u16::MAX).max(1);
    let controllers = options.controllers.unwrap_or(had);
    if controllers < had {
        let text = format!("\"{}\" contains a cluster of {had} controllers", options.data_dir.display());
        let names: Vec<&str> =
            kept.iter().skip(controllers.into()).map(|controller| controller.name.as_str()).collect();
        let next = format!(
            "start all and remove some: atlasctl dev --controllers {had}   then: atlasctl cluster remove {}",
            names.join(" and ")
        );
        return Err(Failure::new("E0115", Exit::Conflict, text).with_next(next));
    }
    let one = controllers == 1 && options.workers == 1;
    Ok((!one).then_some(Wanted { controllers, workers: options.workers, kept }))
}

pub(super) async fn serve(context: &Context, options: &Options, wanted: Wanted, env: Env) -> Result<Exit, Failure> {
    let (mut interrupt, mut terminate) = (watch(SignalKind::interrupt())?, watch(SignalKind::terminate())?);
    // Checked here, so that an error is reported once and not by each process.
    check(&options.settings).map_err(|error| Failure::usage(atlas_env::chain(&error)))?;
    let data = if options.ephemeral { DataDir::ephemeral() } else { DataDir::kept(&options.data_dir) };
    let data = data.map_err(|error| refusal_of_data(&error))?;
    let group = Group::new(data, &options.log, &options.settings, env.clone());
    let group = group.map_err(|error| Failure::usage(atlas_env::chain(&error)))?;
    let mut dev = Several { context, options, env, group, controllers: Vec::new() };
    let ended = tokio::select! {
        ended = dev.attend(wanted) => ended,
        () = asked_to_stop(&mut interrupt, &mut terminate) => {
            context.note("stopping");
            Ok(Exit::Done)
        }
    };
    tokio::select! {
        () = dev.group.shutdown() => {}
        _ = interrupt.recv() => {}
    }
    ended
}

fn check(settings: &DevSettings) -> Result<(), SettingsError> {
    settings.controller(PathBuf::new())?;
    settings.worker("w1", vec![String::from("127.0.0.1:1")], PathBuf::new())?;
    Ok(())
}

struct Several<'c> {
    context: &'c Context,
    options: &'c Options,
    env: Env,
    group: Group,
    controllers: Vec<ControllerAddresses>,
}

impl Several<'_> {
    /// Starts the cluster, prints the banner, and then watches its processes and the folder of agents.
    async fn attend(&mut self, wanted: Wanted) -> Result<Exit, Failure> {
        self.start_controllers(&wanted).await?;
        let addresses: Vec<String> = self.controllers.iter().map(|controller| controller.workers.to_string()).collect();
        let names: Vec<String> = (1..=wanted.workers).map(|number| format!("w{number}")).collect();
        for name in &names {
            self.group.start_worker(name, &addresses).await.map_err(|error| failed(&error))?;
        }
        let client = self.client()?;
        self.until("waiting for the workers", async || {
            let nodes: Vec<Node> = answers::read(&client.get(&["api", "nodes"], &[]).await?)?;
            Ok(names.iter().all(|name| nodes.iter().any(|node| node.id == *name && node.health == "ready")))
        })
        .await?;
        let mut watch = Watch::new(&self.options.agents);
        if self.options.demo {
            crate::command::dev::agents::register_bundled(&client).await?;
        }
        watch.look(self.context, &client, &self.env).await;
        let registered = client.get(&["api", "agents"], &[("all", "false")]).await?;
        let known = registered.as_array().map_or(0, Vec::len);
        let cluster: ClusterView = answers::read(&client.get(&["api", "cluster"], &[]).await?)?;
        let took = self.env.clock.monotonic();
        banner::print_several(
            self.context,
            self.options,
            &self.controllers,
            &cluster,
            names.len(),
            known,
            took,
            self.group.data_dir(),
        );
        if self.options.demo {
            let fell_short = demo::run(self.context, &client, &self.env).await;
            if self.options.once {
                return fell_short.map(|()| Exit::Done);
            }
            if let Err(failure) = fell_short {
                self.context.report(&failure);
            }
        }
        loop {
            tokio::select! {
                gone = self.group.gone() => self.note_end(&client, &gone).await?,
                () = self.env.clock.sleep(LOOK_INTERVAL) => {
                    self.restart_asked(&names);
                    watch.look(self.context, &client, &self.env).await;
                }
            }
        }
    }

    /// Starts the controllers of the data folder together; new controllers then join one by one.
    async fn start_controllers(&mut self, wanted: &Wanted) -> Result<(), Failure> {
        if wanted.kept.is_empty() || may_move(&wanted.kept, self.options.port) {
            let first = ControllerAddresses::choose(1, self.options.port);
            self.controllers = vec![first.map_err(|error| refusal_of_port(&error))?];
        } else {
            self.controllers = wanted.kept.clone();
            for controller in &self.controllers {
                controller.check().map_err(|error| refusal_of_port(&error))?;
            }
        }
        let all: Vec<_> = self.controllers.iter().map(|controller| (controller.clone(), None)).collect();
        self.group.start_controllers(&all).await.map_err(|error| failed(&error))?;
        self.store()?;
        for number in self.controllers.len() as u16 + 1..=wanted.controllers {
            let controller =
                ControllerAddresses::choose(number, self.options.port).map_err(|error| refusal_of_port(&error))?;
            self.join(controller).await?;
        }
        Ok(())
    }

    /// Starts one more controller, which joins with a token, and waits until it is a voter.
    async fn join(&mut self, controller: ControllerAddresses) -> Result<(), Failure> {
        let client = self.client()?;
        let token = client.post(&["api", "cluster", "join-tokens"], &[], &json!({"kind": "controller"})).await?;
        let token = token["token"].as_str().ok_or_else(|| Failure::answer("a token was expected"))?.to_owned();
        let at = self.controllers.first().map(|controller| controller.peers.to_string()).unwrap_or_default();
        let joining = Joining { at, token };
        self.group.start_controllers(&[(controller.clone(), Some(joining))]).await.map_err(|error| failed(&error))?;
        let name = controller.name.clone();
        self.until(&format!("{name} has a vote"), async || {
            let cluster: ClusterView = answers::read(&client.get(&["api", "cluster"], &[]).await?)?;
            let votes = |role: &str| role == "follower" || role == "leader";
            Ok(cluster.members.iter().any(|member| member.name == name && votes(&member.role)))
        })
        .await?;
        self.controllers.push(controller);
        // Stored only now, because each controller in the data folder's list must be a voter.
        self.store()
    }

    /// Stores the controllers in the data folder, where `dev kill` and `dev start` find them.
    fn store(&self) -> Result<(), Failure> {
        addresses::store(self.group.data_dir(), &self.controllers).map_err(|error| not_written(&error))
    }

    fn client(&self) -> Result<Client, Failure> {
        let all: Vec<String> =
            self.controllers.iter().map(|controller| format!("http://{}", controller.http)).collect();
        Client::new(&all.join(","))
    }

    /// Polls until `holds` returns true. A failure is not final, because the cluster may still be electing a leader.
    async fn until(&self, what: &str, holds: impl AsyncFn() -> Result<bool, Failure>) -> Result<(), Failure> {
        let deadline = self.env.clock.monotonic() + THERE_WITHIN;
        loop {
            let held = holds().await;
            if held == Ok(true) {
                return Ok(());
            }
            if self.env.clock.monotonic() > deadline {
                let why = held.err().map(|failure| format!(": {}", failure.message)).unwrap_or_default();
                let text = format!("not done within {} s: {what}{why}", THERE_WITHIN.as_secs());
                return Err(Failure::new("E0109", Exit::Short, text));
            }
            self.env.clock.sleep(Duration::from_millis(20)).await;
        }
    }

    /// Reports a process that ended unexpectedly; it stays down until the user restarts it. A controller that was
    /// removed from the cluster is dropped.
    async fn note_end(&mut self, client: &Client, gone: &ExitedProcess) -> Result<(), Failure> {
        let ExitedProcess { name, how, killed } = gone;
        let members: Option<Vec<Member>> =
            client.get(&["api", "cluster", "members"], &[]).await.ok().and_then(|members| answers::read(&members).ok());
        let is_controller = self.controllers.iter().any(|controller| controller.name == *name);
        if is_controller && members.is_some_and(|members| members.iter().all(|member| member.name != *name)) {
            return self.forget(name);
        }
        self.context.note(&format!("{name} stopped ({how}); restart it: atlasctl dev start {name}"));
        // One that was killed can be restarted; one that ended by itself would end again.
        if self.group.controllers() == 0 && !killed {
            return Err(Failure::new("E0109", Exit::Short, "the last controller stopped"));
        }
        Ok(())
    }
}

impl Several<'_> {
    /// Starts the processes that `atlasctl dev start` requested.
    fn restart_asked(&mut self, workers: &[String]) {
        for name in request::take(self.group.data_dir()) {
            if self.group.is_running(&name) {
                continue;
            }
            let controller = self.controllers.iter().find(|controller| controller.name == name);
            let started = match controller {
                Some(controller) => match controller.check() {
                    Ok(()) => self.group.restart_controller(controller).map_err(|error| failed(&error)),
                    Err(error) => Err(refusal_of_port(&error)),
                },
                None if workers.contains(&name) => {
                    let addresses: Vec<String> =
                        self.controllers.iter().map(|controller| controller.workers.to_string()).collect();
                    self.group.restart_worker(&name, &addresses).map_err(|error| failed(&error))
                }
                None => continue,
            };
            match started {
                Ok(()) => self.context.note(&format!("{name} restarted")),
                Err(failure) => self.context.report(&failure),
            }
        }
    }

    /// Drops a controller that was removed from the cluster, with its data.
    fn forget(&mut self, name: &str) -> Result<(), Failure> {
        let written = |error| not_written(&error);
        if let Some(at) = self.controllers.iter().position(|controller| controller.name == name) {
            let controller = self.controllers.remove(at);
            self.store()?;
            std::fs::remove_dir_all(controller.data_dir(self.group.data_dir())).map_err(written)?;
        }
        self.context.note(&format!("{name} was removed from the cluster and its data deleted"));
        Ok(())
    }
}

/// Whether a cluster of one controller gets new addresses: another port is asked for, or its own are in use. Others know several by theirs.
fn may_move(kept: &[ControllerAddresses], port: u16) -> bool {
    match kept {
        [only] if only.name == "c1" => port != 0 && only.http.port() != port || only.check().is_err(),
        _ => false,
    }
}

fn not_written(error: &std::io::Error) -> Failure {
    Failure::new("E0109", Exit::Short, format!("the data folder could not be written: {error}"))
}

fn failed(error: &ChildError) -> Failure {
    Failure::new("E0109", Exit::Short, atlas_env::chain(error))
}
