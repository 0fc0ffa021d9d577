use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};

use super::ask::{Asker, Inquiry, Said};
use super::question::{Question, Scale, schema};
use super::verdict::{self, Verdict};
use super::{Case, evidence, expected};
use crate::model::{CallEvent, ChatEvent, Message, ModelError, ResponseSchema};
use crate::prompt::Rubric;
use crate::types::{Criterion, JudgeScore, Status};

/// The most calls at the same time: more only wait in the server's queue.
const CONCURRENT: usize = 8;

/// How often a judge is asked whose server does not give the probabilities that were asked for.
const SAMPLES_INSTEAD: u32 = 3;

/// What a call about one criterion needs of a verdict's tokens at most, and what each further one adds. It
/// bounds a judge that rambles.
const BASE_TOKENS: u32 = 1024;
const TOKENS_PER_CRITERION: u32 = 192;

/// The most tokens that a verdict on so many criteria may take, at first.
pub(super) fn cap(criteria: usize) -> u32 {
    let criteria = u32::try_from(criteria).unwrap_or(u32::MAX);
    BASE_TOKENS.saturating_add(TOKENS_PER_CRITERION.saturating_mul(criteria))
}

/// Which call, and which of its samples.
type Place = (usize, u32);

/// One model, and all that it judges.
pub(super) struct Bench {
    asker: Asker,
    samples: u32,
    score: JudgeScore,
    calls: Vec<Call>,
}

/// Criteria that are judged in one call.
pub(super) struct Call {
    /// Their places among those of the judge.
    pub(super) places: Vec<usize>,
    rubric: Rubric,
    pub(super) questions: Vec<Question>,
    schema: Arc<ResponseSchema>,
    cap: u32,
}

impl Call {
    /// A call on these criteria, each with its place. Those that are not the judge's are passed over.
    pub(super) fn new(criteria: &[(usize, &Criterion)]) -> Self {
        let (places, criteria): (Vec<usize>, Vec<&Criterion>) = criteria.iter().copied().unzip();
        let questions: Vec<Question> = (criteria.iter().copied())
            .filter_map(Question::of)
            .collect();
        let rubric = Rubric::new(&criteria);
        let schema = if rubric.states_form() {
            ResponseSchema::any_object()
        } else {
            ResponseSchema::new("verdict", schema(&questions))
        };
        Self {
            schema: Arc::new(schema),
            cap: cap(criteria.len()),
            places,
            rubric,
            questions,
        }
    }

    fn read(&self, said: &Said, draft: &str) -> Result<Verdict, String> {
        let mut verdict = verdict::read(&said.text, &self.questions)?;
        for ((answer, question), expected) in verdict
            .answers
            .iter_mut()
            .zip(&self.questions)
            .zip(&said.expected)
        {
            if let (Scale::Steps, Some(expected)) = (question.scale, expected) {
                answer.score = *expected;
            }
        }
        verdict.has_probabilities = said.has_probabilities;
        evidence::verify(&mut verdict.issues, draft);
        Ok(verdict)
    }
}

/// What came of asking once.
#[derive(Debug, Clone)]
pub(super) struct Told {
    /// The verdict; or why there is none.
    pub(super) verdict: Result<Verdict, (Status, String)>,
    /// Whether it was remembered.
    pub(super) cached: bool,
}

/// A question could not be asked.
fn unfilled(problem: &str) -> Told {
    let problem = format!("its prompt cannot be filled in: {problem}");
    Told {
        verdict: Err((Status::Failed, problem)),
        cached: false,
    }
}

impl Bench {
    pub(super) fn new(asker: Asker, samples: u32, score: JudgeScore, calls: Vec<Call>) -> Self {
        Self {
            asker,
            samples,
            score,
            calls,
        }
    }

    /// Asks everything that is not known already: one call first, which brings what the calls share into the server's
    /// prompt cache, then the others at the same time. Returns what came of it, for
    /// each call a list of its samples.
    pub(super) async fn judge<'a>(
        &'a self,
        case: &Case<'_>,
    ) -> Result<Vec<(&'a Call, Vec<Told>)>, ModelError> {
        let enforced = self.asker.enforces();
        let messages: Vec<Result<Vec<Message>, String>> = self
            .calls
            .iter()
            .map(|call| (case.prompts).evaluate(case.draft, &call.rubric, enforced))
            .collect();
        let mut told: BTreeMap<Place, Told> = BTreeMap::new();
        let mut samples = self.samples;
        let mut warm = false;
        let rest = loop {
            let mut open = self
                .recall((&messages, enforced), samples, case, &mut told)
                .into_iter();
            // What was remembered may say already that the server gives no probabilities.
            if self.needs_more(samples, &told) {
                samples = SAMPLES_INSTEAD;
                continue;
            }
            if !warm && let Some((place, call, inquiry)) = open.next() {
                told.insert(place, self.ask(call, &inquiry, case).await?);
                warm = true;
                if self.needs_more(samples, &told) {
                    samples = SAMPLES_INSTEAD;
                    continue;
                }
            }
            break open;
        };
        if self.lacks_probabilities(&told) {
            (case.observer)(CallEvent::Chat(&ChatEvent::Notice(format!(
                "{} gives no probabilities: instead of the expected score, the median of {samples} verdicts \
                 counts",
                self.asker.model.id()
            ))));
        }
        let rest: Vec<(Place, Told)> = stream::iter(rest)
            .map(|(place, call, inquiry)| async move {
                Ok::<_, ModelError>((place, self.ask(call, &inquiry, case).await?))
            })
            .buffer_unordered(CONCURRENT)
            .try_collect()
            .await?;
        told.extend(rest);
        let mut by_call: Vec<(&Call, Vec<Told>)> =
            self.calls.iter().map(|call| (call, Vec::new())).collect();
        // In the order of the samples, whichever came first.
        for ((number, _), told) in told {
            by_call[number].1.push(told);
        }
        Ok(by_call)
    }

    /// Asks once more than [`Bench::judge`] does, each call in its order.
    pub(super) async fn again(&self, case: &Case<'_>) -> Result<Vec<Told>, ModelError> {
        let enforced = self.asker.enforces();
        let mut all = Vec::with_capacity(self.calls.len());
        for call in &self.calls {
            let messages = case.prompts.evaluate(case.draft, &call.rubric, enforced);
            all.push(match messages {
                Ok(messages) => {
                    let messages = (messages.as_slice(), enforced);
                    let inquiry = self.inquiry(call, messages, self.samples, self.samples + 1);
                    match self
                        .asker
                        .recall(&inquiry, |said| call.read(said, case.draft))
                    {
                        Some(verdict) => Told {
                            verdict: Ok(verdict),
                            cached: true,
                        },
                        None => self.ask(call, &inquiry, case).await?,
                    }
                }
                Err(problem) => unfilled(&problem),
            });
        }
        Ok(all)
    }

    /// Looks up what is remembered, and puts it to what is told. Returns what is still to be asked, with what it
    /// is asked by, sample by sample.
    fn recall<'a>(
        &'a self,
        (messages, enforced): (&[Result<Vec<Message>, String>], bool),
        samples: u32,
        case: &Case<'_>,
        told: &mut BTreeMap<Place, Told>,
    ) -> Vec<(Place, &'a Call, Inquiry)> {
        let mut open = Vec::new();
        for sample in 0..samples {
            for (number, (call, messages)) in self.calls.iter().zip(messages).enumerate() {
                let place = (number, sample);
                if told.contains_key(&place) {
                    continue;
                }
                let messages = match messages {
                    Ok(messages) => messages,
                    Err(problem) => {
                        told.insert(place, unfilled(problem));
                        continue;
                    }
                };
                let inquiry = self.inquiry(call, (messages, enforced), sample, samples);
                let read = |said: &Said| call.read(said, case.draft);
                match self.asker.recall(&inquiry, read) {
                    Some(verdict) => {
                        let verdict = Ok(verdict);
                        let cached = true;
                        told.insert(place, Told { verdict, cached });
                    }
                    None => open.push((place, call, inquiry)),
                }
            }
        }
        open
    }

    /// Whether more samples are to be taken than these, since the server gives no probabilities.
    fn needs_more(&self, samples: u32, told: &BTreeMap<Place, Told>) -> bool {
        samples < SAMPLES_INSTEAD && self.lacks_probabilities(told)
    }

    /// Whether expected scores are wanted, and the server does not give what they are made of.
    fn lacks_probabilities(&self, told: &BTreeMap<Place, Told>) -> bool {
        self.score == JudgeScore::Expected
            && self.has_steps()
            && told
                .values()
                .any(|told| matches!(&told.verdict, Ok(verdict) if !verdict.has_probabilities))
    }

    /// Whether any score is a step of the scale: only these have an expected score.
    fn has_steps(&self) -> bool {
        let mut questions = self.calls.iter().flat_map(|call| &call.questions);
        questions.any(|question| question.scale == Scale::Steps)
    }

    fn inquiry(
        &self,
        call: &Call,
        (messages, enforced): (&[Message], bool),
        sample: u32,
        samples: u32,
    ) -> Inquiry {
        Inquiry {
            messages: messages.to_vec(),
            schema: Arc::clone(&call.schema),
            enforced,
            cap: call.cap,
            alternatives: (self.score == JudgeScore::Expected && self.has_steps())
                .then_some(expected::ALTERNATIVES),
            names: call.questions.iter().map(|q| q.name.clone()).collect(),
            sample,
            sampled: samples > 1,
        }
    }

    async fn ask(
        &self,
        call: &Call,
        inquiry: &Inquiry,
        case: &Case<'_>,
    ) -> Result<Told, ModelError> {
        let read = |said: &Said| call.read(said, case.draft);
        let verdict = self
            .asker
            .ask(inquiry, case.attempt, read, case.observer)
            .await?;
        Ok(Told {
            verdict: verdict.map_err(|problem| (Status::Unparsed, problem)),
            cached: false,
        })
    }
}
