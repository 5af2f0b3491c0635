//! Tools for databases.

use serde_json::json;

use crate::bench::{Bench, is_here};

#[test]
fn statements_of_sql_are_checked() {
    if !is_here("python3") {
        return;
    }
    let bench = Bench::new().with("dsn", "sqlite:data.db");
    let make = "import sqlite3; d = sqlite3.connect('data.db'); d.execute('create table t (a, b)'); d.execute('insert into t values (1, null), (2, ?)', ['x,\\n;']); d.commit()";
    bench.said("execute_py_code", json!({ "code": make }));
    let sql = |code: &str| bench.said("execute_sql_code", json!({ "code": code }));
    assert_eq!(sql("select * from t -- all"), "a,b\n1,\n2,\"x,\n;\"\n");
    assert_eq!(sql("update t set a = 5"), "done: 2 rows changed");
    assert!(
        sql("with recursive c(x) as (select 1 union all select x + 1 from c limit 5000) select x from c")
            .contains("more than 1000 rows")
    );
    for (code, words) in [
        ("", "there is no statement"),
        ("-- nothing", "there is no statement"),
        ("\\! id", "are not SQL"),
        ("attach '/tmp/x' as y", "not authorized"),
        ("select load_extension('x')", "not authorized"),
        ("select 1; drop table t", "one statement"),
        ("selec", "syntax error"),
    ] {
        bench.fails("execute_sql_code", json!({ "code": code }), words);
    }
    Bench::new().fails("execute_sql_code", json!({"code": "select 1"}), "set the variable dsn");
    Bench::new().with("dsn", "odd:x").fails("execute_sql_code", json!({"code": "select 1"}), "cannot be used here");
    Bench::new().with("dsn", "sqlite:none").fails("execute_sql_code", json!({"code": "select 1"}), "does not exist");
}
