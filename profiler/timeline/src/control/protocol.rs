//! What goes over a run's control socket: a JSON object a line, in UTF-8.
//!
//! A request is one line of at most [`LONGEST_REQUEST`] bytes. It is answered by one line, before which there may be
//! lines of progress if it takes long: at least one every few seconds, so that a client can tell a long answer from
//! none. A connection may carry one request after the other. Fields that a side does not know are ignored.
//!
//! | request | answer |
//! |---|---|
//! | `{"do":"status"}` | `{"status":{…}}`, see [`Status`] |
//! | `{"do":"level","level":"off"}`, `"stages"`, `"layers"` | `{"done":"level: stages -> off, by ctl"}` |
//! | `{"do":"mark","text":"…","warning":false}` | `{"done":"…"}` |
//! | `{"do":"cpu_start","hz":99}` | `{"done":"…"}` |
//! | `{"do":"cpu_stop"}` | `{"cpu":{…}}`, see [`CpuReport`] |
//! | `{"do":"cpu","seconds":10,"hz":99}` | progress, then as `cpu_stop`; ends early if the client goes |
//! | `{"do":"stacks"}` | `{"stacks":[{…}]}`, see [`ThreadStack`] |
//! | `{"do":"kernels","iterations":5,"wait":true}` | progress, then `{"file":"…"}`: when written, or without `wait` once the capture has begun |
//! | `{"do":"checkpoint","wait":true}` | progress, then `{"file":"…"}`; without `wait` `{"done":"…"}` at once |
//! | `{"do":"stop"}` | `{"done":"…"}` |
//!
//! Each request may carry `"by":"…"`: who asks, for the marks in the timeline. Whatever fails or is refused is answered
//! by `{"error":"…"}`, a sentence for people; progress is `{"progress":"…"}`.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::status::{CpuReport, Status, ThreadStack};

/// Bytes that a request may have, its line end among them.
pub const LONGEST_REQUEST: usize = 64 << 10;

/// One request: what, and by whom.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// Who asks, e.g. `ctl` or `top`; empty: nobody said.
    #[serde(default)]
    pub by: String,
    /// What is asked.
    #[serde(flatten)]
    pub ask: Ask,
}

/// What may be asked of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum Ask {
    /// Where it stands.
    Status,
    /// Another level: `off`, `stages` or `layers`.
    Level {
        /// The level's name.
        level: String,
    },
    /// A mark in the timeline.
    Mark {
        /// What it says.
        text: String,
        /// Loud.
        #[serde(default)]
        warning: bool,
    },
    /// Begin to sample CPU time.
    CpuStart {
        /// Samples a second and thread.
        hz: u32,
    },
    /// End sampling.
    CpuStop,
    /// Sample for so long.
    Cpu {
        /// How long, in seconds.
        seconds: f64,
        /// Samples a second and thread.
        hz: u32,
    },
    /// What every thread does now.
    Stacks,
    /// Capture the kernels of the next iterations.
    Kernels {
        /// How many iterations.
        iterations: u64,
        /// Answer when the file is written.
        #[serde(default)]
        wait: bool,
    },
    /// Write a checkpoint after the step that runs.
    Checkpoint {
        /// Answer when it is written.
        #[serde(default)]
        wait: bool,
    },
    /// End the training as SIGINT does: after the step that runs, with what has been learnt.
    Stop,
}

/// A line of an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// Not the answer yet: what is being waited for.
    Progress(String),
    /// It was done; what, in words.
    Done(String),
    /// It was not; why, in words.
    Error(String),
    /// To `status`.
    Status(Box<Status>),
    /// To `cpu_stop` and `cpu`.
    Cpu(CpuReport),
    /// To `stacks`.
    Stacks(Vec<ThreadStack>),
    /// What was written.
    File(PathBuf),
}

impl Request {
    /// Reads a request; the error is a sentence for whoever sent it.
    ///
    /// # Errors
    /// The line is none.
    pub fn parse(line: &[u8]) -> Result<Self, String> {
        serde_json::from_slice(line).map_err(|error| format!("not a request: {error}"))
    }

    /// The request as a line.
    #[must_use]
    pub fn line(&self) -> String {
        line(self)
    }
}

impl Answer {
    /// The answer as a line.
    #[must_use]
    pub fn line(&self) -> String {
        line(self)
    }
}

fn line(value: &impl Serialize) -> String {
    // Plain structures with text keys: nothing that JSON lacks. Were there anything, the peer would learn of it.
    let text = serde_json::to_string(value).unwrap_or_else(|error| format!(r#"{{"error":"{error}"}}"#));
    text + "\n"
}

#[cfg(test)]
mod tests {
    use super::{Answer, Ask, Request};

    #[test]
    fn lines_as_the_table_says() {
        let request = Request { by: "ctl".into(), ask: Ask::Kernels { iterations: 5, wait: true } };
        assert_eq!(request.line(), "{\"by\":\"ctl\",\"do\":\"kernels\",\"iterations\":5,\"wait\":true}\n");
        assert_eq!(Request::parse(request.line().as_bytes()), Ok(request));
        let plain = Request::parse(br#"{"do":"mark","text":"a\nb","later":1}"#).unwrap();
        assert_eq!(plain.ask, Ask::Mark { text: "a\nb".into(), warning: false });
        assert_eq!(Answer::File("/a/b".into()).line(), "{\"file\":\"/a/b\"}\n");
        assert!(!Answer::Done("a\nb".into()).line().trim_end().contains('\n'), "one line");
    }

    #[test]
    fn what_is_no_request_is_said() {
        for line in [&b""[..], b"status", b"{}", b"{\"do\":\"dance\"}", b"{\"do\":\"level\"}", b"\xff"] {
            assert!(Request::parse(line).unwrap_err().starts_with("not a request: "), "{line:?}");
        }
    }
}
