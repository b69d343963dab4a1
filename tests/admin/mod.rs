//! What operators look at, and who may: RLOCK.INFO, LIST, WAITERS and TOP, the section
//! `rlock` of INFO, access by ACL.

mod access;
mod gauges;
mod help;
mod info;
mod info_modes;
mod list;
mod section;
mod top;
mod waiters;
