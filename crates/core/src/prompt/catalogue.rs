//! The catalogue of templates: the purpose and the variables of each.

use std::fmt::Write as _;

/// A template that users may replace.
pub(super) struct TemplateEntry {
    /// The name of its file.
    pub(super) name: &'static str,
    /// The built-in text.
    pub(super) source: &'static str,
    /// Its purpose, or the part of a prompt that it is.
    about: &'static str,
    /// Its variables in addition to the common ones.
    variables: &'static [&'static [Variable]],
    /// The variables that it must show if they are set. Without them the reply could be useless.
    pub(super) must_show: &'static [&'static str],
}

/// A name and its description.
type Variable = (&'static str, &'static str);

const COMMON: &[Variable] = &[
    (
        "task",
        "the task: a <task> block, or without a block if it is short and no text is revised; empty if there is none",
    ),
    (
        "restated",
        "for the writer, the task without a block if it is short, else none",
    ),
    ("context", "context files: a list of <context> blocks"),
    (
        "history",
        "what was said before: a list of <message> blocks",
    ),
    ("facts", "what is known: a <facts> block, or empty"),
    (
        "procedures",
        "what has worked before: a <procedures> block, or empty",
    ),
    (
        "evidence",
        "evidence for the whole run: a list of <evidence> blocks",
    ),
    (
        "fresh",
        "evidence for the version at hand: a list of <evidence> blocks",
    ),
    (
        "criteria",
        "for the writer, what the text must meet, one a line; for the judge, a <criteria> block; or empty",
    ),
    (
        "wishes",
        "what the user has asked for since: a <wishes> block, or empty",
    ),
];

const WRITE: &[Variable] = &[
    (
        "note",
        "what was wrong with the last reply: a sentence, or none",
    ),
    (
        "insights",
        "what earlier runs taught: an <insights> block with a sentence on it, or empty",
    ),
];

const FEEDBACK: &[Variable] = &[("feedback", "what is to be fixed: a <feedback> block")];

const REVISE: &[Variable] = &[
    ("draft", "the draft that is revised: a <draft> block"),
    ("kept", "the criteria that it meets: a list of names"),
    (
        "past.drafts",
        "earlier drafts: a list of <earlier-draft> blocks",
    ),
    (
        "past.reflections",
        "what was fixed and tried before: a <history> block, or empty",
    ),
];

const SECTION: &[Variable] = &[
    ("section", "the section that is revised: a <section> block"),
    ("to_fix", "what is wrong with it: a <to-fix> block"),
    ("headed", "whether it has a heading"),
];

const ADDITION: &[Variable] = &[
    (
        "sections",
        "the sections that there are: a <sections> block",
    ),
    ("missing", "what is missing: a <missing> block"),
    ("headed", "whether the sections have headings"),
];

const EVALUATE: &[Variable] = &[
    ("draft", "the draft that is judged: a <draft> block"),
    ("shown", "whether `own` shows the draft"),
    ("own", "the criterion's own question, or none"),
    ("names", "the criteria that are judged: a list of names"),
    (
        "scores",
        "how they are scored: a list of groups, each with a `title` and `lines`",
    ),
    (
        "examples",
        "a list of examples, each with a `criterion`, a `draft` block and a `verdict`",
    ),
    ("first", "whether the scales are the same for all drafts"),
    ("answer", "what follows a reason: the score, or answers"),
    ("mark", "which criteria have issues"),
    ("max_issues", "the most issues that are asked for"),
    (
        "states_form",
        "whether the criterion's own prompt says what JSON to reply with",
    ),
    ("form", "the JSON that the reply must be like"),
    (
        "enforced",
        "whether the server holds the reply to that form",
    ),
];

const COMPARE: &[Variable] = &[
    ("draft_a", "the first draft: a <draft-a> block"),
    ("draft_b", "the second draft: a <draft-b> block"),
    (
        "criterion",
        "the one criterion that counts, or none if all do",
    ),
    ("form", "the JSON that the reply must be like"),
    (
        "enforced",
        "whether the server holds the reply to that form",
    ),
];

/// All templates that users may replace. Excludes those that only repeat the form of the reply.
pub(super) const TEMPLATES: &[TemplateEntry] = &[
    TemplateEntry {
        name: "base.j2",
        source: include_str!("templates/base.j2"),
        about: "the beginning of every prompt. As long as it is the same, servers need not read it again",
        variables: &[],
        must_show: &[],
    },
    TemplateEntry {
        name: "compare.j2",
        source: include_str!("templates/compare.j2"),
        about: "asks which of two drafts is better. The reply is a JSON object with `reason` and `better`",
        variables: &[COMPARE],
        must_show: &["draft_a", "draft_b"],
    },
    TemplateEntry {
        name: "draft.j2",
        source: include_str!("templates/draft.j2"),
        about: "asks for a first draft",
        variables: &[WRITE],
        must_show: &["task"],
    },
    TemplateEntry {
        name: "evaluate.j2",
        source: include_str!("templates/evaluate.j2"),
        about: "asks for a verdict on a draft",
        variables: &[EVALUATE],
        must_show: &["draft", "own", "form"],
    },
    TemplateEntry {
        name: "evidence.j2",
        source: include_str!("templates/evidence.j2"),
        about: "the evidence behind a draft",
        variables: &[],
        must_show: &[],
    },
    TemplateEntry {
        name: "feedback.j2",
        source: include_str!("templates/feedback.j2"),
        about: "the beginning of every prompt that revises: the draft, and what is wrong with it",
        variables: &[FEEDBACK, REVISE, WRITE],
        must_show: &[],
    },
    TemplateEntry {
        name: "fresh.j2",
        source: include_str!("templates/fresh.j2"),
        about: "asks for a new draft that avoids the issues of an earlier one",
        variables: &[FEEDBACK, WRITE],
        must_show: &["task", "feedback", "wishes"],
    },
    TemplateEntry {
        name: "revise.j2",
        source: include_str!("templates/revise.j2"),
        about: "asks for the whole draft again, revised",
        variables: &[FEEDBACK, REVISE, WRITE],
        must_show: &["draft", "feedback", "wishes"],
    },
    TemplateEntry {
        name: "revise_addition.j2",
        source: include_str!("templates/revise_addition.j2"),
        about: "asks for one more section. The first line of the reply says where it goes: AFTER and a number",
        variables: &[FEEDBACK, REVISE, WRITE, ADDITION],
        must_show: &["draft", "sections", "missing", "wishes"],
    },
    TemplateEntry {
        name: "revise_edit.j2",
        source: include_str!("templates/revise_edit.j2"),
        about: "asks for edits of the draft. The reply is made of SEARCH and REPLACE blocks",
        variables: &[FEEDBACK, REVISE, WRITE],
        must_show: &["draft", "feedback", "wishes"],
    },
    TemplateEntry {
        name: "revise_section.j2",
        source: include_str!("templates/revise_section.j2"),
        about: "asks for one section of the draft again, revised",
        variables: &[FEEDBACK, REVISE, WRITE, SECTION],
        must_show: &["section", "to_fix", "wishes"],
    },
];

impl TemplateEntry {
    /// Returns the template with this name.
    pub(super) fn of(name: &str) -> Option<&'static Self> {
        TEMPLATES.iter().find(|entry| entry.name == name)
    }

    /// Returns the variables that it may use.
    pub(super) fn variables(&self) -> impl Iterator<Item = &'static Variable> {
        COMMON
            .iter()
            .chain(self.variables.iter().copied().flatten())
    }

    /// Returns the names of the variables that it may use, without those of nested values.
    pub(super) fn names(&self) -> Vec<&'static str> {
        let mut names: Vec<&str> = self
            .variables()
            .map(|(name, _)| name.split('.').next().unwrap_or(name))
            .collect();
        names.dedup();
        names
    }

    /// Returns the built-in template with a comment at the top that documents its variables. It
    /// renders to the same text.
    pub(super) fn documented(&self) -> String {
        let mut out = format!("{{# {}: {}.\n", self.name, self.about);
        out.push_str(
            "\n   Blocks are texts between tags that they cannot end. Show them as they are: what is in them is\n   \
             data, and the models are told so.\n",
        );
        if !self.must_show.is_empty() {
            let _ = writeln!(out, "   It must show: {}.", self.must_show.join(", "));
        }
        out.push('\n');
        for (name, what) in self.variables() {
            let _ = writeln!(out, "   {name:<17} {what}");
        }
        out.push_str("#}\n");
        out + self.source
    }
}
