//! Looks in the live database for promises that are broken.
//!
//! One short transaction that writes nothing and locks no row, on one snapshot: what was true at one moment is judged,
//! however busy the queue is. Each check walks an index and no more of it than the policy allows.

mod checks;
mod keys;
mod rules;
mod words;

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, Utc};
use postrider_actors::{AuditPolicy, ChannelName, FindingCount, FindingKind};
use sqlx::{Connection, PgConnection};
use uuid::Uuid;

pub use self::words::{meaning, next_step};
use super::channels::channels_with_rows;

/// Deliveries that a finding names.
pub const EXAMPLES: usize = 5;

/// What an audit came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Audit {
    /// By the database's clock.
    pub at: DateTime<Utc>,
    /// What is wrong; empty: nothing was found.
    pub findings: Vec<Finding>,
    /// What was looked at.
    pub looked: Vec<Looked>,
}

/// One kind of broken promise in one channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What is wrong.
    pub kind: FindingKind,
    /// In which channel; `None`: not in any one.
    pub channel: Option<String>,
    /// How many were found.
    pub found: u64,
    /// There may be more: only a part was looked at.
    pub more: bool,
    /// Some of them: ids of deliveries, and nothing of what they say or of whom.
    pub examples: Vec<Uuid>,
    /// The names of the rules that are missing; empty for all other kinds.
    pub rules: Vec<String>,
}

/// How far one check came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Looked {
    /// What it looked at.
    pub at: &'static str,
    /// In which channel; `None`: in all.
    pub channel: Option<String>,
    /// How many.
    pub count: u64,
    /// There are more, which it did not look at.
    pub part: bool,
}

/// A group of what a check looked at: `kind` is null for what is in order.
#[derive(Debug, sqlx::FromRow)]
struct Group {
    channel: Option<String>,
    kind: Option<String>,
    found: i64,
    examples: Vec<Uuid>,
}

/// Audits within `timeout` for each statement.
///
/// # Errors
/// The database; also where a statement took too long.
pub async fn audit(
    connection: &mut PgConnection,
    policy: &AuditPolicy,
    timeout: Duration,
) -> Result<Audit, sqlx::Error> {
    let mut transaction = connection.begin_with("begin isolation level repeatable read read only").await?;
    settings(&mut transaction, timeout).await?;
    let at = sqlx::query_scalar("select now()").fetch_one(&mut *transaction).await?;
    let channels = channels_with_rows(&mut transaction).await?;
    let mut seen = Seen { rows: i64::from(policy.rows.get()), findings: Vec::new(), looked: Vec::new() };
    let late = checks::overdue(&mut transaction, policy, &channels).await?;
    seen.add("deliveries past their time", true, late);
    seen.add("deliveries that can be claimed", true, checks::claimable(&mut transaction, policy, &channels).await?);
    seen.add("deliveries that succeeded", true, checks::succeeded(&mut transaction, policy, &channels).await?);
    seen.add("keys with unfinished deliveries", false, keys::heads(&mut transaction, policy, &channels).await?);
    seen.add("keys", false, keys::counters(&mut transaction, policy).await?);
    seen.add("postponed releases", false, keys::releases(&mut transaction, policy).await?);
    seen.findings.extend(rules::missing(&mut transaction).await?);
    transaction.rollback().await?;
    let Seen { mut findings, looked, .. } = seen;
    findings.sort_by(|one, other| (one.kind, &one.channel).cmp(&(other.kind, &other.channel)));
    Ok(Audit { at, findings, looked })
}

/// Nested loops by index: their cost is bounded by what is looked at, whatever the planner believes of the tables.
async fn settings(connection: &mut PgConnection, timeout: Duration) -> Result<(), sqlx::Error> {
    sqlx::query(
        "select set_config(s.name, s.value, true)
           from (values ('statement_timeout', $1), ('enable_seqscan', 'off'), ('enable_hashjoin', 'off'),
                        ('enable_mergejoin', 'off'), ('enable_material', 'off'), ('enable_bitmapscan', 'off'),
                        ('plan_cache_mode', 'force_custom_plan'), ('jit', 'off'),
                        ('max_parallel_workers_per_gather', '0')) as s (name, value)",
    )
    .bind(timeout.as_millis().to_string())
    .execute(connection)
    .await?;
    Ok(())
}

struct Seen {
    rows: i64,
    findings: Vec<Finding>,
    looked: Vec<Looked>,
}

impl Seen {
    /// `limited_by_channel`: the limit is each channel's, not that of all together.
    fn add(&mut self, at: &'static str, limited_by_channel: bool, groups: Vec<Group>) {
        let mut counts: BTreeMap<Option<String>, i64> = BTreeMap::new();
        for group in &groups {
            let of = group.channel.clone().filter(|_| limited_by_channel);
            *counts.entry(of).or_default() += group.found;
        }
        let rows = self.rows;
        for group in groups {
            let of = group.channel.clone().filter(|_| limited_by_channel);
            let Some(kind) = group.kind.as_deref().and_then(kind_named) else { continue };
            self.findings.push(Finding {
                kind,
                channel: group.channel,
                found: group.found.unsigned_abs(),
                more: counts.get(&of).is_some_and(|count| *count >= rows),
                examples: group.examples,
                rules: Vec::new(),
            });
        }
        self.looked.extend(counts.into_iter().map(|(channel, count)| Looked {
            at,
            channel,
            count: count.unsigned_abs(),
            part: count >= rows,
        }));
    }
}

fn kind_named(name: &str) -> Option<FindingKind> {
    FindingKind::ALL.into_iter().find(|kind| kind.as_str() == name)
}

impl Audit {
    /// The same by kind and channel alone, as the engine knows it.
    pub fn counts(&self) -> Vec<FindingCount> {
        self.findings
            .iter()
            .map(|finding| FindingCount {
                kind: finding.kind,
                channel: finding.channel.as_deref().and_then(|name| name.parse::<ChannelName>().ok()),
                found: finding.found,
            })
            .collect()
    }
}
