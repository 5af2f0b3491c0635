//! The scenarios that run, and what is known about them.

use serde_json::Value;

/// The last version of the protocol with sessions, and the first one without.
const SESSIONS: &str = "2025-11-25";
const REQUESTS: &str = "2026-07-28";

/// A scenario in one version of the protocol.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) scenario: &'static str,
    pub(super) version: &'static str,
    /// Checks that do not apply: their ids.
    known: &'static [&'static str],
}

const fn sessions(scenario: &'static str) -> Run {
    Run { scenario, version: SESSIONS, known: &[] }
}

const fn requests(scenario: &'static str) -> Run {
    Run { scenario, version: REQUESTS, known: &[] }
}

impl Run {
    const fn without(self, known: &'static [&'static str]) -> Self {
        Self { known, ..self }
    }

    pub(super) fn is_known(&self, check: &Value) -> bool {
        let id = check["id"].as_str().unwrap_or_default();
        // A busy machine is late. What counts is that the client does not come back too early.
        let is_late = id == "client-sse-retry-timing" && check["details"]["tooEarly"] == false;
        is_late || self.known.contains(&id)
    }
}

/// At `/mcp`.
pub(super) const TOOLS: [Run; 24] = [
    sessions("server-initialize"),
    sessions("server-session-lifecycle"),
    sessions("ping"),
    sessions("tools-list"),
    sessions("tools-call-simple-text"),
    sessions("tools-call-error"),
    sessions("tools-call-with-progress"),
    sessions("json-schema-2020-12"),
    sessions("server-sse-multiple-streams"),
    // The tool of this check ends its own stream.
    sessions("server-sse-polling").without(&["server-sse-disconnect-resume"]),
    sessions("resources-list"),
    sessions("dns-rebinding-protection"),
    // The tools of these checks need a capability of the client, and write log messages.
    requests("server-stateless").without(&[
        "sep-2575-server-rejects-undeclared-capability",
        "sep-2575-missing-capability-http-400",
        "sep-2575-http-server-no-independent-requests-on-stream",
        "sep-2575-server-no-log-without-loglevel",
        "sep-2575-server-sends-tools-list-changed-on-subscription",
    ]),
    requests("tools-list"),
    requests("tools-call-simple-text"),
    requests("tools-call-error"),
    requests("tools-call-with-progress"),
    requests("json-schema-2020-12"),
    requests("server-sse-multiple-streams"),
    requests("resources-list"),
    requests("sep-2164-resource-not-found"),
    // The server of the platform has no prompts; that of an agent has.
    requests("caching").without(&["sep-2549-prompts-list-caching-hints"]),
    requests("http-header-validation"),
    requests("dns-rebinding-protection"),
];

/// At `/agents/{name}/mcp`.
pub(super) const AGENT: [Run; 10] = [
    sessions("server-initialize"),
    sessions("server-session-lifecycle"),
    sessions("ping"),
    sessions("tools-list"),
    sessions("prompts-list"),
    sessions("dns-rebinding-protection"),
    requests("tools-list"),
    requests("prompts-list"),
    requests("http-header-validation"),
    requests("dns-rebinding-protection"),
];

/// With our client.
pub(super) const CLIENT: [Run; 51] = [
    sessions("initialize"),
    sessions("tools_call"),
    sessions("sse-retry"),
    sessions("json-schema-2020-12-preservation"),
    sessions("auth/metadata-default"),
    sessions("auth/metadata-var1"),
    sessions("auth/metadata-var2"),
    sessions("auth/metadata-var3"),
    sessions("auth/basic-cimd"),
    sessions("auth/scope-from-www-authenticate"),
    sessions("auth/scope-from-scopes-supported"),
    sessions("auth/scope-omitted-when-undefined"),
    sessions("auth/scope-step-up"),
    sessions("auth/scope-retry-limit"),
    sessions("auth/token-endpoint-auth-basic"),
    sessions("auth/token-endpoint-auth-post"),
    sessions("auth/token-endpoint-auth-none"),
    sessions("auth/pre-registration"),
    requests("tools_call"),
    requests("request-metadata"),
    requests("sep-2322-client-request-state"),
    requests("http-standard-headers"),
    requests("http-custom-headers"),
    requests("http-invalid-tool-headers"),
    requests("json-schema-ref-no-deref"),
    requests("json-schema-2020-12-preservation"),
    requests("auth/metadata-default"),
    requests("auth/metadata-var1"),
    requests("auth/metadata-var2"),
    requests("auth/metadata-var3"),
    requests("auth/basic-cimd"),
    requests("auth/scope-from-www-authenticate"),
    requests("auth/scope-from-scopes-supported"),
    requests("auth/scope-omitted-when-undefined"),
    requests("auth/scope-step-up"),
    requests("auth/scope-retry-limit"),
    requests("auth/token-endpoint-auth-basic"),
    requests("auth/token-endpoint-auth-post"),
    requests("auth/token-endpoint-auth-none"),
    requests("auth/pre-registration"),
    requests("auth/resource-mismatch"),
    requests("auth/offline-access-scope"),
    requests("auth/offline-access-not-supported"),
    requests("auth/authorization-server-migration"),
    requests("auth/iss-supported"),
    requests("auth/iss-not-advertised"),
    requests("auth/iss-supported-missing"),
    requests("auth/iss-wrong-issuer"),
    requests("auth/iss-unexpected"),
    requests("auth/iss-normalized"),
    requests("auth/metadata-issuer-mismatch"),
];
