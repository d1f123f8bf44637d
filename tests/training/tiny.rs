//! A tiny Llama with the real tokenizer (cut to its first merges), random weights, and a configuration that trains on it
//! within seconds.

use safetensors::tensor::{Dtype, TensorView};
use serde_json::json;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const HIDDEN: usize = 32;
const FFN: usize = 64;
const LAYERS: usize = 6;
const HEADS: usize = 4;
const KV_HEADS: usize = 2;
const VOCAB: usize = 49152;

/// A workplace with model, prompts and configuration.
pub struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    pub fn new() -> Self {
        let place = Self { dir: tempfile::tempdir().unwrap() };
        place.write_model();
        place.write_prompts();
        fs::write(place.config(), CONFIG).unwrap();
        place
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn config(&self) -> PathBuf {
        self.path("tiny.toml")
    }

    /// Runs dflash in this place.
    pub fn dflash(&self, arguments: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_dflash"))
            .args(arguments)
            .current_dir(self.dir.path())
            .env_remove("DFLASH_RUNS")
            .output()
            .unwrap()
    }

    /// Runs dflash, which must succeed; its stdout.
    pub fn ok(&self, arguments: &[&str]) -> String {
        let output = self.dflash(arguments);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "dflash {arguments:?}: {:?}\n{stderr}", output.status);
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs dflash, which must fail with `code` and no panic; its stderr.
    pub fn fails(&self, code: i32, arguments: &[&str]) -> String {
        let output = self.dflash(arguments);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "dflash {arguments:?}\n{stderr}");
        assert!(!stderr.contains("panicked"), "{stderr}");
        stderr
    }

    /// Nanoseconds of host time by lane and stage, over a whole run.
    pub fn sums(&self, run: &str) -> BTreeMap<(String, String), u64> {
        let csv = fs::read_to_string(self.path(run).join("iterations.csv")).unwrap();
        let mut sums = BTreeMap::new();
        for line in csv.lines().skip(1) {
            let field: Vec<_> = line.split(',').collect();
            *sums.entry((field[3].to_owned(), field[7].to_owned())).or_default() += field[9].parse::<u64>().unwrap();
        }
        sums
    }

    fn write_model(&self) {
        let model = self.path("model");
        fs::create_dir(&model).unwrap();
        let text = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/text");
        fs::copy(text.join("smollm2-mini.tokenizer.json"), model.join("tokenizer.json")).unwrap();
        let template = fs::read_to_string(text.join("smollm2.jinja")).unwrap();
        fs::write(model.join("tokenizer_config.json"), json!({ "chat_template": template }).to_string()).unwrap();
        fs::write(model.join("config.json"), config().to_string()).unwrap();
        fs::write(model.join("model.safetensors"), weights()).unwrap();
    }

    fn write_prompts(&self) {
        let row = |i: usize| {
            let content = format!("What is {i} and {}? Say it twice.", i * 7 % 13);
            json!({ "id": format!("p{i}"), "conversations": [{ "role": "user", "content": content }] }).to_string()
        };
        let rows = |range: std::ops::Range<usize>| range.map(row).collect::<Vec<_>>().join("\n") + "\n";
        fs::write(self.path("train.jsonl"), rows(0..10)).unwrap();
        fs::write(self.path("heldout.jsonl"), rows(100..104)).unwrap();
    }
}

const CONFIG: &str = r#"
[run]
name = "tiny"
[model]
target = "model"
dtype = "float32"
[data]
prompts = "train.jsonl"
heldout = "heldout.jsonl"
shards = "shards"
max_new_tokens = 24
min_loss_tokens = 8
[drafter]
layers = 2
block_size = 4
mask_token_id = 1472
[train]
steps = 12
batch = 2
anchors = 6
vocabulary = "candidates"
candidate_low = 100
candidate_random = 50
[pipeline]
target_device = "cpu"
drafter_device = "cpu"
feature_cache = "memory"
[profile]
log_every = 5
[eval]
prompts = 3
control_prompts = 2
max_new_tokens = 12
"#;

fn config() -> serde_json::Value {
    json!({
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": HIDDEN,
        "intermediate_size": FFN, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS, "head_dim": HIDDEN / HEADS, "vocab_size": VOCAB, "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0, "tie_word_embeddings": true, "max_position_embeddings": 512,
        "bos_token_id": 1, "eos_token_id": 2,
    })
}

fn weights() -> Vec<u8> {
    let head = HIDDEN / HEADS;
    let mut shapes = vec![("model.embed_tokens.weight".to_owned(), vec![VOCAB, HIDDEN])];
    for i in 0..LAYERS {
        for (name, shape) in [
            ("input_layernorm", vec![HIDDEN]),
            ("post_attention_layernorm", vec![HIDDEN]),
            ("self_attn.q_proj", vec![HIDDEN, HIDDEN]),
            ("self_attn.k_proj", vec![KV_HEADS * head, HIDDEN]),
            ("self_attn.v_proj", vec![KV_HEADS * head, HIDDEN]),
            ("self_attn.o_proj", vec![HIDDEN, HIDDEN]),
            ("mlp.gate_proj", vec![FFN, HIDDEN]),
            ("mlp.up_proj", vec![FFN, HIDDEN]),
            ("mlp.down_proj", vec![HIDDEN, FFN]),
        ] {
            shapes.push((format!("model.layers.{i}.{name}.weight"), shape));
        }
    }
    shapes.push(("model.norm.weight".to_owned(), vec![HIDDEN]));
    let mut random = 1u64;
    let tensors: Vec<_> = shapes.into_iter().map(|(name, shape)| (name, values(&shape, &mut random), shape)).collect();
    let views = tensors
        .iter()
        .map(|(name, bytes, shape)| (name.as_str(), TensorView::new(Dtype::F32, shape.clone(), bytes).unwrap()));
    safetensors::serialize(views, None).unwrap()
}

/// Norms are ones, matrices random in -0.25..0.25, the same on every machine (xorshift).
fn values(shape: &[usize], random: &mut u64) -> Vec<u8> {
    let count: usize = shape.iter().product();
    let next = |random: &mut u64| {
        *random ^= *random << 13;
        *random ^= *random >> 7;
        *random ^= *random << 17;
        (*random >> 40) as f32 / (1u64 << 25) as f32 - 0.25
    };
    (0..count).flat_map(|_| if shape.len() == 1 { 1f32 } else { next(random) }.to_le_bytes()).collect()
}
