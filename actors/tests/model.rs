//! The laws against the model queue, under paused time.

use postrider_actors::model::{Model, ModelQueue};

async fn model() -> Model {
    Model(ModelQueue::new())
}

mod queue {
    postrider_actors::queue_laws!(
        #[tokio::test(start_paused = true)]
        super::model
    );
}

mod tree {
    postrider_actors::tree_laws!(
        #[tokio::test(start_paused = true)]
        super::model
    );
}
