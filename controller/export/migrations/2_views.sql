-- What people query. Times are in seconds, prices in US dollars.

CREATE VIEW atlas.jobs AS
SELECT event_seq, id, namespace, agent, version, status, failure_kind, error, priority, queue_seq,
       created_at, started_at, completed_at,
       extract(epoch FROM started_at - created_at)::float8 AS waited_seconds,
       warmup_us / 1e6::float8 AS warmup_seconds,
       execution_us / 1e6::float8 AS execution_seconds,
       warm, attempts, retry_count, original, parent, run, step_index, node, principal, door,
       model, tokens_input, tokens_output, cost_nanodollars / 1e9::float8 AS cost_usd, labels, metadata, words
FROM atlas.job;

CREATE VIEW atlas.calls AS
SELECT event_seq, job, number, namespace, agent, model, completed_at,
       duration_us / 1e6::float8 AS duration_seconds,
       tokens_input, tokens_output, cost_nanodollars / 1e9::float8 AS cost_usd
FROM atlas.call;

CREATE VIEW atlas.runs AS
SELECT event_seq, id, namespace, chain, status, error, steps, total_steps, created_at, completed_at,
       extract(epoch FROM completed_at - created_at)::float8 AS duration_seconds, principal, door
FROM atlas.run;

CREATE VIEW atlas.cost_by_day AS
SELECT (completed_at AT TIME ZONE 'UTC')::date AS day, namespace, agent,
       count(*) AS jobs,
       count(*) FILTER (WHERE status = 'failed') AS failed,
       sum(tokens_input)::bigint AS tokens_input,
       sum(tokens_output)::bigint AS tokens_output,
       (sum(cost_nanodollars) / 1e9)::float8 AS cost_usd
FROM atlas.job
GROUP BY 1, 2, 3;
