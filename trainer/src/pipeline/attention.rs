//! `[train] attention`: which kernels compute attention on GPUs.

use super::lane::cause_text;
use super::run::device_name;
use crate::config::Attention;
use crate::drafter::DrafterConfig;
use crate::error::TrainError;
use crate::model::attention::{causal, masked, share_heads};
use crate::model::kernels::sound;
use crate::target::TargetConfig;
use dflash_torch::fused::enable_attend;
use dflash_torch::{AttentionKernels, Stream, allow_attention};
use std::panic::{AssertUnwindSafe, catch_unwind};
use tch::{Device, Kind, Tensor};

/// From now on attention is computed as `asked`, in the whole process, by a target and a drafter like these. Where no device is
/// a GPU nothing is changed: a CPU has one way.
///
/// # Errors
/// A kernel that was asked for by name does not serve: there is no GPU, or it was tried on small tensors there and refused.
pub fn choose(
    asked: Attention,
    devices: impl IntoIterator<Item = Device>,
    (target, drafter, kind): (&TargetConfig, &DrafterConfig, Kind),
) -> Result<(), TrainError> {
    let gpus: Vec<Device> = devices.into_iter().filter(|device| device.is_cuda()).collect();
    if gpus.is_empty() {
        return match asked {
            Attention::Own | Attention::Auto | Attention::Math => Ok(()),
            _ => Err(refused(asked, "no device is a GPU".to_owned(), "\"own\", \"auto\" or \"math\"")),
        };
    }
    let heads = (Heads::of_target(target), Heads::of_drafter(drafter));
    let tried = trials(asked, &gpus).into_iter().try_for_each(|(kernels, way, device)| {
        set(asked, kernels);
        tried(asked, way, heads, (kind, device))
    });
    match tried {
        Ok(()) => set(asked, allowed(asked, Way::Masked)),
        // The next training of the process must find what it would have found.
        Err(_) => set(Attention::Own, AttentionKernels::ALL),
    }
    tried
}

/// What attention is computed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Rows see themselves and earlier ones; there is no mask.
    Causal,
    /// What a row sees is said by a mask.
    Masked,
}

/// What is tried, in this order, and which kernels libtorch may take meanwhile. What it may take holds for the whole process:
/// causal attention comes first on every device, before masks let in what knows them.
fn trials(asked: Attention, gpus: &[Device]) -> Vec<(AttentionKernels, Way, Device)> {
    if matches!(asked, Attention::Own | Attention::Auto) {
        // Of all its kernels libtorch finds one that serves.
        return Vec::new();
    }
    let mut each: Vec<Device> = Vec::new();
    for &device in gpus {
        if !each.contains(&device) {
            each.push(device);
        }
    }
    let on_each = |way| each.iter().map(move |&device| (allowed(asked, way), way, device));
    on_each(Way::Causal).chain(on_each(Way::Masked)).collect()
}

fn set(asked: Attention, kernels: AttentionKernels) {
    enable_attend(asked == Attention::Own);
    share_heads(asked != Attention::Efficient);
    sound(allow_attention(kernels));
}

/// The word of the configuration.
fn word(asked: Attention) -> &'static str {
    match asked {
        Attention::Own => "own",
        Attention::Auto => "auto",
        Attention::Cudnn => "cudnn",
        Attention::Flash => "flash",
        Attention::Efficient => "efficient",
        Attention::Math => "math",
    }
}

/// The kernels that one way of attention may take.
fn allowed(asked: Attention, way: Way) -> AttentionKernels {
    let none = AttentionKernels::NONE;
    match asked {
        Attention::Own | Attention::Auto => AttentionKernels::ALL,
        Attention::Cudnn => AttentionKernels { cudnn: true, ..none },
        // It knows no masks.
        Attention::Flash => AttentionKernels { flash: true, efficient: way == Way::Masked, ..none },
        Attention::Efficient => AttentionKernels { efficient: true, ..none },
        Attention::Math => AttentionKernels { math: true, ..none },
    }
}

/// Query heads, key/value heads, and the numbers that each has.
#[derive(Clone, Copy, Debug)]
struct Heads([i64; 3]);

impl Heads {
    fn of_target(config: &TargetConfig) -> Self {
        Self([config.heads, config.kv_heads, config.head_dim])
    }

    fn of_drafter(config: &DrafterConfig) -> Self {
        Self([config.heads, config.kv_heads, config.head_dim])
    }

    /// Queries, keys and values, with numbers of rows that divide by nothing.
    fn made(self, [queries, keys]: [i64; 2], options: (Kind, Device)) -> [Tensor; 3] {
        let Self([heads, groups, dim]) = self;
        [(heads, queries), (groups, keys), (groups, keys)]
            .map(|(count, rows)| Tensor::ones([2, count, rows, dim], options).set_requires_grad(true))
    }

    fn causal(self, options: (Kind, Device)) -> Tensor {
        let [q, k, v] = self.made([37, 37], options);
        causal(&q, &k, &v)
    }

    fn masked(self, options: (Kind, Device)) -> Tensor {
        let [q, k, v] = self.made([13, 37], options);
        masked(&q, &k, &v, &Tensor::zeros([2, 1, 13, 37], options))
    }
}

/// One way of attention, as it will be used: a target never goes back, a drafter does.
fn tried(
    asked: Attention,
    way: Way,
    (target, drafter): (Heads, Heads),
    options @ (kind, device): (Kind, Device),
) -> Result<(), TrainError> {
    let work = || {
        match way {
            Way::Causal => drop(tch::no_grad(|| target.causal(options))),
            Way::Masked => {
                drop(tch::no_grad(|| target.masked(options)));
                tch::with_grad(|| drafter.masked(options).sum(Kind::Float).backward());
            }
        }
        // What the device refuses it says when it is waited for.
        sound(Stream::current(device).and_then(|stream| stream.synchronize()));
    };
    catch_unwind(AssertUnwindSafe(work)).map_err(|cause| {
        let what = match way {
            Way::Causal => "causal attention",
            Way::Masked => "attention under a mask",
        };
        let why = format!("{what} in {kind:?} on {}: {}", device_name(device), cause_text(cause.as_ref()));
        refused(asked, why, "\"own\" or \"auto\"")
    })
}

fn refused(asked: Attention, why: String, instead: &'static str) -> TrainError {
    TrainError::Attention { asked: word(asked), why, instead }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_of_gpus_is_refused_where_there_is_none() {
        let target = TargetConfig::named("tiny").unwrap();
        let drafter = DrafterConfig::for_target(&target, &crate::config::Drafter::default());
        let on_cpu = |asked| choose(asked, [Device::Cpu; 2], (&target, &drafter, Kind::Float));
        for asked in [Attention::Own, Attention::Auto, Attention::Math] {
            on_cpu(asked).unwrap();
        }
        for asked in [Attention::Cudnn, Attention::Flash, Attention::Efficient] {
            let error = on_cpu(asked).unwrap_err();
            let name = word(asked);
            let want =
                format!("[train] attention = \"{name}\": no device is a GPU; take \"own\", \"auto\" or \"math\"");
            assert_eq!((error.to_string(), error.while_running()), (want, false));
            assert_eq!(serde_json::to_value(asked).unwrap(), name);
        }
    }

    #[test]
    fn a_kernel_is_tried_alone_for_causal_attention_on_every_gpu() {
        let gpus = [Device::Cuda(0), Device::Cuda(1), Device::Cuda(0)];
        let flash = AttentionKernels { flash: true, ..AttentionKernels::NONE };
        let with_masks = AttentionKernels { efficient: true, ..flash };
        let want = [
            (flash, Way::Causal, Device::Cuda(0)),
            (flash, Way::Causal, Device::Cuda(1)),
            (with_masks, Way::Masked, Device::Cuda(0)),
            (with_masks, Way::Masked, Device::Cuda(1)),
        ];
        assert_eq!(trials(Attention::Flash, &gpus), want);
        let cudnn = AttentionKernels { cudnn: true, ..AttentionKernels::NONE };
        let tried = trials(Attention::Cudnn, &gpus);
        assert!(tried.len() == 4 && tried.iter().all(|(kernels, ..)| *kernels == cudnn), "{tried:?}");
        assert_eq!([Attention::Own, Attention::Auto].map(|asked| trials(asked, &gpus).len()), [0, 0]);
    }

    #[test]
    fn a_drafter_is_tried_with_its_own_heads_and_goes_back() {
        let target = TargetConfig::named("tiny").unwrap();
        let shape = DrafterConfig::for_target(&target, &crate::config::Drafter::default());
        let drafter = DrafterConfig { heads: 6, kv_heads: 3, head_dim: 10, ..shape };
        let on_cpu = (Kind::Float, Device::Cpu);
        let [of_target, of_drafter] = [Heads::of_target(&target), Heads::of_drafter(&drafter)];
        assert_eq!(of_drafter.masked(on_cpu).size(), [2, 6, 13, 10]);
        assert_eq!(of_target.causal(on_cpu).size(), [2, target.heads, 37, target.head_dim]);
        assert!(of_drafter.masked(on_cpu).requires_grad());
    }

    #[test]
    fn another_word_is_refused_and_the_words_are_named() {
        let path = std::path::Path::new("x.toml");
        let error = crate::config::Config::parse("[train]\nattention = \"sdpa\"\n", path).unwrap_err().to_string();
        for word in ["sdpa", "own", "auto", "cudnn", "flash", "efficient", "math"] {
            assert!(error.contains(&format!("`{word}`")), "{error}");
        }
    }
}
