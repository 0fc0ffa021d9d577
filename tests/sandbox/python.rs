use std::time::{Duration, Instant};

use reflect::sandbox::{Language, ScriptErrorKind};
use serde_json::json;

use crate::support::{Bench, with};

fn python() -> Option<Bench> {
    with(Language::Python, "python3")
}

#[tokio::test]
async fn it_returns_what_the_script_returns() {
    let Some(python) = python() else { return };
    for (code, value) in [
        ("return {'valid': True}", json!({"valid": true})),
        ("return 0.49", json!(0.49)),
        ("result = False", json!(false)),
        ("x = 1", json!(null)),
        ("output = output.upper()", json!("THE DRAFT")),
        (
            "if len(output) > 100:\n    return 1\nresult = 'short'",
            json!("short"),
        ),
        (
            "if len(output) > 100:\n    return 1\noutput = output + '!'",
            json!("the draft!"),
        ),
        ("try:\n    return 1\nexcept:\n    return 2", json!(1)),
        ("def f():\n    return 5\nresult = f()", json!(5)),
        (
            "def fac(n):\n    return 1 if n < 2 else n * fac(n - 1)\nreturn fac(5)",
            json!(120),
        ),
        (
            "xs = [1, 2]\nresult = [x + len(xs) for x in xs]",
            json!([3, 4]),
        ),
        (
            "return [state['name'], reflection_output, reflection_iteration, reflection_errors]",
            json!(["Ada", "the draft", 3, []]),
        ),
        (
            "return json.loads('[1]') + re.findall('d', output)",
            json!([1, "d"]),
        ),
        (
            "result = {2, 1}, b'\\xff', None, 'a\\nb', '\\ud800'",
            json!([[1, 2], "\u{fffd}", null, "a\nb", "?"]),
        ),
        ("    result = 1\n    result += 1", json!(2)),
        ("", json!(null)),
    ] {
        assert_eq!(python.value(code).await, value, "{code}");
    }
}

#[tokio::test]
async fn the_example_of_the_custom_evaluator_works() {
    let Some(python) = python() else { return };
    let code = r#"
import json
try:
    data = json.loads(output) if isinstance(output, str) else output
    score = bool(data.get("name"))
    result = {"valid": score >= 1.0, "score": score}
except:
    result = {"valid": False, "score": 0.0, "errors": [{"message": "Invalid JSON"}]}
"#;
    let value = python.value(code).await;
    assert_eq!(
        value,
        json!({"valid": false, "score": 0.0, "errors": [{"message": "Invalid JSON"}]})
    );
}

#[tokio::test]
async fn printed_output_is_separate_from_the_result() {
    let Some(python) = python() else { return };
    let code = "import sys, os\nprint('a', 1)\nprint('{\"value\": 9}', file=sys.stderr)\nos.write(1, b'{\"value\": 8}\\n')\nresult = 1";
    let outcome = python.run(code).await.unwrap();
    assert_eq!(
        (outcome.value, outcome.prints.as_str()),
        (json!(1), "a 1\n{\"value\": 9}\n")
    );
}

#[tokio::test]
async fn errors_name_the_line_of_the_script() {
    let Some(python) = python() else { return };
    for (code, kind, line, message) in [
        (
            "x = 1\n\nif x\n    pass",
            ScriptErrorKind::Syntax,
            Some(3),
            "SyntaxError: expected ':'",
        ),
        (
            "x = 1\ny = x / 0",
            ScriptErrorKind::Runtime,
            Some(2),
            "ZeroDivisionError: division by zero",
        ),
        (
            "def f():\n    raise ValueError('kaput')\n\nreturn f()",
            ScriptErrorKind::Runtime,
            Some(2),
            "ValueError: kaput",
        ),
        (
            "\njson.loads('{')",
            ScriptErrorKind::Runtime,
            Some(2),
            "JSONDecodeError",
        ),
        (
            "import no_such_module",
            ScriptErrorKind::Runtime,
            Some(1),
            "ModuleNotFoundError",
        ),
        (
            "def f():\n    return f()\nf()",
            ScriptErrorKind::Runtime,
            Some(2),
            "RecursionError",
        ),
        (
            "import sys\nsys.exit(3)",
            ScriptErrorKind::Runtime,
            Some(2),
            "sys.exit(3)",
        ),
        (
            "import os\nos._exit(0)",
            ScriptErrorKind::Runtime,
            None,
            "exited the interpreter",
        ),
        (
            "import os\nos.abort()",
            ScriptErrorKind::Runtime,
            None,
            "signal 6",
        ),
        (
            "result = float('nan')",
            ScriptErrorKind::Protocol,
            None,
            "JSON cannot represent",
        ),
        (
            "result = [float('inf')]",
            ScriptErrorKind::Protocol,
            None,
            "JSON cannot represent",
        ),
        (
            "result = print",
            ScriptErrorKind::Protocol,
            None,
            "builtin_function_or_method",
        ),
        (
            "result = []\nresult.append(result)",
            ScriptErrorKind::Protocol,
            None,
            "contains itself",
        ),
        (
            "result = None\nfor _ in range(100000): result = [result]",
            ScriptErrorKind::Protocol,
            None,
            "nested too deeply",
        ),
        (
            "result = 10 ** 400",
            ScriptErrorKind::Protocol,
            None,
            "number out of range",
        ),
        (
            "await x",
            ScriptErrorKind::Syntax,
            Some(1),
            "outside function",
        ),
    ] {
        let error = python.error(code).await;
        assert_eq!((error.kind, error.line), (kind, line), "{code}: {error:?}");
        assert!(error.message.contains(message), "{code}: {error:?}");
    }
}

#[tokio::test]
async fn scripts_leave_no_state_behind() {
    let Some(python) = python() else { return };
    let tamper = "import builtins, json, sys\nleak = 1\nbuiltins.len = lambda x: 0\njson.dumps = json.loads = None\nsys.modules['re'] = None\nstate['name'] = 'x'\nresult = len('abc')";
    assert_eq!(python.value(tamper).await, json!(0));
    let look =
        "import re\nresult = [len('abc'), 'leak' in globals(), json.dumps(1), state['name']]";
    assert_eq!(python.value(look).await, json!([3, false, "1", "Ada"]));
}

#[tokio::test]
async fn attacks_end_at_the_limit() {
    let Some(python) = python() else { return };
    let start = Instant::now();
    for (code, kind) in [
        ("while True: pass", ScriptErrorKind::Time),
        (
            "while True:\n    try:\n        while True: pass\n    except BaseException: pass",
            ScriptErrorKind::Time,
        ),
        ("import time\ntime.sleep(60)", ScriptErrorKind::Time),
        ("re.match('(a+)+$', 'a' * 60 + 'b')", ScriptErrorKind::Time),
        (
            "import signal, os\nsignal.signal(signal.SIGALRM, signal.SIG_IGN)\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nos.close(1)\nwhile True: pass",
            ScriptErrorKind::Time,
        ),
        ("x = 'x' * 10 ** 10", ScriptErrorKind::Memory),
        (
            "x = []\nwhile True: x.append(' ' * 100000)",
            ScriptErrorKind::Memory,
        ),
        ("result = 'x' * 2000000", ScriptErrorKind::Output),
        (
            "while True: print('again and again')",
            ScriptErrorKind::Output,
        ),
        (
            "import os\nwhile True: os.write(2, b'x' * 65536)",
            ScriptErrorKind::Time,
        ),
    ] {
        assert_eq!(python.attack(code, "return 7").await, kind, "{code}");
    }
    assert!(start.elapsed() < Duration::from_secs(40));
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn processes_are_bounded_and_end_with_the_script() {
    let Some(python) = python() else { return };
    // Bounded, in case the limit does not work.
    let bomb = "import os, time\nfor _ in range(200):\n    if os.fork() == 0:\n        time.sleep(20)\n        os._exit(0)\ntime.sleep(1)";
    let kind = python.attack(bomb, "return 7").await;
    assert!(
        matches!(kind, ScriptErrorKind::Memory | ScriptErrorKind::Runtime),
        "{kind:?}"
    );
    let left = "import os, time\npid = os.fork()\nif pid == 0:\n    os.close(0)\n    time.sleep(300)\nresult = pid";
    let pid = python.value(left).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    // Without an init process that reaps orphans, it may remain as a zombie.
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    assert!(stat.is_empty() || stat.contains(") Z "), "{stat}");
}

#[tokio::test]
async fn a_draft_that_does_not_fit_is_a_memory_error() {
    use crate::support::{patient, request};
    let Some(python) = python() else { return };
    let request = request("result = len(output)", json!("x".repeat(70_000_000)));
    let limits = patient();
    let run = python.pool.evaluate(python.language, &request, &limits);
    assert_eq!(run.await.unwrap_err().kind, ScriptErrorKind::Memory);
    assert_eq!(python.value("return 7").await, json!(7));
}

#[tokio::test]
async fn a_script_cannot_catch_its_time_limit() {
    let Some(python) = python() else { return };
    let code = "try:\n    while True:\n        pass\nexcept BaseException:\n    pass\nreturn 7";
    assert_eq!(python.attack(code, "return 7").await, ScriptErrorKind::Time);
}
