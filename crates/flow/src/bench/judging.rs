//! How far a judge can be trusted: its verdicts against people's labels.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use super::arm::{Failure, judge};
use super::meter::Meter;
use super::stats::{count, kappa, mean, spearman};
use crate::engine::Loop;
use crate::evaluate::Preference;
use crate::types::{JudgeMode, JudgeScore, JudgeSettings, SCHEMA_VERSION, Task};

/// What is appended to a text to see whether length alone moves its score: it says nothing.
const PADDING: &str = "\n\nIn conclusion, it is worth noting that the above covers the matter. As described, all of \
                       this should be kept in mind, and the points made before remain the points that matter.";

/// The label from which on a text is good enough, where labels are numbers.
const GOOD: f64 = 0.5;

/// A text, or two of them, with what people say.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Labelled {
    /// A text with a label: good enough or not, or how good from 0 to 1.
    Text {
        /// What the text was written for.
        #[serde(default)]
        prompt: String,
        /// The text.
        text: String,
        /// What people say.
        label: Label,
    },
    /// Two texts, of which one is better.
    Pair {
        /// What both were written for.
        #[serde(default)]
        prompt: String,
        /// One.
        a: String,
        /// The other.
        b: String,
        /// Which one is better.
        better: Better,
    },
}

/// What people say of a text.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Label {
    /// Whether it is good enough.
    Pass(bool),
    /// How good it is, 0 to 1.
    Score(f64),
}

impl Label {
    fn score(self) -> f64 {
        match self {
            Self::Pass(pass) => f64::from(u8::from(pass)),
            Self::Score(score) => score,
        }
    }

    fn passes(self) -> bool {
        self.score() >= GOOD
    }
}

/// Which of two texts people prefer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// The first.
    A,
    /// The second.
    B,
}

/// A way of asking the judge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// One call for all criteria.
    Joint,
    /// A call for each criterion.
    Separate,
    /// One call, whose score is the mean over the probabilities of all steps.
    Expected,
    /// The median of three calls for all criteria.
    ThreeSamples,
}

impl Mode {
    /// All of them, the cheapest first.
    pub const ALL: [Self; 4] = [
        Self::Joint,
        Self::Expected,
        Self::Separate,
        Self::ThreeSamples,
    ];

    /// The name in a report.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Joint => "joint",
            Self::Separate => "separate",
            Self::Expected => "expected",
            Self::ThreeSamples => "three-samples",
        }
    }

    /// The settings that stand for it.
    pub fn settings(self) -> JudgeSettings {
        let (mode, samples, score) = match self {
            Self::Joint => (JudgeMode::Joint, 1, JudgeScore::Verdict),
            Self::Separate => (JudgeMode::Separate, 1, JudgeScore::Verdict),
            Self::Expected => (JudgeMode::Joint, 1, JudgeScore::Expected),
            Self::ThreeSamples => (JudgeMode::Joint, 3, JudgeScore::Verdict),
        };
        JudgeSettings {
            mode: Some(mode),
            samples: Some(samples),
            score: Some(score),
            ..JudgeSettings::default()
        }
    }
}

/// Verdicts on one text: two of the same text, and one of it with padding.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Judged {
    pub(super) label: Label,
    pub(super) passed: bool,
    pub(super) score: f64,
    pub(super) again: Option<f64>,
    pub(super) padded: Option<f64>,
}

/// How often the judge and people say the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Confusion {
    /// Both say it is good enough.
    pub true_pass: usize,
    /// Only the judge does.
    pub false_pass: usize,
    /// Only people do.
    pub false_fail: usize,
    /// Neither does.
    pub true_fail: usize,
}

impl Confusion {
    fn of(pairs: &[(bool, bool)]) -> Self {
        let number = |wanted| pairs.iter().filter(|pair| **pair == wanted).count();
        Self {
            true_pass: number((true, true)),
            false_pass: number((true, false)),
            false_fail: number((false, true)),
            true_fail: number((false, false)),
        }
    }

    fn accuracy(self) -> f64 {
        let all = self.true_pass + self.false_pass + self.false_fail + self.true_fail;
        count(self.true_pass + self.true_fail) / count(all.max(1))
    }

    /// The share of bad texts that the judge lets pass; `None` without bad texts.
    fn false_pass_rate(self) -> Option<f64> {
        let bad = self.false_pass + self.true_fail;
        (bad > 0).then(|| count(self.false_pass) / count(bad))
    }
}

/// A threshold for the score, and what it would do.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Threshold {
    /// The least score that passes.
    pub score: f64,
    /// Agreement with people beyond chance.
    pub kappa: f64,
    /// The share of bad texts that pass; `None` without bad texts.
    pub false_pass_rate: Option<f64>,
}

/// How far a judge can be trusted in one mode.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Trust {
    /// The mode.
    pub mode: Mode,
    /// Texts with a verdict.
    pub texts: usize,
    /// Texts without a readable verdict.
    pub unreadable: usize,
    /// The share of texts of which it says what people say, by the criteria as they are.
    pub accuracy: f64,
    /// The same beyond chance; `None` where one side always says the same.
    pub kappa: Option<f64>,
    /// Rank correlation of its scores with the labels.
    pub spearman: Option<f64>,
    /// Who passes what.
    pub confusion: Confusion,
    /// The share of bad texts that it lets pass.
    pub false_pass_rate: Option<f64>,
    /// How far two verdicts on the same text lie apart, on average.
    pub repeat_difference: Option<f64>,
    /// How much the score rises when the text is padded, on average.
    pub length_bias: Option<f64>,
    /// The threshold at which it agrees best with people.
    pub best_threshold: Option<Threshold>,
    /// Tokens of one verdict, as `Meter` counts cost.
    pub cost_tokens: f64,
}

/// How the judge chooses between two texts; each pair is asked in both orders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Pairs {
    /// Pairs with a readable choice.
    pub pairs: usize,
    /// It prefers the one that people prefer.
    pub right: usize,
    /// It prefers the other one.
    pub wrong: usize,
    /// It prefers neither, or says something else in the other order.
    pub undecided: usize,
    /// Pairs without a readable choice.
    pub unreadable: usize,
}

/// The result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// See [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// What to do, in one sentence.
    pub verdict: String,
    /// Per mode how far it can be trusted.
    pub modes: Vec<Trust>,
    /// How it compares; `None` without pairs.
    pub pairs: Option<Pairs>,
}

impl Trust {
    fn of(mode: Mode, judged: &[Judged], unreadable: usize, cost_tokens: f64) -> Self {
        let said = judged.iter().map(|it| (it.passed, it.label.passes()));
        let said: Vec<(bool, bool)> = said.collect();
        let scores: Vec<f64> = judged.iter().map(|it| it.score).collect();
        let labels: Vec<f64> = judged.iter().map(|it| it.label.score()).collect();
        let differences = |other: &dyn Fn(&Judged) -> Option<f64>| {
            let each = judged.iter().filter_map(|it| Some(other(it)? - it.score));
            let each: Vec<f64> = each.collect();
            (!each.is_empty()).then_some(each)
        };
        let repeated = differences(&|it| it.again);
        let padded = differences(&|it| it.padded);
        let confusion = Confusion::of(&said);
        Self {
            mode,
            texts: judged.len(),
            unreadable,
            accuracy: confusion.accuracy(),
            kappa: kappa(&said),
            spearman: spearman(&scores, &labels),
            confusion,
            false_pass_rate: confusion.false_pass_rate(),
            repeat_difference: repeated
                .map(|each| mean(&each.iter().map(|it| it.abs()).collect::<Vec<_>>())),
            length_bias: padded.map(|each| mean(&each)),
            best_threshold: best_threshold(judged),
            cost_tokens,
        }
    }
}

/// The threshold between two scores that separates good from bad best; of equals the strictest.
fn best_threshold(judged: &[Judged]) -> Option<Threshold> {
    let mut scores: Vec<f64> = judged.iter().map(|it| it.score).collect();
    scores.sort_by(f64::total_cmp);
    scores.dedup();
    let between = scores.windows(2).map(|two| f64::midpoint(two[0], two[1]));
    let tried = between.filter_map(|score| {
        let said = judged
            .iter()
            .map(|it| (it.score >= score, it.label.passes()));
        let said: Vec<(bool, bool)> = said.collect();
        Some(Threshold {
            // Rounded to what people write; the scores next to it are further away, or it does not matter.
            score: (score * 1000.0).round() / 1000.0,
            kappa: kappa(&said)?,
            false_pass_rate: Confusion::of(&said).false_pass_rate(),
        })
    });
    tried.max_by(|a, b| a.kappa.total_cmp(&b.kappa))
}

/// Judges all texts and pairs.
///
/// # Errors
/// If the judge's model fails for good.
pub async fn measure(plan: &Loop, labelled: &[Labelled]) -> Result<Report, String> {
    let mut modes = Vec::new();
    let has_texts = labelled
        .iter()
        .any(|it| matches!(it, Labelled::Text { .. }));
    for mode in Mode::ALL.into_iter().filter(|_| has_texts) {
        modes.push(in_mode(plan, labelled, mode).await?);
    }
    let pairs = compare(plan, labelled).await?;
    Ok(Report {
        schema_version: SCHEMA_VERSION,
        verdict: verdict(&modes),
        modes,
        pairs,
    })
}

async fn in_mode(plan: &Loop, labelled: &[Labelled], mode: Mode) -> Result<Trust, String> {
    let mut criteria = plan.criteria().clone();
    criteria.judge_settings = JudgeSettings {
        cache: Some(false),
        ..mode.settings()
    };
    let plan = plan.with_criteria(criteria);
    let mut meter = Meter::new();
    let (mut judged, mut unreadable, mut verdicts) = (Vec::new(), 0, 0);
    for labelled in labelled {
        let Labelled::Text {
            prompt,
            text,
            label,
        } = labelled
        else {
            continue;
        };
        let task = Task::new(prompt);
        let padded = format!("{}{PADDING}", text.trim_end());
        let mut seen = Vec::new();
        for (seed, text) in [(1, text), (2, text), (1, &padded)] {
            let critique = plan.with_seed(seed).critique()?;
            let evaluation = judge(&critique, &task, text, &mut meter).await;
            let evaluation = evaluation.map_err(|Failure(_, error)| error)?;
            verdicts += 1;
            let passed = evaluation.satisfactory;
            seen.push(evaluation.rank().map(|rank| (passed, rank.score)));
        }
        match seen[0] {
            None => unreadable += 1,
            Some((passed, score)) => judged.push(Judged {
                label: *label,
                passed,
                score,
                again: seen[1].map(|(_, score)| score),
                padded: seen[2].map(|(_, score)| score),
            }),
        }
    }
    let tokens = u32::try_from(meter.tokens).map_or(f64::from(u32::MAX), f64::from);
    let each = tokens / count(verdicts.max(1));
    Ok(Trust::of(mode, &judged, unreadable, each))
}

async fn compare(plan: &Loop, labelled: &[Labelled]) -> Result<Option<Pairs>, String> {
    let mut found = Pairs::default();
    for labelled in labelled {
        let Labelled::Pair {
            prompt,
            a,
            b,
            better,
        } = labelled
        else {
            continue;
        };
        match plan.prefer(&Task::new(prompt), a, b).await? {
            None => {
                found.unreadable += 1;
                continue;
            }
            Some(Preference::Tie) => found.undecided += 1,
            Some(preference) => {
                let first = preference == Preference::First;
                let right = first == (*better == Better::A);
                found.right += usize::from(right);
                found.wrong += usize::from(!right);
            }
        }
        found.pairs += 1;
    }
    Ok((found != Pairs::default()).then_some(found))
}

/// The mode to use: the one that agrees best with people at its best threshold; of equals the cheapest.
pub fn best(modes: &[Trust]) -> Option<(&Trust, Threshold)> {
    let mut best: Option<(&Trust, Threshold)> = None;
    for trust in modes {
        if let Some(threshold) = trust.best_threshold
            && best.is_none_or(|(_, other)| threshold.kappa > other.kappa)
        {
            best = Some((trust, threshold));
        }
    }
    best
}

fn verdict(modes: &[Trust]) -> String {
    let Some((trust, threshold)) = best(modes) else {
        return "the judge gives all texts the same score, or there are no labelled texts of both kinds"
            .to_owned();
    };
    let settings = trust.mode.settings();
    let mut said = format!(
        "use mode = \"{}\", samples = {}, score = \"{}\" and threshold = {}: κ {:.2} against people's labels",
        word(settings.mode),
        settings.samples(),
        word(settings.score),
        threshold.score,
        threshold.kappa
    );
    if let Some(rate) = threshold.false_pass_rate {
        let _ = write!(said, ", {:.0} % of the bad texts pass", rate * 100.0);
    }
    if threshold.kappa < 0.4 {
        said.push_str("; that is too little to trust it alone, use checks or a stronger judge");
    }
    said
}

/// A setting as it stands in a criteria file.
fn word(value: impl Serialize) -> String {
    let value = serde_json::to_value(value).unwrap_or_default();
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(label: bool, score: f64, passed: bool) -> Judged {
        Judged {
            label: Label::Pass(label),
            passed,
            score,
            again: Some(score + 0.1),
            padded: Some(score + 0.05),
        }
    }

    #[test]
    fn agreement_and_the_best_threshold_are_found() {
        // A lenient judge: everything from 0.5 passes, and 0.75 separates good from bad.
        let seen = [
            judged(true, 1.0, true),
            judged(true, 0.8, true),
            judged(false, 0.7, true),
            judged(false, 0.6, true),
            judged(false, 0.2, false),
        ];
        let trust = Trust::of(Mode::Joint, &seen, 1, 100.0);
        let Confusion {
            true_pass,
            false_pass,
            false_fail,
            true_fail,
        } = trust.confusion;
        assert_eq!((true_pass, false_pass, false_fail, true_fail), (2, 2, 0, 1));
        assert!((trust.accuracy - 0.6).abs() < 1e-9);
        assert!((trust.false_pass_rate.unwrap() - 2.0 / 3.0).abs() < 1e-9);
        assert!((trust.repeat_difference.unwrap() - 0.1).abs() < 1e-9);
        assert!((trust.length_bias.unwrap() - 0.05).abs() < 1e-9);
        let best = trust.best_threshold.unwrap();
        assert_eq!(
            (best.score, best.kappa, best.false_pass_rate),
            (0.75, 1.0, Some(0.0))
        );
        let said = verdict(&[trust]);
        assert!(
            said.starts_with(
                "use mode = \"joint\", samples = 1, score = \"verdict\" and threshold = 0.75"
            ),
            "{said}"
        );
    }

    #[test]
    fn a_judge_that_says_the_same_of_all_has_no_threshold() {
        let seen = [judged(true, 0.8, true), judged(false, 0.8, true)];
        let trust = Trust::of(Mode::Joint, &seen, 0, 100.0);
        assert_eq!((trust.kappa, trust.best_threshold), (Some(0.0), None));
        assert!(verdict(&[trust]).starts_with("the judge gives all texts the same score"));
    }
}
