//! The pillar: archive, index, audit trail and one handler per operation.
