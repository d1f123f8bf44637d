//! A real terminal to try `dflash top` in: a tmux server of its own.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How long the screen may take to show what is waited for, on a machine that does other things.
const PATIENCE: Duration = Duration::from_secs(60);

/// One terminal with a shell in it.
pub struct Terminal {
    server: String,
    bytes: PathBuf,
    directory: PathBuf,
}

impl Terminal {
    /// Opens one in `directory`; `None` where tmux is not installed.
    pub fn open(directory: &Path, columns: u16, lines: u16) -> Option<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        Command::new("tmux").arg("-V").stdout(Stdio::null()).status().ok()?;
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let server = format!("dflash-test-{}-{number}", std::process::id());
        let bytes = directory.join(format!("terminal-{number}.bytes"));
        let terminal = Self { server, bytes, directory: directory.to_owned() };
        let (x, y) = (columns.to_string(), lines.to_string());
        let directory = directory.to_str().unwrap();
        // The shell's own set-up files would say things of their own.
        let shell = "env -u NO_COLOR -u DFLASH_RUNS -u ENV TERM=tmux-256color LC_ALL=C.UTF-8 PS1='$ ' sh";
        terminal.tmux(&["new-session", "-d", "-x", &x, "-y", &y, "-c", directory, shell]);
        let pipe = format!("cat > '{}'", terminal.bytes.display());
        terminal.tmux(&["pipe-pane", "-O", &pipe]);
        terminal.wait_for("a prompt", |screen| screen.contains('$'));
        Some(terminal)
    }

    fn tmux(&self, arguments: &[&str]) -> String {
        let mut command = Command::new("tmux");
        command.args(["-u", "-f", "/dev/null", "-L", &self.server]).args(arguments).env_remove("TMUX");
        let output = command.output().unwrap();
        assert!(output.status.success(), "tmux {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Types letters, as they are.
    pub fn type_in(&self, text: &str) {
        self.tmux(&["send-keys", "-l", "--", text]);
    }

    /// Presses keys by their names: `Enter`, `C-c`, `BTab`, ….
    pub fn press(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys"], keys].concat());
    }

    /// Types a text until it has had its effect: right after Escape, a letter may be taken for Alt and that letter.
    pub fn type_until(&self, text: &str, shows: &str) {
        let began = Instant::now();
        while began.elapsed() < PATIENCE {
            self.type_in(text);
            for _ in 0..40 {
                if self.screen().contains(shows) {
                    return;
                }
                thread::sleep(Duration::from_millis(50));
            }
        }
        panic!("{shows:?} did not come:\n{}", self.screen());
    }

    /// Types a line, and Enter.
    pub fn line(&self, text: &str) {
        self.type_in(text);
        self.press(&["Enter"]);
    }

    /// Gives the terminal another size.
    pub fn resize(&self, columns: u16, lines: u16) {
        self.tmux(&["resize-window", "-x", &columns.to_string(), "-y", &lines.to_string()]);
    }

    /// Takes the terminal away from what runs in it, as a connection that breaks does: ends this server alone.
    pub fn hang_up(&self) {
        let _ = Command::new("tmux").args(["-L", &self.server, "kill-server"]).stderr(Stdio::null()).status();
    }

    /// What stands on the screen.
    pub fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }

    /// Waits until the screen is as `is` wants it, and gives it.
    pub fn wait_for(&self, what: &str, is: impl Fn(&str) -> bool) -> String {
        let began = Instant::now();
        loop {
            let screen = self.screen();
            if is(&screen) {
                return screen;
            }
            assert!(began.elapsed() < PATIENCE, "{what} did not come:\n{screen}");
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// Waits for a text on the screen.
    pub fn wait(&self, text: &str) -> String {
        self.wait_for(text, |screen| screen.contains(text))
    }

    /// Whether the terminal is on its other screen, shows its cursor, and sends what the mouse does.
    pub fn modes(&self) -> String {
        self.tmux(&["display-message", "-p", "#{alternate_on} #{cursor_flag} #{mouse_any_flag}"]).trim().to_owned()
    }

    /// How many bytes were written to it so far.
    pub fn bytes(&self) -> u64 {
        std::fs::metadata(&self.bytes).map_or(0, |data| data.len())
    }

    /// The settings of the line (`stty -g`), as the shell sees them.
    pub fn settings(&self) -> String {
        let file = self.bytes.with_extension("settings");
        let _ = std::fs::remove_file(&file);
        // What is typed before the shell asks may still go to the program that is about to end.
        self.wait_for("the prompt", |screen| screen.trim_end().lines().last().is_some_and(|line| line.trim() == "$"));
        self.line(&format!("stty -g > '{0}.part' && mv '{0}.part' '{0}'", file.display()));
        self.wait_for("stty", |_| file.exists());
        std::fs::read_to_string(file).unwrap()
    }
}

/// A terminal in `directory`; without tmux there is none, and nothing to test.
#[expect(clippy::print_stderr, reason = "a test that is left out has to say so")]
pub fn terminal(directory: &Path, columns: u16, lines: u16) -> Option<Terminal> {
    let terminal = Terminal::open(directory, columns, lines);
    if terminal.is_none() {
        eprintln!("left out: tmux is not installed, so there is no real terminal");
    }
    terminal
}

/// The one `dflash` that runs in `directory`.
pub fn process_in(directory: &Path) -> u32 {
    let own = processes_in(directory);
    assert_eq!(own.len(), 1, "{own:?}");
    own[0]
}

/// Every `dflash` that runs in `directory`.
fn processes_in(directory: &Path) -> Vec<u32> {
    let wanted = std::fs::canonicalize(directory).unwrap_or_default();
    let dflash = Path::new(env!("CARGO_BIN_EXE_dflash"));
    // What `dflash train` becomes.
    let trainer = dflash.with_file_name("dflash-train");
    let is_its = |process: &PathBuf| {
        let program = std::fs::read_link(process.join("exe")).unwrap_or_default();
        let works_in = std::fs::read_link(process.join("cwd")).unwrap_or_default();
        (program == dflash || program == trainer) && works_in == wanted
    };
    let processes = std::fs::read_dir("/proc").into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
    processes.filter(is_its).filter_map(|process| process.file_name()?.to_str()?.parse().ok()).collect()
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.hang_up();
        // What a test that failed leaves running would run for ever.
        for id in processes_in(&self.directory) {
            let _ = Command::new("kill").args(["-KILL", &id.to_string()]).stderr(Stdio::null()).status();
        }
    }
}
