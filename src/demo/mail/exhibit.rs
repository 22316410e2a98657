//! Shows a message as it arrived: its header, and its plain text.

use super::super::DemoError;
use super::super::mailbox::Received;
use super::super::narrator::Narrator;

/// The output's width, and what stands before each line.
const WIDTH: usize = 100;
const MARGIN: &str = "         | ";

pub(super) fn show(narrator: &mut Narrator<'_>, letter: &Received) -> Result<(), DemoError> {
    narrator.say("one of them as it arrived, header and plain text:")?;
    let text = letter.plain_text().unwrap_or_default();
    let room = WIDTH - MARGIN.len();
    for line in letter.header().lines().chain([""]).chain(text.trim_end().lines()) {
        let mut rest = line;
        loop {
            let (shown, more) = match rest.char_indices().nth(room) {
                Some((end, _)) => rest.split_at(end),
                None => (rest, ""),
            };
            narrator.line(format!("{MARGIN}{shown}").trim_end())?;
            rest = more;
            if rest.is_empty() {
                break;
            }
        }
    }
    Ok(())
}
