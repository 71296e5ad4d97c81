//! The trouble, in cycles: a replica is killed every second while the store is restarted and then stopped for a while; then all is
//! quiet; then the replicas are restarted in turn, as an update does it.

use std::time::{Duration, Instant};

use super::{
    TeamError,
    history::{TroubleEvents, now},
    place::{Place, REPLICAS},
    sleep_until,
};
use crate::random::Random;

/// The number of kills of a cycle, one per second.
const KILLS: u64 = 30;
const KILL_EVERY: Duration = Duration::from_secs(1);
/// After which kills the store is restarted, stopped, and started.
const RESTART_STORE: u64 = 4;
const STOP_STORE: u64 = 9;
const START_STORE: u64 = 12;
/// The time without trouble, for calls of the trouble before to end.
const QUIET: Duration = Duration::from_secs(4);

#[derive(Debug, Default, Clone, Copy)]
pub struct TeamDeeds {
    pub kills: u64,
    pub store_restarts: u64,
    pub store_stops: u64,
    pub rolling_restarts: u64,
}

pub(super) struct Trouble {
    random: Random,
    pub(super) events: TroubleEvents,
    pub(super) deeds: TeamDeeds,
}

impl Trouble {
    pub(super) fn new(random: Random) -> Self {
        Self {
            random,
            events: TroubleEvents::default(),
            deeds: TeamDeeds::default(),
        }
    }

    /// Makes the trouble of one cycle. The kills end at the latest at a moment.
    pub(super) fn cycle(&mut self, place: &mut Place, end: Instant) -> Result<(), TeamError> {
        self.kill_replicas(place, end)?;
        sleep_until(Instant::now() + QUIET);
        self.restart_in_turn(place)?;
        sleep_until(Instant::now() + QUIET);
        Ok(())
    }

    fn kill_replicas(&mut self, place: &mut Place, end: Instant) -> Result<(), TeamError> {
        let mut is_stopped = false;
        for kill in 0..KILLS {
            let next = Instant::now() + KILL_EVERY;
            if next > end {
                break;
            }
            match kill {
                RESTART_STORE => {
                    place.redis().kill();
                    place.redis().start()?;
                    self.deeds.store_restarts += 1;
                }
                STOP_STORE => {
                    place.redis().kill();
                    is_stopped = true;
                    self.deeds.store_stops += 1;
                }
                START_STORE => {
                    place.redis().start()?;
                    is_stopped = false;
                }
                _ => {}
            }
            let replica = place.replica(self.random.index(REPLICAS));
            // Before the kill, so that no outcome seems early.
            self.events.kills.push(now());
            replica.kill();
            replica.start()?;
            self.deeds.kills += 1;
            sleep_until(next);
        }
        if is_stopped {
            place.redis().start()?;
        }
        Ok(())
    }

    fn restart_in_turn(&mut self, place: &mut Place) -> Result<(), TeamError> {
        let from = now();
        for index in 0..REPLICAS {
            let replica = place.replica(index);
            replica.end()?;
            replica.start()?;
        }
        self.deeds.rolling_restarts += 1;
        self.events.rolling.push((from, now()));
        Ok(())
    }
}
