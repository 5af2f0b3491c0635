//! What providers get: the data that all slots share, and the attempt's side of its slot.

use std::sync::Arc;
use std::time::Duration;

use atlas_env::Env;
use atlas_llm::client::Client;
use atlas_llm::local::LocalModels;
use atlas_types::{Assignment, FencingToken, SecretText, StepKey, StreamEvent};
use tokio::sync::mpsc;

use super::{Collection, Settings};
use crate::attempt::{Asker, SlotEvent, SpawnCall, ToolCall};
use crate::journal::{Journal, hashed};
use crate::mailbox::{Answer, Mailbox};
use crate::payloads::Transfers;
use crate::process::Supervisor;
use crate::secrets::{Said, Secrets};
use crate::texts::Lines;
use crate::tries::TryDoor;

/// The data that all slots of a worker share.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) env: Env,
    pub(crate) settings: Arc<Settings>,
    pub(crate) supervisor: Arc<Supervisor>,
    pub(crate) transfers: Transfers,
    pub(crate) told: mpsc::Sender<SlotEvent>,
    /// Lets tries of calls of limited models begin.
    pub(crate) tries: TryDoor,
    /// Calls models; its connections are shared.
    pub(crate) models: Client,
    /// Runs models of the provider `local`.
    pub(crate) local: Arc<dyn LocalModels>,
    /// Connections to MCP servers.
    pub(crate) servers: atlas_mcp::Pool,
    /// Where sources of document bases may be.
    pub(crate) collection: Arc<Collection>,
}

impl Shared {
    /// The journal of an attempt.
    pub(crate) fn journal(&self, assignment: &Assignment) -> Journal {
        Journal::new((self.env.clone(), self.transfers.clone()), self.told.clone(), assignment)
    }
}

/// The attempt's side of a slot: the clock, the orders, and the channel for events.
pub(crate) struct Control<'a> {
    pub(crate) env: &'a Env,
    pub(crate) mailbox: &'a Mailbox,
    /// The enforced limits of the contract for the attempt's program. None if the contract states none.
    pub(crate) limits: Option<String>,
    /// How the attempt's programs are confined. None if they have the rights of the worker.
    pub(crate) sandbox: Option<String>,
    /// The secrets of the attempt.
    pub(crate) secrets: Secrets,
    said: Said,
    told: &'a mpsc::Sender<SlotEvent>,
    token: FencingToken,
    log_bytes_left: usize,
}

impl<'a> Control<'a> {
    /// The side of an attempt that begins now.
    pub(crate) fn new(shared: &'a Shared, mailbox: &'a Mailbox, token: FencingToken) -> Self {
        Self {
            env: &shared.env,
            mailbox,
            limits: None,
            sandbox: None,
            secrets: Secrets::default(),
            said: Said::default(),
            told: &shared.told,
            token,
            log_bytes_left: shared.settings.log_bytes_max,
        }
    }
}

impl Control<'_> {
    /// Monotonic time.
    pub(crate) fn now(&self) -> Duration {
        self.env.clock.monotonic()
    }

    /// Removes another value from the texts of the attempt from now on.
    pub(crate) fn hide(&mut self, name: &str, value: SecretText) {
        self.secrets.hide(name, value);
        self.said.hide(&self.secrets);
    }

    /// Passes on a piece of a model's answer, for current followers.
    pub(crate) async fn delta(&mut self, call: (u32, u32), text: String) {
        for (call, text) in self.said.piece(call, text) {
            let _ = self.told.send(SlotEvent::Delta { token: self.token, call, text }).await;
        }
    }

    /// Passes on what was held back of the last piece, because a secret might have followed.
    pub(crate) async fn end_deltas(&mut self) {
        if let Some((call, text)) = self.said.rest() {
            let _ = self.told.send(SlotEvent::Delta { token: self.token, call, text }).await;
        }
    }

    /// Sets the secrets of the attempt.
    pub(crate) fn keep(&mut self, secrets: Secrets) {
        self.said = Said::new(&secrets);
        self.secrets = secrets;
    }

    /// Spawns a job. The answer arrives in the mailbox.
    pub(crate) async fn spawn(&self, call: SpawnCall) {
        let _ = self.told.send(SlotEvent::Spawn { token: self.token, call }).await;
    }

    /// Calls a tool of the platform. The answer arrives in the mailbox. `kept` is the key of a call that other attempts repeat, and whether there
    /// were some.
    pub(crate) async fn tool(&self, call: u64, tool: String, arguments: Arc<[u8]>, kept: Option<(StepKey, bool)>) {
        let (key, again) = kept.unwrap_or_else(|| (hashed(&(self.token.0, call)), false));
        let asker = Asker::Program { token: self.token, call };
        let call = ToolCall { tool, arguments, key, again, asker };
        let _ = self.told.send(SlotEvent::Tool { token: self.token, call }).await;
    }

    /// Stops waiting for a spawned job.
    pub(crate) async fn leave(&self, call: u64) {
        let _ = self.told.send(SlotEvent::Leave { token: self.token, call }).await;
    }

    /// The answers to calls of the attempt that have arrived.
    pub(crate) fn answers(&self) -> Vec<(u64, Answer)> {
        self.mailbox.answers(self.token)
    }

    /// False once the attempt has used up its log limit. Further output then need not be split into lines.
    pub(crate) fn listens(&self) -> bool {
        self.log_bytes_left > 0
    }

    /// Passes a line on. Lines beyond the attempt's limit are dropped, which is logged once.
    pub(crate) async fn say(&mut self, kind: atlas_types::StreamKind, level: &str, text: String) {
        if self.log_bytes_left == 0 {
            return;
        }
        let (level, text) = if text.len() >= self.log_bytes_left {
            self.log_bytes_left = 0;
            ("warning", "the attempt reached its limit of log bytes; further lines are dropped".to_owned())
        } else {
            self.log_bytes_left -= text.len();
            (level, self.said.line(text, Lines::LINE_BYTES_MAX))
        };
        let event = StreamEvent { number: 0, at: self.env.clock.wall(), kind, level: level.to_owned(), text };
        // If the pump has ended, the event is dropped.
        let _ = self.told.send(SlotEvent::Event { token: self.token, event }).await;
    }
}
