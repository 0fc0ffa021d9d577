use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use proptest::prelude::*;
use regex::Regex;
use uuid::Uuid;

use super::{Said, Talk, html, html_with_talks};
use crate::types::{
    CandidateStep, Choice, ContextBlock, ConvergenceReason, CriterionResult, EditCounts,
    Evaluation, Evaluator, Event, Evidence, EvidenceSource, ExitCode, Fact, Insight, Issue,
    IssueStatus, IssueType, LlmConfig, LoopSettings, ModelId, Models, PastMessage, Phase, Place,
    Procedure, Reflection, SCHEMA_VERSION, Severity, Stamped, Status, Strategy as RevisionStrategy,
    Task, TokenUsage, TrackedIssue, Trigger, UserDecision,
};

/// The texts that differ between tests.
#[derive(Debug, Clone)]
struct Texts {
    /// The text of every field but the drafts.
    any: String,
    first: String,
    second: String,
}

impl Texts {
    fn all(text: &str) -> Self {
        Self {
            any: text.to_owned(),
            first: text.to_owned(),
            second: text.to_owned(),
        }
    }
}

fn issue(text: &str) -> Issue {
    Issue {
        kind: IssueType::Unsupported,
        severity: Severity::Major,
        description: text.to_owned(),
        suggested_fix: Some(text.to_owned()),
        criterion: Some(text.to_owned()),
        place: Place {
            line: Some(3),
            quote: Some(text.to_owned()),
            claim: Some(text.to_owned()),
            verified: Some(false),
            ..Place::default()
        },
    }
}

fn evaluation(text: &str, score: f64) -> Evaluation {
    Evaluation {
        overall_score: Some(score),
        criteria_scores: [(text.to_owned(), Some(score))].into_iter().collect(),
        satisfactory: score > 0.8,
        issues: vec![issue(text)],
        suggestions: vec![text.to_owned()],
        confidence: Some(0.5),
        status: Status::Ok,
        spread: None,
        criteria: vec![CriterionResult {
            name: text.to_owned(),
            evaluator: "llm".to_owned(),
            score: Some(score),
            threshold: 0.7,
            passed: score > 0.7,
            required: false,
            status: Status::Ok,
            evidence: Some(text.to_owned()),
            value: None,
            spread: Some(0.1),
            cached: true,
        }],
        flaw: None,
    }
}

/// A run with every kind of event, and a text in every field that may hold one.
#[expect(clippy::too_many_lines, reason = "it is a list")]
fn run(texts: &Texts) -> Vec<Stamped> {
    let text = texts.any.as_str();
    let own = || text.to_owned();
    let model = || ModelId {
        provider: own(),
        model: own(),
    };
    let mut criteria = crate::criteria::builtin("writing").expect("a built-in set");
    criteria.name = own();
    criteria.criteria.truncate(1);
    criteria.criteria[0].name = own();
    criteria.criteria[0].description = own();
    criteria.criteria[0].evaluator = Evaluator::Llm(LlmConfig::default());
    let tracked = |status| TrackedIssue {
        id: 1,
        status,
        since: 1,
        issue: issue(text),
    };
    let draft = |iteration, output: &str, base: Option<u32>| Event::Draft {
        iteration,
        output: output.to_owned(),
        based_on: base,
        strategy: base.map(|_| RevisionStrategy::TargetedEdit),
        edits: base.map(|_| EditCounts {
            exact: 2,
            ..EditCounts::default()
        }),
    };
    let decision = |iteration, choice, incumbent| Event::Decision {
        iteration,
        choice,
        incumbent,
        reason: own(),
    };
    let call = |phase, iteration, error: Option<String>| Event::Call {
        phase,
        iteration,
        model: model(),
        usage: TokenUsage::new(Some(1200), Some(300), Some(800)),
        duration_ms: 1500,
        cost: None,
        attempts: 1,
        error,
    };
    let events = vec![
        Event::RunStart {
            schema_version: SCHEMA_VERSION,
            run_id: Uuid::nil(),
            setup: None,
            command: own(),
            file: Some(own()),
            task: Box::new(Task {
                prompt: own(),
                system: Some(own()),
                context: vec![ContextBlock {
                    name: own(),
                    content: own(),
                }],
                message_history: vec![PastMessage {
                    role: own(),
                    content: own(),
                }],
                facts: vec![Fact {
                    content: own(),
                    confidence: None,
                    supports_claim: Some(own()),
                }],
                procedures: vec![Procedure {
                    name: Some(own()),
                    content: own(),
                    success_rate: None,
                }],
                insights: vec![Insight {
                    category: own(),
                    content: own(),
                    confidence: 0.5,
                }],
                remembered: vec![1],
            }),
            criteria: Box::new(criteria),
            settings: LoopSettings::default(),
            models: Models {
                writer: Some(model()),
                judge: Some(model()),
            },
        },
        Event::Evidence {
            iteration: 1,
            evidence: vec![Evidence {
                source: EvidenceSource::Codebase,
                content: own(),
                relevance: Some(0.5),
                supports_claim: Some(own()),
                location: Some(own()),
            }],
        },
        Event::Retry {
            phase: Phase::Draft,
            iteration: 1,
            message: own(),
            wait_ms: 500,
        },
        call(Phase::Draft, 1, None),
        Event::Cleaned {
            iteration: 1,
            what: own(),
            removed: own(),
        },
        draft(1, &texts.first, None),
        call(Phase::Evaluate, 1, Some(own())),
        Event::Evaluation {
            iteration: 1,
            evaluation: evaluation(text, 0.5),
        },
        Event::Issues {
            iteration: 1,
            open: vec![tracked(IssueStatus::Open)],
            resolved: Vec::new(),
        },
        decision(1, Choice::Accept, 1),
        Event::Strategy {
            iteration: 2,
            strategy: RevisionStrategy::TargetedEdit,
            reason: own(),
        },
        call(Phase::Revise, 2, None),
        draft(2, &texts.second, Some(1)),
        Event::Evaluation {
            iteration: 2,
            evaluation: evaluation(text, 0.9),
        },
        Event::Issues {
            iteration: 2,
            open: Vec::new(),
            resolved: vec![tracked(IssueStatus::Resolved)],
        },
        decision(2, Choice::Stop, 2),
        Event::Rejected {
            iteration: 3,
            reason: own(),
            text: own(),
            stopped_early: true,
        },
        Event::Candidate {
            iteration: 2,
            candidate: 1,
            step: CandidateStep::Begun {
                of: 2,
                difference: own(),
            },
        },
        Event::Candidate {
            iteration: 2,
            candidate: 1,
            step: CandidateStep::Written {
                output: own(),
                strategy: None,
                edits: None,
            },
        },
        Event::Candidate {
            iteration: 2,
            candidate: 1,
            step: CandidateStep::Judged {
                evaluation: evaluation(text, 0.25),
            },
        },
        Event::ToolResult {
            iteration: 2,
            tool: own(),
            end: own(),
            exit_code: Some(1),
            output: own(),
        },
        Event::Reflection(Reflection {
            iteration: 2,
            trigger: Trigger::ToolResult,
            text: own(),
        }),
        Event::UserDecision {
            iteration: 1,
            decision: UserDecision::Guide(own()),
        },
        Event::Warning { message: own() },
        Event::RunEnd {
            schema_version: SCHEMA_VERSION,
            run_id: Some(Uuid::nil()),
            convergence_reason: Some(ConvergenceReason::QualityMet),
            success: true,
            selected: Some(2),
            exit_code: ExitCode::Success,
            error: Some(own()),
        },
    ];
    let start = Timestamp::from_second(1_700_000_000).expect("a time");
    (0_i64..)
        .zip(events)
        .map(|(second, event)| Stamped {
            time: start + jiff::SignedDuration::from_secs(second),
            event,
        })
        .collect()
}

/// The page without its style sheet, which is always the same.
fn without_style(page: &str) -> String {
    let (before, rest) = page.split_once("<style>").expect("a style");
    let (_, after) = rest.split_once("</style>").expect("the end of the style");
    assert!(!after.contains("<style"));
    format!("{before}{after}")
}

/// Returns the tags of a page, in order. Panics at a `<` or `>` outside of tags.
fn tags(page: &str) -> Vec<String> {
    let page = without_style(page);
    let mut tags = Vec::new();
    let mut rest = page.as_str();
    while let Some((text, after)) = rest.split_once('<') {
        assert!(!text.contains('>'), "a stray `>` in {text:?}");
        let (tag, next) = after.split_once('>').expect("the end of a tag");
        assert!(!tag.contains('<'), "a tag in a tag: {tag:?}");
        tags.push(tag.to_owned());
        rest = next;
    }
    tags
}

/// Panics if a page has an active element or attribute, or badly nested elements.
fn check(page: &str) {
    let tag = Regex::new(
        r#"^(!doctype html|/?(a|article|blockquote|body|caption|circle|code|dd|del|desc|details|div|dl|dt|em|figcaption|figure|footer|h[1-6]|head|header|html|ins|li|line|main|meta|nav|p|pre|section|span|strong|summary|svg|table|tbody|td|text|tfoot|th|thead|title|tr|ul)( (open|(class|id|dir|lang|charset|name|content|http-equiv|role|tabindex|scope|xmlns|viewBox|width|height|[xy][12]?|d[xy]|c[xy]|r|text-anchor|aria-[a-z]+|href)="[^"<>]*"))*/?)$"#,
    )
    .expect("a pattern");
    let link = Regex::new(r##"href="#[a-z0-9-]+""##).expect("a pattern");
    let mut open: Vec<String> = Vec::new();
    let mut ids = BTreeSet::new();
    for text in tags(page) {
        assert!(tag.is_match(&text), "unknown: <{text}>");
        assert!(!text.contains("href") || link.is_match(&text), "<{text}>");
        if let Some((_, rest)) = text.split_once(" id=\"") {
            let id = rest.split('"').next().expect("a name");
            assert!(ids.insert(id.to_owned()), "duplicate id {id}");
        }
        let name = text
            .split([' ', '/'])
            .find(|it| !it.is_empty())
            .expect("a name");
        if let Some(name) = text.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(name));
        } else if !text.ends_with('/') && !["meta", "!doctype"].contains(&name) {
            open.push(name.to_owned());
        }
    }
    assert!(open.is_empty(), "{open:?}");
    for target in link.find_iter(page) {
        let name = target.as_str()[7..].trim_end_matches('"');
        assert!(ids.contains(name), "no element with id {name}");
    }
}

/// Returns the visible text of a page.
fn read(page: &str) -> String {
    let tags = Regex::new("<[^>]*>").expect("a pattern");
    tags.replace_all(&without_style(page), "")
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&#x27;", "'")
        .replace("&#x2f;", "/")
        .replace("&amp;", "&")
}

const HOSTILE: &str = "</pre><script>alert(1)</script><img src=x onerror=alert(1)> {{ 7*7 }} {% raw %} &lt; \" ' --> ]]>";

#[test]
fn renders_every_event_and_nests_headings() {
    let page = html(&[&run(&Texts {
        any: "A word on it".to_owned(),
        first: "The cat sat there.\nThe end.\n".to_owned(),
        second: "The dog sat there.\nThe end.\n".to_owned(),
    })]);
    check(&page);
    let text = read(&page);
    for part in [
        "✓ criteria met",
        "0.90 (first draft 0.50)",
        "draft 2 of 2",
        "revises draft 1 by targeted_edit; 2 edits applied",
        "Changes to draft 1",
        "[removed: cat][added: dog]",
        "1,200",
        "Draft 3",
        "candidate 1: A word on it; score 0.25",
        "the tool `A word on it`: A word on it",
        "reflection: after a tool result",
        "the user decided: instruction: A word on it",
        "tried again after 0.5 s",
    ] {
        assert!(text.contains(part), "{part} is not in: {text}");
    }
    // Headings do not skip levels.
    let mut before = 0;
    for tag in tags(&page) {
        if let Some(level) = tag
            .strip_prefix('h')
            .and_then(|it| it[..1].parse::<u8>().ok())
        {
            assert!(level <= before + 1, "h{level} after h{before}");
            before = level;
        }
    }
    assert!(page.contains("default-src 'none'; style-src 'unsafe-inline'; img-src data:"));
    assert!(!page.contains("<script") && !page.contains("://www.w3.org\""));
}

#[test]
fn escapes_hostile_text() {
    let page = html(&[&run(&Texts::all(HOSTILE))]);
    check(&page);
    assert!(read(&page).matches(HOSTILE).count() > 20);
    assert!(!page.contains("<script") && !page.contains("<img"));
    assert_eq!(tags(&page), tags(&html(&[&run(&Texts::all("harmless"))])));
}

#[test]
fn renders_a_section_for_each_run() {
    let (one, other) = (run(&Texts::all("one")), run(&Texts::all("other")));
    let page = html(&[&one, &other]);
    check(&page);
    assert!(read(&page).contains("2 texts"));
    check(&html(&[]));
}

#[test]
fn renders_unfinished_runs() {
    let all = run(&Texts::all("text"));
    for length in 0..all.len() {
        check(&html(&[&all[..length]]));
    }
    assert!(read(&html(&[&all[..9]])).contains("not finished"));
}

#[test]
fn replaces_control_characters() {
    let page = html(&[&run(&Texts::all("a\u{0}b\u{1b}[31m\r\nc\u{9b}d"))]);
    assert!(!page.contains(|c: char| c.is_control() && c != '\n' && c != '\t'));
    assert!(page.contains("a\u{fffd}b\u{fffd}[31m\nc\u{fffd}d"));
}

/// The relative luminance of a colour `#rrggbb`, as defined by WCAG 2.
fn luminance(colour: &str) -> f64 {
    let part = |at: usize| {
        let value = u8::from_str_radix(&colour[at..at + 2], 16).expect("a colour");
        let share = f64::from(value) / 255.0;
        if share <= 0.03928 {
            share / 12.92
        } else {
            ((share + 0.055) / 1.055).powf(2.4)
        }
    };
    0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5)
}

#[test]
fn text_has_enough_contrast() {
    let style = include_str!("style.css");
    let named = Regex::new("--([a-z-]+): (#[0-9a-f]{3,6});").expect("a pattern");
    let mut sets = 0;
    for set in style.split(":root {").skip(1) {
        let set = set.split('}').next().expect("a set");
        let colours: BTreeMap<&str, String> = named
            .captures_iter(set)
            .map(|found| {
                let (_, [name, colour]) = found.extract();
                let long: String = match colour.len() {
                    4 => colour
                        .chars()
                        .flat_map(|c| std::iter::repeat_n(c, if c == '#' { 1 } else { 2 }))
                        .collect(),
                    _ => colour.to_owned(),
                };
                (name, long)
            })
            .collect();
        for (text, ground) in [
            ("ink", "paper"),
            ("ink", "card"),
            ("ink", "tag"),
            ("muted", "paper"),
            ("muted", "card"),
            ("accent", "paper"),
            ("good", "paper"),
            ("bad", "paper"),
            ("ins-ink", "ins"),
            ("del-ink", "del"),
        ] {
            let (one, other) = (luminance(&colours[text]), luminance(&colours[ground]));
            let contrast = (one.max(other) + 0.05) / (one.min(other) + 0.05);
            assert!(contrast >= 4.5, "{text} on {ground}: {contrast:.2}");
        }
        sets += 1;
    }
    assert_eq!(sets, 3, "light, dark, print");
}

#[test]
fn renders_huge_drafts_quickly() {
    let long = |seed: usize| -> String {
        let words = (0..200_000).map(|word| (word * 7919 + seed) % 1009);
        words.map(|word| word.to_string() + " ").collect()
    };
    let begin = Instant::now();
    let page = html(&[&run(&Texts {
        any: "x".to_owned(),
        first: long(1),
        second: long(77),
    })]);
    assert!(page.len() > 1_500_000);
    assert!(
        begin.elapsed() < Duration::from_secs(20),
        "{:?}",
        begin.elapsed()
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn text_never_changes_the_tags(
        text in "(<[/a-z!-]{0,6}|[\"'&>=/{}%#-]|-->|&[a-z]{2,4};|\\PC|[\u{0}-\u{1f}\u{7f}-\u{9f}]|\n| ){0,30}"
    ) {
        // Make the text non-empty, so that the page omits nothing.
        let text = format!("x{text}x");
        let page = html(&[&run(&Texts::all(&text))]);
        prop_assert_eq!(tags(&page), tags(&html(&[&run(&Texts::all("harmless"))])));
        prop_assert!(read(&page).contains(&*super::printable(&text)));
    }

    #[test]
    fn drafts_never_add_active_elements(
        first in "(<[/a-z]{0,6}>?|[\"'&>]| |word|\n){0,40}",
        second in "(<[/a-z]{0,6}>?|[\"'&>]| |word|\n){0,40}",
    ) {
        let page = html(&[&run(&Texts { any: "x".to_owned(), first: first.clone(), second: second.clone() })]);
        check(&page);
        prop_assert!(read(&page).contains(&first) && read(&page).contains(&second));
    }
}

#[test]
fn renders_prompts_and_replies_with_their_calls() {
    let mut events = run(&Texts::all("a"));
    let is_call = |it: &Stamped| matches!(it.event, Event::Call { .. });
    let place = events.iter().position(is_call).expect("a call");
    if let Event::Call { cost, .. } = &mut events[place].event {
        *cost = Some(0.0125);
    }
    let without = html_with_talks(&events, BTreeMap::new());
    assert!(!read(&without).contains("reasoning"));
    let talk = Talk {
        asked: vec![Said {
            role: "user".to_owned(),
            text: format!("asked {HOSTILE}"),
        }],
        reasoning: format!("thought {HOSTILE}"),
        answer: format!("answered {HOSTILE}"),
    };
    let page = html_with_talks(&events, [(place, talk)].into());
    check(&page);
    let text = read(&page);
    for part in ["asked", "thought", "answered"] {
        assert!(text.contains(&format!("{part} </pre><script>")), "{part}");
    }
    assert!(text.contains("0.0125"));
}
