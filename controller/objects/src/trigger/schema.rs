//! The JSON Schema of triggers.

use serde_json::{Value, json};

use super::{CATCH_UP_MAX, JITTER_MAX, MAPPED_MAX, OVERLAPS, REPLAY_WINDOW_MAX, SCHEMES, TRIGGER_TYPES};

pub(super) fn schema() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["trigger_type"],
        "properties": {
            "name": { "type": "string", "description": "A name for people." },
            "trigger_type": {
                "enum": TRIGGER_TYPES,
                "description": "What makes it fire: the times of `cron_expr`, each `interval_seconds`, the time `fire_at`, or calls of its address."
            },
            "enabled": { "type": "boolean", "default": true, "description": "A disabled trigger fires only when a person asks for it." },
            "agent_name": { "type": "string", "description": "The agent that it runs. Either this or `chain_name` is set." },
            "chain_name": { "type": "string", "description": "The chain that it runs." },
            "input_data": {
                "type": ["object", "string"], "default": {},
                "description": "The input of each job; an object, or the text of one."
            },
            "priority": { "type": "integer", "default": 0, "description": "The priority of each job." },
            "metadata": {
                "type": ["object", "string"], "default": {},
                "description": "Metadata of each job; an object, or the text of one."
            },
            "cron_expr": {
                "type": "string",
                "description": "Five fields: minute, hour, day, month and weekday. A time matches if all of them match."
            },
            "interval_seconds": { "type": ["number", "string"], "description": "For the type `interval`, more than 0." },
            "fire_at": { "type": ["number", "string"], "description": "For the type `one_shot`, seconds since 1970. It may have passed." },
            "time_zone": {
                "type": "string", "default": "",
                "description": "The time zone of `cron_expr`, such as `Europe/Rome`. Without it, times are in UTC."
            },
            "overlap": {
                "enum": OVERLAPS, "default": "allow",
                "description": "What a firing does while the last job has not ended: start another, be skipped, wait for its end, or cancel it first."
            },
            "catch_up": {
                "type": "integer", "minimum": 0, "maximum": CATCH_UP_MAX, "default": 1,
                "description": "How many of the times that passed without a leader are made up for, the latest ones."
            },
            "jitter_seconds": {
                "type": "integer", "minimum": 0, "maximum": JITTER_MAX, "default": 0,
                "description": "Each firing is delayed by up to this long, so that many triggers do not fire at one moment."
            },
            "hmac": {
                "type": "string", "default": "",
                "description": "The secret that signs calls of a webhook, `secret://NAME`. Its value is in the store of the cluster."
            },
            "scheme": {
                "enum": SCHEMES, "default": "atlas",
                "description": "For webhooks: how the sender signs its calls."
            },
            "replay_window_seconds": {
                "type": "integer", "minimum": 0, "maximum": REPLAY_WINDOW_MAX, "default": 0,
                "description": "For webhooks: how old the signed time stamp of a call may be. With 0, the scheme `atlas` asks for no time stamp, and the others that \
                    sign one accept it for 5 minutes."
            },
            "map": {
                "type": "object", "maxProperties": MAPPED_MAX, "additionalProperties": { "type": "string" }, "default": {},
                "description": "For webhooks: members of the input, and where in the call their values are, such as `body.actor`. Without it, \
                    the members of the body replace those of `input_data`."
            },
            "webhook_secret": {
                "description": "The secret that signs calls of a webhook, as `***`. It is set at `/api/triggers`; here it is ignored."
            },
            "rearmed": {
                "description": "How often a one-shot trigger that had fired was enabled again. The cluster writes it."
            }
        }
    })
}
