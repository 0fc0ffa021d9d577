use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::reflector::{PatternType, TaskError};

fn result(id: &str, status: TaskStatus) -> TaskResult {
    TaskResult::new(id, status)
}

fn failure(id: &str, error: &str) -> TaskResult {
    TaskResult {
        error: Some(TaskError::new(error)),
        ..result(id, TaskStatus::Failed)
    }
}

fn done_in(id: &str, seconds: f64) -> TaskResult {
    TaskResult {
        seconds: Some(seconds),
        ..result(id, TaskStatus::Success)
    }
}

fn plan(ids: &[&str]) -> Plan {
    Plan {
        id: "p".to_owned(),
        goal: None,
        tasks: ids.iter().map(|id| PlannedTask::new(*id)).collect(),
    }
}

fn judged(ids: &[&str], results: &[TaskResult]) -> PlanAssessment {
    evaluate_plan(&plan(ids), results, &ReflectionCriteria::default())
}

fn of_task(task: &PlannedTask, result: &TaskResult) -> Assessment {
    evaluate_task(task, result, &ReflectionCriteria::default())
}

#[test]
fn a_task_that_was_done_is_a_success() {
    let verdict = of_task(&PlannedTask::new("a"), &done_in("a", 0.5));
    assert!(verdict.success && !verdict.should_replan && verdict.issues.is_empty());
    assert!(verdict.confidence > 0.8);
    assert_eq!(verdict.task_id.as_deref(), Some("a"));
}

#[test]
fn a_failed_task_names_its_cause_and_what_helps() {
    let task = PlannedTask::new("a");
    let cases = [
        ("request timed out", "timeout", true),
        ("Permission denied", "permission", false),
        ("No such file", "not_found", true),
        ("Connection refused", "network", true),
        ("Invalid parameter", "validation", false),
        ("Out of memory", "resource", true),
        ("it panicked", "execution", false),
    ];
    for (error, category, replan) in cases {
        let verdict = of_task(&task, &failure("a", error));
        assert!(!verdict.success && verdict.confidence < 0.5, "{error}");
        assert_eq!(
            verdict.issues,
            [format!("the task `a` failed ({category}): {error}")]
        );
        assert_eq!(verdict.should_replan, replan, "{error}");
        assert_eq!(verdict.suggestions.len(), 1);
    }
    let silent = of_task(&task, &result("a", TaskStatus::Failed));
    assert_eq!(silent.issues, ["the task `a` failed, and does not say why"]);
    assert_eq!(silent.category, Some(ErrorCategory::Execution));
}

#[test]
fn slow_is_more_than_so_many_times_what_was_expected() {
    let task = PlannedTask {
        expected_seconds: Some(1.0),
        ..PlannedTask::new("a")
    };
    assert!(of_task(&task, &done_in("a", 2.0)).success);
    let slow = of_task(&task, &done_in("a", 5.0));
    assert!(!slow.success && !slow.should_replan);
    assert_eq!(
        slow.issues,
        [
            "the task `a` is slow: it took 5.0 s, 5.0 times the 1.0 s expected, and at most 2 times is allowed"
        ]
    );
    let patient = ReflectionCriteria {
        max_execution_time_multiplier: 6.0,
        ..ReflectionCriteria::default()
    };
    assert!(evaluate_task(&task, &done_in("a", 5.0), &patient).success);
    // The start and end times determine the duration if it is not given.
    let timed = TaskResult {
        started: "2026-01-01T00:00:00Z".parse().ok(),
        finished: "2026-01-01T00:00:05Z".parse().ok(),
        ..result("a", TaskStatus::Success)
    };
    assert!(!of_task(&task, &timed).success);
    assert!(of_task(&PlannedTask::new("a"), &timed).success);
}

#[test]
fn an_empty_output_is_an_issue_and_none_is_not() {
    let task = PlannedTask::new("a");
    let with = |output: Value| TaskResult {
        output: Some(output),
        ..result("a", TaskStatus::Success)
    };
    for empty in [json!(""), json!(" \n"), json!([]), json!({})] {
        assert!(!of_task(&task, &with(empty.clone())).success, "{empty}");
        let careless = ReflectionCriteria {
            check_output_quality: false,
            ..ReflectionCriteria::default()
        };
        assert!(evaluate_task(&task, &with(empty), &careless).success);
    }
    for something in [json!(0), json!(false), json!("x"), json!([0]), Value::Null] {
        assert!(of_task(&task, &with(something)).success);
    }
}

#[test]
fn a_plan_is_a_success_by_its_share_of_done_tasks() {
    let ids = ["a", "b", "c", "d", "e"];
    let ok = |id: &&str| result(id, TaskStatus::Success);
    let four: Vec<TaskResult> = (ids[..4].iter().map(ok))
        .chain([failure("e", "timed out")])
        .collect();
    let verdict = judged(&ids, &four);
    assert!(verdict.verdict.success && !verdict.verdict.should_replan);
    assert_eq!(verdict.verdict.issues.len(), 1, "the failure is told");
    let three: Vec<TaskResult> = (ids[..3].iter().map(ok))
        .chain([failure("d", "timed out"), failure("e", "timed out")])
        .collect();
    let verdict = judged(&ids, &three);
    assert!(!verdict.verdict.success && verdict.verdict.should_replan);
    assert!((verdict.success_rate - 0.6).abs() < 1e-9);
    let types: Vec<PatternType> = verdict.patterns.iter().map(|p| p.pattern_type).collect();
    assert_eq!(
        types,
        [PatternType::RepeatedErrors, PatternType::LowSuccessRate]
    );
    assert_eq!(verdict.patterns[1].affected_tasks, ["d", "e"]);
    let lenient = ReflectionCriteria {
        min_success_rate: 0.6,
        ..ReflectionCriteria::default()
    };
    assert!(evaluate_plan(&plan(&ids), &three, &lenient).verdict.success);
}

#[test]
fn another_plan_is_worth_it_unless_it_would_fail_as_well() {
    let replan = |error: &str| judged(&["a"], &[failure("a", error)]).verdict.should_replan;
    assert!(replan("timed out"));
    assert!(replan("something nobody has heard of happened"));
    assert!(!replan("permission denied"));
    assert!(!replan("invalid parameter"));
    assert!(!replan("ZeroDivisionError: division by zero"));
    let silent = judged(&["a"], &[result("a", TaskStatus::Failed)]);
    assert!(silent.verdict.should_replan);
    // One failure that a new plan can avoid is enough.
    let mixed = [failure("a", "permission denied"), failure("b", "timed out")];
    assert!(judged(&["a", "b"], &mixed).verdict.should_replan);
}

#[test]
fn what_was_not_run_is_to_be_run_and_needs_no_other_plan() {
    let results = [result("a", TaskStatus::Success)];
    let lenient = ReflectionCriteria {
        min_success_rate: 0.5,
        ..ReflectionCriteria::default()
    };
    let verdict = evaluate_plan(&plan(&["a", "b"]), &results, &lenient);
    assert!(!verdict.verdict.success && !verdict.verdict.should_replan);
    assert_eq!(verdict.incomplete, 1);
    assert_eq!(verdict.verdict.issues, ["the task `b` was not begun"]);
    let content = ReflectionCriteria {
        require_all_tasks_complete: false,
        ..lenient
    };
    let verdict = evaluate_plan(&plan(&["a", "b"]), &results, &content);
    assert!(verdict.verdict.success && verdict.verdict.issues.is_empty());
}

#[test]
fn the_last_attempt_counts() {
    let attempts = [
        failure("a", "timed out"),
        failure("a", "timed out"),
        result("a", TaskStatus::Success),
    ];
    let verdict = judged(&["a"], &attempts);
    assert!(verdict.verdict.success);
    assert_eq!(
        verdict.patterns[0].occurrences, 2,
        "and is not all there was"
    );
}

#[test]
fn tasks_say_what_they_wait_for() {
    let mut plan = plan(&["a", "b"]);
    plan.tasks[1].depends_on = vec!["a".to_owned()];
    let results = [failure("a", "timed out"), result("b", TaskStatus::Skipped)];
    let verdict = evaluate_plan(&plan, &results, &ReflectionCriteria::default());
    assert_eq!(
        verdict.tasks[1].issues,
        ["the task `b` was skipped: it waits for `a`, which failed"]
    );
}

#[test]
fn a_chain_that_is_the_whole_plan_is_an_issue() {
    let ids: Vec<String> = (0..8).map(|id| id.to_string()).collect();
    let mut plan = plan(&ids.iter().map(String::as_str).collect::<Vec<_>>());
    for place in 1..8 {
        plan.tasks[place].depends_on = vec![ids[place - 1].clone()];
    }
    let results: Vec<TaskResult> = ids.iter().map(|id| done_in(id, 1.0)).collect();
    let verdict = evaluate_plan(&plan, &results, &ReflectionCriteria::default());
    assert!(verdict.verdict.success);
    assert!(verdict.verdict.issues[0].contains("sequential"));
    assert!(verdict.verdict.suggestions[0].contains("parallel"));
}

#[test]
fn no_tasks_are_no_success_and_strange_results_an_issue() {
    let verdict = judged(&[], &[]);
    assert!(!verdict.verdict.success && verdict.verdict.should_replan);
    let verdict = judged(&["a"], &[done_in("a", 1.0), done_in("b", 1.0)]);
    assert!(verdict.verdict.success);
    assert!(verdict.verdict.issues[0].contains("`b`"));
}

#[test]
fn a_model_adds_suggestions_and_nothing_else() {
    let mut verdict = judged(&["a"], &[failure("a", "timed out")]);
    let before = verdict.clone();
    let same = before.verdict.suggestions[0].clone();
    verdict.add_suggestions(vec!["Ask at night.".to_owned(), same]);
    assert_eq!(verdict.model_suggestions, ["Ask at night."]);
    assert_eq!(
        verdict.verdict.suggestions.len(),
        before.verdict.suggestions.len() + 1
    );
    verdict.verdict.suggestions.pop();
    assert_eq!(verdict.verdict, before.verdict);
}

#[test]
fn the_json_has_the_keys_of_the_seed() {
    let value = serde_json::to_value(judged(&["a"], &[failure("a", "timed out")])).unwrap();
    for key in [
        "task_id",
        "plan_id",
        "success",
        "confidence",
        "issues",
        "suggestions",
        "should_replan",
    ] {
        assert!(value.get(key).is_some(), "{key}");
        assert!(value["tasks"][0].get(key).is_some(), "{key}");
    }
    for key in [
        "pattern_type",
        "description",
        "occurrences",
        "affected_tasks",
        "suggested_fix",
        "detected_at",
    ] {
        assert!(value["patterns"][0].get(key).is_some(), "{key}");
    }
}

fn status() -> impl Strategy<Value = TaskStatus> {
    prop_oneof![
        Just(TaskStatus::Success),
        Just(TaskStatus::Failed),
        Just(TaskStatus::Skipped),
        Just(TaskStatus::Cancelled),
        Just(TaskStatus::Running),
        Just(TaskStatus::Pending),
    ]
}

prop_compose! {
    fn any_task()(id in "[a-e]", before in proptest::collection::vec("[a-f]", 0..3), tool in proptest::option::of("[xy]"), expected in proptest::option::of(any::<f64>())) -> PlannedTask {
        PlannedTask { tool, depends_on: before, expected_seconds: expected, ..PlannedTask::new(id) }
    }
}

prop_compose! {
    fn any_result()(id in "[a-f]", status in status(), error in proptest::option::of("\\PC{0,20}"), seconds in proptest::option::of(any::<f64>()), text in proptest::option::of(" {0,2}x?")) -> TaskResult {
        TaskResult {
            error: error.map(TaskError::new),
            output: text.map(Value::String),
            seconds,
            ..TaskResult::new(id, status)
        }
    }
}

proptest! {
    #[test]
    fn any_plan_has_a_verdict(tasks in proptest::collection::vec(any_task(), 0..7), results in proptest::collection::vec(any_result(), 0..10)) {
        let plan = Plan { id: "p".to_owned(), goal: None, tasks };
        let criteria = ReflectionCriteria::default();
        let verdict = evaluate_plan(&plan, &results, &criteria);
        prop_assert_eq!(verdict.total, verdict.succeeded + verdict.failed + verdict.incomplete);
        prop_assert!((0.0..=1.0).contains(&verdict.verdict.confidence));
        prop_assert!((0.0..=1.0).contains(&verdict.success_rate));
        prop_assert!(!(verdict.verdict.success && verdict.verdict.should_replan));
        prop_assert!(verdict.verdict.success || !verdict.verdict.issues.is_empty());
        prop_assert_eq!(evaluate_plan(&plan, &results, &criteria), verdict);
        let episode = crate::reflector::Episode { plan, results };
        for insight in crate::reflector::learn_from_episode(&episode, &criteria) {
            prop_assert!((0.0..1.0).contains(&insight.confidence));
        }
    }
}

#[test]
fn of_a_sample_the_counts_are_those_of_all() {
    let results = [failure("a", "timed out"), failure("b", "timed out")];
    let counts = Counts {
        total: 100,
        succeeded: 90,
        failed: 4,
    };
    let criteria = ReflectionCriteria::default();
    let few = evaluate_sample(&plan(&["a", "b"]), &results, &criteria, counts);
    assert_eq!((few.total, few.succeeded, few.failed), (100, 90, 4));
    assert_eq!(few.incomplete, 6);
    assert!(!few.verdict.success && few.verdict.should_replan);
    assert_eq!(few.patterns.len(), 1);
    let done = Counts {
        succeeded: 96,
        ..counts
    };
    let few = evaluate_sample(&plan(&["a", "b"]), &results, &criteria, done);
    assert!(few.verdict.success, "{:?}", few.verdict);
    assert!((few.success_rate - 0.96).abs() < 1e-9);
    let poor = Counts {
        succeeded: 50,
        failed: 50,
        ..counts
    };
    let few = evaluate_sample(&plan(&["a", "b"]), &results, &criteria, poor);
    let low = few.patterns.last().unwrap();
    assert_eq!(low.pattern_type, PatternType::LowSuccessRate);
    assert_eq!(low.occurrences, 50);
}
