use std::fmt::Write as _;

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::file::parse;
use super::state::State;
use super::template::{self, Names};

fn names(state: &Value) -> Names {
    let state: Map<String, Value> = state.as_object().cloned().unwrap_or_default();
    Names {
        state: state.into(),
        more: State::default(),
    }
}

/// Renders a template, or returns the error.
fn fill(text: &str, state: &Value) -> Result<Value, String> {
    template::fill(text, &names(state)).map_err(|template_error| format!("{template_error:?}"))
}

fn error(text: &str) -> crate::source::SourceError {
    match parse(text, "w.yaml") {
        Ok(_) => panic!("it is read: {text}"),
        Err(error) => error,
    }
}

#[test]
fn what_is_not_there_is_empty_in_conditions_and_loops_and_an_error_where_it_is_printed() {
    let empty = json!({});
    for text in [
        "{% if state.missing %}x{% endif %}",
        "{% if state.missing > 1 %}x{% endif %}",
        "{% if missing.deep.er %}x{% endif %}",
        "{% for e in state.missing %}{{ e.message }}{% endfor %}",
        "{% for e in missing %}x{% endfor %}",
        "{{ state.missing | default('') }} ",
    ] {
        assert_eq!(
            fill(text, &empty).unwrap().as_str().map(str::trim),
            Some(""),
            "{text}"
        );
    }
    for text in [
        "{{ state.missing }}",
        "A {{ missing }} B",
        "{{ state.missing | tojson }}",
    ] {
        let template_error = fill(text, &empty).unwrap_err();
        assert!(
            template_error.contains("missing"),
            "{text}: {template_error}"
        );
    }
}

/// A state without `x` and `y`.
fn few() -> Value {
    json!({ "a": "A", "l": [1, 2], "empty": [], "o": { "k": "v" } })
}

#[test]
fn a_name_that_is_not_there_is_an_error_wherever_it_is_shown() {
    for (text, missing) in [
        ("{{ x }}", "x"),
        ("{{ x }}.", "x"),
        ("{{ x.y.z }}", "x.y.z"),
        ("{{ o.y }}", "o.y"),
        ("{{ o['y'].z[0] }}", "o['y'].z[0]"),
        ("{{ l[7] ~ '' }}", "l[7]"),
        ("{{ l[x:] }}", "x"),
        ("{{ x ~ 'a' }}", "x"),
        ("{{ 'a' ~ a ~ state.x }}", "state.x"),
        ("Dear {{- x ~ '!' -}} !", "x"),
        ("{{ 1 + x }}", "x"),
        ("{{ -x }}", "x"),
        ("{{ x | upper }}", "x"),
        ("{{ state.x | trim }}", "state.x"),
        ("{{ x | string }}", "x"),
        ("{{ x | length }}", "x"),
        ("{{ x | tojson }}", "x"),
        ("{{ x | map(attribute='message') | join('; ') }}", "x"),
        ("{{ empty | first }}", "empty | first"),
        ("{{ empty | first ~ 'a' }}", "empty | first"),
        ("{{ a | replace('A', x) }}", "x"),
        ("{{ [x] }}", "x"),
        ("{{ [a, [x]] }}!", "x"),
        ("{{ {'a': x} }}", "x"),
        ("{{ {'a': {'b': x}} }}", "x"),
        ("{{ (x) ~ 'a' }}", "x"),
        ("{{ range(x) }}", "x"),
        ("{{ dict(k=x) }}", "x"),
        ("{{ x.upper() }}", "x"),
        ("{{ x.y.upper() }}", "x.y"),
        ("{{ '-'.join(x) }}", "x"),
        ("{{ x ~ 'a' if a }}", "x"),
        ("{{ 'b' if not a else x ~ 'a' }}", "x"),
        ("{{ y or x ~ 'a' }}", "x"),
        ("{{ x | default(y) }}", "y"),
        ("{{ (x | default('d')) ~ y }}", "y"),
        ("{% for i in l %}{{ i.y ~ 'a' }}{% endfor %}", "i.y"),
        ("{% if a %}{{ x ~ 'a' }}{% endif %}", "x"),
        ("{# {{ x }} #}{{ y ~ '}}' }}", "y"),
    ] {
        let template_error = fill(text, &few()).expect_err(text);
        let begin = text.find(missing).unwrap_or_default();
        let span = format!("Some({begin}..{})", begin + missing.len());
        let said = format!("`{missing}` is undefined");
        assert!(
            template_error.contains(&said) && template_error.contains(&span),
            "{text}: {template_error}"
        );
    }
    // The positions of other errors are mapped back, too.
    let template_error = fill("{{ a ~ a }} {{ l[0] | shout }}", &few()).unwrap_err();
    assert!(
        template_error.contains("shout") && template_error.contains("Some(22..27)"),
        "{template_error}"
    );
    for text in [
        "{% set y = x %}",
        "{% macro m(b) %}{{ b ~ x }}{% endmacro %}",
    ] {
        let template_error = fill(text, &few()).unwrap_err();
        assert!(
            template_error.contains("not store them"),
            "{template_error}"
        );
    }
}

#[test]
fn a_name_that_is_not_there_is_empty_wherever_it_is_looked_at() {
    for (text, result) in [
        ("{{ x | default('d') }}", "d"),
        ("{{ x | d('d') | upper }}", "D"),
        ("{{ x.y.z | default('d') ~ 'a' }}", "da"),
        ("{{ x | upper | default('d') }}", ""),
        ("{{ empty | first | default('d') }}", "d"),
        ("{{ [x | default('d')] | join }}", "d"),
        ("{{ x or 'd' }}", "d"),
        ("{{ (x or 'd') ~ 'a' }}", "da"),
        ("{{ (x and y) or a }}", "A"),
        ("{{ 'a' if x else 'b' }}", "b"),
        ("{{ x if y.z > 1 else 'b' }}", "b"),
        ("{{ x ~ 'a' if y }}", ""),
        ("{{ not x }}!", "true!"),
        ("{{ x == 1 }}!", "false!"),
        ("{{ 1 not in [x] }}!", "true!"),
        ("{{ x is defined }}!", "false!"),
        ("{{ x.y is not defined and a is string }}!", "true!"),
        ("{{ a is eq x }}!", "false!"),
        ("{% if x %}a{% endif %}", ""),
        ("{% if x ~ '' %}a{% endif %}", ""),
        ("{% if x.y | length > 1 or [x] %}a{% endif %}", "a"),
        ("{% for i in x %}a{% endfor %}", ""),
        ("{% for i in x.y.z %}a{% else %}b{% endfor %}", "b"),
        ("{% raw %}{{ x ~ 'a' }}{% endraw %}", "{{ x ~ 'a' }}"),
        ("{{ '{{ x }}' ~ a }}", "{{ x }}A"),
        // Defined values are shown unchanged.
        ("{{ o.k ~ l[0] ~ -l[-1] ~ a.lower() }}", "v1-2a"),
        ("{{ ['x', a] | join('~') }}.", "x~A."),
        ("{{ a ~ 'b' 'c' ~ \"d'\" ~ 1.5 ~ 2e3 }}", "Abcd'1.52000.0"),
        ("{{ {'k': {'l': a}}['k'].l ~ l[1:] | length }}", "A1"),
        (
            "{% for i in l %}{{ loop.index ~ i }},{% endfor %}",
            "11,22,",
        ),
    ] {
        assert_eq!(fill(text, &few()), Ok(json!(result)), "{text}");
    }
}

#[test]
fn what_an_if_leaves_out_is_empty_and_no_error() {
    let state = json!({ "yes": true, "name": "Ann" });
    for (text, result) in [
        ("{{ name if state.yes }}", "Ann"),
        ("{{ name if state.missing }}", ""),
        ("Dear {{ name if missing > 1 }}!", "Dear !"),
        ("{% if yes %}[{{ 'x' if not yes }}]{% endif %}", "[]"),
        ("{{ ('x' if missing) | default('y') }}", "y"),
        ("{{ 'a' ~ ('x' if missing) ~ 'b' }}", "ab"),
    ] {
        assert_eq!(fill(text, &state), Ok(json!(result)), "{text}");
    }
    for text in [
        "{{ absent if yes }}",
        "It is {{ 'x' if missing else absent }}",
    ] {
        let template_error = fill(text, &state).unwrap_err();
        assert!(
            template_error.contains("absent"),
            "{text}: {template_error}"
        );
    }
    let text = "nodes:\n  - name: a\n    uses: state.set\n    with:\n      x: |\n        One\n        {{ absent if yes }}\n";
    assert!(parse(text, "w.yaml").is_ok());
}

#[test]
fn lists_are_lists_in_templates() {
    let state = json!({ "l": [{ "n": 1, "t": "a" }, { "n": 2, "t": "b" }], "none": [] });
    for (text, result) in [
        ("{{ l | length }}", json!(2)),
        ("{{ state.l[-1].t }}", json!("b")),
        ("{{ (l | last).n + (l | first).n }}", json!(3)),
        ("{{ l[1:] }}", json!([{ "n": 2, "t": "b" }])),
        ("{{ l | map(attribute='t') | join('-') }} ", json!("a-b")),
        ("{{ ['a', 'b'] | map('upper') | join }} ", json!("AB")),
        (
            "{{ l | map(attribute='x', default='?') | join }} ",
            json!("??"),
        ),
        ("{% for it in state.l %}{{ it.n }}{% endfor %}", json!("12")),
        ("{{ 'some' if none else 'empty' }}", json!("empty")),
        (
            "{{ l + [3] }}",
            json!([{ "n": 1, "t": "a" }, { "n": 2, "t": "b" }, 3]),
        ),
        (
            "{{ l | tojson }}.",
            json!("[{\"n\":1,\"t\":\"a\"},{\"n\":2,\"t\":\"b\"}]."),
        ),
        ("{{ {'t': 'a', 'n': 1} in l }}", json!(true)),
    ] {
        assert_eq!(fill(text, &state), Ok(result), "{text}");
    }
}

#[test]
fn a_lone_expression_is_its_value() {
    let state = json!({ "a": { "b": [1, 2.5] }, "flag": true });
    assert_eq!(fill("{{ state.a }}", &state), Ok(json!({ "b": [1, 2.5] })));
    assert_eq!(fill(" {{ a.b[0] + 1 }}\n", &state), Ok(json!(2)));
    assert_eq!(fill("{{ flag }}{{ flag }}", &state), Ok(json!("truetrue")));
    assert_eq!(fill("{{ a }}.", &state), Ok(json!("{\"b\":[1,2.5]}.")));
    let filters = "{{ '[1]' | fromjson | length }} {{ 'x' | sha256 }} {{ {'k': '<é>'} | json }}";
    assert_eq!(
        fill(filters, &state),
        Ok(json!(
            "1 2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881 {\"k\":\"<é>\"}"
        ))
    );
}

#[test]
fn a_fault_in_a_template_is_shown_where_it_is() {
    let text = "nodes:\n  - name: a\n    uses: llm.call\n    with:\n      prompt: |\n        Hello\n        {{ state.x | shout }}\n";
    // Unknown filters are detected before the run.
    let workflow = parse(text, "w.yaml");
    assert!(workflow.is_ok() || workflow.is_err_and(|it| it.position() == Some((7, 20))));
    let broken = error(&text.replace("{{ state.x | shout }}", "{% if x %}"));
    assert!(
        broken.position().is_some_and(|(line, _)| line >= 5),
        "{broken}"
    );
}

#[test]
fn mistakes_in_a_file_have_a_place_and_a_suggestion() {
    let node = "nodes:\n  - name: a\n    uses: llm.call\n    with: {prompt: x}\n";
    for (text, place, said) in [
        ("nodse: []\n", (1, 1), "did you mean `nodes`?"),
        ("name: x\n", (1, 1), "`nodes` is missing"),
        ("nodes: 3\n", (1, 8), "a list of at least one node"),
        (
            "nodes:\n  - name: a\n    uses: llm.cal\n",
            (3, 11),
            "did you mean `llm.call`?",
        ),
        (
            "nodes:\n  - name: a\n    uses: llm.call\n    with: {prompts: x}\n",
            (4, 12),
            "did you mean `prompt`?",
        ),
        (
            "nodes:\n  - name: a\n    use: llm.call\n",
            (3, 5),
            "did you mean `uses`?",
        ),
        (
            "nodes:\n  - name: a\n    run: x\n  - name: a\n    run: x\n",
            (4, 11),
            "two nodes have the name `a`",
        ),
        (
            "nodes:\n  - name: a\n    description: x\n",
            (2, 5),
            "neither `uses` nor `run`",
        ),
        (
            "nodes:\n  - name: a\n    run: x\n    uses: llm.call\n",
            (3, 5),
            "unknown key `run`",
        ),
        (
            "nodes:\n  - name: a\n    shell: echo {{ state.x }}\n",
            (3, 12),
            "a value could then run any code",
        ),
        (
            "nodes:\n  - name: a\n    uses: reflection.loop\n    with:\n      generator: {run: x}\n      evaluator: {type: shema}\n",
            (6, 25),
            "did you mean `schema`?",
        ),
        (
            "nodes:\n  - name: a\n    uses: reflection.loop\n    with:\n      generator: {run: x}\n      evaluator: {}\n      max_iterations: 0\n",
            (7, 23),
            "at least 1",
        ),
    ] {
        let error = error(text);
        assert!(error.to_string().contains(said), "{said}: {error}");
        assert_eq!(error.position(), Some(place), "{error}");
    }
    let edges = |edges: &str| error(&format!("{node}  - name: b\n    run: x\nedges:\n{edges}"));
    let unreachable = edges("  - {from: a, to: __end__}\n");
    assert!(
        unreachable
            .message()
            .contains("the node `b` is unreachable")
    );
    assert_eq!(unreachable.position(), Some((5, 11)));
    let nowhere = edges("  - {from: a, to: bb}\n");
    assert!(
        nowhere.to_string().contains("did you mean `b`?"),
        "{nowhere}"
    );
    let twice = edges("  - {from: a, to: b}\n  - {from: a, to: __end__}\n");
    assert!(twice.message().contains("a second edge"));
    let condition = edges("  - {from: a, to: b, when: 'state.x >'}\n");
    assert!(condition.message().contains("syntax error"), "{condition}");
}

#[test]
fn only_the_first_document_counts() {
    let text = "# one\n---\nnodes:\n  - name: a\n    run: |\n      x\n      --- y\n---\nnodes: 7\n";
    let workflow = parse(text, "w.yaml").unwrap_or_else(|error| panic!("{error}"));
    assert!(
        workflow.notes()[0].contains("2 documents"),
        "{:?}",
        workflow.notes()
    );
    let one = parse("---\nnodes: [{name: a, run: x}]\n...\n", "w.yaml");
    assert!(one.is_ok_and(|it| it.notes().is_empty()));
}

#[test]
fn code_says_where_it_is_and_lua_needs_no_leave() {
    let text = "nodes:\n  - name: a\n    run: print(1)\n  - name: b\n    run: return 1\n    language: lua\n  - name: c\n    command: [ls]\n";
    let programs = parse(text, "w.yaml")
        .unwrap_or_else(|e| panic!("{e}"))
        .programs();
    let found: Vec<(&str, usize)> = programs
        .iter()
        .map(|it| (it.node.as_str(), it.line))
        .collect();
    assert_eq!(found, [("a", 3), ("c", 8)]);
}

#[test]
fn a_command_that_judges_is_checked_as_one_in_a_criteria_file() {
    for (keys, said) in [
        (
            "command: [env], env: [OPENAI_API_KEY]",
            "`OPENAI_API_KEY` is not passed on",
        ),
        ("command: [env], env: ['A=1']", "is not a variable name"),
        ("command: [x], timeout: 9h", "`timeout` must be at most 1h"),
        ("command: [x], memory: 1MB", "`memory` must be from"),
        (
            "command: [x], processes: 0",
            "`processes` must be from 1 to 4096",
        ),
        ("command: [x], extension: a/b", "a file extension"),
        ("command: [x], cwd: not/there", "does not exist"),
        (
            "command: ['{draft_file}']",
            "the draft cannot be the program",
        ),
        ("command: []", "`command` is empty"),
        ("command: [x], extention: rs", "did you mean `extension`?"),
        ("command: [x], processes: many", "invalid command"),
    ] {
        let text = format!(
            "nodes:\n  - name: a\n    uses: reflection.loop\n    with:\n      generator: {{run: x}}\n      evaluator: {{type: command, score_threshold: 1, {keys}}}\n"
        );
        let error = error(&text);
        assert!(error.to_string().contains(said), "{keys}: {error}");
        assert_eq!(error.position().map(|(line, _)| line), Some(6), "{keys}");
    }
}

#[test]
fn bombs_are_bounded() {
    let mut bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for (from, to) in [
        ('a', 'b'),
        ('b', 'c'),
        ('c', 'd'),
        ('d', 'e'),
        ('e', 'f'),
        ('f', 'g'),
    ] {
        let line = vec![format!("*{from}"); 9].join(", ");
        let _ = writeln!(bomb, "{to}: &{to} [{line}]");
    }
    bomb.push_str("nodes: *g\n");
    assert!(error(&bomb).message().contains("invalid YAML"));
    let loops = "{% for a in range(9999) %}{% for b in range(9999) %}x{% endfor %}{% endfor %}";
    assert!(fill(loops, &json!({})).unwrap_err().contains("fuel"));
}

#[test]
fn templates_do_not_grow_without_bounds() {
    let long = "x".repeat(1 << 20);
    let state = json!({ "x": long, "n": 99_999_999, "score": 0.5 });
    for (text, said) in [
        ("{% set a = x ~ x %}{% set a = a ~ a %}", "not store them"),
        (
            "{%- macro m(a) %}{{ m(a ~ a) }}{% endmacro %}{{ m(x) }}",
            "not store them",
        ),
        (
            "{% for a in [x ~ x] %}{{ a }}{% endfor %}",
            "the header of a loop",
        ),
        ("{{ x * n }}", "repeats strings"),
        ("{{ x * 1000 * 1000 }}", "repeats strings"),
        (
            "{{ x ~ x ~ x ~ x ~ x ~ x ~ x ~ x ~ x ~ x ~ x ~ x ~ x ~ x ~ x ~ x ~ x ~ x }}",
            "more than 16 values joined",
        ),
        (
            "{{ ([x] * 1000) | map('upper') | length }} ",
            "larger than 16 MiB",
        ),
        ("{{ 'x' * 99999999 }}", "repeats strings"),
        (
            "{{ (x | replace('x', x)) | length }} ",
            "larger than 16 MiB",
        ),
        (
            "{{ range(9999) | join(x) | length }} ",
            "larger than 16 MiB",
        ),
        ("{{ [[x] * 99] | join | length }} ", "larger than 16 MiB"),
        (
            "{{ x | indent(99999999, true) | length }} ",
            "larger than 16 MiB",
        ),
        (
            "{% for i in range(99) %}{{ x }}{% endfor %}",
            "larger than 16 MiB",
        ),
        (
            "{{ [x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x] | tojson }}",
            "larger than 16 MiB",
        ),
    ] {
        let template_error = fill(text, &state).unwrap_err();
        assert!(
            template_error.contains(said),
            "{text}: {}",
            &template_error[..template_error.len().min(300)]
        );
    }
    // The checks cover everything that the engine parses as code, wherever brackets and raw blocks
    // seem to end it.
    for (text, said) in [
        ("{{ {'a': {}}['a'] or x * n }}", "repeats strings"),
        (
            "{% raw %}{{ ( {% endraw %}{% set a = x ~ x %}",
            "not store them",
        ),
        (
            "{%- raw +%}{{ [ {%+  endraw -%}{{ x * n }}",
            "repeats strings",
        ),
    ] {
        let template_error = fill(text, &state).unwrap_err();
        assert!(template_error.contains(said), "{text}: {template_error}");
    }
    let raw = format!(
        "{{% for i in range(9999) %}}{}{{% endfor %}}",
        "raw ".repeat(999)
    );
    assert!(
        fill(&raw, &state)
            .unwrap_err()
            .contains("larger than 16 MiB")
    );
    let fine = "{%- for i in [1] -%} {%- endfor -%}{{ score * 100 }} {{ 'a*b' ~ '{% set' }} {{ 'a-b'.replace('-', '+') }} {{ ['1', 2] | join(', ') }}\
                {{ '\na' | indent(2) }}";
    assert_eq!(
        fill(fine, &state),
        Ok(json!("50.0 a*b{% set a+b 1, 2\n  a"))
    );
    assert_eq!(
        error("nodes:\n  - name: a\n    uses: state.set\n    with: {x: '{% set a = 1 %}'}\n")
            .position(),
        Some((4, 18))
    );
}

#[test]
fn a_state_does_not_grow_without_bounds() {
    let mut state = State::default();
    let piece = json!({ "text": "x".repeat(1 << 20) });
    state.push("list", piece.clone());
    state.change_last("list", |last| *last = json!(1));
    for _ in 0..63 {
        state.push("list", piece.clone());
    }
    assert!(state.check_size().is_ok());
    state.set("more", piece);
    let failure = state.check_size().unwrap_err();
    assert_eq!(
        failure.message,
        "the state is larger than 64 MiB; most of it is `list`"
    );
    state.set("list", Value::Null);
    assert!(state.check_size().is_ok());
}

#[test]
fn what_is_nested_deeply_or_too_large_is_an_error_and_not_the_end() {
    let value = |value: &str| {
        format!("nodes:\n  - name: a\n    uses: state.set\n    with: {{x: {value}}}\n")
    };
    let deep =
        |open: &str, close: &str| value(&format!("{}1{}", open.repeat(5000), close.repeat(5000)));
    for text in [
        deep("[", "]"),
        deep("{a: ", "}"),
        value(&format!("\"{{{{ {}1{} }}}}\"", "[".repeat(5000), "]".repeat(5000))),
        value(&format!("\"{{{{ {}1{} }}}}\"", "(".repeat(5000), ")".repeat(5000))),
        value(&format!("\"{{{{ {} 1 }}}}\"", "not ".repeat(5000))),
        value(&format!("\"{{{{ 1 {} }}}}\"", "+ 1".repeat(5000))),
        value(&format!("\"{{{{ x{} }}}}\"", ".x".repeat(5000))),
        value(&format!("\"{{{{ x{} }}}}\"", "[0]".repeat(5000))),
        value(&format!("\"{{{{ x {} }}}}\"", "| upper".repeat(5000))),
        value(&format!("\"{{{{ {} 1 }}}}\"", "1 if x else ".repeat(5000))),
        value(&format!("\"{{% if x %}}{}{{% endif %}}\"", "{% elif x %}".repeat(5000))),
        value(&format!("\"{}{}\"", "{% if x %}".repeat(5000), "{% endif %}".repeat(5000))),
        format!("nodes:\n  - name: a\n    run: x\n    when: {} x\n", "not ".repeat(5000)),
        format!("nodes:\n{}- a", " ".repeat(70_000)),
        (0..1000).fold(String::new(), |mut text, at| {
            let _ = writeln!(text, "{}- ", " ".repeat(at));
            text
        }),
        "nodes:\n  - name: a\n    uses: reflection.loop\n    with:\n      generator: {run: x}\n      evaluator: {}\n      max_iterations: 99999999999999999999999999\n".to_owned(),
        "nodes:\n  - name: a\n    run: x\n    timeout: 1e400\n".to_owned(),
        "nodes:\n  - name: a\n    run: x\n    timeout: .inf\n".to_owned(),
    ] {
        let error = error(&text);
        assert!(error.position().is_some(), "{error}");
    }
    // The most complex templates within the limits must not overflow the stack.
    for text in [
        format!("{{{{ {}x }}}}", "not ".repeat(249)),
        format!("{{{{ {}x }}}}", "-".repeat(249)),
        format!("{{{{ 1{} }}}}", " + 1".repeat(249)),
        format!("{{{{ 'a'{} }}}}", " | upper".repeat(249)),
        format!("{{{{ {}1 }}}}", "1 if not x else ".repeat(83)),
        format!(
            "{{% if not x %}}{}{{% endif %}}",
            "{% elif not x %}".repeat(249)
        ),
    ] {
        let filled = fill(&text, &json!({ "x": 1 }));
        assert!(filled.is_ok(), "{text}: {filled:?}");
    }
    let nested = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
    for (text, state, said) in [
        ("{{ 9 ** 9 ** 9 ** 9 }}", json!({}), "repeats strings"),
        (
            "{{ range(99999999999) | length }}",
            json!({}),
            "too many elements",
        ),
        ("{{ n * 10 }}", json!({ "n": 1e308 }), "no JSON number"),
    ] {
        let template_error = fill(text, &state).unwrap_err();
        assert!(template_error.contains(said), "{text}: {template_error}");
    }
    // A string that is not valid JSON stays a string.
    assert_eq!(
        fill("{{ t | fromjson }}", &json!({ "t": nested })),
        Ok(json!(nested))
    );
}

proptest! {
    #[test]
    fn no_file_makes_it_panic(
        lines in proptest::collection::vec(
            "( {0,6}(- )?(name|nodes|uses|with|run|edges|from|to|output|generator|evaluator|type|schema|when): ?)?(\\[|\\{|\\}|\\]|&a|\\*a|llm\\.call|reflection\\.loop|\\{\\{ x \\}\\}|__end__|---|\\||'|a|1|é)*",
            0..12,
        )
    ) {
        let _ = parse(&lines.join("\n"), "w.yaml");
    }

    #[test]
    fn no_template_makes_it_panic(
        text in "(\\{\\{|\\}\\}|\\{%|%\\}|\\{#|state|if|for|in|end|x|\\||tojson|join|[ .'(*\\n9]|é)*"
    ) {
        let state = json!({ "x": [1, { "y": "é" }], "state": 3 });
        let _ = fill(&text, &state);
        let _ = template::holds(&text, &names(&state));
        let file = json!({ "nodes": [{ "name": "a", "uses": "state.set", "with": { "x": text } }] });
        let _ = parse(&file.to_string(), "w.yaml");
    }
}
