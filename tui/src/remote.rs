//! Asks the run that is watched, over its control socket, on a thread of its own: an answer may take half a minute.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use dflash_reports::control;
use dflash_reports::text::Look;
use dflash_reports::timeline::RunDir;
use dflash_reports::timeline::control::{Answer, Ask, Client, Error};

use crate::state::{CPU_HZ, CPU_SECONDS, Command, KERNEL_ITERATIONS, State};

/// So long an answer stands before another one, or what a request waits for, takes its place.
const TIME_TO_READ: Duration = Duration::from_secs(2);

/// What is known of a request.
enum News {
    /// What it waits for.
    Progress(String),
    /// It was done.
    Done(Command, Box<Answer>),
    /// It was not, and why.
    Failed(Command, String),
}

/// Requests are numbered.
type Numbered<T> = (u64, T);

/// Requests under way.
pub struct Remote {
    sender: Sender<Numbered<News>>,
    news: Receiver<Numbered<News>>,
    asked: u64,
    under_way: usize,
    line: Line,
}

impl Default for Remote {
    fn default() -> Self {
        let (sender, news) = channel();
        Self { sender, news, asked: 0, under_way: 0, line: Line::default() }
    }
}

impl Remote {
    /// Asks every one of the processes, by run and rank (of a request that one can do alone, only the first).
    pub fn ask(&mut self, mut processes: Vec<(RunDir, u32)>, command: Command, state: &mut State) {
        if self.under_way >= 4 {
            state.say("four requests are under way; wait for one of them", true);
            return;
        }
        let all = matches!(command, Command::Level(_) | Command::Cpu);
        if !all {
            processes.truncate(1);
        }
        self.asked += 1;
        let (sender, number) = (self.sender.clone(), self.asked);
        let asked = thread::Builder::new().name("dflash-ask".to_owned()).spawn(move || {
            let mut progress = |text: &str| drop(sender.send((number, News::Progress(text.to_owned()))));
            let news = match ask(&processes, &command, &mut progress) {
                Ok(answer) => News::Done(command, Box::new(answer)),
                Err(Error::Elsewhere { host }) => {
                    News::Failed(command, format!("read only: the trainer runs on {host}"))
                }
                Err(error) => News::Failed(command, error.to_string()),
            };
            // The view may have ended meanwhile.
            drop(sender.send((number, news)));
        });
        match asked {
            Ok(_) => self.under_way += 1,
            Err(error) => state.say(format!("cannot ask: {error}"), true),
        }
    }

    /// Says what has become of the requests; whether there was something to say.
    pub fn tell(&mut self, state: &mut State) -> bool {
        let mut opened = false;
        while let Ok((number, news)) = self.news.try_recv() {
            let answer = match news {
                News::Progress(text) => {
                    self.line.progress = Some((number, text));
                    continue;
                }
                News::Done(command, answer) => {
                    opened |= matches!(*answer, Answer::Stacks(_));
                    shown(&command, *answer, state)
                }
                News::Failed(command, text) => Some((format!("{}: {text}", command.words()), true)),
            };
            self.under_way = self.under_way.saturating_sub(1);
            self.line.ended(number, answer);
        }
        // A question hides the line: what is to be said waits until it is answered.
        let said = if state.prompt.is_none() { self.line.next(Instant::now()) } else { None };
        let Some((text, bad)) = said else { return opened };
        state.say(text, bad);
        true
    }
}

/// Several requests share one line: none of their answers may vanish unread.
#[derive(Default)]
struct Line {
    answers: VecDeque<(String, bool)>,
    /// What a request waits for: only the newest counts.
    progress: Option<Numbered<String>>,
    /// When the answer that stands there came.
    since: Option<Instant>,
}

impl Line {
    /// A request has come to its end: it waits for nothing any more.
    fn ended(&mut self, number: u64, answer: Option<(String, bool)>) {
        self.progress.take_if(|(of, _)| *of == number);
        self.answers.extend(answer);
    }

    /// What is to be said now, and whether it is bad.
    fn next(&mut self, now: Instant) -> Option<(String, bool)> {
        if self.since.is_some_and(|since| now.duration_since(since) < TIME_TO_READ) {
            return None;
        }
        let answer = self.answers.pop_front();
        self.since = answer.is_some().then_some(now);
        answer.or_else(|| self.progress.take().map(|(_, text)| (text, false)))
    }
}

/// Asks one after the other; the last answer stands for all.
fn ask(processes: &[(RunDir, u32)], command: &Command, progress: &mut dyn FnMut(&str)) -> Result<Answer, Error> {
    // Sampling takes as long in each process, so it is begun in all and ended in all.
    if let (Command::Cpu, [_, _, ..]) = (command, processes) {
        return sample_all(processes, progress);
    }
    let mut last = Answer::Done(String::new());
    for (run, rank) in processes {
        last = Client::connect(run, *rank, "top")?.ask(request(command), progress)?;
    }
    Ok(last)
}

fn sample_all(processes: &[(RunDir, u32)], progress: &mut dyn FnMut(&str)) -> Result<Answer, Error> {
    let begun: Vec<&(RunDir, u32)> = processes
        .iter()
        .filter(|(run, rank)| {
            let asked =
                Client::connect(run, *rank, "top").and_then(|mut c| c.ask(Ask::CpuStart { hz: CPU_HZ }, progress));
            asked.is_ok()
        })
        .collect();
    for left in (1..=CPU_SECONDS).rev() {
        progress(&format!("sampling {} processes, {left} s left", begun.len()));
        thread::sleep(std::time::Duration::from_secs(1));
    }
    let mut last = Err(Error::Refused("no process samples its CPU time".to_owned()));
    for (run, rank) in begun {
        last = Client::connect(run, *rank, "top").and_then(|mut client| client.ask(Ask::CpuStop, progress));
    }
    last
}

fn request(command: &Command) -> Ask {
    match command {
        Command::Level(level) => Ask::Level { level: (*level).to_owned() },
        Command::Cpu => Ask::Cpu { seconds: f64::from(CPU_SECONDS), hz: CPU_HZ },
        Command::Kernels => Ask::Kernels { iterations: KERNEL_ITERATIONS, wait: true },
        Command::Stacks => Ask::Stacks,
        Command::Checkpoint => Ask::Checkpoint { wait: true },
        Command::Mark(text) => Ask::Mark { text: text.clone(), warning: false },
    }
}

/// Opens what an answer shows over the view; the line that it says, and whether it is bad.
fn shown(command: &Command, answer: Answer, state: &mut State) -> Option<(String, bool)> {
    Some(match answer {
        Answer::Stacks(threads) => {
            let text = control::stacks(&threads, Look::default());
            state.open("Stacks", text.lines().map(str::to_owned).collect());
            (format!("{} threads; Esc closes", threads.len()), false)
        }
        Answer::Cpu(report) => (control::cpu(&report).trim().to_owned(), false),
        Answer::File(path) => (format!("{}: written to {}", command.words(), path.display()), false),
        Answer::Done(text) | Answer::Progress(text) => (text, false),
        Answer::Error(text) => (text, true),
        Answer::Status(_) => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The answer about a checkpoint stood for less than a frame, since a sampling told its progress right after it.
    #[test]
    fn no_answer_vanishes_unread() {
        let progress = |number, text: &str| Some((number, text.to_owned()));
        let mut line = Line { progress: progress(1, "29 s left"), ..Line::default() };
        let began = Instant::now();
        let at = |milliseconds, line: &mut Line| {
            line.next(began + Duration::from_millis(milliseconds)).map(|(text, _)| text)
        };
        assert_eq!(at(0, &mut line).as_deref(), Some("29 s left"), "progress gives way at once");
        line.progress = progress(2, "it is being written");
        line.ended(2, Some(("written".to_owned(), false)));
        line.ended(3, Some(("refused".to_owned(), true)));
        assert_eq!(at(10, &mut line).as_deref(), Some("written"));
        assert_eq!(at(2_000, &mut line), None);
        assert_eq!(at(2_010, &mut line).as_deref(), Some("refused"));
        assert_eq!(at(4_010, &mut line), None, "what has ended waits for nothing");
        line.progress = progress(1, "26 s left");
        assert_eq!(at(4_020, &mut line).as_deref(), Some("26 s left"));
        assert_eq!(at(4_030, &mut line), None);
    }
}
