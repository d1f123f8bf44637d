//! Values that the types allow and the training cannot use.

use super::{Config, ConfigError, FeatureCache, check_sim as sim};
use crate::target::TargetConfig;
use std::path::Path;

type Problem = Option<String>;

/// Refuses a configuration that cannot work, naming the key.
pub(super) fn check(config: &Config, path: &Path) -> Result<(), ConfigError> {
    // What simulated workers do not need may be missing, and what stands for a model and its data.
    let simulated = config.pipeline.is_simulated();
    let unused = |section: &str, key: &str| match section {
        "model" | "data" => simulated || config.random.is_on(),
        _ => simulated && (section, key) == ("drafter", "mask_token_id"),
    };
    for (section, key, problem) in problems(config).into_iter().chain(sim::problems(config)) {
        if let Some(problem) = problem.filter(|_| !unused(section, key)) {
            return Err(ConfigError::Value { path: path.into(), section, key, problem });
        }
    }
    Ok(())
}

fn problems(c: &Config) -> Vec<(&'static str, &'static str, Problem)> {
    let (d, t, p) = (&c.drafter, &c.train, &c.pipeline);
    vec![
        ("model", "target", c.model.target.as_os_str().is_empty().then(|| "give the target's directory".to_owned())),
        ("run", "name", bad_name(&c.run.name)),
        ("drafter", "layers", at_least_one(d.layers)),
        (
            "drafter",
            "block_size",
            (d.block_size < 2).then(|| "a block has an anchor and at least one more token: write 2 or more".to_owned()),
        ),
        (
            "drafter",
            "mask_token_id",
            (d.mask_token_id < 0)
                .then(|| "give the id of a token that no text contains (Qwen3: 151669; SmolLM2: 16)".to_owned())
                .or_else(|| random_mask(c)),
        ),
        ("drafter", "initializer_range", positive(d.initializer_range)),
        ("drafter", "final_norm_init", positive(d.final_norm_init)),
        ("drafter", "layer_types", layer_types(d)),
        ("drafter", "sliding_window", at_least_one(d.sliding_window)),
        ("train", "steps", at_least_one(t.steps)),
        ("train", "batch", at_least_one(t.batch)),
        ("train", "anchors", at_least_one(t.anchors)),
        ("train", "accumulate", at_least_one(t.accumulate)),
        ("train", "gamma", not_negative(t.gamma)),
        ("train", "learning_rate", positive(t.learning_rate)),
        ("train", "muon_learning_rate", positive(t.muon_learning_rate)),
        ("train", "muon_momentum", share(t.muon_momentum)),
        ("train", "beta1", share(t.beta1)),
        ("train", "beta2", share(t.beta2)),
        ("train", "weight_decay", not_negative(t.weight_decay)),
        ("train", "muon_weight_decay", not_negative(t.muon_weight_decay)),
        ("train", "warmup", share(t.warmup)),
        ("train", "clip", not_negative(t.clip)),
        ("train", "dpace_alpha", share(t.dpace_alpha)),
        ("train", "noise_start", not_negative(t.noise_start)),
        ("train", "noise_end", not_negative(t.noise_end)),
        ("train", "decay", share(t.decay)),
        ("train", "min_rate", share(t.min_rate)),
        ("train", "candidate_low", (t.candidate_low < 0).then(|| "write 0 or more".to_owned())),
        ("pipeline", "batch_queue", at_least_one(p.batch_queue)),
        ("pipeline", "hs_queue", at_least_one(p.hs_queue)),
        ("pipeline", "hs_queue_bytes", size(&p.hs_queue_bytes)),
        ("pipeline", "join_seconds", at_least_one(p.join_seconds as usize)),
        ("pipeline", "silence_seconds", at_least_one(p.silence_seconds as usize)),
        ("pipeline", "feature_bytes", size(&p.feature_bytes)),
        ("profile", "log_every", at_least_one(c.profile.log_every)),
        (
            "profile",
            "max_overhead",
            percent(&c.profile.max_overhead)
                .is_none()
                .then(|| "write a percentage like \"0.5%\", or \"off\"".to_owned()),
        ),
        ("profile", "keep", size(&c.profile.keep)),
        ("profile", "bare_every", at_least_one(c.profile.bare_every as usize)),
        ("data", "generate_batch", at_least_one(c.data.generate_batch)),
        ("data", "max_new_tokens", at_least_one(c.data.max_new_tokens)),
        ("data", "temperature", not_negative(c.data.temperature)),
        ("data", "prompts", path_missing(&c.data.prompts)),
        ("data", "heldout", path_missing(&c.data.heldout)),
        ("data", "shards", path_missing(&c.data.shards)),
        ("eval", "prompts", at_least_one(c.eval.prompts)),
        ("eval", "max_new_tokens", at_least_one(c.eval.max_new_tokens)),
        ("eval", "temperature", not_negative(c.eval.temperature)),
        ("random", "target", random_target(c)),
        ("random", "tokens", random_tokens(c)),
        ("random", "samples", at_least_one(c.random.samples)),
        (
            "eval",
            "every",
            (c.random.is_on() && c.eval.every > 0).then(|| "with [random] there is nothing to evaluate: 0".to_owned()),
        ),
        ("pipeline", "feature_cache", random_cache(c)),
    ]
}

fn random_target(c: &Config) -> Problem {
    let unknown = c.random.is_on() && TargetConfig::named(&c.random.target).is_none();
    unknown.then(|| format!("no shape is called `{}`: {}", c.random.target, TargetConfig::NAMES.join(", ")))
}

/// The last blocks reach behind the text, and have positions too.
fn random_tokens(c: &Config) -> Problem {
    let most = TargetConfig::named(&c.random.target)?.max_positions - c.drafter.block_size as i64;
    let tokens = c.random.tokens;
    (tokens < 2 || tokens as i64 > most).then(|| {
        format!("a text for {} has 2 to {most} tokens, so that blocks have positions, not {tokens}", c.random.target)
    })
}

fn random_mask(c: &Config) -> Problem {
    let (shape, mask) = (TargetConfig::named(&c.random.target)?, c.drafter.mask_token_id);
    (mask < 1 || mask >= shape.vocab_size)
        .then(|| format!("{mask} is no id of [random] target {}: 1 to {}", c.random.target, shape.vocab_size - 1))
}

/// Files of hidden states would outlive weights that nobody has any more.
fn random_cache(c: &Config) -> Problem {
    (c.random.is_on() && c.pipeline.feature_cache == FeatureCache::Disk)
        .then(|| "with [random] nothing is kept on the disk: write \"off\" or \"memory\"".to_owned())
}

/// The share that a percentage is; `off` is infinite.
pub(crate) fn percent(text: &str) -> Option<f64> {
    if text == "off" {
        return Some(f64::INFINITY);
    }
    let share = text.strip_suffix('%')?.trim().parse::<f64>().ok()? / 100.0;
    (share.is_finite() && share > 0.0).then_some(share)
}

/// The bytes that a size means; `Some(None)`: `all`.
pub(crate) fn bytes(text: &str) -> Option<Option<u64>> {
    if text == "all" {
        return Some(None);
    }
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic()).trim();
    let unit: f64 = match text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.' || c == ' ') {
        "MB" => 1e6,
        "GB" => 1e9,
        "TB" => 1e12,
        _ => return None,
    };
    let size = digits.parse::<f64>().ok()? * unit;
    (size >= 1e6).then_some(Some(size as u64))
}

fn layer_types(d: &super::Drafter) -> Problem {
    let (given, layers) = (d.layer_types.len(), d.layers);
    (given != 0 && given != layers).then(|| format!("{given} words for {layers} layers: write one a layer, or none"))
}

fn size(text: &str) -> Problem {
    bytes(text).is_none().then(|| "write a size like \"500 MB\" or \"20 GB\", or \"all\"".to_owned())
}

fn path_missing(path: &Path) -> Problem {
    path.as_os_str().is_empty().then(|| "give a path".to_owned())
}

fn bad_name(name: &str) -> Problem {
    let fine = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
    (!fine).then(|| format!("`{name}` becomes part of a directory's name: use letters, digits, '-', '_' and '.'"))
}

fn at_least_one(value: usize) -> Problem {
    (value == 0).then(|| "write 1 or more".to_owned())
}

fn positive(value: f64) -> Problem {
    (!(value.is_finite() && value > 0.0)).then(|| format!("{value} is not above 0"))
}

fn not_negative(value: f64) -> Problem {
    (!(value.is_finite() && value >= 0.0)).then(|| format!("{value} is not 0 or more"))
}

fn share(value: f64) -> Problem {
    (!(0.0..1.0).contains(&value)).then(|| format!("{value} is not from 0 up to (not including) 1"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bad_value_is_named() {
        let text = "[model]\ntarget = \"m\"\n[data]\nprompts = \"p\"\nheldout = \"h\"\nshards = \"s\"\n[drafter]\nmask_token_id = 16\n[train]\nwarmup = 1.5\n";
        let error = Config::parse(text, Path::new("x.toml")).unwrap_err().to_string();
        assert_eq!(error, "x.toml: [train] warmup: 1.5 is not from 0 up to (not including) 1");
    }

    #[test]
    fn random_weights_need_no_model_and_a_known_shape() {
        let parse = |text: &str| Config::parse(text, Path::new("x.toml")).map_err(|error| error.to_string());
        let text = "[random]\ntarget = \"tiny\"\n[drafter]\nmask_token_id = 383\n";
        assert!(parse(text).unwrap().random.is_on());
        let unknown = parse(&text.replace("tiny", "gpt-2")).unwrap_err();
        assert_eq!(unknown, "x.toml: [random] target: no shape is called `gpt-2`: qwen3-8b, qwen3-0.6b, tiny");
        let refused = |other: &str, why: &str| {
            let error = parse(other).unwrap_err();
            assert!(error.contains(why), "{error}");
        };
        refused(&text.replace("383", "384"), "[drafter] mask_token_id: 384 is no id of [random] target tiny: 1 to 383");
        let tokens = |count: i64| text.replace("[drafter]", &format!("tokens = {count}\n[drafter]\nblock_size = 16"));
        assert!(parse(&tokens(4080)).is_ok(), "the last block ends at the last position");
        refused(&tokens(4081), "[random] tokens: a text for tiny has 2 to 4080 tokens");
        refused(&format!("{text}[eval]\nevery = 5\n"), "[eval] every: with [random]");
        refused(&format!("{text}[pipeline]\nfeature_cache = \"disk\"\n"), "[pipeline] feature_cache: with [random]");
    }

    #[test]
    fn shares_and_sizes() {
        assert_eq!((percent("0.5%"), percent("1 %"), percent("off")), (Some(0.005), Some(0.01), Some(f64::INFINITY)));
        assert_eq!((percent("0.5"), percent("-1%"), percent("NaN%"), percent("%")), (None, None, None, None));
        assert_eq!(
            (bytes("all"), bytes("20 GB"), bytes("1.5TB")),
            (Some(None), Some(Some(20_000_000_000)), Some(Some(1_500_000_000_000)))
        );
        assert_eq!((bytes("20"), bytes("1 kB"), bytes("0 GB"), bytes("GB")), (None, None, None, None));
    }

    #[test]
    fn a_name_that_leaves_the_folder_is_refused() {
        assert!(bad_name("../x").is_some());
        assert!(bad_name("demo-1.b_2").is_none());
    }
}
