//! Client conversations: one async method per operation, typed events.
