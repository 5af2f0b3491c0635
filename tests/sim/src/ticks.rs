//! Triggers over many changes of leader, in virtual time: no time fires twice, and none is missing.
//!
//! Real: the replicated state, the formats, the head, the commands of triggers, and what `atlas-triggers` decides about a time that has
//! come. Modelled: Raft, and the task of the leader, which plans and fires as the one of `atlas-service` does. A leader that was deposed
//! goes on as if it led for a while, what it had in flight is committed, lost, or arrives after entries of the next leader, members
//! restart from snapshots, and their wall clocks differ and jump.
//!
//! Each trigger fires every minute and makes up for what passed without a leader, so its jobs must be those of consecutive minutes. Every
//! other one delays its firings by up to five minutes, which changes nothing about that.

use std::collections::BTreeMap;
use std::sync::Arc;

use atlas_objects::{TriggerStatus, canonical};
use atlas_replica::{Head, PlannedEntry, Replica};
use atlas_state::State;
use atlas_triggers::{Before, Definition, Due};
use atlas_types::{
    ClusterTime, Command, Event, EventRecord, Expect, Failure, FailureKind, FireTrigger, FiredBy, JobChange, JobId,
    Level, Micros, Namespace, Object, ObjectKind, ObjectName, Observation, ObserveObjects, Origin, Payload,
    PayloadBody, PutObject, Request, SubmitJob, Timestamp, TriggerStart, Verdict,
};
use serde_json::{Value, json};

use crate::options::{MS, SECOND};
use crate::rng::Rng;
use crate::world::CLUSTER_ID;

const MINUTE: u64 = 60 * SECOND;
/// Most triggers that are planned in one look.
const BATCH_MAX: usize = 64;
/// Most that are fired: few, so that many entries can be lost.
const FIRED_MAX: usize = 3;
/// Entries between two full checks of the invariants.
const CHECK_EVERY: usize = 16;
/// When the simulation begins, in microseconds since 1970: the beginning of a minute.
const BEGIN: i64 = 1_700_000_040_000_000;

/// What is simulated.
#[derive(Debug, Clone)]
pub struct Ticks {
    /// Decides everything else.
    pub seed: u64,
    pub triggers: u64,
    /// Virtual minutes, each a time for each trigger.
    pub minutes: u64,
    /// Changes of leader in a minute, on average.
    pub changes_per_minute: u64,
    /// Whether the state forgets what was planned: a mistake that must be found.
    pub unchecked: bool,
}

impl Ticks {
    /// What a seed simulates: 1,000 times with 60 changes of leader.
    pub fn of(seed: u64) -> Self {
        Self { seed, triggers: 50, minutes: 20, changes_per_minute: 3, unchecked: false }
    }
}

/// What a simulation has seen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ticked {
    /// Times that fired.
    pub ticks: u64,
    pub leader_changes: u64,
    pub entries: u64,
    /// Entries that were lost with their leader.
    pub lost: u64,
    /// Entries of a deposed leader that the next one committed.
    pub inherited: u64,
    /// Entries that were planned on another state.
    pub stale: u64,
    /// Firings that the state refused.
    pub refused: u64,
    pub restarts: u64,
    pub clock_jumps: u64,
    pub invariant_checks: u64,
}

impl Ticked {
    /// Adds what another simulation has seen.
    pub fn add(&mut self, other: &Self) {
        self.ticks += other.ticks;
        self.leader_changes += other.leader_changes;
        self.entries += other.entries;
        self.lost += other.lost;
        self.inherited += other.inherited;
        self.stale += other.stale;
        self.refused += other.refused;
        self.restarts += other.restarts;
        self.clock_jumps += other.clock_jumps;
        self.invariant_checks += other.invariant_checks;
    }
}

/// A member that believes that it leads.
struct Lead {
    head: Head,
    /// The cluster's clock when it took over, and the time.
    clock: (ClusterTime, u64),
    in_flight: Option<(u64, PlannedEntry)>,
    looks_at: u64,
    /// When a deposed leader learns that it is one.
    until: u64,
}

struct Member {
    replica: Replica,
    /// Entries of the log that it has applied.
    applied: usize,
    wall_offset: i64,
    /// Until when its wall clock is in doubt, so that it fires nothing.
    doubt_until: u64,
    lead: Option<Lead>,
}

struct World {
    options: Ticks,
    rng: Rng,
    now: u64,
    log: Vec<Arc<[u8]>>,
    members: Vec<Member>,
    leader: Option<usize>,
    elects_at: u64,
    /// An entry of a deposed leader that comes after entries of the next one.
    late: Option<Arc<[u8]>>,
    truth: Replica,
    /// The last time that fired, of each trigger.
    fired: BTreeMap<u64, i64>,
    seen: Ticked,
}

/// Simulates; an error says what was violated, and how to see it again.
pub fn run_ticks(options: &Ticks) -> Result<Ticked, String> {
    let mut world = World::new(options.clone());
    let result = world.run();
    result.map(|()| world.seen).map_err(|violation| {
        let seed = options.seed;
        format!("{violation}\n  repeat: cargo run -p atlas-sim -- --ticks 1 --seed {seed}")
    })
}

impl World {
    fn new(options: Ticks) -> Self {
        let new = || Replica::new(State::new(CLUSTER_ID));
        let member = || Member { replica: new(), applied: 0, wall_offset: 0, doubt_until: 0, lead: None };
        Self {
            rng: Rng::new(options.seed ^ 0x71C4_5000),
            now: 0,
            log: Vec::new(),
            members: (0..3).map(|_| member()).collect(),
            leader: None,
            elects_at: 0,
            late: None,
            truth: new(),
            fired: BTreeMap::new(),
            seen: Ticked::default(),
            options,
        }
    }

    fn run(&mut self) -> Result<(), String> {
        let end = self.options.minutes * MINUTE;
        // The last changes of leader are over for some time when it is looked whether all has fired.
        let calm = end.saturating_sub(MINUTE);
        while self.now < end {
            self.now += self.rng.range(5, 120) * MS;
            if self.now < calm {
                self.fault();
            }
            self.elect();
            for member in 0..self.members.len() {
                self.follow(member)?;
                self.lead(member)?;
            }
        }
        self.finish()
    }

    /// Perhaps something goes wrong: the mean step is 62 ms long.
    fn fault(&mut self) {
        let change = self.options.changes_per_minute * 62 * 1_000 / (60 * 1_000);
        // Leaders go more often while an entry is in flight: that is what matters.
        let lead = self.leader.and_then(|leader| self.members[leader].lead.as_ref());
        let busy = lead.is_some_and(|lead| lead.in_flight.is_some());
        let change = if busy { 40 * change } else { change };
        if self.leader.is_some() && self.rng.below(1_000) < change.max(1) {
            self.depose();
        }
        let member = self.rng.below(3) as usize;
        match self.rng.below(2_000) {
            0..4 if self.leader != Some(member) => self.restart(member),
            4..10 => self.members[member].wall_offset = self.rng.range(0, 3_000) as i64 * MS as i64 - 1_500 * MS as i64,
            10 => {
                self.seen.clock_jumps += 1;
                let seconds = self.rng.pick(&[-3_600, -90, 90, 3_600]);
                self.members[member].wall_offset = seconds * SECOND as i64;
                // The jump is noticed at once, and the clock is set right after a while.
                self.members[member].doubt_until = self.now + self.rng.range(1, 40) * SECOND;
            }
            _ => {}
        }
        let now = self.now;
        for member in &mut self.members {
            if member.doubt_until > 0 && member.doubt_until <= now {
                (member.doubt_until, member.wall_offset) = (0, 0);
            }
        }
    }

    fn depose(&mut self) {
        let Some(old) = self.leader.take() else { return };
        self.elects_at = self.now + self.rng.range(150, 600) * MS;
        let unaware = self.now + self.rng.range(0, 20_000) * MS;
        let Some(lead) = self.members[old].lead.as_mut() else { return };
        lead.until = unaware;
        let Some((_, planned)) = lead.in_flight.take() else { return };
        let bytes: Arc<[u8]> = planned.entry_bytes.as_slice().into();
        match self.rng.below(10) {
            0..5 => self.seen.lost += 1,
            5..9 => {
                self.seen.inherited += 1;
                self.log.push(bytes);
            }
            _ => self.late = Some(bytes),
        }
    }

    fn elect(&mut self) {
        if self.leader.is_some() || self.now < self.elects_at {
            return;
        }
        let member = self.rng.below(3) as usize;
        // A former leader that does not know that it is none may be elected again.
        self.members[member].lead = None;
        (self.leader, self.seen.leader_changes) = (Some(member), self.seen.leader_changes + 1);
    }

    /// Applies what is committed, or some of it. An elected member leads once it has applied all.
    fn follow(&mut self, member: usize) -> Result<(), String> {
        let elected = self.leader == Some(member);
        let believes = self.members[member].lead.as_ref().is_some_and(|lead| elected || lead.until > self.now);
        if believes || !(elected || self.rng.chance(300)) {
            return Ok(());
        }
        self.members[member].lead = None;
        let behind = self.log.len() - self.members[member].applied;
        let some = if elected || behind == 0 { behind } else { self.rng.range(1, behind as u64) as usize };
        for _ in 0..some {
            let entry = Arc::clone(&self.log[self.members[member].applied]);
            self.apply(member, &entry)?;
        }
        if elected {
            self.take_over(member);
        }
        Ok(())
    }

    fn apply(&mut self, member: usize, entry: &[u8]) -> Result<(), String> {
        let controller = &mut self.members[member];
        let applied = controller.replica.apply(entry).map_err(|halt| format!("a member stopped: {halt:?}"))?;
        controller.applied += 1;
        self.seen.stale += u64::from(applied.stale);
        let applied = controller.applied;
        self.look_at_truth(applied)
    }

    fn take_over(&mut self, member: usize) {
        let state = self.members[member].replica.state().clone();
        let clock = (state.clock(), self.now);
        let mut head = Head::new(state);
        head.raise(Level::CURRENT);
        let lead = Lead { head, clock, in_flight: None, looks_at: self.now, until: u64::MAX };
        self.members[member].lead = Some(lead);
    }

    /// What a member does that leads, or believes so.
    fn lead(&mut self, member: usize) -> Result<(), String> {
        let leads = self.leader == Some(member);
        let (now, wall) = (self.now, self.wall(member));
        let Some(lead) = self.members[member].lead.as_mut() else { return Ok(()) };
        if let Some((_, planned)) = lead.in_flight.take_if(|(at, _)| leads && *at <= now) {
            return self.commit(member, &planned);
        }
        if lead.in_flight.is_some() || lead.looks_at > now {
            return Ok(());
        }
        lead.looks_at = now + 250 * MS;
        let doubt = self.members[member].doubt_until > now;
        let state = self.members[member].lead.as_ref().map(|lead| lead.head.state().clone());
        let Some(state) = state else { return Ok(()) };
        let mut requests = self.wanted(&state);
        requests.extend(planned(&state));
        if !doubt {
            requests.extend(self.due(&state, wall));
        }
        let delay = if self.rng.chance(100) { self.rng.range(1, 900) } else { self.rng.range(1, 30) } * MS;
        let Some(lead) = self.members[member].lead.as_mut() else { return Ok(()) };
        let elapsed = Micros(now - lead.clock.1);
        let planned = lead.head.plan(requests, wall, lead.clock.0.plus(elapsed), &mut |_: &State, _: usize| Vec::new());
        self.seen.refused += planned.outcomes.iter().filter(|outcome| outcome.is_err()).count() as u64;
        if planned.panics > 0 {
            return Err("a command panicked".to_owned());
        }
        if !planned.is_empty() {
            lead.in_flight = Some((now + delay, planned));
        }
        Ok(())
    }

    fn commit(&mut self, member: usize, planned: &PlannedEntry) -> Result<(), String> {
        let bytes: Arc<[u8]> = planned.entry_bytes.as_slice().into();
        self.log.push(Arc::clone(&bytes));
        let controller = &mut self.members[member];
        controller.applied += 1;
        controller.replica.adopt(planned).map_err(|halt| format!("the leader stopped: {halt:?}"))?;
        let applied = controller.applied;
        self.look_at_truth(applied)?;
        // A proposal that was repeated below is in the log twice, and one of a former leader may come late: both are stale.
        let again = if self.rng.chance(30) { Some(bytes) } else { self.late.take() };
        if let Some(bytes) = again {
            self.log.push(Arc::clone(&bytes));
            self.apply(member, &bytes)?;
        }
        Ok(())
    }

    /// Looks at each committed entry once, in order.
    fn look_at_truth(&mut self, applied: usize) -> Result<(), String> {
        while (self.seen.entries as usize) < applied {
            let entry = Arc::clone(&self.log[self.seen.entries as usize]);
            self.seen.entries += 1;
            let applied = self.truth.apply(&entry).map_err(|halt| format!("an entry stops every replica: {halt:?}"))?;
            applied.events.iter().try_for_each(|record| self.look_at(record))?;
            if (self.seen.entries as usize).is_multiple_of(CHECK_EVERY) {
                self.seen.invariant_checks += 1;
                self.truth.state().check_invariants().map_err(|violation| format!("{violation:?}"))?;
            }
        }
        Ok(())
    }

    /// The jobs of a trigger are those of consecutive minutes.
    fn look_at(&mut self, record: &EventRecord) -> Result<(), String> {
        let Event::Job { change: JobChange::Submitted, job, .. } = &record.event else { return Ok(()) };
        let input = match &job.input.body {
            PayloadBody::Inline(bytes) => serde_json::from_slice::<Value>(bytes).ok(),
            PayloadBody::Artifact { .. } => None,
        };
        let input = input.ok_or("a job without its input")?;
        let (Some(trigger), Some(tick)) = (input["trigger"].as_u64(), input["tick"].as_i64()) else {
            return Err(format!("a job of no trigger: {input}"));
        };
        self.seen.ticks += 1;
        let before = self.fired.insert(trigger, tick);
        match before {
            Some(before) if tick == before => Err(format!("trigger {trigger} fired twice for {tick}")),
            Some(before) if tick != before + MINUTE as i64 => {
                Err(format!("trigger {trigger} fired for {tick} after {before}: a time is missing"))
            }
            _ => Ok(()),
        }
    }

    /// All triggers have fired up to the last minute, and each as often as minutes have passed.
    fn finish(&mut self) -> Result<(), String> {
        if self.options.minutes < 3 {
            return Ok(());
        }
        let latest = BEGIN + ((self.options.minutes - 2) * MINUTE) as i64;
        for trigger in 0..self.options.triggers {
            match self.fired.get(&trigger) {
                Some(tick) if *tick >= latest => {}
                found => return Err(format!("trigger {trigger} fired last for {found:?}, not for {latest}")),
            }
        }
        Ok(())
    }

    fn wall(&self, member: usize) -> Timestamp {
        Timestamp(BEGIN + self.now as i64 + self.members[member].wall_offset)
    }

    /// Kills a member, which starts again from a snapshot.
    fn restart(&mut self, member: usize) {
        let image = self.members[member].replica.state().to_image();
        let mut bytes = Vec::new();
        if atlas_format::encode_snapshot(&image, &mut bytes).is_err() {
            return;
        }
        let state =
            atlas_format::decode_snapshot(bytes.as_slice()).ok().and_then(|image| State::from_image(image).ok());
        let Some(state) = state else { return };
        self.seen.restarts += 1;
        self.members[member].replica = Replica::new(state);
        self.members[member].lead = None;
    }

    /// The triggers that are still to be made.
    fn wanted(&self, state: &State) -> Vec<Request> {
        let made = state.objects_total();
        let put = |number: u64| {
            let jitter = if number.is_multiple_of(2) { 0 } else { 300 };
            let spec = json!({
                "agent_name": "nobody", "catch_up": 100, "cron_expr": "* * * * *", "jitter_seconds": jitter, "trigger_type": "cron",
            });
            request(Command::PutObject(PutObject {
                kind: kind()?,
                name: ObjectName::new(&format!("t{number}")).ok()?,
                labels: BTreeMap::new(),
                spec: canonical(&spec).ok()?.into(),
                spec_version: 1,
                expect: Expect::Any,
            }))
        };
        (made..self.options.triggers).take(BATCH_MAX).filter_map(put).collect()
    }

    /// The firings of what is due.
    fn due(&mut self, state: &State, now: Timestamp) -> Vec<Request> {
        let come = state.next_fires().take_while(|(tick, _)| *tick <= now);
        let objects = come.filter_map(|(tick, key)| Some((*tick, Arc::clone(state.object(key)?))));
        let fires = |(tick, object): &(Timestamp, Arc<Object>)| {
            definition(object).is_some_and(|found| found.fires_at(object.uid.0, seconds(*tick)) <= seconds(now))
        };
        let objects: Vec<(Timestamp, Arc<Object>)> = objects.filter(fires).take(FIRED_MAX).collect();
        objects.into_iter().filter_map(|(tick, object)| self.fire(tick, &object, now)).collect()
    }

    fn fire(&mut self, tick: Timestamp, object: &Object, now: Timestamp) -> Option<Request> {
        let (next, missed) = match definition(object)?.due(object.uid.0, seconds(tick), seconds(now), false) {
            Due::Fire { next, missed } | Due::Skip { next, missed } => (next, missed),
            Due::Wait | Due::Cancel => return None,
        };
        let number: u64 = object.key.name.as_str().strip_prefix('t')?.parse().ok()?;
        let failure = Failure { kind: FailureKind::NoAgent, error: "nobody runs it".into() };
        let input = Payload::inline(json!({"trigger": number, "tick": tick.0}).to_string().as_bytes());
        // As in the program: another firing of the same time has another id, so nothing but the trigger stops it.
        let id = JobId(self.rng.next());
        let start = SubmitJob::new(id, "nobody".parse().ok()?, Verdict::Refused { pin: None, failure }, input);
        if self.options.unchecked && self.rng.chance(20) {
            // What a command without a check would do: the job is submitted beside the trigger.
            return request(Command::SubmitJob(start));
        }
        request(Command::FireTrigger(FireTrigger {
            name: object.key.name.clone(),
            uid: object.uid,
            revision: object.revision,
            by: FiredBy::Schedule,
            tick,
            next: Timestamp((next * 1e6) as i64),
            missed,
            start: Some(TriggerStart::Job(Box::new(start))),
        }))
    }
}

/// The next times of triggers that are new.
fn planned(state: &State) -> Option<Request> {
    let observe = |object: &Arc<Object>| {
        let mut status = TriggerStatus::of(object);
        let definition = definition(object)?;
        let before =
            Before { schedule: &status.schedule, armed: status.armed, next: seconds(Timestamp(status.next_fire)) };
        let next = definition.replan(&before, true, seconds(object.updated));
        status.schedule = definition.schedule();
        (status.armed, status.next_fire) = (next > 0.0, (next * 1e6) as i64);
        status.planned_revision = object.revision.0;
        let (key, uid, revision) = (object.key.clone(), object.uid, object.revision);
        Some(Observation { key, uid, revision, status: status.document().ok()?.into() })
    };
    let unplanned = state.unplanned_triggers().take(BATCH_MAX).filter_map(|key| state.object(key));
    let observations: Vec<Observation> = unplanned.filter_map(observe).collect();
    if observations.is_empty() { None } else { request(Command::ObserveObjects(ObserveObjects { observations })) }
}

fn definition(object: &Object) -> Option<Definition> {
    Definition::parse(&serde_json::from_slice(&object.spec).ok()?).ok()
}

fn kind() -> Option<ObjectKind> {
    ObjectKind::new("trigger").ok()
}

#[expect(clippy::unnecessary_wraps, reason = "what makes a request may find that there is none")]
fn request(command: Command) -> Option<Request> {
    Some(Request { origin: Origin::duty(Namespace::default_namespace()), command })
}

fn seconds(time: Timestamp) -> f64 {
    time.0 as f64 / 1e6
}
