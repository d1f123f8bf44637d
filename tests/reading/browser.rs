//! The page in a real browser: `DFLASH_BROWSER`, else a Chromium or Chrome of the system. Where there is none the tests are
//! skipped, and say so.
//!
//! The page itself runs no script and may not. So what is measured is a copy without its policy, with a script at its end
//! that tells the page around it what it measured, which the browser then prints.

use super::support::{dflash, skipped};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

const RUN: &str = "tests/data/recordings/h200";

/// What the script measures, as JSON in an element of its own.
const MEASURE: &str = r#"<script>
const size = e => e.getBoundingClientRect();
const texts = [...document.querySelectorAll('.x span, .y span, td, th, li, p, dt, dd, figcaption')];
const said = {
  width: window.innerWidth,
  wide: document.documentElement.scrollWidth,
  svgs: [...document.querySelectorAll('svg')].map(e => [size(e).width, size(e).height]),
  drawn: [...document.querySelectorAll('.area, .line')].filter(e => e.getBBox().width > 0).length,
  smallest: Math.min(...texts.map(e => parseFloat(getComputedStyle(e).fontSize))),
  overlaps: [...document.querySelectorAll('.x')].filter(axis => {
    const marks = [...axis.children].map(size);
    return marks.some((m, i) => i > 0 && m.left < marks[i - 1].right);
  }).length,
  ground: getComputedStyle(document.body).backgroundColor,
  loaded: performance.getEntriesByType('resource').length,
  scripts: document.scripts.length,
  pwned: window.pwned === true,
  headings: [...document.querySelectorAll('h1, h2')].map(e => e.textContent),
};
parent.postMessage('MEASURED' + JSON.stringify(said) + 'DONE', '*');
</script></body>"#;

/// A browser's own window cannot be as narrow as a phone's screen; a frame in it can.
const FRAME: &str = r#"<!DOCTYPE html><body>
<script>onmessage = message => { document.body.textContent = message.data; };</script>
<iframe src="page.html" style="border:0;height:2000px;width:WIDTHpx"></iframe></body>"#;

fn browser(test: &str) -> Option<PathBuf> {
    let named = std::env::var_os("DFLASH_BROWSER").map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let usual = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
    let found = std::env::split_paths(&path).flat_map(|folder| usual.map(|name| folder.join(name)));
    let browser = named.or_else(|| found.into_iter().find(|file| file.is_file()));
    if browser.is_none() {
        skipped(test, "there is no Chromium or Chrome; install one, or name it with DFLASH_BROWSER");
    }
    browser
}

/// Opens a page in a window of this width and returns what the script measured.
fn measure(browser: &Path, page: &str, width: u32, dark: bool) -> Value {
    let dir = tempfile::tempdir().unwrap();
    let policy = page.find("<meta http-equiv=\"Content-Security-Policy\"").unwrap();
    let end = policy + page[policy..].find('\n').unwrap();
    let copy = (page[..policy].to_owned() + &page[end..]).replacen("</body>", MEASURE, 1);
    std::fs::write(dir.path().join("page.html"), copy).unwrap();
    let file = dir.path().join("frame.html");
    std::fs::write(&file, FRAME.replace("WIDTH", &width.to_string())).unwrap();
    let mut command = Command::new(browser);
    command.args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]);
    command.args(["--dump-dom", "--virtual-time-budget=10000"]);
    command.arg(format!("--user-data-dir={}", dir.path().join("profile").display()));
    command.arg("--window-size=1400,2000");
    if dark {
        command.arg("--blink-settings=preferredColorScheme=0");
    }
    let output = command.arg(format!("file://{}", file.display())).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let said = text.rsplit("MEASURED{").next().and_then(|rest| rest.split("}DONE").next());
    let said = said.map(|said| format!("{{{said}}}").replace("&amp;", "&").replace("&lt;", "<").replace("&gt;", ">"));
    serde_json::from_str(&said.unwrap()).unwrap_or_else(|error| {
        panic!("{error}: {text}\n{}", String::from_utf8_lossy(&output.stderr));
    })
}

fn page(arguments: &[&str]) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let said = dflash(root, &[&["report", "--format", "html"], arguments].concat());
    assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""));
    said.stdout
}

#[test]
fn the_page_of_the_recorded_run_on_a_desk_and_on_a_phone() {
    let Some(browser) = browser("the page in a browser") else { return };
    let page = page(&[RUN]);
    for width in [1280, 390] {
        let seen = measure(&browser, &page, width, false);
        assert_eq!(seen["width"], width, "{seen}");
        assert!(seen["wide"].as_u64().unwrap() <= u64::from(width), "wider than the window: {seen}");
        let svgs = seen["svgs"].as_array().unwrap();
        let at_least = if width < 500 { 250.0 } else { 400.0 };
        assert!(svgs.len() >= 10 && svgs.iter().all(|svg| svg[0].as_f64().unwrap() > at_least), "{seen}");
        assert!(seen["drawn"].as_u64().unwrap() > 25, "{seen}");
        assert!(seen["smallest"].as_f64().unwrap() >= 10.0, "words too small to read: {seen}");
        assert_eq!(seen["overlaps"], 0, "marks of an axis lie on each other: {seen}");
        assert_eq!((&seen["loaded"], &seen["scripts"]), (&0.into(), &1.into()), "the one script is the test's: {seen}");
        assert_eq!(seen["headings"][0], "h200");
    }
    let light = measure(&browser, &page, 1280, false);
    let dark = measure(&browser, &page, 1280, true);
    assert_ne!(light["ground"], dark["ground"], "the page follows a dark screen");
}

#[test]
fn names_do_nothing_in_a_browser() {
    let Some(browser) = browser("names in a browser") else { return };
    let dir = tempfile::tempdir().unwrap();
    super::support::run_with_names(
        dir.path(),
        "</title></style><script>window.pwned=true</script><img src=x onerror=\"pwned=true\">",
    );
    let said = dflash(dir.path(), &["report", "--format", "html"]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let seen = measure(&browser, &said.stdout, 390, false);
    assert_eq!((&seen["pwned"], &seen["scripts"], &seen["loaded"]), (&false.into(), &1.into(), &0.into()), "{seen}");
    assert!(seen["wide"].as_u64().unwrap() <= 390, "a long name makes the page wide: {seen}");
}
