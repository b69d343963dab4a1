//! A cluster: locks whose slots move from node to node.

mod atomic;
mod counter;
mod half;
mod moving;
mod orders;
mod reshard;
mod silent;
mod slots;
mod threads;
