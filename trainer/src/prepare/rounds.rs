//! Rows become samples: some at once, conversations round by round, one answer of each a round.

use super::answers::AnswerFile;
use super::dialogue::Dialogue;
use super::{Progress, Rows};
use crate::TextTools;
use crate::config::{Config, Regenerate, Supervise};
use crate::data::{AssistantMask, Conversation, DataError, Message, Row, Sample};
use crate::error::TrainError;
use crate::target::{Answer, GenerateOptions, Sampling, Target, generate};
use std::cmp::Reverse;

/// What a preparation works with.
pub(super) struct Work<'a> {
    pub(super) config: &'a Config,
    pub(super) tools: &'a TextTools,
    pub(super) target: &'a Target,
    /// Longest text, prompt and answer, that the target has positions for.
    pub(super) limit: usize,
}

/// A row on its way to a sample.
enum State {
    Made(Sample),
    Open(Dialogue),
    Skipped,
    Failed(String),
}

/// A prompt that waits for its answer.
struct Prompt {
    row: usize,
    turn: usize,
    ids: Vec<i64>,
}

impl Work<'_> {
    /// The samples of `rows` in their order, and what became of each row.
    pub(super) fn run(
        &self,
        rows: Vec<Row>,
        answers: &AnswerFile,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(Vec<Sample>, Rows), TrainError> {
        let last_turn = self.config.data.supervise == Supervise::LastTurn;
        let mask = AssistantMask::new(&self.tools.template, &self.tools.tokenizer)?.last_turn_only(last_turn);
        let mut states: Vec<State> = rows.into_iter().map(|row| self.begin(row, &mask)).collect();
        let mut at = Progress::default();
        let mut resumed = 0;
        loop {
            let (prompts, kept) = self.prompts(&mut states, answers, &mask);
            resumed += kept;
            if prompts.is_empty() {
                break;
            }
            self.round(&mut states, prompts, answers, &mask, (&mut at, progress))?;
        }
        Ok(sorted_out(states, resumed))
    }

    fn begin(&self, row: Row, mask: &AssistantMask<'_>) -> State {
        match row {
            Row::Conversation(conversation) if self.is_whole(&conversation) => {
                made(self.tokenised(&conversation, mask))
            }
            Row::Conversation(conversation) => State::Open(match self.config.data.regenerate {
                Regenerate::Missing => Dialogue::last_turn(conversation),
                Regenerate::All => Dialogue::all_turns(conversation),
            }),
            Row::Text { id, text } => made(self.tools.tokenizer.encode(&text).map(|ids| {
                let loss_mask = vec![true; ids.len()];
                Sample { id, ids, loss_mask }
            })),
            Row::Tokens(sample) => self.known(sample),
        }
    }

    /// Whether a conversation is taken as it is.
    fn is_whole(&self, conversation: &Conversation) -> bool {
        let asked = conversation.messages.iter().any(|m| m.role == "user");
        let anew = self.config.data.regenerate == Regenerate::All && asked;
        !anew && conversation.messages.last().is_some_and(Message::is_assistant)
    }

    fn known(&self, sample: Sample) -> State {
        let vocabulary = self.target.config.vocab_size;
        match sample.ids.iter().find(|&&id| i64::from(id) >= vocabulary) {
            Some(id) => {
                State::Failed(format!("row {:?}: token id {id}, but the model's vocab_size is {vocabulary}", sample.id))
            }
            None => State::Made(sample),
        }
    }

    fn tokenised(&self, conversation: &Conversation, mask: &AssistantMask<'_>) -> Result<Sample, DataError> {
        let tokens = mask.tokenise(conversation)?;
        Ok(Sample { id: conversation.id.clone(), ids: tokens.ids, loss_mask: tokens.loss_mask })
    }

    /// The prompts that no answer is known to; dialogues whose answers are known go on. Also says how many were known.
    fn prompts(&self, states: &mut [State], answers: &AnswerFile, mask: &AssistantMask<'_>) -> (Vec<Prompt>, usize) {
        let longest =
            self.limit.saturating_sub(self.config.data.max_new_tokens).min(self.config.data.max_prompt_tokens);
        let (mut prompts, mut known) = (Vec::new(), 0);
        for (row, state) in states.iter_mut().enumerate() {
            while let State::Open(dialogue) = state {
                let turn = dialogue.turn;
                let ids = match self.tools.prompt(&dialogue.conversation()) {
                    Err(error) => {
                        *state = State::Failed(format!("row {:?}: {error}", dialogue.id));
                        break;
                    }
                    Ok(ids) if ids.is_empty() || ids.len() > longest => {
                        *state = State::Skipped;
                        break;
                    }
                    Ok(ids) => ids,
                };
                let Some(answer) = answers.get(&dialogue.id, turn) else {
                    prompts.push(Prompt { row, turn, ids });
                    break;
                };
                known += 1;
                self.advance(state, &ids, answer, mask);
            }
        }
        (prompts, known)
    }

    /// Answers prompts, keeps the answers batch by batch, and moves their dialogues on.
    fn round(
        &self,
        states: &mut [State],
        mut prompts: Vec<Prompt>,
        answers: &AnswerFile,
        mask: &AssistantMask<'_>,
        (at, progress): (&mut Progress, &mut dyn FnMut(Progress)),
    ) -> Result<(), TrainError> {
        // Prompts of like length pad each other least.
        prompts.sort_by_key(|prompt| Reverse(prompt.ids.len()));
        at.prompts += prompts.len();
        progress(*at);
        let options = self.options();
        for batch in prompts.chunks(options.batch) {
            let texts: Vec<Vec<i64>> = batch.iter().map(|prompt| prompt.ids.clone()).collect();
            let given = generate(self.target, &texts, &options, |tokens, answered| {
                at.tokens += tokens;
                at.answered += answered;
                progress(*at);
            });
            let lines = batch.iter().zip(&given).filter_map(|(prompt, answer)| match &states[prompt.row] {
                State::Open(dialogue) => Some((dialogue.id.as_str(), prompt.turn, answer)),
                _ => None,
            });
            answers.append(lines)?;
            for (prompt, answer) in batch.iter().zip(&given) {
                self.advance(&mut states[prompt.row], &prompt.ids, answer, mask);
            }
        }
        Ok(())
    }

    fn options(&self) -> GenerateOptions {
        let data = &self.config.data;
        let sampling = Sampling { temperature: data.temperature, seed: self.config.run.seed };
        GenerateOptions {
            max_new_tokens: data.max_new_tokens,
            batch: data.generate_batch,
            stop_ids: self.target.config.eos_token_ids.clone(),
            sampling: (data.temperature > 0.0).then_some(sampling),
        }
    }

    /// Gives a dialogue the answer to its prompt; one that is over becomes a sample.
    fn advance(&self, state: &mut State, prompt: &[i64], answer: &Answer, mask: &AssistantMask<'_>) {
        let State::Open(dialogue) = state else { return };
        if dialogue.is_single() {
            // The very tokens that the target made: a text encoded again may be cut into others.
            *state = State::Made(joined(dialogue.id.clone(), prompt, &answer.ids));
            return;
        }
        match self.text(answer) {
            Err(error) => *state = State::Failed(format!("row {:?}: {error}", dialogue.id)),
            Ok(text) => {
                dialogue.answer(text);
                if dialogue.is_over() {
                    *state = made(self.tokenised(&dialogue.conversation(), mask));
                }
            }
        }
    }

    /// An answer as a later turn quotes it: without the token that ended it, which the template writes.
    fn text(&self, answer: &Answer) -> Result<String, DataError> {
        let kept = answer.ids.len() - usize::from(answer.ended);
        let ids: Vec<u32> = answer.ids[..kept].iter().filter_map(|&id| u32::try_from(id).ok()).collect();
        self.tools.tokenizer.decode(&ids)
    }
}

fn made(sample: Result<Sample, DataError>) -> State {
    sample.map_or_else(|error| State::Failed(error.to_string()), State::Made)
}

/// Prompt and answer as one sample; the answer is supervised, the token that ends it included.
fn joined(id: String, prompt: &[i64], answer: &[i64]) -> Sample {
    let ids = prompt.iter().chain(answer).map(|&id| u32::try_from(id).unwrap_or_default()).collect();
    let loss_mask = (0..prompt.len() + answer.len()).map(|i| i >= prompt.len()).collect();
    Sample { id, ids, loss_mask }
}

fn sorted_out(states: Vec<State>, resumed: usize) -> (Vec<Sample>, Rows) {
    let mut rows = Rows { resumed, ..Rows::default() };
    let mut samples = Vec::new();
    for state in states {
        match state {
            State::Made(sample) => samples.push(sample),
            // A dialogue is open as long as it has a prompt, and the rounds end when there is none.
            State::Open(_) | State::Skipped => rows.skipped += 1,
            State::Failed(why) => {
                rows.failed += 1;
                rows.first_failure.get_or_insert(why);
            }
        }
    }
    rows.made = samples.len();
    (samples, rows)
}
