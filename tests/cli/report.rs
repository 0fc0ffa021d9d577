//! HTML reports: the page of a run equals that of its log, and a browser executes nothing in it.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::harness::Test;
use crate::plan::{answering, draft, usual_server, verdict};
use crate::script::has;
use crate::support::server::{Protocol, Reply};

#[test]
fn the_page_of_a_run_equals_that_of_its_log() {
    let server = usual_server();
    let ran = draft(&server, Protocol::OpenAi)
        .args(["--report", "report.html"])
        .stdout("The second draft.\n")
        .run();
    let page = ran.read("report.html");
    for part in [
        "criteria met",
        "The second draft.",
        "<svg ",
        "It does not say what it is about.",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let exported = ran.then(["history", "export", "--format", "html"]).run();
    assert_eq!(exported.stdout, page);
}

#[test]
fn evaluated_texts_share_a_page() {
    let ran = Test::new()
        .args([
            "evaluate", "a.txt", "<b>.txt", "-c", "c.toml", "--report", "r.htm",
        ])
        .file("a.txt", "Five words are in it.")
        .file("<b>.txt", "Seven words are in it, no less.")
        .file(
            "c.toml",
            "[[criteria]]\nname = 'length'\nevaluator = 'length'\nmax = 5\n",
        )
        .code(3)
        .run();
    let page = ran.read("r.htm");
    assert!(page.contains("<h1>2 texts</h1>"), "{page}");
    assert!(
        page.contains("&lt;b&gt;.txt") && !page.contains("<b>"),
        "{page}"
    );
}

/// Returns the DOM of a page in a browser; fails if that takes too long.
fn browse(page: &Path) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let dump = folder.path().join("dump");
    let mut browser = Command::new("chromium")
        .args([
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--dump-dom",
        ])
        .arg(format!(
            "--user-data-dir={}",
            folder.path().join("profile").display()
        ))
        .arg(format!("file://{}", page.display()))
        .env("HOME", folder.path())
        .stdin(Stdio::null())
        .stdout(fs::File::create(&dump).expect("a file"))
        .stderr(Stdio::null())
        .spawn()
        .expect("the browser starts");
    let begin = Instant::now();
    while browser
        .try_wait()
        .expect("the browser can be waited for")
        .is_none()
    {
        if begin.elapsed() > Duration::from_mins(2) {
            let _ = browser.kill();
            let _ = browser.wait();
            panic!("the browser did not exit");
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    fs::read_to_string(dump).expect("a page")
}

/// Changes the page's title and text if it is executed.
const HOSTILE: &str = "</pre></main><script>document.title = 'it' + 'ran'</script>\
    <img src=x onerror=\"document.title = 'it' + 'ran'\"><svg onload=\"document.title='it'+'ran'\"></svg>\
    <meta http-equiv=refresh content=\"0;url=data:text/html,it%72an\"><style>* { display: none }</style>";

#[test]
fn a_browser_shows_a_hostile_draft_without_executing_it() {
    if !has("chromium") {
        return;
    }
    let server = answering([Reply::text(HOSTILE), Reply::text(&verdict(5).to_string())]);
    let ran = draft(&server, Protocol::OpenAi)
        .args(["--report", "report.html"])
        .run();
    assert_eq!(ran.drafts(), [HOSTILE]);
    let dumped = browse(&ran.path("report.html"));
    assert!(dumped.contains("<h1 id=\"title\""), "{dumped}");
    assert!(!dumped.contains("itran"), "{dumped}");
    assert!(
        !dumped.contains("<script") && !dumped.contains("<img"),
        "{dumped}"
    );
    assert!(dumped.contains("&lt;script&gt;document.title"), "{dumped}");
    // The same browser executes it as markup.
    let page = ran.path("other.html");
    fs::write(
        &page,
        format!("<!doctype html><title>x</title><pre>{}", &HOSTILE[..60]),
    )
    .expect("a file");
    assert!(browse(&page).contains("itran"));
}
