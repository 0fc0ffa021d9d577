//! What is printed, where, and in which form.

use serde_json::json;

use crate::harness::Test;
use crate::plan::{BOTH, FIRST, SECOND, answering, draft, usual_server, verdict};
use crate::support::server::{Protocol, Reply};

#[test]
fn standard_output_is_the_draft_and_nothing_else() {
    for protocol in BOTH {
        let server = usual_server();
        let ran = draft(&server, protocol)
            .stdout("The second draft.\n")
            .stderr_has("draft 1: score 0.65 · ✗ clear 0.30 · 1 major issue")
            .stderr_has("draft 2: revising draft 1")
            .stderr_has("done: the criteria are met · draft 2 of 2, score 1.00")
            .stderr_has("reflect history show ")
            .run();
        assert_eq!(server.calls(), 4);
        assert_eq!(ran.drafts(), [FIRST, SECOND]);
    }
}

#[test]
fn one_final_newline() {
    for (text, printed) in [
        ("one", "one\n"),
        ("one\n", "one\n"),
        ("one\n\n\n", "one\n"),
        ("  one\n\n  two", "one\n\n  two\n"),
        ("\u{feff}ein Wörtchen 🦀", "\u{feff}ein Wörtchen 🦀\n"),
    ] {
        let server = answering([Reply::text(text), Reply::text(&verdict(5).to_string())]);
        draft(&server, Protocol::OpenAi).stdout(printed).run();
    }
}
