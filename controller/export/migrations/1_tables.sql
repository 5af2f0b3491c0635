-- The tables that the export writes. People query the views of 2_views.sql, which stay the same when tables change.

CREATE TABLE atlas.progress (
    one         boolean PRIMARY KEY DEFAULT true CHECK (one),
    cluster     text,                        -- whose history it is
    watermark   bigint NOT NULL DEFAULT 0,   -- everything up to this event is here
    written_at  timestamptz,                 -- when the watermark last changed
    rebuilds    bigint NOT NULL DEFAULT 0,   -- how often rows were replaced because the cluster was restored
    rebuilt_at  timestamptz
);
INSERT INTO atlas.progress DEFAULT VALUES;

CREATE TABLE atlas.job (
    event_seq          bigint NOT NULL,      -- the event that ended the job
    completed_at       timestamptz NOT NULL,
    id                 text NOT NULL,
    namespace          text NOT NULL,
    agent              text NOT NULL,
    version            text,
    status             text NOT NULL,
    failure_kind       text,
    error              text,
    priority           bigint NOT NULL,
    queue_seq          bigint NOT NULL,      -- the order of submission
    created_at         timestamptz NOT NULL,
    started_at         timestamptz,
    warmup_us          bigint NOT NULL,
    execution_us       bigint NOT NULL,
    warm               boolean NOT NULL,
    attempts           bigint NOT NULL,
    retry_count        bigint NOT NULL,
    original           text,
    parent             text,
    run                text,
    step_index         bigint,
    node               text,
    principal          text NOT NULL,
    door               text NOT NULL,
    model              text,
    tokens_input       bigint NOT NULL,
    tokens_output      bigint NOT NULL,
    cost_nanodollars   bigint NOT NULL,
    labels             jsonb NOT NULL,
    metadata           jsonb NOT NULL,
    words              tsvector NOT NULL,    -- the words of agent, error and labels
    PRIMARY KEY (event_seq, completed_at)
) PARTITION BY RANGE (completed_at);
CREATE INDEX job_id ON atlas.job (id);
CREATE INDEX job_newest ON atlas.job (queue_seq DESC);
CREATE INDEX job_of_agent ON atlas.job (agent, queue_seq DESC);
CREATE INDEX job_of_status ON atlas.job (status, queue_seq DESC);
CREATE INDEX job_created_at ON atlas.job (created_at);
CREATE INDEX job_labels ON atlas.job USING gin (labels jsonb_path_ops);
CREATE INDEX job_words ON atlas.job USING gin (words);

CREATE TABLE atlas.call (
    event_seq          bigint NOT NULL,      -- the event that ended the job
    completed_at       timestamptz NOT NULL, -- when the job ended
    number             bigint NOT NULL,      -- the number of its step
    job                text NOT NULL,
    namespace          text NOT NULL,
    agent              text NOT NULL,
    model              text,
    duration_us        bigint NOT NULL,
    tokens_input       bigint NOT NULL,
    tokens_output      bigint NOT NULL,
    cost_nanodollars   bigint NOT NULL,
    PRIMARY KEY (event_seq, number, completed_at)
) PARTITION BY RANGE (completed_at);
CREATE INDEX call_job ON atlas.call (job);
CREATE INDEX call_of_model ON atlas.call (model, completed_at);

CREATE TABLE atlas.run (
    event_seq          bigint NOT NULL,      -- the event that ended the run
    completed_at       timestamptz NOT NULL,
    id                 text NOT NULL,
    namespace          text NOT NULL,
    chain              text NOT NULL,
    status             text NOT NULL,
    error              text,
    steps              bigint NOT NULL,      -- how many were started
    total_steps        bigint NOT NULL,
    created_at         timestamptz NOT NULL,
    principal          text NOT NULL,
    door               text NOT NULL,
    PRIMARY KEY (event_seq, completed_at)
) PARTITION BY RANGE (completed_at);
CREATE INDEX run_id ON atlas.run (id);
CREATE INDEX run_of_chain ON atlas.run (chain, completed_at);
