//! Which tokens the assistant wrote, by the structure of the conversation.
//!
//! A regular expression over the finished text is fooled by a user who writes `<|im_start|>assistant`, or by an
//! answer that quotes `<|im_end|>`. Here the template is asked instead: a message is rendered again with a marker at
//! the end of its content, and what follows the marker says where in the real text the content ends and which
//! end-of-turn text the template puts there. A turn is supervised from the first character after the assistant's
//! header to the end of that end-of-turn text: all that the model writes when it is served.
//!
//! Positions are counted from the end of the text, because templates such as Qwen3's write an earlier turn
//! differently once later ones follow: a rendered prefix is then no prefix of the rendering.

use std::ops::Range;

use super::{ChatTemplate, Conversation, DataError, Message, Tokenizer};

/// A tokenised conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tokenised {
    /// Token ids of the rendered conversation.
    pub ids: Vec<u32>,
    /// As long as `ids`; true where the assistant wrote the token.
    pub loss_mask: Vec<bool>,
}

/// Tokenises conversations of one model.
pub struct AssistantMask<'a> {
    template: &'a ChatTemplate,
    tokenizer: &'a Tokenizer,
    headers: Vec<String>,
    last_turn_only: bool,
}

impl<'a> AssistantMask<'a> {
    /// Learns from `template` how an assistant's turn begins.
    ///
    /// # Errors
    /// The template does not render a plain question.
    pub fn new(template: &'a ChatTemplate, tokenizer: &'a Tokenizer) -> Result<Self, DataError> {
        Ok(Self { template, tokenizer, headers: assistant_headers(template)?, last_turn_only: false })
    }

    /// Supervises the last assistant turn alone.
    #[must_use]
    pub fn last_turn_only(mut self, yes: bool) -> Self {
        self.last_turn_only = yes;
        self
    }

    /// Renders a conversation and encodes it with its mask. A token that straddles the header's end counts as inside.
    ///
    /// # Errors
    /// The template or the tokenizer refuses it, or a turn cannot be located.
    pub fn tokenise(&self, conversation: &Conversation) -> Result<Tokenised, DataError> {
        let text = self.template.render(&conversation.messages, false)?;
        let spans = self.spans(conversation, &text)?;
        let tokens = self.tokenizer.encode_with_offsets(&text)?;
        let inside = |token: &Range<usize>| spans.iter().any(|s| token.start < s.end && token.end > s.start);
        let loss_mask = tokens.iter().map(|(_, range)| inside(range)).collect();
        Ok(Tokenised { ids: tokens.into_iter().map(|(id, _)| id).collect(), loss_mask })
    }

    /// The bytes of `text` that the assistant wrote, one range per supervised turn.
    fn spans(&self, conversation: &Conversation, text: &str) -> Result<Vec<Range<usize>>, DataError> {
        let messages = &conversation.messages;
        let turns = Turns { template: self.template, messages, text, marker: marker_for(text) };
        let mut assistants: Vec<usize> = (0..messages.len()).filter(|&i| messages[i].is_assistant()).collect();
        if self.last_turn_only {
            assistants.drain(..assistants.len().saturating_sub(1));
        }
        let located = |i: usize| Ok(turns.start(i, &self.headers)?..turns.end(i)?);
        assistants
            .into_iter()
            .map(|i| located(i).map_err(|missed: Missed| missed.in_message(conversation, i)))
            .collect()
    }
}

/// The texts that may stand between the previous turn and what the assistant writes, longest first.
///
/// Two, because a template may open the answer itself (`<think>` in the generation prompt) but leave that out of
/// earlier turns.
fn assistant_headers(template: &ChatTemplate) -> Result<Vec<String>, DataError> {
    let question = Message::new("user", "x");
    let before = template.render(std::slice::from_ref(&question), false)?;
    let prompt = template.render(std::slice::from_ref(&question), true)?;
    let mut headers: Vec<String> = prompt.strip_prefix(&before).map(str::to_owned).into_iter().collect();
    let marker = marker_for(&prompt);
    let exchange = [question.clone(), Message::new("assistant", marker.clone()), question];
    if let Ok(past) = template.render(&exchange, false)
        && let Some((head, _)) = past.split_once(&marker)
        && let Some(header) = head.strip_prefix(&before)
    {
        headers.push(header.to_owned());
    }
    headers.sort_by_key(|header| std::cmp::Reverse(header.len()));
    headers.dedup();
    Ok(headers)
}

/// A text that `text` does not hold, of private-use characters that no template takes for white space or markup.
///
/// Its first character comes but once in it, so that it cannot overlap itself: appended to anything, it is found
/// where it was appended.
fn marker_for(text: &str) -> String {
    let mut marker = String::from("\u{e0d5}\u{e0d6}");
    while text.contains(&marker) {
        marker.push('\u{e0d6}');
    }
    marker
}

/// Why a turn was not located.
enum Missed {
    Structure(&'static str),
    Render(DataError),
}

impl Missed {
    fn in_message(self, conversation: &Conversation, index: usize) -> DataError {
        match self {
            Self::Render(error) => error,
            Self::Structure(problem) => {
                DataError::Mask { id: conversation.id.clone(), message: index + 1, problem: problem.into() }
            }
        }
    }
}

/// Finds messages in the rendered text.
struct Turns<'a> {
    template: &'a ChatTemplate,
    messages: &'a [Message],
    text: &'a str,
    marker: String,
}

impl Turns<'_> {
    /// Where message `index` begins to be the assistant's own: after the previous turn and the header.
    fn start(&self, index: usize, headers: &[String]) -> Result<usize, Missed> {
        if index == 0 {
            // Only the template's own words stand before a first message, so the first header is its header.
            let found = headers.iter().find_map(|header| Some(self.text.find(header)? + header.len()));
            return found.ok_or(Missed::Structure("the assistant header is not where the template puts it"));
        }
        let begin = self.end(index - 1)?;
        let header = headers.iter().find(|header| self.text[begin..].starts_with(header.as_str()));
        Ok(begin + header.ok_or(Missed::Structure("the turn does not begin with the assistant header"))?.len())
    }

    /// Where message `index` ends, its end-of-turn text included.
    fn end(&self, index: usize) -> Result<usize, Missed> {
        let rest = self.after_content(index, self.messages.len())?;
        let Some(before) = self.text.strip_suffix(&rest) else {
            return Err(Missed::Structure("later turns are written differently when this one grows"));
        };
        let end_of_turn = self.after_content(index, index + 1)?;
        if !rest.starts_with(&end_of_turn) {
            return Err(Missed::Structure("the turn ends differently when others follow"));
        }
        Ok(before.len() + end_of_turn.len())
    }

    /// What the template writes after the content of message `index`, of the first `count` messages.
    fn after_content(&self, index: usize, count: usize) -> Result<String, Missed> {
        let mut messages = self.messages[..count].to_vec();
        messages[index].content.push_str(&self.marker);
        let marked = self.template.render(&messages, false).map_err(Missed::Render)?;
        match marked.split_once(&self.marker) {
            None => Err(Missed::Structure("the template leaves the content out")),
            Some((_, rest)) if rest.contains(&self.marker) => {
                Err(Missed::Structure("the template writes the content twice"))
            }
            Some((_, rest)) => Ok(rest.to_owned()),
        }
    }
}

#[cfg(test)]
#[path = "mask_tests.rs"]
mod tests;
