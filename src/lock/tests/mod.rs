//! Tests of the core, outside a server.
