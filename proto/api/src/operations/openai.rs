//! OpenAI's interface: models and agents behind the paths, bodies and errors that its clients know ([ADR 89](../../../../docs/adr/0089-openai-door.md)).

use atlas_access::Right;

use super::operation::{Body, Content, Kind, Operation, Parameter};
use super::parts::{
    BODY, IDEMPOTENCY_KEY, JOB, OWN_OR_CONTROL, READ, STORED, WRITE, delete, get, in_namespace, ok, post, query, word,
};
use crate::catalogue::{
    BUDGET_SPENT, CLUSTER_FULL, INPUT_REFUSED, LIMIT_REACHED, MODEL_CALL, MODEL_REFUSED, NAMESPACE_FULL,
    NAMESPACE_LIMIT, NO_MODEL, POLICY_DENIED, QUEUE_FULL, UNKNOWN_AGENT, UNKNOWN_OBJECT, VERSION_TAKEN, WRONG_STATUS,
};
use crate::types::{
    ChatCompletion, ChatCompletionRequest, Completion, CompletionRequest, DeletedResponse, Embeddings,
    EmbeddingsRequest, InputItems, ModelResponse, ResponseRequest, UsableModel, UsableModels,
};

operation_ids! {
    /// OpenAI's interface.
    Openai {
        ListUsableModels = "listUsableModels",
        GetUsableModel = "getUsableModel",
        GetUsableModelOf = "getUsableModelOf",
        CreateChatCompletion = "createChatCompletion",
        CreateCompletion = "createCompletion",
        CreateEmbeddings = "createEmbeddings",
        CreateResponse = "createResponse",
        GetResponse = "getResponse",
        ListInputItems = "listInputItems",
        CancelResponse = "cancelResponse",
        DeleteResponse = "deleteResponse",
    }
}

const STREAM: Parameter = word("stream", &["true", "false"], "`true` answers with the events of the response");
const STARTING_AFTER: Parameter =
    query("starting_after", Kind::Whole, "with `stream`: only events with a larger `sequence_number`");
const PAGE_LIMIT: Parameter = query("limit", Kind::Whole, "most items, 1 to 100; defaults to 20");
const ORDER: Parameter = word("order", &["asc", "desc"], "`asc`: the oldest item first; defaults to `desc`");
const AFTER_ITEM: Parameter = query("after", Kind::Text, "the id of the last item of the page before");
/// Why a model gives no answer, and why none is asked.
const CALLED: &[crate::Entry] = &[
    UNKNOWN_AGENT,
    UNKNOWN_OBJECT,
    INPUT_REFUSED,
    POLICY_DENIED,
    VERSION_TAKEN,
    QUEUE_FULL,
    LIMIT_REACHED,
    CLUSTER_FULL,
    NAMESPACE_LIMIT,
    NAMESPACE_FULL,
    MODEL_CALL,
    MODEL_REFUSED,
    NO_MODEL,
    BUDGET_SPENT,
];

pub(super) const OPERATIONS: &[Operation] = &[
    get(
        Openai::ListUsableModels.id(),
        in_namespace(Right::JobsSubmit),
        "/v1/models",
        "What the caller may name as a model: models, agents and chains.",
    )
    .answers(&[ok("the models", &[Content::json::<UsableModels>()])])
    .refuses(&[READ, STORED]),
    get(
        Openai::GetUsableModel.id(),
        in_namespace(Right::JobsSubmit),
        "/v1/models/{model}",
        "One that the caller may name as a model.",
    )
    .answers(&[ok("the model", &[Content::json::<UsableModel>()])])
    .refuses(&[READ, STORED, &[UNKNOWN_OBJECT]]),
    get(
        Openai::GetUsableModelOf.id(),
        in_namespace(Right::JobsSubmit),
        "/v1/models/{form}/{model}",
        "The same by its long name: `model`, `agent` or `chain` before the name.",
    )
    .answers(&[ok("the model", &[Content::json::<UsableModel>()])])
    .refuses(&[READ, STORED, &[UNKNOWN_OBJECT]]),
    post(
        Openai::CreateChatCompletion.id(),
        in_namespace(Right::JobsSubmit),
        "/v1/chat/completions",
        "The next message of a conversation, by a job.",
    )
    .takes(&[IDEMPOTENCY_KEY])
    .body(Body::json::<ChatCompletionRequest>())
    .answers(&[ok(
        "the message, or chunks of it",
        &[Content::json::<ChatCompletion>(), Content::events::<ChatCompletion>()],
    )])
    .refuses(&[WRITE, BODY, STORED, CALLED]),
    post(
        Openai::CreateCompletion.id(),
        in_namespace(Right::JobsSubmit),
        "/v1/completions",
        "A text that goes on from a prompt, by a job.",
    )
    .takes(&[IDEMPOTENCY_KEY])
    .body(Body::json::<CompletionRequest>())
    .answers(&[ok("the text, or chunks of it", &[Content::json::<Completion>(), Content::events::<Completion>()])])
    .refuses(&[WRITE, BODY, STORED, CALLED]),
    post(
        Openai::CreateEmbeddings.id(),
        in_namespace(Right::JobsSubmit),
        "/v1/embeddings",
        "The vectors of texts, by a job.",
    )
    .takes(&[IDEMPOTENCY_KEY])
    .body(Body::json::<EmbeddingsRequest>())
    .answers(&[ok("the vectors", &[Content::json::<Embeddings>()])])
    .refuses(&[WRITE, BODY, STORED, CALLED]),
    post(
        Openai::CreateResponse.id(),
        in_namespace(Right::JobsSubmit),
        "/v1/responses",
        "A response of a model, by a job; in the background, the answer is sent once the job is durable.",
    )
    .takes(&[IDEMPOTENCY_KEY])
    .body(Body::json::<ResponseRequest>())
    .answers(&[ok(
        "the response, or its events",
        &[Content::json::<ModelResponse>(), Content::events::<ModelResponse>()],
    )])
    .refuses(&[WRITE, BODY, STORED, JOB, CALLED]),
    get(
        Openai::GetResponse.id(),
        in_namespace(Right::JobsSubmit),
        "/v1/responses/{id}",
        "A response that the caller asked for; with `jobs.read` also those of others.",
    )
    .takes(&[STREAM, STARTING_AFTER])
    .answers(&[ok(
        "the response, or its events",
        &[Content::json::<ModelResponse>(), Content::events::<ModelResponse>()],
    )])
    .refuses(&[READ, STORED, JOB]),
    get(
        Openai::ListInputItems.id(),
        in_namespace(Right::JobsSubmit),
        "/v1/responses/{id}/input_items",
        "The items that a response was asked with.",
    )
    .takes(&[PAGE_LIMIT, ORDER, AFTER_ITEM])
    .answers(&[ok("the items", &[Content::json::<InputItems>()])])
    .refuses(&[READ, STORED, JOB]),
    post(Openai::CancelResponse.id(), OWN_OR_CONTROL, "/v1/responses/{id}/cancel", "Cancels the job of a response.")
        .answers(&[ok("the response", &[Content::json::<ModelResponse>()])])
        .refuses(&[WRITE, STORED, JOB]),
    delete(
        Openai::DeleteResponse.id(),
        OWN_OR_CONTROL,
        "/v1/responses/{id}",
        "Deletes a response: its job is cancelled if it runs, and what was said is erased from its record.",
    )
    .answers(&[ok("the response is deleted", &[Content::json::<DeletedResponse>()])])
    .refuses(&[WRITE, STORED, JOB, &[WRONG_STATUS]]),
];
