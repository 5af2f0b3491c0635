//! The table of each operation, in the order of the names.

use super::{Parameter, Treatment};

const fn used(name: &'static str, note: &'static str) -> Parameter {
    Parameter { name, treatment: Treatment::Used, note, neutral: &[] }
}

const fn passed(name: &'static str, note: &'static str, neutral: &'static [&'static str]) -> Parameter {
    Parameter { name, treatment: Treatment::PassedOn, note, neutral }
}

const fn ignored(name: &'static str, note: &'static str) -> Parameter {
    Parameter { name, treatment: Treatment::Ignored, note, neutral: &[] }
}

const fn refused(name: &'static str, note: &'static str, neutral: &'static [&'static str]) -> Parameter {
    Parameter { name, treatment: Treatment::Refused, note, neutral }
}

const ZERO: &[&str] = &["0", "0.0"];
const ONE: &[&str] = &["1", "1.0"];

const CACHE: &str = "providers decide what they cache; reads from a cache are in the usage";
const LOGPROBS: &str = "answers have no probabilities of tokens";
const METADATA: &str = "at most 16 texts, kept with the job";
const MODEL: &str = "the name of a model or of an agent, as `GET /v1/models` lists them";
const ONE_ANSWER: &str = "a request has one answer; send it again for another one";
const PENALTY: &str = "from -2 to 2, for providers that know it";
const STREAM: &str = "whether the answer arrives in pieces";
const STREAM_OPTIONS: &str = "only with `stream`: `include_usage`; `include_obfuscation` has no effect";
const TEMPERATURE: &str = "from 0 to 2";
const TIER: &str = "providers serve in their default tier";
const TOP_P: &str = "from 0 to 1";
const USER: &str = "kept with the job, and not sent to providers";

/// `POST /v1/chat/completions`.
pub const CHAT: &[Parameter] = &[
    refused("audio", "answers are text", &[]),
    passed("chat_template_kwargs", "for servers with chat templates, such as vLLM", &["{}"]),
    passed("frequency_penalty", PENALTY, ZERO),
    refused("function_call", "it was replaced: use `tool_choice`", &["\"auto\"", "\"none\""]),
    refused("functions", "it was replaced: use `tools`", &["[]"]),
    passed("logit_bias", "tokens of the model and their bias", &["{}"]),
    refused("logprobs", LOGPROBS, &["false"]),
    used("max_completion_tokens", "most tokens of the answer, with its reasoning"),
    used("max_tokens", "the same; only one of the two may be there"),
    used("messages", "at most 10,000"),
    used("metadata", METADATA),
    passed("min_p", "for servers that know it, such as vLLM", ZERO),
    refused("modalities", "answers are text", &["[\"text\"]"]),
    used("model", MODEL),
    refused("moderation", "policies of the cluster decide what is allowed", &[]),
    refused("n", ONE_ANSWER, ONE),
    used("parallel_tool_calls", "false is passed on to the provider if there are tools"),
    passed("prediction", "for providers that know it", &[]),
    passed("presence_penalty", PENALTY, ZERO),
    ignored("prompt_cache_key", CACHE),
    ignored("prompt_cache_options", CACHE),
    ignored("prompt_cache_retention", CACHE),
    used(
        "reasoning_effort",
        "for models that declare `reasoning`: `none`, `minimal`, `low`, `medium`, `high`, `xhigh` or `max`",
    ),
    passed("repetition_penalty", "for servers that know it, such as vLLM", ONE),
    used("response_format", "`text`, `json_object` or `json_schema`, for models that declare `json_schema`"),
    used("safety_identifier", USER),
    passed("seed", "for providers that know it", &[]),
    ignored("service_tier", TIER),
    used("stop", "a text, or up to 4"),
    ignored("store", "every call is a job and has a record; there is no list of stored completions"),
    used("stream", STREAM),
    used("stream_options", STREAM_OPTIONS),
    used("temperature", TEMPERATURE),
    passed("thinking", "for providers that know it, such as Anthropic and DeepSeek", &[]),
    used("tool_choice", "`auto`, `none`, `required` or a function"),
    used("tools", "at most 128, of the type `function`; `strict` has no effect"),
    used("top_k", "for providers that know it"),
    refused("top_logprobs", LOGPROBS, ZERO),
    used("top_p", TOP_P),
    used("user", USER),
    passed("verbosity", "for providers that know it", &[]),
    refused("web_search_options", "this server has no search of the web; give the model a tool or use an agent", &[]),
];

/// `POST /v1/completions`.
pub const COMPLETIONS: &[Parameter] = &[
    refused("best_of", ONE_ANSWER, ONE),
    refused("echo", "the answer does not repeat the prompt", &["false"]),
    passed("frequency_penalty", PENALTY, ZERO),
    passed("logit_bias", "tokens of the model and their bias", &["{}"]),
    refused("logprobs", LOGPROBS, ZERO),
    used("max_tokens", "most tokens of the answer; 16 if it is absent, as at OpenAI"),
    used("model", MODEL),
    refused("n", ONE_ANSWER, ONE),
    passed("presence_penalty", PENALTY, ZERO),
    used("prompt", "a text, or a list of one; it becomes a message of the user"),
    passed("seed", "for providers that know it", &[]),
    used("stop", "a text, or up to 4"),
    used("stream", STREAM),
    used("stream_options", STREAM_OPTIONS),
    refused("suffix", "models answer a message and do not fill in a text", &["\"\""]),
    used("temperature", TEMPERATURE),
    used("top_p", TOP_P),
    used("user", USER),
];

/// `POST /v1/embeddings`.
pub const EMBEDDINGS: &[Parameter] = &[
    used("dimensions", "passed on to the provider under this name"),
    used("encoding_format", "`float` or `base64`"),
    used("input", "a text, or a list of up to 2,048; tokens are refused"),
    used(
        "input_type",
        "`document`, the default, or `query`, for models that distinguish them; OpenAI has no such parameter",
    ),
    used("model", "the name of a model of the type `embedding`"),
    used("user", USER),
];

/// `POST /v1/responses`.
pub const RESPONSES: &[Parameter] = &[
    refused("access_programs", "this server has none", &[]),
    used("background", "the response is made whether or not its client stays"),
    refused("background_options", "jobs start as soon as there is room", &["{}"]),
    refused("context_management", "this server does not shorten conversations", &["[]"]),
    used("conversation", "the id of a conversation, or an object with it"),
    passed("frequency_penalty", PENALTY, ZERO),
    refused("image", "answers are text", &[]),
    used(
        "include",
        "`reasoning.encrypted_content`; others concern hosted tools and have no effect, but for `message.output_text.logprobs`, which is refused",
    ),
    used("input", "a text, or at most 10,000 items: messages, function calls with their outputs, and reasoning"),
    used("instructions", "the system text; not part of what later responses continue"),
    used("max_output_tokens", "most tokens of the answer, with its reasoning"),
    ignored("max_tool_calls", "it concerns hosted tools, which are refused"),
    used("metadata", METADATA),
    used("model", MODEL),
    refused("moderation", "policies of the cluster decide what is allowed", &[]),
    used("parallel_tool_calls", "false is passed on to the provider if there are tools"),
    passed("presence_penalty", PENALTY, ZERO),
    used("previous_response_id", "the response that this one continues"),
    refused("prompt", "this server keeps no prompts; send `instructions` or use an agent", &[]),
    ignored("prompt_cache_key", CACHE),
    ignored("prompt_cache_options", CACHE),
    ignored("prompt_cache_retention", CACHE),
    used(
        "reasoning",
        "`effort`, for models that declare `reasoning`; other members have no effect: reasoning is shown where the provider shows it",
    ),
    used("safety_identifier", USER),
    ignored("service_tier", TIER),
    used("store", "true if it is absent: whether the response can be asked for later"),
    used("stream", STREAM),
    ignored("stream_options", "events are not padded"),
    used("temperature", TEMPERATURE),
    used("text", "`format`: `text`, `json_object` or `json_schema`; `verbosity` is passed on"),
    used("tool_choice", "`auto`, `none`, `required` or a function"),
    used("tools", "at most 128, of the type `function`; hosted tools are refused; `strict` has no effect"),
    refused("top_logprobs", LOGPROBS, ZERO),
    used("top_p", TOP_P),
    ignored("truncation", "nothing is left out: a request that is too long is refused"),
    used("user", USER),
];
