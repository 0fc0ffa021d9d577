use std::time::{Duration, Instant};

use reflect::sandbox::ScriptErrorKind;
use serde_json::json;

use crate::support::lua;

#[tokio::test]
async fn it_returns_what_the_script_returns() {
    let lua = lua();
    for (code, value) in [
        ("return true", json!(true)),
        ("return false", json!(false)),
        ("return 0.49", json!(0.49)),
        ("return 3", json!(3)),
        ("return 'ok'", json!("ok")),
        ("return {}", json!({})),
        (
            "return {valid=false, score=0.1, errors={'too short'}}",
            json!({"valid": false, "score": 0.1, "errors": ["too short"]}),
        ),
        ("result = {valid=true}", json!({"valid": true})),
        ("local x = 1", json!(null)),
        (
            "return output == 'the draft' and state.name == 'Ada'",
            json!(true),
        ),
        (
            "return state.nothing == nil and #state.tags == 2",
            json!(true),
        ),
        (
            "return {reflection_output, reflection_iteration, reflection_errors}",
            json!(["the draft", 3, []]),
        ),
        ("return state.user.age + 1", json!(37)),
        (
            "return state",
            json!({"reflection_iteration": 3, "name": "Ada", "tags": ["a", "b"], "empty": [], "user": {"age": 36, "big": 1e300}}),
        ),
        (
            "return json.decode('{\"a\": [1, null, {\"b\": []}]}').a[3]",
            json!({"b": []}),
        ),
        (
            "return json.encode({a = {1, 2}, b = json.null})",
            json!("{\"a\":[1,2],\"b\":null}"),
        ),
        ("return load('return 1 + 1')()", json!(2)),
        ("return 7 // 2, 'second is dropped'", json!(3)),
        ("return {[1]='a', x='b'}", json!({"1": "a", "x": "b"})),
        ("return ('ü'):sub(1, 1)", json!("\u{fffd}")),
    ] {
        assert_eq!(lua.value(code).await, value, "{code}");
    }
}

#[tokio::test]
async fn printed_output_is_separate_from_the_result() {
    let outcome = lua()
        .run("print('a', 1, nil, true); print('{\"value\": 9}'); return 1")
        .await
        .unwrap();
    assert_eq!(outcome.value, json!(1));
    assert_eq!(outcome.prints, "a\t1\tnil\ttrue\n{\"value\": 9}\n");
}

#[tokio::test]
async fn errors_name_the_line_of_the_script() {
    let lua = lua();
    for (code, kind, line, message) in [
        (
            "\n\nreturn )",
            ScriptErrorKind::Syntax,
            Some(3),
            "unexpected symbol near ')'",
        ),
        (
            "local x\nx.y = 1",
            ScriptErrorKind::Runtime,
            Some(2),
            "attempt to index a nil value (local 'x')",
        ),
        (
            "\nerror('kaput')",
            ScriptErrorKind::Runtime,
            Some(2),
            "kaput",
        ),
        (
            "local function f()\n  error('deep')\nend\nf()",
            ScriptErrorKind::Runtime,
            Some(2),
            "deep",
        ),
        (
            "\njson.decode('{')",
            ScriptErrorKind::Runtime,
            Some(2),
            "json.decode: EOF while parsing an object at line 1 column 1",
        ),
        (
            "error({code=1})",
            ScriptErrorKind::Runtime,
            Some(1),
            "table",
        ),
        (
            "return 0/0",
            ScriptErrorKind::Protocol,
            None,
            "which JSON cannot represent",
        ),
        (
            "return math.huge",
            ScriptErrorKind::Protocol,
            None,
            "the number inf, which JSON cannot represent",
        ),
        (
            "return print",
            ScriptErrorKind::Protocol,
            None,
            "a function, which JSON cannot represent",
        ),
        (
            "local t = {}; t.t = t; return t",
            ScriptErrorKind::Protocol,
            None,
            "contains itself",
        ),
    ] {
        let error = lua.error(code).await;
        assert_eq!((error.kind, error.line), (kind, line), "{code}: {error:?}");
        assert!(error.message.contains(message), "{code}: {error:?}");
        assert!(!error.message.contains("stack traceback"), "{error:?}");
    }
}

#[tokio::test]
async fn scripts_have_no_access_to_the_system() {
    let lua = lua();
    for code in [
        "return io.open('/etc/passwd'):read('a')",
        "return os.execute('id')",
        "return os.time()",
        "return os.getenv('HOME')",
        "return require('os')",
        "return package.loadlib('libc.so.6', 'system')",
        "return dofile('/etc/passwd')",
        "return loadfile('/etc/passwd')()",
        "return debug.getregistry()",
        "return string.dump(function() end)",
        "return collectgarbage('count')",
        "return load('\\27Lua', 'x', 'b')()",
        "return select(2, load(string.char(27) .. 'LuaT', 'x', 'bt')) == nil or error('refused')",
    ] {
        assert_eq!(
            lua.error(code).await.kind,
            ScriptErrorKind::Runtime,
            "{code}"
        );
    }
    assert_eq!(
        lua.value("return _G._G == _G and os == nil and io == nil")
            .await,
        json!(true)
    );
}

#[tokio::test]
async fn scripts_leave_no_state_behind() {
    let lua = lua();
    let tamper = "getmetatable('').__index = {upper = function() return 'bad' end}
        string.upper = nil; leak = 1; state.name = 'x'; math.floor = nil; json.encode = nil
        return ('a'):upper()";
    assert_eq!(lua.value(tamper).await, json!("bad"));
    let look =
        "return {('a'):upper(), tostring(leak), state.name, math.floor(1.5), json.encode(1)}";
    assert_eq!(lua.value(look).await, json!(["A", "nil", "Ada", 1, "1"]));
    // The same draft gets the same verdict.
    let random = lua.value("return math.random(1000000)").await;
    assert_eq!(lua.value("return math.random(1000000)").await, random);
}

#[tokio::test]
async fn attacks_end_at_the_limit() {
    let lua = lua();
    let start = Instant::now();
    for (code, kind) in [
        ("while true do end", ScriptErrorKind::Time),
        (
            "while true do pcall(function() while true do end end) end",
            ScriptErrorKind::Time,
        ),
        (
            "local co = coroutine.wrap(function() while true do coroutine.yield() end end) while true do co() end",
            ScriptErrorKind::Time,
        ),
        (
            "coroutine.wrap(function() while true do end end)()",
            ScriptErrorKind::Time,
        ),
        (
            "return setmetatable({}, {__gc = function() while true do end end}) and (function() while true do end end)()",
            ScriptErrorKind::Time,
        ),
        (
            "return string.match(string.rep('a', 60), string.rep('a-', 30) .. 'b')",
            ScriptErrorKind::Time,
        ),
        (
            "local t = {} for i = 1, 1e9 do t[i] = {i} end",
            ScriptErrorKind::Memory,
        ),
        ("return #string.rep('x', 1e9)", ScriptErrorKind::Memory),
        (
            "local function f() return 1 + f() end return f()",
            ScriptErrorKind::Memory,
        ),
        (
            "local s = 'x' while true do s = s .. s end",
            ScriptErrorKind::Memory,
        ),
        ("return string.rep('x', 2000000)", ScriptErrorKind::Output),
        (
            "for i = 1, 1e9 do print('a line that is printed again and again') end",
            ScriptErrorKind::Output,
        ),
        (
            "pcall(function() while true do print(('x'):rep(1000)) end end) return true",
            ScriptErrorKind::Output,
        ),
    ] {
        assert_eq!(lua.attack(code, "return 7").await, kind, "{code}");
    }
    assert!(start.elapsed() < Duration::from_secs(30));
}

#[tokio::test]
async fn an_endless_loop_is_reported_with_its_line() {
    let error = lua()
        .error("local x = 1\nwhile true do\n  x = x + 1\nend")
        .await;
    assert!(matches!(error.line, Some(2 | 3)), "{error:?}");
    assert!(error.to_string().contains("time limit"), "{error}");
}

#[tokio::test]
async fn a_huge_draft_passes_through() {
    use crate::support::{patient, request};
    let lua = lua();
    let draft = json!("ü".repeat(5_000_000));
    let request = request("return #output", draft);
    let outcome = lua
        .pool
        .evaluate(lua.language, &request, &patient())
        .await
        .unwrap();
    assert_eq!(outcome.value, json!(10_000_000));
}

#[cfg(target_os = "linux")]
#[test]
fn the_worker_is_confined_by_the_kernel() {
    use std::io::{BufRead, BufReader, Write};
    use std::process::{Command, Stdio};
    let mut worker = Command::new(env!("CARGO_BIN_EXE_reflect"))
        .args(["__worker", "lua"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = worker.stdin.take().unwrap();
    let ask = r#"{"request": {"code": "return #output", "output": "abc"}, "limits": {"seconds": 1, "memory": 9000000, "output": 100}}"#;
    writeln!(stdin, "{ask}").unwrap();
    let mut answers = BufReader::new(worker.stdout.take().unwrap()).lines();
    assert_eq!(answers.next().unwrap().unwrap(), "{\"ready\":true}");
    let answer = answers.next().unwrap().unwrap();
    assert_eq!(answer, "{\"value\":3,\"prints\":\"\"}");
    let status = std::fs::read_to_string(format!("/proc/{}/status", worker.id())).unwrap();
    let line = status.lines().find(|l| l.starts_with("Seccomp:")).unwrap();
    assert!(line.ends_with('2'), "{line}");
    drop(stdin);
    assert!(worker.wait().unwrap().success());
}

/// Each of these catches the error at the time limit and then returns a result.
#[tokio::test]
async fn a_script_cannot_catch_its_time_limit() {
    let lua = lua();
    for code in [
        "local co = coroutine.wrap(function() while true do end end)\npcall(co)\nreturn 7",
        "local co = coroutine.create(function() while true do end end)\ncoroutine.resume(co)\ncoroutine.close(co)\nreturn 7",
        "pcall(function() while true do end end)\nreturn 7",
    ] {
        assert_eq!(
            lua.attack(code, "return 7").await,
            ScriptErrorKind::Time,
            "{code}"
        );
    }
}

/// The first evaluation of a worker has the same time limit as the others.
#[tokio::test]
async fn a_pattern_search_that_does_not_return_is_killed_at_the_limit() {
    let start = Instant::now();
    let code = "return ('a'):rep(5000):match(('.-'):rep(30) .. 'b')";
    assert_eq!(lua().error(code).await.kind, ScriptErrorKind::Time);
    assert!(start.elapsed() < Duration::from_secs(8));
}
