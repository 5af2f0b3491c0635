//! Skills.

use atlas_access::Right;

use super::operation::{Body, Content, Operation};
use super::parts::{
    BODY, CONSISTENCY, DRY_RUN, IDEMPOTENCY_KEY, IF_MATCH, IF_NONE_MATCH, READ, STORED, WRITE, created, delete, get,
    in_namespace, ok, post, word,
};
use crate::catalogue::{
    CLUSTER_FULL, LIMIT_REACHED, NAMESPACE_FULL, NAMESPACE_LIMIT, OBJECT_CHANGED, OBJECT_IN_USE, OBJECT_REFUSED,
    PACKAGE_REFUSED, PEERS_AWAY, QUEUE_FULL, UNKNOWN_OBJECT, UNKNOWN_OBJECT_KIND, VERSION_TAKEN,
};
use crate::types::{Deletion, Registration, Skill, SkillTest, SkillTested};

operation_ids! {
    /// Skills.
    Skills {
        ListSkills = "skills",
        DeploySkill = "deploySkill",
        GetSkill = "getSkill",
        TestSkill = "testSkill",
        RemoveSkill = "removeSkill",
    }
}

pub(super) const OPERATIONS: &[Operation] = &[
    get(
        Skills::ListSkills.id(),
        in_namespace(Right::AgentsRead),
        "/api/skills",
        "The skills, the oldest first, then the platform's tools.",
    )
    .compatible()
    .takes(&[CONSISTENCY])
    .answers(&[ok("the skills", &[Content::list::<Skill>()])])
    .refuses(&[READ]),
    post(
        Skills::DeploySkill.id(),
        in_namespace(Right::AgentsPublish),
        "/api/skills",
        "Deploys a skill from its package. It replaces one of the same name.",
    )
    .takes(&[word("replace", &["true", "false"], "`true` replaces another package of the same version")])
    .body(Body::Package)
    .answers(&[created("the skill is deployed", &[Content::json::<Registration>()])])
    .refuses(&[
        WRITE,
        BODY,
        &[
            PACKAGE_REFUSED,
            UNKNOWN_OBJECT_KIND,
            UNKNOWN_OBJECT,
            OBJECT_CHANGED,
            OBJECT_REFUSED,
            VERSION_TAKEN,
            LIMIT_REACHED,
            CLUSTER_FULL,
            PEERS_AWAY,
        ],
    ]),
    get(Skills::GetSkill.id(), in_namespace(Right::AgentsRead), "/api/skills/{name}", "One skill.")
        .takes(&[CONSISTENCY])
        .answers(&[ok("the skill", &[Content::json::<Skill>()])])
        .refuses(&[READ, &[UNKNOWN_OBJECT]]),
    post(
        Skills::TestSkill.id(),
        in_namespace(Right::JobsSubmit),
        "/api/skills/{name}/test",
        "Calls a skill as an agent would, and waits for its end.",
    )
    .body(Body::maybe_json::<SkillTest>())
    .answers(&[ok("how the call ended", &[Content::json::<SkillTested>()])])
    .refuses(&[
        WRITE,
        BODY,
        STORED,
        &[UNKNOWN_OBJECT, PACKAGE_REFUSED, QUEUE_FULL, LIMIT_REACHED, CLUSTER_FULL, NAMESPACE_LIMIT, NAMESPACE_FULL],
    ]),
    delete(
        Skills::RemoveSkill.id(),
        in_namespace(Right::AgentsPublish),
        "/api/skills/{name}",
        "Removes a skill. Its package is kept as long as something uses it.",
    )
    .takes(&[IF_MATCH, IF_NONE_MATCH, DRY_RUN, IDEMPOTENCY_KEY])
    .answers(&[ok("the skill is removed", &[Content::json::<Deletion>()])])
    .refuses(&[WRITE, &[UNKNOWN_OBJECT_KIND, UNKNOWN_OBJECT, OBJECT_CHANGED, OBJECT_IN_USE]]),
];
