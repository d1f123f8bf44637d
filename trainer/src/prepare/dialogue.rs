//! A conversation that the target answers, turn by turn.

use crate::data::{Conversation, Message};
use std::collections::VecDeque;

/// What was said so far, and what the other side will say.
#[derive(Clone, Debug)]
pub(super) struct Dialogue {
    pub(super) id: String,
    source: Option<String>,
    /// The turns so far; ends with one that is to be answered, until [`is_over`](Self::is_over).
    said: Vec<Message>,
    /// Turns to come; the assistant's are dropped when they are reached.
    coming: VecDeque<Message>,
    /// Answers given.
    pub(super) turn: usize,
}

impl Dialogue {
    /// A conversation whose last turn alone is to be answered.
    pub(super) fn last_turn(conversation: Conversation) -> Self {
        let Conversation { id, source, messages } = conversation;
        Self { id, source, said: messages, coming: VecDeque::new(), turn: 0 }
    }

    /// A conversation whose every answer is made anew. What the assistant says before anybody asked stays.
    pub(super) fn all_turns(conversation: Conversation) -> Self {
        let Conversation { id, source, messages } = conversation;
        let asked = messages.iter().position(|m| m.role == "user").unwrap_or(messages.len());
        let mut coming = VecDeque::from(messages);
        let said = coming.drain(..asked).collect();
        let mut dialogue = Self { id, source, said, coming, turn: 0 };
        dialogue.listen();
        dialogue
    }

    /// Takes over the turns up to the next answer; the answers of others are passed over.
    fn listen(&mut self) {
        while self.coming.front().is_some_and(|m| !m.is_assistant()) {
            self.said.extend(self.coming.pop_front());
        }
        while self.coming.front().is_some_and(Message::is_assistant) {
            self.coming.pop_front();
        }
    }

    /// Whether the last word is the assistant's, and nobody has more to say.
    pub(super) fn is_over(&self) -> bool {
        self.said.last().is_none_or(Message::is_assistant)
    }

    /// Whether this is a prompt and one answer, with nothing to come.
    pub(super) fn is_single(&self) -> bool {
        self.turn == 0 && self.coming.is_empty()
    }

    /// The target's answer.
    pub(super) fn answer(&mut self, text: String) {
        self.said.push(Message::new("assistant", text));
        self.turn += 1;
        self.listen();
    }

    /// The conversation so far.
    pub(super) fn conversation(&self) -> Conversation {
        Conversation { id: self.id.clone(), source: self.source.clone(), messages: self.said.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conversation(turns: &str) -> Conversation {
        let name = |c| match c {
            's' => "system",
            'u' => "user",
            _ => "assistant",
        };
        let messages = turns.chars().map(|c| Message::new(name(c), c.to_string())).collect();
        Conversation { id: "x".into(), source: None, messages }
    }

    /// Answers everything with `!`; the turns at the end.
    fn regenerated(turns: &str) -> String {
        let mut dialogue = Dialogue::all_turns(conversation(turns));
        while !dialogue.is_over() {
            dialogue.answer("!".into());
        }
        dialogue.conversation().messages.into_iter().map(|m| m.content).collect()
    }

    #[test]
    fn every_answer_is_made_anew() {
        assert_eq!(regenerated("sua"), "su!");
        assert_eq!(regenerated("suaua"), "su!u!");
        assert_eq!(regenerated("u"), "u!");
        assert_eq!(regenerated("uauaauu"), "u!u!uu!");
        assert_eq!(regenerated("aua"), "au!");
        assert_eq!(regenerated("a"), "a");
        assert_eq!(regenerated("s"), "s!");
    }

    #[test]
    fn one_answer_may_be_all() {
        assert!(Dialogue::all_turns(conversation("sua")).is_single());
        assert!(!Dialogue::all_turns(conversation("suaua")).is_single());
        assert!(Dialogue::last_turn(conversation("suau")).is_single());
    }
}
