//! Settings of repositories, collections, service agreements and nodes.
