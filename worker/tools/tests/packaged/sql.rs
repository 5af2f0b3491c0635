//! Tools for databases.

use atlas_postgres::Postgres;
use serde_json::json;

use crate::bench::{Bench, is_here, said};

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

#[test]
fn memory_and_passwords_stay_where_they_are() {
    if !is_here("python3") {
        return;
    }
    let bench = Bench::new().with("dsn", "sqlite::memory:");
    let rows =
        "with recursive c(x) as (select 1 union all select x + 1 from c limit 900) select hex(zeroblob(1000)) from c";
    let text = bench.said("execute_sql_code", json!({ "code": rows }));
    assert!(text.len() < 300_000 && text.ends_with("rows: add a LIMIT)\n"), "{}", text.len());
    // Without the limit of a value, which Python 3.10 cannot set, memory ends.
    bench.fails("execute_sql_code", json!({"code": "select hex(zeroblob(400000000))"}), "refused the statement");
    for dsn in ["host=db user=u password=sesame", "postgres://u:sesame#@h/db", "postgres://u:sesame/@h/db", "sesame"] {
        let called = Bench::new().with("dsn", dsn).call("execute_sql_code", &json!({"code": "select 1"}));
        let text = called.value.to_string();
        assert!(called.failed && text.contains("the variable dsn is no address") && !text.contains("sesame"), "{text}");
    }
    // A program sees the address in a file, and what it says of it is not shown.
    let bench = Bench::new().with("dsn", "mysql://u:ses%40me@h/db");
    bench.program("usql", "echo \"$*\"; cat \"$3\"; echo ses@me; exit 1");
    let text = bench.call("execute_sql_code", &json!({"code": "select 1"})).value.to_string();
    bench.fails("execute_sql_code", json!({"code": "select $$'$$ \\! id '"}), "a backslash");
    assert!(text.contains("select 1 atlas") && text.contains("mysql://u:***@h/db"), "{text}");
    assert!(!text.contains("ses%40me") && !text.contains("ses@me"), "{text}");
}

/// Statements that look as if they read, and change data if the server gets them as they are.
const WRITES: [(&str, &str); 14] = [
    ("delete from t", "only statements that read"),
    ("select 1; delete from t", "only one statement"),
    ("select 1 --'\n; commit; begin read write; delete from t; commit --'", "only one statement"),
    ("select 1 --\r; commit; begin read write; delete from t; commit --", "only one statement"),
    ("select $$'$$; commit; begin read write; delete from t; commit; select $$'$$", "multi-query"),
    ("select $a$'$a$; commit; delete from t; commit; select $a$'$a$", "multi-query"),
    ("select E'\\''; commit; begin read write; delete from t; commit --'", "multi-query"),
    ("select 1 /* /* */ ' */; commit; delete from t; commit /* ' */", "multi-query"),
    ("with gone as (delete from t returning *) select * from gone", "read-only transaction"),
    ("explain analyze delete from t", "read-only transaction"),
    ("select nextval('s')", "read-only transaction"),
    ("select set_config('transaction_read_only', 'off', false)", "must be set before any query"),
    ("select * into other from t", "SELECT INTO"),
    ("select 1\n$atlas$; end $atlas$; delete from t", "only one statement"),
];

#[test]
fn statements_that_read_change_nothing_in_postgresql() {
    if !is_here("python3") || !is_here("psql") {
        return;
    }
    let Some(server) = Postgres::start() else { return };
    server.sql("create sequence s; create table t (a int, b text); insert into t values (1, 'x;y'), (2, null)");
    let bench = Bench::new().with("dsn", &server.url());
    bench.refuses(("sql", "read_query"), &WRITES.map(|(query, words)| (json!({ "query": query }), words)));
    assert_eq!(server.sql("select count(*) from t"), "2");
    let read = bench.tool_of("sql", "read_query");
    let read = |query: &str| said(&read, &json!({ "query": query }));
    assert_eq!(read("select * from t order by a; -- 'all"), "a,b\n1,x;y\n2,\n");
    assert_eq!(read("select 'it''s' as \"a;b\", E'\\'' as c"), "a;b,c\nit's,'\n");
    assert_eq!(read("values (1)"), "column1\n1\n");
    assert!(read("explain select * from t").contains("Seq Scan"));
    assert_eq!(read("show standard_conforming_strings"), "standard_conforming_strings\non\n");
    assert!(
        read("select generate_series(1, 5000)").ends_with("\n1001\n(no more than 1001 rows are read: add a LIMIT)\n")
    );
    assert!(said(&bench.tool_of("sql", "list_tables"), &json!({})).contains("public,t,BASE TABLE"));
    assert!(said(&bench.tool_of("sql", "describe_table"), &json!({"table": "t"})).contains("b,text,YES,"));
    let write = bench.tool_of("sql", "write_query");
    assert_eq!(said(&write, &json!({"query": "delete from t where a = 1"})), "done");
    assert_eq!(server.sql("select count(*) from t"), "1");
}
