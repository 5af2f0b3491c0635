//! What to try after an error, for a model: it has tools, no terminal.

use atlas_service::Error;

/// What shows that a suggestion is for a terminal or for a program that speaks HTTP.
const NOT_FOR_MODELS: [&str; 6] = ["atlasctl", "GET /", " --", "-Key", "If-Match", "X-Atlas"];

/// The suggestion for a model with the tools of the platform; empty if there is none.
pub(crate) fn with_tools(error: &Error) -> String {
    let code = error.entry().code;
    match tool(error) {
        Some(tool) => tool,
        None if is_for_terminals(&error.hint()) => {
            format!("whoever runs Atlas can help: call docs_search with {code} for what to do")
        }
        None => error.hint(),
    }
}

/// The suggestion for a model with other tools.
pub(crate) fn without_tools(error: &Error) -> String {
    let hint = error.hint();
    match tool(error) {
        _ if !is_for_terminals(&hint) => hint,
        Some(_) => String::new(),
        None => format!("whoever runs Atlas can help: its documentation explains {}", error.entry().code),
    }
}

fn is_for_terminals(hint: &str) -> bool {
    NOT_FOR_MODELS.iter().any(|part| hint.contains(part))
}

/// The tool that helps.
fn tool(error: &Error) -> Option<String> {
    Some(match error {
        Error::UnknownAgent { name, versions, .. } if !versions.is_empty() => {
            format!("call agent_describe with the agent {name} alone: it shows the newest version")
        }
        Error::UnknownAgent { suggestion: None, .. } => "call agents_search: it lists the agents".to_owned(),
        Error::InputRefused { agent, .. } | Error::OutputRefused { agent, .. } => {
            format!("call agent_describe with the agent {agent}: it shows the schemas")
        }
        Error::UnknownJob => "give the job_id of an answer of agent_run".to_owned(),
        Error::UnknownRun => "give the id of an answer of chain_run".to_owned(),
        Error::UnknownQuestion | Error::AnswerRefused(_) => {
            "call job_get with the job_id: it shows the open questions".to_owned()
        }
        Error::WrongStatus { .. } | Error::NotInDoubt { .. } => "call job_get with the job_id".to_owned(),
        Error::OutcomeUnknown | Error::Unrecorded => "repeat the call with the same idempotency_key".to_owned(),
        Error::RequestConflict => "give another idempotency_key for another input".to_owned(),
        Error::QueueFull { .. } => "wait until jobs have ended, then repeat the call".to_owned(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use atlas_types::AgentName;

    use super::*;

    #[test]
    fn suggestions_name_tools_and_no_commands() {
        let (agent, version) = (AgentName::new("echo").expect("a name"), "1.0.0".parse().expect("a version"));
        let refused = Error::InputRefused { agent, version, violations: Vec::new() };
        assert_eq!(with_tools(&refused), "call agent_describe with the agent echo: it shows the schemas");
        assert_eq!(without_tools(&refused), "", "an agent's own server has no such tool");
        for error in [Error::UnknownJob, Error::NoLeader, Error::UnknownObject("x".to_owned()), Error::RequestConflict]
        {
            for hint in [with_tools(&error), without_tools(&error)] {
                assert!(!is_for_terminals(&hint), "{error}: {hint}");
            }
        }
        assert!(with_tools(&Error::NoLeader).contains("docs_search with E"), "{}", with_tools(&Error::NoLeader));
        assert_eq!(with_tools(&Error::NoSpace), Error::NoSpace.hint());
    }
}
