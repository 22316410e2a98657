//! The laws of a queue. Each is a guarantee; the test that runs it carries its name.
#![allow(missing_docs, clippy::unwrap_used)]

use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::time::Duration;

use super::{Harness, Look, Wish, channel, channel_named, wishes};
use crate::ids::{ClaimToken, DeliveryId};
use crate::outcome::{Reason, Settled, Status, Verdict};
use crate::ports::{Ended, Lease, Queue, Recorded, Retention, Search};

const LEASE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(86_400);
/// More than clocks differ and tests take, less than anything that is measured.
const MOMENT: Duration = Duration::from_secs(20);
const DOWN: Reason = Reason::Connection;

type EffectOf<H> = <<H as Harness>::Queue as Queue>::Effect;

async fn claim<H: Harness>(harness: &H, slots: usize) -> Vec<Lease> {
    let slots = NonZeroUsize::new(slots).unwrap_or(NonZeroUsize::MIN);
    harness.queue().claim(&channel().name, slots, LEASE, Search::All).await.unwrap()
}

async fn claim_one<H: Harness>(harness: &H) -> Lease {
    let mut leases = claim(harness, 10).await;
    assert_eq!(leases.len(), 1, "one claimable delivery expected");
    leases.remove(0)
}

async fn claims_nothing<H: Harness>(harness: &H) {
    let ids: Vec<_> = claim(harness, 10).await.into_iter().map(|lease| lease.delivery.id).collect();
    assert_eq!(ids, [], "nothing should be claimable");
}

fn ended<E>(lease: &Lease, verdict: Verdict) -> Ended<E> {
    let ordered = lease.delivery.ordering_key.is_some();
    Ended { delivery: lease.delivery.id, token: lease.token, ordered, verdict, effect: None }
}

async fn record_all<H: Harness>(harness: &H, ended: Vec<Ended<EffectOf<H>>>) -> Recorded {
    harness.queue().record(&channel(), &ended).await.unwrap()
}

async fn record<H: Harness>(harness: &H, lease: &Lease, verdict: Verdict) -> Settled {
    record_all(harness, vec![ended(lease, verdict)]).await.settled[0]
}

async fn look<H: Harness>(harness: &H, id: DeliveryId) -> Look {
    harness.look(id).await.unwrap()
}

async fn status<H: Harness>(harness: &H, id: DeliveryId) -> Status {
    look(harness, id).await.status
}

fn retry(wait: Duration) -> Verdict {
    Verdict::Retry { reason: DOWN, wait }
}

const FAILED: Verdict = Verdict::Failed { reason: DOWN };

pub async fn a_claim_takes_the_longest_due_first_and_no_more_than_was_asked_for<H: Harness>(harness: H) {
    let mut recorded = Vec::new();
    for _ in 0..3 {
        recorded.extend(harness.record(wishes(1, None)).await);
        harness.let_pass(Duration::from_secs(1)).await;
    }
    let first: HashSet<_> = claim(&harness, 2).await.into_iter().map(|lease| lease.delivery.id).collect();
    assert_eq!(first, HashSet::from([recorded[0], recorded[1]]));
    assert_eq!(claim_one(&harness).await.delivery.id, recorded[2]);
}

pub async fn a_claim_gives_each_delivery_a_token_of_its_own_and_counts_the_attempt<H: Harness>(harness: H) {
    harness.record(wishes(5, None)).await;
    let leases = claim(&harness, 10).await;
    let tokens: HashSet<ClaimToken> = leases.iter().map(|lease| lease.token).collect();
    assert_eq!(tokens.len(), 5);
    for lease in &leases {
        assert_eq!((lease.attempt, lease.attempt_since_retry), (1, 1));
        assert!(lease.age < MOMENT);
        assert_eq!(look(&harness, lease.delivery.id).await.attempts, 1);
    }
}

pub async fn a_leased_delivery_is_claimed_again_only_when_its_lease_has_ended<H: Harness>(harness: H) {
    harness.record(wishes(1, None)).await;
    let first = claim_one(&harness).await;
    harness.let_pass(LEASE - MOMENT).await;
    claims_nothing(&harness).await;
    harness.let_pass(MOMENT).await;
    let second = claim_one(&harness).await;
    assert_eq!(second.delivery, first.delivery);
    assert_eq!(second.attempt, 2);
    assert_ne!(second.token, first.token);
}

pub async fn an_outcome_is_recorded_only_where_its_token_still_holds_the_row<H: Harness>(harness: H) {
    harness.record(wishes(1, None)).await;
    let first = claim_one(&harness).await;
    harness.let_pass(LEASE).await;
    let second = claim_one(&harness).await;
    assert_eq!(record(&harness, &first, FAILED).await, Settled::LeaseLost);
    assert_eq!(status(&harness, first.delivery.id).await, Status::Pending);
    assert_eq!(record(&harness, &second, Verdict::Succeeded).await, Settled::Recorded(Status::Succeeded));
    // Once more under the token that did hold: it holds no more.
    assert_eq!(record(&harness, &second, FAILED).await, Settled::LeaseLost);
    let look = look(&harness, first.delivery.id).await;
    assert_eq!(look, Look { status: Status::Succeeded, attempts: 2, last_error: None });
}

pub async fn one_batch_records_each_outcome_by_its_own_token<H: Harness>(harness: H) {
    harness.record(wishes(4, None)).await;
    let mut leases = claim(&harness, 4).await;
    let stolen = leases[1].clone();
    leases[1].token = ClaimToken::generate();
    let verdicts = [Verdict::Succeeded, Verdict::Succeeded, FAILED, retry(HOUR / 2)];
    let batch = leases.iter().zip(verdicts).map(|(lease, verdict)| ended(lease, verdict)).collect();
    let settled = record_all(&harness, batch).await.settled;
    assert_eq!(
        settled,
        [
            Settled::Recorded(Status::Succeeded),
            Settled::LeaseLost,
            Settled::Recorded(Status::Failed),
            Settled::Recorded(Status::Pending)
        ]
    );
    assert_eq!(look(&harness, leases[2].delivery.id).await.last_error, Some(DOWN));
    assert_eq!(record(&harness, &stolen, Verdict::Succeeded).await, Settled::Recorded(Status::Succeeded));
}

/// An operator cancelled and retried it in mid-attempt, so two attempts of it end together.
pub async fn two_attempts_of_one_delivery_are_recorded_each_by_its_own_token<H: Harness>(harness: H) {
    let id = harness.record(wishes(1, None)).await[0];
    let first = claim_one(&harness).await;
    assert!(harness.cancel(id).await && harness.retry(id).await);
    let second = claim_one(&harness).await;
    let both = vec![ended(&first, FAILED), ended(&second, Verdict::Succeeded)];
    let settled = record_all(&harness, both).await.settled;
    assert_eq!(settled, [Settled::LeaseLost, Settled::Recorded(Status::Succeeded)]);
}

pub async fn a_retry_waits_its_time<H: Harness>(harness: H) {
    harness.record(wishes(1, None)).await;
    let first = claim_one(&harness).await;
    assert_eq!(record(&harness, &first, retry(HOUR / 2)).await, Settled::Recorded(Status::Pending));
    harness.let_pass(HOUR / 2 - MOMENT).await;
    claims_nothing(&harness).await;
    harness.let_pass(MOMENT).await;
    assert_eq!(claim_one(&harness).await.attempt, 2);
}

pub async fn a_retry_due_within_max_age_is_kept_and_one_later_fails<H: Harness>(harness: H) {
    harness.record(wishes(2, None)).await;
    let leases = claim(&harness, 2).await;
    harness.let_pass(HOUR / 2).await;
    let kept = record(&harness, &leases[0], retry(HOUR / 2 - MOMENT)).await;
    assert_eq!(kept, Settled::Recorded(Status::Pending));
    let later = record(&harness, &leases[1], retry(HOUR / 2 + Duration::from_millis(1))).await;
    assert_eq!(later, Settled::Recorded(Status::Failed));
    let look = look(&harness, leases[1].delivery.id).await;
    assert_eq!((look.status, look.last_error), (Status::Failed, Some(DOWN)));
}

pub async fn a_deferral_gives_its_attempt_back_and_is_bounded_by_max_age<H: Harness>(harness: H) {
    let id = harness.record(wishes(1, None)).await[0];
    let first = claim_one(&harness).await;
    let defer = Verdict::Defer { reason: Reason::UnreadablePayload, wait: 10 * HOUR };
    assert_eq!(record(&harness, &first, defer).await, Settled::Recorded(Status::Pending));
    let deferred = look(&harness, id).await;
    let reason = Some(Reason::UnreadablePayload);
    assert_eq!(deferred, Look { status: Status::Pending, attempts: 0, last_error: reason });
    harness.let_pass(HOUR - MOMENT).await;
    claims_nothing(&harness).await;
    harness.let_pass(MOMENT).await;
    let second = claim_one(&harness).await;
    assert_eq!(second.attempt, 1);
    assert!(second.age >= HOUR);
}

pub async fn deliveries_of_a_key_are_claimed_one_at_a_time_in_commit_order<H: Harness>(harness: H) {
    let mut recorded = harness.record(wishes(2, Some("key"))).await;
    recorded.extend(harness.record(wishes(2, Some("key"))).await);
    for expected in recorded {
        let lease = claim_one(&harness).await;
        assert_eq!(lease.delivery.id, expected);
        claims_nothing(&harness).await;
        let recorded = record_all(&harness, vec![ended(&lease, Verdict::Succeeded)]).await;
        assert_eq!(recorded.settled, [Settled::Recorded(Status::Succeeded)]);
        harness.let_pass(Duration::from_secs(1)).await;
    }
    claims_nothing(&harness).await;
    // A key that has come to its end begins again.
    let again = harness.record(wishes(1, Some("key"))).await[0];
    assert_eq!(claim_one(&harness).await.delivery.id, again);
}

pub async fn keys_and_unordered_deliveries_do_not_wait_for_each_other<H: Harness>(harness: H) {
    let one = harness.record(wishes(3, Some("one"))).await;
    let other = harness.record(wishes(3, Some("other"))).await;
    let unordered = harness.record(wishes(3, None)).await;
    let claimed: HashSet<_> = claim(&harness, 20).await.into_iter().map(|lease| lease.delivery.id).collect();
    let mut expected: HashSet<_> = unordered.into_iter().collect();
    expected.extend([one[0], other[0]]);
    assert_eq!(claimed, expected);
}

pub async fn a_waiting_retry_holds_back_its_key<H: Harness>(harness: H) {
    let recorded = harness.record(wishes(2, Some("key"))).await;
    let first = claim_one(&harness).await;
    let wait = retry(HOUR / 2);
    assert_eq!(record(&harness, &first, wait).await, Settled::Recorded(Status::Pending));
    harness.let_pass(HOUR / 4).await;
    claims_nothing(&harness).await;
    harness.let_pass(HOUR / 4).await;
    assert_eq!(claim_one(&harness).await.delivery.id, recorded[0]);
}

async fn failed_head<H: Harness>(harness: &H) -> Vec<DeliveryId> {
    let recorded = harness.record(wishes(3, Some("key"))).await;
    let head = claim_one(harness).await;
    assert_eq!(record(harness, &head, FAILED).await, Settled::Recorded(Status::Failed));
    harness.let_pass(10 * DAY).await;
    claims_nothing(harness).await;
    recorded
}

pub async fn a_failure_holds_back_its_key_until_it_is_retried<H: Harness>(harness: H) {
    let recorded = failed_head(&harness).await;
    assert!(harness.retry(recorded[0]).await);
    let head = claim_one(&harness).await;
    assert_eq!(head.delivery.id, recorded[0]);
    let done = record_all(&harness, vec![ended(&head, Verdict::Succeeded)]).await;
    assert_eq!(done.released, 1);
    assert_eq!(claim_one(&harness).await.delivery.id, recorded[1]);
}

pub async fn a_failure_holds_back_its_key_until_it_is_cancelled<H: Harness>(harness: H) {
    let recorded = failed_head(&harness).await;
    assert!(harness.cancel(recorded[0]).await);
    assert_eq!(claim_one(&harness).await.delivery.id, recorded[1]);
}

pub async fn cancelling_one_that_waits_behind_a_failure_releases_nothing<H: Harness>(harness: H) {
    let recorded = failed_head(&harness).await;
    assert!(harness.cancel(recorded[1]).await);
    claims_nothing(&harness).await;
    assert!(harness.cancel(recorded[0]).await);
    assert_eq!(claim_one(&harness).await.delivery.id, recorded[2]);
}

/// Each attempt is counted at its claim, so a delivery that kills its worker every time backs off all the same.
pub async fn a_delivery_that_outlives_its_workers_backs_off_and_ends_by_max_age<H: Harness>(harness: H) {
    harness.record(wishes(1, None)).await;
    let mut lease = claim_one(&harness).await;
    let mut waited = Vec::new();
    while lease.age <= channel().max_age {
        let mut leases_passed = 0;
        lease = loop {
            harness.let_pass(LEASE).await;
            leases_passed += 1;
            if let Some(next) = claim(&harness, 10).await.pop() {
                break next;
            }
        };
        waited.push(leases_passed);
    }
    assert_eq!(waited, [1, 2, 4, 8, 16, 32], "leases until the next attempt");
    let failed = Verdict::Failed { reason: Reason::Expired };
    assert_eq!(record(&harness, &lease, failed).await, Settled::Recorded(Status::Failed));
}

/// Retries that a receiver asked for are no lapses: one lost worker costs one lease, whatever came before.
pub async fn a_worker_lost_after_many_retries_costs_one_lease<H: Harness>(harness: H) {
    harness.record(wishes(1, None)).await;
    for _ in 0..4 {
        let lease = claim_one(&harness).await;
        let retry = Verdict::Retry { reason: Reason::Connection, wait: Duration::from_secs(1) };
        assert_eq!(record(&harness, &lease, retry).await, Settled::Recorded(Status::Pending));
        harness.let_pass(Duration::from_secs(2)).await;
    }
    claim_one(&harness).await;
    for leases in [1, 2] {
        harness.let_pass(LEASE * leases - Duration::from_secs(1)).await;
        claims_nothing(&harness).await;
        harness.let_pass(Duration::from_secs(2)).await;
        claim_one(&harness).await;
    }
}

pub async fn cancelling_one_that_waits_leaves_the_head_alone<H: Harness>(harness: H) {
    let recorded = harness.record(wishes(3, Some("key"))).await;
    let head = claim_one(&harness).await;
    assert!(harness.cancel(recorded[1]).await);
    claims_nothing(&harness).await;
    assert_eq!(record(&harness, &head, Verdict::Succeeded).await, Settled::Recorded(Status::Succeeded));
    assert_eq!(claim_one(&harness).await.delivery.id, recorded[2]);
}

pub async fn a_head_cancelled_in_mid_attempt_holds_back_its_key_until_its_lease_ends<H: Harness>(harness: H) {
    let recorded = harness.record(wishes(2, Some("key"))).await;
    let head = claim_one(&harness).await;
    harness.let_pass(LEASE / 2).await;
    assert!(harness.cancel(recorded[0]).await);
    claims_nothing(&harness).await;
    // Nor does it help to cancel the next one too, or to record another.
    assert!(harness.cancel(recorded[1]).await);
    let third = harness.record(wishes(1, Some("key"))).await[0];
    claims_nothing(&harness).await;
    assert_eq!(record(&harness, &head, Verdict::Succeeded).await, Settled::LeaseLost);
    claims_nothing(&harness).await;
    harness.let_pass(LEASE / 2).await;
    assert_eq!(claim_one(&harness).await.delivery.id, third);
}

pub async fn an_operators_cancel_clears_the_claim_so_its_outcome_is_discarded<H: Harness>(harness: H) {
    let id = harness.record(wishes(1, None)).await[0];
    let lease = claim_one(&harness).await;
    assert!(harness.cancel(id).await);
    assert_eq!(record(&harness, &lease, Verdict::Succeeded).await, Settled::LeaseLost);
    assert_eq!(status(&harness, id).await, Status::Cancelled);
    harness.let_pass(LEASE).await;
    claims_nothing(&harness).await;
}

pub async fn an_operators_retry_starts_max_age_and_backoff_over<H: Harness>(harness: H) {
    let id = harness.record(wishes(1, None)).await[0];
    let lease = claim_one(&harness).await;
    harness.let_pass(HOUR).await;
    assert_eq!(record(&harness, &lease, retry(HOUR / 2)).await, Settled::Recorded(Status::Failed));
    harness.let_pass(2 * HOUR).await;
    assert!(harness.retry(id).await);
    let again = claim_one(&harness).await;
    assert_eq!((again.attempt, again.attempt_since_retry), (2, 1));
    assert!(again.age < MOMENT, "age since the retry, not since creation");
    assert_eq!(record(&harness, &again, retry(HOUR / 2)).await, Settled::Recorded(Status::Pending));
    assert!(!harness.retry(id).await, "a pending delivery is not retried");
}

pub async fn a_cancelled_delivery_is_retried_only_if_it_is_unordered<H: Harness>(harness: H) {
    let unordered = harness.record(wishes(1, None)).await[0];
    assert!(harness.cancel(unordered).await);
    assert!(!harness.cancel(unordered).await, "cancelled once");
    assert!(harness.retry(unordered).await);
    assert_eq!(claim_one(&harness).await.delivery.id, unordered);

    let ordered = harness.record(wishes(1, Some("key"))).await[0];
    assert!(harness.cancel(ordered).await);
    assert!(!harness.retry(ordered).await, "final");
    assert_eq!(status(&harness, ordered).await, Status::Cancelled);
}

pub async fn a_succeeded_delivery_is_neither_retried_nor_cancelled<H: Harness>(harness: H) {
    let id = harness.record(wishes(1, None)).await[0];
    let lease = claim_one(&harness).await;
    assert_eq!(record(&harness, &lease, Verdict::Succeeded).await, Settled::Recorded(Status::Succeeded));
    assert!(!harness.retry(id).await);
    assert!(!harness.cancel(id).await);
    assert!(!harness.cancel(DeliveryId::generate()).await, "nor is one that does not exist");
    assert_eq!(status(&harness, id).await, Status::Succeeded);
}

pub async fn an_effect_commits_with_its_transition_or_not_at_all<H: Harness>(harness: H) {
    harness.record(wishes(1, None)).await;
    let lease = claim_one(&harness).await;
    let mut with_effect = ended(&lease, Verdict::Succeeded);
    with_effect.effect = Some(harness.effect(true));
    assert_eq!(record_all(&harness, vec![with_effect]).await.settled, [Settled::EffectFailed]);
    assert_eq!((status(&harness, lease.delivery.id).await, harness.marks().await), (Status::Pending, 0));

    harness.let_pass(LEASE).await;
    let again = claim_one(&harness).await;
    let mut with_effect = ended(&again, Verdict::Succeeded);
    with_effect.effect = Some(harness.effect(false));
    assert_eq!(record_all(&harness, vec![with_effect]).await.settled, [Settled::Recorded(Status::Succeeded)]);
    assert_eq!(harness.marks().await, 1);
}

pub async fn an_effect_of_a_lost_lease_is_not_applied<H: Harness>(harness: H) {
    let id = harness.record(wishes(1, None)).await[0];
    let mut lost = ended(&claim_one(&harness).await, Verdict::Succeeded);
    assert!(harness.cancel(id).await);
    lost.effect = Some(harness.effect(false));
    assert_eq!(record_all(&harness, vec![lost]).await.settled, [Settled::LeaseLost]);
    assert_eq!(harness.marks().await, 0);
}

pub async fn a_lease_given_back_is_due_at_once_and_its_attempt_not_counted<H: Harness>(harness: H) {
    let id = harness.record(wishes(1, None)).await[0];
    let lease = claim_one(&harness).await;
    let stale = (id, ClaimToken::generate());
    harness.queue().give_back(&channel().name, &[stale]).await.unwrap();
    claims_nothing(&harness).await;
    harness.queue().give_back(&channel().name, &[(id, lease.token)]).await.unwrap();
    assert_eq!(look(&harness, id).await.attempts, 0);
    let again = claim_one(&harness).await;
    assert_eq!(again.attempt, 1);
    assert_eq!(record(&harness, &lease, FAILED).await, Settled::LeaseLost);
}

/// Ahead of a claim that has been made: what is new, comes due, comes back, is retried, or follows in its key.
pub async fn a_search_ahead_finds_what_becomes_ready_and_one_of_all_also_what_ran_out<H: Harness>(harness: H) {
    let ahead = async || {
        let leases = harness.queue().claim(&channel().name, NonZeroUsize::MIN, LEASE, Search::Ahead).await.unwrap();
        leases.into_iter().next().unwrap()
    };
    let lost = harness.record(wishes(1, None)).await[0];
    assert_eq!(claim_one(&harness).await.delivery.id, lost);
    harness.let_pass(LEASE + MOMENT).await;

    let new = harness.record(wishes(1, None)).await[0];
    let lease = ahead().await;
    assert_eq!(lease.delivery.id, new);
    harness.queue().give_back(&channel().name, &[(new, lease.token)]).await.unwrap();
    let lease = ahead().await;
    assert_eq!(lease.delivery.id, new, "given back");
    let recorded = record(&harness, &lease, retry(Duration::from_millis(1))).await;
    assert_eq!(recorded, Settled::Recorded(Status::Pending));
    harness.let_pass(Duration::from_millis(1)).await;
    let lease = ahead().await;
    assert_eq!(lease.delivery.id, new, "a retry whose time has come");
    assert_eq!(record(&harness, &lease, FAILED).await, Settled::Recorded(Status::Failed));
    assert!(harness.retry(new).await);
    let lease = ahead().await;
    assert_eq!(lease.delivery.id, new, "retried by an operator");
    assert_eq!(record(&harness, &lease, Verdict::Succeeded).await, Settled::Recorded(Status::Succeeded));
    assert_eq!(claim_one(&harness).await.delivery.id, lost, "its lease ran out");
}

pub async fn what_follows_in_a_key_is_found_by_a_search_ahead_however_long_it_waited<H: Harness>(harness: H) {
    let key = harness.record(wishes(2, Some("key"))).await;
    harness.let_pass(HOUR).await;
    let head = claim_one(&harness).await;
    assert_eq!(head.delivery.id, key[0]);
    assert_eq!(record(&harness, &head, Verdict::Succeeded).await, Settled::Recorded(Status::Succeeded));
    let next = harness.queue().claim(&channel().name, NonZeroUsize::MIN, LEASE, Search::Ahead).await.unwrap();
    assert_eq!(next.iter().map(|lease| lease.delivery.id).collect::<Vec<_>>(), [key[1]]);
}

pub async fn cleanup_deletes_by_age_and_nothing_sooner<H: Harness>(harness: H) {
    let ids = harness.record(wishes(4, None)).await;
    let leases = claim(&harness, 3).await;
    let (succeeded, failed, pending) = (leases[0].delivery.id, leases[1].delivery.id, leases[2].delivery.id);
    let cancelled = ids.into_iter().find(|id| ![succeeded, failed, pending].contains(id)).unwrap();
    assert_eq!(record(&harness, &leases[0], Verdict::Succeeded).await, Settled::Recorded(Status::Succeeded));
    assert_eq!(record(&harness, &leases[1], FAILED).await, Settled::Recorded(Status::Failed));
    assert!(harness.cancel(cancelled).await);
    let retention = Retention::default();
    let mut left = Vec::new();
    for days in [6, 1, 22, 1, 300] {
        harness.let_pass(days * DAY + MOMENT).await;
        harness.queue().clean_up(&retention).await.unwrap();
        let mut there = 0;
        for id in [succeeded, failed, cancelled, pending] {
            there += usize::from(harness.look(id).await.is_some());
        }
        left.push(there);
    }
    assert_eq!(left, [4, 3, 3, 1, 1], "after 6, 7, 29, 30 and 330 days");
    assert_eq!(status(&harness, pending).await, Status::Pending);
}

pub async fn cleanup_abandons_a_key_whose_failure_is_past_retention<H: Harness>(harness: H) {
    let recorded = failed_head(&harness).await;
    let other = harness.record(wishes(1, Some("other"))).await[0];
    let retention = Retention::default();
    let early = harness.queue().clean_up(&retention).await.unwrap();
    assert_eq!((early.abandoned_keys, early.deleted), (0, 0));
    harness.let_pass(20 * DAY + MOMENT).await;
    let cleaned = harness.queue().clean_up(&retention).await.unwrap();
    assert_eq!((cleaned.abandoned_keys, cleaned.cancelled), (1, 2));
    assert_eq!(harness.look(recorded[0]).await, None, "the failure is deleted");
    let waiting = look(&harness, recorded[1]).await;
    assert_eq!((waiting.status, waiting.last_error), (Status::Cancelled, Some(Reason::Abandoned)));
    assert!(!harness.retry(recorded[0]).await && !harness.cancel(recorded[0]).await, "gone for operators too");
    assert!(!harness.retry(recorded[1]).await, "none is ever sent out of order");
    // What is recorded from now on goes out; other keys never noticed.
    let next = harness.record(wishes(1, Some("key"))).await[0];
    let claimed: HashSet<_> = claim(&harness, 10).await.into_iter().map(|lease| lease.delivery.id).collect();
    assert_eq!(claimed, HashSet::from([other, next]));
}

pub async fn pending_counts_what_waits_or_is_attempted_and_the_age_of_the_oldest<H: Harness>(harness: H) {
    let quiet = channel_named("quiet");
    let counted = [channel().name, quiet.name.clone()];
    harness.record(wishes(2, None)).await;
    harness.let_pass(HOUR).await;
    let mut more = wishes(2, Some("key"));
    more.push(Wish { channel: channel_named("uncounted").name, ordering_key: None });
    harness.record(more).await;
    let counts = harness.queue().count_pending(&counted).await.unwrap();
    assert_eq!(counts.iter().map(|count| count.pending).collect::<Vec<_>>(), [4, 0]);
    assert!(counts[0].oldest_age >= HOUR && counts[0].oldest_age < HOUR + MOMENT);
    assert_eq!(counts[1].oldest_age, Duration::ZERO);

    for lease in claim(&harness, 2).await {
        assert_eq!(record(&harness, &lease, Verdict::Succeeded).await, Settled::Recorded(Status::Succeeded));
    }
    let counts = harness.queue().count_pending(&counted).await.unwrap();
    assert_eq!(counts[0].pending, 2);
    assert!(counts[0].oldest_age < MOMENT, "the oldest are done");
}
