//! Templates, tokenizers and masks against transformers, exactly.

use super::Report;
use crate::support::{data, json};
use dflash_trainer::data::{AssistantMask, ChatTemplate, Conversation, Tokenizer, read_conversations};
use serde_json::Value;
use std::collections::BTreeMap;

fn conversation(case: &Value) -> Conversation {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("case.jsonl");
    std::fs::write(&path, serde_json::json!({"id": case["name"], "conversations": case["messages"]}).to_string())
        .unwrap();
    read_conversations(&path).unwrap().remove(0)
}

/// Supervised tokens as runs.
fn runs(mask: &[bool]) -> Value {
    let mut runs: Vec<[usize; 2]> = Vec::new();
    for i in (0..mask.len()).filter(|&i| mask[i]) {
        match runs.last_mut() {
            Some(run) if run[1] == i => run[1] = i + 1,
            _ => runs.push([i, i + 1]),
        }
    }
    serde_json::to_value(runs).unwrap()
}

#[test]
fn parity_text() {
    let mut report = Report::new("text");
    let cases = json(data("text/cases.json"));
    let mut differ: BTreeMap<&str, [u32; 4]> = BTreeMap::new();
    for case in cases.as_array().unwrap() {
        let name = case["template"].as_str().unwrap();
        let source = std::fs::read_to_string(data("text").join(format!("{name}.jinja"))).unwrap();
        let template = ChatTemplate::from_source(source, name).unwrap();
        let family = if name == "smollm2" { "smollm2" } else { "qwen" };
        let tokenizer = Tokenizer::from_file(&data("text").join(format!("{family}-mini.tokenizer.json"))).unwrap();
        let row = conversation(case);
        let tokenised = AssistantMask::new(&template, &tokenizer).unwrap().tokenise(&row).unwrap();
        let found = differ.entry(name).or_default();
        found[0] += 1;
        found[1] += u32::from(case["text"] != template.render(&row.messages, false).unwrap());
        found[2] += u32::from(case["mini"]["ids"] != serde_json::to_value(&tokenised.ids).unwrap());
        found[3] += u32::from(case["mini"]["mask"] != runs(&tokenised.loss_mask));
    }
    for (name, [cases, text, ids, mask]) in differ {
        let mut line = report.line(name);
        line.check(&format!("{cases} cases: text"), f64::from(text), 0.0);
        line.check("ids", f64::from(ids), 0.0).check("mask", f64::from(mask), 0.0);
    }
    report.finish();
}
