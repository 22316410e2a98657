//! `postrider audit`.

use std::num::NonZeroU32;
use std::time::Duration;

use chrono::{DateTime, Utc};
use clap::Args;
use postrider_actors::AuditPolicy;
use serde::Serialize;
use uuid::Uuid;

use super::arguments::Global;
use super::connection::{ask, failed};
use super::failure::{Exit, Failure};
use super::tell::tell;
use super::{Output, duration};
use crate::channels::policies;
use crate::queue::audit::{Audit, Finding, Looked, audit, meaning, next_step};

/// Of each of its statements.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug, Args)]
pub(super) struct AuditArguments {
    /// What has waited for a claim, or been postponed, for less than this is not late.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration::parse)]
    older_than: Duration,
    /// The most rows, or keys, that each check looks at.
    #[arg(long, default_value = "100000")]
    limit: NonZeroU32,
    /// A JSON object instead of text; see docs/cli.md for its fields.
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(global: &Global, arguments: &AuditArguments) -> Result<Output, Failure> {
    let policy = AuditPolicy { channels: policies().into(), older_than: arguments.older_than, rows: arguments.limit };
    let audit = ask(global, "look at less with --limit", async |connection| {
        audit(connection, &policy, STATEMENT_TIMEOUT).await.map_err(failed("auditing"))
    })
    .await?;
    let text = if arguments.json { json(&audit)? } else { text(&audit.findings) };
    if !arguments.json {
        audit.looked.iter().filter(|looked| looked.part).for_each(|looked| tell(partly(looked)));
        if audit.findings.is_empty() {
            tell("nothing found");
        }
    }
    Ok(Output { text, exit: (!audit.findings.is_empty()).then_some(Exit::Found) })
}

fn partly(looked: &Looked) -> String {
    let of = looked.channel.as_deref().map(|channel| format!(" of {channel}")).unwrap_or_default();
    format!("looked at the first {} {}{of} only; --limit sets how many", looked.count, looked.at)
}

/// What is wrong, how much of it, what it means, which deliveries, what to do: a paragraph for each finding.
fn text(findings: &[Finding]) -> String {
    let paragraphs: Vec<String> = findings.iter().map(paragraph).collect();
    paragraphs.join("\n")
}

fn paragraph(finding: &Finding) -> String {
    let Finding { kind, channel, found, more, examples, rules } = finding;
    let (more, channel) = (if *more { "+" } else { "" }, channel.as_deref());
    let of = channel.map(|channel| format!(" of {channel}")).unwrap_or_default();
    let mut text = format!("{kind}: {found}{more}{of}\n  means: {}\n", meaning(*kind));
    let names = examples.iter().map(Uuid::to_string).chain(rules.iter().cloned());
    names.for_each(|name| text.push_str(&format!("  such as: {name}\n")));
    text.push_str(&format!("  next: {}\n", next_step(*kind)));
    text
}

/// The documented form: see docs/cli.md.
#[derive(Serialize)]
struct Told<'a> {
    at: DateTime<Utc>,
    findings: Vec<ToldFinding<'a>>,
    looked: Vec<ToldLooked<'a>>,
}

#[derive(Serialize)]
struct ToldFinding<'a> {
    kind: &'static str,
    channel: Option<&'a str>,
    found: u64,
    more: bool,
    examples: &'a [Uuid],
    rules: &'a [String],
    meaning: &'static str,
    next: &'static str,
}

#[derive(Serialize)]
struct ToldLooked<'a> {
    at: &'static str,
    channel: Option<&'a str>,
    count: u64,
    part: bool,
}

fn json(audit: &Audit) -> Result<String, Failure> {
    let findings = audit.findings.iter().map(|finding| ToldFinding {
        kind: finding.kind.as_str(),
        channel: finding.channel.as_deref(),
        found: finding.found,
        more: finding.more,
        examples: &finding.examples,
        rules: &finding.rules,
        meaning: meaning(finding.kind),
        next: next_step(finding.kind),
    });
    let looked = audit.looked.iter().map(|looked| ToldLooked {
        at: looked.at,
        channel: looked.channel.as_deref(),
        count: looked.count,
        part: looked.part,
    });
    let told = Told { at: audit.at, findings: findings.collect(), looked: looked.collect() };
    let json = serde_json::to_string_pretty(&told);
    json.map(|json| json + "\n").map_err(|error| Failure::new(Exit::Failed, "cannot write JSON").because(&error))
}
