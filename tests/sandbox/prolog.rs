use std::time::{Duration, Instant};

use reflect::sandbox::{Language, ScriptErrorKind};
use serde_json::json;

use crate::support::{Bench, with};

fn prolog() -> Option<Bench> {
    with(Language::Prolog, "swipl")
}

#[tokio::test]
async fn goals_programs_and_definitions_return_a_value() {
    let Some(prolog) = prolog() else { return };
    for (code, value) in [
        // Goals.
        ("state(name, N), string_length(N, 3).", json!(true)),
        ("state(name, \"Bob\").", json!(false)),
        // The last goal needs no full stop.
        ("state(name, N), N = 'Ada'", json!(true)),
        ("ok(1).\nok(X), return(result, X) % done", json!(1)),
        // Texts are atoms, and can be matched as strings.
        ("state(name, 'Ada'), state(name, \"Ada\").", json!(true)),
        (
            "state(tags, [a, b]), state(tags, [\"a\", X]), X == b.",
            json!(true),
        ),
        (
            "state(tags, T), memberchk(b, T), \\+ memberchk(c, T).",
            json!(true),
        ),
        (
            "state(user, U), V is U.age * 2, return(result, V).",
            json!(72),
        ),
        (
            "state(tags, T), state(empty, E), state(nothing, N), return(result, [T, E, N]).",
            json!([["a", "b"], [], null]),
        ),
        (
            "output(O), state(output, O), state(reflection_output, O), state(reflection_iteration, 3), state(reflection_errors, []).",
            json!(true),
        ),
        (
            "return(result, _{a: 'x', b: [true, 1.5, f(x), _], c: \"q\\\"\"}).",
            json!({"a": "x", "b": [true, 1.5, "f(x)", null], "c": "q\""}),
        ),
        (
            "return(valid, false), return(errors, ['too short']).",
            json!({"valid": false, "errors": ["too short"]}),
        ),
        (
            "score(0.3), feedback(\"one\"), feedback(two).",
            json!({"score": 0.3, "feedback": "one\ntwo"}),
        ),
        (
            "feedback(\"one\"), fail.",
            json!({"feedback": "one", "valid": false}),
        ),
        (
            "X in 1..10, Y in 1..10, X + Y #= 15, X #< Y, label([X, Y]), return(x, X), return(y, Y).",
            json!({"x": 5, "y": 10, "valid": true}),
        ),
        // Rules, then goals.
        (
            "ok(S, E) :- S >= 9, E =< 17.\n(ok(10, 14) -> return(valid, true) ; return(valid, false)).",
            json!({"valid": true}),
        ),
        (
            "parent(a, b). parent(b, c).\nanc(X, Y) :- parent(X, Y).\nanc(X, Y) :- parent(X, Z), anc(Z, Y).\n?- anc(a, c).",
            json!(true),
        ),
        (
            "s --> [hello], n.\nn --> [bob].\n:- phrase(s, [hello, bob]).",
            json!(true),
        ),
        (
            ":- dynamic(seen/1).\nassertz(seen(1)), seen(X), return(result, X).",
            json!(1),
        ),
        // Definitions.
        (
            "evaluate :- output(O), sub_string(O, _, _, _, \"draft\").",
            json!(true),
        ),
        (
            "score(S) :- output(O), string_length(O, L), S is L / 18.0.\nfeedback('too short') :- output(O), string_length(O, L), L < 50.",
            json!({"score": 0.5, "feedback": "too short"}),
        ),
        (
            "return(valid, V) :- ( output(\"\") -> V = false ; V = true ).",
            json!({"valid": true}),
        ),
        (
            ":- use_module(library(dcg/basics)).\n:- op(700, xfx, is_like).\nX is_like X.\na is_like a.\nevaluate :- a is_like a.",
            json!(true),
        ),
    ] {
        assert_eq!(prolog.value(code).await, value, "{code}");
    }
}

#[tokio::test]
async fn printed_output_is_separate_and_the_result_cannot_be_forged() {
    let Some(prolog) = prolog() else { return };
    let outcome = prolog
        .run("write('{\"value\":9}'), nl, return(result, 1).")
        .await
        .unwrap();
    assert_eq!(
        (outcome.value, outcome.prints.as_str()),
        (json!(1), "{\"value\":9}\n")
    );
}

#[tokio::test]
async fn errors_name_the_line_of_the_script() {
    let Some(prolog) = prolog() else { return };
    for (code, kind, line, message) in [
        (
            "a :- b.\n\nfoo(X :- .",
            ScriptErrorKind::Syntax,
            Some(3),
            "Syntax error",
        ),
        (
            "a(1).\nX is foo + 1.",
            ScriptErrorKind::Runtime,
            Some(2),
            "foo",
        ),
        (
            "\nthrow(kaput).",
            ScriptErrorKind::Runtime,
            Some(2),
            "kaput",
        ),
        (
            "nosuch(1), true.",
            ScriptErrorKind::Runtime,
            Some(1),
            "nosuch",
        ),
        ("ok(1).", ScriptErrorKind::Runtime, None, "nothing to run"),
        (
            "lists:foo(_) :- true.",
            ScriptErrorKind::Runtime,
            Some(1),
            "No permission",
        ),
        (
            "append(_, _, _) :- true.\natom_length(_, _) :- true.\nevaluate.",
            ScriptErrorKind::Runtime,
            Some(2),
            "No permission",
        ),
        (
            "X is inf, return(result, X).",
            ScriptErrorKind::Protocol,
            None,
            "JSON cannot represent",
        ),
        (
            "X = f(X), return(result, X).",
            ScriptErrorKind::Runtime,
            Some(1),
            "cyclic_term",
        ),
    ] {
        let error = prolog.error(code).await;
        assert_eq!((error.kind, error.line), (kind, line), "{code}: {error:?}");
        assert!(error.message.contains(message), "{code}: {error:?}");
    }
}

#[tokio::test]
async fn scripts_have_no_access_to_the_system() {
    let Some(prolog) = prolog() else { return };
    for code in [
        "shell('id').",
        "open('/etc/passwd', read, S), read(S, _).",
        "read_term(user_input, _, []).",
        "evaluate :- G = shell(id), call(G).",
        "halt.",
        ":- initialization(shell(id)).",
        ":- use_module(library(process)).",
        ":- use_module('/etc/passwd').",
        "consult('/etc/passwd').",
        "reflect_worker:assertz(given(key(valid), true)).",
        "user:assertz(hook(1)).",
        "evaluate :- user:assertz((goal_expansion(_, _) :- true)).",
        "@(assertz(hook(1)), user).",
        "goal_expansion(_, G) :- G = shell(id).\noutput(O), X = O.a, return(a, X).",
        "M = user, M:assertz(hook(1)).",
        "set_prolog_flag(double_quotes, codes).",
        "evaluate :- set_prolog_flag(double_quotes, codes).",
        "getenv('HOME', _).",
        "nb_setval(reflect_line, 3), thread_create(true, _).",
    ] {
        assert_eq!(
            prolog.error(code).await.kind,
            ScriptErrorKind::Runtime,
            "{code}"
        );
    }
}

#[tokio::test]
async fn scripts_leave_no_state_behind() {
    let Some(prolog) = prolog() else { return };
    let first = ":- dynamic(leak/1).\n:- op(700, xfx, ===>).\nlast(_, mine).\nassertz(leak(1)), score(0.1), return(a, b).";
    assert_eq!(prolog.value(first).await, json!({"a": "b", "score": 0.1}));
    let quotes = ":- set_prolog_flag(double_quotes, codes).\nX = \"a\", return(result, X).";
    assert_eq!(prolog.value(quotes).await, json!([97]));
    for _ in 0..2 {
        let code = "gensym(a, X), return(result, [X, \"text\"]).";
        assert_eq!(prolog.value(code).await, json!(["a1", "text"]));
    }
    assert_eq!(
        prolog.error("leak(_), true.").await.kind,
        ScriptErrorKind::Runtime
    );
    assert_eq!(
        prolog
            .error("X = (a ===> b), return(result, X).")
            .await
            .kind,
        ScriptErrorKind::Syntax
    );
    assert_eq!(
        prolog.value("last([1, 2], X), return(result, X).").await,
        json!(2)
    );
}

#[tokio::test]
async fn a_too_large_result_is_reported() {
    use crate::support::{patient, request};
    let Some(prolog) = prolog() else { return };
    let code = "length(L, 1500000), maplist(=(0'a), L), string_codes(S, L), return(result, S).";
    let request = request(code, json!("x"));
    let limits = patient();
    let run = prolog.pool.evaluate(prolog.language, &request, &limits);
    assert_eq!(run.await.unwrap_err().kind, ScriptErrorKind::Output);
    assert_eq!(prolog.value("return(result, 7).").await, json!(7));
}

#[tokio::test]
async fn attacks_end_at_the_limit() {
    let Some(prolog) = prolog() else { return };
    let start = Instant::now();
    for (code, kind) in [
        ("evaluate :- repeat, fail.", ScriptErrorKind::Time),
        (
            "evaluate :- catch(evaluate, _, evaluate), evaluate.",
            ScriptErrorKind::Time,
        ),
        ("loop :- loop.\nevaluate :- loop.", ScriptErrorKind::Time),
        (
            "numlist(1, 100000000, L), length(L, N), N > 0.",
            ScriptErrorKind::Memory,
        ),
        (
            "f(N) :- M is N + 1, f(M), true.\nevaluate :- f(0).",
            ScriptErrorKind::Memory,
        ),
    ] {
        assert_eq!(
            prolog.attack(code, "return(result, 7).").await,
            kind,
            "{code}"
        );
    }
    let flood = prolog
        .error("repeat, write('again and again'), nl, fail.")
        .await;
    assert!(
        matches!(
            flood.kind,
            ScriptErrorKind::Time
                | ScriptErrorKind::Memory
                | ScriptErrorKind::Output
                | ScriptErrorKind::Runtime
        ),
        "{flood:?}"
    );
    assert!(start.elapsed() < Duration::from_secs(40));
}

/// Starting the interpreter counts neither towards the limit nor extends it.
#[tokio::test]
async fn the_first_script_has_the_same_time_limit_as_the_others() {
    let Some(prolog) = prolog() else { return };
    let start = Instant::now();
    let error = prolog.error("evaluate :- repeat, fail.").await;
    assert_eq!(error.kind, ScriptErrorKind::Time);
    assert!(start.elapsed() < Duration::from_secs(8));
}
