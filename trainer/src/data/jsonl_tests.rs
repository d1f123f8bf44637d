//! One test per shape that is read and per line that is refused.

use std::fs;

use proptest::prelude::*;

use super::*;

const GOOD: &str = r#"{"id":"a","conversations":[{"role":"user","content":"Hi"}]}"#;

fn read(content: impl AsRef<[u8]>) -> Result<Vec<Conversation>, DataError> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("rows.jsonl");
    fs::write(&path, content).unwrap();
    read_conversations(&path)
}

/// The message for a second line `bad`; it must name file, line and the expected shape.
fn refused(bad: impl AsRef<[u8]>) -> String {
    let message = read([GOOD.as_bytes(), b"\n", bad.as_ref(), b"\n"].concat()).unwrap_err().to_string();
    assert!(message.contains("rows.jsonl:2: "), "{message}");
    message
}

fn refused_row(bad: &str, problem: &str) {
    let message = refused(bad);
    assert!(message.contains(problem) && message.contains(ROW_EXAMPLE), "{message}");
}

#[test]
fn the_example_is_a_row() {
    let rows = read(ROW_EXAMPLE).unwrap();
    assert_eq!(rows[0].messages, [Message::new("user", "Hi"), Message::new("assistant", "Hello")]);
}

#[test]
fn sharegpt_openai_and_plain_rows_read_alike() {
    let share_gpt = r#"{"id":1,"conversations":[{"from":"system","value":"s"},{"from":"human","value":"u"},{"from":"gpt","value":"a"}]}"#;
    let openai = r#"{"id":"2","source":"x","messages":[{"role":"system","content":"s"},{"role":"user","content":"u"},{"role":"assistant","content":"a","reasoning_content":"r"}]}"#;
    let plain = r#"{"conversations":[{"role":"system","content":"s"},{"role":"user","content":"u"},{"role":"assistant","content":"a"}],"tools":[]}"#;
    let rows = read(format!("\u{feff}{share_gpt}\r\n{openai}\n{plain}")).unwrap();
    assert_eq!(rows.iter().map(|row| row.id.as_str()).collect::<Vec<_>>(), ["1", "2", "rows:3"]);
    assert_eq!(rows[0].messages, rows[2].messages);
    assert_eq!(rows[1].messages[2].reasoning_content.as_deref(), Some("r"));
    assert_eq!(rows[1].source.as_deref(), Some("x"));
}

#[test]
fn empty_line_is_refused() {
    refused_row("", "the line is empty");
    refused_row("  \t", "the line is empty");
}

#[test]
fn malformed_json_is_refused() {
    refused_row(r#"{"id":"b","conversations":[{"role":"us"#, "not JSON");
}

#[test]
fn invalid_utf8_is_refused() {
    assert!(refused(b"{\"id\":\"\xff\"}").contains("byte 8 is not UTF-8"));
}

#[test]
fn row_that_is_no_object_is_refused() {
    refused_row("[1]", "a row must be an object, not a list");
}

#[test]
fn row_without_messages_is_refused() {
    refused_row(r#"{"turns":[]}"#, "none of `conversations`, `messages`, `text` and `input_ids`");
    refused_row(r#"{"messages":[]}"#, "`messages` has no messages");
    refused_row(r#"{"messages":"x"}"#, "`messages` must be a list, not text");
    refused_row(r#"{"messages":[],"conversations":[]}"#, "keep one");
}

#[test]
fn text_and_tokens_are_rows_where_no_conversation_is_needed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("rows.jsonl");
    let lines = [
        GOOD,
        r#"{"id":"t","text":"Once <|im_end|>"}"#,
        r#"{"input_ids":[5,6,2147483647],"loss_mask":[0,true,1]}"#,
        r#"{"input_ids":[5]}"#,
    ];
    fs::write(&path, lines.join("\n")).unwrap();
    let rows = read_rows(&path).unwrap();
    assert_eq!(rows.iter().map(Row::id).collect::<Vec<_>>(), ["a", "t", "rows:3", "rows:4"]);
    assert_eq!(rows[1], Row::Text { id: "t".into(), text: "Once <|im_end|>".into() });
    let sample = Sample { id: "rows:3".into(), ids: vec![5, 6, 2_147_483_647], loss_mask: vec![false, true, true] };
    assert_eq!(rows[2], Row::Tokens(sample));
    assert!(matches!(&rows[3], Row::Tokens(sample) if sample.loss_mask == [true]));
    refused_row(lines[1], "the row is plain text, where a conversation is needed");
    refused_row(lines[3], "the row is pre-tokenised, where a conversation is needed");
}

#[test]
fn bad_tokens_are_refused() {
    refused_row(r#"{"input_ids":[]}"#, "`input_ids` is empty");
    refused_row(r#"{"input_ids":7}"#, "`input_ids` must be a list, not a number");
    refused_row(r#"{"input_ids":[1,-2]}"#, "`input_ids[1]` is -2, not a token id");
    refused_row(r#"{"input_ids":[2147483648]}"#, "`input_ids[0]` is 2147483648, not a token id");
    refused_row(r#"{"input_ids":[1.5]}"#, "`input_ids[0]` is 1.5, not a token id");
    refused_row(r#"{"input_ids":[1,2],"loss_mask":[1]}"#, "`loss_mask` has 1 entries for 2 `input_ids`");
    refused_row(r#"{"input_ids":[1],"loss_mask":[2]}"#, "`loss_mask[0]` is 2, may be 0 or 1");
    refused_row(r#"{"input_ids":[1],"text":"x"}"#, "both `text` and `input_ids` are given; keep one");
}

#[test]
fn unknown_role_is_refused() {
    refused_row(r#"{"messages":[{"role":"robot","content":"x"}]}"#, r#"`messages[0]`: `role` is "robot"; known are"#);
    refused_row(r#"{"conversations":[{"from":"bing","value":"x"}]}"#, r#"`from` is "bing""#);
}

#[test]
fn message_without_content_is_refused() {
    refused_row(r#"{"messages":[{"role":"user"}]}"#, "`messages[0]`: `content` is missing");
    refused_row(r#"{"messages":[{"role":"user","content":null}]}"#, "`content` is missing");
    refused_row(r#"{"messages":[{"role":"user","content":[1]}]}"#, "`content` must be text, not a list");
    refused_row(r#"{"conversations":[{"from":"human"}]}"#, "`value` is missing");
    refused_row(r#"{"messages":["hi"]}"#, "a message must be an object, not text");
}

#[test]
fn bad_id_is_refused() {
    refused_row(r#"{"id":"","messages":[{"role":"user","content":"x"}]}"#, "`id` is empty");
    refused_row(r#"{"id":1.5,"messages":[{"role":"user","content":"x"}]}"#, "`id` must be text or an integer");
}

#[test]
fn duplicated_id_is_refused() {
    let message = refused(GOOD);
    assert!(message.contains(r#"the id "a" was already used on line 1"#), "{message}");
}

#[test]
fn empty_or_missing_file_is_refused() {
    assert!(read("").unwrap_err().to_string().contains("rows.jsonl holds no rows"));
    let missing = read_conversations(Path::new("no/such.jsonl")).unwrap_err().to_string();
    assert!(missing.starts_with("cannot open no/such.jsonl"), "{missing}");
}

proptest! {
    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = parse_line(&bytes, "x:1");
    }

    #[test]
    fn damaged_rows_never_panic(cut in 0..ROW_EXAMPLE.len(), at in 0..ROW_EXAMPLE.len(), byte in any::<u8>()) {
        let mut bytes = ROW_EXAMPLE.as_bytes().to_vec();
        bytes[at] = byte;
        let _ = parse_line(&bytes, "x:1");
        let _ = parse_line(&bytes[..cut], "x:1");
    }
}
