//! `dflash completions`: what a shell and `man` can be told of the commands.

use crate::exit::WhileRunning;
use crate::output::{OutputArg, say, write_file};
use anyhow::{Context, bail};
use clap::Command;
use std::path::Path;
use std::process::ExitCode;

/// Where completions go, for those who do not know by heart.
const EXAMPLES: &str = "\
Where they go:
  bash  dflash completions bash > ~/.local/share/bash-completion/completions/dflash
  zsh   dflash completions zsh > DIR/_dflash, where DIR is one of $fpath
  fish  dflash completions fish > ~/.config/fish/completions/dflash.fish
  man   dflash completions man -o ~/.local/share/man/man1/";

#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// A shell, or `man` for the man pages, which go into the directory that -o names
    #[arg(value_enum)]
    what: What,
    #[command(flatten)]
    output: OutputArg,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Bash,
    Elvish,
    Fish,
    #[value(name = "powershell")]
    PowerShell,
    Zsh,
    Man,
}

pub fn run(args: &Args, mut command: Command) -> anyhow::Result<ExitCode> {
    let shell = match args.what {
        What::Man => return man_pages(args, command),
        What::Bash => clap_complete::Shell::Bash,
        What::Elvish => clap_complete::Shell::Elvish,
        What::Fish => clap_complete::Shell::Fish,
        What::PowerShell => clap_complete::Shell::PowerShell,
        What::Zsh => clap_complete::Shell::Zsh,
    };
    args.output.check()?;
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "dflash", &mut script);
    args.output.write(&script)?;
    Ok(ExitCode::SUCCESS)
}

fn man_pages(args: &Args, mut command: Command) -> anyhow::Result<ExitCode> {
    let Some(directory) = args.output.directory() else {
        bail!("man pages are several files; name a directory with -o, such as -o man/");
    };
    // Links between the pages need the commands' full names.
    command.build();
    let mut pages = Vec::new();
    gather(&command, &mut pages)?;
    for (name, _) in &pages {
        let path = directory.join(name);
        if path.exists() && !args.output.force() {
            bail!("{} exists; name another directory, or overwrite it with --force", path.display());
        }
    }
    create(directory)?;
    pages.iter().try_for_each(|(name, page)| write_file(&directory.join(name), page, args.output.force()))?;
    say(&format!("dflash: {} pages in {}", pages.len(), directory.display()));
    Ok(ExitCode::SUCCESS)
}

fn create(directory: &Path) -> anyhow::Result<()> {
    let made = std::fs::create_dir_all(directory).with_context(|| format!("cannot create {}", directory.display()));
    made.map_err(|error| WhileRunning(error).into())
}

/// The page of a command and those of its subcommands, with their files' names.
fn gather(command: &Command, pages: &mut Vec<(String, Vec<u8>)>) -> anyhow::Result<()> {
    let man = clap_mangen::Man::new(command.clone());
    let mut page = Vec::new();
    man.render(&mut page)?;
    pages.push((man.get_filename(), page));
    let subcommands = command.get_subcommands().filter(|sub| !sub.is_hide_set() && sub.get_name() != "help");
    subcommands.into_iter().try_for_each(|sub| gather(sub, pages))
}
