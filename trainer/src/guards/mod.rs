//! What must hold before a drafter is trained: each guard has been somebody's silent failure.
//!
//! A drafter that a guard would have stopped trains well and is accepted badly: a layer off by one, a head that is not the
//! target's, a mask that shows the anchor's state, a mask token that texts contain, documents that leak. Each guard asks the
//! code that trains, not a description of it: it changes an input and looks at what comes out.

mod blocks;
mod leak;
mod model;
#[cfg(test)]
mod tests;

pub use blocks::{data, mask_id};
pub use leak::{Probe, anchor_state, context, documents, future};
pub use model::{head, tap_ids, taps};

use crate::config::AnchorRule;
use crate::drafter::{BlockMask, DFlashDrafter, Layout, Row, anchors, layout, packed};
use crate::target::Target;
use rand::SeedableRng;
use rand::rngs::StdRng;
use tch::Tensor;

/// Something that a guard found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("guard `{guard}`: {problem}")]
pub struct Fault {
    /// The guard's name.
    pub guard: &'static str,
    /// What is wrong, and what to do.
    pub problem: String,
}

/// What a guard says.
pub type Verdict = Result<(), Fault>;

fn fault(guard: &'static str, problem: impl Into<String>) -> Verdict {
    Err(Fault { guard, problem: problem.into() })
}

/// What is to be trained, for the guards to look at.
#[derive(Clone, Copy)]
pub struct Subject<'a> {
    /// The frozen target.
    pub target: &'a Target,
    /// The drafter, fresh or not, on the target's device.
    pub drafter: &'a DFlashDrafter,
    /// Which positions may be an anchor.
    pub rule: AnchorRule,
    /// Training texts; at least one with an anchor.
    pub texts: &'a [Row<'a>],
}

/// Tokens of a text that a guard reads at most: what leaks does so within a few.
const TOKENS: usize = 160;
/// Blocks that a guard makes.
const BLOCKS: usize = 6;

/// Every guard; the first fault is an error.
///
/// # Errors
/// A guard found something.
pub fn check(subject: &Subject<'_>) -> Verdict {
    all(subject).into_iter().try_for_each(|(_, verdict)| verdict)
}

/// Every guard by its name, with its verdict, in the order of the checks. Costs a few forward passes over short texts.
#[must_use]
pub fn all(subject: &Subject<'_>) -> Vec<(&'static str, Verdict)> {
    let Subject { target, drafter, texts, rule } = *subject;
    let c = &drafter.config;
    let ids = texts.iter().flat_map(|row| row.ids.iter().copied());
    let mut verdicts = vec![
        ("tap_ids", tap_ids(&c.target_layer_ids, target.config.layers)),
        ("mask_id", mask_id(c.mask_token_id, target.config.vocab_size, ids)),
        ("head", head(target.config.tied, &target.embedding, &target.head)),
        ("data", data(texts, rule, c.block_size as usize, target.max_length())),
    ];
    if verdicts.iter().all(|(_, verdict)| verdict.is_ok()) {
        let _guard = tch::no_grad_guard();
        verdicts.extend(passes(subject));
    }
    verdicts
}

/// The guards that run the models.
fn passes(subject: &Subject<'_>) -> Vec<(&'static str, Verdict)> {
    let Subject { target, drafter, texts, rule } = *subject;
    let block = drafter.config.block_size as usize;
    let Some((row, valid)) = texts.iter().find_map(|row| part(row, rule, block)) else {
        return vec![("data", fault("data", format!("no text has an anchor that a part of {TOKENS} tokens holds")))];
    };
    let drawn = anchors::draw(&valid, BLOCKS, &mut StdRng::seed_from_u64(0));
    let read = |ids: &[i64]| {
        let row = Row { ids, ..row };
        let packed = packed(&[row], ids.len(), target.device());
        let input = Tensor::from_slice(ids).unsqueeze(0).to_device(target.device());
        target.drafter_features(&input, packed.as_ref(), &drafter.config.target_layer_ids, false)
    };
    let (device, mask_id) = (target.device(), drafter.config.mask_token_id);
    let blocks = layout(&[row], std::slice::from_ref(&drawn), &Layout { count: drawn.len(), block, mask_id, device });
    let embedded = Tensor::embedding(&target.embedding, &blocks.ids, -1, false, false);
    let mask = BlockMask::new(&blocks, row.ids.len() as i64, &drafter.config, drafter.mask, target.kind());
    let draft = |taps: &Tensor| drafter.forward(taps, &embedded, &blocks, &mask);
    let probe = Probe { row, anchors: &drawn, block, vocabulary: target.config.vocab_size, read: &read, draft: &draft };
    vec![
        ("taps", taps(target, row.ids, &drafter.config.target_layer_ids)),
        ("future", future(&probe)),
        ("anchor_state", anchor_state(&probe)),
        ("context", context(&probe)),
        ("documents", documents(&probe)),
    ]
}

/// The part of a text around its first anchor, as a text of its own, and the anchors in it.
fn part<'a>(row: &Row<'a>, rule: AnchorRule, block: usize) -> Option<(Row<'a>, Vec<usize>)> {
    let first = *anchors::valid(row, rule, block).first()?;
    let from = first.saturating_sub(TOKENS / 2);
    let part = from..row.ids.len().min(from + TOKENS);
    let row = Row {
        ids: &row.ids[part.clone()],
        loss_mask: &row.loss_mask[part.clone()],
        documents: row.documents.map(|d| &d[part.clone()]),
        positions: None,
    };
    let valid = anchors::valid(&row, rule, block);
    (!valid.is_empty()).then_some((row, valid))
}
