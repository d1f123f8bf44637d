//! What instrumentation costs, found out in the run itself, in two ways.
//!
//! For a while now and then a lane alternates bare iterations and instrumented ones (`schedule`). The two of a pair ran
//! one after the other, in an order that was drawn, so what else changes meanwhile strikes both alike. The logarithm of
//! their ratio is one observation of the cost (`pairs`); the interval is that of the signed-rank test (`interval`), which
//! a single slow iteration does not widen. Beside it stands calls × cost per call, as measured on this machine at the
//! start (`calibrate`). A budget acts on the first of the two (`budget`).

mod budget;
mod calibrate;
mod interval;
mod pairs;
mod publish;
mod schedule;

pub(crate) use budget::Budget;
pub(crate) use calibrate::{CallCosts, calibrate};
pub(crate) use pairs::LaneCost;
pub(crate) use publish::publish;
pub(crate) use schedule::Schedule;
