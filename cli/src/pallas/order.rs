//! The order in which agents become ready: each after those on which it depends.

use std::collections::BTreeMap;

use atlas_contract::nearest;

use super::Entry;

/// How an agent is looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    New,
    /// Those on which it depends are being looked at.
    Open,
    Done,
}

/// Sorts agents. The order of the file is kept where nothing depends on it. A circle and an unknown name are errors.
pub(super) fn ready(agents: Vec<Entry>) -> Result<Vec<Entry>, String> {
    let places: BTreeMap<&str, usize> =
        agents.iter().enumerate().map(|(place, agent)| (agent.name.as_str(), place)).collect();
    let mut needs = Vec::with_capacity(agents.len());
    for agent in &agents {
        let mut own = Vec::new();
        for name in &agent.depends_on {
            own.push(*places.get(name.as_str()).ok_or_else(|| unknown(&agent.name, name, &agents))?);
        }
        needs.push(own);
    }
    let (mut marks, mut order) = (vec![Mark::New; agents.len()], Vec::with_capacity(agents.len()));
    for first in 0..agents.len() {
        visit(first, &needs, &mut marks, &mut order).map_err(|circle| {
            let names: Vec<&str> = circle.iter().map(|place| agents[*place].name.as_str()).collect();
            format!("agents depend on each other in a circle: {}", names.join(" -> "))
        })?;
    }
    let mut agents: Vec<Option<Entry>> = agents.into_iter().map(Some).collect();
    Ok(order.into_iter().filter_map(|place| agents[place].take()).collect())
}

/// Adds an agent to the order after those that it needs. The error is a circle, from an agent to itself.
fn visit(first: usize, needs: &[Vec<usize>], marks: &mut [Mark], order: &mut Vec<usize>) -> Result<(), Vec<usize>> {
    // The agents that are open, each with the place of the next agent that it needs.
    let mut path = vec![(first, 0)];
    if marks[first] != Mark::New {
        return Ok(());
    }
    marks[first] = Mark::Open;
    while let Some((agent, next)) = path.last_mut() {
        let Some(needed) = needs[*agent].get(*next).copied() else {
            marks[*agent] = Mark::Done;
            order.push(*agent);
            path.pop();
            continue;
        };
        *next += 1;
        match marks[needed] {
            Mark::Done => {}
            Mark::New => {
                marks[needed] = Mark::Open;
                path.push((needed, 0));
            }
            Mark::Open => {
                let circle = path.iter().map(|(agent, _)| *agent).skip_while(|agent| *agent != needed);
                return Err(circle.chain([needed]).collect());
            }
        }
    }
    Ok(())
}

fn unknown(agent: &str, name: &str, agents: &[Entry]) -> String {
    let known = agents.iter().map(|agent| agent.name.as_str());
    let meant = nearest(name, known).map(|meant| format!("; did you mean \"{meant}\"?")).unwrap_or_default();
    format!("agents.{agent}.depends_on names \"{name}\", which is no agent of the file{meant}")
}
