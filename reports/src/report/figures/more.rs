//! Figures of the pipeline as a whole: queues, hand-offs, goodput, lanes of one role.

use super::{Of, Writer};
use crate::error::Result;
use crate::report::Report;

pub(super) fn figures(writer: &mut Writer, report: &Report) -> Result<()> {
    queues(writer, report)?;
    handoffs(writer, report)?;
    goodput(writer, report)?;
    peers(writer, report)
}

fn queues(writer: &mut Writer, report: &Report) -> Result<()> {
    for queue in &report.queues {
        let of = Of { section: "queue", rank: queue.rank, lane: &queue.queue, ..Of::default() };
        writer.count(of, "readings", queue.samples)?;
        writer.row(of, "depth_mean", Some(queue.mean))?;
        writer.row(of, "depth_max", Some(queue.max))?;
        writer.row(of, "depth_last", Some(queue.last))?;
        writer.row(of, "capacity", queue.capacity)?;
        writer.row(of, "empty_share", queue.empty_share)?;
        writer.row(of, "full_share", queue.full_share)?;
    }
    Ok(())
}

fn handoffs(writer: &mut Writer, report: &Report) -> Result<()> {
    for pair in &report.handoffs.pairs {
        let lane = format!("{}>{}", pair.from, pair.to);
        let of = Of { section: "handoff", rank: pair.rank, lane: &lane, ..Of::default() };
        writer.count(of, "items", pair.age.count)?;
        writer.row(of, "age_mean_ns", Some(pair.age.mean_ns))?;
        writer.count(of, "age_p50_ns", pair.age.p50_ns)?;
        writer.count(of, "age_p90_ns", pair.age.p90_ns)?;
        writer.count(of, "age_p95_ns", pair.age.p95_ns)?;
        writer.count(of, "age_p99_ns", pair.age.p99_ns)?;
        writer.count(of, "age_max_ns", pair.age.max_ns)?;
        writer.row(of, "waits_for_room_share", pair.put_share)?;
        writer.row(of, "waits_for_input_share", pair.wait_share)?;
    }
    let of = Of { section: "handoff", ..Of::default() };
    writer.count(of, "never_taken", report.handoffs.never_taken)?;
    writer.count(of, "never_put", report.handoffs.never_put)
}

fn goodput(writer: &mut Writer, report: &Report) -> Result<()> {
    let Some(goodput) = &report.goodput else { return Ok(()) };
    let of = Of { section: "goodput", ..Of::default() };
    writer.count(of, "total_ns", goodput.total_ns)?;
    for (part, ns) in goodput.parts() {
        let part = part.replace([' ', '-'], "_");
        writer.count(of, &format!("{part}_ns"), ns)?;
    }
    writer.count(of, "restarts", goodput.restarts)
}

fn peers(writer: &mut Writer, report: &Report) -> Result<()> {
    for peer in &report.peers {
        let (lane, device) = (peer.lane.as_str(), peer.device.as_str());
        let of = Of { section: "peers", rank: peer.rank, lane, device, ..Of::default() };
        writer.count(of, "common_iterations", peer.iterations)?;
        writer.count(of, "own_work_p50_ns", peer.own_p50_ns)?;
        writer.row(of, "excess", Some(peer.excess))?;
        writer.count(of, "slowest", peer.slowest)?;
        writer.count(of, "straggler", u64::from(peer.straggler))?;
    }
    Ok(())
}
