//! `[train] attention`: which kernels compute attention on GPUs.

use super::lane::cause_text;
use crate::config::Attention;
use crate::error::TrainError;
use crate::model::attention::{causal, masked, share_heads};
use crate::model::kernels::sound;
use crate::target::TargetConfig;
use dflash_torch::fused::enable_attend;
use dflash_torch::{AttentionKernels, Stream, allow_attention};
use std::panic::{AssertUnwindSafe, catch_unwind};
use tch::{Device, Kind, Tensor};

/// From now on attention is computed as `asked`, in the whole process. Where no device is a GPU nothing is changed: a CPU
/// has one way.
///
/// # Errors
/// A kernel that was asked for by name does not serve: there is no GPU, or it was tried on small tensors there and refused.
pub(crate) fn choose(
    asked: Attention,
    devices: impl Iterator<Item = Device>,
    like: (&TargetConfig, Kind),
) -> Result<(), TrainError> {
    let gpus: Vec<Device> = devices.filter(|device| device.is_cuda()).collect();
    if gpus.is_empty() {
        return match asked {
            Attention::Own | Attention::Auto | Attention::Math => Ok(()),
            _ => Err(refused(asked, "no worker is on a GPU".to_owned(), "\"own\", \"auto\" or \"math\"")),
        };
    }
    set(asked, unmasked(asked));
    if matches!(asked, Attention::Own | Attention::Auto) {
        // Of all its kernels libtorch finds one that serves.
        return Ok(());
    }
    let tried = gpus.iter().try_for_each(|&device| tried(asked, device, like));
    if tried.is_err() {
        // The next training of the process must find what it would have found.
        set(Attention::Own, AttentionKernels::ALL);
    }
    tried
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

/// The kernels that attention without a mask may take.
fn unmasked(asked: Attention) -> AttentionKernels {
    let none = AttentionKernels::NONE;
    match asked {
        Attention::Own | Attention::Auto => AttentionKernels::ALL,
        Attention::Cudnn => AttentionKernels { cudnn: true, ..none },
        Attention::Flash => AttentionKernels { flash: true, ..none },
        Attention::Efficient => AttentionKernels { efficient: true, ..none },
        Attention::Math => AttentionKernels { math: true, ..none },
    }
}

/// Both ways of attention, there and back, with numbers of rows that divide by nothing.
fn tried(asked: Attention, device: Device, (config, kind): (&TargetConfig, Kind)) -> Result<(), TrainError> {
    let &TargetConfig { heads, kv_heads: groups, head_dim: dim, .. } = config;
    let made = |count: i64, rows: i64| Tensor::ones([2, count, rows, dim], (kind, device)).set_requires_grad(true);
    let mask = Tensor::zeros([2, 1, 13, 37], (kind, device));
    let try_on = |what: &str, work: &dyn Fn() -> Tensor| {
        let there_and_back = || {
            tch::with_grad(|| work().sum(Kind::Float).backward());
            // What the device refuses it says when it is waited for.
            sound(Stream::current(device).and_then(|stream| stream.synchronize()));
        };
        catch_unwind(AssertUnwindSafe(there_and_back)).map_err(|cause| {
            let why = format!("{what} in {kind:?}: {}", cause_text(cause.as_ref()));
            refused(asked, why, "\"own\" or \"auto\"")
        })
    };
    try_on("causal attention", &|| causal(&made(heads, 37), &made(groups, 37), &made(groups, 37)))?;
    if asked == Attention::Flash {
        set(asked, AttentionKernels { efficient: true, ..unmasked(asked) });
    }
    try_on("attention under a mask", &|| masked(&made(heads, 13), &made(groups, 37), &made(groups, 37), &mask))
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
        let on_cpu = |asked| choose(asked, [Device::Cpu; 2].into_iter(), (&target, Kind::Float));
        for asked in [Attention::Own, Attention::Auto, Attention::Math] {
            on_cpu(asked).unwrap();
        }
        for asked in [Attention::Cudnn, Attention::Flash, Attention::Efficient] {
            let error = on_cpu(asked).unwrap_err();
            let name = word(asked);
            let want =
                format!("[train] attention = \"{name}\": no worker is on a GPU; take \"own\", \"auto\" or \"math\"");
            assert_eq!((error.to_string(), error.while_running()), (want, false));
            assert_eq!(serde_json::to_value(asked).unwrap(), name);
        }
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
