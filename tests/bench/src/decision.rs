//! Measures a decision: who shows a token, and whether it may do something, among many tokens and bindings.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use atlas_access::{Place, Right, SECRET_DIGITS, parts, token};
use atlas_env::Env;
use atlas_service::Authentication;
use atlas_state::State;
use atlas_types::{ClusterTime, Command, Expect, Level, Namespace, Origin, PutObject, Request, Timestamp};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::figures::Row;

const TOKENS: u64 = 10_000;
const BINDINGS: u64 = 1_000;
/// The limit for one decision, in microseconds.
const LIMIT_US: f64 = 5.0;
/// How often each token with a binding is shown.
const ROUNDS: usize = 20;

pub(crate) fn run(env: &Env, _rows: &[Row]) -> Result<Vec<Row>> {
    let state = state()?;
    let authentication = Authentication::new(None)?;
    let place = Place::In(Namespace::default_namespace());
    let mut latencies = Vec::new();
    for _ in 0..ROUNDS {
        for number in 0..BINDINGS {
            let text = text(number);
            let begun = env.clock.monotonic();
            let access = authentication.identify(&state, &text, 0)?.context("a token of the cluster")?;
            let may = access.may(Right::JobsSubmit, &place);
            latencies.push(env.clock.monotonic() - begun);
            ensure!(may, "{} may not submit jobs", access.principal);
        }
    }
    let took: Duration = latencies.iter().sum();
    Ok(vec![
        Row::rate("decision_10k_tokens", 1, latencies, took).median_against(&format!("{LIMIT_US} µs"), Some(LIMIT_US)),
    ])
}

/// A cluster that knows the tokens and bindings.
fn state() -> Result<State> {
    let mut state = State::new(1);
    state.raise(Level::CURRENT);
    for number in 0..TOKENS {
        let text = text(number);
        let (name, secret) = parts(&text).context("a token")?;
        ensure!(secret.len() == SECRET_DIGITS, "a secret of another length");
        let hash: String = Sha256::digest(secret.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
        apply(&mut state, put("token", name, &json!({"principal": name, "sha256": hash}))?)?;
        if number < BINDINGS {
            apply(&mut state, put("binding", name, &json!({"grants": [{"role": "submitter"}]}))?)?;
        }
    }
    Ok(state)
}

/// The token with a number.
fn text(number: u64) -> String {
    token(&format!("user-{number}"), [number, 1, 2, 3])
}

fn put(kind: &str, name: &str, spec: &Value) -> Result<Command> {
    Ok(Command::PutObject(PutObject {
        kind: kind.parse()?,
        name: name.parse()?,
        labels: Default::default(),
        spec: spec.to_string().into_bytes().into(),
        spec_version: 1,
        expect: Expect::Absent,
    }))
}

fn apply(state: &mut State, command: Command) -> Result<()> {
    let (at, clock) = (Timestamp(1), ClusterTime(1));
    let request = Request { origin: Origin::duty(Namespace::default_namespace()), command };
    state.begin_entry(at, clock);
    let (outcome, _) = state.apply(&request, at, clock);
    state.end_entry();
    outcome.map(drop).with_context(|| format!("{request:?}"))
}
