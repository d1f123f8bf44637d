//! One minute of two GPUs: one divided (MIG), one that is lost half-way.

use super::simulated::{Machine, SECOND, card, mig};
use crate::on::samplers::nvml::gpus::{Part, Query};
use crate::{GpuDevice, NvmlOptions};

#[test]
fn a_minute_of_two_gpus() {
    let (mut divided, mut second) = (card(1), card(3));
    divided.gpu.part = Part::Divided;
    second.lacks = vec![Query::Nvlink];
    second.lost = 30 * SECOND + SECOND / 2..1000 * SECOND;
    second.throttle = vec![(5 * SECOND, 0x4), (20 * SECOND, 0x44)];
    let machine = Machine::new(vec![divided, mig(2, 0), second]);
    let device = |name: &str, id: &str| GpuDevice { name: name.to_owned(), id: id.to_owned() };
    let devices = vec![device("cuda:0", "MIG-2222"), device("cuda:1", "GPU-33")];
    let options = NvmlOptions { pcie: true, devices, ..NvmlOptions::default() };
    let mut sink = machine.sink();
    let mut watch = machine.start(&options, &mut sink).unwrap();
    machine.run(&mut watch, 60 * SECOND, &mut sink);
    watch.last(&mut sink);
    insta::assert_snapshot!(format!("{}\n\n{}", sink.table(), sink.marks.join("\n")), @r"
    gpu.cuda:0.memory.total (bytes): 62 readings, 150000000000 … 150000000000
    gpu.cuda:0.memory.used (bytes): 62 readings, 1000000000 … 61000000000
    gpu.cuda:1.clock.memory (MHz): 31 readings, 3201 … 3201
    gpu.cuda:1.clock.sm (MHz): 31 readings, 1980 … 1980
    gpu.cuda:1.energy (J): 4 readings, 0 … 18000
    gpu.cuda:1.memory.total (bytes): 31 readings, 150000000000 … 150000000000
    gpu.cuda:1.memory.used (bytes): 31 readings, 1000000000 … 31000000000
    gpu.cuda:1.pcie.rx (bytes/s): 7 readings, 5000000000 … 5000000000
    gpu.cuda:1.pcie.tx (bytes/s): 6 readings, 6000000000 … 6000000000
    gpu.cuda:1.power (W): 31 readings, 600 … 630
    gpu.cuda:1.power.limit (W): 31 readings, 700 … 700
    gpu.cuda:1.temperature (°C): 31 readings, 40 … 55
    gpu.cuda:1.throttle (bits): 31 readings, 0 … 68
    gpu.cuda:1.utilization (%): 31 readings, 90 … 90
    gpu.cuda:1.utilization.memory (%): 31 readings, 40 … 40
    profiler.nvml.calls (calls): 63 readings, 0 … 340
    profiler.nvml.cpu (ns): 63 readings, 0 … 32198000
    sampler.nvml.worst (us): 63 readings, 0 … 20600

    0.0 s Info: NVML (driver 580.159) samples cuda:0 (NVIDIA H200 MIG 1g.18gb, MIG-2222 at 00000000:2A:00.0), without utilisation, power, power limit, SM clock, memory clock, temperature, throttle reasons, total energy, NVLink throughput; cuda:1 (NVIDIA H200, GPU-3333 at 00000000:3A:00.0), without NVLink throughput
    0.5 s Info: cuda:0 does not give its PCIe throughput received
    2.5 s Info: cuda:0 does not give its PCIe throughput sent
    5.0 s Info: cuda:1 is slowed by its power limit
    20.0 s Warning: cuda:1 is slowed by its temperature (the hardware halves the clocks)
    30.5 s Warning: cuda:1 (NVIDIA H200, GPU-3333 at 00000000:3A:00.0) is lost: device fell off the bus; nothing of it is sampled, it is tried again each 60 s
    ");
    assert_eq!(machine.asked(1, Query::Power).len(), 1, "what is not supported is asked once");
    assert!(machine.log.borrow().iter().all(|(_, gpu, _)| *gpu != 0), "the whole GPU is not this process's");
}
