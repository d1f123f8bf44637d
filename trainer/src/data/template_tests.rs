//! Where a template is found, what it is given, and how it fails.

use super::*;

fn model(config: &str, jinja: Option<&str>) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("tokenizer_config.json"), config).unwrap();
    if let Some(jinja) = jinja {
        fs::write(dir.path().join("chat_template.jinja"), jinja).unwrap();
    }
    dir
}

fn render(source: &str) -> Result<String, DataError> {
    ChatTemplate::from_source(source, "here")?.render(&[Message::new("user", " Hi ")], true)
}

fn refused(model_dir: &tempfile::TempDir) -> String {
    ChatTemplate::load(model_dir.path()).err().unwrap().to_string()
}

#[test]
fn template_text_and_tokens_come_from_the_config() {
    let dir = model(
        r#"{"chat_template": "{{ bos_token }}{{ messages[0].content }}{{ eos_token }}", "bos_token": "<s>",
            "eos_token": {"content": "</s>", "lstrip": false}}"#,
        None,
    );
    let template = ChatTemplate::load(dir.path()).unwrap();
    assert_eq!(template.render(&[Message::new("user", "Hi")], false).unwrap(), "<s>Hi</s>");
    assert_eq!(template.variables(), "bos_token=\"<s>\"\neos_token=\"</s>\"\n");
}

#[test]
fn default_is_taken_from_named_templates() {
    let dir = model(
        r#"{"chat_template": [{"name": "tool_use", "template": "T"}, {"name": "default", "template": "D"}]}"#,
        None,
    );
    assert_eq!(ChatTemplate::load(dir.path()).unwrap().source(), "D");
}

#[test]
fn template_file_wins_over_the_config() {
    let dir = model(r#"{"chat_template": "config"}"#, Some("file"));
    assert_eq!(ChatTemplate::load(dir.path()).unwrap().source(), "file");
}

#[test]
fn model_without_template_is_refused() {
    let message = refused(&model("{}", None));
    assert!(message.contains("has no chat template; add chat_template.jinja"), "{message}");
    assert!(matches!(ChatTemplate::load(tempfile::tempdir().unwrap().path()), Err(DataError::NoTemplate { .. })));
}

#[test]
fn half_written_config_is_refused() {
    let message = refused(&model(r#"{"chat_template": "x"#, None));
    assert!(message.contains("tokenizer_config.json: not JSON"), "{message}");
}

#[test]
fn invalid_jinja_is_refused_with_its_line() {
    let message = refused(&model("{}", Some("a\n{% for m in %}")));
    assert!(message.contains("chat_template.jinja: line 2: "), "{message}");
}

#[test]
fn a_template_may_refuse_a_conversation() {
    let message = render("{{ raise_exception('Roles must alternate') }}").unwrap_err().to_string();
    assert!(message.starts_with("chat template of here: line 1: Roles must alternate"), "{message}");
}

#[test]
fn blocks_leave_no_white_space_and_text_is_not_escaped() {
    assert_eq!(render("{% if true %}\n  {% set x = '<&>' %}\n{{ x }}\n{% endif %}\n").unwrap(), "<&>\n");
}

#[test]
fn python_string_methods_work() {
    let source = "{{ messages[0].content.strip().upper() }}{{ 'a-b'.split('-')[-1] }}{{ 'xy'.startswith('x') }}";
    assert_eq!(render(source).unwrap(), "HIbTrue");
}

#[test]
fn extra_variables_reach_the_template() {
    let source = "{{ 'off' if enable_thinking is defined and enable_thinking is false else 'on' }}";
    let template = ChatTemplate::from_source(source, "here").unwrap();
    assert_eq!(template.render(&[], false).unwrap(), "on");
    assert_eq!(template.with_variable("enable_thinking", false).render(&[], false).unwrap(), "off");
}
