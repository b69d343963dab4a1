//! Nothing: only the build script of the dependency is wanted.
