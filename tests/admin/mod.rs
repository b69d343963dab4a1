//! What operators look at, and who may: RLOCK.INFO, WAITERS and TOP, the section `rlock` of
//! INFO, access by ACL.

mod access;
mod info;
mod info_modes;
mod section;
mod top;
mod waiters;
