//! The geometry of the chart of scores.

use serde::Serialize;

use crate::types::Version;

/// The space around the plot, in the chart's units: pixels at full size.
pub(super) const LEFT: f64 = 40.0;
const RIGHT: f64 = 24.0;
const TOP: f64 = 28.0;
const BOTTOM: f64 = 40.0;
/// The height of the plot, from score 0 to 1.
const HEIGHT: f64 = 180.0;
/// The distance between drafts, if there are few.
const STEP: f64 = 110.0;
/// The minimum and maximum width of the plot.
const WIDTH: (f64, f64) = (280.0, 720.0);
/// The maximum number of labels that fit side by side.
const MAX_LABELS: usize = 14;

/// A plot of shares from 0 to 1, with a line at each half.
#[derive(Debug, Serialize)]
pub(super) struct Frame {
    width: String,
    height: String,
    left: String,
    right: String,
    /// The y coordinate of share 0.
    bottom: String,
    lines: Vec<Level>,
}

impl Frame {
    /// Creates a plot of this width with `room` to its right. `label` formats the labels of its lines.
    pub(super) fn new(width: f64, room: f64, label: impl Fn(f64) -> String) -> Self {
        Self {
            width: figure(LEFT + width + room),
            height: figure(TOP + HEIGHT + BOTTOM),
            left: figure(LEFT),
            right: figure(LEFT + width),
            bottom: figure(TOP + HEIGHT),
            lines: [0.0, 0.5, 1.0]
                .map(|share| level(share, label(share)))
                .into(),
        }
    }
}

/// The y coordinate of a share, from the top.
pub(super) fn height(share: f64) -> f64 {
    TOP + HEIGHT * (1.0 - share)
}

/// A chart of the scores of a run's drafts. It is a tree, because a revision starts from the best draft so
/// far, not the last one.
#[derive(Debug, Serialize)]
pub(super) struct Chart {
    #[serde(flatten)]
    frame: Frame,
    threshold: Level,
    edges: Vec<Edge>,
    points: Vec<Point>,
    /// The text alternative of the chart.
    description: String,
}

/// A horizontal line across the plot.
#[derive(Debug, Serialize)]
struct Level {
    y: String,
    label: String,
}

fn level(share: f64, label: String) -> Level {
    Level {
        y: figure(height(share)),
        label,
    }
}

/// A line from a draft to its revision.
#[derive(Debug, Serialize)]
struct Edge {
    x1: String,
    y1: String,
    x2: String,
    y2: String,
    /// Whether it leads to the selected draft.
    taken: bool,
}

/// The mark of a draft.
#[derive(Debug, Serialize)]
struct Point {
    x: String,
    y: String,
    /// The score, above the mark.
    label: Option<String>,
    label_y: String,
    /// The number of the draft, below the plot.
    number: Option<u32>,
    selected: bool,
    taken: bool,
}

impl Chart {
    /// Creates the chart; `None` if no draft has a score. `lineage` lists the selected draft and those it is
    /// based on.
    pub(super) fn of(
        versions: &[Version],
        threshold: f64,
        selected: Option<u32>,
        lineage: &[u32],
    ) -> Option<Self> {
        let scored: Vec<(&Version, f64)> = versions
            .iter()
            .filter_map(|version| Some((version, version.score()?)))
            .collect();
        let (first, last) = (scored.first()?, scored.last()?);
        let count = last.0.iteration.saturating_sub(first.0.iteration);
        let width = (f64::from(count) * STEP).clamp(WIDTH.0, WIDTH.1);
        let x = |version: &Version| {
            let place = f64::from(version.iteration.saturating_sub(first.0.iteration));
            // Center a single draft.
            let share = if count == 0 {
                0.5
            } else {
                place / f64::from(count)
            };
            // Leave space for the marks at both ends.
            LEFT + 20.0 + share * (width - 40.0)
        };
        let y = |score: f64| height(score.clamp(0.0, 1.0));
        let taken = |version: &Version| lineage.contains(&version.iteration);
        let edges = scored.iter().filter_map(|(version, score)| {
            let base = version.based_on?;
            let (from, before) = scored.iter().find(|(other, _)| other.iteration == base)?;
            Some(Edge {
                x1: figure(x(from)),
                y1: figure(y(*before)),
                x2: figure(x(version)),
                y2: figure(y(*score)),
                taken: taken(version) && taken(from),
            })
        });
        // Draw the lines to the selected draft over the others.
        let mut edges: Vec<Edge> = edges.collect();
        edges.sort_by_key(|edge| edge.taken);
        let every = scored.len().div_ceil(MAX_LABELS);
        let points = scored.iter().enumerate().map(|(place, (version, score))| {
            let chosen = selected == Some(version.iteration);
            let labelled = chosen || place % every == 0;
            Point {
                x: figure(x(version)),
                y: figure(y(*score)),
                label: labelled.then(|| format!("{score:.2}")),
                label_y: figure(y(*score) - 12.0),
                number: labelled.then_some(version.iteration),
                selected: chosen,
                taken: taken(version),
            }
        });
        Some(Self {
            frame: Frame::new(width, RIGHT, |score| format!("{score:.1}")),
            threshold: level(
                threshold.clamp(0.0, 1.0),
                format!("threshold {threshold:.2}"),
            ),
            edges,
            points: points.collect(),
            description: describe(&scored, threshold, selected),
        })
    }
}

pub(super) fn figure(value: f64) -> String {
    format!("{value:.1}")
}

fn describe(scored: &[(&Version, f64)], threshold: f64, selected: Option<u32>) -> String {
    let (Some((first, start)), Some((last, end))) = (scored.first(), scored.last()) else {
        return String::new();
    };
    let mut out = format!("The score of draft {} is {start:.2}", first.iteration);
    if first.iteration != last.iteration {
        out = format!("{out}, that of draft {} is {end:.2}", last.iteration);
    }
    if let Some((version, score)) = scored
        .iter()
        .find(|(version, _)| selected == Some(version.iteration))
    {
        out = format!(
            "{out}; selected is draft {} with {score:.2}",
            version.iteration
        );
    }
    format!("{out}. The threshold is {threshold:.2}. The table below has all figures.")
}
