//! docs/cli.md and the program say the same.

use std::collections::BTreeSet;

use crate::program::run;

#[tokio::test]
async fn every_flag_and_variable_is_documented_and_none_that_is_not_there() {
    let docs = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/cli.md")).unwrap();
    let mut helps = String::new();
    let commands: [&[&str]; 14] = [
        &["announce"],
        &["audit"],
        &["demo"],
        &["migrate"],
        &["serve"],
        &["deliveries", "list"],
        &["deliveries", "show"],
        &["deliveries", "retry"],
        &["deliveries", "cancel"],
        &["keys", "generate"],
        &["keys", "generate-link-key"],
        &["keys", "dkim-record"],
        &["mail", "preview"],
        &["keys", "jwks"],
    ];
    for command in commands {
        helps += &run(&[command, &["--help"]].concat()).await.ok();
    }
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let names = |text: &str| -> BTreeSet<String> {
        let words = text.split(|c| !is_name(c)).filter(|word| {
            let flag = word.starts_with("--") && word.len() > 4;
            flag || word.starts_with("POSTRIDER_") || *word == "DATABASE_URL"
        });
        words.filter(|word| *word != "--help").map(str::to_owned).collect()
    };
    assert_eq!(names(&helps), names(&docs));
}
