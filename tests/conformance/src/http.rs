//! A plain HTTP client: returns status, headers and body of an answer without interpreting them.

use std::time::Duration;

use reqwest::Method;
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::result::Stop;

/// Longest time for one request, including a request that waits for a job.
const REQUEST_MAX: Duration = Duration::from_secs(90);

/// A client of one server.
#[derive(Debug)]
pub(crate) struct Http {
    runtime: Runtime,
    client: reqwest::Client,
    base: String,
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) content_type: String,
    /// The session that an MCP server opened or used.
    pub(crate) session: Option<String>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    /// The body, if it is JSON.
    pub(crate) fn json(&self) -> Option<Value> {
        serde_json::from_slice(&self.body).ok()
    }

    /// The JSON body of a successful answer; any other answer is an error.
    pub(crate) fn success(self, what: &str) -> Result<Value, Stop> {
        let text = String::from_utf8_lossy(&self.body).into_owned();
        let json = if self.status < 300 { self.json() } else { None };
        json.ok_or_else(|| Stop::fail(format!("{what} was answered with {}: {text}", self.status)))
    }
}

impl Http {
    /// A client of the server at `address`.
    pub(crate) fn new(address: &str) -> Result<Self, Stop> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        // The runtime sleeps between two requests and does not see that a server has closed an idle connection.
        let client = reqwest::Client::builder().no_proxy().timeout(REQUEST_MAX).pool_max_idle_per_host(0).build();
        Ok(Self {
            runtime: runtime.map_err(|error| Stop::system("start an async runtime", error))?,
            client: client.map_err(|error| Stop::system("set up an HTTP client", error))?,
            base: format!("http://{address}"),
        })
    }

    /// The address of a path.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    /// Sends one request.
    pub(crate) fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(String, String)],
        body: Option<Vec<u8>>,
    ) -> Result<Answer, Stop> {
        let failed = |error: &dyn std::error::Error| Stop::system(&format!("ask {method} {path}"), error);
        let method = Method::from_bytes(method.as_bytes()).map_err(|error| failed(&error))?;
        let mut request = self.client.request(method, format!("{}{path}", self.base));
        for (name, value) in headers {
            request = request.header(name, value);
        }
        if let Some(body) = body {
            request = request.body(body);
        }
        self.runtime.block_on(async {
            let response = request.send().await.map_err(|error| failed(&error))?;
            let status = response.status().as_u16();
            let session = response.headers().get("mcp-session-id").and_then(|id| id.to_str().ok()).map(str::to_owned);
            let content_type = response.headers().get("content-type").and_then(|value| value.to_str().ok());
            let content_type = content_type.unwrap_or_default().to_owned();
            let body = response.bytes().await.map_err(|error| failed(&error))?.to_vec();
            Ok(Answer { status, content_type, session, body })
        })
    }

    /// The JSON body of a GET request, which must succeed.
    pub(crate) fn get(&self, path: &str) -> Result<Value, Stop> {
        self.send("GET", path, &[], None)?.success(&format!("GET {path}"))
    }

    /// Waits until a job has ended, and returns it.
    pub(crate) fn wait(&self, job: &str) -> Result<Value, Stop> {
        let job = self.get(&format!("/api/jobs/{job}/wait?timeout=60&view=full"))?;
        if ended(&job) { Ok(job) } else { Err(Stop::fail(format!("the job did not end within 60 s: {job}"))) }
    }

    /// Submits a job and returns its id.
    pub(crate) fn submit(&self, submission: &Value) -> Result<String, Stop> {
        let answer = self.send("POST", "/api/jobs", &[], Some(submission.to_string().into_bytes()))?;
        let answer = answer.success("the submission")?;
        let id = answer["id"].as_str().map(str::to_owned);
        id.ok_or_else(|| Stop::fail(format!("the submission was answered with {answer}")))
    }
}

/// Whether a job has ended.
pub(crate) fn ended(job: &Value) -> bool {
    ["completed", "failed", "cancelled"].iter().any(|status| job["status"] == *status)
}
