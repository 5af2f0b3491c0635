//! Attempts that wait: their requests to the slot machine, and the messages of their jobs.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use atlas_slots::Input;
use atlas_types::{Assignment, FencingToken, JobId, Mail, Message, Park, ParkResult};
use atlas_wire::session::ToLeader;
use tokio::sync::oneshot;

use super::Pump;
use crate::attempt::Resumed;

/// The waits of attempts with a journal.
#[derive(Default)]
pub(crate) struct Waits {
    /// Attempts that do nothing until they are resumed.
    resume: BTreeMap<FencingToken, oneshot::Sender<Resumed>>,
    /// The messages that each attempt has not read, by number.
    mail: BTreeMap<FencingToken, BTreeMap<u64, Arc<Message>>>,
    /// Attempts that wait for the message of this number.
    readers: BTreeMap<FencingToken, (u64, oneshot::Sender<Arc<Message>>)>,
}

impl Waits {
    /// Adds messages of an attempt, and passes on the one for which it waits.
    pub(super) fn receive(&mut self, token: FencingToken, mail: Mail) {
        self.mail.entry(token).or_default().extend((mail.first..).zip(mail.messages));
        self.pass_on(token);
    }

    /// An attempt waits for the message of a number, after it has read all before that.
    fn read(&mut self, token: FencingToken, number: u64, answer: oneshot::Sender<Arc<Message>>) {
        if let Some(mail) = self.mail.get_mut(&token) {
            *mail = mail.split_off(&number);
        }
        self.readers.insert(token, (number, answer));
        self.pass_on(token);
    }

    fn pass_on(&mut self, token: FencingToken) {
        let waited = self.readers.get(&token).map(|(number, _)| *number);
        let message = waited.and_then(|number| self.mail.get(&token)?.get(&number).cloned());
        let Some(message) = message else { return };
        if let Some((_, answer)) = self.readers.remove(&token) {
            // An attempt that has stopped waiting reads it later.
            let _ = answer.send(message);
        }
    }
}

impl Pump {
    /// Handles a wait of an attempt. If the attempt has ended, its request is dropped, which ends it.
    pub(super) fn on_wait(
        &mut self,
        token: FencingToken,
        (park, waited): (Park, Duration),
        answer: oneshot::Sender<Resumed>,
    ) {
        if self.attempts.contains_key(&token) {
            self.waits.resume.insert(token, answer);
            self.step(Input::Waits { token, park, waited });
        }
    }

    /// Handles an attempt that waits for a message.
    pub(super) fn on_read(&mut self, token: FencingToken, number: u64, answer: oneshot::Sender<Arc<Message>>) {
        if self.attempts.contains_key(&token) {
            self.waits.read(token, number, answer);
        }
    }

    /// Handles messages from the leader. They may arrive before their attempt runs.
    pub(super) fn on_messages(&mut self, token: FencingToken, mail: Mail) {
        let held = self.slots.held();
        self.waits.mail.retain(|token, _| held.iter().any(|lease| lease.token == *token));
        if held.iter().any(|lease| lease.token == token) {
            self.waits.receive(token, mail);
        }
    }

    /// Handles the messages that a welcome has for attempts that run: they were delivered while there was no session.
    pub(super) fn read_welcome(&mut self, leases: &[Assignment]) {
        for lease in leases {
            if let Some(journal) = lease.journal.as_ref().filter(|_| self.attempts.contains_key(&lease.token)) {
                self.waits.receive(lease.token, journal.mail.clone());
            }
        }
    }

    /// Handles the leader's answer to a request to park.
    pub(super) fn on_park_ack(&mut self, number: u64, result: ParkResult) {
        self.step(Input::ParkAnswered { number, result });
    }

    /// Sends a request to park after the lines of the attempt, which are stored with it.
    pub(super) fn send_park(&mut self, number: u64, job: JobId, token: FencingToken, park: Park) {
        while self.welcomed && self.send_some_events() {}
        self.send(ToLeader::Park { number, job, token, park });
    }

    pub(super) fn resume(&mut self, token: FencingToken, refused: Resumed) {
        if let Some(answer) = self.waits.resume.remove(&token) {
            // An attempt that has ended does not wait for it.
            let _ = answer.send(refused);
        }
    }

    /// Removes the waits of an attempt that has ended or is being stopped.
    pub(super) fn forget_waits(&mut self, token: FencingToken) {
        self.waits.resume.remove(&token);
        self.waits.mail.remove(&token);
        self.waits.readers.remove(&token);
    }
}
