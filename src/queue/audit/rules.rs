//! Whether the schema still keeps the rules that it is trusted with: a finished row holds no token, no attempt is
//! counted twice, no id is there twice. Where it does, no row need be looked at for them.

use postrider_actors::FindingKind;
use sqlx::PgConnection;

use super::Finding;

const CONSTRAINTS: [&str; 8] = [
    "deliveries_pkey",
    "deliveries_status",
    "deliveries_claimed_are_claimable",
    "deliveries_unordered_are_claimable",
    "deliveries_ordered_have_ordinals",
    "deliveries_attempts",
    "deliveries_error_is_a_kind",
    "delivery_orderings_pkey",
];
const INDEXES: [&str; 5] =
    ["deliveries_pkey", "deliveries_due", "deliveries_order", "deliveries_by_status", "delivery_orderings_pkey"];

pub(super) async fn missing(connection: &mut PgConnection) -> Result<Option<Finding>, sqlx::Error> {
    let mut rules: Vec<String> = sqlx::query_scalar(
        "select rule.name
           from unnest($1::text[]) as rule (name)
          where not exists (select from pg_catalog.pg_constraint c
                             where c.conname = rule.name and c.convalidated
                               and c.conrelid in (to_regclass('postrider.deliveries'),
                                                  to_regclass('postrider.delivery_orderings')))
          union all
         select rule.name
           from unnest($2::text[]) as rule (name)
          where not exists (select from pg_catalog.pg_index i
                             where i.indexrelid = to_regclass('postrider.' || rule.name) and i.indisvalid)",
    )
    .bind(CONSTRAINTS.map(str::to_owned))
    .bind(INDEXES.map(str::to_owned))
    .fetch_all(connection)
    .await?;
    rules.sort();
    rules.dedup();
    let kind = FindingKind::RuleMissing;
    Ok((!rules.is_empty()).then(|| Finding {
        kind,
        channel: None,
        found: rules.len() as u64,
        more: false,
        examples: Vec::new(),
        rules,
    }))
}
