//! Clients: they submit with a request id, repeat while the answer is unknown, read, wait and cancel.

use atlas_types::{CancelJob, Command, ForkJob, JobId, Outcome, Rejection};

use crate::member::Role;
use crate::message::{Answer, Ask, Client, Event, Member, ToMember};
use crate::options::{MS, SECOND};
use crate::rng::mix;
use crate::workload::{self, Agent};
use crate::world::World;

/// What a client is at.
#[derive(Debug, Clone)]
enum Doing {
    Submit {
        request: atlas_types::Request,
    },
    Cancel {
        job: JobId,
    },
    Fork {
        request: atlas_types::Request,
    },
    Read {
        job: JobId,
    },
    /// Reads until the job has ended.
    Wait {
        job: JobId,
    },
    Setup {
        request: atlas_types::Request,
    },
}

pub(crate) struct ClientState {
    /// What is to be done first, in reverse.
    setup: Vec<atlas_types::Request>,
    jobs_left: u64,
    jobs: Vec<JobId>,
    doing: Option<Doing>,
    /// The number of the question that is open; answers to older ones come too late.
    asked: u64,
    /// The least state that a read may show, by its number of entries.
    read_floor: atlas_types::Seq,
    /// The question was put before and its outcome is unknown.
    unknown: bool,
}

impl ClientState {
    pub(crate) fn new(setup: Vec<atlas_types::Request>, jobs: u64) -> Self {
        Self {
            setup: setup.into_iter().rev().collect(),
            jobs_left: jobs,
            jobs: Vec::new(),
            doing: None,
            asked: 0,
            read_floor: atlas_types::Seq(0),
            unknown: false,
        }
    }

    /// The least state that may answer its question `op`; none if it asks something else by now.
    pub(crate) fn floor_of(&self, op: u64) -> Option<atlas_types::Seq> {
        (self.asked == op).then_some(self.read_floor)
    }

    pub(crate) fn is_done(&self) -> bool {
        self.setup.is_empty() && self.jobs_left == 0 && self.doing.is_none()
    }
}

impl World {
    pub(crate) fn client_acts(&mut self, client: Client) {
        if self.clients[client].doing.is_none() {
            let doing = self.next_doing(client);
            self.clients[client].doing = doing;
            self.clients[client].unknown = false;
        }
        let Some(doing) = self.clients[client].doing.clone() else { return };
        let op = self.fresh();
        self.clients[client].asked = op;
        self.clients[client].read_floor = self.oracle.seq();
        let ask = match doing {
            Doing::Submit { request } | Doing::Fork { request } | Doing::Setup { request } => {
                Ask::Change(Box::new(request))
            }
            Doing::Cancel { job } => {
                let command = Command::CancelJob(CancelJob { job, running: true });
                let request = workload::named(&format!("cancel-{}", job.0), command);
                Ask::Change(Box::new(workload::within(self.oracle.namespace_of(job), request)))
            }
            Doing::Read { job } | Doing::Wait { job } => Ask::Read(job),
        };
        let member = self.member_to_ask();
        self.send_to_member(member, ToMember::Client { client, op, ask });
        self.after(2 * SECOND, Event::ClientTimeout(client, op));
    }

    /// Mostly one that takes itself for the leader, as a client would that was told of it a while ago.
    fn member_to_ask(&mut self) -> Member {
        let all: Vec<Member> = (0..self.members.len()).collect();
        let lead = |&m: &Member| matches!(self.members[m].role, Role::Leader(_));
        let leaders: Vec<Member> = all.iter().copied().filter(lead).collect();
        let asked = if leaders.is_empty() || self.rng.chance(300) { all } else { leaders };
        self.rng.pick(&asked)
    }

    fn next_doing(&mut self, client: Client) -> Option<Doing> {
        if let Some(request) = self.clients[client].setup.pop() {
            return Some(Doing::Setup { request });
        }
        // Nobody can submit before the agents are there.
        if client != 0 && !self.clients[0].setup.is_empty() {
            self.after(100 * MS, Event::ClientActs(client));
            return None;
        }
        let jobs = &self.clients[client].jobs;
        if !jobs.is_empty() && self.rng.chance(450) {
            // The latest is what members differ about.
            let any = self.rng.pick(&self.clients[client].jobs);
            let latest = self.clients[client].jobs.last().copied();
            let job = if self.rng.chance(600) { latest.unwrap_or(any) } else { any };
            return Some(match self.rng.below(12) {
                0..2 => Doing::Cancel { job },
                2..5 => Doing::Wait { job },
                5..10 => Doing::Read { job },
                _ => self.fork(client).unwrap_or(Doing::Read { job }),
            });
        }
        if self.clients[client].jobs_left == 0 {
            return None;
        }
        self.clients[client].jobs_left -= 1;
        let op = self.fresh();
        let id = JobId(self.rng.next());
        let agent = self.rng.pick(&Agent::ALL);
        let priority = self.rng.pick(&[0, 0, 0, 5, -1]);
        let mut request = workload::submit(op, id, agent, priority);
        if mix(id.0 ^ 1).is_multiple_of(10) {
            if let Command::SubmitJob(submit) = &mut request.command {
                submit.verdict = workload::asked(id, agent);
            }
            self.after_up_to(3 * SECOND, Event::Approve(id, workload::LOOKS));
        }
        if workload::OF_TEAM.contains(&agent) && self.rng.chance(500) {
            request = workload::within(workload::team(), request);
        }
        Some(Doing::Submit { request })
    }

    /// A fork of one of the client's jobs that has recorded steps, if there is one.
    fn fork(&mut self, client: Client) -> Option<Doing> {
        let state = self.oracle.state();
        let journal = |id: &JobId| {
            let job = state.job(*id).filter(|job| Agent::named(&job.agent) == Agent::Journaling)?;
            let journal = state.journal(*id).or(job.journal.as_ref()).filter(|journal| journal.next() > 0)?;
            Some((*id, journal.clone()))
        };
        let mut found: Vec<_> = self.clients[client].jobs.iter().filter_map(journal).collect();
        if found.is_empty() {
            return None;
        }
        let (job, journal) = found.swap_remove(self.rng.below(found.len() as u64) as usize);
        let steps = self.rng.range(1, journal.next());
        let cut = self.cut(&journal, steps);
        let (op, id) = (self.fresh(), JobId(self.rng.next()));
        let (pin, folded) = (workload::pin(Agent::Journaling), atlas_types::StepUsage::default());
        let command = ForkJob { job, id, steps, pin, model: None, cut, folded, added: None };
        Some(Doing::Fork { request: workload::named(&format!("fork-{op}"), Command::ForkJob(command)) })
    }

    pub(crate) fn client_answered(&mut self, client: Client, op: u64, answer: Answer) {
        if self.clients[client].asked != op {
            return;
        }
        let Some(doing) = self.clients[client].doing.clone() else { return };
        self.clients[client].asked = 0;
        match answer {
            Answer::NotLeader => return self.ask_again(client),
            Answer::Unknown => {
                self.coverage.count("unknown outcomes");
                self.clients[client].unknown = true;
                return self.ask_again(client);
            }
            Answer::Outcome(outcome) => {
                if !self.take_outcome(client, &doing, outcome) {
                    return self.ask_again(client);
                }
            }
            Answer::Job { job, seq } => {
                let (Doing::Read { job: id } | Doing::Wait { job: id }) = doing else { return };
                self.oracle.check_read(id, job.as_deref(), seq, self.clients[client].read_floor);
                // A job that was pruned had ended.
                let ended = job.is_none_or(|job| job.status.is_terminal());
                if matches!(doing, Doing::Wait { .. }) && !ended && self.rng.chance(900) {
                    return self.ask_again(client);
                }
            }
        }
        self.clients[client].doing = None;
        let pause_max = self.rng.pick(&[30, 500, 1_500]);
        let pause = self.rng.range(1, pause_max) * MS;
        self.after(pause, Event::ClientActs(client));
    }

    /// Takes a definite answer; false if the client asks again.
    fn take_outcome(&mut self, client: Client, doing: &Doing, outcome: Result<Outcome, Rejection>) -> bool {
        match (doing, outcome) {
            (Doing::Setup { .. }, outcome) => outcome.is_ok(),
            (Doing::Submit { request }, Ok(Outcome::Submitted { job, repeated })) => {
                self.coverage.count("acknowledged submissions");
                if repeated {
                    self.coverage.count("repeated submissions");
                }
                let Command::SubmitJob(command) = &request.command else { return true };
                self.oracle.acknowledged(workload::op_of(&command.input), job);
                self.clients[client].jobs.push(job);
                true
            }
            (Doing::Submit { .. }, Err(Rejection::QueueFull { .. })) => {
                self.coverage.count("refused submissions");
                false
            }
            (Doing::Fork { .. }, Ok(Outcome::Submitted { job, repeated })) => {
                if repeated {
                    self.coverage.count("repeated submissions");
                }
                self.oracle.fork_acknowledged(job);
                self.clients[client].jobs.push(job);
                true
            }
            (Doing::Fork { .. }, Err(Rejection::QueueFull { .. })) => {
                self.coverage.count("refused submissions");
                false
            }
            // The journals of other jobs have all the room.
            (Doing::Fork { .. }, Err(Rejection::LimitReached { .. })) => true,
            (Doing::Fork { request }, Err(Rejection::JournalLength { .. })) => {
                if let Command::ForkJob(command) = &request.command {
                    self.oracle.check_folded(command.job, command.steps);
                }
                // A door reads the journal again, and cuts the fold.
                true
            }
            (Doing::Fork { request }, Err(Rejection::UnknownJob { .. })) => {
                if let Command::ForkJob(command) = &request.command {
                    self.oracle.check_unknown(command.job);
                }
                true
            }
            // The setup of another client is not there yet.
            (Doing::Submit { .. }, Err(Rejection::StaleAgent)) => false,
            (Doing::Cancel { job }, Ok(Outcome::Cancelled { accepted })) => {
                if accepted {
                    self.coverage.count("cancels accepted");
                }
                self.oracle.cancelled(*job, accepted);
                true
            }
            (Doing::Cancel { job }, Err(Rejection::UnknownJob { .. })) => {
                self.oracle.check_unknown(*job);
                true
            }
            (doing, outcome) => {
                self.oracle.violate(format!("{doing:?} was answered {outcome:?}"));
                true
            }
        }
    }

    fn ask_again(&mut self, client: Client) {
        let pause = self.rng.range(20, 400) * MS;
        self.after(pause, Event::ClientActs(client));
    }

    pub(crate) fn client_timeout(&mut self, client: Client, op: u64) {
        if self.clients[client].asked == op {
            self.coverage.count("unknown outcomes");
            self.clients[client].asked = 0;
            self.ask_again(client);
        }
    }
}
