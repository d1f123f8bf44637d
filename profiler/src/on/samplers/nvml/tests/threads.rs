//! The thread itself: without a library, and with one that blocks.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use dflash_timeline::record::Severity;
use nvml_wrapper::Nvml;
use nvml_wrapper::error::NvmlError;

use crate::NvmlOptions;
use crate::on::samplers::nvml::asker::Clocks;
use crate::on::samplers::nvml::gpus::{Answer, Fault, Gpus, Listing, Query};
use crate::on::samplers::nvml::visible::Visible;
use crate::on::samplers::nvml::watch::Watch;
use crate::on::samplers::nvml::{go_on, run};
use crate::on::samplers::sink::Sink;
use crate::on::samplers::tests::Readings;
use crate::on::samplers::worker::{End, Worker};

const SECOND: Duration = Duration::from_secs(1);
const LONG: Duration = Duration::from_secs(3600);

/// Sends what it is given.
#[derive(Debug)]
struct Sent(Sender<(Severity, String)>);

impl Sink for Sent {
    fn sample(&mut self, name: &str, _unit: &'static str, _value: f64) {
        panic!("there is nothing to sample, and yet {name} is");
    }

    fn mark(&mut self, severity: Severity, text: String) {
        self.0.send((severity, text)).unwrap();
    }
}

/// What a thread says whose library does not open. It must end by itself: nobody tells it to.
fn said(open: impl FnOnce() -> Result<Nvml, NvmlError> + Send + 'static) -> Vec<(Severity, String)> {
    let (send, marks) = channel();
    let worker = Worker::start("test-nvml", move |stop| {
        run(stop, SECOND, &NvmlOptions::default(), &Visible::default(), open, Sent(send));
    });
    let said = marks.iter().collect();
    assert_eq!(worker.unwrap().end(LONG), End::Done);
    said
}

#[test]
fn a_library_that_does_not_open_gives_one_mark_and_an_end() {
    let absent = said(|| Nvml::builder().lib_path("libnvidia-nothing.so.1".as_ref()).init());
    assert_eq!((absent.len(), absent[0].0), (1, Severity::Info));
    assert!(absent[0].1.contains("libnvidia-nothing.so.1"), "{absent:?}");
    for (error, severity, words) in [
        (NvmlError::LibRmVersionMismatch, Severity::Warning, "restart the machine"),
        (NvmlError::DriverNotLoaded, Severity::Info, "driver is not loaded"),
        (NvmlError::NoPermission, Severity::Warning, "/dev/nvidiactl"),
        (NvmlError::Unknown, Severity::Warning, "an internal driver error occurred"),
    ] {
        let said = said(move || Err(error));
        assert_eq!((said.len(), said[0].0), (1, severity), "{said:?}");
        assert!(said[0].1.contains(words), "{said:?}");
    }
}

/// A library whose calls never return.
#[derive(Debug)]
struct Blocked {
    called: Sender<()>,
    release: Receiver<()>,
}

impl Gpus for Blocked {
    fn driver(&self) -> Option<String> {
        None
    }

    fn list(&mut self) -> Result<Listing, Fault> {
        self.called.send(()).unwrap();
        let _ = self.release.recv();
        Err(Fault::Unsupported)
    }

    fn ask(&mut self, _gpu: usize, _query: Query) -> Result<Answer, Fault> {
        Err(Fault::Unsupported)
    }
}

#[test]
fn a_call_that_blocks_does_not_keep_the_end() {
    let ((called, calls), (free, release)) = (channel(), channel::<()>());
    let worker = Worker::start("test-nvml", move |stop| {
        let mut sink = Readings::default();
        let options = NvmlOptions::default();
        let gpus = Blocked { called, release };
        let watch = Watch::start(gpus, Clocks::real(), (SECOND, &options), &Visible::default(), &mut sink);
        go_on(stop, watch, &mut sink);
    });
    calls.recv().unwrap();
    // The call returns only after this.
    assert_eq!(worker.unwrap().end(Duration::from_millis(20)), End::LeftBehind);
    drop(free);
}
