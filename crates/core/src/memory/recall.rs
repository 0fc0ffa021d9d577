//! Selects the memories that suit a task.

use jiff::Timestamp;

use super::confidence::{FLOOR, confidence, strength, success_rate};
use crate::evidence::{SearchError, texts_like};
use crate::types::{
    CHARACTERS_PER_TOKEN, Criteria, Insight, Knowledge, KnownInsight, Memory, Procedure,
    RecalledMemory, Task,
};

/// The maximum number of tokens that recalled memories add to a prompt, at an estimated four
/// characters per token.
pub const TOKENS: u32 = 800;

/// The cost of an entry in addition to its text, in characters: its figure and the surrounding
/// text.
const FRAME: usize = 30;

/// The maximum number of recalled memories. Further ones are noise.
const MOST: usize = 12;

/// The minimum score of a memory as a share of the best one's. Memories below share only a common
/// word or two.
const LEAST_SHARE: f64 = 0.25;

/// The minimum relevance of an insight about the run's own criteria or model, whatever its words.
const OF_THIS_RUN: f64 = 0.5;

/// The minimum relevance at which an insight about other criteria is offered.
const LEAST_ELSEWHERE: f64 = 0.3;

/// The memories that suit a task, best first.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Recalled {
    /// The memories, best first.
    pub memories: Vec<Memory>,
    now: Timestamp,
}

/// Returns the memories that suit a task with these criteria, written by this model
/// (`provider:model`).
///
/// Memories related to the prompt or to a criterion are found by their words, as evidence is;
/// insights are also found by the criteria and model they are about. Insights about another model
/// are excluded. Relevant and strong memories come first. Decayed memories, and those known to be
/// mostly wrong, are excluded. Together they take at most [`TOKENS`] tokens.
///
/// # Errors
/// If the index fails.
pub fn recall(
    known: &[Memory],
    task: &Task,
    criteria: &Criteria,
    writer: &str,
    now: Timestamp,
) -> Result<Recalled, SearchError> {
    let known: Vec<&Memory> = known
        .iter()
        .filter(|memory| strength(memory, now) >= FLOOR && !is_in_task(task, &memory.what))
        .collect();
    let questions: Vec<&str> = std::iter::once(task.prompt.as_str())
        .chain(criteria.criteria.iter().map(|it| it.description.as_str()))
        .collect();
    let relevances = relevances(&known, &questions)?;
    let mut ranked: Vec<(f64, &Memory)> = known
        .into_iter()
        .zip(relevances)
        .filter_map(|(memory, relevance)| {
            let relevance = match &memory.what {
                Knowledge::Insight(insight) => of_run(insight, criteria, writer, relevance)?,
                Knowledge::Fact(_) | Knowledge::Procedure(_) => relevance,
            };
            (relevance > 0.0).then(|| (relevance * strength(memory, now), memory))
        })
        .collect();
    ranked.sort_by(|(a, one), (b, other)| b.total_cmp(a).then(one.id.cmp(&other.id)));
    let mut left = TOKENS as usize * CHARACTERS_PER_TOKEN;
    let memories = ranked
        .into_iter()
        .filter(|(_, memory)| {
            let cost = memory.what.text().chars().count() + FRAME;
            let fits = cost <= left;
            left -= if fits { cost } else { 0 };
            fits
        })
        .take(MOST)
        .map(|(_, memory)| memory.clone())
        .collect();
    Ok(Recalled { memories, now })
}

/// Returns the memories that contain words of a question, most relevant first.
///
/// # Errors
/// If the index fails.
pub fn matching<'a>(known: &'a [Memory], question: &str) -> Result<Vec<&'a Memory>, SearchError> {
    let all: Vec<&Memory> = known.iter().collect();
    let mut found: Vec<(f64, &Memory)> = relevances(&all, &[question])?
        .into_iter()
        .zip(all)
        .filter(|(relevance, _)| *relevance > 0.0)
        .collect();
    found.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    Ok(found.into_iter().map(|(_, memory)| memory).collect())
}

/// Returns the relevance of each memory to the question it fits best, 0 to 1.
fn relevances(known: &[&Memory], questions: &[&str]) -> Result<Vec<f64>, SearchError> {
    let texts: Vec<String> = known.iter().map(|memory| memory.what.text()).collect();
    let mut relevances = vec![0.0_f64; known.len()];
    for found in texts_like(&texts, questions)? {
        let best = found.first().map_or(0.0, |(_, relevance)| *relevance);
        for (place, relevance) in found {
            if relevance >= LEAST_SHARE * best {
                relevances[place] = relevances[place].max(relevance);
            }
        }
    }
    Ok(relevances)
}

/// Returns the minimum relevance of an insight to a run, or `None` if the insight does not apply to
/// it.
fn of_run(
    insight: &KnownInsight,
    criteria: &Criteria,
    writer: &str,
    relevance: f64,
) -> Option<f64> {
    if insight
        .model
        .as_deref()
        .is_some_and(|model| model != writer)
    {
        return None;
    }
    match insight.criteria.as_deref() {
        Some(name) if name == criteria.name => {
            // The criteria may have changed since.
            let is_there = insight
                .criterion
                .as_deref()
                .is_none_or(|wanted| criteria.criteria.iter().any(|it| it.name == wanted));
            is_there.then(|| relevance.max(OF_THIS_RUN))
        }
        Some(_) => (relevance >= LEAST_ELSEWHERE).then_some(relevance),
        None if insight.model.is_some() => Some(relevance.max(OF_THIS_RUN)),
        None => Some(relevance),
    }
}

/// Returns whether the task already contains the memory, from a context file.
fn is_in_task(task: &Task, what: &Knowledge) -> bool {
    match what {
        Knowledge::Fact(fact) => task.facts.iter().any(|it| it.content == fact.content),
        Knowledge::Procedure(procedure) => {
            (task.procedures.iter()).any(|it| it.content == procedure.content)
        }
        Knowledge::Insight(_) => false,
    }
}

impl Recalled {
    /// Converts the memories to the form that a task holds: facts and procedures as context,
    /// insights as advice. Includes their ids for the run's log.
    pub fn into_recollection(self) -> RecalledMemory {
        let mut into_recollection = RecalledMemory::default();
        for memory in self.memories {
            into_recollection.remembered.push(memory.id);
            let strength = strength(&memory, self.now);
            match memory.what {
                Knowledge::Fact(fact) => into_recollection.facts.push(fact),
                Knowledge::Procedure(procedure) => into_recollection.procedures.push(Procedure {
                    success_rate: success_rate(&procedure),
                    name: procedure.name,
                    content: procedure.content,
                }),
                Knowledge::Insight(insight) => into_recollection.insights.push(Insight {
                    confidence: strength.min(confidence(&insight)),
                    category: insight.category,
                    content: insight.content,
                }),
            }
        }
        into_recollection
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{Fact, KnownProcedure};

    fn memories(all: impl IntoIterator<Item = Knowledge>) -> Vec<Memory> {
        (1..)
            .zip(all)
            .map(|(id, what)| Memory {
                id,
                added: Timestamp::UNIX_EPOCH,
                touched: Timestamp::UNIX_EPOCH,
                what,
            })
            .collect()
    }

    fn fact(content: &str, confidence: Option<f64>) -> Knowledge {
        Knowledge::Fact(Fact {
            content: content.to_owned(),
            confidence,
            supports_claim: None,
        })
    }

    fn insight(content: &str, criteria: Option<&str>, model: Option<&str>) -> Knowledge {
        Knowledge::Insight(KnownInsight {
            criteria: criteria.map(str::to_owned),
            model: model.map(str::to_owned),
            ..KnownInsight::new("general", content, 0.6)
        })
    }

    fn house() -> Criteria {
        crate::criteria::parse(
            "name = 'house'\n[[criteria]]\nname = 'clear'\ndescription = 'A reader understands it at once.'",
            "c.toml",
        )
        .unwrap()
    }

    fn ids(known: &[Memory], prompt: &str) -> Vec<u64> {
        let task = Task::new(prompt);
        let found = recall(known, &task, &house(), "ollama:a", Timestamp::UNIX_EPOCH).unwrap();
        found.memories.iter().map(|memory| memory.id).collect()
    }

    #[test]
    fn what_has_to_do_with_the_task_is_recalled() {
        let known = memories([
            fact("Migrations are made with drizzle-kit.", Some(0.85)),
            fact("The sea is wet.", Some(1.0)),
            Knowledge::Procedure(KnownProcedure {
                name: Some("Migrate the database".to_owned()),
                content: "Generate, then push.".to_owned(),
                given: Some(0.9),
                uses: 0,
                successes: 0,
            }),
            fact("Migrations are always dangerous.", Some(0.1)),
        ]);
        let mut found = ids(&known, "How do I set up a database migration?");
        found.sort_unstable();
        assert_eq!(found, [1, 3]);
        assert!(ids(&known, "Bake a cake.").is_empty());
    }

    #[test]
    fn insights_are_recalled_by_what_they_are_about() {
        let known = memories([
            insight("Say first what it is about.", Some("house"), None),
            insight("Say first what it is about.", Some("other"), None),
            insight("Copy the lines.", None, Some("ollama:a")),
            insight("Copy the lines.", None, Some("ollama:b")),
            insight("Cakes need sugar.", None, None),
            insight("A cake is baked in a hot oven.", Some("other"), None),
        ]);
        assert_eq!(ids(&known, "Explain tides."), [1, 3]);
        let found = ids(&known, "Bake a cake.");
        assert!(found.contains(&5) && found.contains(&6), "{found:?}");
        assert!(!found.contains(&4) && !found.contains(&2), "{found:?}");
    }

    #[test]
    fn a_criterion_that_is_gone_takes_its_insights_with_it() {
        let Knowledge::Insight(mut of_gone) = insight("Be brief.", Some("house"), None) else {
            panic!("it is one");
        };
        of_gone.criterion = Some("short".to_owned());
        assert!(ids(&memories([Knowledge::Insight(of_gone)]), "Explain tides.").is_empty());
    }

    #[test]
    fn what_is_recalled_is_bounded() {
        let text = |n: usize| format!("Number {n}: tides {}", "come and go ".repeat(60));
        let known = memories((0..40).map(|n| fact(&text(n), Some(0.9))));
        let found = ids(&known, "Explain tides.");
        assert_eq!(found.len(), 4, "at about 760 characters each");
        let known = memories((0..40).map(|n| fact(&format!("Tides {n}."), Some(0.9))));
        assert_eq!(ids(&known, "Explain tides.").len(), MOST);
    }

    #[test]
    fn the_task_gets_each_as_what_it_is_and_nothing_twice() {
        let known = memories([
            fact("Tides come twice a day.", Some(0.9)),
            fact("Tides follow the moon.", None),
            insight("Say first what it is about.", Some("house"), None),
        ]);
        let mut task = Task::new("Explain tides.");
        task.facts.push(Fact {
            content: "Tides come twice a day.".to_owned(),
            confidence: None,
            supports_claim: None,
        });
        let now = Timestamp::UNIX_EPOCH;
        let found = recall(&known, &task, &house(), "ollama:a", now).unwrap();
        task.add_recalled(found.into_recollection());
        assert_eq!(task.facts.len(), 2);
        assert_eq!(
            task.facts[1].confidence, None,
            "what is not known is not made up"
        );
        assert_eq!(task.insights[0].content, "Say first what it is about.");
        assert!((task.insights[0].confidence - 0.6).abs() < 1e-9);
        let mut remembered = task.remembered.clone();
        remembered.sort_unstable();
        assert_eq!(remembered, [2, 3]);
    }

    #[test]
    fn words_find_what_has_them() {
        let known = memories([fact("The sky is blue.", None), fact("Tides come.", None)]);
        let found = matching(&known, "blues").unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].id, 1);
        assert!(matching(&known, "zebra").unwrap().is_empty());
        assert!(matching(&[], "zebra").unwrap().is_empty());
    }
}
