//! Asks the run that is watched, over its control socket, on a thread of its own: an answer may take half a minute.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use dflash_reports::control;
use dflash_reports::text::Look;
use dflash_reports::timeline::RunDir;
use dflash_reports::timeline::control::{Answer, Ask, Client, Error};

use crate::state::{CPU_HZ, CPU_SECONDS, Command, KERNEL_ITERATIONS, State};

/// What is known of a request.
enum News {
    /// What it waits for.
    Progress(String),
    /// It was done.
    Done(Command, Box<Answer>),
    /// It was not, and why.
    Failed(Command, String),
}

/// Requests under way.
pub struct Remote {
    sender: Sender<News>,
    news: Receiver<News>,
    under_way: usize,
}

impl Default for Remote {
    fn default() -> Self {
        let (sender, news) = channel();
        Self { sender, news, under_way: 0 }
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
        let sender = self.sender.clone();
        let asked = thread::Builder::new().name("dflash-ask".to_owned()).spawn(move || {
            let mut progress = |text: &str| drop(sender.send(News::Progress(text.to_owned())));
            let news = match ask(&processes, &command, &mut progress) {
                Ok(answer) => News::Done(command, Box::new(answer)),
                Err(Error::Elsewhere { host }) => {
                    News::Failed(command, format!("read only: the trainer runs on {host}"))
                }
                Err(error) => News::Failed(command, error.to_string()),
            };
            // The view may have ended meanwhile.
            drop(sender.send(news));
        });
        match asked {
            Ok(_) => self.under_way += 1,
            Err(error) => state.say(format!("cannot ask: {error}"), true),
        }
    }

    /// Says what has become of the requests; whether there was news.
    pub fn tell(&mut self, state: &mut State) -> bool {
        let mut some = false;
        while let Ok(news) = self.news.try_recv() {
            some = true;
            match news {
                News::Progress(text) => state.say(text, false),
                News::Done(command, answer) => {
                    self.under_way = self.under_way.saturating_sub(1);
                    show(&command, *answer, state);
                }
                News::Failed(command, text) => {
                    self.under_way = self.under_way.saturating_sub(1);
                    state.say(format!("{}: {text}", command.words()), true);
                }
            }
        }
        some
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

fn show(command: &Command, answer: Answer, state: &mut State) {
    match answer {
        Answer::Stacks(threads) => {
            let text = control::stacks(&threads, Look::default());
            state.open("Stacks", text.lines().map(str::to_owned).collect());
            state.say(format!("{} threads; Esc closes", threads.len()), false);
        }
        Answer::Cpu(report) => state.say(control::cpu(&report).trim().to_owned(), false),
        Answer::File(path) => state.say(format!("{}: written to {}", command.words(), path.display()), false),
        Answer::Done(text) | Answer::Progress(text) => state.say(text, false),
        Answer::Error(text) => state.say(text, true),
        Answer::Status(_) => {}
    }
}
