//! Which GPUs are taken, as a table.

use super::simulated::{Machine, card, mig};
use crate::on::samplers::nvml::details::details;
use crate::on::samplers::nvml::gpus::{Gpu, Part};
use crate::on::samplers::nvml::select::select;
use crate::on::samplers::nvml::visible::Visible;
use crate::{GpuDevice, NvmlOptions};

fn gpu(uuid: &str, pci: &str, model: &str) -> Gpu {
    Gpu { uuid: uuid.to_owned(), pci: pci.to_owned(), model: model.to_owned(), part: Part::Whole }
}

/// NVML's order is not the bus's here: on the bus it is c, a, b.
fn three() -> Vec<Gpu> {
    vec![
        gpu("GPU-a1b2", "00000000:65:00.0", "H200"),
        gpu("GPU-a1c3", "00000001:01:00.0", "H200"),
        gpu("GPU-77ff", "00000000:0A:00.0", "H200"),
    ]
}

/// `cuda:0=2 …` and how many notes.
fn by_environment(gpus: &[Gpu], devices: Option<&str>, order: Option<&str>) -> (String, usize) {
    let environment = Visible { devices: devices.map(str::to_owned), order: order.map(str::to_owned) };
    let selection = select(gpus, &NvmlOptions::default(), &environment);
    assert_eq!(selection.warnings, Vec::<String>::new());
    let chosen: Vec<_> = selection.chosen.iter().map(|(name, gpu)| format!("{name}={gpu}")).collect();
    (chosen.join(" "), selection.notes.len())
}

#[test]
fn cuda_visible_devices() {
    for (list, expected, notes) in [
        (None, "cuda:0=2 cuda:1=0 cuda:2=1", 0),
        (Some("0"), "cuda:0=2", 0),
        (Some("2,0"), "cuda:0=1 cuda:1=2", 0),
        (Some(" 1 , 2 "), "cuda:0=0 cuda:1=1", 0),
        (Some("GPU-77ff"), "cuda:0=2", 0),
        (Some("GPU-77"), "cuda:0=2", 0),
        (Some("GPU-a1c,GPU-a1b"), "cuda:0=1 cuda:1=0", 0),
        (Some("1,GPU-77"), "cuda:0=0 cuda:1=2", 0),
        // The beginning of two.
        (Some("GPU-a1"), "", 1),
        // What follows an entry that names nothing is ignored.
        (Some("0,7,1"), "cuda:0=2", 1),
        (Some("0,-1,1"), "cuda:0=2", 0),
        (Some("0,x"), "cuda:0=2", 1),
        (Some("1,1"), "cuda:0=0", 1),
        (Some("GPU-dead"), "", 1),
        (Some("MIG-77ff"), "", 1),
        // None.
        (Some(""), "", 0),
        (Some("-1"), "", 0),
        (Some("NoDevFiles"), "", 0),
    ] {
        assert_eq!(by_environment(&three(), list, None), (expected.to_owned(), notes), "{list:?}");
    }
}

#[test]
fn divided_gpus() {
    // On the bus: a whole one, one in two parts, one without a part.
    let mut gpus = vec![card(1).gpu, card(2).gpu, mig(5, 1).gpu, mig(6, 1).gpu, card(3).gpu];
    (gpus[1].part, gpus[4].part) = (Part::Divided, Part::Divided);
    for (list, expected, notes) in [
        // CUDA shows one part, and no whole GPU beside it.
        (None, "cuda:0=2", 0),
        (Some("0"), "cuda:0=0", 0),
        (Some("1"), "cuda:0=2", 0),
        (Some("GPU-2222"), "cuda:0=2", 0),
        (Some("MIG-6666"), "cuda:0=3", 0),
        (Some("MIG-66"), "cuda:0=3", 0),
        (Some("2"), "", 1),
    ] {
        assert_eq!(by_environment(&gpus, list, Some("PCI_BUS_ID")), (expected.to_owned(), notes), "{list:?}");
    }
    let mut legacy = vec![card(1).gpu, mig(5, 0).gpu, mig(6, 0).gpu];
    legacy[1].uuid = "MIG-GPU-1111/1/10".to_owned();
    legacy[2].uuid = "MIG-GPU-1111/1/1".to_owned();
    legacy[0].part = Part::Divided;
    assert_eq!(by_environment(&legacy, Some("MIG-GPU-1111/1/1"), None).0, "cuda:0=2", "whole, not a beginning");
}

#[test]
fn a_guess_is_said() {
    let mut gpus = three();
    gpus[0].model = "L4".to_owned();
    for (list, order, notes) in [
        (None, None, 1),
        (Some("0"), None, 1),
        (Some("0"), Some("FASTEST_FIRST"), 1),
        (Some("0"), Some("PCI_BUS_ID"), 0),
        (Some("GPU-77,GPU-a1b"), None, 0),
        (Some(""), None, 0),
    ] {
        assert_eq!(by_environment(&gpus, list, order).1, notes, "{list:?} {order:?}");
    }
}

#[test]
fn devices_that_the_caller_names() {
    let mut gpus = three();
    gpus[1].part = Part::Divided;
    gpus.push(mig(5, 1).gpu);
    for (id, expected) in [
        ("GPU-77ff", Some(2)),
        ("gpu-77FF", Some(2)),
        ("77ff", Some(2)),
        ("MIG-5555", Some(3)),
        ("0000:65:00.0", Some(0)),
        ("00000000:65:00.0", Some(0)),
        ("65:00", Some(0)),
        ("0001:01:00.0", Some(1)),
        ("0000:01:00.0", None),
        ("a1", None),
        ("", None),
        ("GPU-zz", None),
    ] {
        let devices = vec![GpuDevice { name: "xpu:4".to_owned(), id: id.to_owned() }];
        let options = NvmlOptions { devices, ..NvmlOptions::default() };
        // The environment does not matter then.
        let environment = Visible { devices: Some(String::new()), order: None };
        let selection = select(&gpus, &options, &environment);
        let chosen: Vec<_> = expected.into_iter().map(|gpu| ("xpu:4".to_owned(), gpu)).collect();
        assert_eq!(selection.chosen, chosen, "{id}");
        assert_eq!(selection.warnings.len(), usize::from(expected.is_none()), "{id}: {:?}", selection.warnings);
        assert_eq!(selection.notes.len(), usize::from(expected == Some(1)), "{id}: a divided GPU");
    }
}

#[test]
fn the_others_are_named_by_the_bus() {
    let mut gpus = three();
    gpus.push(mig(5, 1).gpu);
    gpus[1].part = Part::Divided;
    let options = NvmlOptions { all_devices: true, ..NvmlOptions::default() };
    let environment = Visible { devices: Some("1".to_owned()), order: None };
    let chosen = select(&gpus, &options, &environment).chosen;
    let expected = [("cuda:0", 0), ("nvml:0", 2), ("nvml:2", 1), ("nvml:2.0", 3)];
    assert_eq!(chosen, expected.map(|(name, gpu)| (name.to_owned(), gpu)));
}

#[test]
fn what_a_gpu_is_stands_in_the_order_of_cuda() {
    let environment = Visible { devices: Some("1,0".to_owned()), order: None };
    let found = details(Machine::new(vec![card(6), card(0), card(7)]), &environment);
    let names: Vec<_> = found.iter().map(|gpu| (gpu.device.as_str(), gpu.uuid.as_str())).collect();
    assert_eq!(names, [("cuda:0", "GPU-6666"), ("cuda:1", "GPU-0000")]);
    assert!(found.iter().all(|gpu| gpu.driver.is_some() && gpu.memory_bytes.is_some_and(|bytes| bytes > 1 << 30)));
    assert!(found.iter().all(|gpu| !gpu.name.is_empty()), "{found:?}");
}
