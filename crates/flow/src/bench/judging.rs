//! How far a judge can be trusted: its verdicts compared with people's labels.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Instant;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use tokio::sync::mpsc;

use super::arm::{ArmFailure, judge};
use super::meter::Meter;
use super::stats::{count, kappa, mean, spearman};
use crate::batch::{Adjustment, Entry, Item, Means, Remote, RemoteTask, Row, Status};
use crate::engine::Loop;
use crate::evaluate::Preference;
use crate::source::hex;
use crate::types::{ExitCode, JudgeMode, JudgeScore, JudgeSettings, SCHEMA_VERSION, Task};

/// Text without content, appended to a text to see whether length alone changes its score.
const PADDING: &str = "\n\nIn conclusion, it is worth noting that the above covers the matter. As described, all of \
                       this should be kept in mind, and the points made before remain the points that matter.";

/// The lowest numeric label of a good text.
const GOOD: f64 = 0.5;

/// A text with a label, or two texts of which one is better.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Labelled {
    /// A text with a label: good enough or not, or how good from 0 to 1.
    Text {
        /// The prompt that the text answers.
        #[serde(default)]
        prompt: String,
        /// The text.
        text: String,
        /// People's label.
        label: Label,
    },
    /// Two texts, of which one is better.
    Pair {
        /// The prompt that both answer.
        #[serde(default)]
        prompt: String,
        /// The first text.
        a: String,
        /// The second text.
        b: String,
        /// Which one is better.
        better: Better,
    },
}

/// People's label of a text.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// The first.
    A,
    /// The second.
    B,
}

/// A way of asking the judge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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

    /// The `[judge]` settings of this mode.
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

impl FromStr for Mode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|mode| mode.as_str() == text);
        found.ok_or_else(|| "known modes: joint, expected, separate, three-samples".to_owned())
    }
}

/// The verdicts on a text in one mode: two on the text itself, one on the padded text.
const VERDICTS: u32 = 3;

/// Verdicts on one text in one mode: two on the text itself, and one on the padded text.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Judged {
    label: Label,
    passed: bool,
    score: f64,
    again: Option<f64>,
    padded: Option<f64>,
}

/// What the row of a trial says in addition to a row of a batch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Which of the labelled lines, from 1.
    number: usize,
    /// The judge's answer.
    #[serde(flatten)]
    answer: Answer,
    /// Identifies the labelled line, the criteria, the judge and the settings: rows with another one are not comparable.
    setup: String,
}

/// The judge's answer in one trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "trial", rename_all = "snake_case")]
enum Answer {
    Text {
        mode: Mode,
        /// Whether the text passes, and its score; `None` without a readable verdict.
        passed: Option<bool>,
        judged: Option<f64>,
        /// The score of a second verdict on the same text.
        again: Option<f64>,
        /// The score of the padded text.
        padded: Option<f64>,
        cost_tokens: u64,
    },
    Pair {
        choice: Choice,
    },
}

/// The judge's choice between two texts, compared with people's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Choice {
    Right,
    Wrong,
    Undecided,
    Unreadable,
}

impl Measured {
    /// Reads a row; `None` if another command wrote it.
    pub fn of(row: &Row) -> Option<Self> {
        serde_json::from_value(Value::Object(row.extra.clone())).ok()
    }

    fn key(&self) -> Key {
        let mode = match &self.answer {
            Answer::Text { mode, .. } => Some(*mode),
            Answer::Pair { .. } => None,
        };
        Key {
            number: self.number,
            mode,
        }
    }
}

/// One trial: a labelled line and, for a text, a mode. As text it is the id of its row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Key {
    number: usize,
    mode: Option<Mode>,
}

impl Key {
    fn id(self) -> String {
        let mode = self.mode.map_or("pair", Mode::as_str);
        format!("{}/{mode}", self.number)
    }

    fn parse(id: &str) -> Option<Self> {
        let (number, mode) = id.split_once('/')?;
        let mode = match mode {
            "pair" => None,
            mode => Some(mode.parse().ok()?),
        };
        Some(Self {
            number: number.parse().ok()?,
            mode,
        })
    }
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

/// A measurement of a judge: gives the trials of a batch, and runs them.
pub struct JudgeBench {
    plan: Arc<Loop>,
    labelled: Vec<Labelled>,
    modes: Vec<Mode>,
}

impl JudgeBench {
    /// Prepares trials of this loop's judge: each text in each mode, and each pair.
    pub fn new(plan: Arc<Loop>, labelled: Vec<Labelled>, modes: Vec<Mode>) -> Self {
        Self {
            plan,
            labelled,
            modes,
        }
    }

    /// The trials that are still to run, as a batch takes them: all that have no row in `before`.
    ///
    /// # Errors
    /// If a row was measured with another labelled line, judge, criteria or settings: its id.
    pub fn entries(
        &self,
        before: &[Measured],
    ) -> Result<mpsc::Receiver<io::Result<Entry>>, String> {
        let mut done = BTreeSet::new();
        for measured in before {
            let id = measured.key().id();
            if self.setup(measured.number) != Some(measured.setup.clone()) {
                return Err(id);
            }
            done.insert(id);
        }
        let keys = self.keys().filter(|key| !done.contains(&key.id()));
        let keys: Vec<Key> = keys.collect();
        let (sender, receiver) = mpsc::channel(keys.len().max(1));
        for key in keys {
            // The channel has room for all entries, and the receiver is alive.
            let _ = sender.try_send(Ok(Entry {
                line: key.number as u64,
                id: Some(key.id()),
                task: Ok(Item {
                    task: Task::default(),
                    criteria: None,
                }),
                bytes: 0,
            }));
        }
        Ok(receiver)
    }

    fn keys(&self) -> impl Iterator<Item = Key> {
        let numbered = self.labelled.iter().zip(1..);
        numbered.flat_map(|(labelled, number)| {
            match labelled {
                Labelled::Text { .. } => self.modes.iter().copied().map(Some).collect(),
                Labelled::Pair { .. } => vec![None],
            }
            .into_iter()
            .map(move |mode| Key { number, mode })
        })
    }

    fn labelled(&self, number: usize) -> Option<&Labelled> {
        self.labelled.get(number.checked_sub(1)?)
    }

    fn setup(&self, number: usize) -> Option<String> {
        let labelled = serde_json::to_string(self.labelled(number)?).unwrap_or_default();
        let all = format!("{labelled} {}", self.plan.fingerprint());
        Some(hex(&Sha256::digest(all)[..8]))
    }

    async fn measure(&self, key: Key) -> Result<Answer, ArmFailure> {
        match (self.labelled(key.number), key.mode) {
            (Some(Labelled::Text { prompt, text, .. }), Some(mode)) => {
                self.judge(prompt, text, mode).await
            }
            (
                Some(Labelled::Pair {
                    prompt,
                    a,
                    b,
                    better,
                }),
                None,
            ) => {
                let chosen = self.plan.prefer(&Task::new(prompt), a, b).await;
                let chosen = chosen.map_err(|error| ArmFailure(ExitCode::Provider, error))?;
                let choice = match (chosen, better) {
                    (None, _) => Choice::Unreadable,
                    (Some(Preference::Tie), _) => Choice::Undecided,
                    (Some(Preference::First), Better::A)
                    | (Some(Preference::Second), Better::B) => Choice::Right,
                    (Some(_), _) => Choice::Wrong,
                };
                Ok(Answer::Pair { choice })
            }
            _ => Err(ArmFailure(
                ExitCode::Usage,
                format!("there is no trial `{}`", key.id()),
            )),
        }
    }

    async fn judge(&self, prompt: &str, text: &str, mode: Mode) -> Result<Answer, ArmFailure> {
        let mut criteria = self.plan.criteria().clone();
        criteria.judge_settings = JudgeSettings {
            cache: Some(false),
            ..mode.settings()
        };
        let plan = self.plan.with_criteria(criteria);
        let task = Task::new(prompt);
        let padded = format!("{}{PADDING}", text.trim_end());
        let mut meter = Meter::new();
        let mut seen = Vec::new();
        // The second verdict has another seed, so that it is a sample of its own.
        for (seed, text) in [(1, text), (2, text), (1, &*padded)] {
            let critique = plan.with_seed(seed).critique();
            let critique =
                critique.map_err(|error| ArmFailure(ExitCode::Usage, error.to_string()))?;
            let evaluation = judge(&critique, &task, text, &mut meter).await?;
            let passed = evaluation.satisfactory;
            seen.push(evaluation.rank().map(|rank| (passed, rank.score)));
        }
        let score = |verdict: Option<(bool, f64)>| verdict.map(|(_, score)| score);
        Ok(Answer::Text {
            mode,
            passed: seen[0].map(|(passed, _)| passed),
            judged: score(seen[0]),
            again: score(seen[1]),
            padded: score(seen[2]),
            cost_tokens: meter.tokens,
        })
    }

    /// Adds up the trials.
    pub fn report(&self, measured: &[Measured]) -> Report {
        let has_texts = (self.labelled.iter()).any(|it| matches!(it, Labelled::Text { .. }));
        let modes = self.modes.iter().filter(|_| has_texts);
        let modes: Vec<Trust> = modes.map(|mode| self.trust(*mode, measured)).collect();
        let choices = measured.iter().filter_map(|it| match it.answer {
            Answer::Pair { choice } => Some(choice),
            Answer::Text { .. } => None,
        });
        let mut pairs = Pairs::default();
        for choice in choices {
            match choice {
                Choice::Right => pairs.right += 1,
                Choice::Wrong => pairs.wrong += 1,
                Choice::Undecided => pairs.undecided += 1,
                Choice::Unreadable => pairs.unreadable += 1,
            }
            pairs.pairs += usize::from(choice != Choice::Unreadable);
        }
        Report {
            schema_version: SCHEMA_VERSION,
            verdict: verdict(&modes),
            modes,
            pairs: (pairs != Pairs::default()).then_some(pairs),
        }
    }

    fn trust(&self, wanted: Mode, measured: &[Measured]) -> Trust {
        let (mut read, mut unreadable, mut calls, mut tokens) = (Vec::new(), 0, 0, 0);
        for it in measured {
            let (
                Answer::Text {
                    mode,
                    passed,
                    judged,
                    again,
                    padded,
                    cost_tokens,
                },
                Some(Labelled::Text { label, .. }),
            ) = (&it.answer, self.labelled(it.number))
            else {
                continue;
            };
            if *mode != wanted {
                continue;
            }
            calls += VERDICTS;
            tokens += cost_tokens;
            match passed.zip(*judged) {
                None => unreadable += 1,
                Some((passed, score)) => read.push(Judged {
                    label: *label,
                    passed,
                    score,
                    again: *again,
                    padded: *padded,
                }),
            }
        }
        let tokens = u32::try_from(tokens).map_or(f64::from(u32::MAX), f64::from);
        Trust::of(wanted, &read, unreadable, tokens / f64::from(calls.max(1)))
    }
}

impl Remote for JudgeBench {
    fn task(&self, line: u64, id: String, _: Item) -> Result<Box<dyn RemoteTask + '_>, String> {
        let key = Key::parse(&id).ok_or_else(|| format!("`{id}` names no trial"))?;
        Ok(Box::new(Trial {
            bench: self,
            line,
            key,
        }))
    }
}

struct Trial<'a> {
    bench: &'a JudgeBench,
    line: u64,
    key: Key,
}

#[async_trait::async_trait(?Send)]
impl RemoteTask for Trial<'_> {
    fn means(&self) -> Means {
        Means::default()
    }

    async fn attempt(&mut self, _: Option<Adjustment>) -> Option<Row> {
        let begun = Instant::now();
        let answer = self.bench.measure(self.key).await;
        let mut row = Row::invalid(self.line, Some(self.key.id()), String::new());
        (row.attempts, row.error_category) = (1, None);
        row.execution_time = Some(begun.elapsed().as_secs_f64());
        match answer {
            Ok(answer) => {
                row.exit_code = ExitCode::Success;
                row.error = None;
                row.extra = extra(&Measured {
                    number: self.key.number,
                    answer,
                    setup: self.bench.setup(self.key.number).unwrap_or_default(),
                });
            }
            Err(ArmFailure(code, error)) => (row.exit_code, row.error) = (code, Some(error)),
        }
        row.status = Status::of(row.exit_code);
        Some(row)
    }
}

fn extra(measured: &Measured) -> Map<String, Value> {
    match serde_json::to_value(measured) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    }
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
    let (read, unreadable) = modes.iter().fold((0, 0), |(read, unreadable), trust| {
        (read + trust.texts, unreadable + trust.unreadable)
    });
    if unreadable > read {
        return format!(
            "{unreadable} of {} verdicts are unreadable: this model cannot judge these criteria; use checks or \
             another judge",
            read + unreadable
        );
    }
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
    fn the_id_of_a_row_names_its_trial() {
        for mode in [Some(Mode::ThreeSamples), None] {
            let key = Key { number: 12, mode };
            assert_eq!(Key::parse(&key.id()), Some(key));
        }
        assert_eq!(Key::parse("12/other"), None);
    }

    #[test]
    fn a_judge_that_says_the_same_of_all_has_no_threshold() {
        let seen = [judged(true, 0.8, true), judged(false, 0.8, true)];
        let trust = Trust::of(Mode::Joint, &seen, 0, 100.0);
        assert_eq!((trust.kappa, trust.best_threshold), (Some(0.0), None));
        assert!(verdict(&[trust]).starts_with("the judge gives all texts the same score"));
        let unreadable = Trust::of(Mode::Joint, &seen, 3, 100.0);
        let advice = verdict(&[unreadable]);
        assert!(
            advice.starts_with("3 of 5 verdicts are unreadable"),
            "{advice}"
        );
    }
}
