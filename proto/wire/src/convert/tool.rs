//! Tools of the platform that attempts call.

use std::sync::Arc;

use atlas_types::{FencingToken, JobId, Spawner, StepKey, ToolEnd, ToolRequest};
use bytes::Bytes;

use super::{ConvertError, bounded, fixed, required, word};
use crate::limits::{TEXT_BYTES_MAX, TOOL_BYTES_MAX};
use crate::proto::worker::v1 as pb;

pub(super) fn call_out(number: u64, call: ToolRequest) -> pb::CallTool {
    pb::CallTool {
        number,
        job_id: call.caller.job.0,
        fencing_token: call.caller.token.0,
        tool: call.tool,
        arguments: Bytes::copy_from_slice(&call.arguments),
        key: Bytes::copy_from_slice(&call.key.0),
        again: call.again,
    }
}

pub(super) fn call_in(call: pb::CallTool) -> Result<(u64, ToolRequest), ConvertError> {
    bounded("call_tool.arguments", call.arguments.len(), TOOL_BYTES_MAX)?;
    let read = ToolRequest {
        caller: Spawner { job: JobId(call.job_id), token: FencingToken(call.fencing_token) },
        tool: word("call_tool.tool", call.tool)?,
        arguments: Arc::from(&*call.arguments),
        key: StepKey(fixed("call_tool.key", &call.key)?),
        again: call.again,
    };
    Ok((call.number, read))
}

pub(super) fn called_out(number: u64, end: ToolEnd) -> pb::ToolCalled {
    use pb::tool_called::End;
    let end = match end {
        ToolEnd::Result(result) => End::Result(Bytes::copy_from_slice(&result)),
        ToolEnd::Refused(why) => End::Refused(why),
    };
    pb::ToolCalled { number, end: Some(end) }
}

pub(super) fn called_in(called: pb::ToolCalled) -> Result<(u64, ToolEnd), ConvertError> {
    use pb::tool_called::End;
    let end = match required("tool_called.end", called.end)? {
        End::Result(result) => {
            bounded("tool_called.result", result.len(), TOOL_BYTES_MAX)?;
            ToolEnd::Result(Arc::from(&*result))
        }
        End::Refused(why) => {
            bounded("tool_called.refused", why.len(), TEXT_BYTES_MAX)?;
            ToolEnd::Refused(why)
        }
    };
    Ok((called.number, end))
}
