//! One law suite for every queue: what [`Queue`](crate::Queue) promises, and what the tree makes of it.
//!
//! The laws are generic over a [`Harness`]. [`queue_laws!`](crate::queue_laws) and [`tree_laws!`](crate::tree_laws) turn
//! them into tests: against the model under paused time, against PostgreSQL in real time.

pub mod edges;
pub mod queue;
pub mod tree;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use crate::ids::{ChannelName, DeliveryId};
use crate::outcome::{Reason, Status};
use crate::ports::{ChannelPolicy, Queue};

/// A delivery to be recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wish {
    /// Its channel.
    pub channel: ChannelName,
    /// Its ordering key.
    pub ordering_key: Option<String>,
}

/// A delivery as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    /// Its status.
    pub status: Status,
    /// Attempts counted.
    pub attempts: u32,
    /// Why the last one did not succeed.
    pub last_error: Option<Reason>,
}

/// A queue under test and the means to set it up, to move its clock and to look into it.
pub trait Harness: Send + Sync + 'static {
    /// The queue.
    type Queue: Queue;

    /// The queue under test.
    fn queue(&self) -> Arc<Self::Queue>;

    /// Records deliveries in one committed transaction, in their order.
    fn record(&self, wishes: Vec<Wish>) -> impl Future<Output = Vec<DeliveryId>> + Send;

    /// Moves the queue's clock forward.
    fn let_pass(&self, time: Duration) -> impl Future<Output = ()> + Send;

    /// The delivery, or `None` once it is deleted.
    fn look(&self, delivery: DeliveryId) -> impl Future<Output = Option<Look>> + Send;

    /// An operator's retry; false where it is not allowed.
    fn retry(&self, delivery: DeliveryId) -> impl Future<Output = bool> + Send;

    /// An operator's cancel; false where it is not allowed.
    fn cancel(&self, delivery: DeliveryId) -> impl Future<Output = bool> + Send;

    /// An effect that writes a mark, and then fails where `fails`.
    fn effect(&self, fails: bool) -> <Self::Queue as Queue>::Effect;

    /// Marks that committed effects have written.
    fn marks(&self) -> impl Future<Output = usize> + Send;

    /// Makes the queue unreachable, or reachable again.
    fn set_reachable(&self, reachable: bool) -> impl Future<Output = ()> + Send;
}

/// The channel that most laws use: MAX_AGE 1 h.
pub fn channel() -> ChannelPolicy {
    channel_named("laws")
}

/// A channel of this name, MAX_AGE 1 h.
#[allow(clippy::expect_used)] // the suite's own names
pub fn channel_named(name: &str) -> ChannelPolicy {
    ChannelPolicy { name: name.parse().expect("a well-formed name"), max_age: Duration::from_secs(3600) }
}

/// `count` deliveries of [`channel`] with this key.
pub fn wishes(count: usize, ordering_key: Option<&str>) -> Vec<Wish> {
    vec![Wish { channel: channel().name, ordering_key: ordering_key.map(Into::into) }; count]
}

/// Turns the laws of the queue into tests: `queue_laws!(#[tokio::test(start_paused = true)] make_harness)`, where
/// `make_harness()` is a future of a [`Harness`].
#[macro_export]
macro_rules! queue_laws {
    (#[$test:meta] $make:path) => {
        $crate::queue_laws!(@each #[$test] $make;
            a_claim_takes_the_longest_due_first_and_no_more_than_was_asked_for
            a_claim_gives_each_delivery_a_token_of_its_own_and_counts_the_attempt
            a_leased_delivery_is_claimed_again_only_when_its_lease_has_ended
            an_outcome_is_recorded_only_where_its_token_still_holds_the_row
            one_batch_records_each_outcome_by_its_own_token
            a_retry_waits_its_time
            a_retry_due_within_max_age_is_kept_and_one_later_fails
            a_deferral_gives_its_attempt_back_and_is_bounded_by_max_age
            deliveries_of_a_key_are_claimed_one_at_a_time_in_commit_order
            keys_and_unordered_deliveries_do_not_wait_for_each_other
            a_waiting_retry_holds_back_its_key
            a_failure_holds_back_its_key_until_it_is_retried
            a_failure_holds_back_its_key_until_it_is_cancelled
            cancelling_one_that_waits_leaves_the_head_alone
            cancelling_one_that_waits_behind_a_failure_releases_nothing
            a_delivery_that_outlives_its_workers_backs_off_and_ends_by_max_age
            a_worker_lost_after_many_retries_costs_one_lease
            two_attempts_of_one_delivery_are_recorded_each_by_its_own_token
            a_head_cancelled_in_mid_attempt_holds_back_its_key_until_its_lease_ends
            an_operators_cancel_clears_the_claim_so_its_outcome_is_discarded
            an_operators_retry_starts_max_age_and_backoff_over
            a_cancelled_delivery_is_retried_only_if_it_is_unordered
            a_succeeded_delivery_is_neither_retried_nor_cancelled
            an_effect_commits_with_its_transition_or_not_at_all
            an_effect_of_a_lost_lease_is_not_applied
            a_lease_given_back_is_due_at_once_and_its_attempt_not_counted
            a_search_ahead_finds_what_becomes_ready_and_one_of_all_also_what_ran_out
            what_follows_in_a_key_is_found_by_a_search_ahead_however_long_it_waited
            cleanup_deletes_by_age_and_nothing_sooner
            cleanup_abandons_a_key_whose_failure_is_past_retention
            pending_counts_what_waits_or_is_attempted_and_the_age_of_the_oldest
        );
    };
    (@each #[$test:meta] $make:path; $($law:ident)*) => {
        $(
            #[$test]
            async fn $law() {
                $crate::laws::queue::$law($make().await).await;
            }
        )*
    };
}

/// Turns the laws of the tree into tests, as [`queue_laws!`](crate::queue_laws) does those of the queue.
#[macro_export]
macro_rules! tree_laws {
    (#[$test:meta] $make:path) => {
        $crate::tree_laws!(@each #[$test] $make;
            everything_recorded_is_sent_once_when_nothing_fails
            deliveries_of_a_key_reach_the_receiver_one_at_a_time_in_commit_order
            the_next_of_a_key_goes_out_as_soon_as_its_head_has_ended
            no_more_is_claimed_than_there_are_free_slots
            a_retried_delivery_keeps_its_id_and_counts_its_attempts
            a_delivery_past_max_age_fails_unsent
            a_stalled_receiver_is_retried_once_its_time_is_spent
            a_panic_fails_its_attempt_alone_and_frees_its_slot
            a_sender_that_dies_aborts_its_attempt_and_another_sends_again_under_the_same_id
            a_claimer_that_dies_loses_no_outcome
            a_delivery_that_an_operator_retries_in_mid_attempt_loses_no_slot
            an_unreachable_queue_is_a_state_and_restarts_nothing
            past_the_restart_limit_a_channel_is_down_and_the_others_run
            shutdown_lets_attempts_finish_and_records_them
            shutdown_is_bounded_though_the_queue_is_unreachable
            shutdown_twice_is_one_shutdown
            the_supervisors_end_ends_every_actor
        );
        $crate::tree_laws!(@edges #[$test] $make;
            c50_poison_of_every_kind_costs_its_own_attempts_alone
            a_flood_of_hints_waits_as_one_and_deliveries_go_on
        );
    };
    (@each #[$test:meta] $make:path; $($law:ident)*) => {
        $(
            #[$test]
            async fn $law() {
                $crate::laws::tree::$law($make().await).await;
            }
        )*
    };
    (@edges #[$test:meta] $make:path; $($law:ident)*) => {
        $(
            #[$test]
            async fn $law() {
                $crate::laws::edges::$law($make().await).await;
            }
        )*
    };
}
