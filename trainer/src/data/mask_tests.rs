//! Conversations that the fixtures do not have, and templates that cannot be masked.

use super::super::fixtures::{mini_tokenizer, template};
use super::*;

fn row(messages: &[(&str, &str)]) -> Conversation {
    let messages = messages.iter().map(|(role, content)| Message::new(*role, *content)).collect();
    Conversation { id: "row".into(), source: None, messages }
}

/// The supervised texts of a conversation.
fn supervised(template: &ChatTemplate, messages: &[(&str, &str)]) -> Result<Vec<String>, DataError> {
    let tokenizer = mini_tokenizer("qwen3");
    let row = row(messages);
    let text = template.render(&row.messages, false)?;
    let spans = AssistantMask::new(template, &tokenizer)?.spans(&row, &text)?;
    Ok(spans.into_iter().map(|span| text[span].to_owned()).collect())
}

#[test]
fn assistant_may_speak_first_or_twice() {
    let both = [("assistant", "A"), ("user", "Q"), ("assistant", "B"), ("assistant", "C")];
    assert_eq!(supervised(&template("smollm2"), &both).unwrap(), ["A<|im_end|>\n", "B<|im_end|>\n", "C<|im_end|>\n"]);
    assert_eq!(
        supervised(&template("qwen3"), &both).unwrap(),
        ["A<|im_end|>\n", "B<|im_end|>\n", "<think>\n\n</think>\n\nC<|im_end|>\n"]
    );
}

#[test]
fn thinking_that_the_prompt_opens_is_not_supervised() {
    let off = template("qwen3").with_variable("enable_thinking", false);
    let turns = supervised(&off, &[("user", "Q"), ("assistant", "A"), ("user", "R"), ("assistant", "B")]).unwrap();
    assert_eq!(turns, ["A<|im_end|>\n", "B<|im_end|>\n"]);
}

#[test]
fn templates_that_trim_and_end_turns_without_newline() {
    let llama = ChatTemplate::from_source(
        "{{ bos_token }}{% for m in messages %}{{ '<|h|>' + m.role + '<|/h|>\n\n' + m.content | trim + '<|eot|>' }}\
         {% endfor %}{% if add_generation_prompt %}{{ '<|h|>assistant<|/h|>\n\n' }}{% endif %}",
        "llama",
    )
    .unwrap();
    let turns = supervised(&llama, &[("user", " Q "), ("assistant", " \n"), ("user", "R"), ("assistant", " B  ")]);
    assert_eq!(turns.unwrap(), ["<|eot|>", "B<|eot|>"]);
}

#[test]
fn templates_without_generation_prompt() {
    let inst = ChatTemplate::from_source(
        "{% for m in messages %}{% if m.role == 'user' %}{{ '[INST] ' + m.content + ' [/INST]' }}{% else %}\
         {{ ' ' + m.content + ' </s>' }}{% endif %}{% endfor %}",
        "inst",
    )
    .unwrap();
    let turns = supervised(&inst, &[("user", "[/INST]"), ("assistant", "A </s>"), ("user", "R"), ("assistant", "B")]);
    assert_eq!(turns.unwrap(), ["A </s> </s>", "B </s>"]);
}

#[test]
fn the_marker_itself_may_be_in_the_text() {
    let marker = marker_for("");
    let turns = supervised(&template("smollm2"), &[("user", &marker), ("assistant", &marker)]).unwrap();
    assert_eq!(turns, [format!("{marker}<|im_end|>\n")]);
}

#[test]
fn template_that_leaves_answers_out_is_refused() {
    let deaf = ChatTemplate::from_source("{{ messages | length }}", "deaf").unwrap();
    let message = supervised(&deaf, &[("user", "Q"), ("assistant", "A")]).unwrap_err().to_string();
    assert!(message.contains(r#"conversation "row", message 2: the template leaves the content out"#), "{message}");
}

#[test]
fn template_that_repeats_answers_is_refused() {
    let echo = "{% for m in messages %}{{ m.content }}{{ m.content }}{% endfor %}";
    let echo = ChatTemplate::from_source(echo, "echo").unwrap();
    let message = supervised(&echo, &[("user", "Q"), ("assistant", "A")]).unwrap_err().to_string();
    assert!(message.contains("writes the content twice"), "{message}");
}
