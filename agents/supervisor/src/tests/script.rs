//! What the tools do.

use expect_test::expect;

use super::{boss, check};
use crate::Settings;

#[test]
fn helpers_are_started_checked_and_collected() {
    check(
        boss(),
        r#"
        boss spawn {"agent": "kid", "prompt": "one"}
        boss list
        boss check {"id": "@1"}
        boss collect {"id": "@1"}
        end @1 found it
        boss list
        wait boss
        boss collect {"id": "@1"}
        boss check {"id": "@1"}
        "#,
        &expect![[r#"
            {"status":"ok","id":"@1","agent":"kid","message":"Agent 'kid' spawned as '@1'. Use agent__check or agent__collect to get results."}
              Spawn { id: AgentId("@1"), agent: "kid", prompt: "one", depth: 1 }
            {"active_count":1,"max_concurrent":4,"agents":[{"id":"@1","agent":"kid","status":"running"}]}
            {"status":"pending","id":"@1","message":"Agent is still running"}
            waits
            {"active_count":1,"max_concurrent":4,"agents":[{"id":"@1","agent":"kid","status":"finished"}]}
            {"status":"completed","id":"@1","agent":"kid","exit_status":"Completed","output":"found it"}
            {"status":"error","message":"Agent '@1' not found. Use agent__check to verify it exists and is finished."}
            {"status":"error","message":"No agent found with id '@1'"}
        "#]],
    );
}

#[test]
fn a_check_of_a_finished_helper_collects_it_and_a_failure_is_told() {
    check(
        boss(),
        r#"
        boss spawn {"agent": "kid", "prompt": "one"}
        fail @1 no "luck"
        boss check {"id": "@1"}
        boss check {"id": "@1"}
        "#,
        &expect![[r#"
            {"status":"ok","id":"@1","agent":"kid","message":"Agent 'kid' spawned as '@1'. Use agent__check or agent__collect to get results."}
              Spawn { id: AgentId("@1"), agent: "kid", prompt: "one", depth: 1 }
            {"status":"failed","id":"@1","agent":"kid","exit_status":"Failed(\"no \\\"luck\\\"\")","output":"","error":"no \"luck\""}
            {"status":"error","message":"No agent found with id '@1'"}
        "#]],
    );
}

#[test]
fn limits_are_told_with_their_numbers() {
    check(
        Settings { concurrent: 1, depth: 1, ..boss() },
        r#"
        boss spawn {"agent": "lead", "prompt": "one"}
        boss spawn {"agent": "kid", "prompt": "two"}
        @1 spawn {"agent": "lead", "prompt": "three"}
        end @1 done
        boss spawn {"agent": "kid", "prompt": "two"}
        boss spawn {"prompt": "x"}
        boss collect {"id": "@1"}
        boss spawn {"agent": "ghost", "prompt": "x"}
        "#,
        &expect![[r#"
            {"status":"ok","id":"@1","agent":"lead","message":"Agent 'lead' spawned as '@1'. Use agent__check or agent__collect to get results."}
              Spawn { id: AgentId("@1"), agent: "lead", prompt: "one", depth: 1 }
            {"status":"error","message":"At capacity: 1/1 agents running. Wait for one to finish or cancel one."}
            {"status":"ok","id":"@2","agent":"lead","message":"Agent 'lead' spawned as '@2'. Use agent__check or agent__collect to get results."}
              Spawn { id: AgentId("@2"), agent: "lead", prompt: "three", depth: 2 }
              Cancel(AgentId("@2"))
            {"status":"error","message":"At capacity: 1/1 agents running. Wait for one to finish or cancel one. 1 of them finished: they count until they are collected."}
            {"tool_call_error":"Supervisor tool failed: 'agent' is required"}
            {"status":"completed","id":"@1","agent":"lead","exit_status":"Completed","output":"done"}
            {"tool_call_error":"Supervisor tool failed: there is no agent \"ghost\""}
        "#]],
    );
}

#[test]
fn a_cancel_takes_everything_below_along() {
    check(
        boss(),
        r#"
        boss spawn {"agent": "lead", "prompt": "one"}
        @1 spawn {"agent": "kid", "prompt": "two"}
        @1 spawn {"agent": "kid", "prompt": "three"}
        end @3 done
        boss cancel {"id": "@1"}
        boss cancel {"id": "@1"}
        boss list
        boss spawn {"agent": "lead", "prompt": "four"}
        @4 spawn {"agent": "kid", "prompt": "five"}
        end @4 first
        "#,
        &expect![[r#"
            {"status":"ok","id":"@1","agent":"lead","message":"Agent 'lead' spawned as '@1'. Use agent__check or agent__collect to get results."}
              Spawn { id: AgentId("@1"), agent: "lead", prompt: "one", depth: 1 }
            {"status":"ok","id":"@2","agent":"kid","message":"Agent 'kid' spawned as '@2'. Use agent__check or agent__collect to get results."}
              Spawn { id: AgentId("@2"), agent: "kid", prompt: "two", depth: 2 }
            {"status":"ok","id":"@3","agent":"kid","message":"Agent 'kid' spawned as '@3'. Use agent__check or agent__collect to get results."}
              Spawn { id: AgentId("@3"), agent: "kid", prompt: "three", depth: 2 }
            {"status":"ok","message":"Cancelled agent 'lead'"}
              Cancel(AgentId("@2"))
              Cancel(AgentId("@1"))
            {"status":"error","message":"No agent found with id '@1'"}
            {"active_count":0,"max_concurrent":4,"agents":[]}
            {"status":"ok","id":"@4","agent":"lead","message":"Agent 'lead' spawned as '@4'. Use agent__check or agent__collect to get results."}
              Spawn { id: AgentId("@4"), agent: "lead", prompt: "four", depth: 1 }
            {"status":"ok","id":"@5","agent":"kid","message":"Agent 'kid' spawned as '@5'. Use agent__check or agent__collect to get results."}
              Spawn { id: AgentId("@5"), agent: "kid", prompt: "five", depth: 2 }
              Cancel(AgentId("@5"))
        "#]],
    );
}

#[test]
fn long_outputs_are_summarised() {
    check(
        Settings { summarize_from: 5, ..boss() },
        r#"
        boss spawn {"agent": "kid", "prompt": "one"}
        end @1 12345
        boss collect {"id": "@1"}
        "#,
        &expect![[r#"
            {"status":"ok","id":"@1","agent":"kid","message":"Agent 'kid' spawned as '@1'. Use agent__check or agent__collect to get results."}
              Spawn { id: AgentId("@1"), agent: "kid", prompt: "one", depth: 1 }
            summarize "12345"
        "#]],
    );
}

#[test]
fn questions_reach_the_first_agent() {
    check(
        boss(),
        r#"
        boss user__ask {"question": "which?", "options": "[\"a\", 1, \"b\"]"}
        boss user__ask {"question": "which?", "options": "a"}
        boss spawn {"agent": "kid", "prompt": "one"}
        @1 user__checkbox {"question": "which?", "options": ["a", "b"]}
        boss check {"id": "@1"}
        boss collect {"id": "@1"}
        boss reply_escalation {"escalation_id": "@2", "reply": "a, b"}
        boss reply_escalation {"escalation_id": "@2", "reply": "b"}
        wait @1
        @1 user__confirm {"question": "sure?"}
        time 4999
        wait @1
        time 5000
        wait @1
        boss collect {"id": "@1"}
        boss reply_escalation {"escalation_id": "@2"}
        @1 spawn {"agent": "kid", "prompt": "x"}
        "#,
        &expect![[r#"
            ask Choice "which?" ["a", "b"]
            {"tool_call_error":"User interaction failed: 'options' is a text that is no JSON array. Give an array, as in [\"yes\", \"no\"]."}
            {"status":"ok","id":"@1","agent":"kid","message":"Agent 'kid' spawned as '@1'. Use agent__check or agent__collect to get results."}
              Spawn { id: AgentId("@1"), agent: "kid", prompt: "one", depth: 1 }
            waits
            {"status":"pending","id":"@1","message":"Agent is still running. Child agents have pending escalations that need your reply via agent__reply_escalation.","pending_escalations":[{"escalation_id":"@2","from_agent_id":"@1","from_agent_name":"kid","question":"[checkbox] which?","options":["a","b"]}]}
            {"status":"pending","id":"@1","message":"Agent '@1' is still running, but child agents have pending escalations that need your reply. Reply via agent__reply_escalation, then call agent__collect again.","pending_escalations":[{"escalation_id":"@2","from_agent_id":"@1","from_agent_name":"kid","question":"[checkbox] which?","options":["a","b"]}]}
            {"status":"ok","message":"Reply sent to agent 'kid' for escalation '@2'","original_question":"[checkbox] which?"}
            {"status":"error","message":"No pending escalation found with id '@2'. It may have already been replied to or timed out."}
            {"answers":["a","b"]}
            waits
            waits
            {"error":"No answer within 5 seconds","fallback":"Use your own judgment and go on"}
            waits
            {"tool_call_error":"Supervisor tool failed: 'reply' is required"}
            {"tool_call_error":"Supervisor tool failed: this agent may not start helpers"}
        "#]],
    );
}

#[test]
fn messages_reach_helpers_siblings_and_the_parent() {
    check(
        boss(),
        r#"
        boss spawn {"agent": "kid", "prompt": "one"}
        boss spawn {"agent": "kid", "prompt": "two"}
        boss send_message {"id": "@1", "message": "first"}
        @2 send_message {"id": "@1", "message": "second"}
        @1 check_inbox
        @1 check_inbox
        time 1700000000000
        @1 send_message {"id": "parent", "message": "up"}
        boss check_inbox
        boss send_message {"id": "nobody", "message": "x"}
        boss send_message {"id": "x"}
        boss send_message {"message": "x"}
        "#,
        &expect![[r#"
            {"status":"ok","id":"@1","agent":"kid","message":"Agent 'kid' spawned as '@1'. Use agent__check or agent__collect to get results."}
              Spawn { id: AgentId("@1"), agent: "kid", prompt: "one", depth: 1 }
            {"status":"ok","id":"@2","agent":"kid","message":"Agent 'kid' spawned as '@2'. Use agent__check or agent__collect to get results."}
              Spawn { id: AgentId("@2"), agent: "kid", prompt: "two", depth: 1 }
            {"status":"ok","message":"Message delivered to agent '@1'"}
            {"status":"ok","message":"Message delivered to agent '@1'"}
            {"messages":[{"from":"boss","payload":{"type":"text","content":"first"},"timestamp":"1970-01-01T00:00:00Z"},{"from":"@2","payload":{"type":"text","content":"second"},"timestamp":"1970-01-01T00:00:00Z"}],"count":2}
            {"messages":[],"count":0}
            {"status":"ok","message":"Message delivered to agent 'parent'"}
            {"messages":[{"from":"@1","payload":{"type":"text","content":"up"},"timestamp":"2023-11-14T22:13:20Z"}],"count":1}
            {"status":"error","message":"No agent found with id 'nobody'. Agent may not exist or may have already completed."}
            {"tool_call_error":"Supervisor tool failed: 'message' is required"}
            {"tool_call_error":"Supervisor tool failed: 'id' is required"}
        "#]],
    );
}

#[test]
fn tasks_start_agents_once_they_can_be_done() {
    check(
        Settings { concurrent: 1, ..boss() },
        r#"
        boss task_create {"subject": "A"}
        boss task_create {"subject": "B", "blocked_by": ["1", 1, "9", "2"], "agent": "kid", "prompt": "b"}
        boss task_create {"subject": "C", "blocked_by": [1], "agent": "kid", "prompt": "c"}
        boss task_create {"subject": "D", "agent": "kid"}
        boss task_list
        boss task_complete {"task_id": "1"}
        boss task_list
        end @1 done
        boss collect {"id": "@1"}
        boss task_create {"subject": "E", "blocked_by": ["1"]}
        boss task_create {"subject": "F", "blocked_by": ["4"]}
        boss task_fail {"task_id": 4}
        boss task_fail {"task_id": "7"}
        boss task_complete {"task_id": "7"}
        boss task_complete {"task_id": "4"}
        boss task_complete {}
        boss task_list
        "#,
        &expect![[r#"
            {"status":"ok","task_id":"1"}
            {"status":"ok","task_id":"2","auto_dispatch":true,"warnings":["Dependency task '9' does not exist","A task cannot depend on itself"]}
            {"status":"ok","task_id":"3","auto_dispatch":true}
            {"tool_call_error":"Supervisor tool failed: 'prompt' is required when 'agent' is set"}
            {"tasks":[{"id":"1","subject":"A","status":"pending","owner":null,"blocked_by":[],"blocks":["2","3"],"agent":null,"prompt":null},{"id":"2","subject":"B","status":"blocked","owner":null,"blocked_by":["1"],"blocks":[],"agent":"kid","prompt":"b"},{"id":"3","subject":"C","status":"blocked","owner":null,"blocked_by":["1"],"blocks":[],"agent":"kid","prompt":"c"}]}
            {"status":"ok","task_id":"1","newly_runnable":[{"id":"2","subject":"B","description":"","agent":"kid"},{"id":"3","subject":"C","description":"","agent":"kid"}],"auto_dispatched":[{"status":"ok","id":"@1","agent":"kid","message":"Agent 'kid' spawned as '@1'. Use agent__check or agent__collect to get results."},{"status":"error","message":"At capacity: 1/1 agents running. Wait for one to finish or cancel one."}]}
              Spawn { id: AgentId("@1"), agent: "kid", prompt: "b", depth: 1 }
            {"tasks":[{"id":"1","subject":"A","status":"completed","owner":null,"blocked_by":[],"blocks":["2","3"],"agent":null,"prompt":null},{"id":"2","subject":"B","status":"in_progress","owner":"auto:kid","blocked_by":[],"blocks":[],"agent":"kid","prompt":"b"},{"id":"3","subject":"C","status":"pending","owner":null,"blocked_by":[],"blocks":[],"agent":"kid","prompt":"c"}]}
            {"status":"completed","id":"@1","agent":"kid","exit_status":"Completed","output":"done"}
              Spawn { id: AgentId("@2"), agent: "kid", prompt: "c", depth: 1 }
            {"status":"ok","task_id":"4"}
            {"status":"ok","task_id":"5"}
            {"status":"ok","task_id":"4","blocked_dependents":["5"],"message":"Task '4' marked as failed. 1 dependent task(s) will remain blocked."}
            {"status":"error","message":"Task '7' not found"}
            {"status":"ok","task_id":"7","newly_runnable":[]}
            {"status":"ok","task_id":"4","newly_runnable":[{"id":"5","subject":"F","description":"","agent":null}]}
            {"tool_call_error":"Supervisor tool failed: 'task_id' is required"}
            {"tasks":[{"id":"1","subject":"A","status":"completed","owner":null,"blocked_by":[],"blocks":["2","3"],"agent":null,"prompt":null},{"id":"2","subject":"B","status":"in_progress","owner":"auto:kid","blocked_by":[],"blocks":[],"agent":"kid","prompt":"b"},{"id":"3","subject":"C","status":"in_progress","owner":"auto:kid","blocked_by":[],"blocks":[],"agent":"kid","prompt":"c"},{"id":"4","subject":"E","status":"completed","owner":null,"blocked_by":[],"blocks":["5"],"agent":null,"prompt":null},{"id":"5","subject":"F","status":"pending","owner":null,"blocked_by":[],"blocks":[],"agent":null,"prompt":null}]}
        "#]],
    );
}

#[test]
fn an_agent_that_stops_is_reminded_of_its_helpers() {
    check(
        boss(),
        r#"
        stop boss
        boss spawn {"agent": "kid", "prompt": "one"}
        stop boss
        stop boss
        @1 user__input {"question": "name?"}
        stop boss
        stop boss
        boss list
        "#,
        &expect![[r#"
            Accepted
            {"status":"ok","id":"@1","agent":"kid","message":"Agent 'kid' spawned as '@1'. Use agent__check or agent__collect to get results."}
              Spawn { id: AgentId("@1"), agent: "kid", prompt: "one", depth: 1 }
            Reminded("[SYSTEM REMINDER] You stopped while helpers of yours still work: @1. Collect the result of each with agent__collect, or cancel it with agent__cancel.")
            Reminded("[SYSTEM REMINDER] You stopped while helpers of yours still work: @1. Collect the result of each with agent__collect, or cancel it with agent__cancel.")
            waits
            Reminded("[SYSTEM REMINDER] You stopped while helpers of yours still work: @1. Collect the result of each with agent__collect, or cancel it with agent__cancel. They wait for your replies (agent__reply_escalation): [{\"escalation_id\":\"@2\",\"from_agent_id\":\"@1\",\"from_agent_name\":\"kid\",\"question\":\"[input] name?\"}]")
            Accepted
              Cancel(AgentId("@1"))
            {"active_count":0,"max_concurrent":4,"agents":[]}
        "#]],
    );
}
