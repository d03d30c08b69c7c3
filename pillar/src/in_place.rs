//! Whether a task may block its thread for a moment.

use tokio::runtime::{Handle, RuntimeFlavor};

/// Whether [`tokio::task::block_in_place`] is possible here: not on the one thread of a small runtime.
pub(crate) fn can_block_in_place() -> bool {
    Handle::current().runtime_flavor() == RuntimeFlavor::MultiThread
}
