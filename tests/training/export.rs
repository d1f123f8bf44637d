//! Drafters that leave a run, are evaluated, and are trained on.

use super::resume::train;
use super::tiny::Place;
use serde_json::Value;
use std::fs;
use std::path::Path;

#[test]
fn an_export_is_what_was_trained_and_overwrites_nothing() {
    let place = Place::new();
    let config = fs::read_to_string(place.config()).unwrap() + "[checkpoint]\nevery = 2\n";
    fs::write(place.config(), config).unwrap();
    place.ok(&["prepare", "tiny.toml"]);
    let run = train(&place, &["tiny.toml", "--steps", "5"]);
    let weights = |dir: &Path| fs::read(dir.join("model.safetensors")).unwrap();
    let export = |arguments: &[&str], to: &str| {
        place.ok(&[&["export", run.to_str().unwrap(), "-o", to], arguments].concat());
        weights(&place.path(to))
    };
    assert_eq!(export(&[], "end"), weights(&run.join("checkpoints/export")));
    assert_eq!(export(&["--step", "4"], "four"), weights(&run.join("checkpoints/step-000004/export")));
    assert_ne!(weights(&place.path("end")), weights(&place.path("four")));
    let config: Value = serde_json::from_str(&fs::read_to_string(place.path("end/config.json")).unwrap()).unwrap();
    assert_eq!((&config["block_size"], &config["dflash_config"]["block_size"]), (&4.into(), &4.into()));
    assert_eq!((&config["rope_theta"], &config["rope_scaling"]), (&10000.0.into(), &Value::Null));

    assert!(place.fails(2, &["export", "end", "-o", "four"]).contains("is not an empty directory"));
    fs::create_dir(place.path("empty")).unwrap();
    place.ok(&["export", run.join("checkpoints/step-000002").to_str().unwrap(), "-o", "empty"]);
    assert!(
        place
            .fails(2, &["export", run.to_str().unwrap(), "--step", "3", "-o", "x"])
            .contains("no checkpoint of step 3")
    );
    assert!(place.fails(2, &["export", run.to_str().unwrap(), "--best", "-o", "x"]).contains("has been evaluated"));

    // A torn source is refused, and leaves nothing.
    let torn = place.path("end/model.safetensors");
    let bytes = weights(&place.path("end"));
    fs::write(&torn, &bytes[..bytes.len() / 2]).unwrap();
    assert!(place.fails(2, &["export", "end", "-o", "x"]).contains("is no complete safetensors file"));
    let left: Vec<_> =
        fs::read_dir(place.path("")).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    assert!(!left.iter().any(|name| name == "x" || name.ends_with(".part")), "{left:?}");

    // What a user has beside it is not touched.
    fs::create_dir(place.path("model.part")).unwrap();
    fs::write(place.path("model.part/mine"), "mine").unwrap();
    export(&[], "model.v1");
    assert_eq!(fs::read_to_string(place.path("model.part/mine")).unwrap(), "mine");
}

#[test]
fn any_drafters_directory_is_evaluated_and_trained_on() {
    let place = Place::new();
    let config = fs::read_to_string(place.config()).unwrap();
    fs::write(place.config(), format!("{config}[checkpoint]\nevery = 2\n")).unwrap();
    place.ok(&["prepare", "tiny.toml"]);
    let run = train(&place, &["tiny.toml", "--steps", "4"]);
    let two = run.join("checkpoints/step-000002");
    let figures = place.ok(&["eval", two.to_str().unwrap()]);
    assert!(figures.contains("speed: ") && figures.contains("without drafting: tau 1.000"), "{figures}");
    assert!(place.ok(&["export", run.to_str().unwrap(), "--best", "-o", "best"]).contains("best"));
    assert_eq!(
        fs::read(place.path("best/model.safetensors")).unwrap(),
        fs::read(two.join("export/model.safetensors")).unwrap()
    );
    assert!(place.fails(2, &["eval", "best"]).contains("--config"));
    let drawn = place.ok(&["eval", "best", "--config", "tiny.toml", "--temperature", "1", "--control-prompts", "0"]);
    assert!(drawn.contains("not compared: its tokens are drawn"), "{drawn}");
    assert!(drawn.lines().last().unwrap().starts_with("tau: trained "), "{drawn}");

    // Training that begins with it, at a rate that changes nothing, ends with it.
    let tuned =
        config.replace("[drafter]", "[drafter]\ninit = \"best\"").replace("[train]", "[train]\nlearning_rate = 1e-30");
    fs::write(place.config(), &tuned).unwrap();
    let run = train(&place, &["tiny.toml", "--steps", "2"]);
    assert_eq!(
        fs::read(run.join("checkpoints/export/model.safetensors")).unwrap(),
        fs::read(place.path("best/model.safetensors")).unwrap()
    );
    fs::write(place.config(), tuned.replace("block_size = 4", "block_size = 8")).unwrap();
    let refused = place.fails(2, &["train", "tiny.toml"]);
    assert!(refused.contains("best: block_size is 4 there and 8 in the configuration"), "{refused}");

    // An evaluation compares it with what it began with; going on needs that no more.
    fs::write(place.config(), &tuned).unwrap();
    let both: Value =
        serde_json::from_str(&place.ok(&["eval", run.to_str().unwrap(), "--prompts", "2", "--json"])).unwrap();
    assert_eq!(both["trained"]["histogram"], both["untrained"]["histogram"]);
    fs::rename(place.path("best"), place.path("moved")).unwrap();
    let (refused, run) = (place.fails(2, &["eval", run.to_str().unwrap()]), run.to_str().unwrap());
    assert!(refused.contains("best/config.json"), "{refused}");
    place.ok(&["eval", run, "--control-prompts", "0"]);
    place.ok(&["train", "--resume", run, "--steps", "3"]);
}

/// What published directories have in their config.json, and ours has not.
#[test]
fn published_layouts_old_and_new_are_read_alike() {
    let place = Place::new();
    place.ok(&["prepare", "tiny.toml"]);
    let run = train(&place, &["tiny.toml", "--steps", "4"]);
    place.ok(&["export", run.to_str().unwrap(), "-o", "drafter"]);
    let file = place.path("drafter/config.json");
    let own: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    let arguments = ["eval", "drafter", "--config", "tiny.toml", "--control-prompts", "0"];
    let figures = || {
        let told: Value = serde_json::from_str(&place.ok(&[&arguments[..], &["--json"]].concat())).unwrap();
        ["tau", "histogram", "tokens", "equal"].map(|name| told["trained"][name].clone())
    };
    let want = figures();
    let write = |change: &dyn Fn(&mut Value)| {
        let mut config = own.clone();
        change(&mut config);
        fs::write(&file, config.to_string()).unwrap();
    };
    let without = |config: &mut Value, names: &[&str]| {
        names.iter().for_each(|name| drop(config.as_object_mut().unwrap().remove(*name)));
    };
    // Of Qwen3's time: code beside it, the block size at the top alone.
    fs::write(place.path("drafter/dflash.py"), "class DFlashDraftModel: ...").unwrap();
    write(&|config| {
        without(&mut config["dflash_config"], &["block_size"]);
        without(config, &["rope_parameters", "dtype", "layer_types", "sliding_window"]);
        config["auto_map"] = serde_json::json!({ "AutoModel": "dflash.DFlashDraftModel" });
    });
    assert_eq!(figures(), want);
    // Of Qwen3.5's: in dflash_config alone.
    write(&|config| without(config, &["block_size", "torch_dtype", "rope_theta", "rope_scaling"]));
    assert_eq!(figures(), want);
    for (change, named) in [
        (
            &(|config: &mut Value| config["num_target_layers"] = 7.into()) as &dyn Fn(&mut Value),
            "num_target_layers is 7",
        ),
        (&|config| config["dflash_config"]["block_size"] = 2.into(), "`block_size` is 4 and"),
        (&|config| config["dflash_config"]["use_swa"] = true.into(), "use_swa = true is not supported"),
    ] {
        write(change);
        let refused = place.fails(2, &arguments);
        assert!(refused.contains("drafter/config.json: ") && refused.contains(named), "{refused}");
    }
}

#[test]
fn sliding_layers_of_a_given_drafter_do_not_win_in_silence() {
    let place = Place::new();
    place.ok(&["prepare", "tiny.toml"]);
    let config = fs::read_to_string(place.config()).unwrap();
    let slides = "[drafter]\nlayer_types = [\"sliding_attention\", \"full_attention\"]\nsliding_window = 16";
    fs::write(place.config(), config.replace("[drafter]", slides)).unwrap();
    let run = train(&place, &["tiny.toml", "--steps", "2"]);
    place.ok(&["export", run.to_str().unwrap(), "-o", "slides"]);
    fs::write(place.config(), config.replace("[drafter]", "[drafter]\ninit = \"slides\"")).unwrap();
    let refused = place.fails(2, &["train", "tiny.toml", "--steps", "2"]);
    assert!(refused.contains("slides: layer_types is [\"sliding_attention\",\"full_attention\"] there"), "{refused}");
}
