//! The alarm service: stores every alarm before it acknowledges it.
