//! What the environment says of the processes of a training: torchrun's variables, which a shell loop sets as well.

use super::RanksError;
use std::time::Duration;

/// Which of several processes this is, and where they meet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// `RANK`: this process, from 0.
    pub rank: usize,
    /// `WORLD_SIZE`: how many there are.
    pub size: usize,
    /// `LOCAL_RANK`: this process among those of its host.
    pub local_rank: usize,
    /// `MASTER_ADDR`: the host of rank 0.
    pub host: String,
    /// `MASTER_PORT`: where the store is on that host.
    pub port: u16,
    /// `TORCHELASTIC_USE_AGENT_STORE`: torchrun holds the store, and not rank 0.
    pub agent_store: bool,
    /// Stands before the store's keys: torchrun's store outlives its processes, and what earlier ones wrote is not meant.
    pub prefix: String,
}

/// How long to wait for the others, and how often to ask them for the time.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Until all have come.
    pub join: Duration,
    /// For a sign of life from one that has come.
    pub silence: Duration,
    /// From one comparison of the clocks to the next.
    pub compare: Duration,
}

impl Patience {
    /// With a comparison of the clocks each minute.
    #[must_use]
    pub const fn new(join: Duration, silence: Duration) -> Self {
        Self { join, silence, compare: Duration::from_secs(60) }
    }
}

impl Launch {
    /// From this process's environment; `None`: there is one process, or nothing says how many.
    ///
    /// # Errors
    /// A variable is missing, or is no number.
    pub fn from_env() -> Result<Option<Self>, RanksError> {
        Self::parse(|name| std::env::var(name).ok())
    }

    fn parse(get: impl Fn(&str) -> Option<String>) -> Result<Option<Self>, RanksError> {
        let text = |name: &'static str| {
            let problem = "is not set, and WORLD_SIZE says that there are several processes".to_owned();
            get(name).filter(|text| !text.is_empty()).ok_or(RanksError::Variable { name, problem })
        };
        let number = |name: &'static str| {
            let text = text(name)?;
            text.parse::<usize>().map_err(|_| RanksError::Variable { name, problem: format!("is `{text}`, no number") })
        };
        if get("WORLD_SIZE").is_none_or(|size| size.is_empty()) {
            return Ok(None);
        }
        let size = number("WORLD_SIZE")?;
        if size < 2 {
            return Ok(None);
        }
        let (rank, port) = (number("RANK")?, number("MASTER_PORT")?);
        if rank >= size {
            let problem = format!("is {rank}, and WORLD_SIZE {size}: ranks count from 0");
            return Err(RanksError::Variable { name: "RANK", problem });
        }
        let wrong = |problem| RanksError::Variable { name: "MASTER_PORT", problem };
        let port = match u16::try_from(port) {
            // The system would choose one, of which the other ranks know nothing.
            Ok(0) => return Err(wrong("is 0: choose a port that is free on MASTER_ADDR's host, as 29500".to_owned())),
            Ok(port) => port,
            Err(_) => return Err(wrong(format!("is {port}, no port"))),
        };
        let attempt = get("TORCHELASTIC_RESTART_COUNT").unwrap_or_default();
        Ok(Some(Self {
            rank,
            size,
            local_rank: number("LOCAL_RANK")?,
            host: text("MASTER_ADDR")?,
            port,
            agent_store: get("TORCHELASTIC_USE_AGENT_STORE").is_some_and(|word| word.eq_ignore_ascii_case("true")),
            prefix: format!("dflash/attempt_{}/", if attempt.is_empty() { "0" } else { &attempt }),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    fn parse(variables: &[(&str, &str)]) -> Result<Option<Launch>, String> {
        let map: HashMap<_, _> = variables.iter().copied().collect();
        Launch::parse(|name| map.get(name).map(|text| (*text).to_owned())).map_err(|error| error.to_string())
    }

    const LOOP: [(&str, &str); 5] =
        [("WORLD_SIZE", "2"), ("RANK", "1"), ("LOCAL_RANK", "1"), ("MASTER_ADDR", "a"), ("MASTER_PORT", "29500")];

    #[test]
    fn one_process_needs_no_variables() {
        assert_eq!(parse(&[]), Ok(None));
        assert_eq!(parse(&[("WORLD_SIZE", "1"), ("RANK", "0")]), Ok(None));
        assert_eq!(parse(&[("RANK", "3")]), Ok(None));
    }

    #[test]
    fn a_shell_loop_and_torchrun_are_understood() {
        let launch = parse(&LOOP).unwrap().unwrap();
        assert_eq!((launch.rank, launch.size, launch.local_rank, launch.port), (1, 2, 1, 29500));
        assert_eq!((launch.agent_store, launch.prefix.as_str()), (false, "dflash/attempt_0/"));
        let elastic = [("TORCHELASTIC_USE_AGENT_STORE", "True"), ("TORCHELASTIC_RESTART_COUNT", "3")];
        let launch = parse(&[&LOOP[..], &elastic].concat()).unwrap().unwrap();
        assert_eq!((launch.agent_store, launch.prefix.as_str()), (true, "dflash/attempt_3/"));
    }

    #[test]
    fn what_is_missing_or_wrong_is_named() {
        let without = |name: &str| {
            let rest: Vec<_> = LOOP.into_iter().filter(|(own, _)| *own != name).collect();
            parse(&rest).unwrap_err()
        };
        for name in ["RANK", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT"] {
            assert!(without(name).starts_with(&format!("{name} is not set")), "{}", without(name));
        }
        assert!(parse(&[("WORLD_SIZE", "two")]).unwrap_err().starts_with("WORLD_SIZE is `two`, no number"));
        let out = parse(&[&LOOP[..], &[("RANK", "2")]].concat()).unwrap_err();
        for (port, problem) in [("0", "MASTER_PORT is 0: choose a port"), ("65536", "MASTER_PORT is 65536, no port")] {
            let wrong = parse(&[&LOOP[..], &[("MASTER_PORT", port)]].concat()).unwrap_err();
            assert!(wrong.starts_with(problem), "{wrong}");
        }
        assert!(out.starts_with("RANK is 2, and WORLD_SIZE 2: ranks count from 0"), "{out}");
    }
}
