//! Of what sort a node must be.

use expect_test::expect;

use super::check;

#[test]
fn hard_constraints_decide_where_a_job_can_run() {
    check(
        "node n1 places=1 arch=x86_64; node n2 places=1 arch=arm64 label=zone:eu dev=/dev/a; job j1 arch=arm64; job j2 \
         label=zone:eu; job j3 dev=/dev/a; job j4 pin=n1; plan; why j2",
        expect![[r#"
            j1 on n2: cores=0 mem=0
            j4 on n1: cores=0 mem=0
            j2 waiting for capacity on 2 nodes: 1 without the label, 2 no free concurrency permit; closest is "n2": needs 1 concurrency permit, has 0 of 1
        "#]],
    );
}

#[test]
fn a_python_agent_needs_python() {
    check(
        "node n1 places=2 label=python:none; node n2 places=1; job j1 python; job j2 python; job j3; plan; why j2",
        expect![[r#"
            j1 on n2: cores=0 mem=0
            j3 on n1: cores=0 mem=0
            j2 waiting for capacity on 2 nodes: 1 without Python, 1 no free concurrency permit; closest is "n1": needs Python, has none
        "#]],
    );
    check(
        "node n1 places=1 label=python:none; job j1 python cores=2; why j1; starts j1; plan",
        expect![[r#"
            j1 no registered worker can run it: 2 CPU cores, Python; closest is "n1": needs Python, has none
            j1 starts if another worker joins with: 2 CPU cores, Python
            j1 never: 2 CPU cores, Python
        "#]],
    );
    check(
        "node n1 places=1 label=python:none given=python:3; job j1 python; plan",
        expect![[r#"
        j1 on n1: cores=0 mem=0
    "#]],
    );
}

#[test]
fn a_node_agent_needs_node() {
    check(
        "node n1 places=2 label=node:none; node n2 places=1; job j1 node.js; job j2 node.js; job j3 python; plan; why j2",
        expect![[r#"
            j1 on n2: cores=0 mem=0
            j3 on n1: cores=0 mem=0
            j2 waiting for capacity on 2 nodes: 1 without Node.js, 1 no free concurrency permit; closest is "n1": needs Node.js, has none
        "#]],
    );
    check(
        "node n1 places=1 label=node:none; job j1 node.js; why j1; starts j1; plan",
        expect![[r#"
            j1 no registered worker can run it: Node.js; closest is "n1": needs Node.js, has none
            j1 starts if another worker joins with: Node.js
            j1 never: Node.js
        "#]],
    );
}

#[test]
fn an_operators_label_counts_in_place_of_the_workers() {
    check(
        "node n1 places=1 label=zone:eu given=zone:us; node n2 places=1 down given=zone:eu; job j1 label=zone:us; job j2 \
         label=zone:eu; why j2; plan",
        expect![[r#"
            j2 waiting for capacity on 2 nodes: 1 not accepting new leases, 1 without the label; closest is "n1": needs zone=eu, has us
            j1 on n1: cores=0 mem=0
        "#]],
    );
}
