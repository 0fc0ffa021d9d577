use std::collections::HashSet;

use crate::types::{Criteria, Criterion, JudgeSettings, LoopSettings, ProbeTexts};

/// Combines sets into one, whose drafts must meet the criteria of all of them.
///
/// - The threshold is the highest of all.
/// - In `[loop]` and `[judge]`, the keys of later sets override those of earlier ones.
/// - A criterion that an earlier set contains unchanged counts once. If only its name is taken, it
///   is renamed to `SET/NAME`.
/// - The probe texts are kept if exactly one set needs a judge: a good text for one set need not
///   be good for another.
pub fn combine(first: Criteria, others: impl IntoIterator<Item = Criteria>) -> Criteria {
    let mut sets = vec![first];
    sets.extend(others);
    if sets.len() == 1 {
        return sets.remove(0);
    }
    let names: Vec<&str> = sets.iter().map(|set| set.name.as_str()).collect();
    let descriptions: Vec<&str> = sets
        .iter()
        .filter_map(|set| set.description.as_deref())
        .collect();
    let mut judged = sets.iter().filter(|set| set.need_judge());
    let probe = match (judged.next(), judged.next()) {
        (Some(only), None) => only.probe.clone(),
        _ => ProbeTexts::default(),
    };
    Criteria {
        name: names.join(" + "),
        description: (!descriptions.is_empty()).then(|| descriptions.join(" ")),
        threshold: sets.iter().map(|set| set.threshold).fold(0.0, f64::max),
        loop_settings: sets.iter().fold(LoopSettings::default(), |earlier, set| {
            set.loop_settings.clone().or(&earlier)
        }),
        judge_settings: sets.iter().fold(JudgeSettings::default(), |earlier, set| {
            set.judge_settings.clone().or(&earlier)
        }),
        probe,
        criteria: all_criteria(&sets),
    }
}

/// Returns the criteria of all sets under unique names, without those that occur twice.
fn all_criteria(sets: &[Criteria]) -> Vec<Criterion> {
    let mut all: Vec<Criterion> = Vec::new();
    let mut taken: HashSet<String> = HashSet::new();
    for set in sets {
        for criterion in &set.criteria {
            if all.contains(criterion) {
                continue;
            }
            let name = free_name(criterion, set, &taken);
            taken.insert(name.to_lowercase());
            all.push(Criterion {
                name,
                ..criterion.clone()
            });
        }
    }
    all
}

/// Returns the criterion's own name, or the first free one of `SET/NAME`, `SET/NAME-2`, ….
fn free_name(criterion: &Criterion, set: &Criteria, taken: &HashSet<String>) -> String {
    let own = criterion.name.clone();
    let qualified = format!("{}/{own}", set.name);
    let numbered = (2_u32..).map(|number| format!("{qualified}-{number}"));
    [own.clone(), qualified.clone()]
        .into_iter()
        .chain(numbered)
        .find(|name| !taken.contains(&name.to_lowercase()))
        .unwrap_or(own)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::criteria::{builtin, parse, warnings};

    fn set(text: &str) -> Criteria {
        parse(text, "c.toml").unwrap()
    }

    #[test]
    fn one_set_is_unchanged() {
        let code = builtin("code").unwrap();
        assert_eq!(combine(code.clone(), []), code);
    }

    #[test]
    fn all_criteria_count_under_unique_names() {
        let a = set(
            "name = 'a'\nthreshold = 0.9\nloop.max_iterations = 3\njudge.samples = 3\n\
             [[criteria]]\nname = 'size'\nevaluator = 'length'\nmax = 9\n\
             [[criteria]]\nname = 'same'\nevaluator = 'length'\nmin = 1\n",
        );
        let b = set("name = 'b'\nthreshold = 0.7\nloop.max_iterations = 4\n\
             [[criteria]]\nname = 'Size'\nevaluator = 'length'\nmax = 5\n\
             [[criteria]]\nname = 'same'\nevaluator = 'length'\nmin = 1\n");
        let again = set("name = 'b'\n[[criteria]]\nname = 'Size'\nevaluator = 'length'\nmax = 4\n");
        let all = combine(a, [b, again]);
        let names: Vec<&str> = all.criteria.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["size", "same", "b/Size", "b/Size-2"]);
        assert_eq!(all.name, "a + b + b");
        assert!((all.threshold - 0.9).abs() < f64::EPSILON);
        assert_eq!(all.loop_settings.max_iterations, Some(4));
        assert_eq!(all.judge_settings.samples(), 3);
    }

    #[test]
    fn probe_texts_are_kept_for_a_single_judged_set() {
        let commit = builtin("commit").unwrap();
        let paragraph = builtin("paragraph").unwrap();
        let both = combine(paragraph, [commit.clone()]);
        assert_eq!(both.probe, commit.probe);
        assert_eq!(warnings(&both), Vec::<String>::new());
        let judged = combine(commit, [builtin("writing").unwrap()]);
        assert!(judged.probe.is_empty());
        assert_eq!(judged.name, "commit + writing");
    }
}
