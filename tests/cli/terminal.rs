//! A user at a terminal: progress, the menu and its keys, Ctrl-C, terminal sizes.

use std::time::Duration;

use serde_json::Value;

use crate::harness::pty::{AtTerminal, CTRL_C};
use crate::harness::{Ran, Test};
use crate::plan::{CRITERIA, answering, draft, usual_server, verdict};
use crate::support::server::Protocol;

const FIRST: &str = "The pond is old.\nA frog jumps in.\n漢字 and 🐸 make ripples.";
const SECOND: &str = "The old pond:\na frog jumps in,\nand 漢字 and 🐸 make ripples.";

/// An up arrow, as terminals send it.
const UP: &str = "\u{1b}[A";
const ESCAPE: &str = "\u{1b}";

/// A scripted reply: its purpose, text and delay.
fn reply(purpose: &str, text: &str, delay_ms: u32) -> String {
    let text = Value::from(text);
    format!("[[reply]]\npurpose = '{purpose}'\ntext = {text}\ndelay_ms = {delay_ms}\n")
}

/// A draft that fails, then one that passes.
fn usual(delay_ms: u32) -> String {
    [
        reply("write", FIRST, delay_ms),
        reply("judge", &verdict(2).to_string(), delay_ms),
        reply("write", SECOND, delay_ms),
        reply("judge", &verdict(5).to_string(), delay_ms),
    ]
    .concat()
}

/// Runs `reflect draft` with this script.
fn scripted(script: &str) -> Test {
    Test::new()
        .file("criteria.toml", CRITERIA)
        .file("script.toml", script)
        .args(["draft", "Write about a pond.", "-c", "criteria.toml"])
        .args(["--provider", "scripted:script.toml"])
        .args(["--strategy", "full_rewrite"])
}

/// The usual run with the menu.
fn asked() -> Test {
    scripted(&usual(0)).arg("-i")
}

fn reason(ran: &Ran) -> String {
    let history = ran.history();
    history["convergence_reason"]
        .as_str()
        .expect("a reason")
        .to_owned()
}

/// Compares the screen with a snapshot.
fn snapshot(name: &str, terminal: &AtTerminal) {
    insta::assert_snapshot!(name, terminal.plain_screen());
}

#[test]
fn accept_takes_a_draft_with_any_score() {
    let terminal = asked().at_terminal_piped(24, 80);
    terminal.until_menu("draft 1 · score").press("a");
    let ran = terminal.finish();
    assert_eq!(ran.stdout, format!("{FIRST}\n"));
    assert_eq!(reason(&ran), "user_accepted");
}

#[test]
fn enter_continues_until_the_criteria_are_met_and_then_accepts() {
    let terminal = asked().at_terminal_piped(24, 80);
    terminal
        .until_menu("draft 1")
        .until("[c]ontinue (Enter)")
        .press("\r");
    terminal.until_menu("draft 2 · score 1.00 · the best so far");
    terminal.until("[a]ccept (Enter)").press("\r");
    let ran = terminal.finish();
    assert_eq!(ran.stdout, format!("{SECOND}\n"));
    assert_eq!(reason(&ran), "user_accepted");
}

#[test]
fn quit_ends_the_run_with_the_best_draft() {
    for key in ["q", "Q", "\u{4}"] {
        let terminal = asked().code(3).at_terminal_piped(24, 80);
        terminal.until_menu("draft 1").press(key);
        let ran = terminal.finish();
        assert_eq!(ran.stdout, format!("{FIRST}\n"));
        assert_eq!(reason(&ran), "user_quit");
    }
}

#[test]
fn the_menu_returns_after_a_rejected_revision() {
    for score in [5, 2] {
        let script = [
            reply("write", FIRST, 0),
            reply("judge", &verdict(score).to_string(), 0),
            reply("write", "I'm sorry, but I cannot help with that.", 0),
        ];
        let terminal = scripted(&script.concat())
            .arg("-i")
            .at_terminal_piped(24, 80);
        terminal.until_menu("draft 1 · score").press("c");
        terminal.until_menu("revision 2 was rejected").press("a");
        let ran = terminal.finish();
        assert_eq!(ran.stdout, format!("{FIRST}\n"));
        assert_eq!(reason(&ran), "user_accepted");
    }
}

#[test]
fn an_instruction_reaches_the_reviser() {
    let told = "contains = 'Shorter, with 漢字.'\n";
    let script = usual(0).replacen("[[reply]]\npurpose = 'write'", "[[first]]", 1);
    let script = script.replacen(
        "[[reply]]\npurpose = 'write'\n",
        &format!("[[reply]]\npurpose = 'write'\n{told}"),
        1,
    );
    let script = script.replacen("[[first]]", "[[reply]]\npurpose = 'write'", 1);
    let terminal = scripted(&script).arg("-i").at_terminal_piped(24, 30);
    terminal.until_menu("draft 1").press("g");
    terminal
        .until("instruction:")
        .press("Shorter, witt\u{7f}h 漢字 in it");
    terminal.until("in it").press("\u{17}\u{17}\u{7f}.");
    terminal.until("漢字.").press("\r");
    terminal
        .until("instruction: Shorter, with")
        .until_menu("draft 2")
        .press("a");
    assert_eq!(terminal.finish().stdout, format!("{SECOND}\n"));
}

#[test]
fn an_instruction_can_be_cancelled() {
    let terminal = asked().code(3).at_terminal(24, 80);
    for keys in [ESCAPE, "\r", "\u{4}"] {
        terminal.until_menu("draft 1").press("g");
        terminal.until("instruction:").press(keys);
        terminal.until_screen("no instruction", |screen| !screen.contains("instruction"));
    }
    terminal.until_menu("draft 1").press("q");
    terminal.finish();
}

const EDITOR: &str = "printf '%s\\n' 'My own text.' > \"$1\"\n";

#[test]
fn an_edited_draft_is_a_version_like_any_other() {
    let script = [
        reply("write", FIRST, 0),
        reply("judge", &verdict(2).to_string(), 0),
        reply("judge", &verdict(4).to_string(), 0),
    ];
    let terminal = scripted(&script.concat())
        .arg("-i")
        .file("editor.sh", EDITOR)
        .env("VISUAL", "sh editor.sh")
        .at_terminal_piped(24, 80);
    terminal.until_menu("draft 1").press("e");
    terminal
        .until("  My own text.")
        .until_menu("draft 2")
        .press("a");
    let ran = terminal.finish();
    assert_eq!(ran.stdout, "My own text.\n");
    assert_eq!(ran.drafts(), [FIRST, "My own text."]);
    assert_eq!(ran.history()["history"]["versions"][1]["based_on"], 1);
}

#[test]
fn the_menu_returns_after_an_editor_that_changes_nothing_or_fails() {
    for (editor, said) in [
        ("true", "the draft is unchanged"),
        ("false", "the editor `false` failed"),
        ("no-such-editor", "cannot start"),
    ] {
        let terminal = asked()
            .env("EDITOR", editor)
            .env("VISUAL", "")
            .code(3)
            .at_terminal(24, 80);
        terminal.until_menu("draft 1").press("e");
        terminal.until(said).until_menu("draft 1").press("q");
        let ran = terminal.finish();
        assert_eq!(ran.drafts().len(), 1);
    }
}

#[test]
fn the_editor_gets_the_terminal_even_between_pipes() {
    let editor = "test -t 0 && test -t 1 && printf 'At a terminal.' > \"$1\"\n";
    let terminal = asked()
        .stdin("Some context.")
        .file("editor.sh", editor)
        .env("EDITOR", "sh editor.sh")
        .at_terminal_piped(24, 80);
    terminal.until_menu("draft 1").press("e");
    terminal.until_menu("draft 2").press("a");
    assert_eq!(terminal.finish().stdout, "At a terminal.\n");
}

#[test]
fn drafts_diffs_and_reports_are_shown() {
    let terminal = asked().at_terminal(40, 80);
    terminal.until_menu("draft 1").press("r");
    terminal.until("missing: It does not say what it is about.");
    terminal.until_menu("draft 1").press("?");
    terminal.until("  g  revise with an instruction of yours");
    terminal.until_menu("draft 1").press("d").press("c");
    // There is nothing to compare the first draft with, so the key does nothing.
    terminal.until_menu("draft 2").press("d");
    terminal.until("--- draft 1").until("{+");
    terminal.until_menu("draft 2").press("q");
    terminal.finish();
}

#[test]
fn a_long_draft_is_shown_completely_only_on_request() {
    let long: Vec<String> = (1..=40).map(|line| format!("Line{line}.")).collect();
    let script = reply("write", &long.join("\n"), 0) + &reply("judge", &verdict(2).to_string(), 0);
    let terminal = scripted(&script).arg("-i").code(3).at_terminal(24, 80);
    terminal
        .until_menu("draft 1")
        .until("… 29 more rows; show them with [s]")
        .press("s");
    terminal.until("Line40.").until_menu("draft 1").press("q");
    terminal.finish();
}

#[test]
fn another_draft_can_be_picked() {
    let terminal = asked().at_terminal_piped(24, 80);
    terminal.until_menu("draft 1").press("c");
    terminal.until_menu("draft 2").press("p");
    terminal
        .until("> draft 2, score 1.00, the best so far")
        .press(UP);
    terminal.until("> draft 1, score 0.65").press("\r");
    terminal
        .until_menu("draft 1 · score 0.65 · draft 2 is the best so far")
        .press("a");
    let ran = terminal.finish();
    assert_eq!(ran.stdout, format!("{FIRST}\n"));
    assert_eq!(ran.history()["output"], FIRST);
}

#[test]
fn the_list_of_drafts_can_be_cancelled() {
    let terminal = asked().at_terminal_piped(24, 80);
    terminal.until_menu("draft 1").press("c");
    terminal.until_menu("draft 2").press("p");
    terminal.until("> draft 2, score").press(ESCAPE);
    terminal.until_menu("draft 2").press("a");
    assert_eq!(terminal.finish().stdout, format!("{SECOND}\n"));
}

#[test]
fn at_the_limit_no_further_revision_is_offered() {
    let terminal = asked().args(["-n", "1"]).code(3).at_terminal(24, 80);
    terminal
        .until_menu("draft 1")
        .until("[q]uit (Enter)")
        .press("cg");
    terminal.press("\r");
    let ran = terminal.finish();
    assert!(!ran.stderr.contains("[c]ontinue"), "{}", ran.stderr);
}

#[test]
fn keys_typed_before_the_menu_are_discarded() {
    let terminal = scripted(&usual(300)).arg("-i").code(3).at_terminal(24, 80);
    terminal.until("writing").press("aaaa");
    terminal.until_menu("draft 1");
    std::thread::sleep(Duration::from_millis(300));
    terminal.until_menu("draft 1").press("q");
    assert_eq!(reason(&terminal.finish()), "user_quit");
}

/// Ctrl-C in every state of a run.
#[test]
fn ctrl_c_ends_the_run_and_keeps_its_drafts() {
    type Go = fn(&AtTerminal);
    let phases: [(&str, Go); 7] = [
        ("waiting", |it| {
            it.until("waiting for the first token");
        }),
        ("judging", |it| {
            it.until("draft 1: evaluating");
        }),
        ("menu", |it| {
            it.until_menu("draft 1");
        }),
        ("help", |it| {
            it.until_menu("draft 1").press("?");
            it.until("show the keys").until_menu("draft 1");
        }),
        ("wish", |it| {
            it.until_menu("draft 1").press("g");
            it.until("instruction:").press("Sho");
            it.until("Sho");
        }),
        ("revising", |it| {
            it.until_menu("draft 1").press("c");
            it.until("revising draft 1");
        }),
        ("list", |it| {
            it.until_menu("draft 1").press("c");
            it.until_menu("draft 2").press("p");
            it.until("> draft 2");
        }),
    ];
    crate::harness::each(
        &phases,
        |(name, _)| (*name).to_owned(),
        |(name, go)| {
            let terminal = scripted(&usual(400))
                .arg("-i")
                .code(130)
                .at_terminal(24, 80);
            go(&terminal);
            terminal.press(CTRL_C);
            let ran = terminal.finish();
            assert_eq!(reason(&ran), "interrupted", "{name}");
            assert!(ran.took < Duration::from_secs(10), "{name}: {:?}", ran.took);
        },
    );
}

/// A draft in evaluation is printed if the user watches, although it has no score.
#[test]
fn ctrl_c_during_an_evaluation_prints_the_draft() {
    let script = [
        reply("write", FIRST, 0),
        reply("judge", &verdict(5).to_string(), 20_000),
    ];
    let terminal = scripted(&script.concat()).code(130).at_terminal(24, 80);
    terminal.until("draft 1: evaluating").press(CTRL_C);
    let ran = terminal.finish();
    assert_eq!(reason(&ran), "interrupted");
    let warned = ran.stderr.find("warning: draft 1 was not evaluated");
    let after = &ran.stderr[warned.expect("a warning")..];
    assert!(after.contains("A frog jumps in."), "{}", ran.stderr);
}

#[test]
fn a_signal_at_the_menu_restores_the_terminal() {
    let terminal = asked().code(130).at_terminal(24, 80);
    terminal.until_menu("draft 1").signal("TERM");
    assert_eq!(reason(&terminal.finish()), "interrupted");
}

#[test]
fn the_time_limit_ends_the_menu() {
    let terminal = asked()
        .args(["--max-time", "1s"])
        .code(5)
        .at_terminal(24, 80);
    terminal.until_menu("draft 1");
    assert_eq!(reason(&terminal.finish()), "time_limit");
}

#[test]
fn ctrl_c_in_the_editor_belongs_to_the_editor() {
    let editor = "trap 'printf \"Saved.\" > \"$1\"; exit 0' INT\necho editing\nsleep 10 & wait\n";
    let terminal = asked()
        .file("editor.sh", editor)
        .env("EDITOR", "sh editor.sh")
        .at_terminal_piped(24, 80);
    terminal.until_menu("draft 1").press("e");
    terminal.until("editing").press(CTRL_C);
    terminal.until_menu("draft 2").press("a");
    assert_eq!(terminal.finish().stdout, "Saved.\n");
}

#[test]
fn the_menu_is_redrawn_when_the_terminal_is_resized() {
    let terminal = asked().code(3).at_terminal(24, 80);
    terminal.until_menu("draft 1").resize(24, 30);
    let narrow = |screen: &str| screen.contains("\n[g]uide  [e]dit  [s]how\n");
    terminal
        .until_screen("a narrow menu", narrow)
        .resize(24, 100);
    let wide = |screen: &str| screen.ends_with("[e]dit  [s]how  [r]eport  [q]uit  [?]");
    terminal.until_screen("a wide menu", wide).press("q");
    terminal.finish();
}

#[test]
fn screens_match_their_snapshots() {
    for columns in [80, 30] {
        let terminal = asked().code(0).at_terminal(40, columns);
        terminal.until_menu("draft 1");
        snapshot(&format!("menu_first_{columns}"), &terminal);
        terminal.press("c").until_menu("draft 2").press("d");
        terminal.until("--- draft 1").until_menu("draft 2");
        snapshot(&format!("menu_second_{columns}"), &terminal);
        terminal.press("p").until("> draft 2");
        snapshot(&format!("menu_pick_{columns}"), &terminal);
        terminal.press("\r").until_menu("draft 2").press("a");
        terminal.until("history show");
        std::thread::sleep(Duration::from_millis(200));
        snapshot(&format!("menu_end_{columns}"), &terminal);
        terminal.finish();
    }
}

#[test]
fn progress_is_shown_and_erased() {
    let words = ["A pond, 漢字 and 🐸, ", "and more of it. ", "And so on. "];
    let pieces: Vec<Value> = words
        .iter()
        .cycle()
        .take(12)
        .map(|it| Value::from(*it))
        .collect();
    let script = format!(
        "[[reply]]\npurpose = 'write'\npieces = {}\ndelay_ms = 150\n",
        Value::from(pieces)
    ) + &reply("judge", &verdict(5).to_string(), 1500);
    for columns in [80, 30, 20] {
        let terminal = scripted(&script).at_terminal(24, columns);
        terminal.until("draft 1: writing").until("token");
        terminal.until("tokens/s").until("And so on.");
        let screen = terminal.screen();
        assert!(screen.lines().count() <= 10, "{screen}");
        terminal.until("evaluating");
        terminal.until("history show");
        let ran = terminal.finish();
        assert!(ran.stderr.contains("draft 1: score"), "{}", ran.stderr);
    }
}

/// The final screen contains one line per draft and the summary, and nothing of the status line.
#[test]
fn the_final_progress_is_short() {
    for columns in [80, 30] {
        let terminal = scripted(&usual(150)).at_terminal(40, columns);
        terminal.until("history show");
        std::thread::sleep(Duration::from_millis(200));
        snapshot(&format!("progress_end_{columns}"), &terminal);
        terminal.finish();
    }
}

#[test]
fn progress_survives_a_resize() {
    let terminal = scripted(&usual(700)).at_terminal(24, 80);
    terminal.until("waiting for the first token").resize(24, 30);
    terminal.until("evaluating").resize(24, 60);
    terminal.until("history show");
    terminal.finish();
}

#[test]
fn differences_are_shown_on_request() {
    let terminal = scripted(&usual(0)).arg("--diff").at_terminal(40, 80);
    terminal
        .until("--- draft 1")
        .until("{+")
        .until("history show");
    terminal.finish();
    scripted(&usual(0))
        .arg("--diff")
        .stdout(&format!("{SECOND}\n"))
        .stderr_has("+The old pond:\n")
        .run();
    scripted(&usual(0)).args(["--diff", "-q"]).stderr("").run();
}

#[test]
fn a_dumb_terminal_gets_plain_lines() {
    let terminal = asked().env("TERM", "dumb").code(3).at_terminal(24, 80);
    terminal
        .until("draft 1: writing\n")
        .until_menu("draft 1")
        .press("q");
    let ran = terminal.finish();
    assert!(!ran.stderr.contains('⠋'), "{}", ran.stderr);
}

#[test]
fn the_user_controls_colours() {
    for (name, value, bold) in [
        ("NO_COLOR", "1", false),
        ("NO_COLOR", "", true),
        ("X", "", true),
    ] {
        let terminal = asked().env(name, value).code(3).at_terminal(24, 80);
        terminal.until_menu("draft 1");
        assert_eq!(terminal.is_bold_anywhere(), bold, "{name}={value}");
        terminal.press("q");
        terminal.finish();
    }
}

#[test]
fn the_next_revision_is_prefetched_while_the_user_decides() {
    let slow = reply("write", SECOND, 1500);
    let script = usual(0).replacen(&reply("write", SECOND, 0), &slow, 1);
    let terminal = scripted(&script)
        .args(["-i", "--prefetch"])
        .at_terminal_piped(24, 80);
    terminal.until_menu("draft 1");
    std::thread::sleep(Duration::from_secs(2));
    terminal.press("c");
    let wanted = std::time::Instant::now();
    terminal.until_menu("draft 2").press("a");
    assert!(
        wanted.elapsed() < Duration::from_millis(1400),
        "{:?}",
        wanted.elapsed()
    );
    let ran = terminal.finish();
    assert_eq!(ran.stdout, format!("{SECOND}\n"));
    assert_eq!(ran.history()["total_llm_calls"], 4);
}

#[test]
fn a_wasted_prefetched_revision_is_counted() {
    let script = usual(0).replacen("[[reply]]\npurpose = 'judge'", "[[first]]", 1);
    let vain = reply("write", "In vain.", 0);
    let script = script.replacen("[[reply]]\npurpose = 'write'", "[[begin]]", 1);
    let script = script
        .replacen(
            "[[reply]]\npurpose = 'write'",
            &(vain + "[[reply]]\npurpose = 'write'"),
            1,
        )
        .replacen("[[begin]]", "[[reply]]\npurpose = 'write'", 1)
        .replacen("[[first]]", "[[reply]]\npurpose = 'judge'", 1);
    let terminal = scripted(&script)
        .args(["-i", "--prefetch=true"])
        .at_terminal_piped(24, 80);
    terminal.until_menu("draft 1").press("g");
    terminal.until("instruction:").press("Shorter.\r");
    terminal.until_menu("draft 2").press("a");
    let ran = terminal.finish();
    assert_eq!(ran.stdout, format!("{SECOND}\n"));
    assert_eq!(ran.history()["total_llm_calls"], 5);
}

/// After resuming, the user is asked again, and no call is paid for twice.
#[test]
fn a_run_that_is_resumed_asks_again() {
    let terminal = asked().arg("--prefetch").code(3).at_terminal(24, 80);
    terminal.until_menu("draft 1").press("q");
    let stopped = terminal.finish();
    let resume = ["history", "resume", "last", "-i", "--prefetch", "--diff"];
    stopped
        .then(resume)
        .code(2)
        .stderr_has("--interactive needs a terminal")
        .run();
    let terminal = stopped.then(resume).code(130).at_terminal(24, 80);
    terminal
        .until("  A frog jumps in.")
        .until_menu("draft 1 · score 0.65")
        .press(CTRL_C);
    let interrupted = terminal.finish();
    assert_eq!(reason(&interrupted), "interrupted");
    let terminal = interrupted.then(resume).at_terminal_piped(40, 80);
    terminal.until_menu("draft 1").press("c");
    terminal
        .until("revising again")
        .until("{+")
        .until_menu("draft 2")
        .press("p");
    terminal.until("> draft 2").press(UP);
    terminal.until("> draft 1").press("\r");
    terminal.until_menu("draft 1").press("a");
    let ran = terminal.finish();
    assert_eq!(ran.stdout, format!("{FIRST}\n"));
    assert_eq!(reason(&ran), "user_accepted");
    let history = ran.history();
    // The revision prefetched before the user left is counted.
    assert_eq!(history["total_llm_calls"], 5);
}

/// Call details are not wrapped to the terminal.
#[test]
fn call_details_are_not_wrapped() {
    let terminal = scripted(&usual(0)).arg("-vv").at_terminal_piped(24, 30);
    terminal.until("history show");
    let ran = terminal.finish();
    for told in [
        "\n< A frog jumps in.\n< 漢字 and 🐸 make ripples.\n",
        "request to scripted:script.toml to write at ",
    ] {
        assert!(ran.stderr.contains(told), "{}", ran.stderr);
    }
}

/// Anything but yes is a no.
#[test]
fn runs_are_deleted_only_after_confirmation() {
    let ran = scripted(&usual(0)).run();
    for (answer, code, said) in [
        ("n\r", 2, "nothing deleted"),
        ("\r", 2, "nothing deleted"),
        ("perhaps\r", 2, "nothing deleted"),
        ("\u{4}", 2, "nothing deleted"),
        ("Yes\r", 0, "deleted 1 run"),
    ] {
        let rm = ran.then(["history", "rm", "--all"]).code(code);
        let terminal = rm.at_terminal(24, 80);
        terminal
            .until("delete 1 run from the log? [y/N]")
            .press(answer);
        let asked = terminal.finish();
        assert!(asked.stderr.contains(said), "{}", asked.stderr);
        let list = ran.then(["history", "list", "--json"]).run().json();
        let left = list.as_array().map(Vec::len);
        assert_eq!(left, Some(usize::from(code == 2)), "{answer:?}");
    }
}

#[test]
fn an_invalid_configuration_can_be_edited_again() {
    const CONFIG: &str = "../home/.config/reflect/config.toml";
    let editor = "if test -e once; then text='retries = 1'; else text='retris = 1'; fi\n\
                  touch once\nprintf '%s' \"$text\" > \"$1\"\n";
    for (answer, code, left) in [
        ("\r", 0, "retries = 1"),
        ("y\r", 0, "retries = 1"),
        ("No\r", 2, "retris = 1"),
        ("\u{4}", 2, "retris = 1"),
    ] {
        let terminal = Test::new()
            .args(["config", "edit"])
            .file("editor.sh", editor)
            .env("VISUAL", "sh editor.sh")
            .code(code)
            .at_terminal(24, 80);
        terminal
            .until("did you mean `retries`?")
            .until("edit it again? [Y/n]")
            .press(answer);
        let ran = terminal.finish();
        assert_eq!(ran.read(CONFIG), left, "{answer:?}");
        let said = ran
            .stderr
            .contains("the configuration file is still invalid");
        assert_eq!(said, code == 2, "{}", ran.stderr);
    }
}

#[test]
fn without_a_terminal_nothing_starts() {
    let server = usual_server();
    draft(&server, Protocol::Ollama)
        .arg("-i")
        .code(2)
        .stdout("")
        .stderr_has("--interactive needs a terminal: stderr is not a terminal")
        .stderr_has("--yes")
        .run();
    assert_eq!(server.calls(), 0);
    // Even if stdin stays silent.
    let ran = draft(&server, Protocol::OpenAi)
        .args(["-i", "-"])
        .silent_stdin()
        .code(2)
        .run();
    assert!(ran.took < Duration::from_secs(5), "{:?}", ran.took);
}

#[test]
fn yes_turns_questions_off() {
    for flag in ["-y", "--yes", "--no-input"] {
        draft(&usual_server(), Protocol::Ollama)
            .args(["-i", flag])
            .stdout("The second draft.\n")
            .run();
    }
    let server = answering(Vec::<crate::support::server::Reply>::new());
    draft(&server, Protocol::Ollama)
        .args(["--yes", "--dry-run"])
        .run();
}

#[test]
fn a_correction_without_evaluation_rejects_the_menu() {
    Test::new()
        .file("text.md", "A text.")
        .file("errors.txt", "An error.")
        .args(["revise", "text.md", "--errors", "errors.txt", "-i"])
        .code(2)
        .stderr_has("cannot be used with '--interactive'")
        .run();
}

/// Sets the clipboard and the title, clears the screen, queries the cursor position.
const HOSTILE: &str =
    "\u{1b}]52;c;ZXZpbA==\u{7}\u{1b}]0;title\u{7}\u{1b}[2J\u{1b}[6n\u{9b}6n one\ttext\n\nTHE END.";

/// Checks that a model's text does not control the terminal.
#[track_caller]
fn is_shown_harmlessly(test: Test) -> Ran {
    let terminal = test.at_terminal(40, 120);
    let shown = "^[]52;c;ZXZpbA==^G^[]0;title^G^[[2J^[[6n<U+009B>6n one";
    // The preview shows the end of the draft, but not its control characters.
    terminal.until(shown).until("THE END.");
    assert!(terminal.has_written(shown), "{}", terminal.screen());
    for raw in ["\u{1b}]", "\u{1b}[2J", "\u{1b}[6n", "\u{9b}", "\u{7}"] {
        assert!(!terminal.has_written(raw), "{raw:?} is written");
    }
    terminal.finish()
}

#[test]
fn control_characters_of_a_draft_are_visible_at_a_terminal_and_untouched_in_a_pipe() {
    let script = [
        reply("write", HOSTILE, 0),
        reply("judge", &verdict(5).to_string(), 0),
    ]
    .concat();
    for flags in [
        &[][..],
        &["-q"],
        &["--extract"],
        &["-q", "--format", "markdown"],
    ] {
        is_shown_harmlessly(scripted(&script).args(flags));
    }
    let ran = scripted(&script).stdout(&format!("{HOSTILE}\n")).run();
    let show = ["history", "show", "last", "--best"];
    is_shown_harmlessly(ran.then(show));
    ran.then(show).stdout(&format!("{HOSTILE}\n")).run();
    is_shown_harmlessly(ran.then(["history", "export", "last", "--format", "markdown"]));
}

#[cfg(target_os = "linux")]
#[test]
fn control_characters_of_a_file_name_are_visible_at_a_terminal() {
    let terminal = Test::new()
        .file("\u{1b}]0;title\u{7}.txt", "A text.")
        .file(
            "c.toml",
            "[[criteria]]\nname = 'short'\nevaluator = 'length'\nmax = 9\n",
        )
        .args(["evaluate", "\u{1b}]0;title\u{7}.txt", "-c", "c.toml"])
        .args(["--format", "markdown"])
        .at_terminal(40, 120);
    terminal.until("^[]0;title^G.txt");
    terminal.until("short");
    assert!(!terminal.has_written("\u{1b}]0"));
    terminal.finish();
}
