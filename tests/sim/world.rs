//! Worlds with known truth: the true quality of each draft, and the behaviour of a writer.

use std::fmt::Write as _;

use fastrand::Rng;

/// The task of every run.
pub const TASK: &str = "Write the report on the quarter for the board, in eight parts.";
/// The marker of a flawed part.
const FLAW: &str = "FLAW";
/// The parts of a draft in the process world.
pub const PARTS: usize = 8;
/// The maximum number of issues that the judge names.
const MAX_ISSUES: usize = 8;
/// The score from which the judge names no issue.
const PERFECT: f64 = 0.995;

const WORDS: &str = "account action amount answer area autumn balance bank basis board bridge budget building \
    capital carrier centre change charge circle claim client coast colour company contract corner cost course \
    credit crew custom date debt delay demand design detail district draft driver effect effort engine estate \
    estimate event exchange factor farm field figure fleet floor force forest freight garden glass goods grain \
    ground group growth harbour harvest height history holiday house income industry insurance island issue item \
    journey labour lease ledger lesson letter level library licence limit line loan machine margin market measure \
    member merchant metal method mill minute model month morning motor network notice number object offer office \
    order output owner paper parcel partner payment people period permit picture plan plant point policy port \
    position power present price product profit project promise property quarter question railway reason record \
    region rent report reserve result return review river road route rule salary sample school season section \
    service share ship shop signal site source spring staff stage standard station steel stock storage street \
    summer supply surface survey system table target tariff tenant terminal theme timber total tower town trade \
    train transport travel trial tunnel union unit user valley value vehicle village visit volume voyage wages \
    warehouse water weather week weight wheel window winter wood worker workshop yard year";

/// The quality of drafts, and how they are produced.
#[derive(Debug, Clone)]
pub enum World {
    /// The score of each draft by number; the last one repeats.
    Curve(Vec<f64>),
    /// Recorded texts with their scores.
    Recorded(Vec<(String, f64)>),
    /// Drafts with flaws. A revision fixes and breaks parts.
    Process(Process),
}

/// A writer that fixes and breaks parts of a draft.
#[derive(Debug, Clone, Copy)]
#[expect(
    clippy::struct_field_names,
    reason = "they are probabilities, named as in the tables"
)]
pub struct Process {
    /// The probability that a part of a first draft is flawed.
    pub p_bad: f64,
    /// The probability that a revision fixes a flaw named in the feedback. For other flaws: 0.3 of that.
    pub p_fix: f64,
    /// The probability that a rewrite breaks a good part. For edits: a fifth of that.
    pub p_break: f64,
    /// The probability that a reply is a refusal.
    pub p_refuse: f64,
}

/// The judge.
#[derive(Debug, Clone, Copy, Default)]
pub struct Noise {
    /// The standard deviation of a score.
    pub sigma: f64,
    /// The bias added to every score.
    pub bias: f64,
    /// Whether every draft gets the same issue instead of its own.
    pub same_issue: bool,
}

/// Returns a text of about this many words.
fn filler(rng: &mut Rng, words: usize) -> String {
    let all: Vec<&str> = WORDS.split_whitespace().collect();
    let mut text = String::new();
    let mut left = i64::try_from(words).unwrap_or(0);
    while left > 0 {
        let count = rng.usize(7..=14);
        for number in 0..count {
            let word = all[rng.usize(..all.len())];
            if number == 0 {
                let (first, rest) = word.split_at(1);
                let _ = write!(text, "{}{rest}", first.to_uppercase());
            } else {
                let _ = write!(text, " {word}");
            }
        }
        text.push_str(". ");
        left -= i64::try_from(count).unwrap_or(1) - 1;
    }
    text.trim_end().to_owned()
}

pub fn gauss(rng: &mut Rng) -> f64 {
    let (one, two) = (1.0 - rng.f64(), rng.f64());
    (-2.0 * one.ln()).sqrt() * (std::f64::consts::TAU * two).cos()
}

pub fn clip(score: f64) -> f64 {
    score.clamp(0.0, 1.0)
}

/// Returns the last text between these tags, with any number in them.
pub fn between<'p>(prompt: &'p str, tag: &str) -> Option<&'p str> {
    let start = prompt.rfind(&format!("<{tag}"))?;
    let inside = prompt[start..].split_once(">\n")?.1;
    Some(inside.split_once(&format!("\n</{tag}"))?.0)
}

fn flawed(part: &str) -> bool {
    part.contains(FLAW)
}

fn part(number: usize, bad: bool, rng: &mut Rng) -> String {
    let body = filler(rng, 12);
    if bad {
        format!("Part {number}: {FLAW} {number} {body}")
    } else {
        format!("Part {number}: {body}")
    }
}

impl World {
    /// Returns the true quality of a text, 0 to 1.
    pub fn truth(&self, text: &str) -> f64 {
        match self {
            Self::Curve(scores) => {
                let number = text.split_once("Draft D").and_then(|(_, rest)| {
                    let digits = rest.split_once('Q')?.0;
                    digits.parse::<usize>().ok()
                });
                number.map_or(0.0, |number| scores[number.min(scores.len() - 1)])
            }
            Self::Recorded(drafts) => {
                let text = text.trim();
                let same = drafts.iter().find(|(draft, _)| draft.trim() == text);
                let part = || {
                    let is_part = |draft: &str| text.contains(draft) || draft.contains(text);
                    drafts.iter().find(|(draft, _)| is_part(draft.trim()))
                };
                let found = same.or_else(|| part().filter(|_| !text.is_empty()));
                found.map_or(0.0, |(_, score)| *score)
            }
            Self::Process(_) => {
                let parts = text
                    .lines()
                    .filter(|line| line.starts_with("Part "))
                    .count();
                let sound = parts.min(PARTS) as f64 - text.matches(FLAW).count() as f64;
                clip(sound / PARTS as f64)
            }
        }
    }

    /// Returns the reply number `number`, from 0, to a request for a text.
    pub fn write(&self, prompt: &str, number: usize, rng: &mut Rng) -> String {
        match self {
            Self::Curve(_) => {
                format!("Draft D{number}Q of the report. {}", filler(rng, 90))
            }
            Self::Recorded(drafts) => drafts[number.min(drafts.len() - 1)].0.clone(),
            Self::Process(process) => process.write(prompt, rng),
        }
    }

    /// Returns the issues of a text with this judged score.
    pub fn issues(
        &self,
        text: &str,
        score: f64,
        noise: Noise,
        rng: &mut Rng,
    ) -> Vec<(String, String)> {
        match self {
            Self::Process(_) => text
                .lines()
                .filter(|line| flawed(line))
                .take(MAX_ISSUES)
                .map(|line| {
                    let name = line.split_once(':').map_or("", |(name, _)| name);
                    let number = name.trim_start_matches("Part ");
                    let quote: Vec<&str> = line.split(' ').take(5).collect();
                    (
                        format!("There is a flaw in part {number}."),
                        quote.join(" "),
                    )
                })
                .collect(),
            _ if score >= PERFECT => Vec::new(),
            _ if noise.same_issue => {
                vec![("The text is not positive enough.".to_owned(), String::new())]
            }
            _ => vec![(format!("A weakness: {}", filler(rng, 8)), String::new())],
        }
    }
}

impl Process {
    fn write(self, prompt: &str, rng: &mut Rng) -> String {
        if rng.f64() < self.p_refuse {
            return "I'm sorry, but I need more information to do that.".to_owned();
        }
        let base = between(prompt, "draft");
        let Some(base) = base.filter(|_| !prompt.contains("names the faults of an earlier text"))
        else {
            let parts = (0..PARTS).map(|number| {
                let bad = rng.f64() < self.p_bad;
                part(number, bad, rng)
            });
            return parts.collect::<Vec<_>>().join("\n\n");
        };
        let feedback = prompt.rsplit("<feedback>").next().unwrap_or_default();
        let parts: Vec<&str> = base.split("\n\n").collect();
        let new: Vec<String> = (0..)
            .zip(&parts)
            .map(|(number, old)| {
                let bad = if flawed(old) {
                    let named = feedback.contains(&format!("flaw in part {number}."));
                    rng.f64() >= self.p_fix * if named { 1.0 } else { 0.3 }
                } else {
                    rng.f64() < self.p_break
                };
                if bad == flawed(old) {
                    (*old).to_owned()
                } else {
                    part(number, bad, rng)
                }
            })
            .collect();
        let asks_for_edits = prompt
            .rsplit("</feedback>")
            .next()
            .is_some_and(|end| end.contains("<<<<<<< SEARCH"));
        if !asks_for_edits {
            return new.join("\n\n");
        }
        let block = |old: &str, new: &str| {
            format!("<<<<<<< SEARCH\n{old}\n=======\n{new}\n>>>>>>> REPLACE")
        };
        let mut blocks = Vec::new();
        for (old, new) in parts.iter().zip(&new) {
            if old != new && (flawed(old) || rng.f64() < 0.2) {
                blocks.push(block(old, new));
            }
        }
        if blocks.is_empty() {
            blocks.push(block(parts[0], &format!("{} Indeed.", parts[0])));
        }
        blocks.join("\n\n")
    }
}

/// The shapes of score curves.
pub const SHAPES: [&str; 7] = [
    "improving",
    "diminishing",
    "plateau",
    "oscillating",
    "regress",
    "late",
    "random",
];
const CURVE: usize = 12;

/// Returns a score curve of a shape.
pub fn curve(shape: &str, rng: &mut Rng) -> Vec<f64> {
    let between = |rng: &mut Rng, low: f64, high: f64| low + (high - low) * rng.f64();
    let first = between(rng, 0.35, 0.7);
    let numbers = (0..CURVE).map(|k| k as f64);
    match shape {
        "improving" => {
            let (step, cap) = (between(rng, 0.04, 0.15), between(rng, 0.86, 1.0));
            numbers.map(|k| clip(cap.min(first + step * k))).collect()
        }
        "diminishing" => {
            let (rise, slow) = (between(rng, 0.1, 0.5), between(rng, 0.7, 3.0));
            numbers
                .map(|k| clip(first + rise * (1.0 - (-k / slow).exp())))
                .collect()
        }
        "plateau" => {
            let steps = if rng.bool() { 1.0 } else { 2.0 };
            let level = between(rng, first, 0.83_f64.min(first + 0.3));
            numbers
                .map(|k| clip(first + (level - first) * k.min(steps) / steps))
                .collect()
        }
        "oscillating" => {
            let (swing, middle) = (between(rng, 0.06, 0.2), between(rng, 0.5, 0.75));
            let sign = |k: f64| if k % 2.0 == 0.0 { -1.0 } else { 1.0 };
            numbers
                .map(|k| clip(middle + swing * sign(k) + 0.02 * gauss(rng)))
                .collect()
        }
        "regress" => {
            let (step, first) = (between(rng, 0.02, 0.12), between(rng, 0.6, 0.84));
            numbers.map(|k| clip(first - step * k)).collect()
        }
        "late" => {
            let (wait, jump) = (rng.u8(2..=4), between(rng, 0.15, 0.4));
            let after = |k: f64| if k >= f64::from(wait) { jump } else { 0.0 };
            numbers
                .map(|k| clip(first + 0.01 * gauss(rng) + after(k)))
                .collect()
        }
        _ => {
            let middle = between(rng, 0.55, 0.75);
            numbers.map(|_| clip(middle + 0.1 * gauss(rng))).collect()
        }
    }
}
