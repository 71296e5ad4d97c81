//! The two eras side by side: clients and servers of each, in every combination.

mod modern_client;
mod parked_calls;
mod speech;
